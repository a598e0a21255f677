//! `routes[].batches`: which routes let their workloads keep files and have batches made, and what the calls of those cost.
//!
//! Invariant: a route that allows them leads to one backend, which speaks their API itself, and puts no name of a model in the place of
//! another's; it needs a ledger, beside which it is kept whose they are.
//! Not here: whose they are (`ledger`), what the calls of a batch may ask for (`policy::batches`).

use std::time::Duration;

use policy::batch_store::Batches;
use policy::id::PriceId;
use policy::price::{Prices, WHOLE};
use policy::snapshot::Snapshot;
use policy::wire::batch::{Api, asked};
use policy::wire::head::Method;
use translate::Dialect;

use super::backend::number;
use super::price;
use crate::decode::{ListOf, Place};
use crate::schema::{Document, Route};

const UNSETTLED: u32 = 100;
const EVERY: Duration = Duration::from_secs(60);
/// Oftener than this a provider is not asked.
const EVERY_MIN: Duration = Duration::from_secs(1);

impl super::Lowering<'_> {
    pub(super) fn batches(
        &mut self,
        written: &ListOf<Route>,
        document: &Document,
        s: &mut Snapshot,
    ) {
        let sound = || {
            let routes = written.0.iter();
            routes.filter_map(|(place, route)| Some((place, route.as_ref()?)))
        };
        if sound().all(|(_, route)| route.batches.is_absent()) {
            return;
        }
        let models: Vec<(String, String, PriceId)> = priced(&s.prices, s);
        for (nth, (place, route)) in sound().enumerate() {
            self.unlisted(route);
            let Some(of) = route.batches.get() else {
                continue;
            };
            self.batches_fit(route, place, document, s, nth);
            let Some(api) = of.api.value().map(|api| api.0) else {
                continue;
            };
            let price_share = of.price_share.value().map_or(WHOLE, |share| share.0);
            if let Some(at) = of.check_every.get().filter(|at| at.value.0 < EVERY_MIN) {
                self.refuse(at, "asks the provider too often", "write 1s or more");
            }
            if price_share != WHOLE {
                self.price_shares(price_share, &models, place, &mut s.prices);
            }
            if let Some(lowered) = s.routes.get_mut(nth) {
                lowered.batches = Some(Box::new(Batches {
                    api,
                    unsettled: of.unsettled.value().map_or(UNSETTLED, |most| most.0),
                    price_share,
                    every: of.check_every.value().map_or(EVERY, |span| span.0),
                }));
            }
        }
    }

    /// Calls of files and batches are read, and are listed nowhere, where some route allows them.
    fn unlisted(&mut self, route: &Route) {
        for (_, entry) in route.unread.items() {
            let Some(entry) = entry else { continue };
            for at in entry.call.items() {
                let path = at.value.path.example();
                let methods = [at.value.method, Method::Post, Method::Get];
                let is_read = methods
                    .into_iter()
                    .any(|method| matches!(asked(method, &path), Some(Ok(_))));
                if is_read {
                    let hint = "leave it out, and give this route `batches`, too, where it may make such calls";
                    self.refuse(at, "is read here, as another route allows batches", hint);
                }
            }
        }
    }

    /// Whether a route can have files and batches.
    fn batches_fit(
        &mut self,
        route: &Route,
        place: &Place,
        document: &Document,
        s: &Snapshot,
        nth: usize,
    ) {
        if document.ledger.is_absent() {
            let says = "allows batches, and there is no ledger: beside it is kept whose they are, and it is there that they are charged";
            self.fault(
                place,
                says,
                "say where it is, such as ledger: { path: usage.db }",
            );
        }
        if !route.model.is_absent() {
            let says = "allows batches, and says `model`: nothing is put in the place of names within a file";
            self.fault(
                place,
                says,
                "leave `model` out, or give batches a route of their own",
            );
        }
        let Some(lowered) = s.routes.get(nth) else {
            return;
        };
        let [backend] = &*lowered.backends else {
            let says = "allows batches, and has several backends: what one of them keeps, the others do not have";
            self.fault(place, says, "give batches a route with one backend");
            return;
        };
        let Some(backend) = s.backend(*backend) else {
            return;
        };
        let api = route.batches.get().and_then(|of| of.api.value());
        if let Some(api) = api.map(|api| api.0)
            && !speaks(document, &backend.name, api)
        {
            let says = format!(
                "allows batches of {}, and {} speaks another API: files are not translated",
                api.as_str(),
                backend.name
            );
            let hint = "have `dialect` of the backend name that API, too, or leave it out";
            self.fault(place, says, hint);
        }
        if backend.endpoints.len() > 1 {
            let says = format!(
                "allows batches, and {} has several addresses: what one of them keeps, the others may not have",
                backend.name
            );
            self.fault(place, says, "give batches a backend with one address");
        }
    }

    /// What calls cost that are charged a share of a price.
    fn price_shares(
        &mut self,
        millionths: u32,
        of: &[(String, String, PriceId)],
        place: &Place,
        prices: &mut Prices,
    ) {
        for (model, backend, id) in of {
            if prices.share_of(*id, millionths) != *id {
                continue;
            }
            let Some(whole) = prices.get(*id).cloned() else {
                continue;
            };
            match whole.share(millionths) {
                Some(mut share) => {
                    share.id = price::id(&share, model, backend).into();
                    prices.add_share(*id, millionths, share);
                }
                None => {
                    let says =
                        format!("the price of {model} has no such share in whole units of 1e-12");
                    self.fault(place, says, "write a share with fewer decimal places");
                }
            }
        }
    }
}

/// Whether a backend speaks an API itself, as far as it says what it speaks.
fn speaks(document: &Document, backend: &str, api: Api) -> bool {
    let written = document.backends.get().and_then(|backends| {
        let mut named = backends.0.iter();
        let (_, written) = named.find(|(name, _)| *name.value.0 == *backend)?;
        written.as_ref()
    });
    let spoken = written.map_or(&[][..], |written| written.dialect.items());
    spoken.is_empty()
        || spoken.iter().any(|at| match api {
            Api::OpenAi => matches!(at.value.0, Dialect::OpenAi | Dialect::Responses),
            Api::Anthropic => at.value.0 == Dialect::Anthropic,
        })
}

/// The prices of models, and of which they are.
fn priced(prices: &Prices, s: &Snapshot) -> Vec<(String, String, PriceId)> {
    let named = prices.iter().map(|(model, backend, price)| {
        let at = prices.all().iter().position(|one| one.id == price.id);
        let backend = backend.and_then(|id| s.backend(id));
        let backend = backend.map_or_else(String::new, |backend| backend.name.to_string());
        (model.to_owned(), backend, PriceId(number(at.unwrap_or(0))))
    });
    named.collect()
}
