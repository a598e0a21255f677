//! One downstream request with its response, from head to record: a machine that is told what happens, a method for each
//! event, and answers with a verdict ([`Verdict`]).
//!
//! Its stages: `Reading` (we know who asks for what) → `Active` (reserved; attempts, then a response) → ended.
//! Whatever is decided of an exchange is decided here; its host waits, copies and measures.
//! Invariant: an exchange settles its `Reservation` exactly once and leaves exactly one [`Record`]; a refusal holds
//! nothing; nothing is tried again after the first byte of a response went downstream, nor after the client left.
//! Not here: the events, a method for each (`events`), a call until it is admitted (`reading`), which endpoint is next ([`crate::attempt`]), what a response
//! becomes (`response`), what it is charged (`charged`).

mod admission;
mod answered;
mod asked_count;
mod asking;
mod attempting;
mod charged;
mod cost;
mod ending;
mod events;
mod kept;
mod logging_in;
mod look;
mod placing;
mod reading;
mod request;
mod response;
mod socket;
mod spoken;
mod timing;
mod unanswered;
mod verdict;

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use wire::call::{Boundary, CallHead, CallScanner};
use wire::dialect::gemini::Named;
use wire::encoding::Coding;
use wire::filter::{self, Answering};
use wire::head::{Known, RequestHead};
use wire::meter::Form;

pub use self::admission::is_json;
pub(crate) use self::admission::{check_besides, check_state};
use self::asking::CallQuestion;
use self::attempting::To;
pub use self::charged::{Finished, certain};
use self::ending::Ending;
use self::placing::Placing;
pub(crate) use self::reading::minds;
use self::reading::{Identifying, Reading};
pub use self::request::{AttemptRequest, Filtering, Passed, Signature, Signing};
use self::response::{Disconnected, Metering};
pub use self::response::{Look, REFUSAL_BYTES, names_credential, names_usage};
pub use self::spoken::{SaidSoFar, SeenOfAnswer, of_seconds};
pub use self::timing::Timing;
pub use self::verdict::{
    Amended, Answer, Ask, Lost, Machine, Plan, Question, Relay, Told, Verdict,
};
use crate::attempt::{Attempts, Failure, Sent};
use crate::caller::MAX_OWN_LIMITS;
use crate::clock::Mono;
use crate::credential::Credential;
use crate::front::{self, Most, Reservation};
pub use crate::front::{Env, Settled};
use crate::id::{BackendId, EndpointId, LimitId};
use crate::levels::Levels;
use crate::limit::{Kind, Level};
use crate::operation::Operation;
use crate::record::{AttemptRecord, Outcome, Record};
use crate::refusal::Refusal;
use crate::request_id;
use crate::responses::Continued;
use crate::secret::Secret;
use crate::snapshot::Snapshot;
use crate::subject::Subjects;
use crate::trace::{AttemptSpan, Trace};
use crate::usage_ledger::Estimate;

/// Most limits that one grant may have; more is refused by `config`.
pub const MAX_GRANT_LIMITS: usize = 16;
/// Most limits that hold for one call: its grant's, and those that its caller brings.
pub const MAX_LIMITS: usize = MAX_GRANT_LIMITS + MAX_OWN_LIMITS;
/// How long a call waits for its entry in the ledger to reach the disk.
const DURABLE_WITHIN: Duration = Duration::from_secs(5);
/// How long a call waits for what else it asks.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// Where a limit stands that holds for an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitLevel {
    /// What it counts.
    pub kind: Kind,
    /// Which it is, where it is not the caller's own.
    pub id: Option<LimitId>,
    /// Units for each window.
    pub amount: u64,
    /// What the caller's bucket holds.
    pub level: Level,
}

/// One exchange.
#[derive(Debug)]
pub struct Exchange {
    record: Record,
    stage: Stage,
    /// The other end of its connection.
    peer: IpAddr,
    /// Where its time goes; the host measures.
    pub timing: Timing,
    /// How it ends, once that is known.
    ending: Option<(Outcome, &'static str)>,
    /// The origin of the web page that asked, which is allowed.
    page: Option<Box<str>>,
    /// Which kept response the call goes on from.
    continued: Option<Box<Continued>>,
}

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a box would cost each call an allocation"
)]
enum Stage {
    /// Its head was not judged yet, or it is refused, answered by the gate itself, or over.
    Idle,
    /// A login is asked how it goes on.
    LoggingIn,
    Identifying(Box<Identifying>),
    Reading(Reading),
    Asking(Box<CallQuestion>),
    Active(Active),
}

