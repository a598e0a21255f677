//! One call that is no exchange of HTTP inference, from its head to its record: a message to servers of tools, a call of files and batches.
//!
//! Who calls, what is allowed, what is left and what is recorded is `policy::front`'s, in its order.
//! Invariant: a [`Call`] leaves exactly one record and settles what it held, also when it is dropped half-way.
//! Not here: which rule takes it and what is asked of whom (`tools`, `batches`), waits of it for others (`call::waits`).

mod behalf;
mod waits;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use policy::clock::Mono;
use policy::front::{
    Admitted, Allowed, Asking, Begun, Call as AskedCall, Counted, Ended, Http, Identification,
    Known,
};
use policy::id::EndpointId;
use policy::identity::{Proof, Unproven, Verifier};
use policy::operation::Operation;
use policy::record::{Extra, Outcome, Record, Tokens};
use policy::refusal::Refusal;
use policy::route::{self, Chosen};
use policy::secret::Secret;
use policy::usage_ledger::Entry;
use wire::head::{Known as Name, RequestHead};

pub(crate) use self::behalf::{OnBehalf, OwnToken};
pub(crate) use self::waits::{authorized_outside, identify, piece, sent, while_there};
use crate::client::Downstream;
use crate::cors::Cors;
use crate::reply::Patience;
pub(crate) use crate::tool_failure::OUT_OF_ORDER;
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

/// One call.
pub(crate) struct Call {
    pub(crate) worker: Rc<Worker>,
    pub(crate) view: Rc<WorkerSnapshot>,
    /// The origin of the page that sent it.
    page: Option<Box<str>>,
    /// Its id, for whoever is asked for it, its client and its record.
    pub(crate) id: Rc<OnBehalf>,
    /// What its record is told.
    pub(crate) facts: Facts,
    stage: Stage,
    entry: Option<Entry>,
    /// Bytes of it that are kept.
    kept: usize,
}

/// What the record is told at the end.
#[derive(Default)]
pub(crate) struct Facts {
    /// Of a message to servers of tools: its method, where the gate knows it.
    pub(crate) method: &'static str,
    /// The whole name of what it is about.
    pub(crate) named: Option<Box<str>>,
    /// Its client has no session, and each message says of itself what that would.
    pub(crate) is_modern: bool,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Where it went, of one.
    pub(crate) endpoint: Option<EndpointId>,
    pub(crate) attempts: u32,
    pub(crate) streamed: bool,
    pub(crate) status: u16,
    /// Why it was refused, where its code does not say it all.
    pub(crate) reason: Option<Box<str>>,
    /// When the first of its answer left.
    pub(crate) answered: Option<Mono>,
    /// How long it waited for an answer to begin.
    pub(crate) upstream: Option<Duration>,
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

/// It goes no further.
pub(crate) enum Stop {
    /// [`Call::refusal`] says why, and its client has to be told.
    Refused,
    /// It was told already, on its stream.
    Told,
    /// The client left, or takes nothing.
    Gone,
}

/// Who is asked who calls, and about what.
type Question = (Arc<dyn Verifier>, Secret);

/// So many bytes that are kept, until it goes.
pub(crate) struct Kept(Rc<Worker>, usize);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.drop_body(self.1);
    }
}

