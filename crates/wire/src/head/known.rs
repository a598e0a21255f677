//! The field names that the gate gives a meaning to, resolved once when a field is added.
//!
//! Invariant: no two names share a slot, checked when compiling; `Known::of` compares with one name.
//! Not here: what each field means (`http1` for framing, `policy` for the rest).

macro_rules! known {
    ($($name:literal $kind:ident,)*) => {
        /// A field name with a meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Known {
            $(#[doc = concat!("`", $name, "`")] $kind,)*
            /// Any name that begins with `x-amz-`.
            Amz,
            /// Any other name.
            Other,
        }

        pub(super) const NAMES: &[(&str, Known)] = &[$(($name, Known::$kind),)*];
    };
}

known! {
    "te" Te,
    "via" Via,
    "host" Host,
    "date" Date,
    "cookie" Cookie,
    "accept" Accept,
    "expect" Expect,
    "server" Server,
    "origin" Origin,
    "alt-svc" AltSvc,
    "trailer" Trailer,
    "upgrade" Upgrade,
    "api-key" ApiKey,
    "location" Location,
    "x-api-key" XApiKey,
    "x-real-ip" XRealIp,
    "forwarded" Forwarded,
    "connection" Connection,
    "user-agent" UserAgent,
    "keep-alive" KeepAlive,
    "set-cookie" SetCookie,
    "tracestate" Tracestate,
    "traceparent" Traceparent,
    "openai-beta" OpenaiBeta,
    "retry-after" RetryAfter,
    "content-type" ContentType,
    "x-request-id" XRequestId,
    "authorization" Authorization,
    "cache-control" CacheControl,
    "last-event-id" LastEventId,
    "content-length" ContentLength,
    "x-goog-api-key" XGoogApiKey,
    "openai-project" OpenaiProject,
    "anthropic-beta" AnthropicBeta,
    "mcp-session-id" McpSessionId,
    "http2-settings" Http2Settings,
    "accept-encoding" AcceptEncoding,
    "x-forwarded-for" XForwardedFor,
    "idempotency-key" IdempotencyKey,
    "content-encoding" ContentEncoding,
    "x-forwarded-host" XForwardedHost,
    "x-forwarded-port" XForwardedPort,
    "proxy-connection" ProxyConnection,
    "www-authenticate" WwwAuthenticate,
    "transfer-encoding" TransferEncoding,
    "anthropic-version" AnthropicVersion,
    "x-forwarded-proto" XForwardedProto,
    "x-accel-buffering" XAccelBuffering,
    "proxy-authenticate" ProxyAuthenticate,
    "openai-organization" OpenaiOrganization,
    "proxy-authorization" ProxyAuthorization,
    "x-goog-user-project" XGoogUserProject,
    "mcp-protocol-version" McpProtocolVersion,
    "sec-websocket-protocol" SecWebsocketProtocol,
}

impl Known {
    /// The kind of a lower-case name.
    #[inline]
    #[must_use]
    pub fn of(lower: &[u8]) -> Self {
        let candidate = SLOTS
            .get(slot(lower))
            .and_then(|&at| NAMES.get(usize::from(at)));
        match candidate {
            Some((name, known)) if is_same(name.as_bytes(), lower) => *known,
            _ if lower.starts_with(b"x-amz-") => Self::Amz,
            _ => Self::Other,
        }
    }

    /// The lower-case name; `x-amz-*` and `*` for the two kinds that have none.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Amz => "x-amz-*",
            Self::Other => "*",
            known => NAMES.get(known as usize).map_or("*", |(name, _)| name),
        }
    }

    /// Whether the field belongs to one connection and is never forwarded (RFC 9110, 7.6.1).
    #[must_use]
    pub const fn is_hop_by_hop(self) -> bool {
        matches!(
            self,
            Self::Connection
                | Self::KeepAlive
                | Self::ProxyConnection
                | Self::ProxyAuthenticate
                | Self::ProxyAuthorization
                | Self::Te
                | Self::Trailer
                | Self::TransferEncoding
                | Self::Upgrade
                | Self::Http2Settings
        )
    }

    pub(crate) const fn bit(self) -> u128 {
        1 << (self as u8)
    }
}

/// Equality, inline: names are too short to pay for a call.
#[inline]
fn is_same(name: &[u8], other: &[u8]) -> bool {
    if name.len() != other.len() {
        return false;
    }
    if name.len() < 8 {
        return name.iter().zip(other).all(|(a, b)| a == b);
    }
    name.last_chunk::<8>() == other.last_chunk::<8>()
        && name
            .as_chunks::<8>()
            .0
            .iter()
            .zip(other.as_chunks::<8>().0)
            .all(|(a, b)| a == b)
}

const SLOT_COUNT: usize = 256;

/// The position in `NAMES` of the one name that can be equal; out of range where there is none.
static SLOTS: [u8; SLOT_COUNT] = slots();

/// A hash of length, first and last byte, and the one at three quarters, without collision among `NAMES`.
/// The factors were found by search; `slots` does not compile when a new name makes them collide.
#[inline]
const fn slot(name: &[u8]) -> usize {
    let (Some((first, _)), Some((last, _))) = (name.split_first(), name.split_last()) else {
        return 0;
    };
    let late = match name.split_at(name.len() * 3 / 4).1 {
        [late, ..] => *late,
        [] => 0,
    };
    let mixed = name.len().wrapping_mul(107)
        + *first as usize * 38
        + *last as usize * 5
        + late as usize * 255;
    mixed / 4 % SLOT_COUNT
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "evaluated when compiling, where a fault is a compile error"
)]
const fn slots() -> [u8; SLOT_COUNT] {
    const FREE: u8 = u8::MAX;
    assert!(NAMES.len() < 126, "one bit a name in `bit`");
    let mut slots = [FREE; SLOT_COUNT];
    let mut at = 0;
    while at < NAMES.len() {
        let slot = slot(NAMES[at].0.as_bytes());
        assert!(
            slots[slot] == FREE,
            "two names collide: search for other factors"
        );
        slots[slot] = at as u8;
        at += 1;
    }
    slots
}
