//! A machine that is asked for calls, and what it says of each.
//!
//! Not here: expectations.

mod call;
mod callers;

use std::sync::Arc;

use policy::budget::{Budget, Calendar, Every, Scope, Unit};
use policy::caller::{Caller, Peer};
use policy::clock::Mono;
use policy::estimate::Estimator;
use policy::exchange::{Answer, Env, Exchange, Finished, Plan, Verdict};
use policy::id::{BudgetId, LimitId, RouteId};
use policy::price::Charge;
use policy::revision::Revision;
use policy::shard::Shard;
use policy::snapshot::Snapshot;
use policy::subject::{Who, Whose};
use policy::wire::call::apply;
use policy::wire::head::ResponseHead;
use policy::wire::meter::Meter;

pub(crate) use self::call::{Asked, Call, FORM, FORM_OF_M, JSON, ME, call};
pub(crate) use self::callers::knowing_callers;
use crate::fixture::{ONE, RoutePlan, snapshot};

pub(crate) const NOW: Mono = Mono(1_000_000_000_000);

/// A route for one workload to one backend.
pub(crate) fn plan() -> RoutePlan<'static> {
    RoutePlan {
        workloads: &["ide"],
        backends: &[ONE],
        ..RoutePlan::default()
    }
}

/// What calls are judged by.
pub(crate) struct World {
    pub(crate) of: Arc<Revision>,
    shard: Shard,
    pub(crate) peer: Peer,
    pub(crate) now: Mono,
    pub(crate) unix_ms: u64,
}

