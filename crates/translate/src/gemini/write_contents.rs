//! Writes the contents of a request: what a user and the model said, turn by turn.
//!
//! A model's turn that called functions is followed by one turn with what each gave, in the order of the calls: where ids are not
//! said, that order alone tells which is which. What stands beside them in the client's message comes after them.
//! Invariant: what a turn becomes depends on it and those before it alone, so that the same history has the same bytes at its front.
//! A signature stands where the provider put it, and nowhere else.

use std::collections::HashMap;

use super::Place;
use crate::call::{Call, Media, Message, Part, Role, Said, ToolCall, ToolResult};
use crate::calls::MADE;
use crate::fault::Result;
use crate::json::Json;
use crate::raw::Raw;

/// The calls of a history: the name of each, and its place among all.
type Calls<'p> = HashMap<&'p str, (&'p str, usize)>;

/// One turn: its role, and its parts with the messages that they are of.
struct Turn<'p> {
    role: Role,
    results: Vec<(usize, &'p Message<'p>, &'p Part<'p>)>,
    others: Vec<(&'p Message<'p>, &'p Part<'p>)>,
}

pub(super) fn write(call: &mut Call<'_>, place: Place, json: &mut Json) -> Result<()> {
    let mut parts = call.messages.iter().flat_map(|message| &message.parts);
    let has_names = parts.any(|part| matches!(part.said, Said::File(_, Some(_))));
    if has_names {
        call.dropped.push("filename");
    }
    let call = &*call;
    let mut calls = Calls::new();
    let mut count = 0;
    for mut turn in turns(call, place) {
        for (_, part) in &turn.others {
            if let Said::Call(tool) = &part.said {
                calls.insert(&tool.id, (&tool.name, count));
                count += 1;
            }
        }
        for (at, message, part) in &mut turn.results {
            let Said::Result(result) = &part.said else {
                continue;
            };
            let Some((_, of)) = calls.get(&*result.id) else {
                let says = format!("answers {:?}, and no call before it has that id", result.id);
                return Err(call.unsaid(message, part, &says));
            };
            *at = *of;
        }
        turn.results.sort_by_key(|(at, ..)| *at);
        json.try_object(|json| {
            let is_user = turn.role == Role::User;
            json.say("role", if is_user { "user" } else { "model" });
            json.key("parts").try_list(|json| {
                for (_, message, part) in &turn.results {
                    self::part(call, message, part, &calls, place, json)?;
                }
                for (message, part) in &turn.others {
                    self::part(call, message, part, &calls, place, json)?;
                }
                Ok(())
            })
        })?;
    }
    Ok(())
}

/// The turns that say something. Messages of one role that follow each other are one.
fn turns<'p>(call: &'p Call<'p>, place: Place) -> Vec<Turn<'p>> {
    let mut turns: Vec<Turn<'p>> = Vec::new();
    let spoken = call
        .messages
        .iter()
        .filter(|message| message.role != Role::System);
    for message in spoken {
        let said = message.parts.iter();
        for part in said.filter(|part| is_said(&part.said, place)) {
            let fresh = Turn {
                role: message.role,
                results: Vec::new(),
                others: Vec::new(),
            };
            if turns.last().is_none_or(|last| last.role != message.role) {
                turns.push(fresh);
            }
            let Some(turn) = turns.last_mut() else {
                continue;
            };
            match part.said {
                Said::Result(_) => turn.results.push((0, message, part)),
                _ => turn.others.push((message, part)),
            }
        }
    }
    turns
}

/// Whether the API is told of it. It refuses texts of nothing, and thoughts are told again for their signature alone.
fn is_said(said: &Said<'_>, place: Place) -> bool {
    match said {
        Said::Text(text) | Said::Refusal(text) => !text.is_empty(),
        Said::Thinking { .. } | Said::Redacted(_) => false,
        Said::Of(by, said) => by == place.as_str() && matches!(**said, Said::Thinking { .. }),
        _ => true,
    }
}

fn part(
    call: &Call<'_>,
    message: &Message<'_>,
    part: &Part<'_>,
    calls: &Calls<'_>,
    place: Place,
    json: &mut Json,
) -> Result<()> {
    let unsaid = |says: &str| call.unsaid(message, part, says);
    json.try_object(|json| match &part.said {
        Said::Text(text) | Said::Refusal(text) => {
            json.say("text", text);
            Ok(())
        }
        Said::Image(media) | Said::File(media, _) => {
            self::media(media, place, json).map_err(|says| unsaid(&says))
        }
        Said::Audio(data, format) => {
            inline(&format!("audio/{format}"), data, json);
            Ok(())
        }
        Said::Call(tool) => function_call(tool, place, json).map_err(|says| unsaid(&says)),
        Said::Result(result) => {
            let name = calls.get(&*result.id).map_or("", |(name, _)| name);
            function_response(name, result, place, json).map_err(|says| unsaid(&says))
        }
        Said::Of(_, said) => {
            signed(said, json);
            Ok(())
        }
        Said::Thinking { .. } | Said::Redacted(_) => Ok(()),
    })
}

