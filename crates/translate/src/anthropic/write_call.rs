//! Writes a request of the Messages API.
//!
//! System messages stand before all others, wherever the client said them: the API has one place for them, and Anthropic's own
//! endpoint for OpenAI's SDK does the same (<https://docs.anthropic.com/en/api/openai-sdk>).
//! Invariant: what a member becomes depends on that member alone, so that the same history has the same bytes at its front.

use wire::filter::Request;

use crate::call::{Call, Format, Media, Message, Part, Role, Said, Tool, ToolChoice};
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::raw::Raw;

pub(crate) const SPEAKS: &str = "anthropic";

/// The cap of a call that says none, since the API wants one: as much as each of its models can make.
const MAX_TOKENS: u64 = 8_192;

/// Writes the request that says this call.
pub(crate) fn write(mut call: Call<'_>, request: &mut Request) -> Result<()> {
    call.leave_others(SPEAKS)?;
    if let Some(Format::Schema {
        description: Some(_),
        ..
    }) = &call.format
    {
        call.dropped.push("response_format.description");
    }
    if call.effort.is_some() {
        // Its models differ in how they are asked to think, and its own endpoint for OpenAI's SDK drops this too.
        call.dropped.push("reasoning_effort");
    } else if call.thinking_budget.is_some_and(|tokens| tokens > 0) {
        call.dropped.push("thinking");
    }
    if let Some(hot) = call.temperature.filter(|given| is_above_one(*given)) {
        let says = format!(
            "{} is above 1, the most that a backend that speaks anthropic takes",
            hot.json()
        );
        return Err(Fault::new(says).within("temperature"));
    }
    let mut json = Json::with_capacity(call.room());
    json.try_object(|json| {
        json.say("model", &call.model);
        match call.max_tokens {
            Some(cap) => json.key("max_tokens").raw(cap),
            None => json.key("max_tokens").whole(MAX_TOKENS),
        }
        if call.messages.iter().any(|message| message.role == Role::System) {
            json.key("system").try_list(|json| system(&call, json))?;
        }
        json.key("messages").try_list(|json| messages(&call, json))?;
        if !call.tools.is_empty() {
            json.key("tools").list(|json| call.tools.iter().for_each(|tool| self::tool(tool, json)));
        }
        tool_choice(&call, json);
        let numbers = [
            ("temperature", call.temperature),
            ("top_p", call.top_p),
            ("top_k", call.top_k),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                json.key(name).raw(number);
            }
        }
        if !call.stops.is_empty() {
            json.key("stop_sequences").list(|json| call.stops.iter().for_each(|stop| json.text(stop)));
        }
        match &call.format {
            None => {}
            Some(Format::Schema { schema, .. }) => json.key("output_config").object(|json| {
                json.key("format").object(|json| {
                    json.say("type", "json_schema");
                    json.key("schema").raw(*schema);
                });
            }),
            Some(Format::Json) => {
                let says = "\"json_object\" has no counterpart at a backend that speaks anthropic; give a json_schema";
                return Err(Fault::new(says).within(call.names.format));
            }
        }
        if let Some(user) = &call.user {
            json.key("metadata").object(|json| json.say("user_id", user));
        }
        if call.is_streamed {
            json.key("stream").flag(true);
        }
        Ok(())
    })?;
    request.path = Some(super::PATH.into());
    request.dropped = call.dropped;
    let (name, value) = super::VERSION;
    request.headers = vec![(name.into(), value.as_bytes().into())];
    request.body = vec![json.into_bytes().into()];
    Ok(())
}

fn is_above_one(number: Raw<'_>) -> bool {
    // `0.7`, as most are.
    let is_a_part = matches!(number.json().as_bytes(), [b'0', b'.', b'0'..=b'9']);
    let is_more = || {
        number
            .json()
            .parse::<f64>()
            .is_ok_and(|number| number > 1.0)
    };
    !is_a_part && is_more()
}

fn system(call: &Call<'_>, json: &mut Json) -> Result<()> {
    let messages = call
        .messages
        .iter()
        .filter(|message| message.role == Role::System);
    for message in messages {
        for part in &message.parts {
            block(call, message, part, json)?;
        }
    }
    Ok(())
}

/// Messages of one role that follow each other are one: results of several tools have to stand in one message.
fn messages(call: &Call<'_>, json: &mut Json) -> Result<()> {
    let mut spoken = call
        .messages
        .iter()
        .filter(|message| message.role != Role::System)
        .peekable();
    while let Some(first) = spoken.next() {
        json.lead(match first.role {
            Role::User => r#"{"role":"user","content":["#,
            Role::System | Role::Assistant => r#"{"role":"assistant","content":["#,
        });
        blocks(call, first, json)?;
        while let Some(next) = spoken.next_if(|next| next.role == first.role) {
            blocks(call, next, json)?;
        }
        json.trail("]}");
    }
    Ok(())
}

