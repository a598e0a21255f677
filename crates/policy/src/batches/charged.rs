//! What a batch used, once that is told: summed up by model, and charged to limits and budgets as they are then.
//!
//! Invariant: tokens are summed as they were reported; money is summed call by call, so that a price for long prompts is that of the calls
//! that have them.
//! Not here: that it is done once (`BatchStore::row`), who asks the provider (the host).

use std::sync::Arc;

use wire::usage::{Reading, Usage};

use super::{allowed, caller};
use crate::batch_store::{Batches, GivenUp};
use crate::caller::Caller;
use crate::front::{Env, Reservation};
use crate::id::{EndpointId, PriceId, WorkloadId};
use crate::levels::Levels;
use crate::levels::used::Used as UsedNow;
use crate::operation::Operation;
use crate::price::{Charge, Payer, Pico};
use crate::record::{Count, Outcome, Record, Tokens};
use crate::revision::Revision;
use crate::route::Chosen;
use crate::snapshot::Snapshot;

/// What calls to one model used, summed up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Used {
    /// What they were.
    pub tokens: Tokens,
    /// What they cost, where each has a cost.
    pub cost: Option<Pico>,
    /// The price by which they do: that of the first of them, whatever its volume came to meanwhile.
    price: Option<PriceId>,
    /// Calls of which something is told.
    pub calls: u64,
    /// Calls of which a cost was asked.
    priced: u64,
    /// Calls that were answered without a word of what they used: each costs what its price says of a call.
    pub untold: u64,
}

impl Used {
    /// One more call of this price, where it has one; `pieces` where it is billed by these, too.
    pub fn add(
        &mut self,
        told: &Reading,
        pieces: Option<u32>,
        price: Option<PriceId>,
        s: &Snapshot,
    ) {
        self.price = self.price.or(price);
        let Reading::Valid(usage) = told else {
            self.tokens.units = self.tokens.units.saturating_add(pieces.unwrap_or(0));
            let each = price.and_then(|id| s.prices.get(id));
            let each = each.map_or(Pico(0), |price| price.request);
            if each.0 > 0 {
                let pieces = pieces.unwrap_or(1).max(1);
                self.costs(each.0.checked_mul(pieces.into()).map(Pico));
            }
            self.untold += 1;
            return;
        };
        let mut tokens = tokens(usage);
        tokens.units = pieces.unwrap_or(tokens.units);
        let cost = price
            .and_then(|id| s.prices.charge(id, &tokens))
            .and_then(|charge| charge.cost);
        self.costs(cost);
        self.calls += 1;
        let all = &mut self.tokens;
        for (all, one) in [
            (&mut all.prompt, tokens.prompt),
            (&mut all.completion, tokens.completion),
        ] {
            if let Some(one) = one.tokens() {
                let sum = all.tokens().unwrap_or(0).saturating_add(one);
                *all = Count::Reported(sum);
            }
        }
        for (all, one) in [
            (&mut all.cached, tokens.cached),
            (&mut all.cache_write_5m, tokens.cache_write_5m),
            (&mut all.cache_write_1h, tokens.cache_write_1h),
            (&mut all.reasoning, tokens.reasoning),
            (&mut all.audio_prompt, tokens.audio_prompt),
            (&mut all.audio_completion, tokens.audio_completion),
        ] {
            if let Some(one) = one {
                *all = Some(all.unwrap_or(0).saturating_add(one));
            }
        }
        all.units = all.units.saturating_add(tokens.units);
        all.doubtful |= tokens.doubtful;
    }
}

impl Used {
    /// The same, to be charged by a newer configuration; `None` where these calls have another price there: they are to be summed anew.
    #[must_use]
    pub fn carried(&self, from: &Snapshot, of: &Late<'_>, to: &Revision) -> Option<Self> {
        let Revision { snapshot, levels } = to;
        let price = price_of(of, snapshot, levels);
        let was = self.price.and_then(|id| from.prices.get(id));
        let is = price.and_then(|id| snapshot.prices.get(id));
        (was == is).then(|| Self {
            price,
            ..self.clone()
        })
    }

    /// Its tokens, none where no call told of any: such calls ran, and cost what their price says of a call.
    fn known(&self) -> Tokens {
        let known = |count: Count| match count {
            Count::Unknown => Count::Reported(0),
            known => known,
        };
        Tokens {
            prompt: known(self.tokens.prompt),
            completion: known(self.tokens.completion),
            ..self.tokens
        }
    }

    /// What one more call cost, where it has a cost.
    fn costs(&mut self, cost: Option<Pico>) {
        self.cost = match (self.priced, self.cost, cost) {
            (0, _, cost) => cost,
            (_, Some(Pico(sum)), Some(Pico(more))) => sum.checked_add(more).map(Pico),
            _ => None,
        };
        self.priced += 1;
    }
}

