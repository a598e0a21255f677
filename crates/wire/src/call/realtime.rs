//! Events of the Realtime API: what a client asks for over its WebSocket, and what a server tells of the answers that it makes.
//!
//! Invariant: an event passes byte for byte but for the model's name and the event's id, where the gate has to say them; a member that
//! counts here and stands twice makes it none.
//! Not here: frames (`websocket`), which events are served and what they hold (`policy`, `proxy`), what a usage object means (`usage`).

use std::ops::Range;

use bytes::Bytes;

use super::stored::Stored;
use crate::dialect::{Operation, model_name};
use crate::json::{self, Found, Interest, Interests, Kind, Member, Repeat, Want};
use crate::usage::{self, Reading, USAGE_LIMIT_BYTES};

const NAME_BYTES: usize = 96;
/// Each letter of a name may be escaped.
const MODEL_BYTES: usize = 6 * 256;
const ID_BYTES: usize = 512;
const NUMBER_BYTES: usize = 32;

static ASKED: Interests = Interests::new(&[
    Interest::new("type", Want::Raw(NAME_BYTES), Repeat::Refuse),
    Interest::new("event_id", Want::Raw(ID_BYTES), Repeat::Refuse),
    Interest::new("session", Want::Place, Repeat::Refuse),
    Interest::new("session.model", Want::Raw(MODEL_BYTES), Repeat::Refuse),
    Interest::new("session.audio", Want::Place, Repeat::Refuse),
    Interest::new(
        "session.input_audio_transcription",
        Want::Place,
        Repeat::Refuse,
    ),
    Interest::new(
        "session.max_output_tokens",
        Want::Raw(NUMBER_BYTES),
        Repeat::Refuse,
    ),
    Interest::new(
        "session.max_response_output_tokens",
        Want::Raw(NUMBER_BYTES),
        Repeat::Refuse,
    ),
    Interest::new("response", Want::Place, Repeat::Refuse),
    Interest::new("response.model", Want::Raw(MODEL_BYTES), Repeat::Refuse),
    Interest::new(
        "response.max_output_tokens",
        Want::Raw(NUMBER_BYTES),
        Repeat::Refuse,
    ),
    Interest::new(
        "response.conversation",
        Want::Raw(NAME_BYTES),
        Repeat::Refuse,
    ),
    Interest::new("response.input", Want::Place, Repeat::Refuse),
]);

static OF_AUDIO: Interests = Interests::new(&[
    Interest::new("input", Want::Place, Repeat::Refuse),
    Interest::new("input.transcription", Want::Place, Repeat::Refuse),
]);

static OF_TRANSCRIPTION: Interests = Interests::new(&[Interest::new(
    "model",
    Want::Raw(MODEL_BYTES),
    Repeat::Refuse,
)]);

/// Why an event is none that can be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoEvent {
    /// It is no object with one `type`, or a member that counts stands twice.
    Unread,
    /// A model's name is none.
    Model,
    /// A cap is no whole number as it is usually written.
    Cap,
}

/// The most output that an event allows its answers. Of several the greatest counts: servers differ in which one they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cap {
    /// So many tokens.
    Tokens(u64),
    /// Any number.
    Open,
}

/// An event of a client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealtimeAsked {
    /// Its name, such as `response.create`.
    pub name: Box<str>,
    /// The client's name for it.
    pub id: Option<Box<str>>,
    /// The model of the session, or of one answer.
    pub model: Option<Box<str>>,
    /// The model that is to write down what is said.
    pub transcription: Option<Box<str>>,
    /// What it says of the length of answers.
    pub cap: Option<Cap>,
    /// It asks for an answer that is no part of the conversation, or to something else than that.
    pub is_apart: bool,
    model_at: Option<Range<usize>>,
    id_at: Option<Range<usize>>,
    open: usize,
    is_empty: bool,
}

