//! Writes a request of `generateContent`.
//!
//! System messages stand before all others, wherever the client said them: the API has one place for them.
//! Schemas are said as they are, as JSON Schema (`parametersJsonSchema`, `responseJsonSchema`): the API's older form of them knows
//! neither references nor unions.
//! Not here: what is said in a conversation (`write_contents`), how hard it shall think (`thinking`).

use wire::filter::Request;

use super::{Place, thinking, write_contents};
use crate::call::{Call, Format, Role, Said, Tool, ToolChoice};
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::raw::Raw;

/// Members that the API has under another name, and that not all dialects have.
const RENAMED: [(&str, &str); 3] = [
    ("seed", "seed"),
    ("presence_penalty", "presencePenalty"),
    ("frequency_penalty", "frequencyPenalty"),
];

/// What Google's own endpoint for OpenAI's SDK has besides.
const EXTRA: &str = "extra_body";

/// Writes the request that says this call.
pub(crate) fn write(mut call: Call<'_>, place: Place, request: &mut Request) -> Result<()> {
    let mut renamed: Vec<(&'static str, Raw<'_>)> = Vec::new();
    for (name, ours) in RENAMED {
        if let Some(at) = call.others.iter().position(|other| other.name == name) {
            let value = call.others.remove(at).value;
            renamed.push((ours, value.number().map_err(|fault| fault.within(name))?));
        }
    }
    if let Some(at) = call.others.iter().position(|other| other.name == EXTRA) {
        let extra = call.others.remove(at).value;
        thinking::read_extra(extra, &mut call).map_err(|fault| fault.within(EXTRA))?;
    }
    call.leave_others(place.as_str())?;
    if call.user.is_some() {
        call.dropped.push("user");
    }
    if call.parallel_calls == Some(false)
        && !call.tools.is_empty()
        && call.tool_choice != Some(ToolChoice::None)
    {
        let speaks = place.as_str();
        let says =
            format!("a backend that speaks {speaks} calls several tools at once if it likes");
        return Err(Fault::new(says).within(call.names.parallel));
    }
    let mut json = Json::with_capacity(call.room());
    json.try_object(|json| {
        if has_system(&call) {
            json.key("systemInstruction").try_object(|json| {
                json.key("parts")
                    .try_list(|json| system(&call, place, json))
            })?;
        }
        if !call.tools.is_empty() {
            json.key("tools").list(|json| {
                json.object(|json| {
                    json.key("functionDeclarations")
                        .list(|json| call.tools.iter().for_each(|tool| self::tool(tool, json)));
                });
            });
            tool_choice(&call, json);
        }
        json.key("contents")
            .try_list(|json| write_contents::write(&mut call, place, json))?;
        generation(&mut call, &renamed, json)
    })?;
    let verb = match call.is_streamed {
        true => "streamGenerateContent",
        false => "generateContent",
    };
    request.path = Some(place.path(&call.model, verb).into());
    request.query = call.is_streamed.then(|| super::EVENTS.to_owned());
    request.dropped = call.dropped;
    request.body = vec![json.into_bytes().into()];
    Ok(())
}

fn has_system(call: &Call<'_>) -> bool {
    let is_said = |said: &Said<'_>| !matches!(said, Said::Text(text) if text.is_empty());
    let mut system = call
        .messages
        .iter()
        .filter(|message| message.role == Role::System);
    system.any(|message| message.parts.iter().any(|part| is_said(&part.said)))
}

fn system(call: &Call<'_>, place: Place, json: &mut Json) -> Result<()> {
    let system = call
        .messages
        .iter()
        .filter(|message| message.role == Role::System);
    for message in system {
        for part in &message.parts {
            match &part.said {
                Said::Text(text) if text.is_empty() => {}
                Said::Text(text) => json.object(|json| json.say("text", text)),
                _ => {
                    let speaks = place.as_str();
                    let says =
                        format!("a system message of a backend that speaks {speaks} is text");
                    return Err(call.unsaid(message, part, &says));
                }
            }
        }
    }
    Ok(())
}

fn tool(tool: &Tool<'_>, json: &mut Json) {
    json.object(|json| {
        json.say("name", &tool.name);
        if let Some(description) = &tool.description {
            json.say("description", description);
        }
        if let Some(schema) = tool.schema {
            json.key("parametersJsonSchema").raw(schema);
        }
    });
}

/// Of a call that must be made the arguments follow their schema; of one that may be made they do where that is asked for.
fn tool_choice(call: &Call<'_>, json: &mut Json) {
    let is_strict = call.tools.iter().any(|tool| tool.is_strict);
    let mode = match &call.tool_choice {
        None | Some(ToolChoice::Auto) if is_strict => "VALIDATED",
        None => return,
        Some(ToolChoice::Auto) => "AUTO",
        Some(ToolChoice::None) => "NONE",
        Some(ToolChoice::Any | ToolChoice::Named(_)) => "ANY",
    };
    json.key("toolConfig").object(|json| {
        json.key("functionCallingConfig").object(|json| {
            json.say("mode", mode);
            if let Some(ToolChoice::Named(name)) = &call.tool_choice {
                json.key("allowedFunctionNames")
                    .list(|json| json.text(name));
            }
        });
    });
}

fn generation(
    call: &mut Call<'_>,
    renamed: &[(&'static str, Raw<'_>)],
    json: &mut Json,
) -> Result<()> {
    let mut config = Json::default();
    config.try_object(|json| {
        let numbers = [
            ("maxOutputTokens", call.max_tokens),
            ("temperature", call.temperature),
            ("topP", call.top_p),
            ("topK", call.top_k),
        ];
        let numbers = numbers
            .into_iter()
            .filter_map(|(name, number)| Some((name, number?)));
        for (name, number) in numbers.chain(renamed.iter().copied()) {
            json.key(name).raw(number);
        }
        if !call.stops.is_empty() {
            json.key("stopSequences")
                .list(|json| call.stops.iter().for_each(|stop| json.text(stop)));
        }
        if let Some(format) = &call.format {
            json.say("responseMimeType", "application/json");
            if let Format::Schema { schema, .. } = format {
                json.key("responseJsonSchema").raw(*schema);
            }
        }
        thinking::write(call, json)
    })?;
    let config = config.into_bytes();
    if let Some(config) = Raw::read(&config).filter(|config| config.json() != "{}") {
        json.key("generationConfig").raw(config);
    }
    Ok(())
}
