//! `prices`: decimals to whole 1e-12 units per token, with an id for each price.
//!
//! Invariant: no rounding; a price that is not a whole number of units is a fault. Two prices have
//! one id exactly when they say the same of the same, however they are written.
//! Not here: what a call costs (`policy::price`).

pub(super) mod catalogue;
pub(super) mod own_names;
mod payers;

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use policy::id::BackendId;
use policy::price::{Payers, Pico, Price, Prices, Rates, Tier};
use policy::snapshot::Snapshot;
use sha2::{Digest, Sha256};

use self::own_names::Renamed;
use super::backend::number;
use crate::decode::{At, Field, MapOf, nearest};
use crate::scalar::{Currency, Decimal, Name, PricePer};
use crate::schema::price::Amounts;
use crate::schema::{self, PriceList};

const PICO_PLACES: u32 = 12;
/// Of one price.
const TIERS_MAX: usize = 8;

/// Of one model.
const ENTRIES_MAX: usize = 64;

/// A price as written, for a model or for a model at a backend.
struct Written<'w> {
    /// Whose calls it is for, in words.
    whose: &'w str,
    amounts: &'w Amounts,
    per: u32,
    currency: &'w str,
}

/// Whether all calls that the second is for are the first's, since that is for the same callers above no more of the same budget.
fn is_below(first: &Payers, second: &Payers) -> bool {
    let (Some((budget, above)), Some((other, least))) = (first.volume, second.volume) else {
        return false;
    };
    let who = |of: &Payers| (of.workloads.clone(), of.keys.clone(), of.tags.clone());
    budget == other && above < least && who(first) == who(second)
}

