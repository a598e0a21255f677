//! One message to servers of tools, from its head to its record.
//!
//! Invariant: a [`Call`] leaves exactly one record and settles what it held, also when it is dropped half-way.
//! Not here: who may do what (`policy::front`), what is asked of whom (`super`).

use std::rc::Rc;
use std::sync::Arc;

use mcp::session::Principal;
use policy::caller::{Caller, Proven};
use policy::clock::Mono;
use policy::exchange::Env;
use policy::front::{
    Admitted, Allowed, Asking, Begun, Counted, Ended, Http, Identification, Known,
};
use policy::id::EndpointId;
use policy::identity::{Proof, Unproven, Verifier};
use policy::mcp::{Mcp, McpRoute};
use policy::operation::Operation;
use policy::record::{Extra, Outcome, Record, Tokens};
use policy::refusal::Refusal;
use policy::route::{self, Chosen};
use policy::secret::Secret;
use policy::usage_ledger::Entry;
use wire::head::{Known as Name, RequestHead};

use super::ask::Failed;
use super::own_tokens::OnBehalf;
use crate::tool_memory::Tools;
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

/// One message.
pub(super) struct Call {
    pub(super) worker: Rc<Worker>,
    pub(super) view: Rc<WorkerSnapshot>,
    /// The origin of the page that sent it.
    pub(super) page: Option<Box<str>>,
    /// Its id, for servers, its client and its record.
    pub(super) id: Rc<OnBehalf>,
    /// What its record is told.
    pub(super) facts: Facts,
    stage: Stage,
    entry: Option<Entry>,
    /// Bytes of it that are kept.
    kept: usize,
}

/// What the record is told at the end.
#[derive(Default)]
pub(super) struct Facts {
    /// The method, where the gate knows it.
    pub(super) method: &'static str,
    /// The whole name of what it is about.
    pub(super) named: Option<Box<str>>,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    /// Where it went, of one server.
    pub(super) endpoint: Option<EndpointId>,
    pub(super) attempts: u32,
    pub(super) streamed: bool,
    /// Its client has no session, and each message says of itself what that would.
    pub(super) is_modern: bool,
    pub(super) status: u16,
    /// Why it was refused, where its code does not say it all.
    pub(super) reason: Option<Box<str>>,
    /// When the first of its answer left.
    pub(super) answered: Option<Mono>,
    /// How long it waited for a server's answer to begin.
    pub(super) upstream: Option<std::time::Duration>,
}

/// How far it has come.
enum Stage {
    Begun(Begun),
    Asking(Box<Asking>),
    Known(Known),
    Counted(Box<Counted>),
    Allowed(Allowed),
    Admitted(Box<Admitted>),
    Ended(Box<Ended>),
    Over,
}

/// It goes no further: it is refused, and its client has to be told; or there is nobody to be told.
pub(super) enum Stop {
    /// [`Call::refusal`] says why.
    Refused,
    /// It was told already, on its stream.
    Told,
    /// The client left, or takes nothing.
    Gone,
}

/// Who is asked who calls, and about what.
pub(super) type Question = (Arc<dyn Verifier>, Secret);

impl Call {
    pub(super) fn begin(
        worker: &Rc<Worker>,
        view: Rc<WorkerSnapshot>,
        page: Option<Box<str>>,
        head: &RequestHead,
        who: &Http<'_>,
    ) -> Self {
        worker.exchange_began();
        let now = worker.clock.arrival();
        let id = head.fields.only(Name::XRequestId).ok().flatten();
        let id = id.and_then(|id| std::str::from_utf8(id).ok());
        let parents = head.fields.of(Name::Traceparent);
        let begun = env(&view, now, |env| {
            Begun::new(id, parents, who, worker.clock.wall_ms(now), env)
        });
        let begun = begun.of(Operation::Mcp);
        Self {
            id: Rc::new(OnBehalf {
                id: begun.record().id.clone(),
                own: Vec::new(),
            }),
            worker: Rc::clone(worker),
            view,
            page,
            facts: Facts::default(),
            stage: Stage::Begun(begun),
            entry: None,
            kept: 0,
        }
    }

    /// The servers and their rules.
    pub(super) fn config(view: &WorkerSnapshot) -> Option<(&Mcp, &Tools)> {
        let config = view.snapshot().mcp.as_deref()?;
        Some((config, view.tools.as_deref()?))
    }

    /// Who makes it, by what it brings; or who is to be asked that, for [`Self::identified`].
    pub(super) fn identify(&mut self, who: &Http<'_>) -> Result<Option<Question>, Stop> {
        let Stage::Begun(begun) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Ok(None);
        };
        let now = self.worker.now();
        match env(&self.view, now, |env| begun.identify(who, env)) {
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
        match env(&self.view, now, |env| asking.answered(answer, who, env)) {
            Ok(known) => {
                self.stage = Stage::Known(known);
                Ok(())
            }
            Err(ended) => Err(self.ended(ended)),
        }
    }

