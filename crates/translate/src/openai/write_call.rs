//! Writes a chat completion's request.
//!
//! Invariant: what a member becomes depends on that member alone, so that the same history has the same bytes at its front.

use wire::filter::Request;

use crate::call::{Call, Format, Media, Message, Part, Role, Said, Tool, ToolCall, ToolChoice};
use crate::fault::Result;
use crate::json::Json;
use crate::raw::Raw;

pub(crate) const SPEAKS: &str = "openai";

/// Members that the API has, and that not all dialects have.
const RENAMED: [(&str, &str); 3] = [
    ("generationConfig.seed", "seed"),
    ("generationConfig.presencePenalty", "presence_penalty"),
    ("generationConfig.frequencyPenalty", "frequency_penalty"),
];

/// Writes the request that says this call.
pub(crate) fn write(mut call: Call<'_>, request: &mut Request) -> Result<()> {
    let mut renamed: Vec<(&'static str, Raw<'_>)> = Vec::new();
    for (name, ours) in RENAMED {
        if let Some(at) = call.others.iter().position(|other| other.name == name) {
            let value = call.others.remove(at).value;
            renamed.push((ours, value.number().map_err(|fault| fault.within(name))?));
        }
    }
    call.leave_others(SPEAKS)?;
    let parts = call.messages.iter().flat_map(|message| &message.parts);
    let mut results = parts.filter_map(|part| match &part.said {
        Said::Result(result) => Some(result),
        _ => None,
    });
    if results.any(|result| result.is_error) {
        // The text of a failed result says what failed; there is no place that says that it did.
        call.dropped.push("tool_result.is_error");
    }
    if call.thinking_budget == Some(0) {
        // An engine thinks as it is made to.
        call.dropped.push("thinking");
    }
    let mut json = Json::with_capacity(call.room());
    json.try_object(|json| {
        json.say("model", &call.model);
        json.key("messages")
            .try_list(|json| messages(&call, json))?;
        if !call.tools.is_empty() {
            json.key("tools")
                .list(|json| call.tools.iter().for_each(|tool| self::tool(tool, json)));
        }
        if let Some(choice) = &call.tool_choice {
            json.key("tool_choice");
            tool_choice(choice, json);
        }
        if let Some(are_parallel) = call.parallel_calls.filter(|_| !call.tools.is_empty()) {
            json.key("parallel_tool_calls").flag(are_parallel);
        }
        let numbers = [
            // OpenAI's reasoning models know no other name, and every engine of today knows this one.
            ("max_completion_tokens", call.max_tokens),
            ("temperature", call.temperature),
            ("top_p", call.top_p),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                json.key(name).raw(number);
            }
        }
        for (name, number) in &renamed {
            json.key(name).raw(*number);
        }
        if let Some(top_k) = call.top_k {
            // vLLM's and its kin's.
            json.key("top_k").raw(top_k);
        }
        if !call.stops.is_empty() {
            json.key("stop")
                .list(|json| call.stops.iter().for_each(|stop| json.text(stop)));
        }
        if let Some(format) = &call.format {
            json.key("response_format");
            self::format(format, json);
        }
        if let Some(effort) = effort(&call) {
            json.say("reasoning_effort", effort);
        }
        if let Some(user) = &call.user {
            json.say("user", user);
        }
        if call.is_streamed {
            json.key("stream").flag(true);
            json.key("stream_options")
                .object(|json| json.key("include_usage").flag(true));
        }
        Ok(())
    })?;
    request.path = Some(super::PATH.into());
    request.dropped = call.dropped;
    request.body = vec![json.into_bytes().into()];
    Ok(())
}

