//! Prices of models, and what a call costs by them.
//!
//! Money is whole numbers of 1e-12 of the currency's unit, so that a price per token is exact and
//! sums do not depend on their order.
//! Invariant: an unknown price is unknown, never zero, and so is a cost of which a count is
//! unknown or that does not fit. Cached, cache-written, reasoning and audio tokens are part of prompt
//! and completion: each token is charged once.
//! Not here: how a price is written (`config`), amounts over a period ([`crate::budget`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::id::{BackendId, BudgetId, PriceId, WorkloadId};
use crate::tokens::Tokens;

/// Decimal money: 1e-12 of the currency's unit, so that a price per token is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Pico(pub i128);

/// What one token costs, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Per prompt token that was not cached.
    pub input: Pico,
    /// Per prompt token that the engine had cached.
    pub cached: Pico,
    /// Per prompt token written to a cache that keeps it five minutes.
    pub cache_write_5m: Pico,
    /// Per prompt token written to a cache that keeps it an hour.
    pub cache_write_1h: Pico,
    /// Per prompt token of audio.
    pub audio_input: Pico,
    /// Per completion token of text that was not reasoning.
    pub output: Pico,
    /// Per completion token spent on reasoning.
    pub reasoning: Pico,
    /// Per completion token of audio.
    pub audio_output: Pico,
}

impl Rates {
    /// Rates of a model whose tokens cost the same whatever kind they are of.
    #[must_use]
    pub const fn flat(input: Pico, output: Pico) -> Self {
        Self {
            input,
            cached: input,
            cache_write_5m: input,
            cache_write_1h: input,
            audio_input: input,
            output,
            reasoning: output,
            audio_output: output,
        }
    }

    /// The most that a prompt token can cost.
    fn input_max(&self) -> Pico {
        let kinds = [
            self.cached,
            self.cache_write_5m,
            self.cache_write_1h,
            self.audio_input,
        ];
        kinds.into_iter().fold(self.input, Pico::max)
    }

    /// The most that a completion token can cost.
    fn output_max(&self) -> Pico {
        self.output.max(self.reasoning).max(self.audio_output)
    }
}

/// Rates of calls with long prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    /// It applies to the whole of a call whose prompt has more tokens than this.
    pub above: u64,
    /// What such a call's tokens cost.
    pub rates: Rates,
}

/// What a model costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// Hash of all that follows and of what it is for; the same however it is written.
    pub id: Arc<str>,
    /// Whose calls it is for, in words; empty where it is everybody's.
    pub whose: Arc<str>,
    /// ISO 4217 code.
    pub currency: Arc<str>,
    /// Per call that was answered, or for each unit that its answer is billed by: of search, or image.
    pub request: Pico,
    /// Per token.
    pub rates: Rates,
    /// By length of the prompt; ascending in `above`.
    pub tiers: Vec<Tier>,
}

/// What an exchange is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// By which price of the exchange's snapshot.
    pub price: PriceId,
    /// In the price's currency; `None` when a count it needs is not known, or it does not fit.
    pub cost: Option<Pico>,
}

/// The catalogue: prices by model, and where they differ by who pays or by backend; and those of listed calls, which
/// name theirs by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices {
    by_model: BTreeMap<Arc<str>, Vec<Entry>>,
    all: Vec<Arc<Price>>,
    /// Of a price, that of calls which cost so many millionths of it.
    shares: BTreeMap<(PriceId, u32), PriceId>,
}

/// All of a price, in millionths.
pub const WHOLE: u32 = 1_000_000;

/// What a model costs those for whom it is, if no entry before this one is for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    payers: Option<Arc<Payers>>,
    anywhere: Option<PriceId>,
    at: Vec<(BackendId, PriceId)>,
}

/// Whose calls a price is for: who fits all that is said, and of each one that is listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payers {
    /// Workloads; empty takes any.
    pub workloads: Vec<WorkloadId>,
    /// Ids of the gate's own keys; empty takes any, and calls without a key.
    pub keys: Vec<Arc<str>>,
    /// Tags with their values; empty takes any, and calls without tags.
    pub tags: Vec<(Arc<str>, Arc<str>)>,
    /// A budget that has used more than so many of its units in the period of the call; none takes any call.
    pub volume: Option<(BudgetId, u64)>,
}

/// How much of each budget is used.
pub trait Volume: std::fmt::Debug {
    /// What is spent and reserved of a budget in the period of the call that is asked about.
    fn used(&self, budget: BudgetId) -> u64;
}

/// Who pays for a call, as far as prices ask.
#[derive(Debug, Clone, Copy, Default)]
pub struct Payer<'a> {
    /// The calling workload.
    pub workload: Option<WorkloadId>,
    /// The id of the gate's own key that was brought.
    pub key: Option<&'a str>,
    /// What else is known of the caller.
    pub tags: &'a [(Arc<str>, Arc<str>)],
    /// What is used of budgets; where nobody knows, prices for what is above a volume are for no call.
    pub volume: Option<&'a dyn Volume>,
}