fn tokens(usage: &Usage) -> Tokens {
    let count = |told: Option<u64>| told.map_or(Count::Reported(0), Count::Reported);
    Tokens {
        prompt: count(usage.prompt),
        completion: count(usage.completion),
        cached: usage.cached,
        cache_write_5m: usage.cache_write_5m,
        cache_write_1h: usage.cache_write_1h,
        reasoning: usage.reasoning,
        audio_prompt: usage.audio_prompt,
        audio_completion: usage.audio_completion,
        units: usage.searches,
        doubtful: usage.doubtful,
        ..Tokens::default()
    }
}

/// What the calls of a batch to one model used, and whose they are.
#[derive(Debug, Clone, Copy)]
pub struct Late<'a> {
    /// The id of its record: its batch's.
    pub id: &'a str,
    /// Whose workload it is.
    pub workload: WorkloadId,
    /// Who had it made.
    pub caller: Option<&'a Arc<Caller>>,
    /// The row does not say its user.
    pub hides_user: bool,
    /// The rule that takes batches.
    pub chosen: Chosen<'a>,
    /// What that says of them.
    pub batches: &'a Batches,
    /// Where it ran.
    pub endpoint: EndpointId,
    /// The model.
    pub model: &'a Arc<str>,
    /// When it is charged, milliseconds since the Unix epoch.
    pub unix_ms: u64,
}

/// The price of a call of a batch.
#[must_use]
pub fn price_of(of: &Late<'_>, s: &Snapshot, levels: &Levels) -> Option<PriceId> {
    let unix_ms = of.unix_ms;
    let used = UsedNow { s, levels, unix_ms };
    let payer = Payer {
        volume: Some(&used),
        ..Caller::payer(of.caller.map(|caller| &**caller), Some(of.workload))
    };
    let backend = s.endpoint(of.endpoint).map(|endpoint| endpoint.backend);
    let price = s.prices.id_of(of.model, backend, payer)?;
    Some(s.prices.share_of(price, of.batches.price_share))
}

/// Charges what was used to limits and budgets, whatever they hold, unless they were charged for it before; and gives the record of it.
#[must_use]
pub fn charge_late(of: &Late<'_>, used: &Used, is_charged: bool, env: &mut Env<'_>) -> Record {
    let (s, levels) = (env.snapshot, env.levels);
    let price = used.price.or_else(|| price_of(of, s, levels));
    let charge = price.map(|price| Charge {
        price,
        cost: used.cost,
    });
    if !is_charged {
        let grant = (of.chosen.at, of.chosen.grant);
        let who = (of.workload, of.caller);
        let at = (env.now, of.unix_ms);
        let mut late = Reservation::late(who, grant, of.model, at, s, levels);
        late.settle(&used.known(), charge, env.now, s, levels);
    }
    Record {
        id: of.id.into(),
        started_unix_ms: of.unix_ms,
        operation: Some(Operation::BatchUsage),
        workload: Some(of.workload),
        caller: of.caller.cloned(),
        hides_user: of.hides_user,
        route: Some(of.chosen.grant.route),
        endpoint: Some(of.endpoint),
        backend: s.endpoint(of.endpoint).map(|endpoint| endpoint.backend),
        model_asked: Some((&**of.model).into()),
        model_sent: Some(Arc::clone(of.model)),
        status: 200,
        outcome: Outcome::Completed,
        attempts: 1,
        tokens: used.tokens,
        charge,
        ..Record::default()
    }
}

/// The code of the row of a batch that a person gave up.
pub const BATCH_GIVEN_UP: &str = "batch_given_up";

/// The record of a batch that can never be counted, and that somebody gave up: nothing is known of what it used, and nothing is charged.
/// Where its route is gone by now, it says no more than whose it was.
#[must_use]
pub fn given_up(of: &GivenUp, unix_ms: u64, s: &Snapshot) -> Record {
    let thing = &of.thing;
    let workload = s.workload_named(thing.owner.workload.as_bytes());
    let rule = workload.and_then(|workload| {
        allowed(s, workload, |of, backend| {
            of.api == thing.api && backend.name == thing.backend
        })
    });
    let endpoint = rule.and_then(|(.., backend)| backend.endpoints.first().copied());
    let mut models = thing.calls.iter().map(|(_, model)| &**model);
    let model = models.next();
    let model = model.filter(|model| models.all(|other| other == *model));
    Record {
        id: thing.id.clone(),
        started_unix_ms: unix_ms,
        operation: Some(Operation::BatchUsage),
        workload,
        caller: caller(&thing.maker, &thing.owner, None, s),
        route: rule.map(|(chosen, ..)| chosen.grant.route),
        endpoint,
        backend: endpoint.and_then(|id| s.endpoint(id)).map(|of| of.backend),
        model_asked: model.map(Into::into),
        model_sent: model.map(Arc::from),
        outcome: Outcome::Failed,
        code: BATCH_GIVEN_UP,
        reason: Some(format!("given up by {}: {}", of.who, of.why).into()),
        attempts: 1,
        ..Record::default()
    }
}
