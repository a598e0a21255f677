//! One answer of a session's model, whoever asked for it: a call that is identified, admitted, held, settled and recorded.
//!
//! Invariant: an [`Answer`] settles what it holds and leaves its record once, also when it is dropped half-way.
//! Not here: events (`realtime`), what an answer holds and is charged (`policy::realtime`).

use std::rc::Rc;
use std::sync::Arc;

use policy::authorizer::{Asked, Authorization, Authorizer};
use policy::billing::Billing;
use policy::caller::Peer;
use policy::clock::Mono;
use policy::exchange::{ANSWER_WITHIN, SaidSoFar, SeenOfAnswer, of_seconds};
use policy::front::{Admitted, Begun, Call, Demand, Ended, Http, Identification, Known};
use policy::id::EndpointId;
use policy::identity::Unproven;
use policy::operation::Operation;
use policy::realtime;
use policy::record::{Outcome, Record, Tokens};
use policy::refusal::Refusal;
use policy::snapshot::{Route, Snapshot};
use policy::usage_ledger::{Entry, OnDurable};
use tokio::sync::oneshot;
use wire::call::Cap;
use wire::head::{Known as Name, RequestHead};
use wire::usage::Reading;

use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

/// What each answer of a session has from the request that opened it.
pub(super) struct Opening<'h> {
    pub(super) worker: Rc<Worker>,
    pub(super) head: &'h RequestHead,
    pub(super) peer: Peer,
    /// Its workload's name.
    pub(super) workload: Box<str>,
    /// Where the session is: a backend's name, and the address.
    pub(super) backend: Box<str>,
    pub(super) authority: Box<str>,
}

impl Opening<'_> {
    fn who(&self) -> Http<'_> {
        Http {
            head: self.head,
            peer: &self.peer,
        }
    }

    /// The endpoint where the session is, if a rule leads there.
    pub(super) fn place(&self, s: &Snapshot, route: &Route) -> Option<EndpointId> {
        let backends = route.backends.iter().filter_map(|id| s.backend(*id));
        let mut here = backends.filter(|backend| *backend.name == *self.backend);
        let mut endpoints = here.next()?.endpoints.iter().copied();
        endpoints.find(|id| {
            let endpoint = s.endpoint(*id);
            endpoint.is_some_and(|endpoint| *endpoint.authority == *self.authority)
        })
    }
}

/// What is asked for.
#[derive(Clone)]
pub(super) struct Wanted {
    /// The model, as its client names it.
    pub(super) model: Option<Box<str>>,
    /// The same, as the server does.
    pub(super) told: Option<Box<str>>,
    pub(super) context: SaidSoFar,
    pub(super) cap: Option<Cap>,
    /// It is over already: what it is charged is known, and it waits for no limit of tokens.
    pub(super) is_over: bool,
    /// Its server makes it by itself: it runs, whether it is let in or not.
    pub(super) is_made: bool,
}

impl Wanted {
    /// The model that it is of, as its price has it.
    fn sent(&self, route: &Route) -> Option<Arc<str>> {
        let named = self.model.as_deref().or(self.told.as_deref());
        let own = route.model.clone();
        own.or_else(|| named.map(Into::into))
    }
}

/// An answer that may come.
pub(super) struct Answer {
    running: Option<Running>,
    worker: Rc<Worker>,
    view: Rc<WorkerSnapshot>,
    admitted: Option<Admitted>,
    entry: Option<Entry>,
    held: Demand,
    pub(super) seen: SeenOfAnswer,
    /// Its server knows of it.
    pub(super) runs: bool,
    /// Its server makes it by itself: where it goes before it is let in, it is owed, and this one never was.
    is_made: bool,
    /// It is no part of the conversation: what it read and made is not what the next one reads.
    pub(super) is_apart: bool,
    began: Mono,
    first: Option<Mono>,
}

/// Counts among what runs, until it is dropped.
struct Running(Rc<Worker>);

impl Running {
    fn new(worker: &Rc<Worker>) -> Self {
        worker.exchange_began();
        Self(Rc::clone(worker))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.exchange_ended();
    }
}

