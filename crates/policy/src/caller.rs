//! Who is behind an exchange, once that is proven.
//!
//! Invariant: no field of it can hold a credential.
//! Not here: how it is proven ([`crate::identity`]), what the caller may do ([`crate::route`]).

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use crate::authority::{Claim, Members};
use crate::budget::{Calendar, Unit};
use crate::id::WorkloadId;
use crate::limit::{Kind, Rate};
use crate::model::ModelPattern;
use crate::price::Payer;

/// What is answered later. It is awaited by the worker that asked, and may be dropped at any time.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Who calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The workload, by name: which of the snapshot's it is, is looked up for each call.
    pub workload: Arc<str>,
    /// What proves it.
    pub by: Proven,
    /// The id of the gate's own key that was brought.
    pub key: Option<Arc<str>>,
    /// The person or service behind the call.
    pub user: Option<Arc<str>>,
    /// Nothing proves the user: the call says it.
    pub is_user_said: bool,
    /// What else is said of it, by name, ordered by name.
    pub tags: Box<[(Arc<str>, Arc<str>)]>,
    /// What else its token says, for rules to look at.
    pub claims: Claims,
    /// Models that it may ask for; empty means all that its workload may.
    pub models: Box<[ModelPattern]>,
    /// Limits of its own, on all routes together and beside those of its grant: one of each kind and window, at most
    /// [`MAX_OWN_LIMITS`].
    pub limits: Box<[OwnLimit]>,
    /// Budgets of its own, beside those that count its workload: one of each unit and calendar, at most
    /// [`MAX_OWN_BUDGETS`].
    pub budgets: Box<[OwnBudget]>,
}

/// Most limits that one caller may bring; whoever reads them refuses more, and all that there are hold.
pub const MAX_OWN_LIMITS: usize = 8;
/// Most budgets that one caller may bring; whoever reads them refuses more, and all that there are hold.
pub const MAX_OWN_BUDGETS: usize = 8;

/// A limit that a caller brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnLimit {
    /// What it counts.
    pub kind: Kind,
    /// How much.
    pub rate: Rate,
}

/// A budget that a caller brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnBudget {
    /// What it counts.
    pub unit: Unit,
    /// How much of that a period has; at least 1.
    pub amount: u64,
    /// Its periods.
    pub calendar: Calendar,
}

/// What a token says of its bearer. Copies share it, and are equal where they are the same.
#[derive(Debug, Clone, Default)]
pub struct Claims(Option<Arc<Members>>);

impl Claims {
    /// These.
    #[must_use]
    pub fn new(members: Members) -> Self {
        Self((!members.is_empty()).then(|| Arc::new(members)))
    }

    /// Those of a token of which the issuer alone is known.
    #[must_use]
    pub fn of_issuer(issuer: &str) -> Self {
        Self::new(Members::new(vec![(
            "iss".into(),
            Claim::Text(issuer.into()),
        )]))
    }

    /// All of them.
    #[must_use]
    pub fn members(&self) -> &Members {
        const NONE: &Members = &Members::NONE;
        self.0.as_deref().unwrap_or(NONE)
    }
}

impl PartialEq for Claims {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for Claims {}

/// What proves who calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Proven {
    /// A header, on the word of a peer that is trusted.
    #[default]
    Header,
    /// A key: the gate's own, or one that somebody else made.
    Key,
    /// A signed token.
    Token,
    /// A token that whoever issued it was asked about.
    Introspection,
    /// A token that an API server of Kubernetes was asked about.
    TokenReview,
    /// The certificate of the connection.
    Certificate,
    /// The session of a browser.
    Session,
}

impl Proven {
    /// Whether it is a token that an issuer gave to the caller.
    #[must_use]
    pub const fn is_token(self) -> bool {
        matches!(self, Self::Token | Self::Introspection | Self::TokenReview)
    }

    /// The word used in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Key => "key",
            Self::Token => "token",
            Self::Introspection => "introspection",
            Self::TokenReview => "token_review",
            Self::Certificate => "certificate",
            Self::Session => "session",
        }
    }
}

impl Caller {
    /// Who pays for the calls of a workload, as far as prices ask.
    #[must_use]
    pub fn payer(of: Option<&Self>, workload: Option<WorkloadId>) -> Payer<'_> {
        Payer {
            workload,
            key: of.and_then(|caller| caller.key.as_deref()),
            tags: of.map_or(&[], |caller| &caller.tags),
            volume: None,
        }
    }

    /// Who issued the token that proves it, as the token says: a user's name says who it is within an issuer alone.
    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        match self.claims.members().get("iss") {
            Some(Claim::Text(issuer)) => Some(issuer),
            _ => None,
        }
    }

    /// Whom its token says that it is for; nothing where it came by none.
    #[must_use]
    pub fn audience(&self) -> Option<&Claim> {
        let claims = self.by.is_token().then(|| self.claims.members());
        claims.and_then(|claims| claims.get("aud"))
    }

    /// Whether it may ask for a model, as far as it alone says.
    #[must_use]
    pub fn may_ask(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|pattern| pattern.takes(model))
    }
}

/// The other end of a client's connection.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// The certificate that it proved to have, where it did.
    pub certificate: Option<Arc<PeerCertificate>>,
}

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        Self {
            address,
            certificate: None,
        }
    }
}

/// What a verified certificate says of its holder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeerCertificate {
    /// Its subject alternative names of the kinds URI and DNS, in the order written.
    pub names: Vec<Box<str>>,
    /// When it ends, seconds since the Unix epoch.
    pub until_unix_s: u64,
}

impl fmt::Display for PeerCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names.first().map_or("no name", |name| name))
    }
}