impl Payers {
    /// Whether somebody's calls are among them.
    #[must_use]
    pub fn take(&self, payer: Payer<'_>) -> bool {
        let Payer {
            workload,
            key,
            tags,
            volume,
        } = payer;
        let is_above = |(budget, above): (BudgetId, u64)| {
            volume.is_some_and(|volume| volume.used(budget) > above)
        };
        (self.workloads.is_empty() || workload.is_some_and(|id| self.workloads.contains(&id)))
            && (self.keys.is_empty()
                || key.is_some_and(|key| self.keys.iter().any(|k| **k == *key)))
            && (self.tags.is_empty() || self.tags.iter().any(|tag| tags.contains(tag)))
            && self.volume.is_none_or(is_above)
    }
}

impl Entry {
    fn id_at(&self, backend: Option<BackendId>) -> Option<PriceId> {
        let own = self.at.iter().find(|(at, _)| Some(*at) == backend);
        own.map(|(_, price)| *price).or(self.anywhere)
    }
}

impl Prices {
    /// Adds a price: of a model at one backend, or wherever none of the backend's own is known.
    pub fn insert(&mut self, model: &str, backend: Option<BackendId>, price: Price) {
        self.insert_for(model, None, backend, price);
    }

    /// The same for some alone, behind those that were added before; everybody where nobody is named.
    pub fn insert_for(
        &mut self,
        model: &str,
        payers: Option<&Arc<Payers>>,
        backend: Option<BackendId>,
        price: Price,
    ) {
        let id = self.add(price);
        let entries = self.by_model.entry(model.into()).or_default();
        if entries
            .last()
            .is_none_or(|last| last.payers.as_ref() != payers)
        {
            entries.push(Entry {
                payers: payers.cloned(),
                ..Entry::default()
            });
        }
        let Some(of) = entries.last_mut() else { return };
        match backend {
            Some(backend) => of.at.push((backend, id)),
            None => of.anywhere = Some(id),
        }
    }

    /// Adds a price of no model.
    pub fn add(&mut self, price: Price) -> PriceId {
        let id = PriceId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        self.all.push(Arc::new(price));
        id
    }

    /// Adds what calls cost that are charged so many millionths of a price.
    pub fn add_share(&mut self, of: PriceId, millionths: u32, price: Price) {
        let share = self.add(price);
        self.shares.insert((of, millionths), share);
    }

    /// The price of calls that are charged so many millionths of one; that itself, where nothing is known of less.
    #[must_use]
    pub fn share_of(&self, of: PriceId, millionths: u32) -> PriceId {
        self.shares.get(&(of, millionths)).copied().unwrap_or(of)
    }

    /// The price, if the id is of this catalogue.
    #[must_use]
    pub fn get(&self, id: PriceId) -> Option<&Arc<Price>> {
        self.all.get(id.index())
    }

    /// What a model costs somebody at a backend; `None` is unknown.
    #[must_use]
    pub fn of(
        &self,
        model: &str,
        backend: Option<BackendId>,
        payer: Payer<'_>,
    ) -> Option<&Arc<Price>> {
        self.get(self.id_of(model, backend, payer)?)
    }

    /// What a model costs at a backend, whoever pays: a price for each kind of payer.
    pub fn of_any<'p>(
        &'p self,
        model: &str,
        backend: BackendId,
    ) -> impl Iterator<Item = &'p Arc<Price>> {
        let entries = self.by_model.get(model).map_or(&[][..], Vec::as_slice);
        let ids = entries
            .iter()
            .filter_map(move |entry| entry.id_at(Some(backend)));
        ids.filter_map(|id| self.get(id))
    }

    pub(crate) fn id_of(
        &self,
        model: &str,
        backend: Option<BackendId>,
        payer: Payer<'_>,
    ) -> Option<PriceId> {
        let mut entries = self.by_model.get(model)?.iter();
        let takes = |payers: &Arc<Payers>| payers.take(payer);
        let entry = entries.find(|entry| entry.payers.as_ref().is_none_or(takes))?;
        entry.id_at(backend)
    }

    /// Whether no model has a price.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_model.is_empty()
    }

    /// The models that have a price.
    pub fn models(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_model.keys()
    }

    /// Every price, by its id.
    #[must_use]
    pub fn all(&self) -> &[Arc<Price>] {
        &self.all
    }

    /// Every model's price with its model and backend, in the order of the models' names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<BackendId>, &Arc<Price>)> {
        let entries = self
            .by_model
            .iter()
            .flat_map(|(model, entries)| entries.iter().map(move |entry| (model, entry)));
        entries.flat_map(move |(model, of)| {
            let anywhere = of.anywhere.iter().map(|price| (None, *price));
            let at = of
                .at
                .iter()
                .map(|(backend, price)| (Some(*backend), *price));
            let ids = anywhere.chain(at);
            ids.filter_map(move |(backend, id)| Some((&**model, backend, self.get(id)?)))
        })
    }

    pub(crate) fn charge(&self, id: PriceId, tokens: &Tokens) -> Option<Charge> {
        let cost = self.get(id)?.cost(tokens);
        Some(Charge { price: id, cost })
    }

    /// Both together, by the price of the first; `None` where a cost is not known, currencies differ, or the sum does
    /// not fit.
    #[cold]
    pub(crate) fn sum(&self, of: Charge, more: Charge) -> Option<Charge> {
        if self.get(of.price)?.currency != self.get(more.price)?.currency {
            return None;
        }
        let cost = of.cost?.0.checked_add(more.cost?.0)?;
        Some(Charge {
            cost: Some(Pico(cost)),
            ..of
        })
    }
}

