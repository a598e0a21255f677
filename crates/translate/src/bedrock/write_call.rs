//! Writes a request of `Converse`, or of `ConverseStream`, whose bodies are the same.
//!
//! Not here: what is said in a conversation (`write_blocks`), what models of one maker alone are told (`maker`).

use wire::filter::Request;

use super::SPEAKS;
use super::maker::Maker;
use super::write_blocks::Blocks;
use crate::anthropic;
use crate::call::{Call, Format, Message, Part, Said, ToolChoice};
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::raw::Raw;

/// Writes the request that says this call.
pub(crate) fn write(mut call: Call<'_>, request: &mut Request) -> Result<()> {
    call.leave_others(SPEAKS)?;
    if call.user.is_some() {
        call.dropped.push("user");
    }
    let maker = Maker::of(&call.model);
    refuse(&call, maker)?;
    let mut blocks = Blocks::new(&call, maker);
    let mut dropped = Vec::new();
    if !call.tools.is_empty() && !has_tools(&call) {
        // It may call none of them, and there is no word for that.
        dropped.push("tools");
    }
    let mut json = Json::with_capacity(call.room());
    json.try_object(|json| {
        let mut system = Json::default();
        system.try_list(|json| blocks.system(json))?;
        let system = system.into_bytes();
        if let Some(system) = Raw::read(&system).filter(|system| system.json() != "[]") {
            json.key("system").raw(system);
        }
        json.key("messages")
            .try_list(|json| blocks.messages(json))?;
        inference(&call, json);
        if has_tools(&call) {
            json.key("toolConfig").object(|json| {
                json.key("tools").list(|json| blocks.tools(json));
                if own_choice(&call, maker).is_none() {
                    tool_choice(&call, json);
                }
            });
        }
        output(&call, maker, &mut dropped, json);
        of_its_maker(&call, maker, &mut dropped, json)
    })?;
    dropped.append(&mut blocks.dropped);
    call.dropped.append(&mut dropped);
    request.path = Some(super::path(&call.model, call.is_streamed).into());
    // AWS reads no other type, whatever the client says of its own.
    let json_type = b"application/json".as_slice();
    request
        .headers
        .push(("content-type".into(), json_type.into()));
    if call.is_streamed {
        let stream = wire::eventstream::CONTENT_TYPE.as_bytes();
        request.headers.push(("accept".into(), stream.into()));
    }
    request.dropped = call.dropped;
    request.body = vec![json.into_bytes().into()];
    Ok(())
}

/// Refuses what the API has no word for.
fn refuse(call: &Call<'_>, maker: Maker) -> Result<()> {
    let has_own = own_choice(call, maker).is_some();
    if is_single(call) && !has_own {
        let says = "a backend that speaks bedrock calls several tools at once if it likes";
        return Err(Fault::new(says).within(call.names.parallel));
    }
    if let Some(hot) = call.temperature.filter(|given| is_above_one(*given)) {
        let says = format!(
            "{} is above 1, the most that a backend that speaks bedrock takes",
            hot.json()
        );
        return Err(Fault::new(says).within("temperature"));
    }
    if let Some(Format::Json) = call.format {
        let says = "\"json_object\" has no counterpart at a backend that speaks bedrock; give a json_schema";
        return Err(Fault::new(says).within(call.names.format));
    }
    let Some((message, part)) = of_a_tool(call) else {
        return Ok(());
    };
    if call.tools.is_empty() {
        let says = "a backend that speaks bedrock reads calls of tools and what they gave beside the tools alone; say them";
        return Err(call.unsaid(message, part, says));
    }
    if call.tool_choice == Some(ToolChoice::None) && !has_own {
        let says = "a backend that speaks bedrock has no word for it, and wants tools that were called to be said";
        return Err(Fault::new(says).within("tool_choice"));
    }
    Ok(())
}

fn is_above_one(number: Raw<'_>) -> bool {
    let number = number.json().parse::<f64>();
    number.is_ok_and(|number| number > 1.0)
}

/// The first part of the history that is of a tool.
fn of_a_tool<'c, 'a>(call: &'c Call<'a>) -> Option<(&'c Message<'a>, &'c Part<'a>)> {
    let messages = call.messages.iter();
    let mut parts =
        messages.flat_map(|message| message.parts.iter().map(move |part| (message, part)));
    parts.find(|(_, part)| matches!(part.said, Said::Call(_) | Said::Result(_)))
}

/// Whether one tool at a time may be called.
fn is_single(call: &Call<'_>) -> bool {
    let may_call = !call.tools.is_empty() && call.tool_choice != Some(ToolChoice::None);
    may_call && call.parallel_calls == Some(false)
}

