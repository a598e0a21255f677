//! One call of a protocol, stage by stage.
//!
//! Each stage is a type of its own, taken by the step that leads on, so that a step cannot be left out, taken twice or taken
//! too early. HTTP inference has its own machine on the same pieces ([`crate::exchange`]), since it must not move what it keeps.
//! Not here: the pieces (`identify`, `authorize`, `reservation`).

use std::sync::Arc;

use super::Env;
use super::authorize::{Call, authorize};
use super::demand::Demand;
use super::identify::{CredentialQuestion, Identified, Identity, Unidentified, answered, identify};
use super::presented::Presented;
use super::reservation::{Reservation, Settled, owed, reserve};
use crate::budget_reservation::{self, Asked};
use crate::clock::Mono;
use crate::id::{EndpointId, PriceId, WorkloadId};
use crate::identity::{Proof, Unproven, Verifier};
use crate::operation::Operation;
use crate::price::Price;
use crate::record::{Count, Outcome, Record, Tokens};
use crate::refusal::Refusal;
use crate::request_id;
use crate::route::Chosen;
use crate::secret::Secret;
use crate::snapshot::Snapshot;
use crate::trace::Trace;
use crate::usage_ledger::Estimate;

/// A call that came, of which nobody knows yet who makes it.
#[derive(Debug)]
pub struct Begun {
    record: Record,
    at: Mono,
}

/// What became of the question who makes a call.
#[derive(Debug)]
pub enum Identification {
    /// It is known.
    Known(Known),
    /// Whoever knows is to be asked.
    Asks(Asking),
    /// The call is refused.
    Refused(Box<Ended>),
}

/// A call of which somebody is asked who makes it.
#[derive(Debug)]
pub struct Asking {
    begun: Begun,
    question: Box<CredentialQuestion>,
}

/// A call whose caller is known.
#[derive(Debug)]
pub struct Known {
    begun: Begun,
}

/// A call that the rules of the configuration let its caller make.
#[derive(Debug)]
pub struct Allowed {
    begun: Begun,
}

/// A call that ran before anybody could let it: its caller is known, and it costs what it came to.
#[derive(Debug)]
#[must_use = "owe it"]
pub struct Ran(Allowed);

/// A call that holds its share of every limit before the rules can be asked: what they are asked about has to be found first, and that is
/// work.
#[derive(Debug)]
#[must_use = "authorize or fail it"]
pub struct Counted {
    admitted: Admitted,
    /// The grant whose share it holds.
    at: usize,
}

/// A call that may run, with what it holds.
#[derive(Debug)]
#[must_use = "settle or release it"]
pub struct Admitted {
    begun: Begun,
    reservation: Reservation,
    estimate: Estimate,
    price: Option<PriceId>,
}

/// A call that is over.
#[derive(Debug)]
pub struct Ended {
    /// What it leaves.
    pub record: Record,
    /// Why it was refused, where it was.
    pub refusal: Option<Refusal>,
    /// What limits and budgets were charged, where it ran.
    pub settled: Option<Settled>,
}

