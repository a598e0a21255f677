//! Which calls of a route have a price, so that a budget of money can count them.
//!
//! Invariant: a call that is not among them is refused by each budget of money in that currency that counts it.
//! Not here: what is refused when a call comes (`budget_reservation`).

use crate::snapshot::{Route, Snapshot};

/// Calls that have a price at every backend that may answer them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priced<'s> {
    /// The model that a client asks for; any where none is said.
    pub asked: Option<&'s str>,
    /// The model that goes upstream; none where the call is not read.
    pub sent: Option<&'s str>,
    /// In which currency.
    pub currency: &'s str,
}

/// The calls of a route that have a price.
pub fn of<'s>(route: &'s Route, s: &'s Snapshot) -> impl Iterator<Item = Priced<'s>> {
    let listed = route.unread.iter().filter_map(|listed| {
        Some(Priced {
            asked: None,
            sent: None,
            currency: &s.prices.get(listed.price?)?.currency,
        })
    });
    let replaced = route.model.as_deref().and_then(|model| {
        Some(Priced {
            asked: None,
            sent: Some(model),
            currency: currency(model, route, s)?,
        })
    });
    let takes = |model: &str| {
        let mut patterns = route.models.iter();
        route.models.is_empty() || patterns.any(|pattern| pattern.takes(model))
    };
    let models = s.prices.models().map(AsRef::as_ref);
    let models = models.filter(move |model| route.model.is_none() && takes(model));
    let as_asked = models.filter_map(move |model| {
        Some(Priced {
            asked: Some(model),
            sent: Some(model),
            currency: currency(model, route, s)?,
        })
    });
    listed.chain(replaced).chain(as_asked)
}

/// In which currency a model has a price at every backend of a route, where it is one.
fn currency<'s>(model: &str, route: &Route, s: &'s Snapshot) -> Option<&'s str> {
    let mut all = route
        .backends
        .iter()
        .map(|backend| s.prices.of(model, Some(*backend)));
    let first = &all.next()??.currency;
    let is_one = all.all(|price| price.is_some_and(|price| price.currency == *first));
    is_one.then_some(&**first)
}

/// The currencies that have prices, in words.
#[must_use]
pub fn currencies(s: &Snapshot) -> String {
    let mut all: Vec<&str> = s
        .prices
        .all()
        .iter()
        .map(|price| &*price.currency)
        .collect();
    all.sort_unstable();
    all.dedup();
    if all.is_empty() {
        return "there are no prices".to_owned();
    }
    format!("prices are in {}", all.join(" and "))
}
