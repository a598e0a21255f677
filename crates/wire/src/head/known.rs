//! The field names that the gate gives a meaning to, resolved once when a field is added.
//!
//! Invariant: no two names share a slot, checked when compiling; `Known::of` compares with one name.
//! Not here: what each field means (`http1` for framing, `policy` for the rest).

use super::lower_word;

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
    /// The kind of a name, in any case.
    #[inline]
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        let candidate = SLOTS
            .get(slot(name))
            .and_then(|&at| NAMES.get(usize::from(at)));
        match candidate {
            Some((lower, known)) if is_same(lower.as_bytes(), name) => *known,
            _ if name
                .get(..6)
                .is_some_and(|start| start.eq_ignore_ascii_case(b"x-amz-")) =>
            {
                Self::Amz
            }
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

/// Whether a name in any case is this one; inline, as names are too short to pay for a call.
#[inline]
fn is_same(lower: &[u8], name: &[u8]) -> bool {
    if lower.len() != name.len() {
        return false;
    }
    if name.len() < 8 {
        return lower
            .iter()
            .zip(name)
            .all(|(a, b)| *a == b.to_ascii_lowercase());
    }
    lower.last_chunk::<8>().copied() == name.last_chunk::<8>().map(|word| lower_word(*word))
        && lower
            .as_chunks::<8>()
            .0
            .iter()
            .zip(name.as_chunks::<8>().0)
            .all(|(a, b)| *a == lower_word(*b))
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
    let mixed =
        name.len().wrapping_mul(107) + fold(*first) * 38 + fold(*last) * 5 + fold(late) * 255;
    mixed / 4 % SLOT_COUNT
}

/// Letters in lower case; other bytes somewhere, always the same.
#[inline]
const fn fold(byte: u8) -> usize {
    (byte | 0x20) as usize
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