impl RealtimeAsked {
    /// Reads one.
    ///
    /// # Errors
    /// It is none that can be judged.
    pub fn read(text: &[u8]) -> Result<Self, NoEvent> {
        let mut scanner = json::Scanner::new(&ASKED);
        scanner.push(text).map_err(|_| NoEvent::Unread)?;
        let found = scanner.finish().map_err(|_| NoEvent::Unread)?;
        let name = found.member(0).filter(|name| name.kind == Kind::String);
        let name = name.and_then(|name| found.text(name));
        let said = |at| found.member(at).filter(|m: &&Member| m.kind != Kind::Null);
        let (session, response) = (said(3), said(9));
        let model = model_of(found, session.or(response))?;
        if session.is_some() && response.is_some() {
            return Err(NoEvent::Unread);
        }
        let id = said(1).filter(|id| id.kind == Kind::String);
        let mut caps = [None; 3];
        for (cap, at) in caps.iter_mut().zip([6, 7, 10]) {
            *cap = said(at).map(|member| cap_of(found, member)).transpose()?;
        }
        let cap = caps.into_iter().flatten().max();
        Ok(Self {
            name: name.ok_or(NoEvent::Unread)?.into(),
            id: id.and_then(|id| found.text(id)).map(|id| id.into()),
            model,
            transcription: transcription(text, said(4), said(5))?,
            cap,
            is_apart: said(12).is_some()
                || said(11).is_some_and(|of| found.text(of).as_deref() != Some("auto")),
            model_at: session.or(response).map(|model| model.value.clone()),
            id_at: found.member(1).map(|id| id.value.clone()),
            open: found.open.ok_or(NoEvent::Unread)?,
            is_empty: found.empty,
        })
    }

    /// The event with another name of the same model, or with an id, where they are given.
    #[must_use]
    pub fn edited(&self, text: &[u8], model: Option<&str>, id: Option<&str>) -> Vec<u8> {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        if let (Some(model), Some(at)) = (model, &self.model_at) {
            edits.push((at.clone(), quoted(model)));
        }
        if let Some(id) = id {
            edits.push(match &self.id_at {
                Some(at) => (at.clone(), quoted(id)),
                None => {
                    let comma = if self.is_empty { "" } else { "," };
                    let member = format!("\"event_id\":{}{comma}", quoted(id));
                    (self.open..self.open, member)
                }
            });
        }
        edits.sort_by_key(|(at, _)| at.start);
        let (mut out, mut done) = (Vec::with_capacity(text.len() + 64), 0);
        for (at, put) in edits {
            out.extend_from_slice(text.get(done..at.start).unwrap_or_default());
            out.extend_from_slice(put.as_bytes());
            done = at.end;
        }
        out.extend_from_slice(text.get(done..).unwrap_or_default());
        out
    }
}

/// The first member of an event that names what the provider keeps for its account.
#[must_use]
pub fn stored_in(event: &[u8]) -> Option<&'static str> {
    Stored::of(Operation::Realtime)?.named(&[Bytes::copy_from_slice(event)])
}

/// Bytes of an event that are sound or pictures in Base64, which have fewer tokens than their letters. The rest is text.
#[must_use]
pub fn media_bytes(event: &[u8]) -> usize {
    const OF_MEDIA: [&[u8]; 2] = [b"audio", b"image_url"];
    let is_of_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_\\".contains(byte);
    let (mut name, mut colon): (&[u8], &[u8]) = (b"", b"");
    let mut media = 0;
    // What stands between quotes: an escaped one leaves its backslash, so that no text is taken for the name of a member.
    for part in event.split(|byte| *byte == b'"') {
        if OF_MEDIA.contains(&name) && colon.trim_ascii() == b":" {
            let head = part.iter().position(|byte| *byte == b',');
            let data = head.filter(|_| part.starts_with(b"data:"));
            let data = data.map_or(part, |comma| part.get(comma + 1..).unwrap_or_default());
            if data.iter().all(is_of_base64) {
                media += part.len();
            }
        }
        (name, colon) = (colon, part);
    }
    media
}

/// The name of a model, where one is said.
fn model_of(found: &Found, member: Option<&Member>) -> Result<Option<Box<str>>, NoEvent> {
    let Some(member) = member else {
        return Ok(None);
    };
    let name = found.text(member).filter(|_| member.kind == Kind::String);
    let name = name.as_deref().and_then(|name| model_name(name.as_bytes()));
    Ok(Some(name.ok_or(NoEvent::Model)?.into()))
}