/// Admits an answer.
///
/// # Errors
/// It is refused, and that is recorded.
pub(super) async fn admit(of: &Opening<'_>, wanted: Wanted) -> Result<Answer, Refusal> {
    let (worker, view) = (Rc::clone(&of.worker), of.worker.view());
    let running = Running::new(&worker);
    let now = worker.now();
    let who = of.who();
    let begun = begun(of, &view, &wanted, now);
    let known = match identified(&worker, &view, begun, &who).await {
        Ok(known) => known,
        Err(ended) => return Err(refused(&worker, &view, *ended)),
    };
    if let Err(denied) = allowed_outside(of, &view, known.record(), &wanted).await {
        let mut ended = known.refuse(denied.refusal, worker.now());
        ended.record.reason = ended.record.reason.take().or(denied.why);
        return Err(refused(&worker, &view, ended));
    }
    let (admitted, held, is_durable) = match let_in(of, &view, known, &wanted) {
        Ok(let_in) => let_in,
        Err(ended) => return Err(refused(&worker, &view, *ended)),
    };
    let mut answer = Answer {
        running: Some(running),
        worker,
        view,
        admitted: Some(admitted),
        entry: None,
        held,
        seen: SeenOfAnswer::default(),
        runs: false,
        is_made: wanted.is_made,
        is_apart: false,
        began: now,
        first: None,
    };
    answer.enter(is_durable).await?;
    Ok(answer)
}

/// An answer that ran and was let in by nobody: whoever opened the session owes what it comes to. `view` is that of the session.
pub(super) fn owed(
    of: &Opening<'_>,
    view: &Rc<WorkerSnapshot>,
    opened: &Record,
    wanted: &Wanted,
) -> Option<Answer> {
    let (worker, s) = (Rc::clone(&of.worker), view.snapshot());
    let running = Running::new(&worker);
    let now = worker.now();
    let workload = opened.workload?;
    let caller = opened.caller.as_deref();
    let placed = |model| {
        let chosen = realtime::route(s, workload, caller, model).ok()?;
        Some((chosen, of.place(s, chosen.route)?))
    };
    // A model that no rule leads here goes by the rule that let the session in.
    let placed = placed(wanted.model.as_deref());
    let (chosen, endpoint) = match placed {
        Some(placed) => placed,
        None => {
            let asked = opened.model_asked.as_deref();
            let chosen = realtime::route(s, workload, caller, asked).ok()?;
            (chosen, opened.endpoint?)
        }
    };
    let known = begun(of, view, wanted, now).of_caller(opened, workload);
    let ran = known.ran().of_model(wanted.sent(chosen.route), endpoint, s);
    let (admitted, held) = view.env(now, |env| {
        let estimator = env.shard.estimator(chosen.grant.route);
        let most = chosen.route.output_max;
        let held = wanted.context.demand(wanted.cap, most, estimator);
        Some((ran.owe(chosen, env)?, held))
    })?;
    let (record, estimate) = (admitted.record(), admitted.estimate());
    let entry = worker.ledger(|ledger| ledger.admit(s, record, estimate, None));
    Some(Answer {
        running: Some(running),
        worker,
        view: Rc::clone(view),
        admitted: Some(admitted),
        entry,
        held,
        seen: SeenOfAnswer::default(),
        runs: true,
        is_made: true,
        is_apart: false,
        began: now,
        first: None,
    })
}

/// The start of one.
fn begun(of: &Opening<'_>, view: &WorkerSnapshot, wanted: &Wanted, now: Mono) -> Begun {
    let parents = of.head.fields.of(Name::Traceparent);
    let wall_ms = of.worker.clock.wall_ms(now);
    let begun = view.env(now, |env| {
        Begun::new(None, parents, &of.who(), wall_ms, env)
    });
    let begun = begun.of(Operation::Realtime);
    begun.asking_for(wanted.model.as_deref())
}

/// Who makes it.
async fn identified(
    worker: &Rc<Worker>,
    view: &WorkerSnapshot,
    begun: Begun,
    who: &Http<'_>,
) -> Result<Known, Box<Ended>> {
    let asking = match view.env(worker.now(), |env| begun.identify(who, env)) {
        Identification::Known(known) => return Ok(known),
        Identification::Refused(ended) => return Err(ended),
        Identification::Asks(asking) => asking,
    };
    let (verifier, credential) = asking.question();
    let asked = verifier.ask(credential.clone());
    let answer = worker.timers.timeout(ANSWER_WITHIN, asked).await;
    let answer = answer.unwrap_or(Err(Unproven::Unavailable("no answer in time".into())));
    view.env(worker.now(), |env| asking.answered(answer, who, env))
}

/// Why somebody outside does not let it in.
struct Denied {
    refusal: Refusal,
    /// For the log.
    why: Option<Box<str>>,
}