    /// What is known of it.
    pub(super) fn record(&self) -> Option<&Record> {
        match &self.stage {
            Stage::Begun(begun) => Some(begun.record()),
            Stage::Asking(asking) => Some(asking.record()),
            Stage::Known(known) => Some(known.record()),
            Stage::Counted(counted) => Some(counted.record()),
            Stage::Allowed(allowed) => Some(allowed.record()),
            Stage::Admitted(admitted) => Some(admitted.record()),
            Stage::Ended(ended) => Some(&ended.record),
            Stage::Over => None,
        }
    }

    /// It holds its share of every limit.
    pub(super) const fn is_counted(&self) -> bool {
        matches!(self.stage, Stage::Counted(_))
    }

    /// Its limits allow it, whatever the rules of the configuration will say: it counts from now on.
    pub(super) fn count(&mut self, chosen: Chosen<'_>) -> Result<(), Stop> {
        let Stage::Known(known) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Err(self.refuse(OUT_OF_ORDER));
        };
        let (now, view) = (self.worker.now(), Rc::clone(&self.view));
        let counted = match env(&view, now, |env| known.count(chosen, env)) {
            Ok(counted) => counted,
            Err(ended) => return Err(self.ended(ended)),
        };
        self.stage = Stage::Counted(Box::new(counted));
        Ok(())
    }

    /// The rules of the configuration allow it, and where it counts, its limits do.
    pub(super) fn admit(
        &mut self,
        asked: &policy::front::Call<'_>,
        chosen: Chosen<'_>,
        counts: bool,
    ) -> Result<(), Stop> {
        let now = self.worker.now();
        let view = Rc::clone(&self.view);
        let known = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Known(known) => known,
            Stage::Counted(counted) => {
                let admitted = match env(&view, now, |env| counted.authorize(asked, chosen, env)) {
                    Ok(admitted) => admitted,
                    Err(ended) => return Err(self.ended(ended)),
                };
                self.admitted(admitted);
                return Ok(());
            }
            other => {
                self.stage = other;
                return Err(self.refuse(OUT_OF_ORDER));
            }
        };
        let allowed = match known.authorize(asked, view.snapshot(), now) {
            Ok(allowed) => allowed,
            Err(ended) => return Err(self.ended(ended)),
        };
        if !counts {
            self.stage = Stage::Allowed(allowed);
            return Ok(());
        }
        let admitted = match env(&view, now, |env| allowed.admit_free(chosen, env)) {
            Ok(admitted) => admitted,
            Err(ended) => return Err(self.ended(ended)),
        };
        self.admitted(admitted);
        Ok(())
    }

    /// What it asks about was made by such a call, which its caller may make; it has counted.
    pub(super) fn admit_as(&mut self, asked: &policy::front::Call<'_>) -> Result<(), Stop> {
        let Stage::Counted(counted) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Err(self.refuse(OUT_OF_ORDER));
        };
        let (now, view) = (self.worker.now(), Rc::clone(&self.view));
        match env(&view, now, |env| counted.authorize_as(asked, env)) {
            Ok(admitted) => {
                self.admitted(admitted);
                Ok(())
            }
            Err(ended) => Err(self.ended(ended)),
        }
    }

    /// It may run: the ledger knows of it before a server does.
    fn admitted(&mut self, admitted: Admitted) {
        let (record, estimate) = (admitted.record(), admitted.estimate());
        let snapshot = self.view.snapshot();
        self.entry = self
            .worker
            .ledger(|ledger| ledger.admit(snapshot, record, estimate, None));
        self.stage = Stage::Admitted(Box::new(admitted));
    }

    /// Refuses it: it was sent to nobody. It holds nothing, unless it was counted before.
    pub(super) fn refuse(&mut self, refusal: Refusal) -> Stop {
        let now = self.worker.now();
        let ended = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Begun(begun) => begun.refuse(refusal, now),
            Stage::Asking(asking) => asking.given_up().refuse(refusal, now),
            Stage::Known(known) => known.refuse(refusal, now),
            Stage::Counted(counted) => env(&self.view, now, |env| counted.fail(refusal, env)),
            Stage::Allowed(allowed) => allowed.refuse(refusal, now),
            Stage::Admitted(admitted) => env(&self.view, now, |env| admitted.release(refusal, env)),
            Stage::Ended(ended) => *ended,
            Stage::Over => return Stop::Gone,
        };
        self.ended(Box::new(ended))
    }

    /// It was sent, and came to no good end.
    pub(super) fn fail(&mut self, refusal: Refusal) -> Stop {
        let now = self.worker.now();
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Admitted(admitted) => {
                let ended = env(&self.view, now, |env| admitted.fail(refusal, env));
                self.ended(Box::new(ended))
            }
            other => {
                self.stage = other;
                self.refuse(refusal)
            }
        }
    }

    /// The server that it was sent to gave no answer.
    pub(super) fn failed(&mut self, failed: &Failed) -> Stop {
        self.facts.reason = failed.reason();
        self.fail(failed.refusal())
    }

    fn ended(&mut self, ended: Box<Ended>) -> Stop {
        self.stage = Stage::Ended(ended);
        Stop::Refused
    }

    /// Why it was refused, as long as nobody was told.
    pub(super) fn refused_as(&self) -> Option<&Refusal> {
        match &self.stage {
            Stage::Ended(ended) => ended.refusal.as_ref(),
            _ => None,
        }
    }

    /// Why it was refused, once.
    pub(super) fn refusal(&mut self) -> Option<Refusal> {
        match &mut self.stage {
            Stage::Ended(ended) => ended.refusal.take(),
            _ => None,
        }
    }

    /// Keeps so many more bytes of it; false where there is no room.
    pub(super) fn keep(&mut self, bytes: usize) -> bool {
        let bound = self.view.snapshot().bounds.bodies_bytes;
        let has_room = self.worker.keep_body(bytes, bound);
        if has_room {
            self.kept += bytes;
        }
        has_room
    }

    /// Gives back so many of them.
    pub(super) fn keep_no_more(&mut self, bytes: usize) {
        let bytes = bytes.min(self.kept);
        self.kept -= bytes;
        self.worker.drop_body(bytes);
    }

    /// It is over. Only the first end counts.
    pub(super) fn finish(&mut self, outcome: Outcome) {
        let now = self.worker.now();
        let ended = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Over => return,
            Stage::Begun(begun) => begun.over(outcome, now),
            Stage::Asking(asking) => asking.given_up().over(outcome, now),
            Stage::Known(known) => known.over(outcome, now),
            Stage::Counted(counted) => env(&self.view, now, |env| counted.over(outcome, env)),
            Stage::Allowed(allowed) => allowed.over(outcome, now),
            Stage::Admitted(admitted) => env(&self.view, now, |env| {
                admitted.settle(outcome, Tokens::default(), env)
            }),
            Stage::Ended(ended) => *ended,
        };
        let mut record = ended.record;
        let facts = std::mem::take(&mut self.facts);
        let snapshot = self.view.snapshot();
        let backend = facts.endpoint.and_then(|id| snapshot.endpoint(id));
        record.endpoint = facts.endpoint;
        record.backend = backend.map(|endpoint| endpoint.backend);
        record.attempts = facts.attempts;
        record.streamed = facts.streamed;
        (record.bytes_in, record.bytes_out) = (facts.bytes_in, facts.bytes_out);
        if facts.status != 0 {
            record.status = facts.status;
        }
        record.upstream = facts.upstream;
        record.reason = record.reason.take().or(facts.reason);
        let began = |at: Mono| record.duration.saturating_sub(now.since(at));
        record.first_byte = facts.answered.map(began);
        if let Some(workload) = record.workload
            && let Some((.., chosen)) = route::tools(snapshot, workload)
        {
            record.route = Some(chosen.grant.route);
        }
        if !facts.method.is_empty() || facts.named.is_some() {
            record.extra = Some(Box::new(Extra {
                method: facts.method,
                named: facts.named,
                ..Extra::default()
            }));
        }
        self.worker.drop_body(std::mem::take(&mut self.kept));
        self.worker.sink(|sink| sink.exchange(snapshot, &record));
        if let Some(entry) = self.entry.take() {
            self.worker
                .ledger(|ledger| ledger.settle(entry, snapshot, &record));
        }
        self.worker.exchange_ended();
    }
}

