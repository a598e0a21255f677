//! Which messages a conversation has in Harmony, and how each is framed.
//!
//! Invariant: reasoning from before the last final answer is dropped; what comes after it stays, because the model
//! still works on it.
//! Not here: tool schemas (`typescript`).

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Write};

use super::Script;
use super::section::Section;
use super::typescript::tools_section;
use crate::Word;
use crate::conversation::{Content, Conversation, Tool, Turn};
use crate::rendered_limit;
use crate::template::date;
use crate::{Uncountable, wrong};

const IDENTITY: &str = "You are ChatGPT, a large language model trained by OpenAI.";
const KNOWLEDGE_CUTOFF: &str = "2024-06";
const CHANNELS: &str =
    "# Valid channels: analysis, commentary, final. Channel must be included for every message.";
const TOOLS_HINT: &str = "Calls to these tools must go to the commentary channel: 'functions'.";

const INSTRUCTIONS: &str = "# Instructions\n\n";

/// A message before it is framed.
struct Message<'t> {
    /// What stands between `<|start|>` and the channel.
    author: Author<'t>,
    /// The channel and what follows it: an answer names its recipient here.
    channel: Option<Word>,
    texts: Vec<Cow<'t, str>>,
    end: &'static str,
}

enum Author<'t> {
    Role(Word),
    /// The assistant, who calls this tool.
    Caller(&'t str),
    /// This tool.
    Tool(&'t str),
}

/// Renders a conversation up to where the model goes on.
///
/// # Errors
/// When its effort is none that Harmony knows, or its tools become too long a text.
pub fn render<'t>(
    conversation: &'t Conversation<'t>,
    engine_clock_s: i64,
) -> Result<Script<'t>, Uncountable> {
    let (instructions, turns) = peeled(conversation);
    let system = system(conversation, engine_clock_s)?;
    let mut messages = vec![Message::plain(Word::System, vec![system.into()])];
    messages.extend(developer(instructions.as_deref(), conversation)?);
    let names = tool_names(turns);
    for turn in turns {
        push_turn(turn, &names, conversation.of_items, &mut messages);
    }
    let last_answer = messages
        .iter()
        .rposition(|message| message.channel == Some(Word::Final))
        .unwrap_or(0);
    let mut script = Script::default();
    for (at, message) in messages.into_iter().enumerate() {
        if at >= last_answer || message.channel != Some(Word::Analysis) {
            message.frame(&mut script);
        }
    }
    script.special("<|start|>");
    script.word(Word::Assistant);
    Ok(script)
}

/// What the model writes for these turns, each with its name and its last token.
#[must_use]
pub fn render_answer<'t>(turns: &'t [Turn<'t>]) -> Script<'t> {
    let (mut messages, mut script) = (Vec::new(), Script::default());
    for turn in turns {
        push_turn(turn, &HashMap::new(), false, &mut messages);
    }
    for message in messages {
        message.frame(&mut script);
    }
    script
}

/// The system prompt, and the turns without it.
fn peeled<'t>(conversation: &'t Conversation<'t>) -> (Option<Cow<'t, str>>, &'t [Turn<'t>]) {
    if let Some(text) = conversation.instructions {
        return (Some(Cow::Borrowed(text)), &conversation.turns);
    }
    match conversation.turns.split_first() {
        Some((Turn::Instructions { content, .. }, rest)) => (content.flat(), rest),
        _ => (None, &conversation.turns),
    }
}

fn system(conversation: &Conversation<'_>, engine_clock_s: i64) -> Result<String, Uncountable> {
    let effort = match conversation.effort {
        None => "medium",
        Some(effort @ ("low" | "medium" | "high")) => effort,
        Some(_) => return Err(wrong("reasoning_effort", "low, medium or high")),
    };
    let today = date(engine_clock_s, "%Y-%m-%d");
    let mut text = format!(
        "{IDENTITY}\nKnowledge cutoff: {KNOWLEDGE_CUTOFF}\nCurrent date: {today}\n\nReasoning: {effort}\n\n{CHANNELS}"
    );
    if !conversation.tools().is_empty() {
        text.push('\n');
        text.push_str(TOOLS_HINT);
    }
    Ok(text)
}

/// The developer's message, unless it would be empty.
fn developer<'t>(
    instructions: Option<&str>,
    conversation: &Conversation<'_>,
) -> Result<Option<Message<'t>>, Uncountable> {
    let tools = conversation.tools();
    let says_something = instructions.is_some_and(|text| !text.is_empty());
    if !says_something && tools.is_empty() {
        return Ok(None);
    }
    let longest = rendered_limit(conversation.body_bytes);
    let mut section = Section::new(longest);
    // Beside tools, empty instructions keep their heading.
    let written = sections(instructions, tools, &mut section);
    written.map_err(|_| Uncountable::TooLong(longest + 1))?;
    Ok(Some(Message::plain(
        Word::Developer,
        vec![section.into_text().into()],
    )))
}