impl Denied {
    fn by(refusal: Refusal, why: Option<Box<str>>) -> Box<Self> {
        Box::new(Self { refusal, why })
    }
}

/// Whoever is asked outside allows it.
async fn allowed_outside(
    of: &Opening<'_>,
    view: &WorkerSnapshot,
    record: &Record,
    wanted: &Wanted,
) -> Result<(), Box<Denied>> {
    let s = view.snapshot();
    let Some(workload) = record.workload.and_then(|id| Some((id, s.workload(id)?))) else {
        return Ok(());
    };
    let (id, workload) = workload;
    let caller = record.caller.as_deref();
    let authorizers = [&workload.authorizer, &workload.call_authorizer];
    for authorizer in authorizers.into_iter().flatten() {
        let authorizer: &dyn Authorizer = &**authorizer;
        let model = wanted.model.as_deref();
        let chosen = realtime::route(s, id, caller, model);
        let chosen = chosen.map_err(|refusal| Denied::by(refusal, None))?;
        let backends = chosen.route.backends.iter();
        let backends = backends.filter_map(|id| s.backend(*id));
        let asked = authorizer.ask(&Asked {
            id: &record.id,
            head: of.head,
            source: s.clients.address(of.peer.address, of.head),
            workload: &workload.name,
            caller,
            model,
            route: Some(&*chosen.route.name),
            backends: backends.map(|backend| &*backend.name).collect(),
        });
        match of.worker.timers.timeout(ANSWER_WITHIN, asked).await {
            Ok(Authorization::Allowed) => {}
            Ok(Authorization::Denied(why)) => {
                return Err(Denied::by(Refusal::NotAuthorized, Some(why)));
            }
            Ok(Authorization::Unavailable(why)) => {
                return Err(Denied::by(Refusal::AuthorizerUnavailable, Some(why)));
            }
            Err(_) => return Err(Denied::by(Refusal::AuthorizerUnavailable, None)),
        }
    }
    Ok(())
}

/// Rules, limits and budgets let it in. Gives what it holds, and whether its row has to be on disk before it runs.
fn let_in(
    of: &Opening<'_>,
    view: &WorkerSnapshot,
    known: Known,
    wanted: &Wanted,
) -> Result<(Admitted, Demand, bool), Box<Ended>> {
    let (s, now) = (view.snapshot(), of.worker.now());
    let record = known.record();
    let Some(workload) = record.workload else {
        return Err(Box::new(known.refuse(Refusal::CredentialMissing, now)));
    };
    let (caller, model) = (record.caller.clone(), wanted.model.as_deref());
    let placed = realtime::route(s, workload, caller.as_deref(), model)
        .and_then(|chosen| Ok((chosen, of.place(s, chosen.route).ok_or_else(elsewhere)?)));
    let (chosen, endpoint) = match placed {
        Ok(placed) => placed,
        Err(refusal) => return Err(Box::new(known.refuse(refusal, now))),
    };
    let allowed = known.authorize(
        &Call {
            method: of.head.method_text(),
            path: of.head.path(),
            operation: Operation::Realtime.as_str(),
            source: s.clients.address(of.peer.address, of.head),
            route: Some(chosen.route),
            model,
        },
        s,
        now,
    )?;
    let allowed = allowed.of_model(wanted.sent(chosen.route), endpoint, s);
    view.env(now, |env| {
        let estimator = env.shard.estimator(chosen.grant.route);
        let held = match wanted.is_over {
            true => Demand {
                is_capped: false,
                is_bounded: false,
                ..Demand::charged(None)
            },
            false => wanted
                .context
                .demand(wanted.cap, chosen.route.output_max, estimator),
        };
        let admitted = allowed.admit(chosen, held, None, env)?;
        Ok((admitted, held, chosen.route.billing == Billing::Strict))
    })
}

/// The model is not where the session is.
pub(super) fn elsewhere() -> Refusal {
    let says = "this gateway does not serve the model where this session is: open a session of its own for it";
    Refusal::RealtimeEvent { says: says.into() }
}

/// Records a refusal.
fn refused(worker: &Rc<Worker>, view: &WorkerSnapshot, ended: Ended) -> Refusal {
    let Ended {
        record, refusal, ..
    } = ended;
    worker.sink(|sink| sink.exchange(view.snapshot(), &record));
    refusal.unwrap_or(Refusal::Bug("a refusal without reason"))
}