impl Begun {
    /// A call that came at `env.now`, when the wall clock said `unix_ms`. `id` is what its client calls it, where it may be
    /// recorded; `parents` are the spans that it says it is a part of, as `traceparent` has them.
    #[must_use]
    pub fn new<'p>(
        id: Option<&str>,
        parents: impl Iterator<Item = &'p [u8]>,
        who: &impl Presented,
        unix_ms: u64,
        env: &mut Env<'_>,
    ) -> Self {
        let shard = &mut *env.shard;
        let id = id.filter(|id| request_id::is_plain(id.as_bytes()));
        let id = id.map_or_else(|| request_id::minted(shard.step()), Box::from);
        let trace = shard
            .sampling
            .map(|sampling| Trace::begin(parents, sampling, || shard.fresh()));
        let clients = &env.snapshot.clients;
        let client = clients.kept(|| who.source(env.snapshot));
        Self {
            record: Record::begun(id, trace, unix_ms, client),
            at: env.now,
        }
    }

    /// It asks for this model.
    #[must_use]
    pub fn asking_for(mut self, model: Option<&str>) -> Self {
        self.record.model_asked = model.map(Box::from);
        self
    }

    /// It is one of this operation.
    #[must_use]
    pub fn of(mut self, operation: Operation) -> Self {
        self.record.operation = Some(operation);
        self
    }

    /// It is a message to servers of tools, at this one of their paths.
    #[must_use]
    pub fn at_mcp_path(mut self, nth: u16) -> Self {
        self.record.mcp_path = nth;
        self.of(Operation::Mcp)
    }

    /// What is known of it so far.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Who makes it, by what it brings.
    #[must_use]
    pub fn identify(self, who: &impl Presented, env: &mut Env<'_>) -> Identification {
        match identify(who, env.snapshot, env.shard, self.unix_s(env.now)) {
            Ok(Identified::As(identity)) => Identification::Known(self.known(identity)),
            Ok(Identified::Asks(question)) => Identification::Asks(Asking {
                begun: self,
                question,
            }),
            Err(unidentified) => {
                Identification::Refused(Box::new(self.unidentified(unidentified, env.now)))
            }
        }
    }

    fn known(mut self, identity: Identity) -> Known {
        self.record.workload = Some(identity.workload);
        self.record.hides_user = identity.users.is_hidden;
        self.record.caller = identity.caller;
        Known { begun: self }
    }

    fn unidentified(mut self, unidentified: Unidentified, now: Mono) -> Ended {
        self.record.reason = unidentified.reason.map(|reason| reason.into());
        self.refuse(unidentified.refusal, now)
    }

    /// It is made by whoever made an earlier one, which was identified: what is done on a session that one opened. `workload` is the
    /// earlier one's by now.
    #[must_use]
    pub fn of_caller(mut self, earlier: &Record, workload: WorkloadId) -> Known {
        self.record.workload = Some(workload);
        self.record.hides_user = earlier.hides_user;
        self.record.caller.clone_from(&earlier.caller);
        Known { begun: self }
    }

    /// It is over, whatever became of it: its client left, say.
    #[must_use]
    pub fn over(mut self, outcome: Outcome, now: Mono) -> Ended {
        self.end(outcome, "", now);
        Ended {
            record: self.record,
            refusal: None,
            settled: None,
        }
    }

    /// Refuses it: a request that cannot be read, say.
    #[must_use]
    pub fn refuse(mut self, refusal: Refusal, now: Mono) -> Ended {
        let (outcome, code) = self.record.refused(&refusal);
        self.end(outcome, code, now);
        Ended {
            record: self.record,
            refusal: Some(refusal),
            settled: None,
        }
    }

    fn end(&mut self, outcome: Outcome, code: &'static str, now: Mono) {
        self.record.outcome = outcome;
        if !code.is_empty() {
            self.record.code = code;
        }
        self.record.duration = now.since(self.at);
    }

    fn unix_s(&self, now: Mono) -> u64 {
        self.record.started_unix_ms / 1000 + now.since(self.at).as_secs()
    }
}

impl Asking {
    /// What is known of the call so far.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.begun.record
    }

    /// Nobody waits for the answer any more: it is a call that nobody knows.
    #[must_use]
    pub fn given_up(self) -> Begun {
        self.begun
    }

    /// Who is asked, and about which credential: [`Verifier::ask`].
    #[must_use]
    pub fn question(&self) -> (&Arc<dyn Verifier>, &Secret) {
        (&self.question.verifier, &self.question.credential)
    }

    /// What was answered; a host that hears nothing in time says [`Unproven::Unavailable`].
    ///
    /// # Errors
    /// The call is refused.
    pub fn answered(
        self,
        answer: Result<Proof, Unproven>,
        who: &impl Presented,
        env: &mut Env<'_>,
    ) -> Result<Known, Box<Ended>> {
        let Self { begun, question } = self;
        let unix_s = begun.unix_s(env.now);
        match answered(&question, answer, who, env.snapshot, env.shard, unix_s) {
            Ok(identity) => Ok(begun.known(identity)),
            Err(unidentified) => Err(Box::new(begun.unidentified(unidentified, env.now))),
        }
    }
}