/// Whether it is told of tools: of those that must not be called, where they were.
fn has_tools(call: &Call<'_>) -> bool {
    let may_call = call.tool_choice != Some(ToolChoice::None);
    !call.tools.is_empty() && (may_call || of_a_tool(call).is_some())
}

/// The choice of tools in the words of Anthropic's API, for its models, where this one has no word for it: one at a time, or none of
/// those that were called. It is said once: with a second choice beside it the call would be refused.
fn own_choice<'c, 'a>(call: &'c Call<'a>, maker: Maker) -> Option<&'c ToolChoice<'a>> {
    let choice = call.tool_choice.as_ref();
    let is_none = choice == Some(&ToolChoice::None) && has_tools(call);
    let is_said = maker == Maker::Anthropic && (is_single(call) || is_none);
    is_said.then(|| choice.unwrap_or(&ToolChoice::Auto))
}

fn inference(call: &Call<'_>, json: &mut Json) {
    let numbers = [
        ("maxTokens", call.max_tokens),
        ("temperature", call.temperature),
        ("topP", call.top_p),
    ];
    let has_numbers = numbers.iter().any(|(_, number)| number.is_some());
    if !has_numbers && call.stops.is_empty() {
        return;
    }
    json.key("inferenceConfig").object(|json| {
        for (name, number) in numbers {
            if let Some(number) = number {
                json.key(name).raw(number);
            }
        }
        if !call.stops.is_empty() {
            json.key("stopSequences")
                .list(|json| call.stops.iter().for_each(|stop| json.text(stop)));
        }
    });
}

fn tool_choice(call: &Call<'_>, json: &mut Json) {
    let Some(choice) = &call.tool_choice else {
        return;
    };
    json.key("toolChoice").object(|json| match choice {
        ToolChoice::None => {}
        ToolChoice::Auto => json.key("auto").object(|_| {}),
        ToolChoice::Any => json.key("any").object(|_| {}),
        ToolChoice::Named(name) => json.key("tool").object(|json| json.say("name", name)),
    });
}

/// The form of the answer, and how much effort it is worth: as far as Anthropic's clients say that, who know their models. Models differ
/// in whether they take one.
fn output(call: &Call<'_>, maker: Maker, dropped: &mut Vec<&'static str>, json: &mut Json) {
    let is_known = call.of_anthropic.is_some() && maker == Maker::Anthropic;
    let effort = call.effort.as_deref().filter(|_| is_known);
    if call.effort.is_some() && effort.is_none() {
        dropped.push(call.names.effort);
    }
    let format = call.format.as_ref();
    if effort.is_none() && format.is_none() {
        return;
    }
    json.key("outputConfig").object(|json| {
        if let Some(effort) = effort {
            json.say("effort", effort);
        }
        if let Some(Format::Schema {
            name,
            description,
            schema,
            ..
        }) = format
        {
            json.key("textFormat").object(|json| {
                json.say("type", "json_schema");
                json.key("structure").object(|json| {
                    json.key("jsonSchema").object(|json| {
                        json.say("schema", schema.json());
                        if let Some(name) = name {
                            json.say("name", name);
                        }
                        if let Some(description) = description {
                            json.say("description", description);
                        }
                    });
                });
            });
        }
    });
}

/// What models of one maker alone are told, and what they shall tell.
fn of_its_maker(
    call: &Call<'_>,
    maker: Maker,
    dropped: &mut Vec<&'static str>,
    json: &mut Json,
) -> Result<()> {
    let thinking = call.of_anthropic.and_then(|said| said.thinking);
    let is_told = maker == Maker::Anthropic;
    if thinking.is_some() && !is_told && call.thinking_budget != Some(0) {
        dropped.push("thinking");
    }
    let thinking = thinking.filter(|_| is_told);
    let choice = own_choice(call, maker);
    if thinking.is_some() || call.top_k.is_some() || choice.is_some() {
        json.key("additionalModelRequestFields")
            .try_object(|json| {
                if let Some(thinking) = thinking {
                    json.key("thinking").raw(thinking);
                }
                if let Some(choice) = choice {
                    anthropic::write_call::write_choice(choice, is_single(call), json);
                }
                match call.top_k {
                    Some(top_k) if !maker.write_top_k(top_k, json) => {
                        let says =
                            "has no counterpart at this model of a backend that speaks bedrock";
                        Err(Fault::new(says).within("top_k"))
                    }
                    _ => Ok(()),
                }
            })?;
    }
    if !call.stops.is_empty() && is_told {
        // Which of them it was.
        json.key("additionalModelResponseFieldPaths")
            .list(|json| json.word("/stop_sequence"));
    }
    Ok(())
}
