//! The envelope of one message of JSON-RPC, scanned.
//!
//! Invariant: an envelope that two readers could read in two ways is refused; its id goes on as it is written, whatever it holds.
//! Not here: what its `params` ask for (`target`), answers of the gate's own (`reply`).

use std::borrow::Cow;
use std::ops::Range;

use wire::json::{Kind, Reader, is_spelling, unescape};

/// The code of a message that is none which could be answered.
pub const INVALID_REQUEST: i32 = -32600;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'a> {
    /// Who is to do what with it.
    pub says: Says<'a>,
    /// Where its `params` stand, if they do.
    pub params: Option<Range<usize>>,
}

/// What kind of message it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Says<'a> {
    /// It is to be answered.
    Request {
        /// A string or a number, as written.
        id: &'a [u8],
        /// Where that stands.
        at: Range<usize>,
        /// What is asked for.
        method: Cow<'a, str>,
    },
    /// It is not.
    Notification {
        /// What happened.
        method: Cow<'a, str>,
    },
    /// It answers a request.
    Response {
        /// The request's id, as written; `null` where the request could not be read.
        id: &'a [u8],
        /// Where that stands.
        at: Range<usize>,
        /// Where its `result` stands; none where it says an error.
        result: Option<Range<usize>>,
    },
}

/// Why a text is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is no JSON.
    #[error("the message is not JSON, or not one JSON object")]
    NotJson,
    /// It is a list of messages, which these versions have no more.
    #[error(
        "a batch (a JSON array) is not part of this protocol version; send one message a request"
    )]
    Batch,
    /// It is JSON, and no message.
    #[error("the message is not JSON-RPC 2.0: {0}")]
    NotRpc(&'static str),
    /// A member stands twice, or in a spelling that some readers take for the known one.
    #[error("the member `{0}` stands twice, or in another spelling")]
    Ambiguous(&'static str),
}

impl Fault {
    /// Its code in JSON-RPC.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::NotJson => -32700,
            Self::Batch | Self::NotRpc(_) | Self::Ambiguous(_) => INVALID_REQUEST,
        }
    }
}

/// A member's value: what it is, its bytes, and where they stand.
pub(crate) type Value<'a> = (Kind, &'a [u8], Range<usize>);

/// The values of these members of the object that begins at `from`; its end. `offset` is added to all places.
pub(crate) fn members<'a, const N: usize>(
    text: &'a [u8],
    names: [&'static str; N],
    offset: usize,
) -> Result<[Option<Value<'a>>; N], Fault> {
    let mut found = [const { None }; N];
    let mut reader = Reader::new(text);
    let mut more = reader.open().ok_or(Fault::NotJson)?;
    while more {
        let name = reader.name().ok_or(Fault::NotJson)?;
        let (kind, raw) = reader.value().ok_or(Fault::NotJson)?;
        let end = reader.place() + offset;
        more = reader.more().ok_or(Fault::NotJson)?;
        for (known, slot) in names.iter().zip(&mut found) {
            let is_it = *name == *known.as_bytes();
            if is_it && slot.is_none() {
                *slot = Some((kind, raw, end.saturating_sub(raw.len())..end));
            } else if is_it || is_other_spelling(&name, known) {
                return Err(Fault::Ambiguous(known));
            }
        }
    }
    reader.is_at_end().then_some(found).ok_or(Fault::NotJson)
}

/// Whether some readers take it for the known name. The known ones of this protocol have capitals in them.
fn is_other_spelling(name: &[u8], known: &str) -> bool {
    is_spelling(name, known.to_ascii_lowercase().as_bytes())
}

/// The text of a string as it is written.
pub(crate) fn text_of<'a>(value: &Value<'a>) -> Option<Cow<'a, str>> {
    let (Kind::String, raw, _) = value else {
        return None;
    };
    unescape(raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}

impl<'a> Message<'a> {
    /// Reads one.
    ///
    /// # Errors
    /// [`Fault`] where it is none.
    pub fn read(text: &'a [u8]) -> Result<Self, Fault> {
        if text.trim_ascii_start().first() == Some(&b'[') {
            return Err(Fault::Batch);
        }
        const NAMES: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
        let [jsonrpc, id, method, params, result, error] = members(text, NAMES, 0)?;
        if jsonrpc.as_ref().and_then(text_of).as_deref() != Some("2.0") {
            return Err(Fault::NotRpc("`jsonrpc` must be \"2.0\""));
        }
        let params = match params {
            Some((Kind::Object, _, at)) => Some(at),
            Some(_) => return Err(Fault::NotRpc("`params` must be an object")),
            None => None,
        };
        if let Some((Kind::Number, number, _)) = &id
            && !is_number_everywhere(number)
        {
            return Err(Fault::NotRpc(
                "`id` is a number that not every reader can hold",
            ));
        }
        let is_answer = result.is_some() || error.is_some();
        let says = match (method, id) {
            (Some(_), _) if is_answer => {
                return Err(Fault::NotRpc("it is a request and an answer at once"));
            }
            (Some(method), id) => {
                let method = text_of(&method).ok_or(Fault::NotRpc("`method` must be a string"))?;
                match id {
                    Some((Kind::String | Kind::Number, id, at)) => Says::Request { id, at, method },
                    Some(_) => return Err(Fault::NotRpc("`id` must be a string or a number")),
                    None => Says::Notification { method },
                }
            }
            (None, Some((Kind::String | Kind::Number | Kind::Null, id, at))) if is_answer => {
                if result.is_some() && error.is_some() {
                    return Err(Fault::NotRpc("it has a result and an error at once"));
                }
                let result = result.map(|(_, _, at)| at);
                Says::Response { id, at, result }
            }
            (None, _) => return Err(Fault::NotRpc("it has neither a method nor an answer")),
        };
        Ok(Self { says, params })
    }
}

/// Whether a number is one to whoever reads numbers of eight bytes, as most do: `1e400` is none there.
fn is_number_everywhere(number: &[u8]) -> bool {
    let is_short = number.len() <= 300;
    if is_short && !number.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return true;
    }
    let number = std::str::from_utf8(number).ok();
    number.is_some_and(|number| number.parse::<f64>().is_ok_and(f64::is_finite))
}

/// Whether two ids are the same, however each is written.
#[must_use]
pub fn is_same_id(one: &[u8], other: &[u8]) -> bool {
    if one == other {
        return true;
    }
    let bare = |id: &[u8]| {
        let bare = id.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        unescape(bare).map(Cow::into_owned)
    };
    match (bare(one), bare(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => is_same_number(one, other),
        _ => false,
    }
}

/// Whether two numbers are the same that are whole and exact in every reader.
fn is_same_number(one: &[u8], other: &[u8]) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let read = |id: &[u8]| std::str::from_utf8(id).ok()?.parse::<f64>().ok();
    match (read(one), read(other)) {
        (Some(one), Some(other)) => one.abs() < EXACT && one.to_bits() == other.to_bits(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
