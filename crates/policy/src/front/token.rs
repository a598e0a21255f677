//! The token by which a caller is known, where an upstream is sent another one for it.
//!
//! Invariant: it is kept for routes that exchange tokens alone, and was proven for this call.
//! Not here: what is given for it ([`crate::credential::Minter`]).

use wire::head::RequestHead;

use crate::caller::Caller;
use crate::credential::{Given, given};
use crate::secret::Secret;
use crate::snapshot::{Route, Snapshot};

/// The token that a caller proved itself by, where a backend of its route is sent another one for it.
#[inline]
#[must_use]
pub fn token_of(
    caller: Option<&Caller>,
    route: &Route,
    head: &RequestHead,
    snapshot: &Snapshot,
) -> Option<Secret> {
    let mut backends = route.backends.iter().filter_map(|id| snapshot.backend(*id));
    if !backends.any(|backend| backend.exchanges_tokens) {
        return None;
    }
    match given(head) {
        Given::Token(token) if caller?.by.is_token() => Some(Secret::new(token.to_vec())),
        _ => None,
    }
}