impl Known {
    /// What is known of the call so far.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.begun.record
    }

    /// It may be made, where the rules of the configuration allow what is asked for. A service of the workload's that is asked besides
    /// ([`crate::authorizer`]) is the host's to ask.
    ///
    /// # Errors
    /// The call is refused.
    pub fn authorize(
        mut self,
        call: &Call<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> Result<Allowed, Box<Ended>> {
        let mut reason = None;
        let judged = s.authority.as_deref().map_or(Ok(()), |rules| {
            authorize(rules, call, &self.begun.record, s, &mut reason)
        });
        match judged {
            Ok(()) => Ok(Allowed { begun: self.begun }),
            Err(refusal) => {
                self.begun.record.reason = reason;
                Err(Box::new(self.refuse(refusal, now)))
            }
        }
    }

    /// Takes its share of every limit, as [`Allowed::admit_free`] does, and is authorized later.
    ///
    /// # Errors
    /// The call is refused, and holds nothing.
    pub fn count(self, chosen: Chosen<'_>, env: &mut Env<'_>) -> Result<Counted, Box<Ended>> {
        let Self { begun } = self;
        let admitted = Allowed { begun }.admit_free(chosen, env)?;
        Ok(Counted {
            admitted,
            at: chosen.at,
        })
    }

    /// It is over, whatever became of it: its client left, say.
    #[must_use]
    pub fn over(self, outcome: Outcome, now: Mono) -> Ended {
        self.begun.over(outcome, now)
    }

    /// Refuses it.
    #[must_use]
    pub fn refuse(self, refusal: Refusal, now: Mono) -> Ended {
        self.begun.refuse(refusal, now)
    }

    /// It ran already, whoever let it: nothing is asked, and what it comes to is owed.
    pub fn ran(self) -> Ran {
        Ran(Allowed { begun: self.begun })
    }
}

impl Ran {
    /// It was a call to this model of this endpoint.
    pub fn of_model(self, model: Option<Arc<str>>, endpoint: EndpointId, s: &Snapshot) -> Self {
        Self(self.0.of_model(model, endpoint, s))
    }

    /// Every limit and every budget that counts it is charged what it comes to, also where nothing is left.
    #[must_use]
    pub fn owe(self, chosen: Chosen<'_>, env: &Env<'_>) -> Option<Admitted> {
        let mut begun = self.0.begun;
        begun.record.route = Some(chosen.grant.route);
        let (record, s, levels) = (&begun.record, env.snapshot, env.levels);
        let (workload, caller) = (record.workload?, record.caller.as_ref());
        let (at, model) = (record.started_unix_ms, record.model_sent.as_deref());
        let grant = (chosen.at, chosen.grant);
        let mut reservation = owed(workload, caller, grant, env.now, s, levels);
        reservation.for_budgets =
            budget_reservation::owed((workload, caller), model, at, s, levels);
        Some(Admitted {
            begun,
            reservation,
            estimate: Estimate {
                reserved: 0,
                at_most: None,
            },
            price: None,
        })
    }
}

/// The method of calls that budgets of calls count; their path is the tool's whole name.
const TOOL_CALLS: &str = "tools/call";

impl Counted {
    /// What is known of the call so far.
    #[must_use]
    pub fn record(&self) -> &Record {
        self.admitted.record()
    }

