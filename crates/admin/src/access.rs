//! Who asks, and whether they may: by the host that a request names, by where it comes from, and by what it brings.
//!
//! Invariant: no web page is answered; a secret is compared in constant time; what has a role is done for nobody
//! without it.
//! Not here: which request needs which role (`server`, `api`), what roles are (`policy::admin`).

use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use policy::admin::{Access, Role, Roles};

use crate::reply::{Refusal, fault, refusal};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Principal {
    /// Whose credential it is; `None` for those who bring none.
    pub(crate) name: Option<String>,
    pub(crate) roles: Roles,
}

impl Principal {
    /// As the log says it.
    pub(crate) fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or("anonymous")
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
                format!(
                    "this needs the role {needs}, and {name} has {held}; roles are given by admin.bearers.NAME.roles"
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

/// Refuses what a web page sent, or who was led here by a name that is not this gate's.
pub(crate) fn check_origin<B>(request: &Request<B>, access: &Access) -> Result<(), Refusal> {
    let header = |name| request.headers().get(name).map(HeaderValue::as_bytes);
    if !access.hosts.allows(header(header::HOST)) {
        let says = "the host that this request names is not one that is answered for; ask by a loopback \
                    address, or add it to listen.hosts";
        let status = StatusCode::MISDIRECTED_REQUEST;
        return Err(refusal(status, "host_not_allowed", says));
    }
    let site = request.headers().get("sec-fetch-site");
    let is_foreign = site.is_some_and(|site| site != "none" && site != "same-origin");
    if header(header::ORIGIN).is_some() || is_foreign {
        let says = "web pages are not answered here";
        return Err(refusal(StatusCode::FORBIDDEN, "origin_not_allowed", says));
    }
    Ok(())
}

/// Who asks. Where no credential is configured, what is brought is not looked at.
pub(crate) fn principal(headers: &HeaderMap, access: &Access) -> Result<Principal, Refusal> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let known = match (given.next(), given.next()) {
        (Some(only), None) => brought(only).and_then(|secret| access.bearer(secret)),
        _ => None,
    };
    if let Some(bearer) = known {
        return Ok(Principal {
            name: Some(bearer.name.to_string()),
            roles: bearer.roles,
        });
    }
    if access.anonymous != Roles::NONE {
        return Ok(Principal {
            name: None,
            roles: access.anonymous,
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
