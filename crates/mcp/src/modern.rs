//! Requests of versions without sessions: what each says of itself, in `_meta` and in headers beside it.
//!
//! Invariant: what a header says is what the body says, or the request is refused; the gate acts on the body. Of clients that are known
//! to mix the versions some headers are not looked at ([`Client::mixes`]), and never one that names another thing than the body.
//! Not here: headers that come of a tool's arguments (`header`), what is made of a request (`bridge`).

use std::borrow::Cow;
use std::ops::Range;

use wire::json::Kind;

use crate::envelope::{Fault, members, text_of};
use crate::header::{self, Header};
use crate::version::Version;

/// Member of `_meta`: the version of a request.
pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Member of `_meta`: what the client of a request can do.
pub const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Member of `_meta`: which client it is.
pub const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// Member of `_meta`: which log messages of a request its client wants.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Clients that are known to send headers of one version with bodies of another, by the beginning of their names or of `user-agent`.
const MIXING: [&str; 6] = [
    "claude-code",
    "claude-ai",
    "claude/",
    "claude desktop",
    "github-copilot",
    "copilot",
];

/// What a request says of itself in `_meta`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta<'a> {
    /// Its version.
    pub version: Option<Cow<'a, str>>,
    /// What its client can do, as an object of JSON.
    pub capabilities: Option<&'a [u8]>,
    /// Its client's name.
    pub client: Option<Cow<'a, str>>,
    /// The lowest level of log messages that it wants; none where it wants none.
    pub log_level: Option<Level>,
}

impl<'a> Meta<'a> {
    /// Reads it out of the params of a message.
    ///
    /// # Errors
    /// [`Fault`] where two readers would read two things.
    pub fn read(message: &'a [u8], params: Option<&Range<usize>>) -> Result<Self, Fault> {
        let Some(params) = params else {
            return Ok(Self::default());
        };
        let text = message.get(params.clone()).unwrap_or_default();
        let [meta] = members(text, ["_meta"], 0)?;
        let Some((Kind::Object, text, _)) = meta else {
            return Ok(Self::default());
        };
        let names = [VERSION, CAPABILITIES, CLIENT, LOG_LEVEL];
        let [version, capabilities, client, level] = members(text, names, 0)?;
        let client = match client {
            Some((Kind::Object, text, _)) => members(text, ["name"], 0)?[0].take(),
            _ => None,
        };
        Ok(Self {
            version: version.as_ref().and_then(text_of),
            capabilities: match capabilities {
                Some((Kind::Object, text, _)) => Some(text),
                _ => None,
            },
            client: client.as_ref().and_then(text_of),
            log_level: level
                .as_ref()
                .and_then(text_of)
                .and_then(|level| Level::of(&level)),
        })
    }
}

/// How bad what a log message tells of is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(u8);

impl Level {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES
            .get(usize::from(self.0))
            .copied()
            .unwrap_or_default()
    }

    /// The level that the params of `logging/setLevel` name.
    #[must_use]
    pub fn asked(message: &[u8], params: Option<&Range<usize>>) -> Option<Self> {
        let text = message.get(params?.clone())?;
        let [level] = members(text, ["level"], 0).ok()?;
        Self::of(&text_of(&level?)?)
    }

    const NAMES: [&str; 8] = [
        "debug",
        "info",
        "notice",
        "warning",
        "error",
        "critical",
        "alert",
        "emergency",
    ];

    /// By its name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let place = Self::NAMES.iter().position(|of| *of == name)?;
        u8::try_from(place).ok().map(Self)
    }
}

/// What a request says of itself in headers.
#[derive(Debug, Clone, Copy)]
pub struct Headers<'a> {
    /// `mcp-protocol-version`
    pub version: Header<'a>,
    /// `mcp-method`
    pub method: Header<'a>,
    /// `mcp-name`
    pub name: Header<'a>,
    /// `user-agent`
    pub agent: Option<&'a [u8]>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// Its `_meta` has not what it must have.
    Meta(&'static str),
    /// A header is missing, or says something else than the body.
    Header(String),
    /// Nobody speaks its version here.
    Version(String),
}

/// Which client it is, as far as that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// It is one of those that mix versions. It says so itself: whoever lies gets no more than a missing header forgiven.
    pub mixes: bool,
}

