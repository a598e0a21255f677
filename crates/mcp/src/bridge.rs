//! Messages of versions without sessions as those of versions with sessions, and the other way round.
//!
//! What a client says once in a session is said with each request to a server that keeps none; what such a server wants to know from the
//! client is a request to one that has a session, and the other way round it cannot be.
//! Invariant: a message is spliced: what is not named here goes on as it was written.
//! Not here: who speaks which version and what is kept meanwhile (the host), the table of all that (docs/mcp.md).

use std::borrow::Cow;
use std::ops::Range;

use wire::json::{Kind, Reader};

use crate::client::Can;
use crate::discover::without;
use crate::envelope::{Fault, Message, Says, Value, members, text_of};
use crate::events::{STATE_BYTES_MAX, Unusable};
use crate::handshake::SERVER_INFO;
use crate::modern::{CAPABILITIES, CLIENT, LOG_LEVEL, VERSION};
use crate::reply::{self, INVALID_PARAMS, edited, string};
use crate::version::Version;

/// Most requests to a client in one answer.
const INPUTS_MAX: usize = 32;
/// The member of params and results that a server wants to hear again.
const STATE: &str = "requestState";
/// The member of params that answers what a server asked.
const RESPONSES: &str = "inputResponses";
/// What a request of versions without sessions says of itself.
const OWN: [&str; 4] = [VERSION, CAPABILITIES, CLIENT, LOG_LEVEL];

/// A part of a text, and what stands in its place.
pub type Edit = (Range<usize>, Vec<u8>);

/// A text, and where it stands, quotes included.
pub type Placed<'a> = (Cow<'a, str>, Range<usize>);