/// The model of transcriptions, by the two places where it may stand.
fn transcription(
    text: &[u8],
    audio: Option<&Member>,
    beside: Option<&Member>,
) -> Result<Option<Box<str>>, NoEvent> {
    let part = |member: &Member| text.get(member.value.clone()).unwrap_or_default();
    let of_audio = match audio {
        Some(audio) if audio.kind == Kind::Object => inner(part(audio), &OF_AUDIO, 1)?,
        _ => None,
    };
    let beside = beside.map(|beside| part(beside).to_vec());
    let object = match (of_audio, beside) {
        // Two readers could differ on which one counts.
        (Some(_), Some(_)) => return Err(NoEvent::Unread),
        (Some(object), None) | (None, Some(object)) => object,
        (None, None) => return Ok(None),
    };
    if object.first() != Some(&b'{') {
        return Ok(None);
    }
    let mut scanner = json::Scanner::new(&OF_TRANSCRIPTION);
    scanner.push(&object).map_err(|_| NoEvent::Unread)?;
    let found = scanner.finish().map_err(|_| NoEvent::Unread)?;
    let model = found.member(0).filter(|model| model.kind != Kind::Null);
    model_of(found, model)
}

/// The text of a value inside of an object.
fn inner(
    object: &[u8],
    interests: &'static Interests,
    at: usize,
) -> Result<Option<Vec<u8>>, NoEvent> {
    let mut scanner = json::Scanner::new(interests);
    scanner.push(object).map_err(|_| NoEvent::Unread)?;
    let found = scanner.finish().map_err(|_| NoEvent::Unread)?;
    let member = found.member(at).filter(|member| member.kind != Kind::Null);
    let value = member.and_then(|member| object.get(member.value.clone()));
    Ok(value.map(<[u8]>::to_vec))
}

fn cap_of(found: &Found, member: &Member) -> Result<Cap, NoEvent> {
    match member.kind {
        Kind::Number => {
            let text = std::str::from_utf8(found.raw(member)).ok();
            let whole = text.and_then(|text| text.parse().ok());
            whole.map(Cap::Tokens).ok_or(NoEvent::Cap)
        }
        Kind::String => Ok(Cap::Open),
        _ => Err(NoEvent::Cap),
    }
}

static TOLD: Interests = Interests::new(&[
    Interest::new("type", Want::Raw(NAME_BYTES), Repeat::LastWins),
    Interest::new("response", Want::Place, Repeat::LastWins),
    Interest::new("response.id", Want::Raw(ID_BYTES), Repeat::LastWins),
    Interest::new(
        "response.usage",
        Want::Raw(USAGE_LIMIT_BYTES),
        Repeat::LastWins,
    ),
    Interest::new("usage", Want::Raw(USAGE_LIMIT_BYTES), Repeat::LastWins),
    Interest::new("error", Want::Place, Repeat::LastWins),
    Interest::new("error.event_id", Want::Raw(ID_BYTES), Repeat::LastWins),
    Interest::new("session", Want::Place, Repeat::LastWins),
    Interest::new("session.model", Want::Raw(MODEL_BYTES), Repeat::LastWins),
    Interest::new("session.audio", Want::Place, Repeat::LastWins),
    Interest::new(
        "session.input_audio_transcription",
        Want::Place,
        Repeat::LastWins,
    ),
    Interest::new("response.status", Want::Raw(NUMBER_BYTES), Repeat::LastWins),
    Interest::new("response_id", Want::Raw(ID_BYTES), Repeat::LastWins),
    Interest::new("item_id", Want::Raw(ID_BYTES), Repeat::LastWins),
    Interest::new(
        "session.max_output_tokens",
        Want::Raw(NUMBER_BYTES),
        Repeat::LastWins,
    ),
    Interest::new(
        "session.max_response_output_tokens",
        Want::Raw(NUMBER_BYTES),
        Repeat::LastWins,
    ),
]);

static OF_DURATION: Interests = Interests::new(&[Interest::new(
    "seconds",
    Want::Raw(NUMBER_BYTES),
    Repeat::LastWins,
)]);

