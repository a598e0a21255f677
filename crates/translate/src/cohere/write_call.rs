//! Writes a request of Cohere's chat.
//!
//! Invariant: what a member becomes depends on that member alone, so that the same history has the same bytes at its front.

use wire::filter::Request;

use super::SPEAKS;
use crate::call::{Call, Format, Message, Part, Role, Said, Tool, ToolCall, ToolChoice};
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::openai::write_call::address;
use crate::raw::Raw;

/// Members that the API has, and that not all dialects have.
const RENAMED: [(&str, &str); 6] = [
    ("seed", "seed"),
    ("presence_penalty", "presence_penalty"),
    ("frequency_penalty", "frequency_penalty"),
    ("generationConfig.seed", "seed"),
    ("generationConfig.presencePenalty", "presence_penalty"),
    ("generationConfig.frequencyPenalty", "frequency_penalty"),
];

/// Writes the request that says this call.
pub(crate) fn write(mut call: Call<'_>, request: &mut Request) -> Result<()> {
    let mut numbers: Vec<(&'static str, Raw<'_>)> = Vec::new();
    for (name, ours) in RENAMED {
        if let Some(at) = call.others.iter().position(|other| other.name == name) {
            let value = call.others.remove(at).value;
            numbers.push((ours, value.number().map_err(|fault| fault.within(name))?));
        }
    }
    call.leave_others(SPEAKS)?;
    let thinking = thinking(&mut call);
    drop_hints(&mut call);
    let tools = tools_of(&call)?;
    if is_single(&call) {
        let says = "a backend that speaks cohere calls several tools at once if it likes";
        return Err(Fault::new(says).within(call.names.parallel));
    }
    let mut json = Json::with_capacity(call.room());
    json.try_object(|json| {
        json.say("model", &call.model);
        json.key("messages").try_list(|json| {
            call.messages
                .iter()
                .try_for_each(|one| message(&call, one, json))
        })?;
        if !tools.is_empty() {
            json.key("tools")
                .list(|json| tools.iter().for_each(|tool| self::tool(tool, json)));
            if tools.iter().all(|tool| tool.is_strict) {
                json.key("strict_tools").flag(true);
            }
        }
        match call.tool_choice.as_ref().filter(|_| !tools.is_empty()) {
            None | Some(ToolChoice::Auto) => {}
            Some(ToolChoice::None) => json.say("tool_choice", "NONE"),
            Some(ToolChoice::Any | ToolChoice::Named(_)) => json.say("tool_choice", "REQUIRED"),
        }
        let said = [
            ("max_tokens", call.max_tokens),
            ("temperature", call.temperature),
            ("p", call.top_p),
            ("k", call.top_k),
        ];
        let said = said
            .into_iter()
            .filter_map(|(name, number)| Some((name, number?)));
        for (name, number) in said.chain(numbers) {
            json.key(name).raw(number);
        }
        if !call.stops.is_empty() {
            json.key("stop_sequences")
                .list(|json| call.stops.iter().for_each(|stop| json.text(stop)));
        }
        if let Some(format) = &call.format {
            json.key("response_format").object(|json| {
                json.say("type", "json_object");
                if let Format::Schema { schema, .. } = format {
                    json.key("json_schema").raw(*schema);
                }
            });
        }
        if let Some(budget) = thinking {
            json.key("thinking").object(|json| {
                json.say("type", if budget == 0 { "disabled" } else { "enabled" });
                if budget > 0 {
                    json.key("token_budget").whole(budget);
                }
            });
        }
        json.key("stream").flag(call.is_streamed);
        Ok(())
    })?;
    request.path = Some(super::PATH.into());
    request.dropped = call.dropped;
    request.body = vec![json.into_bytes().into()];
    Ok(())
}

/// Tokens that it may think for, of a model that reasons. There are no steps of effort, but for none; other models are not asked.
fn thinking(call: &mut Call<'_>) -> Option<u64> {
    let budget = match (call.effort.as_deref(), call.thinking_budget) {
        (Some("none"), _) => Some(0),
        (Some(_), _) => {
            call.dropped.push("reasoning_effort");
            return None;
        }
        (None, budget) => budget,
    };
    if budget.is_some() && !call.model.contains("reasoning") {
        call.dropped.push("thinking");
        return None;
    }
    budget
}

/// Notes what is left out.
fn drop_hints(call: &mut Call<'_>) {
    let strict = call.tools.iter().filter(|tool| tool.is_strict).count();
    let has_failed = |message: &Message<'_>| {
        let mut parts = message.parts.iter();
        parts.any(|part| matches!(&part.said, Said::Result(result) if result.is_error))
    };
    let is_described = matches!(
        &call.format,
        Some(Format::Schema {
            description: Some(_),
            ..
        })
    );
    let dropped = [
        ("user", call.user.is_some()),
        (
            "tools.function.strict",
            strict > 0 && strict < call.tools.len(),
        ),
        ("tool_result.is_error", call.messages.iter().any(has_failed)),
        ("response_format.description", is_described),
    ];
    let dropped = dropped.into_iter().filter(|(_, is)| *is);
    call.dropped.extend(dropped.map(|(name, _)| name));
}