/// What a request of a client with a session says, to a server without sessions.
///
/// # Errors
/// [`Fault`] where it says some of that already.
pub fn to_modern(
    message: &[u8],
    params: Option<&Range<usize>>,
    can: Can,
    log_level: Option<&str>,
) -> Result<Vec<Edit>, Fault> {
    let version = Version::V20260728.as_str();
    let mut own = format!(
        r#""{VERSION}":"{version}","{CAPABILITIES}":{},"{CLIENT}":{SERVER_INFO}"#,
        can.capabilities()
    );
    if let Some(level) = log_level {
        own.push_str(&format!(r#","{LOG_LEVEL}":"{level}""#));
    }
    let params = params.ok_or(Fault::NotRpc("`params` is missing"))?;
    let text = message.get(params.clone()).unwrap_or_default();
    let [meta, state, responses] = members(text, ["_meta", STATE, RESPONSES], params.start)?;
    if state.is_some() || responses.is_some() {
        return Err(Fault::NotRpc(
            "`requestState` and `inputResponses` are of versions without sessions",
        ));
    }
    Ok(vec![match meta {
        Some((Kind::Object, text, at)) => {
            if members(text, OWN, 0)?.iter().any(Option::is_some) {
                return Err(Fault::NotRpc(
                    "`_meta` says what versions without sessions say, and the message has a session",
                ));
            }
            (at, reply::with_members(text, own.as_bytes()))
        }
        Some((_, _, at)) => (at, format!("{{{own}}}").into_bytes()),
        None => {
            // What stands in `params` may be replaced beside it.
            let after = params.start + 1;
            let comma = if is_empty(text) { "" } else { "," };
            let meta = format!(r#""_meta":{{{own}}}{comma}"#);
            (after..after, meta.into_bytes())
        }
    }])
}

/// What of a request without a session is not for a server that has sessions.
///
/// # Errors
/// [`Fault`].
pub fn to_legacy(message: &[u8], params: Option<&Range<usize>>) -> Result<Vec<Edit>, Fault> {
    let Some(params) = params else {
        return Ok(Vec::new());
    };
    let text = message.get(params.clone()).unwrap_or_default();
    let [meta] = members(text, ["_meta"], params.start)?;
    let meta = meta.and_then(|(_, text, at)| Some((at, without(text, &OWN)?)));
    Ok(meta.into_iter().collect())
}

/// The state in a request, and where it stands.
///
/// # Errors
/// [`Fault`] where it is no string.
pub fn state_in<'a>(
    message: &'a [u8],
    params: Option<&Range<usize>>,
) -> Result<Option<Placed<'a>>, Fault> {
    let Some(params) = params else {
        return Ok(None);
    };
    let text = message.get(params.clone()).unwrap_or_default();
    let [state] = members(text, [STATE], params.start)?;
    let Some(state) = state else { return Ok(None) };
    let text = text_of(&state).ok_or(Fault::NotRpc("`params.requestState` must be a string"))?;
    Ok(Some((text, state.2)))
}

/// How the id of a task in an answer is shown to a client without a session.
#[derive(Clone, Copy)]
pub enum TaskId<'a> {
    /// The request makes and names no task.
    None,
    /// The request may make one, whose id is sealed.
    Sealed(&'a dyn Fn(&str) -> Option<String>),
    /// The request names it so.
    Shown(&'a str),
}

/// An answer as a client without a session is told it: of any server. `is_read`: it may be kept, and says for how long; `is_public`: by
/// anybody, where its server says so too. States are sealed, and ids of tasks.
///
/// # Errors
/// [`Unusable`] where it is no answer, or its state cannot be sealed.
pub fn told_modern<'a>(
    answer: &'a [u8],
    is_read: bool,
    is_public: bool,
    seal: impl FnOnce(&str) -> Option<String>,
    task_id: TaskId<'_>,
) -> Result<Cow<'a, [u8]>, Unusable> {
    let [result, error] = members(answer, ["result", "error"], 0)?;
    let Some((kind, text, at)) = result else {
        return told_error(answer, error);
    };
    if kind != Kind::Object {
        return Err(Unusable::NoMessage);
    }
    let names = ["resultType", STATE, "ttlMs", "cacheScope", "taskId"];
    let [of, state, ttl, scope, task] = members(text, names, at.start)?;
    let (mut edits, mut further) = (Vec::new(), Vec::new());
    let of = match &of {
        Some(of) => text_of(of).ok_or(Unusable::NoMessage)?,
        None => {
            further.push(r#""resultType":"complete""#);
            Cow::Borrowed("complete")
        }
    };
    let shown = match task_id {
        TaskId::Sealed(seal) if of == "task" => {
            let id = task.as_ref().and_then(text_of);
            Some(id.and_then(|id| seal(&id)).ok_or(Unusable::NoMessage)?)
        }
        _ if of == "task" => return Err(Unusable::Task),
        TaskId::Shown(id) => Some(id.to_owned()),
        TaskId::None | TaskId::Sealed(_) => None,
    };
    if let (Some(shown), Some((.., at))) = (shown, task) {
        edits.push((at, string(&shown)));
    }
    if *of == *INPUT_REQUIRED {
        if let Some(state) = state {
            let text = text_of(&state).ok_or(Unusable::NoMessage)?;
            if text.len() > STATE_BYTES_MAX {
                return Err(Unusable::LongState);
            }
            let sealed = seal(&text).ok_or(Unusable::NoMessage)?;
            edits.push((state.2, string(&sealed)));
        }
    } else if is_read && of == "complete" {
        if ttl.is_none() {
            further.push(r#""ttlMs":0"#);
        }
        match scope {
            None => further.push(r#""cacheScope":"private""#),
            Some((.., at)) if !is_public => edits.push((at, b"\"private\"".to_vec())),
            Some(_) => {}
        }
    }
    if !further.is_empty() {
        let after = at.start + 1;
        let comma = if is_empty(text) { "" } else { "," };
        edits.push((after..after, (further.join(",") + comma).into_bytes()));
    }
    Ok(if edits.is_empty() {
        Cow::Borrowed(answer)
    } else {
        Cow::Owned(edited(answer, edits))
    })
}

/// Whether an object has no members.
fn is_empty(object: &[u8]) -> bool {
    let within = object.get(1..).unwrap_or_default();
    within.trim_ascii_start() == b"}"
}

/// The arguments of a call as written, where it has any.
///
/// # Errors
/// [`Fault`] where they stand twice, or in another spelling.
pub fn arguments<'a>(
    message: &'a [u8],
    params: Option<&Range<usize>>,
) -> Result<Option<&'a [u8]>, Fault> {
    let text = params.and_then(|params| message.get(params.clone()));
    let Some(text) = text else { return Ok(None) };
    let [found] = members(text, ["arguments"], 0)?;
    Ok(found.map(|(_, raw, _)| raw))
}

/// An answer with another id.
///
/// # Errors
/// [`Unusable`] where it is none.
pub fn with_id(answer: &[u8], id: &[u8]) -> Result<Vec<u8>, Unusable> {
    match Message::read(answer)?.says {
        Says::Response { at, .. } => Ok(reply::spliced(answer, at, id)),
        Says::Request { .. } | Says::Notification { .. } => Err(Unusable::NoMessage),
    }
}

/// What tells a server with sessions that nobody waits for a request any more.
#[must_use]
pub fn cancelled(id: &[u8]) -> Vec<u8> {
    [
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#.as_slice(),
        id,
        b"}}",
    ]
    .concat()
}

/// What says that a result is none yet.
const INPUT_REQUIRED: &str = "input_required";

/// An error; of codes that versions without sessions do not have it says another one.
fn told_error<'a>(answer: &'a [u8], error: Option<Value<'_>>) -> Result<Cow<'a, [u8]>, Unusable> {
    let (_, error, at) = error.ok_or(Unusable::NoMessage)?;
    let [code] = members(error, ["code"], at.start)?;
    let Some((_, code, at)) = code else {
        return Err(Unusable::NoMessage);
    };
    let instead = match code {
        b"-32002" => INVALID_PARAMS,
        b"-32042" => reply::INTERNAL,
        _ => return Ok(Cow::Borrowed(answer)),
    };
    Ok(Cow::Owned(reply::spliced(
        answer,
        at,
        instead.to_string().as_bytes(),
    )))
}

/// What a server without sessions answered, to a client that has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Legacy {
    /// It can be told as it is.
    Answer,
    /// The client has to be asked before.
    Needs(Needs),
    /// It is of a kind that such clients do not know.
    Unknown(String),
}