/// What an event of a server's tells of, where that counts here.
#[derive(Debug, Clone, PartialEq)]
pub enum RealtimeTold {
    /// An answer begins.
    Begun {
        /// Its id.
        id: Box<str>,
    },
    /// A piece of an answer.
    Piece {
        /// Whose.
        id: Box<str>,
        /// It is sound.
        is_audio: bool,
    },
    /// An answer is over.
    Ended {
        /// Its id.
        id: Box<str>,
        /// What it used.
        usage: Box<Reading>,
        /// It came to a good end.
        is_good: bool,
    },
    /// A piece of what was said is written down.
    Transcribing {
        /// The item of what was said.
        item: Box<str>,
    },
    /// What was said could not be written down.
    NotTranscribed {
        /// The item of it.
        item: Box<str>,
    },
    /// What was said is written down.
    Transcribed {
        /// The item of it.
        item: Option<Box<str>>,
        /// What that used.
        usage: Box<Reading>,
        /// How many seconds of sound it is billed by, where it is not billed by tokens.
        seconds: Option<u64>,
    },
    /// How the session is set up.
    Session {
        /// Its model.
        model: Option<Box<str>>,
        /// The model that writes down what is said, where one does.
        transcription: Option<Box<str>>,
        /// The most output of each answer, where it is said.
        cap: Option<Cap>,
    },
    /// An event of the client's is refused.
    Refused {
        /// The client's name for it.
        event: Option<Box<str>>,
    },
    /// Anything else.
    Other,
}

impl RealtimeTold {
    /// Reads an event. `None` where it is none.
    #[must_use]
    pub fn read(text: &[u8]) -> Option<Self> {
        let mut scanner = json::Scanner::new(&TOLD);
        scanner.push(text).ok()?;
        let found = scanner.finish().ok()?;
        let text_at = |at| -> Option<Box<str>> {
            let member = found
                .member(at)
                .filter(|m: &&Member| m.kind == Kind::String)?;
            found.text(member).map(|text| text.into())
        };
        let usage_at = |at| {
            let member = found.member(at);
            let raw = member.map(|member| found.raw(member)).unwrap_or_default();
            Box::new(match raw {
                b"" | b"null" => Reading::Absent,
                raw => usage::read(raw),
            })
        };
        let name = text_at(0)?;
        Some(match &*name {
            "response.created" => Self::Begun { id: text_at(2)? },
            "response.done" => Self::Ended {
                id: text_at(2)?,
                usage: usage_at(3),
                is_good: text_at(11).is_none_or(|status| &*status != "failed"),
            },
            "conversation.item.input_audio_transcription.completed" => {
                let raw = found.member(4).map(|usage| found.raw(usage));
                Self::Transcribed {
                    item: text_at(13),
                    usage: usage_at(4),
                    seconds: raw.and_then(seconds),
                }
            }
            "conversation.item.input_audio_transcription.delta" => {
                Self::Transcribing { item: text_at(13)? }
            }
            "conversation.item.input_audio_transcription.failed" => {
                Self::NotTranscribed { item: text_at(13)? }
            }
            "session.created"
            | "session.updated"
            | "transcription_session.created"
            | "transcription_session.updated" => Self::Session {
                model: text_at(8),
                transcription: transcription(text, found.member(9), found.member(10))
                    .ok()
                    .flatten(),
                cap: [14, 15]
                    .into_iter()
                    .filter_map(|at| cap_of(found, found.member(at)?).ok())
                    .max(),
            },
            "error" => Self::Refused { event: text_at(6) },
            other => match (other.strip_prefix("response."), text_at(12)) {
                (Some(piece), Some(id)) if piece.ends_with(".delta") => Self::Piece {
                    id,
                    is_audio: matches!(piece, "output_audio.delta" | "audio.delta"),
                },
                _ => Self::Other,
            },
        })
    }
}

/// Seconds that are billed, each that was begun.
fn seconds(usage: &[u8]) -> Option<u64> {
    let mut scanner = json::Scanner::new(&OF_DURATION);
    scanner.push(usage).ok()?;
    let found = scanner.finish().ok()?;
    let whole = number(found, found.member(0)?)?;
    Some(whole.saturating_add(1))
}

/// A number without what stands behind its point.
fn number(found: &Found, member: &Member) -> Option<u64> {
    let text = std::str::from_utf8(found.raw(member)).ok()?;
    text.split('.').next()?.parse().ok()
}

/// An error of the gate's own, as the API's clients read it. `event` is the client's name for the event that is refused.
#[must_use]
pub fn realtime_error(
    kind: &str,
    code: &str,
    message: &str,
    param: Option<&str>,
    (own, event): (&str, Option<&str>),
) -> String {
    let error = serde_json::json!({
        "type": "error",
        "event_id": own,
        "error": { "type": kind, "code": code, "message": message, "param": param, "event_id": event },
    });
    error.to_string()
}

#[cfg(test)]
mod tests;
