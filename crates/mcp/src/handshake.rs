//! `initialize`: what a client asks for, what each server answers, and what of it the client is told.
//!
//! Invariant: a client is offered what some server of its route offers and the gate passes on, and nothing else.
//! Not here: who is asked and how long (the host), the session that comes of it (`session`).

use std::ops::Range;

use wire::json::Kind;

use crate::envelope::{Fault, Value, members, text_of};
use crate::reply;
use crate::task::EXTENSION;
use crate::version::Version;

/// Bytes of one server's instructions that its clients are told.
const INSTRUCTIONS_BYTES_MAX: usize = 8 << 10;
/// What the gate tells of itself.
pub(crate) const SERVER_INFO: &str = concat!(
    r#"{"name":"tollgate","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);
/// Where `_meta` of an answer says which servers did not answer.
pub const UNAVAILABLE: &str = "tollgate/unavailable";

/// What a server offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities(u16);

/// The members of `capabilities` that the gate passes on, in the order of their bits.
const MEMBERS: [&str; 5] = ["tools", "prompts", "resources", "logging", "completions"];

impl Abilities {
    /// Tools.
    pub const TOOLS: Self = Self(1);
    /// Prompts.
    pub const PROMPTS: Self = Self(2);
    /// Resources and their templates.
    pub const RESOURCES: Self = Self(4);
    /// Logging, whose level can be set.
    pub const LOGGING: Self = Self(8);
    /// Completion of arguments.
    pub const COMPLETIONS: Self = Self(16);

    /// Whether it has all of these.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and those.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Resources can be subscribed.
    pub const SUBSCRIPTIONS: Self = Self(32);
    /// It tells of changes of its tools.
    pub const TOOLS_CHANGE: Self = Self(64);
    /// It tells of changes of its prompts.
    pub const PROMPTS_CHANGE: Self = Self(128);
    /// It tells of changes of its resources.
    pub const RESOURCES_CHANGE: Self = Self(256);

    /// Calls may be answered later, as tasks.
    pub const TASKS: Self = Self(512);

    pub(crate) const fn bits(self) -> u16 {
        self.0
    }

    pub(crate) const fn of_bits(bits: u16) -> Self {
        Self(bits)
    }
}

/// Members of capabilities, and what is meant where they are true.
const DETAILS: [(&str, &str, Abilities); 4] = [
    ("tools", "listChanged", Abilities::TOOLS_CHANGE),
    ("prompts", "listChanged", Abilities::PROMPTS_CHANGE),
    ("resources", "subscribe", Abilities::SUBSCRIPTIONS),
    ("resources", "listChanged", Abilities::RESOURCES_CHANGE),
];

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The version that it is answered with, and that servers are asked for: its own where the gate speaks that, else the newest.
    pub version: Version,
    /// What servers are told: what it said, with that version.
    pub params: Vec<u8>,
}

/// Reads the params of a client's `initialize`.
///
/// # Errors
/// [`Fault`] where they say no version.
pub fn asked(message: &[u8], params: Option<&Range<usize>>) -> Result<Asked, Fault> {
    let params = params.ok_or(Fault::NotRpc("`params` is missing"))?;
    let text = message.get(params.clone()).unwrap_or_default();
    let [version] = members(text, ["protocolVersion"], 0)?;
    let said = version.ok_or(Fault::NotRpc("`params.protocolVersion` is missing"))?;
    let text_of_it =
        text_of(&said).ok_or(Fault::NotRpc("`params.protocolVersion` must be a string"))?;
    let version = Version::of_client(&text_of_it).unwrap_or(Version::LATEST);
    let params = reply::spliced(text, said.2.clone(), &reply::string(version.as_str()));
    Ok(Asked { version, params })
}

/// The params of a handshake of the gate's own: for callers that it cannot ask anything.
#[must_use]
pub fn own_params() -> String {
    format!(
        r#"{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{SERVER_INFO}}}"#,
        Version::LATEST.as_str()
    )
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// What it speaks.
    pub version: Version,
    /// What it offers.
    pub abilities: Abilities,
    /// How it wants to be used.
    pub instructions: Option<String>,
}

/// Reads the result of a server's `initialize`; `None` where it is none, or of a version that the gate does not speak.
#[must_use]
pub fn answered(result: &[u8]) -> Option<Answered> {
    let names = ["protocolVersion", "capabilities", "instructions"];
    let [version, capabilities, instructions] = members(result, names, 0).ok()?;
    let version = Version::of_server(&text_of(&version?)?)?;
    let abilities = abilities(capabilities)?;
    let instructions = instructions.as_ref().and_then(instructions_of);
    Some(Answered {
        version,
        abilities,
        instructions,
    })
}

