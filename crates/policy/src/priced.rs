//! Which calls of a route have a price, so that a budget of money can count them.
//!
//! Invariant: a call that is not among them is refused by each budget of money in that currency that counts it.
//! Not here: what is refused when a call comes (`budget_reservation`).

use crate::id::BackendId;
use crate::price::Payer;
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

/// The calls of a route that have a price, for somebody; where nobody is said, for anybody.
pub fn of<'s>(
    route: &'s Route,
    payer: Option<Payer<'s>>,
    s: &'s Snapshot,
) -> impl Iterator<Item = Priced<'s>> {
    let listed = route.unread.iter().filter_map(|listed| {
        Some(Priced {
            asked: None,
            sent: None,
            currency: &s.prices.get(listed.price?)?.currency,
        })
    });
    let replaced = route.model.as_deref().into_iter().flat_map(move |model| {
        let currencies = currencies_of(model, route, payer, s);
        currencies.map(move |currency| Priced {
            asked: None,
            sent: Some(model),
            currency,
        })
    });
    let takes = |model: &str| {
        let mut patterns = route.models.iter();
        route.models.is_empty() || patterns.any(|pattern| pattern.takes(model))
    };
    let models = s.prices.models().map(AsRef::as_ref);
    let models = models.filter(move |model| route.model.is_none() && takes(model));
    let as_asked = models.flat_map(move |model| {
        let currencies = currencies_of(model, route, payer, s);
        currencies.map(move |currency| Priced {
            asked: Some(model),
            sent: Some(model),
            currency,
        })
    });
    listed.chain(replaced).chain(as_asked)
}

/// In which currencies a model has a price at every backend of a route.
fn currencies_of<'s>(
    model: &'s str,
    route: &'s Route,
    payer: Option<Payer<'s>>,
    s: &'s Snapshot,
) -> impl Iterator<Item = &'s str> {
    let at = move |backend: BackendId| {
        let somebody = payer.and_then(|payer| s.prices.of(model, Some(backend), payer));
        let anybody = payer.is_none().then(|| s.prices.of_any(model, backend));
        somebody.into_iter().chain(anybody.into_iter().flatten())
    };
    let (first, others) = route.backends.split_first().unzip();
    let mut seen: Vec<&str> = Vec::new();
    let of_first = first.into_iter().flat_map(move |backend| at(*backend));
    of_first.filter_map(move |price| {
        let currency = &*price.currency;
        let mut others = others.unwrap_or_default().iter();
        let is_there = |backend: &BackendId| at(*backend).any(|there| *there.currency == *currency);
        (!seen.contains(&currency) && others.all(is_there)).then(|| {
            seen.push(currency);
            currency
        })
    })
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