/// The tools that it is told of: of one that has to be called, that one alone, as there is no word for which.
fn tools_of<'c, 'a>(call: &'c Call<'a>) -> Result<Vec<&'c Tool<'a>>> {
    let Some(ToolChoice::Named(name)) = &call.tool_choice else {
        return Ok(call.tools.iter().collect());
    };
    let named = call.tools.iter().find(|tool| tool.name == *name);
    let says = || Fault::new("names a tool that is not there").within("tool_choice");
    Ok(vec![named.ok_or_else(says)?])
}

/// Whether one tool at a time may be called.
fn is_single(call: &Call<'_>) -> bool {
    let may_call = !call.tools.is_empty() && call.tool_choice != Some(ToolChoice::None);
    may_call && call.parallel_calls == Some(false)
}

fn tool(tool: &Tool<'_>, json: &mut Json) {
    json.object(|json| {
        json.say("type", "function");
        json.key("function").object(|json| {
            json.say("name", &tool.name);
            if let Some(description) = &tool.description {
                json.say("description", description);
            }
            let any = Raw::literal(r#"{"type":"object","properties":{}}"#);
            json.key("parameters").raw(tool.schema.unwrap_or(any));
        });
    });
}

fn message(call: &Call<'_>, message: &Message<'_>, json: &mut Json) -> Result<()> {
    match message.role {
        Role::System => spoken(call, message, "system", json),
        Role::Assistant => of_assistant(call, message, json),
        Role::User => {
            for part in &message.parts {
                let Said::Result(result) = &part.said else {
                    continue;
                };
                json.try_object(|json| {
                    json.say("role", "tool");
                    json.say("tool_call_id", &result.id);
                    content(call, (message, false), result.parts.iter(), json)
                })?;
            }
            let has_more = message.parts.iter().any(|part| !is_result(part));
            match has_more || message.parts.is_empty() {
                true => spoken(call, message, "user", json),
                false => Ok(()),
            }
        }
    }
}

fn is_result(part: &Part<'_>) -> bool {
    matches!(part.said, Said::Result(_))
}

fn spoken(call: &Call<'_>, message: &Message<'_>, role: &str, json: &mut Json) -> Result<()> {
    json.try_object(|json| {
        json.say("role", role);
        let said = message.parts.iter().filter(|part| !is_result(part));
        content(call, (message, message.role == Role::User), said, json)
    })
}

fn of_assistant(call: &Call<'_>, message: &Message<'_>, json: &mut Json) -> Result<()> {
    let calls = message.parts.iter().filter_map(|part| match &part.said {
        Said::Call(call) => Some(call),
        _ => None,
    });
    let calls: Vec<&ToolCall<'_>> = calls.collect();
    json.try_object(|json| {
        json.say("role", "assistant");
        let said = message.parts.iter().filter(|part| {
            !part.said.is_thinking() && !matches!(part.said, Said::Call(_)) && !is_empty(part)
        });
        if calls.is_empty() || said.clone().next().is_some() {
            content(call, (message, false), said, json)?;
        }
        if calls.is_empty() {
            return Ok(());
        }
        // What led to a call; what led to a text is in the text.
        let thoughts = message.parts.iter().filter_map(|part| part.said.thought());
        let plan: String = thoughts.collect();
        if !plan.is_empty() {
            json.say("tool_plan", &plan);
        }
        json.key("tool_calls").list(|json| {
            for call in calls {
                json.object(|json| {
                    json.say("id", &call.id);
                    json.say("type", "function");
                    json.key("function").object(|json| {
                        json.say("name", &call.name);
                        json.say("arguments", &call.arguments);
                    });
                });
            }
        });
        Ok(())
    })
}

fn is_empty(part: &Part<'_>) -> bool {
    matches!(&part.said, Said::Text(text) | Said::Refusal(text) if text.is_empty())
}

/// Content: one text where it is one text, else parts; images are what users show.
fn content<'p>(
    call: &Call<'_>,
    (message, shows): (&Message<'_>, bool),
    parts: impl Iterator<Item = &'p Part<'p>> + Clone,
    json: &mut Json,
) -> Result<()> {
    json.key("content");
    let mut ahead = parts.clone();
    match (ahead.next().map(|part| &part.said), ahead.next()) {
        (None, _) => {
            json.text("");
            return Ok(());
        }
        (Some(Said::Text(text) | Said::Refusal(text)), None) => {
            json.text(text);
            return Ok(());
        }
        _ => {}
    }
    json.try_list(|json| {
        for part in parts {
            self::part(call, (message, shows), part, json)?;
        }
        Ok(())
    })
}

fn part(
    call: &Call<'_>,
    (message, shows): (&Message<'_>, bool),
    part: &Part<'_>,
    json: &mut Json,
) -> Result<()> {
    let says = match &part.said {
        Said::Text(text) | Said::Refusal(text) => {
            json.object(|json| {
                json.say("type", "text");
                json.say("text", text);
            });
            return Ok(());
        }
        Said::Image(media) if shows => {
            json.object(|json| {
                json.say("type", "image_url");
                json.key("image_url")
                    .object(|json| json.say("url", &address(media)));
            });
            return Ok(());
        }
        Said::Image(_) => "an image cannot stand here for a backend that speaks cohere",
        Said::File(..) => "a document has no counterpart at a backend that speaks cohere",
        Said::Audio(..) => "sound has no counterpart at a backend that speaks cohere",
        Said::Thinking { .. } | Said::Redacted(_) | Said::Of(..) => return Ok(()),
        Said::Call(_) | Said::Result(_) => "cannot stand here for a backend that speaks cohere",
    };
    Err(call.unsaid(message, part, says))
}