    /// What it may come to, for the ledger.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        self.admitted.estimate()
    }

    /// It may be made, as [`Known::authorize`] has it; where another rule was chosen for it by now, it holds a share of that one's limits
    /// in place of its own.
    ///
    /// # Errors
    /// The call is refused: by rules it has counted, by limits it holds nothing.
    pub fn authorize(
        mut self,
        call: &Call<'_>,
        chosen: Chosen<'_>,
        env: &mut Env<'_>,
    ) -> Result<Admitted, Box<Ended>> {
        self = self.judged(call, env)?;
        if chosen.at != self.at {
            let Admitted {
                begun, reservation, ..
            } = self.admitted;
            reservation.release(env.now, env.snapshot, env.levels);
            let admitted = Allowed { begun }.admit_free(chosen, env)?;
            let at = chosen.at;
            self = Self { admitted, at };
        }
        if call.method == TOOL_CALLS && call.operation == Operation::Mcp.as_str() {
            return self.budgeted(call.path, env);
        }
        Ok(self.admitted)
    }

    /// It asks about what such a call made, and its caller may make one; it is none itself, and takes nothing of what those have.
    ///
    /// # Errors
    /// The rules refuse it; it has counted.
    pub fn authorize_as(self, call: &Call<'_>, env: &mut Env<'_>) -> Result<Admitted, Box<Ended>> {
        Ok(self.judged(call, env)?.admitted)
    }

    /// The rules let it pass.
    fn judged(mut self, call: &Call<'_>, env: &mut Env<'_>) -> Result<Self, Box<Ended>> {
        let (s, begun) = (env.snapshot, &mut self.admitted.begun);
        let mut reason = None;
        let judged = s.authority.as_deref().map_or(Ok(()), |rules| {
            authorize(rules, call, &begun.record, s, &mut reason)
        });
        if let Err(refusal) = judged {
            begun.record.reason = reason;
            return Err(Box::new(self.fail(refusal, env)));
        }
        Ok(self)
    }

    /// Takes a call of a tool from the budgets that count such calls; one that has none left refuses it, and it has counted for limits.
    fn budgeted(mut self, tool: &str, env: &mut Env<'_>) -> Result<Admitted, Box<Ended>> {
        let (s, record) = (env.snapshot, self.admitted.record());
        let Some(workload) = record.workload else {
            return Ok(self.admitted);
        };
        let who = (workload, record.caller.as_ref());
        let at = record.started_unix_ms;
        match budget_reservation::reserve_call(who, tool, at, s, env.levels) {
            Ok(for_budgets) => {
                self.admitted.reservation.for_budgets = for_budgets;
                // The ledger is told before its end, which nobody may see.
                let extra = &mut self.admitted.begun.record.extra;
                let extra = extra.get_or_insert_default();
                (extra.method, extra.named) = (TOOL_CALLS, Some(tool.into()));
                Ok(self.admitted)
            }
            Err(refusal) => Err(Box::new(self.fail(refusal, env))),
        }
    }

    /// It is over; what it holds stands.
    #[must_use]
    pub fn over(self, outcome: Outcome, env: &mut Env<'_>) -> Ended {
        self.admitted.settle(outcome, Tokens::default(), env)
    }

    /// It came to no good end for this; what it holds stands.
    #[must_use]
    pub fn fail(self, refusal: Refusal, env: &mut Env<'_>) -> Ended {
        self.admitted.fail(refusal, env)
    }
}

impl Allowed {
    /// What is known of the call so far.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.begun.record
    }

    /// It is a call to this model of this endpoint: what it costs goes by both.
    #[must_use]
    pub fn of_model(mut self, model: Option<Arc<str>>, endpoint: EndpointId, s: &Snapshot) -> Self {
        let record = &mut self.begun.record;
        record.model_sent = model;
        record.endpoint = Some(endpoint);
        record.backend = s.endpoint(endpoint).map(|endpoint| endpoint.backend);
        (record.attempts, record.streamed, record.status) = (1, true, 200);
        self
    }

    /// Takes its share of every limit of the rule that was chosen for it, of its caller's own, and of every budget that counts
    /// it; `price` is what it costs, where a call of its kind has a price, also where it has no tokens.
    ///
    /// # Errors
    /// The call is refused, and holds nothing.
    pub fn admit(
        mut self,
        chosen: Chosen<'_>,
        demand: Demand,
        price: Option<PriceId>,
        env: &mut Env<'_>,
    ) -> Result<Admitted, Box<Ended>> {
        let record = &mut self.begun.record;
        record.route = Some(chosen.grant.route);
        let fixed = price.and_then(|id| env.snapshot.prices.get(id));
        match reserved(record, chosen, demand, fixed.map(|price| &**price), env) {
            Ok(reservation) => Ok(Admitted {
                begun: self.begun,
                reservation,
                estimate: Estimate {
                    reserved: demand.prompt_charged.saturating_add(demand.completion),
                    at_most: None,
                },
                price,
            }),
            Err(refusal) => Err(Box::new(self.refuse(refusal, env.now))),
        }
    }

    /// Takes its share of every limit, as [`Allowed::admit`] does: for a call that has neither tokens nor a price, which no
    /// budget counts.
    ///
    /// # Errors
    /// The call is refused, and holds nothing.
    pub fn admit_free(
        mut self,
        chosen: Chosen<'_>,
        env: &mut Env<'_>,
    ) -> Result<Admitted, Box<Ended>> {
        let record = &mut self.begun.record;
        record.route = Some(chosen.grant.route);
        let Some(workload) = record.workload else {
            return Err(Box::new(self.refuse(Refusal::CredentialMissing, env.now)));
        };
        let (caller, grant) = (record.caller.as_ref(), (chosen.at, chosen.grant));
        let (s, levels, demand) = (env.snapshot, env.levels, Demand::charged(None));
        match reserve(workload, caller, grant, demand, env.now, s, levels) {
            Ok(reservation) => Ok(Admitted {
                begun: self.begun,
                reservation,
                estimate: Estimate {
                    reserved: 0,
                    at_most: Some(0),
                },
                price: None,
            }),
            Err(refusal) => Err(Box::new(self.refuse(refusal, env.now))),
        }
    }

    /// It is over, whatever became of it: its client left, say.
    #[must_use]
    pub fn over(self, outcome: Outcome, now: Mono) -> Ended {
        self.begun.over(outcome, now)
    }

    /// Refuses it.
    #[must_use]
    pub fn refuse(self, refusal: Refusal, now: Mono) -> Ended {
        self.begun.refuse(refusal, now)
    }
}