impl Client {
    /// By its name, or its `user-agent`.
    #[must_use]
    pub fn of(name: Option<&str>, agent: Option<&[u8]>) -> Self {
        let agent = agent.and_then(|agent| std::str::from_utf8(agent).ok());
        let said = [name, agent];
        let mut said = said.into_iter().flatten().map(str::to_ascii_lowercase);
        Self {
            mixes: said.any(|said| MIXING.iter().any(|of| said.starts_with(of))),
        }
    }
}

/// Whether a message is of a version without sessions. One that says neither so nor otherwise is not: then it needs a session.
#[must_use]
pub fn is_modern(meta: &Meta<'_>, version: Header<'_>, method: Option<&str>) -> bool {
    let is_new = |said: &[u8]| said == Version::V20260728.as_str().as_bytes();
    match version {
        _ if meta.version.is_some() => true,
        // A handshake is one of the older versions, whatever its client's headers say.
        Header::One(said) => method != Some("initialize") && is_new(said),
        Header::None | Header::Many => false,
    }
}

/// Checks a request of such a version: `named` is what it names, where its method names something in a header.
///
/// # Errors
/// [`Unfit`].
pub fn check(
    method: &str,
    named: Option<&str>,
    meta: &Meta<'_>,
    said: &Headers<'_>,
) -> Result<Client, Unfit> {
    let client = Client::of(meta.client.as_deref(), said.agent);
    let Some(version) = &meta.version else {
        return Err(Unfit::Meta(VERSION));
    };
    if meta.capabilities.is_none() {
        return Err(Unfit::Meta(CAPABILITIES));
    }
    check_version(version, said.version, client)?;
    if **version != *Version::V20260728.as_str() {
        return Err(Unfit::Version(version.chars().take(64).collect()));
    }
    match said.method {
        Header::One(of) if of == method.as_bytes() => {}
        Header::None if client.mixes => {}
        // It goes on sending the header of its first request.
        Header::One(b"server/discover") if client.mixes => {}
        of => return Err(Unfit::Header(mismatch("Mcp-Method", of, method))),
    }
    let Some(named) = named else {
        // What could not be read of it is refused for that.
        return match said.name {
            Header::One(_) | Header::Many if names_nothing(method) && !client.mixes => {
                let says = format!(
                    "Header mismatch: the header Mcp-Name is sent with {method}, which names nothing by it"
                );
                Err(Unfit::Header(says))
            }
            _ => Ok(client),
        };
    };
    match said.name {
        Header::One(of) if header::decoded(of).is_some_and(|of| of == named) => Ok(client),
        Header::None if client.mixes => Ok(client),
        of => Err(Unfit::Header(mismatch("Mcp-Name", of, named))),
    }
}

fn check_version(version: &str, said: Header<'_>, client: Client) -> Result<(), Unfit> {
    let is_legacy = |said: &[u8]| {
        let said = std::str::from_utf8(said).ok();
        said.is_some_and(|said| Version::of_server(said).is_some())
    };
    match said {
        Header::One(of) if of == version.as_bytes() => Ok(()),
        Header::None | Header::Many if client.mixes => Ok(()),
        Header::One(of)
            if client.mixes
                && once(of).is_some_and(|of| is_legacy(of) || of == version.as_bytes()) =>
        {
            Ok(())
        }
        of => Err(Unfit::Header(mismatch("MCP-Protocol-Version", of, version))),
    }
}

/// A value that was sent several times on one line, once.
#[must_use]
pub fn once(said: &[u8]) -> Option<&[u8]> {
    let mut values = said.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

fn mismatch(name: &str, said: Header<'_>, body: &str) -> String {
    let body: String = body.chars().take(128).collect();
    match said {
        Header::None => {
            format!("Header mismatch: the header {name} is missing; the body says '{body}'")
        }
        Header::Many => format!("Header mismatch: the header {name} is sent more than once"),
        Header::One(said) => {
            let said = String::from_utf8_lossy(said);
            let said: String = said.chars().take(128).collect();
            format!(
                "Header mismatch: {name} header value '{said}' does not match body value '{body}'"
            )
        }
    }
}

/// The methods that are served and name nothing. Of others nothing is known: they are refused by name.
#[must_use]
pub fn names_nothing(method: &str) -> bool {
    matches!(
        method,
        "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "server/discover"
            | "subscriptions/listen"
    )
}

/// The methods whose requests say in a header what they name.
#[must_use]
pub fn is_named(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

#[cfg(test)]
mod tests;