impl World {
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        Self::of(Arc::new(Revision::first(snapshot)))
    }

    pub(crate) fn routes(plans: &[RoutePlan<'_>]) -> Self {
        Self::new(snapshot(plans))
    }

    /// One more worker of this revision.
    pub(crate) fn of(of: Arc<Revision>) -> Self {
        Self {
            shard: Shard::new(&of.snapshot, None, 1),
            of,
            peer: Peer::from(std::net::IpAddr::from([127, 0, 0, 1])),
            now: NOW,
            unix_ms: 0,
        }
    }

    /// Reads another configuration.
    pub(crate) fn reload(&mut self, snapshot: Snapshot) {
        self.of = Arc::new(self.of.next(snapshot, self.now));
    }

    pub(crate) fn env(&mut self) -> Env<'_> {
        Env {
            snapshot: &self.of.snapshot,
            levels: &self.of.levels,
            shard: &mut self.shard,
            now: self.now,
        }
    }

    /// Shows it the head of a call, whose body has this length as it declares.
    pub(crate) fn head(&mut self, call: &Call<'_>, length: Option<u64>) -> Asked {
        let head = call.head();
        let (peer, unix_ms) = (self.peer.clone(), self.unix_ms);
        let env = &mut self.env();
        let mut exchange = Exchange::begin(&head, peer.address, unix_ms, env);
        Asked {
            verdict: exchange.read_head(&head, &peer, length, false, env),
            exchange,
            head,
            body: call.body.to_owned(),
        }
    }

    /// Shows it the head, and that the body does not come yet.
    pub(crate) fn waiting(&mut self, call: &Call<'_>) -> Asked {
        let mut asked = self.head(call, None);
        assert_eq!(asked.code(), "");
        self.tell(&mut asked, |exchange, env| exchange.await_body(env));
        asked
    }

    /// Asks for a call, whose body comes at once.
    pub(crate) fn ask(&mut self, call: &Call<'_>) -> Asked {
        let mut asked = self.head(call, None);
        if !matches!(asked.verdict, Verdict::Read { .. }) {
            return asked;
        }
        self.tell(&mut asked, |exchange, env| {
            exchange.read_body(call.length(), env)
        });
        if let Verdict::Read { .. } = asked.verdict {
            let mut read = asked.scanned(call.body.as_bytes());
            // As its host does.
            if let Some(going) = read.as_ref().filter(|call| call.keeps.is_some()) {
                let body = [asked.body.clone().into()];
                let of = Arc::clone(&self.of);
                match asked.exchange.made_whole(going, &body, &of.snapshot) {
                    Ok(Some(whole)) => {
                        read = asked.scanned(&whole);
                        asked.body = String::from_utf8(whole.to_vec()).expect("text");
                    }
                    Ok(None) => {}
                    Err(refusal) => {
                        asked.verdict = asked.exchange.refuse_unread(refusal);
                        return asked;
                    }
                }
            }
            let (exchange, env) = (&mut asked.exchange, &mut self.env());
            asked.verdict = exchange.end_body(
                &asked.head,
                read.as_mut(),
                &[asked.body.clone().into()],
                env,
            );
        }
        asked
    }

    /// Its ledger does not take it: it never was.
    pub(crate) fn release(&mut self, mut asked: Asked) {
        self.tell(&mut asked, |exchange, env| exchange.stalled(env));
        assert_eq!(asked.code(), "ledger_unavailable");
        let meter = &mut Meter::default();
        asked.exchange.finish(meter, false, &mut self.env());
    }

    /// Has it entered in the ledger, so that its attempt begins: how it is sent.
    pub(crate) fn attempt(&mut self, asked: &mut Asked) -> Plan {
        self.tell(asked, Exchange::entered);
        match std::mem::replace(&mut asked.verdict, Verdict::Finish) {
            Verdict::Attempt(plan) => plan,
            other => panic!("{other:?}"),
        }
    }

    /// A response to its attempt begins, which says that it is of this kind.
    pub(crate) fn response(&mut self, asked: &mut Asked, status: u16, kind: &str) {
        self.response_with(asked, status, kind, &[]);
    }

    /// The same, with further fields.
    pub(crate) fn response_with(
        &mut self,
        asked: &mut Asked,
        status: u16,
        kind: &str,
        fields: &[(&str, &str)],
    ) {
        let mut head = ResponseHead {
            status,
            ..ResponseHead::default()
        };
        let kind = (!kind.is_empty()).then_some(("content-type", kind));
        for (name, value) in kind.iter().chain(fields) {
            let pushed = head.fields.push(name.as_bytes(), value.as_bytes());
            pushed.expect("a field");
        }
        self.tell(asked, |exchange, env| exchange.response_head(&head, env));
    }

    /// It has left whole, and was read by this meter.
    pub(crate) fn end(
        &mut self,
        asked: &mut Asked,
        meter: &mut Meter,
        is_counted: bool,
    ) -> Finished {
        asked.verdict = asked.exchange.sent_whole(false);
        assert!(matches!(asked.verdict, Verdict::Finish));
        asked.exchange.finish(meter, is_counted, &mut self.env())
    }

    /// Tells it of an event.
    pub(crate) fn tell(
        &mut self,
        asked: &mut Asked,
        event: impl FnOnce(&mut Exchange, &mut Env<'_>) -> Verdict,
    ) {
        asked.verdict = event(&mut asked.exchange, &mut self.env());
    }

    /// What it asked is answered so.
    pub(crate) fn told(&mut self, asked: &mut Asked, answer: Answer) {
        let (head, peer) = (&asked.head, self.peer.clone());
        let (exchange, env) = (&mut asked.exchange, &mut self.env());
        asked.verdict = exchange.answer(answer, head, &peer, env);
    }

    /// What its worker has learned of the calls of a route.
    pub(crate) fn estimator(&self, route: RouteId) -> Estimator {
        self.shard.estimator(route)
    }

    /// The body that goes upstream, checked to be JSON where the client's is, and whether usage is withheld of a stream that answers it.
    pub(crate) fn sent(&mut self, mut asked: Asked) -> (String, bool) {
        let plan = self.attempt(&mut asked);
        let body = bytes::Bytes::copy_from_slice(asked.body.as_bytes());
        let sent = String::from_utf8(apply(&[body], &plan.edits).concat()).expect("text");
        if asked.body.starts_with('{') {
            serde_json::from_str::<serde_json::Value>(&sent).expect("still JSON");
        }
        asked.exchange.sent(true);
        self.response(&mut asked, 200, "text/event-stream");
        (sent, asked.relay().withholds())
    }

    /// It is answered by this document; `is_counted` by the gate, too.
    pub(crate) fn answered(
        &mut self,
        mut asked: Asked,
        answer: &str,
        is_counted: bool,
    ) -> Finished {
        self.answer(&mut asked, answer, is_counted)
    }

    fn answer(&mut self, asked: &mut Asked, answer: &str, is_counted: bool) -> Finished {
        let _plan = self.attempt(asked);
        asked.exchange.sent(true);
        self.response(asked, 200, "application/json");
        let mut meter = Meter::new(asked.relay().form);
        meter.observe(answer.as_bytes());
        self.end(asked, &mut meter, is_counted)
    }

    /// It is answered, and reports so many tokens: what it is charged.
    pub(crate) fn charged(
        &mut self,
        mut asked: Asked,
        prompt: u64,
        completion: u64,
    ) -> Option<Charge> {
        self.answer(&mut asked, &usage(prompt, completion), false);
        asked.record().charge
    }

    /// It is answered, and reports so many tokens.
    pub(crate) fn settle(&mut self, asked: Asked, prompt: u64, completion: u64) {
        self.answered(asked, &usage(prompt, completion), false);
    }

    /// Its client leaves when its request has, or before it `is_sent`: what is estimated for its prompt.
    pub(crate) fn lost(&mut self, mut asked: Asked, is_sent: bool) -> u64 {
        let _plan = self.attempt(&mut asked);
        asked.exchange.sent(is_sent);
        asked.exchange.give_up(false);
        let meter = &mut Meter::default();
        asked.exchange.finish(meter, false, &mut self.env());
        asked.record().tokens.prompt.tokens().unwrap_or(0)
    }

    /// Units left of a limit.
    pub(crate) fn left(&self, limit: u32) -> u64 {
        let level = self.of.levels.level(LimitId(limit), self.now);
        level.expect("a limit").remaining
    }

    /// What a budget holds for a caller of `ide`.
    pub(crate) fn held(&self, budget: u32, caller: Option<&Arc<Caller>>) -> u64 {
        let Revision { snapshot, levels } = &*self.of;
        let (id, of) = (BudgetId(budget), &snapshot.budgets.list[budget as usize]);
        let period = of.calendar.of(self.unix_ms);
        match of.whose {
            Whose::Workload => levels.spent(id).expect("a budget").level(period).held,
            Whose::Key | Whose::User => levels.held(id, of, period, &who(caller)),
        }
    }
}

pub(crate) fn who(caller: Option<&Arc<Caller>>) -> Who<'_> {
    Who {
        workload: "ide",
        caller,
    }
}

/// An answer that reports so many tokens.
pub(crate) fn usage(prompt: u64, completion: u64) -> String {
    format!(r#"{{"usage":{{"prompt_tokens":{prompt},"completion_tokens":{completion}}}}}"#)
}

/// Adds a budget that counts every call.
pub(crate) fn budget(s: &mut Snapshot, unit: Unit, amount: u64, whose: Whose) {
    let id = BudgetId(u32::try_from(s.budgets.list.len()).expect("few"));
    s.budgets.list.push(Budget {
        name: format!("b{}", id.0).into(),
        unit,
        amount,
        calendar: MONTH,
        scope: Scope::Everyone,
        whose,
        models: Vec::new(),
        tools: Vec::new(),
    });
    s.budgets.of.resize(s.workloads.len(), Vec::new());
    s.budgets.groups.resize(s.workloads.len(), None);
    s.budgets.of.iter_mut().for_each(|of| of.push(id));
}

pub(crate) const MONTH: Calendar = Calendar {
    every: Every::Month,
    east_min: 0,
};