fn sections(instructions: Option<&str>, tools: &[Tool<'_>], out: &mut Section) -> fmt::Result {
    if let Some(text) = instructions {
        write!(out, "{INSTRUCTIONS}{text}")?;
    }
    if tools.is_empty() {
        return Ok(());
    }
    if instructions.is_some() {
        out.write_str("\n\n")?;
    }
    tools_section(tools, out)
}

fn instructions_section(text: &str) -> String {
    format!("{INSTRUCTIONS}{text}")
}

/// The name of every call, by its id: answers carry the id alone.
fn tool_names<'t>(turns: &'t [Turn<'t>]) -> HashMap<&'t str, &'t str> {
    let calls = turns.iter().flat_map(|turn| match turn {
        Turn::Assistant { calls, .. } => calls.as_slice(),
        _ => &[],
    });
    let known = calls.filter(|call| !call.has_made_up_id());
    known.map(|call| (call.id, &*call.name)).collect()
}

fn push_turn<'t>(
    turn: &'t Turn<'t>,
    names: &HashMap<&'t str, &'t str>,
    is_item: bool,
    messages: &mut Vec<Message<'t>>,
) {
    match turn {
        Turn::Instructions { content, .. } => {
            let text = content.flat().filter(|text| !is_item || !text.is_empty());
            let text = text.map(|text| instructions_section(&text));
            let message = |text: String| Message::plain(Word::Developer, vec![text.into()]);
            messages.extend(text.map(message));
        }
        // Harmony has no other roles: reading refuses them.
        Turn::Other { .. } => {}
        Turn::User { content, .. } => {
            messages.push(Message::plain(Word::User, borrowed(content)));
        }
        Turn::Answer {
            content,
            call_id,
            of,
            ..
        } => {
            let name = of.or_else(|| names.get(call_id.sought()?).copied());
            messages.push(Message {
                author: Author::Tool(name.unwrap_or_default()),
                channel: Some(Word::CommentaryToAssistant),
                texts: vec![content.flat().unwrap_or_default()],
                end: "<|end|>",
            });
        }
        Turn::Assistant {
            content,
            reasoning,
            calls,
            ..
        } => {
            let says = is_item && reasoning.is_none();
            let reasoning = reasoning.as_deref().filter(|text| !text.is_empty());
            let reasoning =
                reasoning.map(|text| Message::assistant(Word::Analysis, vec![text.into()]));
            if calls.is_empty() {
                messages.extend(reasoning);
                messages.extend(answer(content, says));
                return;
            }
            let preamble = content.flat().filter(|text| !text.is_empty());
            messages.extend(preamble.map(|text| Message::assistant(Word::Commentary, vec![text])));
            messages.extend(reasoning);
            messages.extend(calls.iter().map(|call| Message {
                author: Author::Caller(&call.name),
                channel: Some(Word::CommentaryJson),
                texts: vec![Cow::Borrowed(&*call.arguments)],
                end: "<|call|>",
            }));
        }
    }
}

/// Nothing is no answer, unless it is an item of its own (`says`).
fn answer<'t>(content: &'t Content<'t>, says: bool) -> Option<Message<'t>> {
    let says_something = content.texts().next().is_some_and(|text| !text.is_empty());
    (says_something || says).then(|| Message::assistant(Word::Final, borrowed(content)))
}

fn borrowed<'t>(content: &'t Content<'t>) -> Vec<Cow<'t, str>> {
    content.texts().map(Cow::Borrowed).collect()
}

impl<'t> Message<'t> {
    const fn plain(author: Word, texts: Vec<Cow<'t, str>>) -> Self {
        Self {
            author: Author::Role(author),
            channel: None,
            texts,
            end: "<|end|>",
        }
    }

    const fn assistant(channel: Word, texts: Vec<Cow<'t, str>>) -> Self {
        Self {
            author: Author::Role(Word::Assistant),
            channel: Some(channel),
            texts,
            end: "<|end|>",
        }
    }

    fn frame(self, script: &mut Script<'t>) {
        script.special("<|start|>");
        match self.author {
            Author::Role(role) => script.word(role),
            Author::Caller(name) => script.text(format!("assistant to=functions.{name}").into()),
            Author::Tool(name) => script.text(format!("functions.{name}").into()),
        }
        if let Some(channel) = self.channel {
            script.special("<|channel|>");
            script.word(channel);
        }
        script.special("<|message|>");
        for text in self.texts {
            script.text(text);
        }
        script.special(self.end);
    }
}