impl super::Lowering<'_> {
    pub(super) fn prices(
        &mut self,
        list: &PriceList,
        document: &schema::Document,
        snapshot: &Snapshot,
    ) -> Prices {
        let mut prices = Prices::default();
        let written = list.models.0.iter();
        let written: HashSet<&str> = written.map(|(model, _)| model.value.0.as_str()).collect();
        for (model, entries) in &list.models.0 {
            let also = own_names::renamed(&model.value.0, &written, snapshot);
            let entries = entries.as_ref().map_or(&[][..], |entries| &entries.0);
            if let Some((place, _)) = entries.get(ENTRIES_MAX) {
                let says = format!("a model has at most {ENTRIES_MAX} prices");
                self.fault(place, says, "");
            }
            let mut earlier = HashSet::new();
            let mut volumes: Vec<Arc<Payers>> = Vec::new();
            for (place, price) in entries.iter().take(ENTRIES_MAX) {
                let Some(price) = price else { continue };
                let Some((whose, payers)) = self.payers(place, price, document, snapshot) else {
                    continue;
                };
                if earlier.contains("") || !earlier.insert(whose.clone()) {
                    let says =
                        "is never what a call costs: one before it is for all whom it is for";
                    let hint = "the first that is for a call counts; write those for some before that for everybody";
                    self.fault(place, says, hint);
                }
                let payers = payers.map(Arc::new);
                if let Some(payers) = &payers {
                    if volumes.iter().any(|before| is_below(before, payers)) {
                        let says = "is never what a call costs: one before it is for the same callers above a smaller volume";
                        self.fault(place, says, "write the one above the largest volume first");
                    }
                    volumes.push(Arc::clone(payers));
                }
                let of = (model.value.0.as_str(), &*whose, payers);
                self.entry(&of, &also, price, document, snapshot, &mut prices);
            }
        }
        if let Some(at) = list.catalogue.get() {
            self.add_catalogue(at, list, snapshot, &mut prices);
        }
        prices
    }

    /// What a model costs some, anywhere and at each backend that has a price of its own.
    fn entry(
        &mut self,
        (model, whose, payers): &(&str, &str, Option<Arc<Payers>>),
        also: &[Renamed<'_>],
        price: &schema::Price,
        document: &schema::Document,
        snapshot: &Snapshot,
        prices: &mut Prices,
    ) {
        let per = per(&price.per, 6);
        let currency = currency(&price.currency, "USD");
        let anywhere = Written {
            whose,
            amounts: &price.amounts,
            per,
            currency,
        };
        if let Some(lowered) = self.price(&anywhere, model, "") {
            let apart = |of: &&Renamed<'_>| {
                let mut at = price.at.items().iter();
                at.any(|(backend, _)| *backend.value.0 == *of.backend)
            };
            for of in also.iter().filter(|of| !apart(of)) {
                prices.insert_for(of.known, payers.as_ref(), Some(of.at), of.price(&lowered));
            }
            prices.insert_for(model, payers.as_ref(), None, lowered);
        }
        for (backend, here) in price.at.items() {
            let known = self.backend_of_price(backend, document.backends.get(), snapshot);
            let Some(here) = here else { continue };
            let here = Written {
                whose,
                amounts: &here.amounts,
                per: self::per(&here.per, per),
                currency: self::currency(&here.currency, currency),
            };
            let lowered = self.price(&here, model, &backend.value.0);
            if let (Some(known), Some(lowered)) = (known, lowered) {
                for of in also.iter().filter(|of| of.at == known) {
                    prices.insert_for(of.known, payers.as_ref(), Some(known), of.price(&lowered));
                }
                prices.insert_for(model, payers.as_ref(), Some(known), lowered);
            }
        }
    }

    fn backend_of_price(
        &mut self,
        name: &At<Name>,
        declared: Option<&MapOf<Name, schema::Backend>>,
        snapshot: &Snapshot,
    ) -> Option<BackendId> {
        let declared = declared?.0.iter();
        let names: Vec<&str> = declared.map(|(name, _)| name.value.0.as_str()).collect();
        if !names.contains(&name.value.0.as_str()) {
            let near = nearest(&name.value.0, &names);
            let hint = near.map_or_else(String::new, |near| format!("did you mean {near}?"));
            let says = format!("there is no backend {}", name.shown);
            self.fault(&name.place, says, hint);
        }
        let known = snapshot.backends.iter();
        let at = known.into_iter().position(|b| *b.name == *name.value.0)?;
        Some(BackendId(number(at)))
    }

    fn price(&mut self, written: &Written<'_>, model: &str, backend: &str) -> Option<Price> {
        let rates = self.rates_of(&written.amounts.rates, written.per);
        let request = match &written.amounts.request {
            Field::Absent => Some(Pico(0)),
            Field::Bad => None,
            Field::Is(at) => self.pico(at, 0),
        };
        let tiers = self.tiers(written);
        let mut price = Price {
            id: "".into(),
            whose: written.whose.into(),
            currency: written.currency.into(),
            request: request?,
            rates: rates?,
            tiers: tiers?,
        };
        price.id = id(&price, model, backend).into();
        Some(price)
    }

    fn tiers(&mut self, written: &Written<'_>) -> Option<Vec<Tier>> {
        let list = match &written.amounts.tiers {
            Field::Absent => return Some(Vec::new()),
            Field::Bad => return None,
            Field::Is(list) => &list.0,
        };
        if let Some((place, _)) = list.get(TIERS_MAX) {
            let says = format!("a price has at most {TIERS_MAX} tiers");
            self.fault(place, says, "");
        }
        let mut tiers: Vec<Tier> = Vec::new();
        for (_, tier) in list {
            let tier = tier.as_ref()?;
            let rates = self.rates_of(&tier.rates, written.per);
            let above = tier.above.get()?;
            if tiers.last().is_some_and(|last| last.above >= above.value.0) {
                let hint = "write tiers in the order of `above`";
                self.refuse(above, "is not above the tier before it", hint);
            }
            self.left_out_of_tier(&written.amounts.rates, tier);
            tiers.push(Tier {
                above: above.value.0,
                rates: rates?,
            });
        }
        Some(tiers)
    }

    /// Rates that a price says and its tier does not: there they are as its `input` or `output`, which is seldom meant.
    fn left_out_of_tier(&mut self, base: &schema::price::Rates, tier: &schema::price::Tier) {
        let kinds = [
            (
                "cached_input",
                &base.cached_input,
                &tier.rates.cached_input,
                &tier.rates.input,
            ),
            (
                "cache_write_5m",
                &base.cache_write_5m,
                &tier.rates.cache_write_5m,
                &tier.rates.input,
            ),
            (
                "cache_write_1h",
                &base.cache_write_1h,
                &tier.rates.cache_write_1h,
                &tier.rates.input,
            ),
            (
                "reasoning",
                &base.reasoning,
                &tier.rates.reasoning,
                &tier.rates.output,
            ),
        ];
        let left = kinds.into_iter().find_map(|(name, base, own, instead)| {
            let (base, instead) = (base.get()?, instead.get()?);
            matches!(own, Field::Absent).then_some((name, base, instead))
        });
        if let (Some((name, base, instead)), Some(above)) = (left, tier.above.get()) {
            let says = format!(
                "does not say `{name}`, which costs {} in this tier, and {} below it",
                instead.shown, base.shown
            );
            self.warn(
                &above.place,
                says,
                format!("write `{name}` in the tier, too"),
            );
        }
    }

    fn rates_of(&mut self, written: &schema::price::Rates, per: u32) -> Option<Rates> {
        let mut rate = |field: &Field<At<Decimal>>| field.get().and_then(|at| self.pico(at, per));
        let input = rate(&written.input);
        let output = rate(&written.output);
        let mut or = |field: &Field<At<Decimal>>, other| match field {
            Field::Absent => other,
            Field::Bad | Field::Is(_) => rate(field),
        };
        // All of them first: each fault is told, also where another one makes the price useless.
        let cached = or(&written.cached_input, input);
        let five_minutes = or(&written.cache_write_5m, input);
        let hour = or(&written.cache_write_1h, input);
        let audio_input = or(&written.audio_input, input);
        let reasoning = or(&written.reasoning, output);
        let audio_output = or(&written.audio_output, output);
        Some(Rates {
            input: input?,
            cached: cached?,
            cache_write_5m: five_minutes?,
            cache_write_1h: hour?,
            audio_input: audio_input?,
            output: output?,
            reasoning: reasoning?,
            audio_output: audio_output?,
        })
    }

    pub(super) fn pico(&mut self, at: &At<Decimal>, per: u32) -> Option<Pico> {
        let Decimal { digits, places } = at.value;
        let finer = places + per;
        if let Some(shift) = PICO_PLACES.checked_sub(finer) {
            return Some(Pico(digits.checked_mul(10_i128.checked_pow(shift)?)?));
        }
        let unit = 10_i128.checked_pow(finer - PICO_PLACES)?;
        if digits % unit == 0 {
            return Some(Pico(digits / unit));
        }
        let what = if per == 0 { "" } else { " for a token" };
        let says = format!("{} is finer than 1e-12{what}", at.shown);
        let most = PICO_PLACES.saturating_sub(per);
        self.fault(
            &at.place,
            says,
            format!("write at most {most} decimal places"),
        );
        None
    }
}