impl Call {
    pub(crate) fn begin(
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
        let begun = match operation {
            Operation::Mcp => {
                let mcp = view.snapshot().mcp.as_deref();
                let path = mcp.and_then(|mcp| mcp.path(head.path()));
                begun.at_mcp_path(path.unwrap_or(0))
            }
            operation => begun.of(operation),
        };
        Self {
            id: Rc::new(OnBehalf {
                id: begun.record().id.clone(),
                own: Vec::new(),
                missing: Vec::new(),
                token: None,
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

    /// Who makes it, by what it brings; or who is to be asked that, for [`Self::identified`].
    fn identify(&mut self, who: &Http<'_>) -> Result<Option<Question>, Stop> {
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
    fn identified(&mut self, answer: Result<Proof, Unproven>, who: &Http<'_>) -> Result<(), Stop> {
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

    /// What is known of it.
    pub(crate) fn record(&self) -> Option<&Record> {
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
    pub(crate) const fn is_counted(&self) -> bool {
        matches!(self.stage, Stage::Counted(_))
    }

    /// Its limits allow it, whatever the rules of the configuration will say: it counts from now on.
    pub(crate) fn count(&mut self, chosen: Chosen<'_>) -> Result<(), Stop> {
        let Stage::Known(known) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Err(self.refuse(OUT_OF_ORDER));
        };
        let now = self.worker.now();
        match self.view.env(now, |env| known.count(chosen, env)) {
            Ok(counted) => {
                self.stage = Stage::Counted(Box::new(counted));
                Ok(())
            }
            Err(ended) => Err(self.ended(ended)),
        }
    }

    /// The rules of the configuration allow it, and where it counts, its limits do.
    pub(crate) fn admit(
        &mut self,
        asked: &AskedCall<'_>,
        chosen: Chosen<'_>,
        counts: bool,
    ) -> Result<(), Stop> {
        let (now, view) = (self.worker.now(), Rc::clone(&self.view));
        let admitted = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Counted(counted) => view.env(now, |env| counted.authorize(asked, chosen, env)),
            Stage::Known(known) => {
                let allowed = match known.authorize(asked, view.snapshot(), now) {
                    Ok(allowed) if counts => allowed,
                    Ok(allowed) => {
                        self.stage = Stage::Allowed(allowed);
                        return Ok(());
                    }
                    Err(ended) => return Err(self.ended(ended)),
                };
                view.env(now, |env| allowed.admit_free(chosen, env))
            }
            other => {
                self.stage = other;
                return Err(self.refuse(OUT_OF_ORDER));
            }
        };
        self.admitted(admitted)
    }

    /// What it asks about was made by such a call, which its caller may make; it has counted.
    pub(crate) fn admit_as(&mut self, asked: &AskedCall<'_>) -> Result<(), Stop> {
        let Stage::Counted(counted) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Err(self.refuse(OUT_OF_ORDER));
        };
        let (now, view) = (self.worker.now(), Rc::clone(&self.view));
        let admitted = view.env(now, |env| counted.authorize_as(asked, env));
        self.admitted(admitted)
    }

    /// It may run: the ledger knows of it before anybody is asked.
    fn admitted(&mut self, admitted: Result<Admitted, Box<Ended>>) -> Result<(), Stop> {
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(ended) => return Err(self.ended(ended)),
        };
        let (record, estimate) = (admitted.record(), admitted.estimate());
        let s = self.view.snapshot();
        self.entry = self
            .worker
            .ledger(|ledger| ledger.admit(s, record, estimate, None));
        self.stage = Stage::Admitted(Box::new(admitted));
        Ok(())
    }

    /// Refuses it: it was sent to nobody. It holds nothing, unless it was counted before.
    pub(crate) fn refuse(&mut self, refusal: impl Into<Refusal>) -> Stop {
        let refusal = refusal.into();
        let now = self.worker.now();
        let ended = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Begun(begun) => begun.refuse(refusal, now),
            Stage::Asking(asking) => asking.given_up().refuse(refusal, now),
            Stage::Known(known) => known.refuse(refusal, now),
            Stage::Counted(counted) => self.view.env(now, |env| counted.fail(refusal, env)),
            Stage::Allowed(allowed) => allowed.refuse(refusal, now),
            Stage::Admitted(admitted) => self.view.env(now, |env| admitted.release(refusal, env)),
            Stage::Ended(ended) => *ended,
            Stage::Over => return Stop::Gone,
        };
        self.ended(Box::new(ended))
    }

    /// It was sent, or may have been, and came to no good end.
    pub(crate) fn fail(&mut self, refusal: impl Into<Refusal>) -> Stop {
        let refusal = refusal.into();
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

    /// Why it was refused, as long as nobody was told.
    pub(crate) fn refused_as(&self) -> Option<&Refusal> {
        match &self.stage {
            Stage::Ended(ended) => ended.refusal.as_ref(),
            _ => None,
        }
    }

    /// Why it was refused, once.
    pub(crate) fn refusal(&mut self) -> Option<Refusal> {
        match &mut self.stage {
            Stage::Ended(ended) => ended.refusal.take(),
            _ => None,
        }
    }

    /// Keeps so many more bytes of it; false where there is no room.
    pub(crate) fn keep(&mut self, bytes: usize) -> bool {
        let bound = self.view.snapshot().bounds.bodies_bytes;
        let has_room = self.worker.keep_body(bytes, bound);
        if has_room {
            self.kept += bytes;
        }
        has_room
    }

    /// Gives back so many of them.
    pub(crate) fn keep_no_more(&mut self, bytes: usize) {
        let bytes = bytes.min(self.kept);
        self.kept -= bytes;
        self.worker.drop_body(bytes);
    }

    /// What it keeps, for as long as what was begun of it goes on.
    pub(crate) fn hand_over(&mut self) -> Kept {
        Kept(Rc::clone(&self.worker), std::mem::take(&mut self.kept))
    }

    /// Who may read its answer.
    pub(crate) fn cors(&self) -> Cors<'_> {
        let s = self.view.snapshot();
        Cors {
            origins: &s.web.origins,
            page: self.page.as_deref(),
            takes_sessions: s.login.is_some(),
        }
    }

    /// How long its client may take nothing.
    pub(crate) fn patience<'w>(&self, worker: &'w Worker) -> Patience<'w> {
        Patience {
            worker,
            stall: self.view.snapshot().bounds.write_stall,
        }
    }

    /// The end of every head.
    pub(crate) fn head_ends<D: Downstream>(&mut self, client: &mut D, status: u16) {
        client.field(b"x-request-id", self.id.as_bytes());
        self.cors().write(client);
        self.begun(client, status);
    }

    /// The end of a head that every page may read.
    pub(crate) fn head_ends_for_all<D: Downstream>(&mut self, client: &mut D, status: u16) {
        client.field(b"x-request-id", self.id.as_bytes());
        self.begun(client, status);
    }

    fn begun<D: Downstream>(&mut self, client: &mut D, status: u16) {
        client.begun();
        self.facts.status = status;
        let now = self.worker.now();
        self.facts.answered.get_or_insert(now);
    }

    /// It was answered.
    pub(crate) fn completed(&mut self) {
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
            Stage::Counted(counted) => self.view.env(now, |env| counted.over(outcome, env)),
            Stage::Allowed(allowed) => allowed.over(outcome, now),
            Stage::Admitted(admitted) => self
                .view
                .env(now, |env| admitted.settle(outcome, Tokens::default(), env)),
            Stage::Ended(ended) => *ended,
        };
        let mut record = ended.record;
        let facts = std::mem::take(&mut self.facts);
        let s = self.view.snapshot();
        let endpoint = facts.endpoint.and_then(|id| s.endpoint(id));
        record.endpoint = facts.endpoint;
        record.backend = endpoint.map(|endpoint| endpoint.backend);
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
        if record.operation == Some(Operation::Mcp)
            && let Some(workload) = record.workload
            && let Some((.., chosen)) = route::tools(s, workload, record.mcp_path)
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