/// A bug of the host.
pub(super) const OUT_OF_ORDER: Refusal = Refusal::Bug("a step that this message cannot take");

impl Drop for Call {
    fn drop(&mut self) {
        self.finish(Outcome::Aborted);
    }
}

/// An event at a moment, in a view.
pub(super) fn env<T>(view: &WorkerSnapshot, now: Mono, event: impl FnOnce(&mut Env<'_>) -> T) -> T {
    view.env(now, event)
}

/// Whose sessions are his alone.
pub(super) fn principal<'r>(record: &'r Record, view: &'r WorkerSnapshot) -> Principal<'r> {
    let workload = record.workload.and_then(|id| view.snapshot().workload(id));
    let caller: Option<&Caller> = record.caller.as_deref();
    Principal {
        workload: workload.map_or("", |workload| &workload.name),
        by: caller.map_or(Proven::Header, |caller| caller.by).as_str(),
        issuer: caller.and_then(Caller::issuer),
        key: caller.and_then(|caller| caller.key.as_deref()),
        user: caller.and_then(|caller| caller.user.as_deref()),
    }
}

/// The rule that takes a workload's messages, with its place.
pub(super) fn rule<'v>(
    record: &Record,
    view: &'v WorkerSnapshot,
) -> Result<(usize, &'v McpRoute, Chosen<'v>), Refusal> {
    let snapshot = view.snapshot();
    let rule = record
        .workload
        .and_then(|workload| route::tools(snapshot, workload));
    rule.ok_or(Refusal::McpRouteNotFound)
}
