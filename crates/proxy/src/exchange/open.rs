//! An exchange that has begun and must end: its record, its hold, its guard.
//!
//! Not here: the steps between (`exchange`).

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use policy::abandon::Rest;
use policy::attempt::{Failure, Sent};
use policy::book::{Entry, Held};
use policy::clock::Mono;
use policy::counting::{BilledBy, Tally, Uncounted};
use policy::exchange::{Admitted, Answered, Ending, Hold, Unanswered};
use policy::id::RouteId;
use policy::record::{Count, Outcome, Record, Tokens, Unconfirmed};
use policy::trace::AttemptSpan;
use wire::encoding::Decoder;
use wire::head::{Known, RequestHead};
use wire::sse;
use wire::usage::{Reading, UnaryUsage};

use super::leave::Leaving;
use crate::cors::Cors;
use crate::reply::Standing;
use crate::view::View;
use crate::worker::Worker;

/// The guard: dropped without [`Open::end`], it records an aborted exchange.
pub(crate) struct Open {
    pub(crate) worker: Rc<Worker>,
    pub(crate) view: Rc<View>,
    pub(crate) record: Record,
    pub(crate) admitted: Option<Calling>,
    pub(crate) meter: Meter,
    pub(crate) began: Mono,
    /// The gate's own time so far, nanoseconds.
    pub(crate) own_ns: i64,
    /// When the gate's own time last began to run.
    pub(crate) mark: Mono,
    /// How far the request of the attempt under way has come, or of the last one.
    pub(super) sent: Sent,
    /// When the response was out, where that is known without asking again.
    pub(crate) finished: Option<Mono>,
    /// The attempt under way, or the one whose answer is used; in a sampled exchange alone.
    pub(super) attempt: Option<AttemptSpan>,
    /// Its entry in the book, once it was let in and where there is one.
    pub(super) entry: Option<Entry>,
    /// What is kept of the answer for who counts it.
    pub(super) tally: Option<Box<Tally>>,
    /// What is done about it, once its client has left.
    pub(super) leaving: Option<Box<Leaving>>,
    /// Events that were forwarded, where more were read.
    pub(super) forwarded_events: Option<u64>,
    /// Bytes of the answer that were read after its client had left.
    pub(super) drained_bytes: u64,
    /// Bytes of the request's body that are kept.
    pub(super) kept: usize,
    /// The origin of the web page that asked, which is allowed.
    page: Option<Box<str>>,
    ended: bool,
}

/// What of an admitted call is needed to the end.
pub(crate) struct Calling {
    pub(crate) route: RouteId,
    pub(crate) withhold_usage: bool,
    pub(super) held: Held,
    hold: Option<Hold>,
    prompt_estimate: u64,
    generates: bool,
    stream: bool,
}

/// What reads the response for usage.
pub(crate) enum Meter {
    /// Nothing to read: no answer, or not one of ours.
    Nothing,
    Unary(UnaryUsage),
    Stream(Box<sse::Scanner>),
    /// A compressed answer, decoded beside the bytes that pass.
    Coded(Box<Coded>),
    /// A good answer in a form that cannot be read.
    Blind,
    /// An error: it costs what it says that it does.
    Error(UnaryUsage),
}

/// A compressed answer and what reads it.
pub(crate) struct Coded {
    pub(super) decoder: Decoder,
    /// Reads what was decoded; never another one of these.
    pub(super) meter: Meter,
    /// What the latest chunk decoded to.
    pub(super) text: Vec<u8>,
}

impl Meter {
    /// Events of a stream so far.
    pub(super) fn events(&self) -> Option<u64> {
        match self {
            Self::Stream(scanner) => Some(scanner.tally().data_events),
            Self::Coded(coded) => coded.meter.events(),
            Self::Nothing | Self::Unary(_) | Self::Blind | Self::Error(_) => None,
        }
    }

    /// The answer came to its end: an event that no empty line ended is read too, as many clients do.
    pub(super) fn finish(&mut self) {
        match self {
            Self::Stream(scanner) => scanner.finish(&mut Vec::new()),
            Self::Coded(coded) => coded.meter.finish(),
            Self::Nothing | Self::Unary(_) | Self::Blind | Self::Error(_) => {}
        }
    }

