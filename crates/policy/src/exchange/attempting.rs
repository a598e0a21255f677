//! Attempts of an admitted call: which endpoint, with which request, and whether another one follows.
//!
//! Invariant: a retry happens only before the first byte of a response went downstream and while the client is there;
//! a kept connection that turns out to be closed is replaced once without counting as an attempt, if its upstream
//! did nothing with the request. Of every other attempt the exchange knows whether it may have run.
//! Not here: the choice among endpoints and the retry budget ([`crate::attempt`]).

use std::sync::Arc;
use std::time::Duration;

use wire::call::splices;
use wire::filter::{Chain, Filter};
use wire::head::ResponseHead;

use super::ending::Ending;
use super::placing::{Placing, amended};
use super::response::may_hold_an_answer;
use super::verdict::{Ask, Lost, Plan, Question, Verdict};
use super::{ANSWER_WITHIN, Env, OUT_OF_ORDER, Phase, Running};
use crate::attempt::{Asker, Failure, Quota, Sent, Wanted, asked, may_ask_for_time, quota};
use crate::credential::{Credential, UpstreamAuth};
use crate::id::EndpointId;
use crate::operation::Operation;
use crate::record::{AttemptRecord, Record};
use crate::refusal::Refusal;
use crate::request_id;
use crate::retry::{Retry, is_unserved};
use crate::snapshot::Snapshot;
use crate::trace::AttemptSpan;

/// Where an attempt goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct To {
    endpoint: EndpointId,
    may_reuse: bool,
}

