//! Writes the messages of a request, block by block.
//!
//! Messages of one role that follow each other are one: results of several tools have to stand in one message. Texts of nothing, which
//! the API refuses, and messages that say nothing else are left out.
//! Invariant: what a message becomes depends on it and those before it alone, so that the same history has the same bytes at its front.

use std::borrow::Cow;

use super::SPEAKS;
use super::documents::{self, Names};
use super::maker::Maker;
use crate::anthropic;
use crate::call::{Call, Message, Part, Role, Said, Tool, ToolCall, ToolResult};
use crate::calls::{MADE, hash};
use crate::fault::Result;
use crate::json::Json;
use crate::raw::Raw;

/// The most bytes of a call's id.
const ID_BYTES: usize = 64;

/// What writes blocks, and what they depend on.
pub(super) struct Blocks<'c, 'a> {
    call: &'c Call<'a>,
    maker: Maker,
    names: Names,
    /// What was left out.
    pub(super) dropped: Vec<&'static str>,
}

impl<'c, 'a> Blocks<'c, 'a> {
    pub(super) fn new(call: &'c Call<'a>, maker: Maker) -> Self {
        Self {
            call,
            maker,
            names: Names::default(),
            dropped: Vec::new(),
        }
    }

    /// System messages stand before all others, wherever the client said them: the API has one place for them.
    pub(super) fn system(&mut self, json: &mut Json) -> Result<()> {
        let call = self.call;
        let messages = call.messages.iter();
        for message in messages.filter(|message| message.role == Role::System) {
            for part in &message.parts {
                let Said::Text(text) = &part.said else {
                    let says = "a system message of a backend that speaks bedrock is text";
                    return Err(call.unsaid(message, part, says));
                };
                if !is_blank(text) {
                    json.object(|json| json.say("text", text));
                    self.mark(part.cache, json);
                }
            }
        }
        Ok(())
    }