    /// Whether a stream told of an error, which no status can after its head.
    pub(super) fn told_error(&self) -> bool {
        match self {
            Self::Stream(scanner) => scanner.tally().error,
            Self::Coded(coded) => coded.meter.told_error(),
            Self::Nothing | Self::Unary(_) | Self::Blind | Self::Error(_) => false,
        }
    }
}

impl Open {
    pub(crate) fn begin(
        worker: &Rc<Worker>,
        view: Rc<View>,
        head: &RequestHead,
        peer: IpAddr,
    ) -> Self {
        let id = head.fields.only(Known::XRequestId).ok().flatten();
        let id = id
            .filter(|v| policy::request_id::is_plain(v))
            .and_then(|v| std::str::from_utf8(v).ok());
        let began = worker.arrival();
        worker.exchange_began();
        Self {
            record: Record {
                id: id.map_or_else(|| worker.mint_id(), Box::from),
                upstream_id: None,
                trace: worker.trace(head),
                started_unix_ms: worker.wall_ms(began),
                client: view.snapshot.clients.recorded(peer, head),
                operation: None,
                workload: None,
                route: None,
                listed: None,
                endpoint: None,
                backend: None,
                model_asked: None,
                model_sent: None,
                streamed: false,
                status: 0,
                outcome: Outcome::Aborted,
                code: "",
                limited: None,
                attempts: 0,
                tokens: Tokens::default(),
                unconfirmed: Unconfirmed::default(),
                estimate_reason: "",
                bytes_in: 0,
                bytes_out: 0,
                duration: std::time::Duration::ZERO,
                first_byte: None,
                own: None,
                upstream: None,
            },
            worker: Rc::clone(worker),
            view,
            admitted: None,
            meter: Meter::Nothing,
            began,
            own_ns: 0,
            mark: began,
            sent: Sent::Nothing,
            finished: None,
            attempt: None,
            entry: None,
            tally: None,
            leaving: None,
            forwarded_events: None,
            drained_bytes: 0,
            kept: 0,
            page: None,
            ended: false,
        }
    }

    /// A web page asks, of this origin.
    #[cold]
    pub(super) fn asked_by(&mut self, origin: &[u8]) {
        self.page = Some(String::from_utf8_lossy(origin).into());
    }

