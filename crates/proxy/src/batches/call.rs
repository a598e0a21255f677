//! One call of files and batches, from its head to its record.
//!
//! Invariant: a [`Call`] leaves exactly one record and settles what it held, also when it is dropped half-way.
//! Not here: who may do what (`policy::front`, `policy::batching`), what is asked of whom (`super`).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use policy::batches::{BatchStore, Batches, Owner};
use policy::batching::{self, Checker};
use policy::clock::Mono;
use policy::front::{
    Admitted, Allowed, Asking, Begun, Call as AskedCall, Ended, Env, Http, Identification, Known,
};
use policy::id::EndpointId;
use policy::identity::{Proof, Unproven, Verifier};
use policy::operation::Operation;
use policy::record::{Outcome, Record, Tokens};
use policy::refusal::Refusal;
use policy::route::Chosen;
use policy::secret::Secret;
use policy::snapshot::{Backend, Snapshot};
use policy::usage_ledger::Entry;
use wire::batch::Api;
use wire::head::{Known as Name, RequestHead};

use crate::client::{BodyFault, Downstream};
use crate::cors::Cors;
use crate::deadline::Deadline;
use crate::reply::Patience;
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

/// A bug of the host.
const OUT_OF_ORDER: Refusal = Refusal::Bug("a step that this call cannot take");

/// One call.
pub(super) struct Call {
    pub(super) worker: Rc<Worker>,
    pub(super) view: Rc<WorkerSnapshot>,
    /// The origin of the page that sent it.
    page: Option<Box<str>>,
    /// Its id, for its provider, its client and its record.
    pub(super) id: Box<str>,
    pub(super) facts: Facts,
    api: Option<Api>,
    stage: Stage,
    entry: Option<Entry>,
    /// Bytes of it that are kept.
    kept: usize,
}

/// What the record is told at the end.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    /// Where it went.
    pub(super) endpoint: Option<EndpointId>,
    pub(super) status: u16,
    /// Why it was refused, where its code does not say it all.
    pub(super) reason: Option<Box<str>>,
    /// When the first of its answer left.
    pub(super) answered: Option<Mono>,
    /// How long it waited for its provider's answer to begin.
    pub(super) upstream: Option<std::time::Duration>,
}

/// So many bytes that are kept, until it goes.
pub(super) struct Kept(Rc<Worker>, usize);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.drop_body(self.1);
    }
}

/// How far it has come.
enum Stage {
    Begun(Begun),
    Asking(Box<Asking>),
    Known(Known),
    Allowed(Allowed),
    Admitted(Box<Admitted>),
    Ended(Box<Ended>),
    Over,
}

/// It goes no further.
pub(super) enum Stop {
    /// [`Call::refusal`] says why.
    Refused,
    /// The client left, or takes nothing.
    Gone,
}

/// Who is asked who calls, and about what.
pub(super) type Question = (Arc<dyn Verifier>, Secret);

/// What a wait gives, unless the client leaves before.
pub(super) async fn while_there<T>(
    wait: impl Future<Output = T>,
    worker: &Worker,
    client: &mut impl Downstream,
) -> Result<T, Stop> {
    let mut wait = pin!(wait);
    poll_fn(|cx| {
        if let Poll::Ready(value) = wait.as_mut().poll(cx) {
            return Poll::Ready(Ok(value));
        }
        client
            .poll_gone(&worker.buffers, cx)
            .map(|()| Err(Stop::Gone))
    })
    .await
}

impl Call {
    pub(super) fn begin(
        worker: &Rc<Worker>,
        view: Rc<WorkerSnapshot>,
        page: Option<Box<str>>,
        (head, operation): (&RequestHead, Operation),
        who: &Http<'_>,
    ) -> Self {
        worker.exchange_began();
        let now = worker.clock.arrival();
        let id = head.fields.only(Name::XRequestId).ok().flatten();
        let id = id.and_then(|id| std::str::from_utf8(id).ok());
        let parents = head.fields.of(Name::Traceparent);
        let unix_ms = worker.clock.wall_ms(now);
        let begun = view.env(now, |env| Begun::new(id, parents, who, unix_ms, env));
        let begun = begun.of(operation);
        Self {
            id: begun.record().id.clone(),
            worker: Rc::clone(worker),
            view,
            page,
            facts: Facts::default(),
            api: None,
            stage: Stage::Begun(begun),
            entry: None,
            kept: 0,
        }
    }

