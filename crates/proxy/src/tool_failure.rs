//! Why a server gave no answer, and what its client is told of that.
//!
//! Invariant: a credential of the gate's that is refused is the gate's matter, and nothing that a server says of it is told; one of the caller's
//! is its caller's, who is told what the server wants in its place.
//! Not here: asking and answering (`tools`, `batches`), words and statuses (`policy::refusal`).

use mcp::events::Unusable;
use policy::attempt::Failure;
use policy::mcp::CallersToken;
use policy::refusal::Refusal;

/// A step that nothing can take.
pub(crate) const OUT_OF_ORDER: Refusal = Refusal::Bug("a step that this call cannot take");

/// Why there is no answer.
#[derive(Debug, Clone)]
pub(crate) enum Failed {
    /// Nothing came, or a status that is no answer.
    Upstream(Failure),
    /// It refused the gate's credential.
    Credential,
    /// A server of tools refused the credential that it was sent: whose that was, the refusal says.
    Refused(Box<CredentialRefused>),
    /// No token could be had for the caller's: nothing was sent.
    Exchange,
    /// The server has no such session any more.
    SessionGone,
    /// It is no message, or not the one that was asked for.
    Unusable(Unusable),
    /// It is longer than may be.
    TooLong,
    /// There is no room for it beside the answers that are being read.
    NoRoom,
    /// What the servers of a rule call their sessions does not fit into one id.
    IdTooLong,
    /// It is nothing that its client could be told.
    NotBridged(Box<str>),
    /// A bug.
    Bug,
}

impl Failed {
    pub(crate) fn refusal(&self) -> Refusal {
        match self {
            Self::Upstream(failure) => Refusal::Upstream(*failure),
            Self::Credential => Refusal::UpstreamCredential,
            Self::Refused(refused) => refused.refusal(),
            Self::Exchange => Refusal::Upstream(Failure::Credential),
            Self::SessionGone => Refusal::McpSessionNotFound,
            Self::Unusable(why @ (Unusable::LongState | Unusable::Task)) => {
                Refusal::McpNotBridged {
                    says: why.to_string().into(),
                }
            }
            Self::Unusable(_) | Self::TooLong | Self::IdTooLong => {
                Refusal::Upstream(Failure::BadResponse)
            }
            Self::NoRoom => Refusal::Overloaded,
            Self::NotBridged(says) => Refusal::McpNotBridged { says: says.clone() },
            Self::Bug => OUT_OF_ORDER,
        }
    }

    /// A token of the caller's was refused.
    pub(crate) fn is_callers(&self) -> bool {
        matches!(self, Self::Refused(refused) if refused.sent != Sent::Gates)
    }

    /// For the log, where its refusal does not say it all.
    pub(crate) fn reason(&self) -> Option<Box<str>> {
        match self {
            Self::Unusable(unusable) => Some(unusable.to_string().into()),
            Self::TooLong => Some("the server's answer is longer than may be".into()),
            Self::IdTooLong => Some(
                "the servers' ids of their sessions do not fit into one id: give the route fewer servers"
                    .into(),
            ),
            Self::SessionGone => Some("the server has no such session any more".into()),
            Self::Exchange => Some(
                "the caller's token could not be exchanged for one of the server's".into(),
            ),
            Self::Upstream(_)
            | Self::Credential
            | Self::Refused(_)
            | Self::NoRoom
            | Self::NotBridged(_)
            | Self::Bug => None,
        }
    }
}

/// The credential that a request had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The gate's, or none.
    Gates,
    /// One of its caller's, with what its server wants in its place where it refused that.
    Callers {
        token: CallersToken,
        wants: Box<[(&'static str, Box<str>)]>,
    },
}

/// A credential that a server of tools refused.
#[derive(Debug, Clone)]
pub(crate) struct CredentialRefused {
    pub(crate) server: Box<str>,
    pub(crate) status: u16,
    pub(crate) sent: Sent,
}

impl CredentialRefused {
    fn refusal(&self) -> Refusal {
        let server = self.server.clone();
        match &self.sent {
            Sent::Gates => Refusal::McpCredential { server },
            Sent::Callers { token, wants } => Refusal::McpTokenRefused {
                server,
                token: token.clone(),
                status: self.status,
                wants: wants.clone(),
            },
        }
    }
}
