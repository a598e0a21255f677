//! What a server says in answer to a request: its answer, and on a stream before that notifications and requests of its own.
//!
//! A server's own request is shown to the client under an id that says whose it is, so that its answer finds the way back.
//! Invariant: an answer to anything but the request it was asked is given to nobody.
//! Not here: the stream's events (`wire::sse`), how long it may take (the host).

use std::borrow::Cow;
use std::ops::Range;

use wire::json::Kind;

use crate::envelope::{Fault, Message, Says, Value, is_same_id, members, text_of};
use crate::listen::OF_TASK;
use crate::modern::Level;
use crate::{name, reply};

/// Longest `requestState`, as its server gives it.
pub const STATE_BYTES_MAX: usize = 1 << 20;

/// One message of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said<'a> {
    /// The answer; nothing of it follows.
    Answer(Cow<'a, [u8]>),
    /// Something before that. `is_list_changed`: what it offers is another now.
    Before {
        /// As the client is told it.
        text: Cow<'a, [u8]>,
        /// Lists that are kept of it are out of date.
        is_list_changed: bool,
        /// It tells of a change of this resource, by the server's own URI.
        updated: Option<Box<str>>,
        /// It is a request, and a notification otherwise.
        asks: Option<Asks>,
        /// It is a log message: of this level, where it says one.
        log: Option<Option<Level>>,
        /// It tells of a task, by the server's own id: who listens to that hears it, and nobody else.
        is_of_task: bool,
    },
}

/// A request of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asks {
    /// Its id, as the server wrote it.
    pub id: Box<[u8]>,
    /// It only asks whether anybody is there.
    pub is_ping: bool,
}

/// Why a server's message goes to nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is no message.
    #[error("the server's answer is not a JSON-RPC message")]
    NoMessage,
    /// It answers something else.
    #[error("the server answered something that it was not asked")]
    OtherId,
    /// It wants to hear again more than is kept or sealed.
    #[error("the server's `requestState` is longer than {} bytes", STATE_BYTES_MAX)]
    LongState,
    /// It is a task, and who asked can ask no more about it.
    #[error(
        "the server answered with a task, and the request's client does not say that it knows tasks"
    )]
    Task,
}

impl From<Fault> for Unusable {
    fn from(_: Fault) -> Self {
        Self::NoMessage
    }
}

/// Reads what the server of this name says in answer to the request with this id.
///
/// # Errors
/// [`Unusable`].
pub fn said<'a>(text: &'a [u8], speaker: Speaker<'_>, asked: &[u8]) -> Result<Said<'a>, Unusable> {
    let message = Message::read(text)?;
    match message.says {
        Says::Response { id, .. } if is_same_id(id, asked) => Ok(Said::Answer(Cow::Borrowed(text))),
        // It could not read which request it was.
        Says::Response { id, at, result } if id == b"null" && result.is_none() => {
            Ok(Said::Answer(Cow::Owned(reply::spliced(text, at, asked))))
        }
        Says::Response { .. } => Err(Unusable::OtherId),
        Says::Notification { .. } | Says::Request { .. } => before(text, message, speaker),
    }
}

/// The same of what a server says outside calls: there it answers nobody. Clients settle their requests by ids that are mostly counters,
/// so that an answer here would settle one that another server was asked.
///
/// # Errors
/// [`Unusable`].
pub fn told<'a>(text: &'a [u8], speaker: Speaker<'_>) -> Result<Said<'a>, Unusable> {
    let message = Message::read(text)?;
    match message.says {
        Says::Response { .. } => Err(Unusable::OtherId),
        Says::Notification { .. } | Says::Request { .. } => before(text, message, speaker),
    }
}

/// Who says something, and how its things are shown.
#[derive(Debug, Clone, Copy)]
pub struct Speaker<'s> {
    /// The server's name.
    pub name: &'s str,
    /// Its URIs begin with that.
    pub is_prefixed: bool,
}

