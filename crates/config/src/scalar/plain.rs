//! What a route of plain HTTP matches by: paths, methods, hosts and names of headers.
//!
//! Not here: which call matches (`policy::plain`), what such a route may say (`lower::plain`).

use policy::plain::{HostPattern, PathFault, PathPattern};

use super::header::lower_case;
use super::text::is_of;
use crate::decode::{Problem, Written};
use crate::target::is_host;

/// A path: exact, with `{…}` for one segment, or with `/*` at its end.
#[derive(Clone)]
pub(crate) struct Path(pub(crate) PathPattern);

impl Written for Path {
    const PATTERN: &'static str = r"^/[^?#\s]{0,1023}$";

    fn read(text: &str) -> Result<Self, Problem> {
        let read = if text.len() > 1024 {
            Err(PathFault::Path)
        } else {
            PathPattern::read(text)
        };
        read.map(Self).map_err(|fault| {
            let hint = match fault {
                PathFault::Api => {
                    "give the service another path here, and say its own by `rewrite` (an HTTPRoute: URLRewrite)"
                }
                PathFault::Path | PathFault::Star | PathFault::Braces => {
                    "write /echo, /users/{id} or /files/*, or /* for every path"
                }
            };
            Problem::new(fault.to_string(), hint)
        })
    }
}

/// Where callers find servers of tools: one path.
#[derive(Clone)]
pub(crate) struct ToolPath(pub(crate) String);

impl Written for ToolPath {
    const PATTERN: &'static str = r"^/[^?#*{}%\s]{1,255}$";

    fn read(text: &str) -> Result<Self, Problem> {
        let is_one = |pattern: &PathPattern| pattern.exact().is_some();
        let is_plain = text.len() > 1 && !text.contains('%') && !text.ends_with('/');
        let is_own = text == "/.well-known" || text.starts_with("/.well-known/");
        let read = PathPattern::read(text).ok().filter(is_one);
        match read.filter(|_| text.len() <= 256 && is_plain && !is_own) {
            Some(_) => Ok(Self(text.to_owned())),
            None => Err(Problem::new(
                "is no path for servers of tools",
                "write one such as /mcp or /tools/github, and none below /v1 or /.well-known",
            )),
        }
    }
}

/// Whether servers of tools may be found at this path.
#[must_use]
pub fn is_tool_path(text: &str) -> bool {
    ToolPath::read(text).is_ok()
}

/// A text that a call says, whatever it is.
#[derive(Clone)]
pub(crate) struct MatchedText(pub(crate) String);

impl Written for MatchedText {
    const PATTERN: &'static str = "^.{0,1024}$";

    fn read(text: &str) -> Result<Self, Problem> {
        match text.len() <= 1024 {
            true => Ok(Self(text.to_owned())),
            false => Err(Problem::new("is longer than 1024 bytes", "")),
        }
    }
}

/// A method, in capitals; `=GET` and `=HEAD` for one of the two alone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct MethodName(pub(crate) String);

impl Written for MethodName {
    const PATTERN: &'static str = "^=?[A-Z][A-Z-]{0,31}$";

    fn read(text: &str) -> Result<Self, Problem> {
        let alone = text.strip_prefix('=');
        if matches!(alone, Some("GET" | "HEAD")) {
            return Ok(Self(text.to_owned()));
        }
        let is_method = is_of(text, 32, |b| b.is_ascii_uppercase() || b == b'-');
        match text {
            "HEAD" => {
                let hint = "write GET: it stands for both, or =HEAD for it alone";
                Err(Problem::new("goes with GET", hint))
            }
            "TRACE" | "CONNECT" => Err(Problem::new("is never let through", "leave it out")),
            _ if is_method && !text.starts_with('-') => Ok(Self(text.to_owned())),
            _ => Err(Problem::new(
                "is not a method",
                "write GET, POST or another in capitals",
            )),
        }
    }
}

/// A host without a port, or `*.` and a domain for each name below it.
#[derive(Clone)]
pub(crate) struct MatchedHost(pub(crate) HostPattern);

impl Written for MatchedHost {
    const PATTERN: &'static str = r"^((\*\.)?[A-Za-z0-9._-]{1,253}|\[?[0-9A-Fa-f:.]+\]?)$";

    fn read(text: &str) -> Result<Self, Problem> {
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        let host = bare.unwrap_or(text).to_ascii_lowercase();
        let is_address = host.parse::<std::net::IpAddr>().is_ok();
        match host.strip_prefix("*.") {
            Some(domain) if is_host(domain) => Ok(Self(HostPattern::Below(domain.into()))),
            None if is_address || is_host(&host) => Ok(Self(HostPattern::Exact(host.into()))),
            _ => {
                let hint = "write a name without a port, such as app.example, or *.example for all below it";
                Err(Problem::new("is not a host", hint))
            }
        }
    }
}

/// The name of a header that calls are told apart by, in lower case.
#[derive(Clone)]
pub(crate) struct MatchedHeader(pub(crate) String);

impl Written for MatchedHeader {
    const PATTERN: &'static str = "^[0-9A-Za-z-]{1,128}$";

    fn read(text: &str) -> Result<Self, Problem> {
        let name = lower_case(text, "write a name such as x-canary")?;
        if policy::plain::fields::may_be_matched(&name) {
            return Ok(Self(name));
        }
        let is = "names the host, belongs to a connection, or may carry a credential";
        Err(Problem::new(is, "name another"))
    }
}