/// What `capabilities` offer.
pub(crate) fn abilities(capabilities: Option<Value<'_>>) -> Option<Abilities> {
    let offered = match capabilities {
        Some((Kind::Object, text, _)) => members(text, MEMBERS, 0).ok()?,
        _ => [const { None }; MEMBERS.len()],
    };
    let is_offered = |value: &Option<Value<'_>>| matches!(value, Some((Kind::Object, ..)));
    let bits = offered
        .iter()
        .rev()
        .fold(0, |bits, value| bits << 1 | u16::from(is_offered(value)));
    let mut abilities = Abilities(bits);
    for (of, member, ability) in DETAILS {
        let value = MEMBERS.iter().position(|name| *name == of);
        let value = value.and_then(|at| offered.get(at)?.as_ref());
        let said = value.and_then(|(_, text, _)| members(text, [member], 0).ok());
        if let Some([Some((Kind::True, ..))]) = said {
            abilities = abilities.and(ability);
        }
    }
    Some(abilities)
}

/// What a server says of its use, as much of it as is passed on.
pub(crate) fn instructions_of(value: &Value<'_>) -> Option<String> {
    let text = text_of(value).filter(|text| !text.trim().is_empty())?;
    Some(shortened(&text).to_owned())
}

fn shortened(text: &str) -> &str {
    let mut end = text.len().min(INSTRUCTIONS_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The result that a client is told: of each server its name and what it answered, where it did.
#[must_use]
pub fn told(version: Version, servers: &[(&str, Option<Answered>)]) -> Vec<u8> {
    let mut out = format!(r#"{{"protocolVersion":"{}","#, version.as_str()).into_bytes();
    write_capabilities(servers, false, &mut out);
    out.extend_from_slice(format!(r#","serverInfo":{SERVER_INFO}"#).as_bytes());
    write_instructions(servers, &mut out);
    let silent = servers.iter().filter(|(_, answered)| answered.is_none());
    let silent: Vec<&str> = silent.map(|(name, _)| *name).collect();
    write_meta(UNAVAILABLE, &silent, &mut out);
    out.push(b'}');
    out
}

/// Writes `capabilities` of all servers together, with extensions where a client's version has them.
pub(crate) fn write_capabilities(
    servers: &[(&str, Option<Answered>)],
    has_extensions: bool,
    out: &mut Vec<u8>,
) {
    let answered = servers.iter().filter_map(|(_, of)| of.as_ref());
    let abilities = answered.fold(Abilities::default(), |all, of| all.and(of.abilities));
    let offered = MEMBERS.iter().enumerate();
    let offered = offered.filter(|(nth, _)| abilities.0 >> nth & 1 == 1);
    let mut offered: Vec<String> = offered
        .map(|(_, name)| {
            let details = DETAILS
                .iter()
                .filter(|(of, _, ability)| of == name && abilities.has(*ability));
            let details: Vec<String> = details
                .map(|(_, member, _)| format!(r#""{member}":true"#))
                .collect();
            format!(r#""{name}":{{{}}}"#, details.join(","))
        })
        .collect();
    if has_extensions && abilities.has(Abilities::TASKS) {
        offered.push(format!(r#""extensions":{{"{EXTENSION}":{{}}}}"#));
    }
    out.extend_from_slice(format!(r#""capabilities":{{{}}}"#, offered.join(",")).as_bytes());
}

/// Writes the instructions of all servers as a further member, where there are any.
pub(crate) fn write_instructions(servers: &[(&str, Option<Answered>)], out: &mut Vec<u8>) {
    let instructions = servers.iter().filter_map(|(name, of)| {
        let text = of.as_ref()?.instructions.as_deref()?;
        Some(format!("# {name}\n\n{text}"))
    });
    let instructions: Vec<String> = instructions.collect();
    if !instructions.is_empty() {
        out.extend_from_slice(b",\"instructions\":");
        out.extend(reply::string(&instructions.join("\n\n")));
    }
}

/// Writes `_meta` with a list of names, where there are any, as a further member.
pub(crate) fn write_meta(member: &str, names: &[&str], out: &mut Vec<u8>) {
    if names.is_empty() {
        return;
    }
    out.extend_from_slice(b",\"_meta\":{");
    out.extend(reply::string(member));
    out.push(b':');
    out.push(b'[');
    for (nth, name) in names.iter().enumerate() {
        if nth > 0 {
            out.push(b',');
        }
        out.extend(reply::string(name));
    }
    out.extend_from_slice(b"]}");
}

#[cfg(test)]
mod tests;