/// A call that was admitted, to its end.
#[derive(Debug)]
struct Active {
    /// What must be settled.
    reservation: Option<Reservation>,
    estimate: Estimate,
    prompt_estimate: u64,
    /// The most that is believed of what its answer is billed by.
    most: Most,
    /// What its body says, where an attempt may have to edit it.
    call: Option<Box<CallHead>>,
    force_usage: bool,
    withhold_usage: bool,
    /// The attempt under way asks for usage, and its client does not.
    asks_usage: bool,
    /// An attempt was refused since it asked for usage.
    was_refused_usage: bool,
    /// What filters the response of the last attempt.
    answering: Vec<Box<dyn Answering>>,
    /// What the upstream of the last attempt is asked for, where filters change that.
    asked: Option<Operation>,
    /// The latest attempt that could be told the call and failed: why, and where it went.
    failed: Option<(Failure, EndpointId)>,
    /// What a filter could not say of the call.
    unfit: Option<Box<Unsaid>>,
    /// Its prompt is more than its body holds: nobody here knows what it comes to.
    is_prompt_unseen: bool,
    /// The client asked for a stream.
    stream: bool,
    /// It may run twice.
    repeats: bool,
    attempts: Attempts,
    phase: Phase,
    /// The caller's own token, where a backend of its route is sent another one for it.
    caller_token: Option<Secret>,
    /// How far the request of the attempt under way has come, or of the last one.
    sent: Cell<Sent>,
    /// How far it had come when its response came.
    sent_before: Cell<Sent>,
    /// What the attempt that ended last leaves, until its host takes it.
    ended: Option<(AttemptRecord, Option<Box<AttemptSpan>>)>,
    /// The attempt under way, or the one whose response is used; in a sampled exchange alone.
    span: Option<Box<AttemptSpan>>,
    /// How its response is read.
    metering: Metering,
    form: Form,
    /// What is done about it, once its client has left.
    left: Option<Box<Disconnected>>,
    /// Where it is counted in, where a backend of its route is balanced.
    placing: Option<Box<Placing>>,
}

/// A call that a filter could not say.
#[derive(Debug, Default)]
struct Unsaid {
    /// What of it.
    what: Box<str>,
    /// It names what the upstream keeps for an account that others use.
    is_of_account: bool,
    /// The prompt whose count it asks for, and who would be sent it.
    prompt: Option<(filter::Prompt, BackendId)>,
}

impl Unsaid {
    fn refusal(self) -> Refusal {
        let at = self.what;
        match self.is_of_account {
            true => Refusal::SharedAddress { at },
            false => Refusal::Unfit { what: at },
        }
    }
}

/// How far an admitted call has come.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// It is being entered in the ledger.
    Entering,
    /// The credential of its next attempt is being minted.
    Minting(To),
    /// The prompt that it asks about is being counted.
    Counting,
    /// An endpoint is being picked for its next attempt; the one before failed so.
    Picking(Failure),
    /// An attempt is under way.
    Trying,
    /// A response came.
    Answered,
}

impl Active {
    fn is_answered(&self) -> bool {
        matches!(self.phase, Phase::Answered)
    }
}

/// An admitted call with what its exchange keeps of it.
struct Running<'x> {
    record: &'x mut Record,
    call: &'x mut Active,
    timing: &'x Timing,
    ending: &'x mut Option<(Outcome, &'static str)>,
}

impl Running<'_> {
    /// It is in the ledger.
    #[inline(always)]
    fn entered(&mut self, env: &mut Env<'_>) -> Result<Verdict, Refusal> {
        match self.call.phase {
            Phase::Entering => Ok(self.first_attempt(env)),
            _ => Err(OUT_OF_ORDER),
        }
    }

    /// There is a credential for its next attempt.
    fn minted(
        &mut self,
        credential: Arc<Credential>,
        env: &mut Env<'_>,
    ) -> Result<Verdict, Refusal> {
        match self.call.phase {
            Phase::Minting(to) => Ok(self.plan(to, Some(credential), env)),
            _ => Err(OUT_OF_ORDER),
        }
    }

    /// What it waited for is not to be had.
    #[cold]
    fn unanswered(&mut self, env: &mut Env<'_>) -> Verdict {
        match self.call.phase {
            // The call does not run.
            Phase::Entering => {
                if let Some(reservation) = self.call.reservation.take() {
                    reservation.release(env.now, env.snapshot, env.levels);
                }
                self.refuse(Refusal::LedgerUnavailable)
            }
            Phase::Minting(_) => {
                self.call.phase = Phase::Trying;
                self.attempt_failed(Failure::Credential.into(), env)
            }
            Phase::Counting => self.uncounted(),
            Phase::Picking(last) => {
                self.unpicked(last, (placing::NO_ANSWER, "it did not answer in time"), env)
            }
            // A head came, and the first bytes that would say what it is a head of did not.
            Phase::Trying => self.attempt_failed(Failure::FirstByteTimeout.into(), env),
            Phase::Answered => self.refuse(OUT_OF_ORDER),
        }
    }

    #[cold]
    fn refuse(&mut self, refusal: Refusal) -> Verdict {
        refuse(self.record, self.ending, refusal)
    }

    fn end(&mut self, ending: Ending) {
        self.ending.get_or_insert(ending.recorded());
    }

    /// The wall clock at `now`, milliseconds since the Unix epoch.
    fn unix_ms(&self, now: Mono) -> u64 {
        unix_ms(self.record, self.timing, now)
    }
}

