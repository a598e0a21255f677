//! The field names that the gate gives a meaning to, resolved once when a field is added.
//!
//! Invariant: the list is ordered by length, checked when compiling; `Known::of` looks only at names of the same length.
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
        let same_length = STARTS
            .get(lower.len())
            .zip(STARTS.get(lower.len() + 1))
            .and_then(|(&from, &to)| NAMES.get(usize::from(from)..usize::from(to)))
            .unwrap_or_default();
        for (name, known) in same_length {
            let name = name.as_bytes();
            if name.last() == lower.last() && name == lower {
                return *known;
            }
        }
        if lower.starts_with(b"x-amz-") {
            Self::Amz
        } else {
            Self::Other
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

const LONGEST: usize = 22;

/// `STARTS[n]..STARTS[n + 1]` are the names of length `n`.
static STARTS: [u8; LONGEST + 2] = starts();

#[expect(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "evaluated when compiling, where a fault is a compile error"
)]
const fn starts() -> [u8; LONGEST + 2] {
    assert!(NAMES.len() < 126, "one bit a name");
    let mut starts = [0; LONGEST + 2];
    let (mut length, mut at) = (0, 0);
    while length < starts.len() {
        while at < NAMES.len() && NAMES[at].0.len() < length {
            assert!(
                at == 0 || NAMES[at - 1].0.len() <= NAMES[at].0.len(),
                "the names are ordered by length"
            );
            at += 1;
        }
        starts[length] = at as u8;
        length += 1;
    }
    assert!(at == NAMES.len(), "LONGEST is the longest name");
    starts
}
