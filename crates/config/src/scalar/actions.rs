//! What routes of plain HTTP change: names of headers, hosts, paths, and where a redirect leads.
//!
//! Not here: what is changed (`policy::plain::actions`).

use policy::plain::fields::Editing;
use serde_json::{Value, json};

use super::header::lower_case;
use crate::decode::{Problem, Takes, Written};
use crate::target::is_host;

/// The name of a header that is written, in lower case.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EditedHeader(pub(crate) String);

impl Written for EditedHeader {
    const PATTERN: &'static str = HEADER;

    fn read(text: &str) -> Result<Self, Problem> {
        match edited(text)? {
            (name, Editing::Any) => Ok(Self(name)),
            _ => {
                let is = "may carry a credential, and can be removed alone";
                Err(Problem::new(is, "name another"))
            }
        }
    }
}

/// The name of a header that is taken out, in lower case.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RemovedHeader(pub(crate) String);

impl Written for RemovedHeader {
    const PATTERN: &'static str = HEADER;

    fn read(text: &str) -> Result<Self, Problem> {
        edited(text).map(|(name, _)| Self(name))
    }
}

const HEADER: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$";

/// A name in lower case, of which something may be done.
fn edited(text: &str) -> Result<(String, Editing), Problem> {
    let name = lower_case(text, "write a name such as x-canary")?;
    let problem = match Editing::of(&name) {
        of @ (Editing::Any | Editing::Removal) => return Ok((name, of)),
        Editing::Host => Problem::new(
            "names the host",
            "write upstream_host for that of a request",
        ),
        Editing::Connection => Problem::new("belongs to a connection", "name another"),
        Editing::Gate => Problem::new("is the gate's own", "name another"),
    };
    Err(problem)
}

/// The host that an upstream or a client is told: `client`, or a name.
#[derive(Clone)]
pub(crate) struct UpstreamHostName(pub(crate) String);

impl Written for UpstreamHostName {
    const PATTERN: &'static str = r"^[A-Za-z0-9._-]{1,253}$";

    fn read(text: &str) -> Result<Self, Problem> {
        match is_host(text) {
            true => Ok(Self(text.to_ascii_lowercase())),
            false => Err(Problem::new(
                "is no name of a host",
                "write one such as app.example",
            )),
        }
    }
}

/// A name that a certificate has: a host's, or a URI.
#[derive(Clone)]
pub(crate) struct AltName(pub(crate) String);

impl Written for AltName {
    const PATTERN: &'static str =
        r"^([A-Za-z0-9._-]{1,253}|[A-Za-z][A-Za-z0-9+.-]*:[!-~]{1,1000})$";

    fn read(text: &str) -> Result<Self, Problem> {
        if is_host(text) {
            return Ok(Self(text.to_ascii_lowercase()));
        }
        let is_scheme = |scheme: &str| {
            let mut bytes = scheme.bytes();
            let is_of_it = |b: u8| b.is_ascii_alphanumeric() || b"+.-".contains(&b);
            bytes.next().is_some_and(|b| b.is_ascii_alphabetic()) && bytes.all(is_of_it)
        };
        let uri = text.split_once(':').filter(|(scheme, rest)| {
            let is_visible = rest.bytes().all(|b| b.is_ascii_graphic());
            is_scheme(scheme) && !rest.is_empty() && rest.len() <= 1000 && is_visible
        });
        match uri {
            Some(_) => Ok(Self(text.to_owned())),
            None => Err(Problem::new(
                "is neither the name of a host nor a URI",
                "write one such as app.example or spiffe://cluster.local/ns/a/sa/b",
            )),
        }
    }
}

/// A path that takes the place of another.
#[derive(Clone)]
pub(crate) struct ReplacedPath(pub(crate) String);

impl Written for ReplacedPath {
    const PATTERN: &'static str = r"^(/[^?#\s]{0,1023})?$";

    fn read(text: &str) -> Result<Self, Problem> {
        let is_plain = |b: u8| b.is_ascii_graphic() && !b"?#\"<>\\^`{|}".contains(&b);
        let is_path = text.len() <= 1024
            && text.starts_with('/')
            && text.bytes().all(is_plain)
            && !text.split('/').any(|segment| matches!(segment, "." | ".."));
        match text.is_empty() || is_path {
            true => Ok(Self(text.to_owned())),
            false => Err(Problem::new("is no path", "write one such as /echo")),
        }
    }
}

/// `http` or `https`.
#[derive(Clone)]
pub(crate) struct WebScheme(pub(crate) &'static str);

impl Written for WebScheme {
    const PATTERN: &'static str = "^https?$";

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "http" => Ok(Self("http")),
            "https" => Ok(Self("https")),
            _ => Err(Problem::new("is no scheme", "write http or https")),
        }
    }
}

/// A port.
#[derive(Clone)]
pub(crate) struct TcpPort(pub(crate) u16);

impl Written for TcpPort {
    const TAKES: Takes = Takes::Number;

    fn read(text: &str) -> Result<Self, Problem> {
        match text.parse() {
            Ok(port) if port > 0 => Ok(Self(port)),
            _ => Err(Problem::new("is no port", "write 1 to 65535")),
        }
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": 65535 })
    }
}

/// The status of a redirect.
#[derive(Clone)]
pub(crate) struct RedirectStatus(pub(crate) u16);

impl Written for RedirectStatus {
    const TAKES: Takes = Takes::Number;

    fn read(text: &str) -> Result<Self, Problem> {
        match text.parse() {
            Ok(status @ (301 | 302 | 303 | 307 | 308)) => Ok(Self(status)),
            _ => Err(Problem::new(
                "is no status of a redirect",
                "write 301, 302, 303, 307 or 308",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": [301, 302, 303, 307, 308] })
    }
}
