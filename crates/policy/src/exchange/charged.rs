//! The end of an exchange: what it is charged, what its reservation becomes, its record.
//!
//! Invariant: what is reserved is settled here once; a call of which nobody heard is charged only where its request went
//! upstream whole.
//! Not here: charges of single cases (`answered`, `unanswered`), a count of the gate's own ([`crate::counting`]).

use std::time::Duration;

use wire::meter::{Heard, Meter};
use wire::usage::Reading;

use super::answered::Answered;
use super::ending::Ending;
use super::response::{Metering, is_charged_as_written};
use super::spoken::of_seconds;
use super::unanswered::Unanswered;
use super::{Active, Env, Exchange, Running, Settled, Stage};
use crate::attempt::Sent;
use crate::billing::BilledBy;
use crate::clock::Mono;
use crate::disconnect::DisconnectOutcome;
use crate::front::Most;
use crate::levels::Levels;
use crate::record::{Outcome, Record};
use crate::snapshot::Snapshot;
use crate::tokens::{Count, Tokens};
use crate::trace::AttemptSpan;

/// What is left to be handed on, once an exchange is over.
#[derive(Debug, Default)]
pub struct Finished {
    /// The gate's own count takes the place of what is known without it: the record waits for it.
    pub awaits_count: bool,
    /// What limits and budgets were charged until then, where it waits.
    pub settled: Option<Box<Settled>>,
    /// What became of the rest of the response, where its client left.
    pub rest: Option<DisconnectOutcome>,
    /// The span of the last attempt, in a sampled exchange.
    pub span: Option<Box<AttemptSpan>>,
}

impl Exchange {
    /// Ends it: settles, and completes the record. `meter` read the response; `is_counted` says whether the gate
    /// counts it too.
    pub fn finish(&mut self, meter: &mut Meter, is_counted: bool, env: &mut Env<'_>) -> Finished {
        let (outcome, code) = self.ending.unwrap_or(Ending::Left.recorded());
        self.record.outcome = outcome;
        if !code.is_empty() {
            self.record.code = code;
        }
        let now = self.timing.out.unwrap_or(env.now);
        let whole = now.since(self.timing.began);
        let record = &mut self.record;
        record.duration = whole;
        record.upstream = self.timing.upstream;
        if let Some((first_byte, own)) = self.timing.first_byte {
            (record.first_byte, record.own) = (Some(first_byte), Some(own));
        }
        let Some(mut running) = self.running() else {
            return Finished::default();
        };
        running.settle(meter, is_counted, (now, whole), env)
    }

    /// Whether the gate is to count this call for itself: a response that is read, or none to a request that went
    /// upstream whole.
    #[must_use]
    pub fn is_to_be_counted(&self, s: &Snapshot) -> bool {
        let Stage::Active(active) = &self.stage else {
            return false;
        };
        match active.metering {
            Metering::Read | Metering::Named | Metering::Measured => true,
            Metering::Nothing => active.charged_unanswered(&self.record, true, s).is_some(),
            Metering::Size | Metering::Error | Metering::Retracted => false,
        }
    }
}