/// How hard it shall think. A budget of tokens has no counterpart but in steps.
fn effort<'a>(call: &'a Call<'_>) -> Option<&'a str> {
    match (&call.effort, call.thinking_budget) {
        (Some(effort), _) => match &**effort {
            // Anthropic's two steps above the highest that every engine knows.
            "max" | "xhigh" if call.names.effort == "output_config.effort" => Some("high"),
            effort => Some(effort),
        },
        (None, None | Some(0)) => None,
        (None, Some(..4_096)) => Some("low"),
        (None, Some(..16_384)) => Some("medium"),
        (None, Some(_)) => Some("high"),
    }
}

fn messages(call: &Call<'_>, json: &mut Json) -> Result<()> {
    let mut shown = Shown::new();
    for message in &call.messages {
        if !message.parts.first().is_some_and(is_result) {
            show(call, &mut shown, json)?;
        }
        match message.role {
            Role::System => plain(call, message, "system", json)?,
            Role::User => of_user(call, message, &mut shown, json)?,
            Role::Assistant => of_assistant(call, message, json)?,
        }
    }
    show(call, &mut shown, json)
}

/// What tools gave that is no text, with its message.
type Shown<'p> = Vec<(&'p Message<'p>, &'p Part<'p>)>;

fn is_text(part: &Part<'_>) -> bool {
    matches!(part.said, Said::Text(_) | Said::Refusal(_))
}

fn is_result(part: &Part<'_>) -> bool {
    matches!(part.said, Said::Result(_))
}

/// Says as a user what tools gave that is no text: their messages have texts alone
/// (<https://platform.openai.com/docs/api-reference/chat/create>), and follow each other at once.
fn show(call: &Call<'_>, shown: &mut Shown<'_>, json: &mut Json) -> Result<()> {
    if shown.is_empty() {
        return Ok(());
    }
    json.try_object(|json| {
        json.say("role", "user");
        json.key("content").try_list(|json| {
            for (message, part) in shown.drain(..) {
                self::part(call, message, part, json)?;
            }
            Ok(())
        })
    })
}

/// A message of content alone.
fn plain(call: &Call<'_>, message: &Message<'_>, role: &str, json: &mut Json) -> Result<()> {
    json.try_object(|json| {
        json.say("role", role);
        json.key("content");
        content(call, message, message.parts.iter(), json)
    })
}

/// Results of tools are messages of their own, and stand before what the user says beside them: the calls that they answer are
/// the message before.
fn of_user<'p>(
    call: &Call<'_>,
    message: &'p Message<'p>,
    shown: &mut Shown<'p>,
    json: &mut Json,
) -> Result<()> {
    let mut has_more = false;
    for part in &message.parts {
        let Said::Result(result) = &part.said else {
            has_more = true;
            continue;
        };
        json.try_object(|json| {
            json.say("role", "tool");
            json.say("tool_call_id", &result.id);
            json.key("content");
            let texts = result.parts.iter().filter(|part| is_text(part));
            content(call, message, texts, json)
        })?;
        let others = result.parts.iter().filter(|part| !is_text(part));
        shown.extend(others.map(|part| (message, part)));
    }
    if !has_more && !message.parts.is_empty() {
        return Ok(());
    }
    show(call, shown, json)?;
    json.try_object(|json| {
        json.say("role", "user");
        json.key("content");
        let others = message.parts.iter().filter(|part| !is_result(part));
        content(call, message, others, json)
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
        let spoken = message.parts.iter().filter(|part| {
            !part.said.is_thinking() && !matches!(part.said, Said::Call(_) | Said::Refusal(_))
        });
        json.key("content");
        if spoken.clone().next().is_none() {
            json.null();
        } else {
            content(call, message, spoken, json)?;
        }
        for part in &message.parts {
            if let Said::Refusal(text) = &part.said {
                json.say("refusal", text);
            }
        }
        if calls.is_empty() {
            return Ok(());
        }
        // Engines want to see again what led to a call; what led to a text that is said they take from the text.
        let thoughts = message.parts.iter().filter_map(|part| part.said.thought());
        let thoughts: String = thoughts.collect();
        if !thoughts.is_empty() {
            json.say("reasoning_content", &thoughts);
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
                    // Google's OpenAI endpoint gave it, and wants to see it again.
                    if let Some(signature) = call.signature.as_ref().and_then(|own| own.of(SPEAKS))
                    {
                        json.key("extra_content").object(|json| {
                            json.key("google")
                                .object(|json| json.say("thought_signature", signature));
                        });
                    }
                });
            }
        });
        Ok(())
    })
}

