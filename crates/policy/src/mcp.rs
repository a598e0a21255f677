//! Servers of tools behind one address (the Model Context Protocol): which there are, who may use which, and what of theirs.
//!
//! Invariant: what a filter keeps from a list it keeps from use: both ask the same question, of a server's own name of a thing.
//! Not here: which rule takes a call ([`crate::route`]), messages, names and sessions of the protocol (`mcp`, the crate), limits and who calls ([`crate::front`]).

mod described;
mod ended;
mod expiring;
mod held;
mod kept;
mod known;
mod pins;
mod selection;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::authority::Claim;
use crate::id::{BackendId, RouteId};
use crate::secret::Secret;

pub use self::described::{Described, HttpAnswer, HttpCall, Method, NoCall};
pub use self::ended::{Ended, Mark};
pub use self::held::{Held, HeldChanges, NotHeld, OfClient, URI_BYTES_MAX};
pub use self::kept::{Hearing, Kept, Turn};
pub use self::known::{Answered, KINDS, Known, Listed, OfServer};
pub use self::pins::{Digest, Odd, OnChange, Pins, Seen};
pub use self::selection::{Glob, Holds, Named, Selection, Shows, When};
pub use self::waiting::{Asked, NoRoom, Waiting, Whose};

/// Where clients find it, unless its routes say another path.
pub const PATH: &str = "/mcp";

/// All of it.
#[derive(Debug)]
pub struct Mcp {
    /// The servers, ordered by name.
    pub servers: Vec<Server>,
    /// Who may use which.
    pub routes: Vec<McpRoute>,
    /// Where clients find it: the paths of its routes, each once.
    pub paths: Vec<Box<str>>,
    /// When a tool's name begins with its server's.
    pub prefix: Prefix,
    /// What sessions are sealed with.
    pub secret: Secret,
    /// What they were sealed with before.
    pub previous: Option<Secret>,
    /// How long a session is good.
    pub session: Duration,
    /// How long a server's lists are kept.
    pub lists: Duration,
    /// How long one server is waited for where several are asked.
    pub within: Duration,
    /// Sessions that their clients have ended; of the process, through all configurations.
    pub ended: Arc<Ended>,
    /// What callers without sessions have open at servers with sessions; of the process, as that is.
    pub kept: Arc<Kept>,
    /// What clients with a session have said that servers without sessions are told each time; of the process, as that is.
    pub held: Arc<Held>,
    /// Calls that wait for their clients to answer servers without sessions; of the process, as that is.
    pub waiting: Arc<Waiting>,
    /// What was seen of servers whose tools are pinned; of the process, as those are.
    pub seen: Arc<Seen>,
    /// What is known of servers, for whoever looks at the gate; of the process, as those are.
    pub known: Arc<Known>,
    /// Who gives clients tokens, where they are to learn that from the gate.
    pub oauth: Option<OAuth>,
}

/// What clients learn of who gives them tokens (RFC 9728).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuth {
    /// What is told of each path, in the order of [`Mcp::paths`].
    pub resources: Vec<Resource>,
}

/// What clients learn of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// What tokens for it are for: the whole URL of the path.
    pub url: String,
    /// Where that is told: a whole URL.
    pub metadata_url: String,
    /// What is told there.
    pub metadata: String,
}

/// Where clients ask who gives them tokens, with or without the path of what they want to use.
pub const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

impl Mcp {
    /// Which of its paths this is; none where it is another one.
    #[must_use]
    pub fn path(&self, path: &str) -> Option<u16> {
        let nth = self.paths.iter().position(|of| **of == *path)?;
        u16::try_from(nth).ok()
    }

    /// The path of this number.
    #[must_use]
    pub fn path_at(&self, nth: u16) -> &str {
        let path = self.paths.get(usize::from(nth));
        path.map_or(PATH, |path| path)
    }