impl Running<'_> {
    fn settle(
        &mut self,
        meter: &mut Meter,
        is_counted: bool,
        (now, whole): (Mono, Duration),
        env: &mut Env<'_>,
    ) -> Finished {
        let s = env.snapshot;
        let mut finished = Finished::default();
        let mut is_whole = self.record.outcome == Outcome::Completed;
        let active = &mut *self.call;
        if let Some(left) = &active.left {
            // What came after was not for the client.
            self.record.duration = left.at.since(self.timing.began);
            is_whole |= left.rest == DisconnectOutcome::ReadToEnd;
            finished.rest = Some(left.rest);
        }
        // It runs nowhere any more, whoever still reads its record.
        active.placing = None;
        finished.span = active.span.take();
        if let Some(span) = &mut finished.span {
            span.end(whole);
        }
        self.record.tokens = self.tokens(meter, is_whole, s, env.levels);
        if self.record.unconfirmed.attempts > 0 {
            let Tokens {
                prompt, completion, ..
            } = self.record.tokens;
            self.record.unconfirmed.is_all =
                (prompt, completion) == (Count::Unknown, Count::Unknown);
            self.record.tokens = self.record.unconfirmed.added_to(self.record.tokens);
        }
        finished.awaits_count =
            is_counted && s.billed_by(self.record.route).awaits(&self.record.tokens);
        let charge = crate::record::charge(s, env.levels, self.record);
        self.record.charge = charge;
        let tokens = &self.record.tokens;
        if let Some(reservation) = &mut self.call.reservation {
            reservation.settle(tokens, charge, now, s, env.levels);
        }
        if finished.awaits_count {
            let settled = self.call.reservation.take();
            finished.settled = settled.map(|settled| Box::new(settled.settled(tokens, now)));
        } else {
            self.call.reservation = None;
        }
        if let (Count::Reported(prompt), Count::Reported(completion), Some(route)) =
            (tokens.prompt, tokens.completion, self.record.route)
            && !self.record.operation.is_some_and(|o| o.is_form())
        {
            let generates = self.record.operation.is_some_and(|o| o.generates());
            let bytes = self.record.bytes_in;
            env.shard
                .learn(route, bytes, prompt, generates.then_some(completion));
        }
        finished
    }

    /// What it is charged; nothing where no response that costs tokens came.
    fn tokens(
        &mut self,
        meter: &mut Meter,
        is_whole: bool,
        s: &Snapshot,
        levels: &Levels,
    ) -> Tokens {
        let active = &*self.call;
        let heard = match active.metering {
            Metering::Nothing if active.sent.get() != Sent::Whole => return Tokens::default(),
            Metering::Nothing => return self.estimated(s),
            Metering::Size => Heard::NOTHING,
            Metering::Read => meter.heard(is_whole),
            Metering::Named => {
                note(meter, is_whole, levels);
                meter.heard(is_whole)
            }
            Metering::Measured => return self.measured(meter, is_whole, s),
            // What it told before it broke off counts, though nobody was forwarded any of it.
            Metering::Retracted => match meter.heard(is_whole) {
                heard if matches!(heard.reading, Reading::Valid(_) | Reading::NoAnswer) => heard,
                _ if active.sent.get() != Sent::Whole => return Tokens::default(),
                _ => return self.estimated(s),
            },
            // Nothing of it is counted, and what an engine says of it alone is charged only where its word is what bills.
            Metering::Error if s.billed_by(self.record.route) == BilledBy::Counted => {
                return Tokens::default();
            }
            Metering::Error => match meter.heard(is_whole) {
                heard if matches!(heard.reading, Reading::Valid(_)) => heard,
                _ => return Tokens::default(),
            },
        };
        if matches!(heard.reading, Reading::NoAnswer) {
            return self.no_answer();
        }
        self.answered_so(&heard, is_whole, s)
    }

    /// What had a good status and is an error alone, or nothing: nobody is charged for it, and its record says so.
    #[cold]
    fn no_answer(&mut self) -> Tokens {
        if self.record.outcome == Outcome::Completed {
            self.record.outcome = Outcome::Failed;
            self.record.code = "upstream_no_answer";
        }
        Tokens::default()
    }

    /// What a response that said this is charged.
    #[inline(always)]
    fn answered_so(&self, heard: &Heard<'_>, is_whole: bool, s: &Snapshot) -> Tokens {
        let active = &*self.call;
        let left = active.left.as_ref();
        let forwarded = left.and_then(|left| left.forwarded_events);
        let bytes = self.record.bytes_out + left.map_or(0, |left| left.bytes);
        Answered {
            reading: heard.reading,
            is_begun_only: heard.is_begun_only,
            events: forwarded.or(heard.events),
            text_tokens: forwarded_part(heard.text_tokens, forwarded, heard.events),
            bytes,
            text_bytes: heard.decoded_bytes.unwrap_or(bytes),
            is_whole,
            operation: active.asked.or(self.record.operation),
            prompt: active.prompt_estimate,
            completion: active.completion(),
            is_bounded: active.estimate.at_most.is_some(),
            completion_most: active.most.tokens(),
            asked_bytes: self.record.bytes_in,
            is_prompt_unseen: active.is_prompt_unseen,
            window: window(self.record, s),
        }
        .tokens()
    }

    /// What a response is charged that is billed by pieces or by seconds: as many as came, where it tells; else as were asked for.
    #[cold]
    fn measured(&mut self, meter: &mut Meter, is_whole: bool, s: &Snapshot) -> Tokens {
        let heard = meter.heard(is_whole);
        if matches!(heard.reading, Reading::NoAnswer) {
            return self.no_answer();
        }
        let has_told = matches!(heard.reading, Reading::Valid(_));
        let tokens = self.answered_so(&heard, is_whole, s);
        let measure = meter.measure();
        match (self.call.most, measure.seconds) {
            (Most::Pieces(asked), _) => Tokens {
                units: measure.pieces.unwrap_or(asked),
                ..tokens
            },
            (_, Some(seconds)) if !has_told => of_seconds(seconds),
            _ => tokens,
        }
    }

    /// What no response told of.
    #[cold]
    fn estimated(&mut self, s: &Snapshot) -> Tokens {
        let has_left = self.record.outcome == Outcome::Aborted;
        let charged = self.call.charged_unanswered(self.record, has_left, s);
        self.record.estimate_reason = match (charged, self.record.code) {
            (None, _) => "",
            (Some(_), "") => "left_before_answer",
            (Some(_), code) => code,
        };
        charged.unwrap_or_default()
    }
}