/// What a host is told that tells an exchange of something which cannot have happened to it.
const OUT_OF_ORDER: Refusal = Refusal::Bug("an event that its exchange cannot have");

impl Exchange {
    /// An exchange whose head begins to be judged. `unix_ms` is the wall clock at `env.now`.
    #[must_use]
    #[inline(always)]
    pub fn begin(head: &RequestHead, peer: IpAddr, unix_ms: u64, env: &mut Env<'_>) -> Self {
        let id = head.fields.only(Known::XRequestId).ok().flatten();
        let id = id
            .filter(|v| request_id::is_plain(v))
            .and_then(|v| std::str::from_utf8(v).ok());
        let shard = &mut *env.shard;
        let id = id.map_or_else(|| request_id::minted(shard.step()), Box::from);
        let trace = shard.sampling.map(|sampling| {
            let given = head.fields.of(Known::Traceparent);
            Trace::begin(given, sampling, || shard.fresh())
        });
        let client = env.snapshot.clients.recorded(peer, head);
        Self {
            record: Record::begun(id, trace, unix_ms, client),
            stage: Stage::Idle,
            peer,
            timing: Timing::begin(env.now),
            ending: None,
            page: None,
            continued: None,
        }
    }

    /// What is known of it so far.
    #[inline]
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Calls `tell` with each limit that holds for it, once its route is known: the grant's, then the caller's own.
    pub fn limits(
        &self,
        s: &Snapshot,
        levels: &Levels,
        now: Mono,
        mut tell: impl FnMut(LimitLevel),
    ) {
        let Some(workload) = self.record.workload else {
            return;
        };
        let held = match &self.stage {
            Stage::Active(active) => active.reservation.as_ref(),
            Stage::Idle
            | Stage::LoggingIn
            | Stage::Identifying(_)
            | Stage::Reading(_)
            | Stage::Asking(_) => None,
        };
        if held.is_some_and(Reservation::is_of_no_limit) {
            return;
        }
        let granted = s.workload(workload).zip(self.record.route);
        let Some((_, grant)) = granted.and_then(|(of, route)| of.grant_of(route)) else {
            return;
        };
        let unknown = Subjects::default();
        let known = held.map(Reservation::subjects);
        let who = s.who(workload, self.record.caller.as_ref());
        let limits = front::limits_of(grant, who, known.unwrap_or(&unknown), s, levels);
        limits.for_each(|limit| {
            tell(LimitLevel {
                kind: limit.kind,
                id: limit.id,
                amount: limit.rate.amount,
                level: limit.bucket.level(now),
            });
        });
    }

    /// Whether an attempt ended whose record nobody has taken.
    #[inline(always)]
    pub(crate) fn has_ended_an_attempt(&self) -> bool {
        matches!(&self.stage, Stage::Active(active) if active.ended.is_some())
    }

    /// What the attempt that ended last leaves; to be asked for after each.
    #[inline]
    pub fn attempt_record(&mut self) -> Option<(AttemptRecord, Option<Box<AttemptSpan>>)> {
        self.running()?.call.ended.take()
    }

    /// The wall clock at `now`, milliseconds since the Unix epoch.
    fn unix_ms(&self, now: Mono) -> u64 {
        unix_ms(&self.record, &self.timing, now)
    }

    /// The origin of the web page that asked, where one did.
    #[must_use]
    pub fn page(&self) -> Option<&str> {
        self.page.as_deref()
    }

    /// What reads its body, where that is read; for a call whose body comes. It is large to be moved, and made where it stays.
    #[inline(always)]
    #[must_use]
    pub fn scanner(&self, head: &RequestHead) -> Option<CallScanner> {
        let operation = self.record.operation.filter(|o| o.reads_body())?;
        let reads_user = matches!(&self.stage, Stage::Reading(reading) if reading.reads_user);
        if reads_user || operation.is_named_by_path() || operation.is_form() {
            return self.scanner_of(operation, head);
        }
        Some(CallScanner::new())
    }

    /// The same where more than members of JSON is read.
    #[cold]
    fn scanner_of(&self, operation: Operation, head: &RequestHead) -> Option<CallScanner> {
        if operation.is_named_by_path() {
            return Named::of(head.path()).map(|named| CallScanner::of_named(&named));
        }
        if operation.is_form() {
            return self.form_scanner(head);
        }
        Some(match &self.stage {
            Stage::Reading(reading) if reading.reads_user => CallScanner::with_user(operation),
            _ => CallScanner::new(),
        })
    }

