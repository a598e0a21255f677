//! How an attempt can fail, and how far its request had come.
//!
//! Invariant: what a failure means to a client (its status, its code) is said here and nowhere else.
//! Not here: what follows from one ([`crate::attempt`]), refusals ([`crate::refusal`]).

/// Why an attempt brought no usable response head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Failure {
    /// The name did not resolve.
    #[error("its name does not resolve")]
    Resolve,
    /// No TCP connection.
    #[error("connection refused or unreachable")]
    Connect,
    /// No connection in time.
    #[error("connecting took too long")]
    ConnectTimeout,
    /// The proxy on the way refused or broke off.
    #[error("the proxy on the way to it refused or broke off")]
    Proxy,
    /// TLS failed; never downgraded.
    #[error("TLS handshake failed")]
    Tls,
    /// No response head in time.
    #[error("no response in time")]
    FirstByteTimeout,
    /// Closed before a response head.
    #[error("connection closed before a response")]
    Reset,
    /// A response head that breaks HTTP.
    #[error("malformed response")]
    Malformed,
    /// An answer that is none of the API's: of another type, or a redirect.
    #[error("what came is none of the API's answers (a web page, say, or a redirect)")]
    BadResponse,
    /// No endpoint was left to try.
    #[error("no endpoint available")]
    Exhausted,
    /// A status that allows another try.
    #[error("status {0}")]
    Status(u16),
    /// No credential could be had for the endpoint.
    #[error("the gateway could not get a credential for it")]
    Credential,
    /// The endpoint's dialect cannot say what was asked.
    #[error("its API cannot express this call")]
    Untranslatable,
    /// The gate itself had no connection to spare: its own bound, descriptors or local ports.
    #[error("the gateway has no connection to spare for it")]
    LocalCapacity,
}

impl Failure {
    /// Status for the client.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::FirstByteTimeout | Self::ConnectTimeout => 504,
            // A client that backs off from these does right, whatever the body looked like.
            Self::Status(busy @ (429 | 503 | 529)) => busy,
            Self::Resolve
            | Self::Connect
            | Self::Proxy
            | Self::Tls
            | Self::Reset
            | Self::Malformed
            | Self::BadResponse
            | Self::Status(_) => 502,
            Self::Exhausted | Self::Credential | Self::LocalCapacity => 503,
            // The client's to mend: no time makes it better.
            Self::Untranslatable => 400,
        }
    }

    /// Stable code for clients, labels and logs.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Resolve => "upstream_unresolved",
            Self::Connect => "upstream_unreachable",
            Self::ConnectTimeout => "upstream_connect_timeout",
            Self::Proxy => "upstream_proxy_error",
            Self::Tls => "upstream_tls_error",
            Self::FirstByteTimeout => "upstream_timeout",
            Self::Reset => "upstream_reset",
            Self::Malformed => "upstream_malformed",
            Self::BadResponse => "upstream_bad_response",
            Self::Exhausted => "upstream_unavailable",
            Self::Status(_) => "upstream_status",
            Self::Credential => "upstream_credential_unavailable",
            Self::Untranslatable => "call_not_translatable",
            Self::LocalCapacity => "connections_exhausted",
        }
    }

    /// Whether the gate alone is to blame: nothing was asked of the endpoint.
    #[must_use]
    pub fn is_local(self) -> bool {
        matches!(self, Self::LocalCapacity)
    }

    /// Whether an attempt that failed so, its request having come so far, may have run and be charged
    /// by its provider. Errors that were answered are not: no provider bills those.
    #[must_use]
    pub fn may_have_run(self, sent: Sent) -> bool {
        sent == Sent::Whole
            && matches!(
                self,
                Self::FirstByteTimeout | Self::Reset | Self::Malformed | Self::BadResponse
            )
    }

    /// Whether it may speak of the endpoint's health. A 429 is a healthy endpoint's answer.
    pub(crate) fn is_sick(self) -> bool {
        match self {
            Self::Status(status) => status >= 500,
            Self::Credential | Self::Untranslatable | Self::LocalCapacity => false,
            Self::Resolve
            | Self::Connect
            | Self::ConnectTimeout
            | Self::Proxy
            | Self::Tls
            | Self::FirstByteTimeout
            | Self::Reset
            | Self::Malformed
            | Self::BadResponse
            | Self::Exhausted => true,
        }
    }
}

/// How far an attempt's request had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sent {
    /// No byte of it was taken.
    #[default]
    Nothing,
    /// Not all of it was.
    Part,
    /// All of it: from here on it may have run.
    Whole,
    /// An answer to it began.
    Answered,
}