/// Content: one text where it is one text, else parts.
fn content<'p>(
    call: &Call<'_>,
    message: &Message<'_>,
    parts: impl Iterator<Item = &'p Part<'p>> + Clone,
    json: &mut Json,
) -> Result<()> {
    let mut ahead = parts.clone();
    match (ahead.next(), ahead.next()) {
        (None, _) => {
            json.text("");
            return Ok(());
        }
        (
            Some(Part {
                said: Said::Text(text),
                ..
            }),
            None,
        ) => {
            json.text(text);
            return Ok(());
        }
        _ => {}
    }
    json.try_list(|json| {
        for part in parts {
            self::part(call, message, part, json)?;
        }
        Ok(())
    })
}

fn part(call: &Call<'_>, message: &Message<'_>, part: &Part<'_>, json: &mut Json) -> Result<()> {
    match &part.said {
        Said::Text(text) => json.object(|json| {
            json.say("type", "text");
            json.say("text", text);
        }),
        Said::Refusal(text) => json.object(|json| {
            json.say("type", "refusal");
            json.say("refusal", text);
        }),
        Said::Image(media) => json.object(|json| {
            json.say("type", "image_url");
            json.key("image_url")
                .object(|json| json.say("url", &address(media)));
        }),
        Said::File(media @ Media::Data(..), name) => json.object(|json| {
            json.say("type", "file");
            json.key("file").object(|json| {
                json.say("filename", name.as_deref().unwrap_or("document"));
                json.say("file_data", &address(media));
            });
        }),
        Said::Audio(data, format) => json.object(|json| {
            json.say("type", "input_audio");
            json.key("input_audio").object(|json| {
                json.say("data", data);
                json.say("format", format);
            });
        }),
        Said::File(Media::Url(_), _) => {
            let says =
                "a document by its address has no counterpart at a backend that speaks openai";
            return Err(call.unsaid(message, part, says));
        }
        Said::Thinking { .. }
        | Said::Redacted(_)
        | Said::Of(..)
        | Said::Call(_)
        | Said::Result(_) => {
            let says = "cannot stand here for a backend that speaks openai";
            return Err(call.unsaid(message, part, says));
        }
    }
    Ok(())
}

pub(crate) fn address(media: &Media<'_>) -> String {
    match media {
        Media::Data(kind, data) => format!("data:{kind};base64,{data}"),
        Media::Url(url) => url.to_string(),
    }
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
            if tool.is_strict {
                json.key("strict").flag(true);
            }
        });
    });
}

fn tool_choice(choice: &ToolChoice<'_>, json: &mut Json) {
    match choice {
        ToolChoice::None => json.text("none"),
        ToolChoice::Auto => json.text("auto"),
        ToolChoice::Any => json.text("required"),
        ToolChoice::Named(name) => json.object(|json| {
            json.say("type", "function");
            json.key("function").object(|json| json.say("name", name));
        }),
    }
}

fn format(format: &Format<'_>, json: &mut Json) {
    json.object(|json| match format {
        Format::Json => json.say("type", "json_object"),
        Format::Schema {
            name,
            description,
            schema,
            is_strict,
        } => {
            json.say("type", "json_schema");
            json.key("json_schema").object(|json| {
                json.say("name", name.as_deref().unwrap_or("answer"));
                if let Some(description) = description {
                    json.say("description", description);
                }
                json.key("schema").raw(*schema);
                json.key("strict").flag(is_strict.unwrap_or(true));
            });
        }
    });
}
