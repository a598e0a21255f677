//! Whether a caller may make a call: what rules may look at, and what they answer.
//!
//! Invariant: rules see facts and nothing else: no clock, chance or network. The same facts get the same decision.
//! What no rule allows is refused.
//! Not here: the languages that rules are written in (`authority`), when they are asked and how a refusal looks
//! (`exchange`, `refusal`).

use std::borrow::Cow;
use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// The facts of one call. All of it is borrowed: what no rule looks at costs nothing.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The calling application.
    pub workload: &'a str,
    /// The id of the key that it came with; never the key.
    pub key: Option<&'a str>,
    /// For whom it calls.
    pub user: Option<&'a str>,
    /// Names with values; each name once.
    pub tags: &'a [(&'a str, &'a str)],
    /// What the token says about its bearer; [`Members::NONE`] without a token.
    pub claims: &'a Members,
    /// The method, in capitals.
    pub method: &'a str,
    /// The path without its query.
    pub path: &'a str,
    /// The gate's word for what is asked, as `Operation::as_str` has it.
    pub operation: &'a str,
    /// The model, as the client names it.
    pub model: Option<&'a str>,
    /// The route's name.
    pub route: &'a str,
    /// The names of the backends that the call could go to.
    pub backends: &'a [&'a str],
    /// The client's address. One of IPv4 in IPv6's clothes counts as the IPv4 address that it is.
    pub source: IpAddr,
    /// When it is asked, milliseconds since the epoch.
    pub unix_ms: u64,
}

/// A value of a claim: what JSON can say.
///
/// Who makes one bounds its size and its depth: rules refuse to look deeper than their own bounds, but to drop a tree
/// takes stack by its depth.
#[derive(Debug, Clone, PartialEq)]
pub enum Claim {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number that an `i64` holds.
    Int(i64),
    /// A whole number above those, which a `u64` holds.
    Large(u64),
    /// Any other number that a float tells from its neighbours.
    Float(f64),
    /// A number that nothing here holds exactly: it is equal to nothing, and unequal to nothing.
    Inexact,
    /// A text.
    Text(Box<str>),
    /// An array.
    List(Vec<Claim>),
    /// An object.
    Map(Members),
}

impl Claim {
    /// What it takes of memory beside itself, bytes, about.
    fn weight(&self) -> usize {
        match self {
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Large(_)
            | Self::Float(_)
            | Self::Inexact => 0,
            Self::Text(text) => text.len(),
            Self::List(many) => {
                let of = |value: &Self| size_of::<Self>() + value.weight();
                many.iter().map(of).sum()
            }
            Self::Map(members) => members.weight(),
        }
    }
}

/// The members of an object, found by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Members(Vec<(Box<str>, Claim)>);

impl Members {
    /// No members.
    pub const NONE: Self = Self(Vec::new());

    /// Of names that stand twice the first counts.
    #[must_use]
    pub fn new(mut members: Vec<(Box<str>, Claim)>) -> Self {
        members.sort_by(|(a, _), (b, _)| a.cmp(b));
        members.dedup_by(|(later, _), (first, _)| later == first);
        Self(members)
    }

    /// The value under a name.
    #[inline]
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Claim> {
        let at = self.0.binary_search_by(|(known, _)| (**known).cmp(name));
        at.ok()
            .and_then(|at| self.0.get(at))
            .map(|(_, value)| value)
    }

    /// All of them, by name in the order of its bytes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Claim)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// What they take of memory, bytes, about.
    #[must_use]
    pub fn weight(&self) -> usize {
        let of = |(name, value): &(Box<str>, Claim)| {
            size_of::<(Box<str>, Claim)>() + name.len() + value.weight()
        };
        self.0.iter().map(of).sum()
    }

    /// The one at a place in that order.
    #[must_use]
    pub fn at(&self, place: usize) -> Option<(&str, &Claim)> {
        self.0.get(place).map(|(name, value)| (&**name, value))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What rules say of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may be made.
    pub allowed: bool,
    /// The rule that decided; `None` when none did, and the call is refused for it.
    pub by: Option<Arc<str>>,
    /// What went wrong while deciding, for the log. It names rules and facts and quotes no value.
    pub why: Option<Cow<'static, str>>,
}

/// Rules, ready to be asked.
///
/// They are shared by all workers: to decide takes no lock that another worker could hold, and no time that a client
/// could stretch.
pub trait Rules: Debug + Send + Sync {
    /// Decides one call.
    fn decide(&self, asked: &Asked<'_>) -> Decision;
}

/// A condition of one entry of a filter, ready to be asked: what rules are made of, without an effect of its own.
///
/// As rules, it takes no lock that another worker could hold, and no time that a client could stretch.
pub trait Condition: Debug + Send + Sync {
    /// Whether it looks at the arguments of a call.
    fn reads_arguments(&self) -> bool;
    /// Whether it holds for a call with these arguments, as far as they are known.
    ///
    /// # Errors
    /// What kept it from being decided, for the log: names of facts, and no value.
    fn holds(
        &self,
        asked: &Asked<'_>,
        arguments: Option<&Members>,
    ) -> Result<bool, Cow<'static, str>>;
}