    /// The same of a form, unless a rule lists it. Where it is none it is JSON.
    #[cold]
    fn form_scanner(&self, head: &RequestHead) -> Option<CallScanner> {
        if let Stage::Reading(reading) = &self.stage
            && reading.opened.listed.is_some()
        {
            return None;
        }
        let content_type = head.fields.of(Known::ContentType).next();
        let boundary = content_type.and_then(Boundary::of);
        Some(boundary.map_or_else(CallScanner::new, |boundary| CallScanner::of_form(&boundary)))
    }

    /// What the body is to be decoded from before it is scanned and kept.
    #[inline]
    #[must_use]
    pub fn coding(&self) -> Option<Coding> {
        match &self.stage {
            Stage::Reading(reading) => reading.opened.coding,
            _ => None,
        }
    }

    /// The body was decoded: it has so many bytes, whatever came of it.
    #[cold]
    pub fn decoded(&mut self, bytes: usize) {
        self.record.bytes_in = bytes as u64;
    }

    /// The first piece of the response has left.
    #[inline]
    pub fn answers(&mut self, now: Mono, is_over: bool) {
        self.timing.first_byte(now, is_over);
        if let Stage::Active(active) = &mut self.stage
            && let Some(placing) = &mut active.placing
        {
            placing.answers();
        }
    }

    /// So many bytes of the response, or of the gate's own, were forwarded.
    #[inline]
    pub fn forwarded(&mut self, bytes: u64) {
        self.record.bytes_out += bytes;
    }

    /// So many bytes of its client went through its tunnel.
    #[cold]
    pub fn tunnelled(&mut self, bytes: u64) {
        self.record.bytes_in += bytes;
    }

    /// There was no room for what there is to count of it.
    #[cold]
    pub fn found_no_room_to_count(&mut self) {
        self.record.uncounted = crate::record::BUSY;
    }

    /// There is room for it.
    #[inline]
    pub fn found_room_to_count(&mut self) {
        self.record.uncounted = "";
    }

    /// The request begins to leave, or with `is_whole` has left.
    #[inline]
    pub fn sent(&self, is_whole: bool) {
        if let Stage::Active(active) = &self.stage {
            active
                .sent
                .set(if is_whole { Sent::Whole } else { Sent::Part });
        }
    }

    #[inline(always)]
    fn or_refuse(&mut self, judged: Result<Verdict, Refusal>) -> Verdict {
        judged.unwrap_or_else(|refusal| self.refuse(refusal))
    }

    /// Ends it with an answer of the gate's own, once that has left.
    #[cold]
    fn refuse(&mut self, refusal: Refusal) -> Verdict {
        refuse(&mut self.record, &mut self.ending, refusal)
    }

    /// Its call, once that was admitted.
    #[inline(always)]
    fn running(&mut self) -> Option<Running<'_>> {
        let Stage::Active(call) = &mut self.stage else {
            return None;
        };
        Some(Running {
            record: &mut self.record,
            call,
            timing: &self.timing,
            ending: &mut self.ending,
        })
    }

    /// Only the first end counts.
    fn end(&mut self, ending: Ending) {
        self.ending.get_or_insert(ending.recorded());
    }

    /// What is told of a call that was admitted.
    #[inline(always)]
    fn of_a_call(
        &mut self,
        judge: impl FnOnce(&mut Running<'_>) -> Result<Verdict, Refusal>,
    ) -> Result<Verdict, Refusal> {
        match self.running() {
            Some(mut call) => judge(&mut call),
            None => Err(OUT_OF_ORDER),
        }
    }

    /// What was asked has no answer.
    #[cold]
    fn unanswered(&mut self, env: &mut Env<'_>) -> Verdict {
        match &self.stage {
            Stage::Identifying(_) | Stage::LoggingIn => self.refuse(Refusal::IdentityUnavailable),
            Stage::Idle | Stage::Reading(_) | Stage::Asking(_) => {
                self.refuse(Refusal::AuthorizerUnavailable)
            }
            Stage::Active(_) => match self.running() {
                Some(mut call) => call.unanswered(env),
                None => self.refuse(OUT_OF_ORDER),
            },
        }
    }
}

/// Ends an exchange with an answer of the gate's own.
#[cold]
fn refuse(
    record: &mut Record,
    ending: &mut Option<(Outcome, &'static str)>,
    refusal: Refusal,
) -> Verdict {
    *ending = Some(record.refused(&refusal));
    Verdict::Refuse(Box::new(refusal))
}

fn unix_ms(record: &Record, timing: &Timing, now: Mono) -> u64 {
    let since = now.since(timing.began).as_millis();
    let since = u64::try_from(since).unwrap_or(u64::MAX);
    record.started_unix_ms.saturating_add(since)
}