    pub(super) fn messages(&mut self, json: &mut Json) -> Result<()> {
        let call = self.call;
        let said = |message: &&Message<'_>| {
            let mut parts = message.parts.iter();
            message.role != Role::System && parts.any(|part| self.maker.is_told(&part.said))
        };
        let spoken: Vec<&Message<'_>> = call.messages.iter().filter(said).collect();
        for turn in spoken.chunk_by(|one, other| one.role == other.role) {
            let is_user = turn.first().is_some_and(|first| first.role == Role::User);
            json.try_object(|json| {
                json.say("role", if is_user { "user" } else { "assistant" });
                json.key("content").try_list(|json| {
                    for message in turn {
                        for part in &message.parts {
                            self.block(message, part, json)?;
                        }
                    }
                    Ok(())
                })
            })?;
        }
        Ok(())
    }

    fn block(&mut self, message: &Message<'_>, part: &Part<'_>, json: &mut Json) -> Result<()> {
        if !self.maker.is_told(&part.said) {
            return Ok(());
        }
        json.try_object(|json| self.said(message, part, json))?;
        let mark = match &part.said {
            // There is no place for a mark in what a tool gave.
            Said::Result(result) => part
                .cache
                .or_else(|| result.parts.iter().find_map(|part| part.cache)),
            _ => part.cache,
        };
        self.mark(mark, json);
        Ok(())
    }

    fn said(&mut self, message: &Message<'_>, part: &Part<'_>, json: &mut Json) -> Result<()> {
        let call = self.call;
        let unsaid = |says: String| call.unsaid(message, part, &says);
        match &part.said {
            Said::Text(text) | Said::Refusal(text) => {
                json.say("text", text);
                Ok(())
            }
            Said::Image(media) => documents::write_image(media, json).map_err(unsaid),
            Said::File(media, name) => {
                let names = &mut self.names;
                documents::write_document(media, name.as_deref(), names, json).map_err(unsaid)
            }
            Said::Audio(data, format) => {
                documents::write_sound(data, format, json);
                Ok(())
            }
            Said::Call(tool) => write_use(tool, json).map_err(unsaid),
            Said::Result(result) => self.result(message, result, json),
            Said::Of(_, said) => {
                write_thinking(said, json);
                Ok(())
            }
            said => {
                write_thinking(said, json);
                Ok(())
            }
        }
    }

    fn result(
        &mut self,
        message: &Message<'_>,
        result: &ToolResult<'_>,
        json: &mut Json,
    ) -> Result<()> {
        json.key("toolResult").try_object(|json| {
            json.say("toolUseId", &id(&result.id));
            json.key("content").try_list(|json| {
                for part in &result.parts {
                    if self.maker.is_told(&part.said) {
                        json.try_object(|json| self.said(message, part, json))?;
                    }
                }
                Ok(())
            })?;
            if result.is_error && self.maker.knows_failures() {
                json.say("status", "error");
            } else if result.is_error {
                self.drop("tool_result.is_error");
            }
            Ok(())
        })
    }

    pub(super) fn tools(&mut self, json: &mut Json) {
        for tool in &self.call.tools {
            json.object(|json| write_tool(tool, json));
            match tool.cache {
                Some(_) if !self.maker.keeps_tools() => self.drop("cache_control"),
                mark => self.mark(mark, json),
            }
        }
    }

    /// Writes a mark: what stands before it may be kept for later calls.
    fn mark(&mut self, mark: Option<Raw<'_>>, json: &mut Json) {
        let Some(mark) = mark else { return };
        if !self.maker.keeps_prompts() {
            self.drop("cache_control");
            return;
        }
        let told = mark.object().and_then(|mut mark| mark.text("ttl"));
        let told = told.ok().flatten();
        // Models of Anthropic's alone keep it for as long as is said, and not all of them read what goes without saying.
        let kept = told.filter(|kept| self.maker == Maker::Anthropic && kept != "5m");
        json.object(|json| {
            json.key("cachePoint").object(|json| {
                json.say("type", "default");
                if let Some(kept) = &kept {
                    json.say("ttl", kept);
                }
            });
        });
    }

    fn drop(&mut self, name: &'static str) {
        if !self.dropped.contains(&name) {
            self.dropped.push(name);
        }
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

impl Maker {
    /// Whether a model of its is told this. It refuses texts of nothing, and thinking that it did not sign itself. What Anthropic's
    /// models sign is good wherever they run
    /// (<https://platform.claude.com/docs/en/build-with-claude/extended-thinking>).
    fn is_told(self, said: &Said<'_>) -> bool {
        match said {
            Said::Text(text) | Said::Refusal(text) => !is_blank(text),
            Said::Thinking { signature, .. } => self == Self::Anthropic && signature.is_some(),
            Said::Redacted(_) => false,
            Said::Of(by, said) if by == anthropic::write_call::SPEAKS => self.is_told(said),
            Said::Of(by, _) => by == SPEAKS,
            Said::Image(_) | Said::File(..) | Said::Audio(..) | Said::Call(_) | Said::Result(_) => {
                true
            }
        }
    }
}

/// Thinking that comes back as its model signed it.
fn write_thinking(said: &Said<'_>, json: &mut Json) {
    json.key("reasoningContent").object(|json| match said {
        Said::Redacted(data) => json.say("redactedContent", data),
        Said::Thinking { text, signature } => json.key("reasoningText").object(|json| {
            json.say("text", text);
            if let Some(signature) = signature {
                json.say("signature", signature);
            }
        }),
        _ => {}
    });
}

fn write_use(tool: &ToolCall<'_>, json: &mut Json) -> std::result::Result<(), String> {
    let input = Raw::read_arguments(&tool.arguments).ok_or_else(|| {
        format!(
            "the arguments of the call {:?} are no JSON object, or one of more than 128 levels",
            tool.id
        )
    })?;
    json.key("toolUse").object(|json| {
        json.say("toolUseId", &id(&tool.id));
        json.say("name", &tool.name);
        json.key("input").raw(input);
    });
    Ok(())
}

/// The id of a call in the characters that the API takes; another one, always the same, in place of one that it would refuse.
fn id(id: &str) -> Cow<'_, str> {
    let is_good = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b':' | b'-');
    match (1..=ID_BYTES).contains(&id.len()) && id.bytes().all(is_good) {
        true => Cow::Borrowed(id),
        false => Cow::Owned(format!("{MADE}{:016x}", hash(&[id]))),
    }
}

fn write_tool(tool: &Tool<'_>, json: &mut Json) {
    json.key("toolSpec").object(|json| {
        json.say("name", &tool.name);
        if let Some(description) = tool.description.as_deref().filter(|text| !is_blank(text)) {
            json.say("description", description);
        }
        let any = Raw::literal(r#"{"type":"object","properties":{}}"#);
        json.key("inputSchema")
            .object(|json| json.key("json").raw(tool.schema.unwrap_or(any)));
        if tool.is_strict {
            json.key("strict").flag(true);
        }
    });
}
