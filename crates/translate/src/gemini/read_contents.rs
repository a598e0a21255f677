//! Reads the contents of a request: what a user and the model said, turn by turn.
//!
//! Clients of Google's keep each event of a stream as a content of its own, so that contents of the model that follow each other are
//! one turn, and texts in it that follow each other one text. Calls may have no ids, and results none: a call gets one by its place, and a
//! result without one answers the first call of its name that has no answer.
//! Invariant: what a turn becomes depends on it and those before it alone.

use std::borrow::Cow;

use super::members::{Members, items};
use super::sealed::{self, Opened};
use crate::call::{Left, Media, Message, Part, Role, Said, Signature, ToolCall, ToolResult};
use crate::calls::MADE;
use crate::fault::{Fault, Result};
use crate::raw::Raw;

/// A call whose answer is to come.
struct Open<'a> {
    id: Cow<'a, str>,
    name: Cow<'a, str>,
}

/// What is known of the calls so far.
#[derive(Default)]
struct History<'a> {
    open: Vec<Open<'a>>,
    /// How many there were.
    calls: usize,
}

pub(super) fn read<'a>(value: Raw<'a>, left: &Left, messages: &mut Vec<Message<'a>>) -> Result<()> {
    let mut history = History::default();
    for (nth, content) in items(value)?.into_iter().enumerate() {
        let read = self::content(nth, content, left, &mut history);
        let message = read.map_err(|fault| fault.item(nth))?;
        match messages.last_mut() {
            Some(last) if last.role == Role::Assistant && message.role == Role::Assistant => {
                message
                    .parts
                    .into_iter()
                    .for_each(|part| add(&mut last.parts, part));
            }
            _ => messages.push(message),
        }
    }
    Ok(())
}

fn content<'a>(
    nth: usize,
    value: Raw<'a>,
    left: &Left,
    history: &mut History<'a>,
) -> Result<Message<'a>> {
    let mut content = Members::of(value)?;
    let role = content.text("role")?;
    let role = match role.as_deref() {
        None | Some("user" | "function" | "") => Role::User,
        Some("model") => Role::Assistant,
        Some(other) => return Err(Fault::new(format!("{other:?} is no role")).within("role")),
    };
    let listed = content.read("parts", items)?.unwrap_or_default();
    let mut parts = Vec::with_capacity(listed.len());
    for (nth, part) in listed.into_iter().enumerate() {
        let read = self::part(nth, part, left, history);
        let read = read.map_err(|fault| fault.item(nth).within("parts"))?;
        match role {
            Role::Assistant => read.into_iter().for_each(|part| add(&mut parts, part)),
            _ => parts.extend(read),
        }
    }
    left.of_message(&content.into_object());
    Ok(Message { role, nth, parts })
}

/// Adds a part to what the model said in a turn.
fn add<'a>(parts: &mut Vec<Part<'a>>, part: Part<'a>) {
    match (parts.last_mut().map(|last| &mut last.said), &part.said) {
        (Some(Said::Text(text)), Said::Text(more)) => {
            text.to_mut().push_str(more);
        }
        (
            Some(Said::Thinking {
                text,
                signature: None,
            }),
            Said::Thinking {
                text: more,
                signature: None,
            },
        ) => text.to_mut().push_str(more),
        // What was sealed holds the words that came before it.
        (
            Some(Said::Thinking {
                signature: None, ..
            }),
            Said::Of(..),
        ) => {
            parts.pop();
            parts.push(part);
        }
        _ => parts.push(part),
    }
}

fn part<'a>(
    nth: usize,
    value: Raw<'a>,
    left: &Left,
    history: &mut History<'a>,
) -> Result<Vec<Part<'a>>> {
    let mut part = Members::of(value)?;
    let is_thought = part.flag("thought")?;
    let signature = part
        .text("thoughtSignature")?
        .filter(|text| !text.is_empty());
    let opened = signature.as_deref().and_then(sealed::open);
    // How closely to look.
    let _hint = part.take("mediaResolution")?;
    let mut said = Vec::new();
    if let Some(call) = part.read("functionCall", |call| self::call(call, left))? {
        let signature = match (opened, signature) {
            (Some(Opened::OfCall(signature)), _) => Some(signature),
            (Some(Opened::Said(thought)), _) => {
                said.push(thought);
                None
            }
            (None, signature) => signature.map(|text| Signature {
                by: Some(super::Place::Studio.as_str().into()),
                text,
            }),
        };
        said.push(Said::Call(history.called(call, signature)));
    } else if let Some(text) = part.text("text")? {
        match (opened, is_thought) {
            (Some(Opened::Said(thought)), _) => said.push(thought),
            (_, true) => said.push(Said::Thinking {
                text,
                signature: None,
            }),
            // It says nothing.
            (_, false) if text.is_empty() => {}
            (_, false) => said.push(Said::Text(text)),
        }
    } else if let Some(result) = part.read("functionResponse", |value| response(value, left))? {
        said.push(history.answered(result)?);
    } else if let Some(media) = part.read("inlineData", inline)? {
        said.push(media);
    } else if let Some(file) = part.read("fileData", file)? {
        said.push(file);
    } else if let Some((name, _)) = part.into_object().rest().next() {
        let says = "is a kind of part that a backend of another dialect has not";
        return Err(Fault::new(says).within(&name));
    } else {
        return Ok(Vec::new());
    }
    let rest = part.into_object();
    for member in ["videoMetadata", "video_metadata"] {
        if rest.look(member).is_some() {
            let says = "has no counterpart at a backend of another dialect";
            return Err(Fault::new(says).within(member));
        }
    }
    left.of_message(&rest);
    let parts = said.into_iter().map(|said| Part {
        nth: Some(nth),
        said,
        cache: None,
    });
    Ok(parts.collect())
}

