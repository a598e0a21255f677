//! `server/discover`: what a server without sessions says of itself, and what the gate says of all.
//!
//! Invariant: a client is offered what some server of its route offers and the gate passes on, and nothing else.
//! Not here: who is asked (the host), the handshake of servers with sessions (`handshake`).

use wire::json::{Kind, Reader};

use crate::envelope::{Message, Says, members, text_of};
use crate::handshake::{
    Abilities, Answered, SERVER_INFO, UNAVAILABLE, abilities, instructions_of, write_capabilities,
    write_instructions,
};
use crate::modern::{CAPABILITIES, CLIENT, VERSION};
use crate::reply;
use crate::task::{self, EXTENSION};
use crate::version::Version;

/// The method.
pub const METHOD: &str = "server/discover";

/// How long a result may be kept, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fresh {
    /// Milliseconds.
    pub ttl_ms: u64,
    /// By anybody, not only by whoever asked.
    pub is_public: bool,
}

impl Fresh {
    /// Its members of a result, with that the result is complete.
    #[must_use]
    pub fn members(self) -> String {
        let scope = if self.is_public { "public" } else { "private" };
        let ttl = self.ttl_ms;
        format!(r#""resultType":"complete","ttlMs":{ttl},"cacheScope":"{scope}""#)
    }

    /// What a result says of that; none where it does not say it.
    #[must_use]
    pub fn read(result: &[u8]) -> Option<Self> {
        let [ttl, scope] = members(result, ["ttlMs", "cacheScope"], 0).ok()?;
        let (_, ttl, _) = ttl.filter(|ttl| ttl.0 == Kind::Number)?;
        let ttl: f64 = std::str::from_utf8(ttl).ok()?.parse().ok()?;
        Some(Self {
            // What is less than nothing counts as nothing.
            ttl_ms: ttl as u64,
            is_public: scope.as_ref().and_then(text_of).as_deref() == Some("public"),
        })
    }
}

/// The params of a request of the gate's own, with these further members, each behind a comma.
#[must_use]
pub fn own_params(further: &str) -> String {
    params_of(further, "{}")
}

/// The same, of one that knows tasks.
#[must_use]
pub fn own_params_of_tasks(further: &str) -> String {
    params_of(
        further,
        &format!(r#"{{"extensions":{{"{EXTENSION}":{{}}}}}}"#),
    )
}

fn params_of(further: &str, capabilities: &str) -> String {
    let version = Version::V20260728.as_str();
    format!(
        r#"{{"_meta":{{"{VERSION}":"{version}","{CAPABILITIES}":{capabilities},"{CLIENT}":{SERVER_INFO}}}{further}}}"#
    )
}

/// What came of the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It speaks the version without sessions.
    Modern(Answered),
    /// It says that it speaks that version, and refused this request for its version.
    Refused,
    /// It does not, or says nothing that could be read as that.
    Legacy,
}

/// The code of an error by which a request is refused for its version.
const UNSUPPORTED: &[u8] = b"-32022";

/// Reads a server's answer.
#[must_use]
pub fn found(answer: &[u8]) -> Found {
    let result = Message::read(answer)
        .ok()
        .and_then(|message| match message.says {
            Says::Response { result, .. } => answer.get(result?),
            Says::Request { .. } | Says::Notification { .. } => None,
        });
    match result.and_then(answered) {
        Some(answered) => Found::Modern(answered),
        None if is_refused(answer).is_some() => Found::Refused,
        None => Found::Legacy,
    }
}

fn is_refused(answer: &[u8]) -> Option<()> {
    let [error] = members(answer, ["error"], 0).ok()?;
    let [code, data] = members(error?.1, ["code", "data"], 0).ok()?;
    let [supported] = members(data?.1, ["supported"], 0).ok()?;
    let is_its = code?.1 == UNSUPPORTED && has(supported?.1, Version::V20260728.as_str());
    is_its.then_some(())
}

fn answered(result: &[u8]) -> Option<Answered> {
    let names = ["supportedVersions", "capabilities", "instructions"];
    let [versions, capabilities, instructions] = members(result, names, 0).ok()?;
    let (_, versions, _) = versions.filter(|versions| versions.0 == Kind::Array)?;
    has(versions, Version::V20260728.as_str()).then_some(())?;
    let has_tasks = capabilities
        .as_ref()
        .is_some_and(|(_, text, _)| task::is_in(text));
    let mut abilities = abilities(capabilities)?;
    if has_tasks {
        abilities = abilities.and(Abilities::TASKS);
    }
    Some(Answered {
        version: Version::V20260728,
        abilities,
        instructions: instructions.as_ref().and_then(instructions_of),
    })
}

/// Whether a list has this text in it.
fn has(list: &[u8], text: &str) -> bool {
    let list: Result<Vec<String>, _> = serde_json::from_slice(list);
    list.is_ok_and(|list| list.iter().any(|of| of == text))
}

/// The result that a client is told: of each server its name and what it answered, where it did.
#[must_use]
pub fn told(servers: &[(&str, Option<Answered>)], fresh: Fresh) -> Vec<u8> {
    let versions = Version::OF_CLIENTS.map(|version| format!("\"{}\"", version.as_str()));
    let mut out = format!(
        r#"{{{},"supportedVersions":[{}],"#,
        fresh.members(),
        versions.join(",")
    )
    .into_bytes();
    write_capabilities(servers, true, &mut out);
    write_instructions(servers, &mut out);
    let silent = servers.iter().filter(|(_, answered)| answered.is_none());
    let silent: Vec<&str> = silent.map(|(name, _)| *name).collect();
    out.extend_from_slice(b",\"_meta\":{");
    out.extend_from_slice(own_info().as_bytes());
    if !silent.is_empty() {
        let silent: Vec<Vec<u8>> = silent.into_iter().map(reply::string).collect();
        out.extend_from_slice(format!(",\"{UNAVAILABLE}\":[").as_bytes());
        out.extend(silent.join(&b','));
        out.push(b']');
    }
    out.extend_from_slice(b"}}");
    out
}

/// What the gate says of itself in a result's `_meta`.
#[must_use]
pub fn own_info() -> String {
    format!(r#""io.modelcontextprotocol/serverInfo":{SERVER_INFO}"#)
}

/// An object without some of its members; none where it is no object.
pub(crate) fn without(object: &[u8], names: &[&str]) -> Option<Vec<u8>> {
    let mut reader = Reader::new(object);
    let (mut more, mut out) = (reader.open()?, b"{".to_vec());
    while more {
        let name = reader.name()?.into_owned();
        let (_, raw) = reader.value()?;
        more = reader.more()?;
        let name = String::from_utf8(name).ok()?;
        if names.contains(&&*name) {
            continue;
        }
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend(reply::string(&name));
        out.push(b':');
        out.extend_from_slice(raw);
    }
    out.push(b'}');
    Some(out)
}

#[cfg(test)]
mod tests;
