//! Listeners: several ports and hosts at which one gate is reached, and what is served at each.
//!
//! Invariant: a request is of one listener, the one on its port whose host is the most specific that takes the request's; what is
//! attached to another one is not there for it.
//! Not here: sockets and certificates (the host), which route takes a call (`plain`).

use std::cmp::Reverse;

use wire::head::RequestHead;

use crate::host_pattern::HostPattern;
use crate::refusal::Refusal;

/// A place at which the gate is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// As it is named.
    pub name: Box<str>,
    /// Its port.
    pub port: u16,
    /// The hosts that it is for; `None` for every one.
    pub host: Option<HostPattern>,
    /// Whether TLS is spoken there.
    pub is_tls: bool,
    /// Whether calls to models, and to servers of tools, are served there.
    pub serves_models: bool,
}

/// All of them; none where there is one address and nothing is told apart by it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listeners(Vec<Listener>);

/// One of them, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListenerId(pub u16);

impl Listeners {
    /// Of these, in the order in which they are looked at: the most specific host first.
    #[must_use]
    pub fn new(mut all: Vec<Listener>) -> Self {
        all.sort_by_cached_key(|one| Reverse(one.host.as_ref().map_or((0, 0), HostPattern::rank)));
        Self(all)
    }

    /// Whether there is none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in that order.
    #[must_use]
    pub fn all(&self) -> &[Listener] {
        &self.0
    }

    /// The one of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<ListenerId> {
        let at = self.0.iter().position(|one| *one.name == *name)?;
        u16::try_from(at).ok().map(ListenerId)
    }

    /// The one that a request is of.
    #[must_use]
    pub fn of(&self, head: &RequestHead) -> Option<(ListenerId, &Listener)> {
        self.by(head.port, head.authority())
    }

    /// The one on a port for a host.
    fn by(&self, port: u16, host: Option<&[u8]>) -> Option<(ListenerId, &Listener)> {
        let takes = |one: &Listener| {
            let names = |of: &HostPattern| host.is_some_and(|host| of.takes(host));
            one.port == port && one.host.as_ref().is_none_or(names)
        };
        let at = self.0.iter().position(takes)?;
        Some((ListenerId(u16::try_from(at).ok()?), self.0.get(at)?))
    }

    /// The one that a request is of, where its connection was made to that one.
    ///
    /// # Errors
    /// [`Refusal::RouteNotFound`]; [`Refusal::Misdirected`]: by the name that its client gave before it was shown a certificate it is another's.
    pub(crate) fn entered(&self, head: &RequestHead) -> Result<(ListenerId, &Listener), Refusal> {
        let of = self.of(head);
        let found = of.ok_or_else(|| Refusal::route_not_found(head))?;
        match &head.tls_name {
            Some(name) => {
                let by_name = self.by(head.port, Some(name.as_bytes()));
                match by_name.is_some_and(|(id, _)| id == found.0) {
                    true => Ok(found),
                    false => Err(Refusal::Misdirected),
                }
            }
            None => Ok(found),
        }
    }

    /// Lets in a call to a model where its listener serves those.
    ///
    /// # Errors
    /// [`Refusal::RouteNotFound`], [`Refusal::Misdirected`].
    #[cold]
    pub(crate) fn admit_model(&self, head: &RequestHead) -> Result<(), Refusal> {
        match self.entered(head)? {
            (_, one) if one.serves_models => Ok(()),
            _ => Err(Refusal::route_not_found(head)),
        }
    }
}
