//! Which header fields of plain HTTP pass: all but those that end with a connection, that prove who calls, or by which proxies
//! tell a server who calls and where a request goes.
//!
//! Invariant: no credential that the gate takes, nor its session's cookie, leaves with a call; no field of a client tells a
//! service who it is, or another path or method than was authorized.
//! Not here: calls to models, whose fields pass by lists ([`crate::credential`]); what the gate adds (`exchange::request`).

use wire::head::{FieldRef, Head, Known, KnownSet, Method, RequestHead, Version};

use crate::credential;
use crate::login::CookieNames;

/// Fields that say how one connection is used, or how long a body is, which the gate says anew.
const OF_A_CONNECTION: KnownSet = KnownSet::of(&[
    Known::Connection,
    Known::KeepAlive,
    Known::ProxyConnection,
    Known::Te,
    Known::Trailer,
    Known::TransferEncoding,
    Known::ContentLength,
    Known::Upgrade,
    Known::Http2Settings,
    Known::ProxyAuthenticate,
    Known::ProxyAuthorization,
]);

/// Fields of a request that the gate reads and says anew, or keeps to itself.
const OF_THE_GATE: KnownSet = KnownSet::of(&[
    Known::Host,
    Known::Expect,
    Known::Authorization,
    Known::XApiKey,
    Known::ApiKey,
    Known::XGoogApiKey,
    Known::XRequestId,
    Known::XRealIp,
    Known::Forwarded,
    Known::XForwardedFor,
    Known::XForwardedHost,
    Known::XForwardedPort,
    Known::XForwardedProto,
    Known::XGoogUserProject,
    Known::XAccelBuffering,
    Known::Amz,
]);

/// Whether a request asks that its connection become a WebSocket (RFC 6455, 4.1), which is HTTP/1.1's alone.
#[must_use]
pub fn asks_for_websocket(head: &RequestHead) -> bool {
    head.version == Version::H11
        && head.method == Method::Get
        && names_websocket(&head.fields)
        && head.fields.connection_names(b"upgrade")
        && only(&head.fields, b"sec-websocket-key").is_some_and(|key| key.len() == KEY_LENGTH)
        && only(&head.fields, b"sec-websocket-version") == Some(b"13")
}

/// 16 bytes in Base64.
const KEY_LENGTH: usize = 24;

/// The value of a field that stands there once, and does not end with the connection.
fn only<'f>(fields: &'f Head, name: &[u8]) -> Option<&'f [u8]> {
    let mut named = fields.iter().filter(|field| field.name == name);
    let value = named.next()?.value;
    (named.next().is_none() && !fields.connection_names(name)).then_some(value)
}

/// Whether a head names WebSocket, and it alone, as the protocol to be spoken on.
pub(crate) fn names_websocket(fields: &Head) -> bool {
    let named = fields.only(Known::Upgrade).ok().flatten();
    named.is_some_and(|protocol| protocol.eq_ignore_ascii_case(b"websocket"))
}

/// Whether the configuration may tell calls apart by this header, in lower case: it carries no credential, and is no part of
/// the connection.
#[must_use]
pub fn may_be_matched(name: &str) -> bool {
    let known = Known::of(name.as_bytes());
    let is_odd = matches!(known, Known::Host | Known::Amz) || OF_A_CONNECTION.contains(known);
    !is_odd && !credential::may_carry(name)
}

/// What the configuration may do with a header of calls and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Editing {
    /// Write it and take it out.
    Any,
    /// Take it out, as it may carry a credential: that gives nothing away.
    Removal,
    /// Nothing: it names the host.
    Host,
    /// Nothing: it belongs to a connection.
    Connection,
    /// Nothing: it is the gate's own.
    Gate,
}

impl Editing {
    /// Of a name in lower case.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match Known::of(name.as_bytes()) {
            Known::Host => Self::Host,
            Known::XRequestId | Known::Traceparent => Self::Gate,
            known if OF_A_CONNECTION.contains(known) => Self::Connection,
            Known::Amz => Self::Removal,
            _ if credential::may_carry(name) => Self::Removal,
            _ => Self::Any,
        }
    }
}