impl Running<'_> {
    /// The call is in the ledger and may go.
    pub(super) fn first_attempt(&mut self, env: &mut Env<'_>) -> Verdict {
        self.call.phase = Phase::Trying;
        let attempts = &self.call.attempts;
        env.shard.upstreams.begun(attempts, env.snapshot);
        self.next_attempt(Failure::Exhausted, env)
    }

    /// Another attempt, if there is an endpoint for one; `last` is how the one before failed.
    pub(super) fn next_attempt(&mut self, last: Failure, env: &mut Env<'_>) -> Verdict {
        if self.call.placing.is_some() {
            self.split(env);
            if let Some(asked) = self.ask_picker(last, env) {
                return asked;
            }
        }
        let attempts = &mut self.call.attempts;
        let may_reuse = !attempts.needs_new_connection();
        let (s, now) = (env.snapshot, env.now);
        let upstreams = &mut env.shard.upstreams;
        let placing = self.call.placing.as_deref();
        let prompt = placing.map(Placing::prompt);
        let wanted = Wanted {
            prompt,
            ..wanted_of(self.record)
        };
        let Some(endpoint) = upstreams.next(attempts, wanted, s, now) else {
            let refusal = match upstreams.waits(attempts, wanted, s, now) {
                Some((status, wait)) => Refusal::UpstreamBusy { status, wait },
                None => attempts.closed(s).unwrap_or(Refusal::Upstream(last)),
            };
            return self.refuse(refusal);
        };
        // What was sent once more without asking for usage was a try, and takes none of the route's.
        self.record.attempts = attempts.made() + u32::from(self.call.was_refused_usage);
        self.record.endpoint = Some(endpoint);
        self.record.backend = s.endpoint(endpoint).map(|endpoint| endpoint.backend);
        self.call.sent.set(Sent::Nothing);
        if self.call.placing.is_some() {
            self.place(endpoint, env);
        }
        let next = To {
            endpoint,
            may_reuse,
        };
        self.attempt(next, env)
    }

    /// The attempt after one that failed so.
    #[cold]
    fn attempt_again(&mut self, last: Failure, env: &mut Env<'_>) -> Verdict {
        // What it left out, the next one may say; what it may cost stays.
        let unconfirmed = self.record.extra.take().and_then(|extra| extra.unconfirmed);
        if unconfirmed.is_some() {
            self.record.extra.get_or_insert_default().unconfirmed = unconfirmed;
        }
        if let (true, Some(endpoint)) = (last != Failure::Untranslatable, self.record.endpoint) {
            self.call.failed = Some((last, endpoint));
        }
        self.next_attempt(last, env)
    }

    /// An attempt at an endpoint, once there is a credential for it.
    fn attempt(&mut self, next: To, env: &mut Env<'_>) -> Verdict {
        let endpoint = env.snapshot.endpoint(next.endpoint);
        let Some(UpstreamAuth::Minted(minter)) = endpoint.map(|endpoint| &endpoint.auth) else {
            return self.plan(next, None, env);
        };
        let caller = self.call.caller_token.as_ref();
        if let Some(credential) = minter.ready(caller) {
            return self.plan(next, Some(credential), env);
        }
        let question = Question::Mint(Arc::clone(minter), caller.cloned());
        self.call.phase = Phase::Minting(next);
        Verdict::Ask(Ask {
            question,
            within: ANSWER_WITHIN,
        })
    }

    /// The request that goes to an endpoint.
    #[inline]
    pub(super) fn plan(
        &mut self,
        to: To,
        minted: Option<Arc<Credential>>,
        env: &mut Env<'_>,
    ) -> Verdict {
        let active = &mut *self.call;
        active.phase = Phase::Trying;
        let backend = self.record.backend.and_then(|id| env.snapshot.backend(id));
        // The model that the client named needs no edit.
        let asked = self.record.model_asked.as_deref();
        let model = self.record.model_sent.as_deref();
        let model = model.map(|model| backend.map_or(model, |backend| backend.model_name(model)));
        let model = model.filter(|model| Some(*model) != asked);
        active.asked = match (self.record.operation, filters(self.record, env.snapshot)) {
            (Some(asked), [first, last]) if !(first.is_empty() && last.is_empty()) => {
                upstream_operation(asked, first.iter().chain(last))
            }
            _ => None,
        };
        // A translation tells the upstream itself what it shall report.
        let is_translated = active
            .asked
            .is_some_and(|asked| Some(asked) != self.record.operation);
        let force_usage = active.force_usage
            && !is_translated
            && !active.was_refused_usage
            && self.record.backend.is_none_or(|id| {
                let of = (id, self.record.model_sent.as_deref());
                env.shard.upstreams.asks_usage(of, env.snapshot, env.now)
            });
        active.asks_usage = force_usage && active.withhold_usage;
        let edits = match &active.call {
            Some(call) => splices(call, model, force_usage),
            None => Vec::new(),
        };
        let span = self.record.trace.map(|trace| {
            let id = env.shard.fresh() | 1;
            active.span = trace.is_sampled.then(|| {
                Box::new(AttemptSpan {
                    trace,
                    id,
                    endpoint: to.endpoint,
                    number: self.record.attempts,
                    started_unix_ms: self.record.started_unix_ms,
                    after: env.now.since(self.timing.began),
                    took: Duration::ZERO,
                    result: None,
                })
            });
            id
        });
        Verdict::Attempt(Plan {
            endpoint: to.endpoint,
            may_reuse: to.may_reuse,
            edits,
            minted,
            span,
        })
    }

    /// An attempt brought the head of a response.
    pub(super) fn response_head(&mut self, head: &ResponseHead, env: &mut Env<'_>) -> Verdict {
        let active = &*self.call;
        active.sent_before.set(active.sent.replace(Sent::Answered));
        if let (401 | 403, Some(endpoint)) = (head.status, self.record.endpoint)
            && let Some(UpstreamAuth::Minted(minter)) =
                env.snapshot.endpoint(endpoint).map(|to| &to.auth)
        {
            minter.refused(head.status, active.caller_token.as_ref());
        }
        // What a plain service asks of one client is no word about the others.
        if head.status >= 400 && self.record.operation != Some(Operation::Http) {
            self.refused_upstream(head, env);
        }
        let active = &*self.call;
        if let (200..=299, Some(backend)) = (head.status, self.record.backend) {
            let (model, upstreams) = (self.record.model_sent.as_deref(), &mut env.shard.upstreams);
            if active.was_refused_usage {
                upstreams.refuses_to_be_asked(backend, model, env.now);
            } else if active.asks_usage {
                upstreams.took_to_be_asked(backend, model);
            }
        }
        let read = self.read_as(head, env.now);
        if read.is_of_another_api(head) && self.call.left.is_none() {
            return self.bad_response(head, env);
        }
        if self.attempt_ended(Ok(head.status), false, env) {
            return self.attempt_again(Failure::Status(head.status), env);
        }
        if self.call.placing.is_some() {
            let added = self.served(head, env.snapshot);
            let verdict = self.answered(head, read, env);
            return amended(verdict, added);
        }
        self.answered(head, read, env)
    }

    /// What came is none of the API's answers: another endpoint may do better.
    #[cold]
    fn bad_response(&mut self, head: &ResponseHead, env: &mut Env<'_>) -> Verdict {
        let active = &*self.call;
        if may_hold_an_answer(head) {
            // As if none had come: it may have run.
            active.sent.set(active.sent_before.get());
        }
        let failure = Failure::BadResponse;
        self.rest(None, env);
        if self.attempt_ended(Err(failure), false, env) {
            return self.attempt_again(failure, env);
        }
        self.record.upstream_id = request_id::of_upstream(&head.fields).map(Box::from);
        self.refuse(Refusal::Upstream(failure))
    }

    /// For a moment others come first for calls like this one, where their route goes on after such an answer.
    #[cold]
    fn rest(&self, status: Option<u16>, env: &mut Env<'_>) {
        let mut wanted = wanted_of(self.record);
        let route = self.record.route.and_then(|id| env.snapshot.route(id));
        let goes_on = route.is_some_and(|route| {
            let is_metered = is_metered(self.record);
            route.retries.attempts > 1
                && status.is_none_or(|status| route.retries.is_after(status, is_metered))
        });
        let (true, Some(endpoint)) = (goes_on, self.record.endpoint) else {
            return;
        };
        if status == Some(429) {
            // A quota is the model's.
            wanted.operation = None;
        } else if wanted.model.is_none() {
            return;
        }
        let upstreams = &mut env.shard.upstreams;
        upstreams.rest(endpoint, wanted, env.snapshot, env.now);
    }

    /// What a refusal says of the time after it.
    #[cold]
    fn refused_upstream(&mut self, head: &ResponseHead, env: &mut Env<'_>) {
        if is_unserved(head.status) {
            return self.rest(Some(head.status), env);
        }
        let Some(endpoint) = self
            .record
            .endpoint
            .filter(|_| may_ask_for_time(head.status))
        else {
            return;
        };
        let quota = match head.status {
            429 => quota(head, self.asked_for(env.snapshot)),
            _ => Quota::Unsaid,
        };
        if quota == Quota::TooSmall {
            return;
        }
        let asked = asked(head, self.unix_ms(env.now));
        if let Some(wait) = asked {
            let asked = (head.status, wait, quota == Quota::Unsaid);
            let (wanted, upstreams) = (wanted_of(self.record), &mut env.shard.upstreams);
            upstreams.cooldown(endpoint, wanted, asked, env.snapshot, env.now);
        } else if head.status == 429 {
            self.rest(Some(429), env);
        }
    }

    /// How many tokens a provider counts of it before it runs, whichever that is: those of its own cap. What is held for a prompt or for a call
    /// without a cap is a guess, in which a picture is as long as its text.
    #[cold]
    fn asked_for(&self, s: &Snapshot) -> u64 {
        let estimate = self.call.estimate;
        let route = self.record.route.and_then(|id| s.route(id));
        let is_its_own =
            estimate.at_most.is_some() && route.is_some_and(|of| of.output_max.is_none());
        match is_its_own {
            true => estimate.reserved.saturating_sub(self.call.prompt_estimate),
            false => 0,
        }
    }

    /// An attempt was refused with this status because it asks for usage: it goes once more without that, to the same endpoint. A call
    /// that was not understood has not run.
    #[cold]
    pub(super) fn refused_usage(
        &mut self,
        status: u16,
        env: &mut Env<'_>,
    ) -> Result<Verdict, Refusal> {
        let active = &mut *self.call;
        let endpoint = self.record.endpoint.ok_or(OUT_OF_ORDER)?;
        active.was_refused_usage = true;
        self.record.attempts = self.record.attempts.saturating_add(1);
        active.sent.set(Sent::Nothing);
        let upstreams = &mut env.shard.upstreams;
        let wanted = wanted_of(self.record);
        upstreams.observe(endpoint, Ok(status), wanted, env.snapshot, env.now);
        let attempt = AttemptRecord {
            endpoint,
            result: Ok(status),
            retry: Retry::Granted,
        };
        let mut span = active.span.take();
        if let Some(span) = &mut span {
            span.result = Some(Ok(status));
            span.end(env.now.since(self.timing.began));
        }
        active.ended = Some((attempt, span));
        let again = To {
            endpoint,
            may_reuse: true,
        };
        Ok(self.attempt(again, env))
    }

    /// An attempt brought no response.
    #[cold]
    pub(super) fn attempt_failed(&mut self, lost: Lost, env: &mut Env<'_>) -> Verdict {
        if lost.failure == Failure::Untranslatable && self.passed_over(env) {
            return self.attempt_again(lost.failure, env);
        }
        let active = &mut *self.call;
        if lost.is_untaken {
            active.sent.set(Sent::Nothing);
            if lost.was_kept && active.left.is_some() {
                self.end(Ending::Left);
                return Verdict::Abandon;
            }
            if let (true, Some(endpoint)) = (lost.was_kept, self.record.endpoint) {
                // Not an attempt yet: it goes over another connection.
                let again = To {
                    endpoint,
                    may_reuse: false,
                };
                return self.attempt(again, env);
            }
        }
        let failure = lost.failure;
        let broke = lost.was_kept && !lost.is_untaken && failure == Failure::Reset;
        let has_left = active.left.is_some();
        if self.attempt_ended(Err(failure), broke, env) {
            return self.attempt_again(failure, env);
        }
        if has_left {
            self.end(Ending::Left);
            return Verdict::Abandon;
        }
        if failure == Failure::Untranslatable {
            self.was_sent_nothing(env.snapshot);
        }
        // A call that any backend could be told is not the client's to mend: why that one failed is told.
        let (unfit, failed) = (self.call.unfit.take(), self.call.failed);
        match (unfit, failed) {
            (Some(unsaid), None) if failure == Failure::Untranslatable => {
                self.count_or_refuse(unsaid, env)
            }
            (_, Some((failed, _))) if failure == Failure::Untranslatable => {
                self.refuse(Refusal::Upstream(failed))
            }
            _ => self.refuse(Refusal::Upstream(failure)),
        }
    }

    /// The record names the endpoint that the call went to last, if it went anywhere: not one that could not be told it.
    #[cold]
    fn was_sent_nothing(&mut self, s: &Snapshot) {
        let went = self.call.failed.map(|(_, endpoint)| endpoint);
        self.record.endpoint = went;
        self.record.backend = went.and_then(|id| Some(s.endpoint(id)?.backend));
        self.record.attempts = self.record.attempts.saturating_sub(1);
    }

    /// Whether a backend that cannot be told the call gives way to another one, which costs no retry.
    #[cold]
    fn passed_over(&mut self, env: &mut Env<'_>) -> bool {
        let active = &mut *self.call;
        if active.left.is_some() {
            return false;
        }
        let is_left = (env.shard.upstreams).pass_over(&mut active.attempts, env.snapshot);
        if is_left {
            active.span = None;
        }
        is_left
    }

    /// What an attempt says of its endpoint, and whether another one follows. `broke`: its kept connection did.
    fn attempt_ended(
        &mut self,
        result: Result<u16, Failure>,
        broke: bool,
        env: &mut Env<'_>,
    ) -> bool {
        let Some(endpoint) = self.record.endpoint else {
            return false;
        };
        let active = &mut *self.call;
        let (s, now) = (env.snapshot, env.now);
        let upstreams = &mut env.shard.upstreams;
        let wanted = wanted_of(self.record);
        upstreams.observe(endpoint, result, wanted, s, now);
        // Most statuses are no errors, and need no look at the route.
        let is_retryable = |status| {
            let route = (status >= 400).then(|| s.route(self.record.route?));
            let route = route.flatten();
            route.is_some_and(|route| route.retries.is_after(status, is_metered(self.record)))
        };
        let is_wanted = result.map_or(true, is_retryable)
            && active.left.is_none()
            && (active.repeats || active.sent.get() == Sent::Nothing);
        let retry = if is_wanted {
            let attempts = &mut active.attempts;
            if result.is_ok_and(is_unserved) {
                upstreams.may_go_on(attempts, wanted, s, now)
            } else {
                match upstreams.may_retry(attempts, wanted, s, now) {
                    Retry::No if broke => upstreams.may_retry_there(attempts, wanted, s, now),
                    retry => retry,
                }
            }
        } else {
            Retry::No
        };
        let is_retried = retry == Retry::Granted;
        if is_retried {
            if let Err(failure) = result
                && failure.may_have_run(active.sent.get())
            {
                // It may have run all the same.
                let completion = active.completion();
                let prompt = active.prompt_estimate;
                (self.record).add_unconfirmed(prompt, completion, s, env.levels);
            }
            active.sent.set(Sent::Nothing);
        }
        let mut span = None;
        if let Some(begun) = &mut active.span {
            begun.result = Some(result);
            if is_retried {
                begun.end(now.since(self.timing.began));
                span = active.span.take();
            }
        }
        let attempt = AttemptRecord {
            endpoint,
            result,
            retry,
        };
        active.ended = Some((attempt, span));
        is_retried
    }
}