fn per(written: &Field<At<PricePer>>, unless: u32) -> u32 {
    written.get().map_or(unless, |at| at.value.0)
}

fn currency<'w>(written: &'w Field<At<Currency>>, unless: &'w str) -> &'w str {
    written.get().map_or(unless, |at| at.value.0.as_str())
}

/// The first 16 hex digits of SHA-256 over what the price says and of what.
pub(super) fn id(price: &Price, model: &str, backend: &str) -> String {
    let mut said = format!(
        "{model}\n{backend}\n{}\n{}",
        price.currency, price.request.0
    );
    let mut rates = |above: u64, r: &Rates| {
        let [input, cached] = [r.input.0, r.cached.0];
        let [output, reasoning] = [r.output.0, r.reasoning.0];
        let line = write!(said, "\n{above} {input} {cached} {output} {reasoning}");
        debug_assert!(line.is_ok(), "text takes everything");
        // Said only where they differ from what they are without being written, so that prices which
        // do not use them keep their ids.
        let further = [
            r.cache_write_5m,
            r.cache_write_1h,
            r.audio_input,
            r.audio_output,
        ];
        if further != [r.input, r.input, r.input, r.output] {
            let [five_minutes, hour, audio_input, audio_output] = further.map(|rate| rate.0);
            let line = write!(said, " {five_minutes} {hour} {audio_input} {audio_output}");
            debug_assert!(line.is_ok(), "text takes everything");
        }
    };
    rates(0, &price.rates);
    for tier in &price.tiers {
        rates(tier.above, &tier.rates);
    }
    // Said only where it is not everybody's, for the same reason.
    if !price.whose.is_empty() {
        let line = write!(said, "\nfor {}", price.whose);
        debug_assert!(line.is_ok(), "text takes everything");
    }
    let digest = Sha256::digest(said.as_bytes());
    let hex = digest.iter().take(8).map(|byte| format!("{byte:02x}"));
    hex.collect()
}