    /// Who makes it, by what it brings; or who is to be asked that, for [`Self::identified`].
    pub(super) fn identify(&mut self, who: &Http<'_>) -> Result<Option<Question>, Stop> {
        let Stage::Begun(begun) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Err(self.refuse(OUT_OF_ORDER));
        };
        let now = self.worker.now();
        match self.view.env(now, |env| begun.identify(who, env)) {
            Identification::Known(known) => self.stage = Stage::Known(known),
            Identification::Asks(asking) => {
                let (verifier, credential) = asking.question();
                let question = (Arc::clone(verifier), credential.clone());
                self.stage = Stage::Asking(Box::new(asking));
                return Ok(Some(question));
            }
            Identification::Refused(ended) => return Err(self.ended(ended)),
        }
        Ok(None)
    }

    /// Somebody answered, or nobody did in time.
    pub(super) fn identified(
        &mut self,
        answer: Result<Proof, Unproven>,
        who: &Http<'_>,
    ) -> Result<(), Stop> {
        let Stage::Asking(asking) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Err(self.refuse(OUT_OF_ORDER));
        };
        let now = self.worker.now();
        match self.view.env(now, |env| asking.answered(answer, who, env)) {
            Ok(known) => {
                self.stage = Stage::Known(known);
                Ok(())
            }
            Err(ended) => Err(self.ended(ended)),
        }
    }

    /// The rule that takes it, by whose API it is of.
    pub(super) fn choose(&mut self, api: Api, head: &RequestHead) -> Result<(), Stop> {
        self.api = Some(api);
        let view = Rc::clone(&self.view);
        let s = view.snapshot();
        let workload = self.record().and_then(|record| record.workload);
        let Some(workload) = workload else {
            return Err(self.refuse(OUT_OF_ORDER));
        };
        match batching::chosen(s, workload, api, head) {
            Ok((.., backend)) => {
                self.facts.endpoint = backend.endpoints.first().copied();
                Ok(())
            }
            Err(refusal) => Err(self.refuse(refusal)),
        }
    }

    /// That rule.
    pub(super) fn rule<'s>(
        &self,
        s: &'s Snapshot,
    ) -> Option<(Chosen<'s>, &'s Batches, &'s Backend)> {
        let (workload, api) = (self.record()?.workload?, self.api?);
        batching::allowed(s, workload, |of, _| of.api == api)
    }

    /// Whose what it makes is, and the backend where.
    pub(super) fn owner(&mut self, view: &WorkerSnapshot) -> Result<(Owner, Arc<str>), Stop> {
        let s = view.snapshot();
        let of = self.record().and_then(|record| {
            let workload = s.workload(record.workload?)?;
            let owner = Owner::of(&workload.name, record.caller.as_deref());
            let (.., backend) = self.rule(s)?;
            Some((owner, Arc::clone(&backend.name)))
        });
        of.ok_or_else(|| self.refuse(OUT_OF_ORDER))
    }

    /// Who knows whose what is.
    pub(super) fn store(&mut self) -> Result<Arc<dyn BatchStore>, Stop> {
        let store = self.view.snapshot().batches.clone();
        store.ok_or_else(|| self.refuse(Refusal::BatchesUnavailable))
    }

    /// What is known of it.
    pub(super) fn record(&self) -> Option<&Record> {
        match &self.stage {
            Stage::Begun(begun) => Some(begun.record()),
            Stage::Asking(asking) => Some(asking.record()),
            Stage::Known(known) => Some(known.record()),
            Stage::Allowed(allowed) => Some(allowed.record()),
            Stage::Admitted(admitted) => Some(admitted.record()),
            Stage::Ended(ended) => Some(&ended.record),
            Stage::Over => None,
        }
    }

    /// Asks something of what its caller may.
    pub(super) fn checked(
        &mut self,
        view: &WorkerSnapshot,
        check: impl FnOnce(&Checker<'_>, u64, &Env<'_>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let record = self.record().ok_or(OUT_OF_ORDER)?;
        let (chosen, ..) = self.rule(view.snapshot()).ok_or(OUT_OF_ORDER)?;
        let checker = Checker {
            s: view.snapshot(),
            workload: record.workload.ok_or(OUT_OF_ORDER)?,
            caller: record.caller.as_ref(),
            chosen,
        };
        let unix_ms = record.started_unix_ms;
        view.env(self.worker.now(), |env| check(&checker, unix_ms, env))
    }

    /// The rules of the configuration allow all that it asks for: operations, each with its model.
    pub(super) fn authorize(
        &mut self,
        who: &Http<'_>,
        asked: &[(&str, Option<&str>)],
    ) -> Result<(), Stop> {
        let Stage::Known(known) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Err(self.refuse(OUT_OF_ORDER));
        };
        self.stage = Stage::Known(known);
        let (view, now) = (Rc::clone(&self.view), self.worker.now());
        let s = view.snapshot();
        let route = self.rule(s).map(|(chosen, ..)| chosen.route);
        let call = |(operation, model): (&'_ str, Option<&'_ str>)| {
            let mut reason = None;
            let record = self.record()?;
            let rules = s.authority.as_deref()?;
            let call = AskedCall {
                method: who.head.method_text(),
                path: who.head.path(),
                operation,
                source: s.clients.address(who.peer.address, who.head),
                route,
                model,
            };
            let judged = policy::front::authorize(rules, &call, record, s, &mut reason);
            judged.err().map(|refusal| (refusal, reason))
        };
        if let Some((refusal, reason)) = asked.iter().find_map(|asked| call(*asked)) {
            self.facts.reason = reason;
            return Err(self.refuse(refusal));
        }
        let Stage::Known(known) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Err(Stop::Gone);
        };
        // They were asked of all of it: what is left is to say so.
        let (operation, model) = asked.first().copied().unwrap_or_default();
        let call = AskedCall {
            method: who.head.method_text(),
            path: who.head.path(),
            operation,
            source: s.clients.address(who.peer.address, who.head),
            route,
            model,
        };
        match known.authorize(&call, s, now) {
            Ok(allowed) => {
                self.stage = Stage::Allowed(allowed);
                Ok(())
            }
            Err(ended) => Err(self.ended(ended)),
        }
    }

    /// Its limits allow it; the ledger knows of it before its provider does.
    pub(super) fn admit(&mut self) -> Result<(), Stop> {
        let view = Rc::clone(&self.view);
        let s = view.snapshot();
        let chosen = self.rule(s).map(|(chosen, ..)| chosen);
        let (Some(chosen), Stage::Allowed(allowed)) =
            (chosen, std::mem::replace(&mut self.stage, Stage::Over))
        else {
            return Err(self.refuse(OUT_OF_ORDER));
        };
        let now = self.worker.now();
        let admitted = match view.env(now, |env| allowed.admit_free(chosen, env)) {
            Ok(admitted) => admitted,
            Err(ended) => return Err(self.ended(ended)),
        };
        let (record, estimate) = (admitted.record(), admitted.estimate());
        self.entry = self
            .worker
            .ledger(|ledger| ledger.admit(s, record, estimate, None));
        self.stage = Stage::Admitted(Box::new(admitted));
        Ok(())
    }

    /// Refuses it: it was sent to nobody, and holds nothing.
    pub(super) fn refuse(&mut self, refusal: Refusal) -> Stop {
        let now = self.worker.now();
        let ended = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Begun(begun) => begun.refuse(refusal, now),
            Stage::Asking(asking) => asking.given_up().refuse(refusal, now),
            Stage::Known(known) => known.refuse(refusal, now),
            Stage::Allowed(allowed) => allowed.refuse(refusal, now),
            Stage::Admitted(admitted) => self.view.env(now, |env| admitted.release(refusal, env)),
            Stage::Ended(ended) => *ended,
            Stage::Over => return Stop::Gone,
        };
        self.ended(Box::new(ended))
    }

    /// It was sent, or may have been, and came to no good end.
    pub(super) fn fail(&mut self, refusal: Refusal) -> Stop {
        let now = self.worker.now();
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Admitted(admitted) => {
                let ended = self.view.env(now, |env| admitted.fail(refusal, env));
                self.ended(Box::new(ended))
            }
            other => {
                self.stage = other;
                self.refuse(refusal)
            }
        }
    }

    fn ended(&mut self, ended: Box<Ended>) -> Stop {
        self.stage = Stage::Ended(ended);
        Stop::Refused
    }

    /// Why it was refused, once.
    pub(super) fn refusal(&mut self) -> Option<Refusal> {
        match &mut self.stage {
            Stage::Ended(ended) => ended.refusal.take(),
            _ => None,
        }
    }

    /// Its body, whole.
    pub(super) async fn read<D: Downstream>(
        &mut self,
        length: Option<u64>,
        client: &mut D,
        deadline: &mut Deadline,
    ) -> Result<Vec<u8>, Stop> {
        let bounds = self.view.snapshot().bounds;
        let limit = bounds.body_bytes;
        if length.is_some_and(|length| length > limit) {
            return Err(self.refuse(Refusal::BodyTooLarge { limit }));
        }
        let worker = Rc::clone(&self.worker);
        let until = worker.now().after(bounds.body_time);
        let mut body = Vec::new();
        loop {
            deadline.set(bounds.body_idle);
            let piece = poll_fn(|cx| match client.poll_body(&worker.buffers, cx) {
                Poll::Ready(Ok(piece)) => Poll::Ready(Ok(piece)),
                Poll::Ready(Err(BodyFault::Gone)) => Poll::Ready(Err(None)),
                Poll::Ready(Err(BodyFault::Head(fault))) => {
                    Poll::Ready(Err(Some(Refusal::Head(fault))))
                }
                Poll::Ready(Err(BodyFault::Framing(fault))) => {
                    Poll::Ready(Err(Some(Refusal::BodyFraming(fault))))
                }
                Poll::Pending => deadline.poll(cx).map(|()| Err(Some(Refusal::Slow))),
            });
            let piece = match piece.await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(Some(refusal)) => return Err(self.refuse(refusal)),
                Err(None) => return Err(Stop::Gone),
            };
            self.facts.bytes_in += piece.len() as u64;
            let refusal = if self.facts.bytes_in > limit {
                Some(Refusal::BodyTooLarge { limit })
            } else if !self.keep(piece.len()) {
                Some(Refusal::Overloaded)
            } else {
                (worker.now() > until).then_some(Refusal::Slow)
            };
            if let Some(refusal) = refusal {
                return Err(self.refuse(refusal));
            }
            body.extend_from_slice(&piece);
        }
        deadline.clear();
        Ok(body)
    }

    /// Keeps so many more bytes of it; false where there is no room.
    fn keep(&mut self, bytes: usize) -> bool {
        let bound = self.view.snapshot().bounds.bodies_bytes;
        let has_room = self.worker.keep_body(bytes, bound);
        if has_room {
            self.kept += bytes;
        }
        has_room
    }

    /// What it keeps, for as long as what was begun of it goes on.
    pub(super) fn hand_over(&mut self) -> Kept {
        Kept(Rc::clone(&self.worker), std::mem::take(&mut self.kept))
    }

    /// Who may read its answer.
    pub(super) fn cors(&self) -> Cors<'_> {
        let s = self.view.snapshot();
        Cors {
            origins: &s.web.origins,
            page: self.page.as_deref(),
            takes_sessions: s.login.is_some(),
        }
    }

    /// How long its client may take nothing.
    pub(super) fn patience<'w>(&self, worker: &'w Worker) -> Patience<'w> {
        Patience {
            worker,
            stall: self.view.snapshot().bounds.write_stall,
        }
    }

    /// It was answered.
    pub(super) fn completed(&mut self) {
        self.finish(Outcome::Completed);
    }

    /// It is over. Only the first end counts.
    fn finish(&mut self, outcome: Outcome) {
        let now = self.worker.now();
        let ended = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Over => return,
            Stage::Begun(begun) => begun.over(outcome, now),
            Stage::Asking(asking) => asking.given_up().over(outcome, now),
            Stage::Known(known) => known.over(outcome, now),
            Stage::Allowed(allowed) => allowed.over(outcome, now),
            Stage::Admitted(admitted) => self
                .view
                .env(now, |env| admitted.settle(outcome, Tokens::default(), env)),
            Stage::Ended(ended) => *ended,
        };
        let mut record = ended.record;
        let facts = std::mem::take(&mut self.facts);
        let s = self.view.snapshot();
        if let Some(endpoint) = facts.endpoint.filter(|_| facts.upstream.is_some()) {
            record.endpoint = Some(endpoint);
            record.backend = s.endpoint(endpoint).map(|endpoint| endpoint.backend);
            record.attempts = 1;
        }
        (record.bytes_in, record.bytes_out) = (facts.bytes_in, facts.bytes_out);
        if facts.status != 0 {
            record.status = facts.status;
        }
        record.upstream = facts.upstream;
        record.reason = record.reason.take().or(facts.reason);
        let began = |at: Mono| record.duration.saturating_sub(now.since(at));
        record.first_byte = facts.answered.map(began);
        self.worker.drop_body(std::mem::take(&mut self.kept));
        self.worker.sink(|sink| sink.exchange(s, &record));
        if let Some(entry) = self.entry.take() {
            self.worker
                .ledger(|ledger| ledger.settle(entry, s, &record));
        }
        self.worker.exchange_ended();
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.finish(Outcome::Aborted);
    }
}