    /// Whether a token of this audience is for others of these paths, and not for this one (RFC 8707).
    #[must_use]
    pub fn is_token_for_another(&self, nth: u16, audience: Option<&Claim>) -> bool {
        let resources = self.oauth.as_ref().map_or(&[][..], |of| &of.resources);
        if resources.len() < 2 {
            return false;
        }
        let names = |resource: &Resource| {
            let is_it = |said: &Claim| matches!(said, Claim::Text(text) if **text == *resource.url);
            match audience {
                Some(Claim::List(all)) => all.iter().any(is_it),
                said => said.is_some_and(is_it),
            }
        };
        !resources.get(usize::from(nth)).is_some_and(names) && resources.iter().any(names)
    }

    /// What clients learn at a path of who gives them tokens; nothing where it is none of those.
    #[must_use]
    pub fn resource(&self, path: &str) -> Option<&Resource> {
        let resources = &self.oauth.as_ref()?.resources;
        match path.strip_prefix(METADATA_PATH)? {
            "" => resources.first(),
            rest => resources.get(usize::from(self.path(rest)?)),
        }
    }
}

/// A server.
#[derive(Debug)]
pub struct Server {
    /// Its name, in the names of its tools.
    pub name: Arc<str>,
    /// Where it is.
    pub backend: BackendId,
    /// Its name and where it is, by which what is known of it is kept.
    pub at: Box<str>,
    /// It is a command: each session is a process, so that none is begun to find out what it speaks.
    pub is_command: bool,
    /// It is an HTTP API, which is asked by its description and speaks no such protocol.
    pub described: Option<Arc<dyn Described>>,
    /// What clients see of it.
    pub shows: Shows,
    /// What its tools are to be, where that is pinned.
    pub pins: Option<Pins>,
    /// How often it said that its lists changed; of the process, through all configurations that have a server of this name.
    pub changes: Arc<Changes>,
}

impl Server {
    /// Whether clients are told its instructions. They have no pin: one whose changes are refused could say there what its tools may not.
    #[must_use]
    pub fn tells_instructions(&self) -> bool {
        let pins = self.pins.as_ref();
        pins.is_none_or(|pins| pins.on_change != OnChange::Refuse)
    }
}

/// How often a server said that its lists changed, to whichever worker: what was asked for before is out of date for all.
#[derive(Debug, Default)]
pub struct Changes(AtomicU64);

impl Changes {
    /// So often.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Once more.
    pub fn tell(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

/// Which servers a rule's workloads may use.
#[derive(Debug)]
pub struct McpRoute {
    /// Where its workloads find it, as one of [`Mcp::paths`].
    pub path: u16,
    /// The rule: its workloads, limits and name.
    pub route: RouteId,
    /// Its servers, by their places.
    pub servers: Vec<usize>,
    /// What its workloads see, by whole names: `server__tool`, `server+uri`.
    pub shows: Shows,
    /// Tools that have limits beside the rule's own, by whole names; the first that names a tool counts. The grant of each stands
    /// behind that of the rule.
    pub tool_limits: Vec<Vec<Glob>>,
    /// They are shown two tools in place of all: one finds tools, the other calls one.
    pub is_searched: bool,
    /// Servers that are given a caller's own token where it brings one.
    pub own_tokens: Vec<TakenToken>,
}

/// A header in which callers bring their own token for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenToken {
    /// The server, by its place.
    pub server: usize,
    /// The header, in lower case.
    pub header: Box<str>,
}

/// A token of a caller's, as a server that does not let it in is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallersToken {
    /// One that was brought in this header.
    Brought(Box<str>),
    /// One that may be brought in this header, and was not, where the gate has no credential either.
    Missing(Box<str>),
    /// One that was given for the token by which its caller is known.
    Given,
}

/// When a tool's name begins with its server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prefix {
    /// Each time.
    #[default]
    Always,
    /// Never: a name that two servers have stands for neither.
    Never,
    /// Where two servers have the name.
    OnConflict,
}