/// What a server says by itself: whatever names a request or a thing of its own names it as the client knows it.
fn before<'a>(
    text: &'a [u8],
    message: Message<'_>,
    speaker: Speaker<'_>,
) -> Result<Said<'a>, Unusable> {
    let params = message.params;
    let mut said = Cow::Borrowed(text);
    let (mut is_list_changed, mut is_of_task) = (false, false);
    let (mut updated, mut asks, mut log) = (None, None, None);
    let member = |path: &[&'static str]| member_of(text, params.clone(), path);
    let shown = |raw: &[u8]| {
        let shown = name::shown_id(speaker.name, raw).ok_or(Unusable::NoMessage)?;
        Ok::<_, Unusable>(reply::string(&shown))
    };
    match message.says {
        Says::Request { id, at, method } => {
            asks = Some(Asks {
                id: id.into(),
                is_ping: method == "ping",
            });
            // The later of the two first, so that the places of the other stay.
            let token = member(&["_meta", "progressToken"])?;
            let mut edits = vec![(at, shown(id)?)];
            if let Some((Kind::String | Kind::Number, raw, at)) = token {
                edits.push((at, shown(raw)?));
            }
            edits.sort_by_key(|(at, _)| std::cmp::Reverse(at.start));
            for (at, with) in edits {
                said = Cow::Owned(reply::spliced(&said, at, &with));
            }
        }
        Says::Notification { method } => match &*method {
            "notifications/cancelled" => {
                if let Some((_, raw, at)) = member(&["requestId"])? {
                    said = Cow::Owned(reply::spliced(text, at, &shown(raw)?));
                }
            }
            "notifications/resources/updated" => {
                let Some(value) = member(&["uri"])? else {
                    return Err(Unusable::NoMessage);
                };
                let own = text_of(&value).ok_or(Unusable::NoMessage)?;
                if speaker.is_prefixed {
                    let shown = reply::string(&name::shown_uri(speaker.name, &own));
                    said = Cow::Owned(reply::spliced(text, value.2, &shown));
                }
                updated = Some(own.into());
            }
            "notifications/message" => {
                let level = member(&["level"])?;
                let level = level.as_ref().and_then(text_of);
                log = Some(level.and_then(|level| Level::of(&level)));
            }
            OF_TASK => is_of_task = true,
            method => is_list_changed = method.ends_with("/list_changed"),
        },
        Says::Response { .. } => return Err(Unusable::OtherId),
    }
    Ok(Said::Before {
        text: said,
        is_list_changed,
        updated,
        asks,
        log,
        is_of_task,
    })
}

/// A value within an object of objects.
fn member_of<'a>(
    text: &'a [u8],
    within: Option<Range<usize>>,
    path: &[&'static str],
) -> Result<Option<Value<'a>>, Fault> {
    let Some(mut within) = within else {
        return Ok(None);
    };
    let mut found = None;
    for name in path {
        let inside = text.get(within.clone()).unwrap_or_default();
        let [value] = members(inside, [name], within.start)?;
        let Some(value) = value else { return Ok(None) };
        within = value.2.clone();
        found = Some(value);
    }
    Ok(found)
}

/// The server whose request a client tells the progress of, and the message as that server knows it; `None` where it is of none.
#[must_use]
pub fn progress_to(text: &[u8]) -> Option<(String, Vec<u8>)> {
    let message = Message::read(text).ok()?;
    let token = member_of(text, message.params, &["progressToken"]).ok()??;
    let shown = text_of(&token)?;
    let (server, own) = name::split_id(&shown)?;
    is_id(own).then(|| {
        (
            server.to_owned(),
            reply::spliced(text, token.2, own.as_bytes()),
        )
    })
}

/// The server that a client's answer is for, and the answer as that server knows it; `None` where it is for nobody.
#[must_use]
pub fn answer_to(text: &[u8]) -> Option<(String, Vec<u8>)> {
    let message = Message::read(text).ok()?;
    let Says::Response { id, at, .. } = message.says else {
        return None;
    };
    let shown = id.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let shown = wire::json::unescape(shown)?;
    let (server, own) = name::split_id(&shown)?;
    is_id(own).then(|| (server.to_owned(), reply::spliced(text, at, own.as_bytes())))
}

/// Whether it is an id as JSON has it: what is none would be written into a message as it is.
fn is_id(own: &str) -> bool {
    let asked = [
        br#"{"jsonrpc":"2.0","method":"m","id":"#.as_slice(),
        own.as_bytes(),
        b"}",
    ]
    .concat();
    let asked = Message::read(&asked);
    asked
        .is_ok_and(|asked| matches!(&asked.says, Says::Request { id, .. } if *id == own.as_bytes()))
}

/// Writes a message as an event of a stream, with its id where it has one.
pub fn write_event(message: &[u8], id: Option<&str>, out: &mut Vec<u8>) {
    write_id(id, out);
    out.extend_from_slice(b"event: message\n");
    for line in message.split(|byte| matches!(byte, b'\n' | b'\r')) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.push(b'\n');
}

/// Writes an event that says nothing but where a stream is taken up again, and when.
pub fn write_place(id: Option<&str>, retry_ms: Option<u32>, out: &mut Vec<u8>) {
    write_id(id, out);
    if let Some(retry) = retry_ms {
        out.extend_from_slice(format!("retry: {retry}\n").as_bytes());
    }
    out.extend_from_slice(b"data:\n\n");
}

fn write_id(id: Option<&str>, out: &mut Vec<u8>) {
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests;