/// What a server wants to know from the client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Each request, under the server's key for it.
    pub requests: Vec<Need>,
    /// What the server wants to hear again, as written.
    pub state: Option<Vec<u8>>,
}

/// One request to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The server's key for it.
    pub key: String,
    /// What is asked for.
    pub method: String,
    /// With what, as written.
    pub params: Option<Vec<u8>>,
}

impl Need {
    /// Bytes that are kept of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.key.len() + self.method.len() + self.params.as_ref().map_or(0, Vec::len)
    }
}

/// Reads the answer of a server without sessions for a client that has one.
///
/// # Errors
/// [`Unusable`].
pub fn told_legacy(answer: &[u8]) -> Result<Legacy, Unusable> {
    let [result] = members(answer, ["result"], 0)?;
    let Some((Kind::Object, text, _)) = result else {
        return Ok(Legacy::Answer);
    };
    let [of, requests, state] = members(text, ["resultType", "inputRequests", STATE], 0)?;
    match of.as_ref().map(text_of) {
        None => return Ok(Legacy::Answer),
        Some(Some(of)) if of == "complete" => return Ok(Legacy::Answer),
        Some(Some(of)) if *of == *INPUT_REQUIRED => {}
        Some(of) => {
            let of = of.unwrap_or_default();
            return Ok(Legacy::Unknown(of.chars().take(64).collect()));
        }
    }
    if state
        .as_ref()
        .is_some_and(|(_, raw, _)| raw.len() > STATE_BYTES_MAX)
    {
        return Err(Unusable::LongState);
    }
    let mut needs = Needs {
        requests: Vec::new(),
        state: state.map(|(_, raw, _)| raw.to_vec()),
    };
    if let Some((Kind::Object, text, _)) = requests {
        needs.requests = read_needs(text)?;
    }
    if needs.requests.is_empty() && needs.state.is_none() {
        return Err(Unusable::NoMessage);
    }
    Ok(Legacy::Needs(needs))
}

fn read_needs(text: &[u8]) -> Result<Vec<Need>, Unusable> {
    let mut reader = Reader::new(text);
    let mut needs: Vec<Need> = Vec::new();
    let mut more = reader.open().ok_or(Unusable::NoMessage)?;
    while more {
        let key = reader.name().ok_or(Unusable::NoMessage)?.into_owned();
        let (_, raw) = reader.value().ok_or(Unusable::NoMessage)?;
        more = reader.more().ok_or(Unusable::NoMessage)?;
        let key = String::from_utf8(key).map_err(|_| Unusable::NoMessage)?;
        let [method, params] = members(raw, ["method", "params"], 0)?;
        let method = method.as_ref().and_then(text_of);
        let is_twice = needs.iter().any(|need| need.key == key);
        if is_twice || needs.len() == INPUTS_MAX {
            return Err(Unusable::NoMessage);
        }
        needs.push(Need {
            key,
            method: method.ok_or(Unusable::NoMessage)?.into_owned(),
            params: params.map(|(_, raw, _)| raw.to_vec()),
        });
    }
    Ok(needs)
}

/// The request again, with what the client answered to what the server asked.
///
/// # Errors
/// [`Fault`].
pub fn again(
    message: &[u8],
    params: Option<&Range<usize>>,
    answers: &[(String, Vec<u8>)],
    state: Option<&[u8]>,
) -> Result<Vec<u8>, Fault> {
    let params = params.ok_or(Fault::NotRpc("`params` is missing"))?;
    let mut further = format!("\"{RESPONSES}\":{{").into_bytes();
    for (nth, (key, answer)) in answers.iter().enumerate() {
        if nth > 0 {
            further.push(b',');
        }
        further.extend(string(key));
        further.push(b':');
        further.extend_from_slice(answer);
    }
    further.push(b'}');
    if let Some(state) = state {
        further.extend_from_slice(format!(",\"{STATE}\":").as_bytes());
        further.extend_from_slice(state);
    }
    let text = message.get(params.clone()).unwrap_or_default();
    let with = reply::with_members(text, &further);
    Ok(reply::spliced(message, params.clone(), &with))
}

/// What a client answered to a request: the result as written; none where it is an error.
#[must_use]
pub fn result_of(answer: &[u8]) -> Option<&[u8]> {
    let [result] = members(answer, ["result"], 0).ok()?;
    let (kind, raw, _) = result?;
    (kind == Kind::Object).then_some(raw)
}

#[cfg(test)]
mod tests;
