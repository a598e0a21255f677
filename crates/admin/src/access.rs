//! Who asks, and whether they may: by the host that a request names, by where it comes from, and by what it brings.
//!
//! Invariant: no page of another origin is answered, and what a browser sends along by itself counts only where it says
//! that a page of this endpoint, or the person alone, had it sent; a secret is compared in constant time; what has a role
//! is done for nobody without it.
//! Not here: which request needs which role (`server`, `api`), what roles are (`policy::admin`), logging in (`login`).

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use policy::admin::{Access, Person, Role, Roles};
use policy::cookie;

use crate::gateway::People;
use crate::reply::{Refusal, fault, refusal};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Principal {
    /// Who it is; `None` for those who bring no credential.
    pub(crate) name: Option<String>,
    /// What they brought.
    pub(crate) by: By,
    pub(crate) roles: Roles,
}

/// What somebody brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Nothing,
    Bearer,
    Session,
}

impl By {
    /// In answers and logs.
    pub(crate) const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Bearer => Some("bearer"),
            Self::Session => Some("session"),
        }
    }
}

impl Principal {
    /// As the log says it; who logged in is told apart from a credential of the same name.
    pub(crate) fn shown(&self) -> String {
        match (&self.name, self.by) {
            (Some(name), By::Session) => format!("{name} (session)"),
            (Some(name), _) => name.clone(),
            (None, _) => "anonymous".to_owned(),
        }
    }

    /// Whether this is open to them.
    pub(crate) fn may(&self, role: Role) -> Result<(), Refusal> {
        if self.roles.has(role) {
            return Ok(());
        }
        let needs = role.as_str();
        let says = match &self.name {
            Some(name) => {
                let held = self.roles.names().collect::<Vec<_>>().join(", ");
                let held = if held.is_empty() { "none" } else { &held };
                let given = match self.by {
                    By::Session => "admin.login.roles",
                    By::Nothing | By::Bearer => "admin.bearers.NAME.roles",
                };
                format!(
                    "this needs the role {needs}, and {name} has {held}; roles are given by {given}"
                )
            }
            None => format!(
                "this needs the role {needs}, which nobody has without a credential; write admin: {{ bearers: {{ \
                 NAME: {{ file: FILE, roles: [{needs}] }} }} }}, and bring it as authorization: Bearer …"
            ),
        };
        Err(refusal(StatusCode::FORBIDDEN, "role_required", &says))
    }
}

/// Refuses what a page of another origin sent, or who was led here by a name that is not this gate's. Where people log
/// in, they may follow links from anywhere: the provider sends them back so.
pub(crate) fn check_origin<B>(
    request: &Request<B>,
    access: &Access,
    people: Option<&dyn People>,
) -> Result<(), Refusal> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    // A target in absolute form names one, too.
    let target = request
        .uri()
        .authority()
        .map(|authority| authority.as_str().as_bytes());
    let is_named = access.hosts.allows(host.map(HeaderValue::as_bytes))
        && target.is_none_or(|target| access.hosts.allows(Some(target)));
    if second.is_some() || !is_named {
        let says = "the host that this request names is not one that is answered for; ask by a loopback \
                    address, or add it to listen.hosts";
        let status = StatusCode::MISDIRECTED_REQUEST;
        return Err(refusal(status, "host_not_allowed", says));
    }
    let is_allowed = match people {
        Some(people) => is_own(request, people) || is_alone(request) || is_navigation(request),
        None => !request.headers().contains_key(header::ORIGIN) && says_no_other_site(request),
    };
    // What does not come from a browser says nothing of where it comes from.
    let says_nothing =
        !request.headers().contains_key(header::ORIGIN) && !request.headers().contains_key(SITE);
    if is_allowed || says_nothing {
        return Ok(());
    }
    Err(foreign("pages of other origins are not answered here"))
}

/// Refuses what a session must not do for whoever had it sent.
pub(crate) fn check_own<B>(request: &Request<B>, people: &dyn People) -> Result<(), Refusal> {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_led = is_alone(request) || is_navigation(request);
    if is_own(request, people) || (reads && is_led) {
        return Ok(());
    }
    Err(foreign(
        "a session counts for pages of this endpoint alone; programs bring authorization: Bearer …",
    ))
}