/// A call as it is said: its id, name and arguments.
struct Called<'a>(Option<Cow<'a, str>>, Cow<'a, str>, &'a str);

fn call<'a>(value: Raw<'a>, left: &Left) -> Result<Called<'a>> {
    let mut call = Members::of(value)?;
    let id = call.text("id")?.filter(|id| !id.is_empty());
    let name = call.need("name", Raw::text)?;
    let args = call.read("args", |args| match args.is_object() {
        true => Ok(args.json()),
        false => Err(Fault::new("is no object")),
    })?;
    left.of_message(&call.into_object());
    Ok(Called(id, name, args.unwrap_or("{}")))
}

/// What a function gave, as it is said: its id, name and what it is.
struct Answered<'a>(Option<Cow<'a, str>>, Cow<'a, str>, bool, Vec<Part<'a>>);

fn response<'a>(value: Raw<'a>, left: &Left) -> Result<Answered<'a>> {
    let mut response = Members::of(value)?;
    let id = response.text("id")?.filter(|id| !id.is_empty());
    let name = response.need("name", Raw::text)?;
    let mut is_error = false;
    let text = response.need("response", |value| {
        let mut members: Vec<_> = value.object()?.all().collect();
        // One member of these names is what it gave, and without one all of it is (<https://ai.google.dev/api/caching#FunctionResponse>).
        let only = match &members[..] {
            [(name, _)] if name == "output" || name == "error" => members.pop(),
            _ => None,
        };
        is_error = only.as_ref().is_some_and(|(name, _)| name == "error");
        let said = only.map_or(value, |(_, said)| said);
        match said.is_text() {
            true => said.text(),
            false => Ok(said.json().into()),
        }
    })?;
    let mut parts = vec![Part::of(Said::Text(text))];
    response.read("parts", |list| {
        for (nth, part) in items(list)?.into_iter().enumerate() {
            let read = || {
                let mut part = Members::of(part)?;
                let said = match part.read("inlineData", inline)? {
                    Some(said) => said,
                    None => part.need("fileData", file)?,
                };
                part.nothing_more()?;
                Ok(said)
            };
            let said: Result<Said<'a>> = read();
            parts.push(Part::of(said.map_err(|fault| fault.item(nth))?));
        }
        Ok(())
    })?;
    left.of_message(&response.into_object());
    Ok(Answered(id, name, is_error, parts))
}

impl<'a> History<'a> {
    fn called(
        &mut self,
        Called(id, name, arguments): Called<'a>,
        signature: Option<Signature<'a>>,
    ) -> ToolCall<'a> {
        let nth = self.calls;
        self.calls += 1;
        let id = id.unwrap_or_else(|| format!("{MADE}history_{nth}").into());
        self.open.push(Open {
            id: id.clone(),
            name: name.clone(),
        });
        ToolCall {
            id,
            name,
            arguments: arguments.into(),
            signature,
        }
    }

    fn answered(&mut self, Answered(id, name, is_error, parts): Answered<'a>) -> Result<Said<'a>> {
        let by_id = id.and_then(|id| self.open.iter().position(|open| open.id == id));
        let found = by_id.or_else(|| self.open.iter().position(|open| open.name == name));
        let Some(at) = found else {
            let says =
                format!("answers a call of {name:?}, and none before it waits for an answer");
            return Err(Fault::new(says).within("functionResponse"));
        };
        let id = self.open.remove(at).id;
        Ok(Said::Result(ToolResult {
            id,
            is_error,
            parts,
        }))
    }
}

fn inline(value: Raw<'_>) -> Result<Said<'_>> {
    let mut blob = Members::of(value)?;
    let kind = blob.need("mimeType", Raw::text)?;
    let data = sealed::plain(blob.need("data", Raw::text)?);
    let name = blob.text("displayName")?;
    let (of, form) = kind.split_once('/').unwrap_or((&kind, ""));
    Ok(match of {
        "image" => Said::Image(Media::Data(kind, data)),
        "audio" => {
            let form = match form {
                "mpeg" | "mp3" | "mpga" => "mp3",
                "wav" | "x-wav" | "wave" => "wav",
                other => other,
            };
            Said::Audio(data, form.to_owned().into())
        }
        "video" => {
            let says = "a film has no counterpart at a backend of another dialect";
            return Err(Fault::new(says));
        }
        _ => Said::File(Media::Data(kind, data), name),
    })
}

fn file(value: Raw<'_>) -> Result<Said<'_>> {
    let mut file = Members::of(value)?;
    let uri = file.need("fileUri", Raw::text)?;
    let kind = file.text("mimeType")?.unwrap_or_default();
    let name = file.text("displayName")?;
    let is_of_google = uri.starts_with("gs://")
        || uri.starts_with("files/")
        || uri.contains("://generativelanguage.googleapis.com/");
    if is_of_google {
        let says = "a file of the provider's own, which another provider does not have";
        return Err(Fault::new(says).within("fileUri"));
    }
    match kind.split('/').next() {
        Some("image") => Ok(Said::Image(Media::Url(uri))),
        Some("audio" | "video") => {
            let says =
                "sound or a film by its address has no counterpart at a backend of another dialect";
            Err(Fault::new(says).within("fileUri"))
        }
        _ => Ok(Said::File(Media::Url(uri), name)),
    }
}