/// What the upstream is asked for, where any filter applies to the call.
#[cold]
pub(super) fn upstream_operation<'f>(
    asked: Operation,
    filters: impl Iterator<Item = &'f Arc<dyn Filter>>,
) -> Option<Operation> {
    filters.fold(None, |so_far, filter| {
        let asked = so_far.unwrap_or(asked);
        match filter.applies(asked) {
            true => Some(filter.operation(asked)),
            false => so_far,
        }
    })
}

/// The filters of a call, in the order in which its request passes them: its route's, and its backend's.
#[inline]
pub(super) fn filters<'s>(record: &Record, s: &'s Snapshot) -> [&'s Chain; 2] {
    static NONE: Chain = Chain::new();
    let route = record.route.and_then(|id| s.route(id));
    let backend = record.backend.and_then(|id| s.backend(id));
    [
        route.map_or(&NONE, |route| &route.filters),
        backend.map_or(&NONE, |backend| &backend.filters),
    ]
}

/// Who makes a call.
#[inline]
fn asker_of(record: &Record) -> Asker<'_> {
    Asker {
        workload: record.workload,
        caller: record.caller.as_ref(),
    }
}

/// What an endpoint is wanted for, but for the prompt.
#[inline]
pub(super) fn wanted_of(record: &Record) -> Wanted<'_> {
    Wanted {
        model: quota_of(record),
        operation: record.operation,
        asker: asker_of(record),
        prompt: None,
    }
}

/// The model whose quota a call uses at its provider; `None` for a call of which no tokens are counted, which
/// providers limit apart.
fn quota_of(record: &Record) -> Option<&str> {
    let is_metered = is_metered(record);
    record.model_sent.as_deref().filter(|_| is_metered)
}

fn is_metered(record: &Record) -> bool {
    record.operation.is_some_and(Operation::is_metered)
}