/// A URI as whoever decodes it once more reads it: scheme and host in lower case, without percent-encoding, `.`, `..`, `\\` and slashes that
/// follow one another, which file systems take for one. None where it is so already.
#[must_use]
pub fn plain_uri(uri: &str) -> Option<String> {
    let mut plain = uri.to_owned();
    // What is decoded to something that is encoded is decoded by somebody, too.
    for _ in 0..DECODED_TIMES {
        let decoded = decoded(&plain);
        if decoded == plain {
            break;
        }
        plain = decoded;
    }
    let plain = plain.replace('\\', "/");
    let (head, path) = match plain.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (format!("{scheme}://{host}").to_lowercase(), path)
        }
        None => match plain.split_once(':') {
            Some((scheme, path)) => (format!("{}:", scheme.to_lowercase()), path),
            None => (String::new(), &*plain),
        },
    };
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        match part {
            "." => {}
            "" if !kept.is_empty() && parts.peek().is_some() => {}
            ".." if kept.len() > 1 => drop(kept.pop()),
            ".." => {}
            part => kept.push(part),
        }
    }
    let plain = head + &kept.join("/");
    (plain != uri).then_some(plain)
}

/// How many times a URI is decoded at most.
pub const DECODED_TIMES: usize = 3;

fn decoded(text: &str) -> String {
    let decoded = wire::head::percent_decoded(text);
    String::from_utf8_lossy(&decoded).into_owned()
}

impl McpRoute {
    /// Which of the rule's limits of tools are for this one.
    #[must_use]
    pub fn limits_of(&self, tool: &str) -> Option<usize> {
        let mut of = self.tool_limits.iter();
        of.position(|globs| globs.iter().any(|glob| glob.takes(tool)))
    }
}

impl Mcp {
    /// The servers of a rule.
    pub fn servers_of<'s>(&'s self, route: &'s McpRoute) -> impl Iterator<Item = &'s Server> {
        route.servers.iter().filter_map(|at| self.servers.get(*at))
    }

    /// Whether calls of this rule are of this protocol.
    #[must_use]
    pub fn has(&self, route: RouteId) -> bool {
        self.routes.iter().any(|of| of.route == route)
    }
}

#[cfg(test)]
mod tests {
    //! How anybody reads a URI.

    use super::plain_uri;

    #[test]
    fn a_uri_is_known_by_what_anybody_reads_of_it() {
        for (uri, plain) in [
            ("file:///etc/%70asswd", "file:///etc/passwd"),
            ("file:///etc/%2570asswd", "file:///etc/passwd"),
            ("FILE:///etc/passwd", "file:///etc/passwd"),
            ("file:///a/../etc/passwd", "file:///etc/passwd"),
            ("file:///a/%2e%2e/etc/passwd", "file:///etc/passwd"),
            ("file:///a/./b", "file:///a/b"),
            ("file:///../../etc/passwd", "file:///etc/passwd"),
            ("file:///a%2Fb", "file:///a/b"),
            ("file:///%2fetc/passwd", "file:///etc/passwd"),
            ("file:///%2F%2fetc/passwd", "file:///etc/passwd"),
            ("file:///%5cetc/passwd", "file:///etc/passwd"),
            ("file:///x/%2f/..%2f../etc/passwd", "file:///etc/passwd"),
            ("file:///%61/", "file:///a/"),
            ("file:///a\\..\\b", "file:///b"),
            ("https://HOST/a", "https://host/a"),
            ("Memo:a", "memo:a"),
            ("memo://Tea", "memo://tea"),
        ] {
            assert_eq!(plain_uri(uri).as_deref(), Some(plain), "{uri}");
        }
        for uri in [
            "file:///etc/passwd",
            "memo://tea",
            "file:///a/",
            "a:b",
            "",
            "https://host/A?b=../c",
        ] {
            assert_eq!(plain_uri(uri), None, "{uri}");
        }
    }
}
