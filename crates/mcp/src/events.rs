//! What a server says in answer to a request: its answer, and on a stream before that notifications and requests of its own.
//!
//! A server's own request is shown to the client under an id that says whose it is, so that its answer finds the way back.
//! Invariant: an answer to anything but the request it was asked is given to nobody.
//! Not here: the stream's events (`wire::sse`), how long it may take (the host).

use std::borrow::Cow;

use crate::envelope::{Fault, Message, Says, is_same_id};
use crate::{name, reply};

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
    },
}

/// Why a server's message goes to nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is no message.
    #[error("the server's answer is no message of JSON-RPC")]
    NoMessage,
    /// It answers something else.
    #[error("the server answered something that it was not asked")]
    OtherId,
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
pub fn said<'a>(text: &'a [u8], server: &str, asked: &[u8]) -> Result<Said<'a>, Unusable> {
    let before = |text| Said::Before {
        text,
        is_list_changed: false,
    };
    match Message::read(text)?.says {
        Says::Response { id, .. } if is_same_id(id, asked) => Ok(Said::Answer(Cow::Borrowed(text))),
        // It could not read which request it was.
        Says::Response { id, at, result } if id == b"null" && result.is_none() => {
            Ok(Said::Answer(Cow::Owned(reply::spliced(text, at, asked))))
        }
        Says::Response { .. } => Err(Unusable::OtherId),
        Says::Notification { method } => Ok(Said::Before {
            text: Cow::Borrowed(text),
            is_list_changed: method.ends_with("/list_changed"),
        }),
        Says::Request { id, at, .. } => {
            let shown = name::shown_id(server, id).ok_or(Unusable::NoMessage)?;
            Ok(before(Cow::Owned(reply::spliced(
                text,
                at,
                &reply::string(&shown),
            ))))
        }
    }
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
    // An id that is none would be written into the message as it is.
    let asked = [
        br#"{"jsonrpc":"2.0","method":"m","id":"#.as_slice(),
        own.as_bytes(),
        b"}",
    ]
    .concat();
    let asked = Message::read(&asked).ok()?;
    let is_id = matches!(&asked.says, Says::Request { id, .. } if *id == own.as_bytes());
    is_id.then(|| (server.to_owned(), reply::spliced(text, at, own.as_bytes())))
}

/// Writes a message as an event of a stream.
pub fn write_event(message: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: message\n");
    for line in message.split(|byte| matches!(byte, b'\n' | b'\r')) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests;