/// Whether a field of a request goes upstream; `identity` is the header that names workloads.
#[must_use]
pub fn forwards(field: &FieldRef<'_>, fields: &Head, identity: &[u8]) -> bool {
    !OF_A_CONNECTION.contains(field.known)
        && !OF_THE_GATE.contains(field.known)
        && (field.known != Known::Other || is_of_a_client(field.name))
        && field.name != identity
        && !fields.connection_names(field.name)
}

/// Whether a name, in lower case, is none by which proxies tell servers who calls, or have them serve something else. One
/// that is not of letters, digits and `-` is another name to a server that reads `_` as `-`.
fn is_of_a_client(name: &[u8]) -> bool {
    let is_plain = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-';
    // What a browser asks before a call steers nothing.
    name == b"access-control-request-method"
        || name.iter().all(is_plain)
            && !name.starts_with(b"x-auth-request")
            && !name.split(|b| *b == b'-').any(is_steering)
}

fn is_steering(word: &[u8]) -> bool {
    matches!(
        word,
        b"accel"
            | b"anonymous"
            | b"assertion"
            | b"authenticated"
            | b"authentik"
            | b"cert"
            | b"certificate"
            | b"clientcert"
            | b"clientip"
            | b"cluster"
            | b"connecting"
            | b"consumer"
            | b"credential"
            | b"destinationurl"
            | b"dn"
            | b"email"
            | b"envoy"
            | b"forwarded"
            | b"group"
            | b"groups"
            | b"hasura"
            | b"host"
            | b"iap"
            | b"identity"
            | b"impersonate"
            | b"ip"
            | b"jwt"
            | b"method"
            | b"middleware"
            | b"mtls"
            | b"oidc"
            | b"orgid"
            | b"original"
            | b"override"
            | b"pomerium"
            | b"principal"
            | b"proxy"
            | b"real"
            | b"remote"
            | b"replaced"
            | b"reproxy"
            | b"rewrite"
            | b"role"
            | b"roles"
            | b"script"
            | b"sendfile"
            | b"spiffe"
            | b"ssl"
            | b"subject"
            | b"tls"
            | b"tollgate"
            | b"uri"
            | b"user"
            | b"userid"
            | b"userinfo"
            | b"username"
            | b"verify"
            | b"webauth"
    )
}

/// A line of cookies without those of the gate's own login; `None` where nothing is left.
#[must_use]
pub fn cookies_but(line: &[u8], ours: &CookieNames) -> Option<Vec<u8>> {
    let pairs = line.split(|b| *b == b';').map(<[u8]>::trim_ascii);
    let kept = pairs.filter(|pair| !pair.is_empty() && !is_ours(pair, ours));
    let kept: Vec<&[u8]> = kept.collect();
    (!kept.is_empty()).then(|| kept.join(&b"; "[..]))
}

fn is_ours(pair: &[u8], ours: &CookieNames) -> bool {
    let name = pair.split(|b| *b == b'=').next().unwrap_or_default();
    let name = name.trim_ascii();
    name == ours.session.as_bytes() || name == ours.state.as_bytes()
}

/// Whether a field of an answer goes to the client. `ours`: the cookies of the gate's login, which no service sets;
/// `has_cors`: the gate itself tells the page what it may read.
#[must_use]
pub fn returns(
    field: &FieldRef<'_>,
    fields: &Head,
    ours: Option<&CookieNames>,
    has_cors: bool,
) -> bool {
    let is_held = match field.known {
        // Another way to the service would lead past the gate; the request's id is the gate's.
        Known::AltSvc | Known::XRequestId | Known::XAccelBuffering => true,
        Known::SetCookie => ours.is_some_and(|ours| is_ours(field.value, ours)),
        Known::Other => {
            steers_a_proxy(field.name)
                || is_rate_limit(field.name)
                || has_cors && field.name.starts_with(b"access-control-")
        }
        known => OF_A_CONNECTION.contains(known),
    };
    !is_held && !fields.connection_names(field.name)
}

/// By such a field a service has a proxy in front of the gate serve something else.
fn steers_a_proxy(name: &[u8]) -> bool {
    let mut words = name.split(|b| *b == b'-');
    words.any(|word| matches!(word, b"accel" | b"sendfile" | b"reproxy"))
}

/// The names by which the gate tells of its own limits.
fn is_rate_limit(name: &[u8]) -> bool {
    let rest = name.strip_prefix(b"x-ratelimit-");
    rest.is_some_and(|rest| rest.ends_with(b"-requests") || rest.ends_with(b"-tokens"))
}