impl Price {
    /// So many millionths of it, for calls of batches, without an id; `None` where that is no whole number of units.
    #[must_use]
    pub fn share(&self, millionths: u32) -> Option<Self> {
        let part = |Pico(all): Pico| {
            let part = all.checked_mul(i128::from(millionths))?;
            let whole = i128::from(WHOLE);
            (part % whole == 0).then_some(Pico(part / whole))
        };
        let rates = |of: &Rates| {
            Some(Rates {
                input: part(of.input)?,
                cached: part(of.cached)?,
                cache_write_5m: part(of.cache_write_5m)?,
                cache_write_1h: part(of.cache_write_1h)?,
                audio_input: part(of.audio_input)?,
                output: part(of.output)?,
                reasoning: part(of.reasoning)?,
                audio_output: part(of.audio_output)?,
            })
        };
        let tiers = self.tiers.iter().map(|tier| {
            Some(Tier {
                above: tier.above,
                rates: rates(&tier.rates)?,
            })
        });
        Some(Self {
            id: "".into(),
            whose: match &*self.whose {
                "" => "batches".into(),
                whose => format!("{whose}, in batches").into(),
            },
            currency: Arc::clone(&self.currency),
            request: part(self.request)?,
            rates: rates(&self.rates)?,
            tiers: tiers.collect::<Option<_>>()?,
        })
    }

    /// What a call of these tokens costs. A sub-count larger than what is left of the count that it is
    /// part of is taken for all of that.
    #[must_use]
    pub fn cost(&self, tokens: &Tokens) -> Option<Pico> {
        let (prompt, completion) = (tokens.prompt.tokens()?, tokens.completion.tokens()?);
        let rates = self.rates(prompt);
        let mut sum = match tokens.units {
            0 | 1 => self.request,
            units => add(Pico(0), (units.into(), self.request))?,
        };
        let mut part = |left: &mut u64, tokens: Option<u64>, rate| -> Option<()> {
            let part = tokens.unwrap_or(0).min(*left);
            *left -= part;
            sum = add(sum, (part, rate))?;
            Some(())
        };
        let mut left = prompt;
        part(&mut left, tokens.cached, rates.cached)?;
        part(&mut left, tokens.cache_write_1h, rates.cache_write_1h)?;
        part(&mut left, tokens.cache_write_5m, rates.cache_write_5m)?;
        part(&mut left, tokens.audio_prompt, rates.audio_input)?;
        part(&mut left, Some(prompt), rates.input)?;
        let mut left = completion;
        part(&mut left, tokens.reasoning, rates.reasoning)?;
        part(&mut left, tokens.audio_completion, rates.audio_output)?;
        part(&mut left, Some(completion), rates.output)?;
        Some(sum)
    }

    /// The most that a call of so many tokens costs, whatever kinds they are of.
    #[must_use]
    pub fn at_most(&self, prompt: u64, completion: u64) -> Option<Pico> {
        let rates = self.rates(prompt);
        [
            (prompt, rates.input_max()),
            (completion, rates.output_max()),
        ]
        .into_iter()
        .try_fold(self.request, add)
    }

    /// The most that a call of so many tokens costs when nobody knows their direction.
    #[must_use]
    pub fn at_most_of(&self, tokens: u64) -> Option<Pico> {
        let all = self.at_most(tokens, 0)?;
        Some(all.max(self.at_most(0, tokens)?))
    }

    fn rates(&self, prompt: u64) -> &Rates {
        let tier = self.tiers.iter().rev().find(|tier| prompt > tier.above);
        tier.map_or(&self.rates, |tier| &tier.rates)
    }
}

fn add(sum: Pico, (tokens, rate): (u64, Pico)) -> Option<Pico> {
    let part = match (u64::try_from(rate.0), tokens) {
        (_, 0) => return Some(sum),
        // One multiplication of machine words; a checked one of i128 is three and their checks.
        (Ok(rate), tokens) => i128::try_from(u128::from(rate) * u128::from(tokens)).ok()?,
        (Err(_), tokens) => wide(rate, tokens)?,
    };
    sum.0.checked_add(part).map(Pico)
}

#[cold]
fn wide(rate: Pico, tokens: u64) -> Option<i128> {
    rate.0.checked_mul(i128::from(tokens))
}

#[cfg(test)]
mod tests;
