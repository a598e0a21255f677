//! The field names that the gate gives a meaning to, resolved once when a field is added.
//!
//! Not here: how a name is found among them (`lookup`), what each field means (`http1` for framing,
//! `policy` for the rest).

mod lookup;

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
    /// The lower-case name; `x-amz-*` and `*` for the two kinds that have none.
    #[inline]
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Amz => "x-amz-*",
            Self::Other => "*",
            known => NAMES.get(known as usize).map_or("*", |(name, _)| name),
        }
    }

    /// Whether the kind has no name of its own.
    pub(crate) const fn is_many(self) -> bool {
        matches!(self, Self::Amz | Self::Other)
    }

    pub(crate) const fn bit(self) -> u64 {
        1 << (self as u8)
    }
}

/// Each kind has a bit of its own in a word.
const _: () = assert!((Known::Other as u32) < u64::BITS);

/// Several of these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KnownSet(u64);

impl KnownSet {
    /// All of `kinds`.
    #[must_use]
    pub const fn of(kinds: &[Known]) -> Self {
        let (mut bits, mut rest) = (0, kinds);
        while let [first, others @ ..] = rest {
            bits |= first.bit();
            rest = others;
        }
        Self(bits)
    }

    /// Whether it is one of them.
    #[inline]
    #[must_use]
    pub const fn contains(self, kind: Known) -> bool {
        self.0 & kind.bit() != 0
    }

    /// It and this one.
    #[must_use]
    pub const fn with(self, kind: Known) -> Self {
        Self(self.0 | kind.bit())
    }

    /// It and these.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// It without this one.
    #[must_use]
    pub const fn without(self, kind: Known) -> Self {
        Self(self.0 & !kind.bit())
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }
}
