//! Who is answered: by the host that a request names, by where it comes from, and by what it brings.
//!
//! Invariant: no web page is answered; where a bearer is configured, only probes are answered without it, and it is
//! compared in constant time.
//! Not here: what is answered (`server`, `api`).

use http::{HeaderValue, Request, StatusCode, header};
use policy::web::Access;

use crate::reply::{Reply, fault};

/// The answer to who may not ask.
pub(crate) fn refused<B>(request: &Request<B>, access: &Access) -> Option<Reply> {
    let header = |name| request.headers().get(name).map(HeaderValue::as_bytes);
    if !access.hosts.allows(header(header::HOST)) {
        let says = "the host that this request names is not one that is answered for; ask by a loopback \
                    address, or add it to listen.hosts";
        let status = StatusCode::MISDIRECTED_REQUEST;
        return Some(fault(status, "host_not_allowed", says));
    }
    let site = request.headers().get("sec-fetch-site");
    let is_foreign = site.is_some_and(|site| site != "none" && site != "same-origin");
    if header(header::ORIGIN).is_some() || is_foreign {
        let says = "web pages are not answered here";
        return Some(fault(StatusCode::FORBIDDEN, "origin_not_allowed", says));
    }
    let bearer = access.bearer.as_ref()?;
    let is_probe = matches!(
        request.uri().path(),
        "/livez" | "/health" | "/healthz" | "/readyz"
    );
    let mut given = request.headers().get_all(header::AUTHORIZATION).iter();
    let is_known = match (given.next(), given.next()) {
        (Some(only), None) => brought(only).is_some_and(|secret| bearer.is(secret)),
        _ => false,
    };
    if is_probe || is_known {
        return None;
    }
    let says = "send the gateway's admin credential as authorization: Bearer …";
    let mut refused = fault(StatusCode::UNAUTHORIZED, "credential_required", says);
    let challenge = HeaderValue::from_static("Bearer realm=\"tollgate\"");
    let headers = refused.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, challenge);
    Some(refused)
}

/// What stands behind `Bearer`.
fn brought(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, secret) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(secret)
}