fn foreign(says: &str) -> Refusal {
    refusal(StatusCode::FORBIDDEN, "origin_not_allowed", says)
}

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Whether this header says this word, once.
fn says<B>(request: &Request<B>, name: &HeaderName, word: &str) -> bool {
    let mut values = request.headers().get_all(name).iter();
    values.next().is_some_and(|value| value == word) && values.next().is_none()
}

/// Whether a page of this endpoint had it sent.
fn is_own<B>(request: &Request<B>, people: &dyn People) -> bool {
    if request.headers().contains_key(header::ORIGIN) {
        return says(request, &header::ORIGIN, people.origin());
    }
    says(request, &SITE, "same-origin")
}

/// Whether the person alone did: by the address bar, or a bookmark.
fn is_alone<B>(request: &Request<B>) -> bool {
    !request.headers().contains_key(header::ORIGIN) && says(request, &SITE, "none")
}

fn says_no_other_site<B>(request: &Request<B>) -> bool {
    !request.headers().contains_key(SITE)
        || says(request, &SITE, "none")
        || says(request, &SITE, "same-origin")
}

/// Whether a person follows a link, and sees what comes of it as a page of its own: no other page can read that.
fn is_navigation<B>(request: &Request<B>) -> bool {
    *request.method() == Method::GET
        && !request.headers().contains_key(header::ORIGIN)
        && says(request, &MODE, "navigate")
        && says(request, &DEST, "document")
}

/// Whether a person waits for a page, and not a program for an answer.
pub(crate) fn is_for_a_person<B>(request: &Request<B>) -> bool {
    let accepted = request.headers().get_all(header::ACCEPT).iter();
    let mut kinds = accepted.filter_map(|line| line.to_str().ok());
    let accepts = kinds.any(|line| {
        let mut kinds = line.split([',', ';']).map(str::trim);
        kinds.any(|kind| kind.eq_ignore_ascii_case("text/html"))
    });
    let is_loaded_by_script =
        request.headers().contains_key(MODE) && !says(request, &MODE, "navigate");
    *request.method() == Method::GET
        && accepts
        && !is_loaded_by_script
        && !request.headers().contains_key(header::AUTHORIZATION)
}

/// Who asks. Where no credential is configured, what is brought is not looked at.
pub(crate) fn principal<B>(
    request: &Request<B>,
    access: &Access,
    people: Option<&dyn People>,
) -> Result<Principal, Refusal> {
    let headers = request.headers();
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (first, second) = (given.next(), given.next());
    if let (Some(only), None) = (first, second)
        && let Some(bearer) = brought(only).and_then(|secret| access.bearer(secret))
    {
        return Ok(Principal {
            name: Some(bearer.name.to_string()),
            by: By::Bearer,
            roles: bearer.roles,
        });
    }
    if access.anonymous != Roles::NONE {
        return Ok(Principal {
            name: None,
            by: By::Nothing,
            roles: access.anonymous,
        });
    }
    if first.is_none()
        && let Some(people) = people
        && let Some(Person { name, roles }) = person(headers, people)
    {
        check_own(request, people)?;
        return Ok(Principal {
            name: Some(name),
            by: By::Session,
            roles,
        });
    }
    let says = "send the gateway's admin credential as authorization: Bearer …";
    let mut refused = fault(StatusCode::UNAUTHORIZED, "credential_required", says);
    let challenge = HeaderValue::from_static("Bearer realm=\"tollgate\"");
    let headers = refused.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, challenge);
    Err(Box::new(refused))
}

/// What stands behind `Bearer`.
fn brought(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, secret) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(secret)
}

/// Whose session a request brings; of two there is none.
fn person(headers: &HeaderMap, people: &dyn People) -> Option<Person> {
    let session = cookie_of(headers, &people.cookies().session)?;
    let who = people.who(session);
    who.inspect_err(|reason| tracing::debug!(reason, "not a session"))
        .ok()
}

/// The one cookie of a name.
pub(crate) fn cookie_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h [u8]> {
    let lines = headers.get_all(header::COOKIE).iter();
    let found = cookie::find(lines.map(HeaderValue::as_bytes), name);
    found.ok().flatten()
}