/// Keeps what a response came to, for calls that go on from it: their prompts hold all of it.
#[cold]
fn note(meter: &mut Meter, is_whole: bool, levels: &Levels) {
    let Reading::Valid(usage) = *meter.heard(is_whole).reading else {
        return;
    };
    let [prompt, completion] = [usage.prompt, usage.completion].map(|said| said.unwrap_or(0));
    if let Some(id) = meter.id() {
        levels.note_response(id, prompt.saturating_add(completion));
    }
}

/// Of the tokens of a stream's text those that were in this many of its events.
fn forwarded_part(tokens: u64, forwarded: Option<u64>, events: Option<u64>) -> u64 {
    match (forwarded, events) {
        (Some(forwarded), Some(events)) if forwarded < events => {
            tokens.saturating_mul(forwarded) / events
        }
        _ => tokens,
    }
}

/// Tokens of the window of a call's model, where the configuration says them.
fn window(record: &Record, s: &Snapshot) -> Option<u64> {
    if s.tokenizers.is_empty() {
        return None;
    }
    crate::counting::tokenizer(s, record.model_sent.as_deref()?)?.window
}

/// Tokens that a stream has certainly come to: what its engine said so far, or else one for every second event,
/// because some events begin, end or only describe.
#[must_use]
pub fn certain(so_far: &Heard<'_>) -> u64 {
    match so_far.reading {
        Reading::Valid(usage) => {
            let told = |count: Option<u64>| count.unwrap_or(0);
            told(usage.prompt).saturating_add(told(usage.completion))
        }
        Reading::Absent | Reading::NoAnswer | Reading::Invalid(_) => so_far.events.unwrap_or(0) / 2,
    }
}

impl Active {
    /// What it comes to without a response; `None` where that is nothing.
    fn charged_unanswered(&self, record: &Record, has_left: bool, s: &Snapshot) -> Option<Tokens> {
        let unanswered = Unanswered {
            sent: self.sent.get(),
            prompt: self.prompt_estimate,
            completion: self.completion(),
            has_left,
            stream: self.stream,
            is_free: self.prompt_estimate == 0 && !is_charged_as_written(record, s),
        };
        let tokens = unanswered.tokens();
        (tokens.prompt != Count::Unknown).then_some(Tokens {
            units: self.most.pieces(),
            ..tokens
        })
    }

    /// Completion tokens held for it.
    pub(super) fn completion(&self) -> u64 {
        self.estimate.reserved.saturating_sub(self.prompt_estimate)
    }
}

#[cfg(test)]
mod tests {
    use super::forwarded_part;

    #[test]
    fn of_a_streams_text_that_part_counts_which_was_forwarded() {
        assert_eq!(forwarded_part(4000, None, None), 4000);
        assert_eq!(forwarded_part(4000, Some(10), Some(10)), 4000);
        assert_eq!(forwarded_part(4000, Some(5), Some(10)), 2000);
        assert_eq!(forwarded_part(4000, Some(0), Some(0)), 4000);
    }
}