impl Answer {
    /// Enters it in the ledger, and waits until that is on disk where it has to be.
    async fn enter(&mut self, is_durable: bool) -> Result<(), Refusal> {
        let Some(admitted) = &self.admitted else {
            return Ok(());
        };
        let (record, estimate) = (admitted.record(), admitted.estimate());
        let s = self.view.snapshot();
        if !is_durable {
            let entry = self
                .worker
                .ledger(|ledger| ledger.admit(s, record, estimate, None));
            self.entry = entry;
            return Ok(());
        }
        let (tell, told) = oneshot::channel();
        self.entry = self.worker.ledger(|ledger| {
            // Nobody listens any more when the session is over.
            let is_kept: OnDurable = Box::new(move |is_kept| {
                let _gone = tell.send(is_kept);
            });
            ledger.admit(s, record, estimate, Some(is_kept))
        });
        if self.entry.is_none() {
            return Ok(());
        }
        let waited = self.worker.timers.timeout(ANSWER_WITHIN, told).await;
        if let Ok(Ok(true)) = waited {
            return Ok(());
        }
        if let Some(entry) = self.entry.take() {
            self.worker.ledger(|ledger| ledger.withdraw(entry));
        }
        if let Some(admitted) = self.admitted.take() {
            let now = self.worker.now();
            let refusal = Refusal::LedgerUnavailable;
            let ended = self.view.env(now, |env| admitted.release(refusal, env));
            self.leave(ended.record);
        }
        Err(Refusal::LedgerUnavailable)
    }

    /// A piece of it came.
    pub(super) fn take(&mut self, bytes: usize, is_audio: bool) {
        self.first.get_or_insert_with(|| self.worker.now());
        let of_kind = match is_audio {
            true => &mut self.seen.audio_bytes,
            false => &mut self.seen.text_bytes,
        };
        *of_kind += bytes as u64;
    }

    /// It is over, by its server's word.
    pub(super) fn end(mut self, usage: &Reading, is_good: bool) {
        let tokens = match (usage, is_good) {
            // It says that nothing came of it, and not that anything was used.
            (Reading::Absent, false) => Tokens::default(),
            (usage, _) => self.seen.tokens(usage, self.held),
        };
        match is_good {
            true => self.settle(Outcome::Completed, "", tokens),
            false => self.settle(Outcome::Failed, "upstream_error_event", tokens),
        }
    }

    /// What it was is charged so much, by the length of the sound.
    pub(super) fn end_by_seconds(mut self, seconds: u64) {
        self.settle(Outcome::Completed, "", of_seconds(seconds));
    }

    /// Its server refused it: nothing ran.
    pub(super) fn refused_upstream(mut self) {
        self.settle(Outcome::Failed, "upstream_error_event", Tokens::default());
    }

    /// The session ended before it did.
    pub(super) fn cut(mut self, outcome: Outcome) {
        let code = match outcome {
            Outcome::Failed => "upstream_cut",
            _ => "",
        };
        let tokens = self.seen.unreported(self.held);
        self.settle(outcome, code, tokens);
    }

    /// It never was: what it holds is given back, and it has no row and no record.
    fn take_back(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.worker.ledger(|ledger| ledger.withdraw(entry));
        }
        if let Some(admitted) = self.admitted.take() {
            let now = self.worker.now();
            let refusal = Refusal::Bug("an answer that is owed");
            let _ended = self.view.env(now, |env| admitted.release(refusal, env));
        }
    }

    fn settle(&mut self, outcome: Outcome, code: &'static str, tokens: Tokens) {
        let Some(admitted) = self.admitted.take() else {
            return;
        };
        let now = self.worker.now();
        let ended = self
            .view
            .env(now, |env| admitted.settle(outcome, tokens, env));
        let mut record = ended.record;
        if !code.is_empty() {
            record.code = code;
        }
        record.bytes_out = self.seen.text_bytes + self.seen.audio_bytes;
        record.first_byte = self.first.map(|first| first.since(self.began));
        self.leave(record);
    }

    fn leave(&mut self, record: Record) {
        let s = self.view.snapshot();
        self.worker.sink(|sink| sink.exchange(s, &record));
        if let Some(entry) = self.entry.take() {
            self.worker
                .ledger(|ledger| ledger.settle(entry, s, &record));
        }
        self.running = None;
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if self.is_made && !self.runs {
            return self.take_back();
        }
        let tokens = match self.runs {
            true => self.seen.unreported(self.held),
            false => Tokens::default(),
        };
        self.settle(Outcome::Aborted, "", tokens);
    }
}
