//! Which messages a conversation has in Harmony, and how each is framed.
//!
//! Invariant: reasoning from before the last final answer is dropped; what comes after it stays, because the model
//! still works on it.
//! Not here: tool schemas (`typescript`).

use std::collections::HashMap;

use super::Script;
use super::typescript::tools_section;
use crate::conversation::{Content, Conversation, Turn};
use crate::template::date;
use crate::uncountable::{Uncountable, wrong};

const IDENTITY: &str = "You are ChatGPT, a large language model trained by OpenAI.";
const KNOWLEDGE_CUTOFF: &str = "2024-06";
const CHANNELS: &str =
    "# Valid channels: analysis, commentary, final. Channel must be included for every message.";
const TOOLS_HINT: &str = "Calls to these tools must go to the commentary channel: 'functions'.";

/// A message before it is framed.
struct Message {
    /// Everything between `<|start|>` and the channel: a call names its recipient here.
    author: String,
    /// The channel and what follows it: an answer names its recipient here.
    channel: Option<&'static str>,
    texts: Vec<String>,
    end: &'static str,
}

/// Renders a conversation up to where the model goes on.
pub(crate) fn render(
    conversation: &Conversation,
    engine_clock_s: i64,
) -> Result<Script, Uncountable> {
    let (instructions, turns) = peeled(conversation);
    let mut messages = vec![Message::plain(
        "system",
        vec![system(conversation, engine_clock_s)?],
    )];
    messages.extend(developer(instructions, conversation));
    let names = tool_names(turns);
    for turn in turns {
        push_turn(turn, &names, conversation.of_items, &mut messages);
    }
    let last_answer = messages
        .iter()
        .rposition(|message| message.channel == Some("final"))
        .unwrap_or(0);
    let mut script = Script::default();
    for (at, message) in messages.into_iter().enumerate() {
        if at >= last_answer || message.channel != Some("analysis") {
            message.frame(&mut script);
        }
    }
    script.special("<|start|>");
    script.text("assistant");
    Ok(script)
}

/// The system prompt, and the turns without it.
fn peeled(conversation: &Conversation) -> (Option<String>, &[Turn]) {
    if conversation.instructions.is_some() {
        return (conversation.instructions.clone(), &conversation.turns);
    }
    match conversation.turns.split_first() {
        Some((Turn::Instructions { content, .. }, rest)) => (content.flat(), rest),
        _ => (None, &conversation.turns),
    }
}

fn system(conversation: &Conversation, engine_clock_s: i64) -> Result<String, Uncountable> {
    let effort = match conversation.effort.as_deref() {
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

fn developer(instructions: Option<String>, conversation: &Conversation) -> Option<Message> {
    let tools = conversation.tools();
    let says_something = instructions.as_deref().is_some_and(|text| !text.is_empty());
    if !says_something && tools.is_empty() {
        return None;
    }
    // Beside tools, empty instructions keep their heading.
    let mut sections: Vec<_> = instructions.map(instructions_section).into_iter().collect();
    if !tools.is_empty() {
        sections.push(tools_section(tools));
    }
    Some(Message::plain("developer", vec![sections.join("\n\n")]))
}

fn instructions_section(text: String) -> String {
    format!("# Instructions\n\n{text}")
}

/// The name of every call, by its id: answers carry the id alone.
fn tool_names(turns: &[Turn]) -> HashMap<&str, &str> {
    let calls = turns.iter().flat_map(|turn| match turn {
        Turn::Assistant { calls, .. } => calls.as_slice(),
        _ => &[],
    });
    calls
        .map(|call| (call.id.as_str(), call.name.as_str()))
        .collect()
}

fn push_turn(turn: &Turn, names: &HashMap<&str, &str>, is_item: bool, messages: &mut Vec<Message>) {
    match turn {
        Turn::Instructions { content, .. } => {
            let text = content.flat().filter(|text| !is_item || !text.is_empty());
            let text = text.map(instructions_section);
            messages.extend(text.map(|text| Message::plain("developer", vec![text])));
        }
        // Harmony has no other roles: reading refuses them.
        Turn::Other { .. } => {}
        Turn::User { content, .. } => messages.push(Message::plain("user", texts(content))),
        Turn::Answer {
            content,
            call_id,
            of,
            ..
        } => {
            let named = || names.get(call_id.as_str()).copied();
            let name = of.as_deref().or_else(named).unwrap_or_default();
            messages.push(Message {
                author: format!("functions.{name}"),
                channel: Some("commentary to=assistant"),
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
            let reasoning = reasoning.iter().filter(|text| !text.is_empty());
            let reasoning =
                reasoning.map(|text| Message::assistant("analysis", vec![text.clone()]));
            if calls.is_empty() {
                messages.extend(reasoning);
                messages.extend(answer(content, says));
                return;
            }
            let preamble = content.flat().filter(|text| !text.is_empty());
            messages.extend(preamble.map(|text| Message::assistant("commentary", vec![text])));
            messages.extend(reasoning);
            messages.extend(calls.iter().map(|call| Message {
                author: format!("assistant to=functions.{}", call.name),
                channel: Some("commentary json"),
                texts: vec![call.arguments.clone()],
                end: "<|call|>",
            }));
        }
    }
}

/// Nothing is no answer, unless it is an item of its own (`says`).
fn answer(content: &Content, says: bool) -> Option<Message> {
    let says_something = content.texts().next().is_some_and(|text| !text.is_empty());
    (says_something || says).then(|| Message::assistant("final", texts(content)))
}

fn texts(content: &Content) -> Vec<String> {
    content.texts().map(str::to_owned).collect()
}

impl Message {
    fn plain(author: &str, texts: Vec<String>) -> Self {
        Self {
            author: author.to_owned(),
            channel: None,
            texts,
            end: "<|end|>",
        }
    }

    fn assistant(channel: &'static str, texts: Vec<String>) -> Self {
        Self {
            channel: Some(channel),
            ..Self::plain("assistant", texts)
        }
    }

    fn frame(self, script: &mut Script) {
        script.special("<|start|>");
        script.text(self.author);
        if let Some(channel) = self.channel {
            script.special("<|channel|>");
            script.text(channel);
        }
        script.special("<|message|>");
        for text in self.texts {
            script.text(text);
        }
        script.special(self.end);
    }
}