    /// Who may read the answer.
    pub(super) fn cors(&self) -> Cors<'_> {
        Cors {
            origins: &self.view.snapshot.web.origins,
            page: self.page.as_deref(),
        }
    }

    /// The request is whole: from here on the time is ours. One that came in one piece is ours from
    /// its head on.
    pub(crate) fn request_read(&mut self, has_waited: bool) {
        if has_waited {
            self.mark = self.worker.arrival();
        }
    }

    /// The request's body is kept no longer.
    #[inline]
    pub(crate) fn body_gone(&mut self) {
        self.worker.drop_body(std::mem::take(&mut self.kept));
    }

    /// The call may go upstream.
    pub(crate) fn admitted(&mut self, admitted: Admitted) {
        self.record.route = Some(admitted.route);
        self.record.listed = admitted.listed;
        self.record.model_sent = admitted.model;
        self.admitted = Some(Calling {
            route: admitted.route,
            withhold_usage: admitted.withhold_usage,
            held: admitted.held,
            hold: Some(admitted.hold),
            prompt_estimate: admitted.prompt_estimate,
            stream: admitted.stream,
            generates: self
                .record
                .operation
                .is_some_and(policy::operation::Operation::generates),
        });
    }

    /// The call never ran: it gives back what it held, and leaves no entry.
    pub(super) fn withdrawn(&mut self) {
        self.entry = None;
        if let Some(hold) = self.admitted.as_mut().and_then(|c| c.hold.take()) {
            hold.release(self.worker.now(), &self.view.snapshot);
        }
    }

    /// What is left of the caller's limits.
    pub(crate) fn standing(&self) -> Standing<'_> {
        let snapshot = &self.view.snapshot;
        let grant = self
            .record
            .workload
            .and_then(|w| snapshot.workload(w))
            .and_then(|w| {
                w.grants
                    .iter()
                    .find(|grant| Some(grant.route) == self.record.route)
            });
        grant.map_or_else(Standing::default, |grant| {
            Standing::of(&grant.limits, &self.view, self.mark)
        })
    }

    /// Whether its route says what it is charged, whatever its answer says.
    pub(super) fn is_charged_as_written(&self) -> bool {
        let Some(nth) = self.record.listed else {
            return false;
        };
        let route = self
            .record
            .route
            .and_then(|id| self.view.snapshot.route(id));
        let listed = route.and_then(|route| route.unread.get(usize::from(nth)));
        listed.is_some_and(|listed| listed.tokens.is_some() || listed.price.is_some())
    }

    /// A good answer to this request begins: it is counted, where its model is.
    pub(super) fn answered(&mut self, request: Vec<Bytes>) {
        if matches!(
            self.meter,
            Meter::Unary(_) | Meter::Stream(_) | Meter::Coded(_)
        ) {
            let (worker, of, record) = (&self.worker, &self.view.snapshot, &self.record);
            let begun = worker.counting(|counting| counting.begin(of, record, request));
            self.tally = begun.flatten();
        }
    }

    /// The attempt failed and another one follows: it may have run all the same.
    #[cold]
    pub(super) fn tried_in_vain(&mut self, failure: Failure) {
        if let (true, Some(calling)) = (failure.may_have_run(self.sent), &self.admitted) {
            let completion = calling.completion();
            self.record
                .unconfirmed
                .add(calling.prompt_estimate, completion);
        }
    }

    /// No answer came: what its request was is counted, where it went up whole and its model is.
    #[cold]
    pub(super) fn unanswered(&mut self, request: Vec<Bytes>) {
        if self.unheard(true).is_none() {
            return;
        }
        let (worker, of, record) = (&self.worker, &self.view.snapshot, &self.record);
        let begun = worker.counting(|counting| counting.begin(of, record, request));
        self.tally = begun.flatten();
    }

    /// What it comes to without an answer; `None` where that is nothing.
    fn unheard(&self, has_left: bool) -> Option<Tokens> {
        let calling = self.admitted.as_ref()?;
        let unanswered = Unanswered {
            sent: self.sent,
            prompt: calling.prompt_estimate,
            completion: calling.completion(),
            has_left,
            stream: calling.stream,
            is_free: calling.prompt_estimate == 0 && !self.is_charged_as_written(),
        };
        let tokens = unanswered.tokens();
        (tokens.prompt != Count::Unknown).then_some(tokens)
    }

    /// The answer could not be read, and nothing of it was forwarded: as if none had come.
    #[cold]
    pub(super) fn unread(&mut self) {
        self.sent = Sent::Whole;
        self.meter = Meter::Nothing;
        self.record.streamed = false;
    }

    /// An error of the upstream could not be read: it costs nothing, as one that could be.
    #[cold]
    pub(super) fn error_unread(&mut self) {
        self.meter = Meter::Nothing;
        self.record.streamed = false;
    }

    /// This was forwarded.
    pub(super) fn forwarded(&mut self, data: &[u8]) {
        self.record.bytes_out += data.len() as u64;
        let read = match &self.meter {
            Meter::Coded(coded) => &coded.text,
            _ => data,
        };
        if let Some(tally) = &mut self.tally
            && tally.keep(read)
        {
            self.worker.counting(|counting| counting.more(tally));
        }
    }

    /// Ends the exchange as it ended by itself.
    pub(crate) fn ended(&mut self, ending: Ending) {
        let (outcome, code) = ending.recorded();
        if !self.ended && !code.is_empty() {
            self.record.code = code;
        }
        self.end(outcome);
    }

    /// Ends the exchange: settles and records.
    ///
    /// By reference: the whole of it would be copied, half a kilobyte. Only the first end counts.
    pub(crate) fn end(&mut self, outcome: Outcome) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.record.outcome = outcome;
        let now = self.finished.unwrap_or_else(|| self.worker.now());
        self.record.duration = now.since(self.began);
        let mut is_whole = outcome == Outcome::Completed;
        if let Some(leaving) = self.leaving.take() {
            // What came after was not for the client.
            self.record.duration = leaving.at.since(self.began);
            is_whole |= leaving.rest == Rest::Drained;
            self.worker.sink(|sink| sink.abandoned(leaving.rest));
        }
        self.record.tokens = self.tokens(is_whole);
        if self.record.unconfirmed.attempts > 0 {
            self.record.tokens = self.record.unconfirmed.added_to(self.record.tokens);
        }
        let (view, tokens) = (&self.view, self.record.tokens);
        let waits = self.tally.is_some()
            && BilledBy::of(&view.snapshot, &self.record).awaits(&self.record.tokens);
        let mut settled = None;
        if let Some(calling) = &mut self.admitted {
            if let Some(hold) = calling.hold.take() {
                let charge = hold
                    .is_budgeted()
                    .then(|| policy::price::charge(&view.snapshot, &self.record));
                let charge = charge.flatten();
                if waits {
                    settled = Some(hold.settle_for_now(&tokens, charge, now, &view.snapshot));
                } else {
                    hold.settle(&tokens, charge, now, &view.snapshot);
                }
            }
            if let (Count::Reported(prompt), Count::Reported(completion)) =
                (tokens.prompt, tokens.completion)
            {
                let learnt = calling.generates.then_some(completion);
                view.learn(calling.route, self.record.bytes_in, Some(prompt), learnt);
            }
        }
        if let Some(attempt) = self.attempt.take() {
            super::attempt::over(&self.worker, view, attempt, now.since(self.began));
        }
        let record = &self.record;
        if !waits {
            self.worker
                .sink(|sink| sink.exchange(&view.snapshot, record));
        }
        let has_row = self.entry.is_some();
        if let Some(mut entry) = self.entry.take() {
            entry.tally = self.tally.as_ref().map(|tally| tally.id);
            self.worker
                .book(|book| book.settle(entry, &view.snapshot, record));
        }
        if let Some(tally) = self.tally.take() {
            let rest = waits.then(|| {
                Box::new(Uncounted {
                    of: Arc::clone(&view.snapshot),
                    record: record.clone(),
                    settled,
                    has_row,
                })
            });
            let handed = self
                .worker
                .counting(|counting| counting.end(tally, &view.snapshot, record, rest));
            if handed.flatten().is_some() {
                self.worker
                    .sink(|sink| sink.exchange(&view.snapshot, record));
            }
        }
        self.worker.exchange_ended();
    }

    /// What no answer told of.
    #[cold]
    fn estimated(&mut self) -> Tokens {
        let has_left = self.record.outcome == Outcome::Aborted;
        let Some(tokens) = self.unheard(has_left) else {
            self.record.estimate_reason = "";
            return Tokens::default();
        };
        self.record.estimate_reason = match self.record.code {
            "" => "left_before_answer",
            code => code,
        };
        tokens
    }

    /// What it is charged; nothing where no answer that costs tokens came.
    fn tokens(&mut self, is_whole: bool) -> Tokens {
        let is_heard = self.sent != Sent::Whole;
        let meter = match &mut self.meter {
            Meter::Coded(coded) => {
                if is_whole && coded.decoder.finish().is_err() {
                    coded.meter = Meter::Blind;
                }
                &mut coded.meter
            }
            meter => meter,
        };
        let (reading, events) = match meter {
            Meter::Nothing if is_heard => return Tokens::default(),
            Meter::Nothing => return self.estimated(),
            Meter::Error(usage) => match usage.finish() {
                reading @ Reading::Valid(_) => (reading, None),
                Reading::Absent | Reading::Invalid(_) => return Tokens::default(),
            },
            Meter::Unary(usage) => (usage.finish(), None),
            Meter::Stream(scanner) => (scanner.tally().usage, Some(scanner.tally().data_events)),
            Meter::Coded(_) | Meter::Blind => (Reading::Absent, None),
        };
        let Some(calling) = &self.admitted else {
            return Tokens::default();
        };
        let answered = Answered {
            reading,
            events: self.forwarded_events.or(events),
            bytes: self.record.bytes_out + self.drained_bytes,
            is_whole,
            operation: self.record.operation,
            is_listed: self.record.listed.is_some(),
            prompt: calling.prompt_estimate,
            completion: calling.completion(),
            is_bounded: calling.held.at_most.is_some(),
        };
        answered.tokens()
    }
}

impl Calling {
    /// Completion tokens held for it.
    fn completion(&self) -> u64 {
        self.held.reserved.saturating_sub(self.prompt_estimate)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.body_gone();
        // Whoever has left, and whoever was being refused, is not the gate's doing.
        let is_cut = self.leaving.is_none() && self.record.code.is_empty();
        self.ended(if is_cut && self.worker.has_stopped() {
            Ending::Stopped
        } else {
            Ending::Left
        });
    }
}
