//! What a server of tools that refused a credential makes of its message.
//!
//! Not here: the other ways to fail (`crate::tool_failure`).

use policy::mcp::Server;

use super::ask::Began;
use crate::tool_failure::{CredentialRefused, Failed, Sent};

impl Began {
    /// The server refused the credential that it was sent.
    pub(super) fn refused(&self, server: &Server) -> Failed {
        Failed::Refused(Box::new(CredentialRefused {
            server: (&*server.name).into(),
            status: self.response.head.as_ref().map_or(0, |head| head.status),
            sent: self.sent.clone(),
        }))
    }

    /// It was asked for with a credential of its caller's.
    pub(super) fn is_callers(&self) -> bool {
        self.sent != Sent::Gates
    }
}
