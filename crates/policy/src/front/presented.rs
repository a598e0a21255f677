//! What a call brings to say who makes it, in whatever protocol it comes.
//!
//! Not here: what is made of it (`identify`), which fields of HTTP hold a credential ([`crate::credential`]).

use std::net::IpAddr;

use wire::head::{FieldName, RequestHead, has_comma};

use crate::caller::{Peer, PeerCertificate};
use crate::credential::{self, Given};
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::web;

/// What a call brings to say who makes it.
pub trait Presented {
    /// The one value under the name by which callers name their workload.
    ///
    /// # Errors
    /// [`Refusal::IdentityRepeated`]: there are several.
    fn named(&self, name: &FieldName) -> Result<Option<&[u8]>, Refusal>;

    /// The credential; of several there is none that counts.
    fn credential(&self) -> Given<'_>;

    /// The session that a browser brings by itself.
    ///
    /// # Errors
    /// [`Refusal::OriginNotAllowed`]: a page has the browser bring it that may not.
    fn session(&self, s: &Snapshot) -> Result<Option<&[u8]>, Refusal> {
        let _no_browser_brings_it = s;
        Ok(None)
    }

    /// The other end of its connection.
    fn peer(&self) -> IpAddr;

    /// The certificate that the other end proved to have.
    fn certificate(&self) -> Option<&PeerCertificate> {
        None
    }

    /// Where it comes from, as far as that can be known: what a trusted proxy says, else the other end.
    fn source(&self, s: &Snapshot) -> IpAddr {
        let _nothing_is_forwarded = s;
        self.peer()
    }
}

/// A request of HTTP.
#[derive(Debug, Clone, Copy)]
pub struct Http<'a> {
    /// Its head.
    pub head: &'a RequestHead,
    /// Whose connection it came by.
    pub peer: &'a Peer,
}

impl Presented for Http<'_> {
    #[inline]
    fn named(&self, name: &FieldName) -> Result<Option<&[u8]>, Refusal> {
        let mut only = None;
        for value in self.head.fields.named(name) {
            if only.replace(value).is_some() || has_comma(value) {
                return Err(Refusal::IdentityRepeated {
                    header: name.to_string(),
                });
            }
        }
        Ok(only)
    }

    fn credential(&self) -> Given<'_> {
        credential::given(self.head)
    }

    fn session(&self, s: &Snapshot) -> Result<Option<&[u8]>, Refusal> {
        let Some(site) = &s.login else {
            return Ok(None);
        };
        let session = site.session(self.head);
        if session.is_some() && !web::may_bring_session(self.head, &s.web, &site.origin) {
            return Err(Refusal::OriginNotAllowed);
        }
        Ok(session)
    }

    fn peer(&self) -> IpAddr {
        self.peer.address
    }

    #[inline]
    fn certificate(&self) -> Option<&PeerCertificate> {
        self.peer.certificate.as_deref()
    }

    fn source(&self, s: &Snapshot) -> IpAddr {
        s.clients.address(self.peer.address, self.head)
    }
}