fn blocks(call: &Call<'_>, message: &Message<'_>, json: &mut Json) -> Result<()> {
    for part in &message.parts {
        block(call, message, part, json)?;
    }
    Ok(())
}

fn block(call: &Call<'_>, message: &Message<'_>, part: &Part<'_>, json: &mut Json) -> Result<()> {
    match &part.said {
        // The API refuses texts of nothing, which OpenAI's clients send beside calls of tools.
        Said::Text(text) | Said::Refusal(text) if text.is_empty() => return Ok(()),
        Said::Text(text) | Said::Refusal(text) => {
            json.lead(r#"{"type":"text","text":"#);
            json.text(text);
            if let Some(mark) = part.cache {
                json.key("cache_control").raw(mark);
            }
            json.trail("}");
            return Ok(());
        }
        // Without a signature, or with another provider's, thinking would be refused.
        Said::Thinking { .. } | Said::Redacted(_) => return Ok(()),
        Said::Of(by, said) => {
            if by == SPEAKS {
                own_thinking(said, json);
            }
            return Ok(());
        }
        Said::Audio(..) => {
            let says = "sound has no counterpart at a backend that speaks anthropic";
            return Err(call.unsaid(message, part, says));
        }
        Said::Image(_) | Said::File(..) | Said::Call(_) | Said::Result(_) => {}
    }
    json.try_object(|json| {
        match &part.said {
            Said::Image(media) => {
                json.say("type", "image");
                source(media, json);
            }
            Said::File(media, name) => {
                json.say("type", "document");
                source(media, json);
                if let Some(name) = name {
                    json.say("title", name);
                }
            }
            Said::Call(tool) => {
                json.say("type", "tool_use");
                json.say("id", &tool.id);
                json.say("name", &tool.name);
                let input = Raw::read_arguments(&tool.arguments);
                let Some(input) = input else {
                    let says =
                        format!("the arguments of the call {:?} are no JSON object, or one of more than 128 levels", tool.id);
                    return Err(call.unsaid(message, part, &says));
                };
                json.key("input").raw(input);
            }
            Said::Result(result) => {
                json.say("type", "tool_result");
                json.say("tool_use_id", &result.id);
                json.key("content").try_list(|json| {
                    for part in &result.parts {
                        block(call, message, part, json)?;
                    }
                    Ok(())
                })?;
                if result.is_error {
                    json.key("is_error").flag(true);
                }
            }
            Said::Text(_)
            | Said::Refusal(_)
            | Said::Thinking { .. }
            | Said::Redacted(_)
            | Said::Of(..)
            | Said::Audio(..) => {}
        }
        if let Some(mark) = part.cache {
            json.key("cache_control").raw(mark);
        }
        Ok(())
    })
}

/// Thinking that comes back as its provider signed it.
fn own_thinking(said: &Said<'_>, json: &mut Json) {
    json.object(|json| match said {
        Said::Redacted(data) => {
            json.say("type", "redacted_thinking");
            json.say("data", data);
        }
        said => {
            json.say("type", "thinking");
            json.say("thinking", said.thought().unwrap_or(""));
            if let Said::Thinking {
                signature: Some(signature),
                ..
            } = said
            {
                json.say("signature", signature);
            }
        }
    });
}

fn source(media: &Media<'_>, json: &mut Json) {
    json.key("source").object(|json| match media {
        Media::Data(kind, data) => {
            json.say("type", "base64");
            json.say("media_type", kind);
            json.say("data", data);
        }
        Media::Url(url) => {
            json.say("type", "url");
            json.say("url", url);
        }
    });
}

fn tool(tool: &Tool<'_>, json: &mut Json) {
    json.object(|json| {
        json.say("name", &tool.name);
        if let Some(description) = &tool.description {
            json.say("description", description);
        }
        let any = Raw::literal(r#"{"type":"object","properties":{}}"#);
        json.key("input_schema").raw(tool.schema.unwrap_or(any));
        if tool.is_strict {
            json.key("strict").flag(true);
        }
        if let Some(mark) = tool.cache {
            json.key("cache_control").raw(mark);
        }
    });
}

fn tool_choice(call: &Call<'_>, json: &mut Json) {
    let is_single = call.parallel_calls == Some(false);
    let choice = match &call.tool_choice {
        None if is_single && !call.tools.is_empty() => &ToolChoice::Auto,
        None => return,
        Some(choice) => choice,
    };
    write_choice(choice, is_single, json);
}

/// Writes which tools may be called.
pub(crate) fn write_choice(choice: &ToolChoice<'_>, is_single: bool, json: &mut Json) {
    json.key("tool_choice").object(|json| {
        let kind = match choice {
            ToolChoice::None => "none",
            ToolChoice::Auto => "auto",
            ToolChoice::Any => "any",
            ToolChoice::Named(_) => "tool",
        };
        json.say("type", kind);
        if let ToolChoice::Named(name) = choice {
            json.say("name", name);
        }
        if is_single && *choice != ToolChoice::None {
            json.key("disable_parallel_tool_use").flag(true);
        }
    });
}