fn reserved(
    record: &Record,
    chosen: Chosen<'_>,
    demand: Demand,
    price: Option<&Price>,
    env: &Env<'_>,
) -> Result<Reservation, Refusal> {
    let (s, levels, now) = (env.snapshot, env.levels, env.now);
    let caller = record.caller.as_ref();
    let Some(workload) = record.workload else {
        return Err(Refusal::CredentialMissing);
    };
    let grant = (chosen.at, chosen.grant);
    let mut reservation = reserve(workload, caller, grant, demand, now, s, levels)?;
    let asked = Asked {
        workload,
        caller,
        model: record.model_sent.as_deref(),
        backends: match &record.backend {
            Some(backend) => std::slice::from_ref(backend),
            None => &chosen.route.backends,
        },
        prompt: demand.prompt_charged,
        completion: demand.completion,
        pieces: 0,
        fixed: price,
    };
    match budget_reservation::reserve(&asked, record.started_unix_ms, s, levels) {
        Ok(for_budgets) => reservation.for_budgets = for_budgets,
        Err(refusal) => {
            reservation.release(now, s, levels);
            return Err(refusal);
        }
    }
    Ok(reservation)
}

impl Admitted {
    /// What is known of the call so far.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.begun.record
    }

    /// What it may come to, for the ledger.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        self.estimate
    }

    /// It ran, and came to these tokens.
    #[must_use]
    pub fn settle(mut self, outcome: Outcome, tokens: Tokens, env: &mut Env<'_>) -> Ended {
        self.begun.end(outcome, "", env.now);
        let mut record = self.begun.record;
        record.tokens = tokens;
        let mut of_price = record.tokens;
        record.charge = match self.price {
            Some(price) => {
                // What has no tokens costs its price.
                for count in [&mut of_price.prompt, &mut of_price.completion] {
                    *count = Count::Counted(count.tokens().unwrap_or(0));
                }
                env.snapshot.prices.charge(price, &of_price)
            }
            None => crate::record::charge(env.snapshot, env.levels, &record),
        };
        let (charge, s, levels) = (record.charge, env.snapshot, env.levels);
        let mut reservation = self.reservation;
        reservation.settle(&of_price, charge, env.now, s, levels);
        Ended {
            record,
            refusal: None,
            settled: Some(reservation.settled(&of_price, env.now)),
        }
    }

    /// It ran, or may have, and did not come to a good end for this: what it holds stands.
    #[must_use]
    pub fn fail(self, refusal: Refusal, env: &mut Env<'_>) -> Ended {
        let mut ended = self.settle(Outcome::Failed, Tokens::default(), env);
        let (outcome, code) = ended.record.refused(&refusal);
        (ended.record.outcome, ended.record.code) = (outcome, code);
        ended.refusal = Some(refusal);
        ended
    }

    /// It did not run: what it holds is given back.
    #[must_use]
    pub fn release(self, refusal: Refusal, env: &mut Env<'_>) -> Ended {
        let reservation = self.reservation;
        reservation.release(env.now, env.snapshot, env.levels);
        self.begun.refuse(refusal, env.now)
    }
}