/// A part that was signed: what was thought, or the last part of what was said, which is often one of no text.
fn signed(said: &Said<'_>, json: &mut Json) {
    if let Said::Thinking { text, signature } = said {
        json.say("text", text);
        if !text.is_empty() {
            json.key("thought").flag(true);
        }
        if let Some(signature) = signature {
            json.say("thoughtSignature", signature);
        }
    }
}

/// The id that the provider is told: one that it gave, or another provider.
fn id(id: &str, place: Place) -> Option<&str> {
    let is_told = place == Place::Studio && !id.starts_with(MADE);
    is_told.then_some(id)
}

fn function_call(
    tool: &ToolCall<'_>,
    place: Place,
    json: &mut Json,
) -> std::result::Result<(), String> {
    let args = Raw::read_arguments(&tool.arguments);
    let args = args.ok_or_else(|| {
        format!(
            "the arguments of the call {:?} are no JSON object, or one of more than 128 levels",
            tool.id
        )
    })?;
    json.key("functionCall").object(|json| {
        if let Some(id) = id(&tool.id, place) {
            json.say("id", id);
        }
        json.say("name", &tool.name);
        json.key("args").raw(args);
    });
    let signature = tool.signature.as_ref();
    if let Some(signature) = signature.and_then(|own| own.of(place.as_str())) {
        json.say("thoughtSignature", signature);
    }
    Ok(())
}

/// What a function gave: texts as texts, whatever they look like, so that nothing in them is read as a reference.
fn function_response(
    name: &str,
    result: &ToolResult<'_>,
    place: Place,
    json: &mut Json,
) -> std::result::Result<(), String> {
    let texts = result.parts.iter().filter_map(|part| match &part.said {
        Said::Text(text) | Said::Refusal(text) => Some(&**text),
        _ => None,
    });
    let texts: Vec<&str> = texts.collect();
    let is_text = |part: &&Part<'_>| !matches!(part.said, Said::Text(_) | Said::Refusal(_));
    let others: Vec<&Part<'_>> = result.parts.iter().filter(is_text).collect();
    json.key("functionResponse").try_object(|json| {
        if let Some(id) = id(&result.id, place) {
            json.say("id", id);
        }
        json.say("name", name);
        json.key("response").object(|json| {
            json.key(if result.is_error { "error" } else { "output" });
            match texts[..] {
                [] => json.text(""),
                [text] => json.text(text),
                _ => json.list(|json| texts.iter().for_each(|text| json.text(text))),
            }
        });
        if others.is_empty() {
            return Ok(());
        }
        json.key("parts").try_list(|json| {
            for part in others {
                json.try_object(|json| match &part.said {
                    Said::Image(media @ Media::Data(..)) | Said::File(media @ Media::Data(..), _) => {
                        self::media(media, place, json)
                    }
                    _ => {
                        let speaks = place.as_str();
                        Err(format!("what a tool gives a backend that speaks {speaks} is text, images and documents, by their bytes"))
                    }
                })?;
            }
            Ok(())
        })
    })
}

fn inline(kind: &str, data: &str, json: &mut Json) {
    json.key("inlineData").object(|json| {
        json.say("mimeType", kind);
        json.say("data", data);
    });
}

fn media(media: &Media<'_>, place: Place, json: &mut Json) -> std::result::Result<(), String> {
    let url = match media {
        Media::Data(kind, data) => {
            inline(kind, data, json);
            return Ok(());
        }
        Media::Url(url) => url,
    };
    let kind = kind_of(url);
    if kind.is_none() && place == Place::Vertex {
        return Err(
            "its address does not end with the type of a file, and Vertex AI wants it told"
                .to_owned(),
        );
    }
    json.key("fileData").object(|json| {
        if let Some(kind) = kind {
            json.say("mimeType", kind);
        }
        json.say("fileUri", url);
    });
    Ok(())
}

/// The type of a file, by the end of its address.
fn kind_of(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    let (_, end) = path.rsplit_once('/')?.1.rsplit_once('.')?;
    Some(match &*end.to_ascii_lowercase() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "heic" => "image/heic",
        "heif" => "image/heif",
        "pdf" => "application/pdf",
        "txt" => "text/plain",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "json" => "application/json",
        _ => return None,
    })
}
