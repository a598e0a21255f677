//! ObserveOptions one exchange, and says what it came to.
//!
//! Invariant: what is heard of a stream does not depend on where its bytes were cut, but for the times of the cuts.
//! Not here: histograms (`observations`), the test of one event (`event`).

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::event::{self, Finish, Meaning, Output};
use super::events::Events;
use super::expected::Expected;
use super::live::Live;
use super::observations::{Measure, Observations, Window};
use super::usage::{USAGE_BYTES, Usage};
use crate::client::{Answer, Failure, Listener, Said};

#[cfg(test)]
mod tests;

/// The end of an answer in one piece that is kept to look for usage in.
const TAIL_BYTES: usize = 2 * USAGE_BYTES;
/// The beginning of an answer that refuses, which is kept to be told.
const REFUSAL_BYTES: usize = 512;

/// Tokens of a completion at most.
const MOST_TOKENS: u64 = 10_000_000;

/// What one user keeps from exchange to exchange, so that none allocates.
#[derive(Debug, Default)]
pub struct ObserverBuffers {
    events: Events,
    /// Of a stream the last usage object or the event that told of an error, of another answer its end, of a refusal its
    /// beginning.
    kept: Vec<u8>,
    /// The beginning of the body.
    beginning: Vec<u8>,
}

/// What a good answer is, besides whole and of 2xx.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Answers {
    /// Whatever it is; what says that it is a stream of events has to have an end.
    #[default]
    Any,
    /// A stream of events that generated something or said why not, and has its end.
    Events,
    /// A JSON object that tells of no error.
    Json,
    /// The result of a request of JSON-RPC, in one piece or by an event: one begins within the first half kilobyte.
    Result,
}

/// How an exchange is heard.
#[derive(Debug, Clone, Copy)]
pub struct ObserveOptions<'a> {
    /// What a good answer is.
    pub answers: Answers,
    /// The body that every good answer has.
    pub expects: Option<&'a [u8]>,
    /// Whether usage is looked for.
    pub usage: bool,
    /// Bytes and events count in it alone.
    pub window: Window,
    /// Whether the exchange is one of those that are measured; gaps of others are left out.
    pub counts: bool,
}

/// What one exchange was like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExchangeTimes {
    /// First byte of the request.
    pub sent: Option<Instant>,
    /// First byte of the answer's head.
    pub head: Option<Instant>,
    /// First byte of its body.
    pub body: Option<Instant>,
    /// First event with output of any kind.
    pub first_token: Option<Instant>,
    /// First event with visible text.
    pub first_visible: Option<Instant>,
    /// Last event with output.
    pub last_token: Option<Instant>,
    /// The longest time between such an event and the next.
    pub longest_gap: Option<Duration>,
    /// Events.
    pub events: u64,
    /// Those with output.
    pub outputs: u64,
    /// Body bytes.
    pub bytes: u64,
    /// 0 where no body came.
    pub status: u16,
    /// After which a refusal says that one may ask again.
    pub retry_after_s: Option<u32>,
    /// Why generation ended, as the answer says.
    pub finish: Option<Finish>,
    /// Whether a good answer says nothing at all: no text, no reasoning, no call.
    pub is_empty: bool,
    /// Tokens as reported.
    pub usage: Option<Usage>,
    /// By its content type, or by how its body begins.
    has_events: bool,
    is_done: bool,
    is_error: bool,
    /// Its first byte that is no white space is that of a JSON object.
    is_object: bool,
}

/// One exchange being heard.
pub struct ExchangeObserver<'a> {
    ear: &'a mut ObserverBuffers,
    seen: &'a RefCell<Observations>,
    live: &'a Live,
    hears: ObserveOptions<'a>,
    expected: Expected<'a>,
    heard: ExchangeTimes,
}

impl ObserverBuffers {
    /// Begins to hear an exchange.
    pub fn hear<'a>(
        &'a mut self,
        hears: ObserveOptions<'a>,
        seen: &'a RefCell<Observations>,
        live: &'a Live,
    ) -> ExchangeObserver<'a> {
        self.events.reset();
        self.kept.clear();
        self.beginning.clear();
        ExchangeObserver {
            ear: self,
            seen,
            live,
            hears,
            expected: Expected::new(hears.expects),
            heard: ExchangeTimes::default(),
        }
    }
}

impl Listener for ExchangeObserver<'_> {
    fn on_send(&mut self, now: Instant) {
        self.heard.sent = Some(now);
    }

    fn on_fault(&mut self, says: &str) {
        self.ear.kept.clear();
        let says = &says.as_bytes()[..says.len().min(REFUSAL_BYTES)];
        self.ear.kept.extend_from_slice(says);
    }

    fn on_first_byte(&mut self, now: Instant) {
        self.heard.head.get_or_insert(now);
    }

    fn on_body(&mut self, now: Instant, said: Said, bytes: &[u8]) {
        if self.heard.body.is_none() && !bytes.is_empty() {
            self.begin(now, said, bytes);
        }
        self.heard.bytes += bytes.len() as u64;
        self.expected.feed(bytes);
        let room = REFUSAL_BYTES.saturating_sub(self.ear.beginning.len());
        if room > 0 {
            let beginning = &bytes[..bytes.len().min(room)];
            self.ear.beginning.extend_from_slice(beginning);
        }
        let (events, outputs) = (self.heard.events, self.heard.outputs);
        if !matches!(self.heard.status, 200..300) {
            let room = REFUSAL_BYTES.saturating_sub(self.ear.kept.len());
            self.ear
                .kept
                .extend_from_slice(&bytes[..bytes.len().min(room)]);
        } else if self.heard.has_events {
            self.events(now, bytes);
        } else if self.hears.usage || self.hears.answers == Answers::Json {
            self.keep_the_end(bytes);
        }
        let (events, outputs) = (self.heard.events - events, self.heard.outputs - outputs);
        self.live.heard(bytes.len() as u64, events, outputs);
        if self.hears.window.holds(now) {
            let mut seen = self.seen.borrow_mut();
            seen.body_bytes += bytes.len() as u64;
            seen.events += events;
            seen.outputs += outputs;
        }
    }
}

impl ExchangeObserver<'_> {
    fn begin(&mut self, now: Instant, said: Said, bytes: &[u8]) {
        self.heard.body = Some(now);
        self.heard.status = said.status;
        // Some gateways lose the content type; JSON begins with none of these.
        self.heard.has_events = said.is_event_stream || matches!(bytes, [b'd' | b'e' | b':', ..]);
        self.heard.is_object = bytes.trim_ascii_start().first() == Some(&b'{');
        self.live.opened();
    }

    fn events(&mut self, now: Instant, bytes: &[u8]) {
        let ObserverBuffers { events, kept, .. } = &mut *self.ear;
        let (heard, usage) = (&mut self.heard, self.hears.usage);
        let (before, last) = (heard.outputs, heard.last_token);
        events.feed(bytes, &mut |event: &[u8]| {
            heard.events += 1;
            let meaning = Meaning::of(event);
            heard.finish = meaning.finish.or(heard.finish);
            heard.is_done |= meaning.is_done;
            if meaning.is_error && !heard.is_error {
                heard.is_error = true;
                kept.clear();
                kept.extend_from_slice(&event[..event.len().min(REFUSAL_BYTES)]);
            }
            if let Some(output) = meaning.output {
                heard.output(now, output);
            }
            if let Some(at) = meaning.usage.filter(|_| usage && !heard.is_error) {
                kept.clear();
                kept.extend_from_slice(&event[at..event.len().min(at + USAGE_BYTES)]);
            }
        });
        let more = heard.outputs - before;
        if more > 0 && self.hears.counts {
            let mut seen = self.seen.borrow_mut();
            if let Some(last) = last {
                seen.record(Measure::BetweenTokens, now - last);
            }
            // Those that came in one read have no time between them.
            let at_once = more - 1;
            if at_once > 0 {
                seen.record_many(Measure::BetweenTokens, Duration::ZERO, at_once);
            }
        }
    }

    fn keep_the_end(&mut self, bytes: &[u8]) {
        let kept = &mut self.ear.kept;
        let bytes = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        let surplus = (kept.len() + bytes.len()).saturating_sub(TAIL_BYTES);
        kept.drain(..surplus);
        kept.extend_from_slice(bytes);
    }

    /// What it came to: an answer that is whole may be none that is good.
    pub fn end(
        mut self,
        outcome: Result<Answer, Failure>,
    ) -> (ExchangeTimes, Result<Answer, Failure>) {
        if self.hears.usage && !self.heard.is_error {
            let kept = &self.ear.kept;
            let at = if self.heard.has_events {
                Some(0)
            } else {
                event::usage(kept)
            };
            self.heard.usage = at.and_then(|at| Usage::read(&kept[at..]));
        }
        let outcome = outcome.and_then(|answer| {
            let Said {
                status,
                is_event_stream,
                retry_after_s,
            } = answer.said;
            (self.heard.status, self.heard.retry_after_s) = (status, retry_after_s);
            if !matches!(status, 200..300) {
                return Err(Failure::Status(status));
            }
            self.judge(is_event_stream)?;
            if self.expected.came() {
                Ok(answer)
            } else {
                Err(Failure::Body)
            }
        });
        if let Some(failure) = outcome.err() {
            use Failure::{Body, Connect, ErrorEvent, Status, Tls, Truncated, Unfinished};
            let said = match failure {
                Connect | ErrorEvent | Status(_) | Tls => Some(&self.ear.kept),
                // Whoever reads the result has to see what it was instead.
                Body | Truncated | Unfinished => Some(&self.ear.beginning),
                _ => None,
            };
            let said = said.filter(|said| !said.is_empty() || failure != Truncated);
            if let Some(said) = said {
                self.seen.borrow_mut().was_told(failure, said);
            }
        } else {
            self.heard.is_empty = self.is_empty();
        }
        (self.heard, outcome)
    }
}

impl ExchangeObserver<'_> {
    /// Whether a good answer says nothing. Of one in one piece only if all of it was kept.
    fn is_empty(&mut self) -> bool {
        if self.heard.has_events {
            return self.heard.outputs == 0;
        }
        let kept = &self.ear.kept;
        let is_whole = self.heard.bytes == kept.len() as u64 && self.heard.is_object;
        self.heard.finish = is_whole.then(|| event::finish(kept)).flatten();
        self.heard.finish.is_some() && event::output(kept).is_none()
    }

    /// Whether an answer of 2xx is what it is to be.
    fn judge(&self, says_events: bool) -> Result<(), Failure> {
        let heard = &self.heard;
        if heard.is_error {
            return Err(Failure::ErrorEvent);
        }
        let is_over = heard.finish.is_some() || heard.is_done;
        match self.hears.answers {
            Answers::Any if says_events && !is_over => Err(Failure::Unfinished),
            Answers::Any => Ok(()),
            Answers::Events if !heard.has_events => Err(Failure::Body),
            Answers::Events if heard.finish.is_some() || heard.is_done && heard.outputs > 0 => {
                Ok(())
            }
            Answers::Events => Err(Failure::Unfinished),
            Answers::Json if heard.has_events || !heard.is_object => Err(Failure::Body),
            Answers::Json if event::is_error(&self.ear.kept) => Err(Failure::ErrorEvent),
            Answers::Json => Ok(()),
            Answers::Result => {
                let is_result = memchr::memmem::find(&self.ear.beginning, b"\"result\"").is_some();
                if is_result {
                    Ok(())
                } else {
                    Err(Failure::Body)
                }
            }
        }
    }
}

impl Drop for ExchangeObserver<'_> {
    fn drop(&mut self) {
        if self.heard.body.is_some() {
            self.live.closed();
        }
    }
}

impl ExchangeTimes {
    fn output(&mut self, now: Instant, output: Output) {
        self.outputs += 1;
        self.first_token.get_or_insert(now);
        if let Some(last) = self.last_token.replace(now) {
            self.longest_gap = self.longest_gap.max(Some(now - last));
        }
        if output == Output::Visible {
            self.first_visible.get_or_insert(now);
        }
    }

    /// Tokens of the completion: as reported, else as events with output. A report that is fewer than these, or more than
    /// any model generates, is none.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let reported = self.usage.and_then(|usage| usage.completion);
        let makes_sense = |tokens: &u64| *tokens >= self.outputs && *tokens <= MOST_TOKENS;
        reported.filter(makes_sense).unwrap_or(self.outputs)
    }

    /// From the first event with output to the last, over the tokens after the first; `None` where there are not two.
    #[must_use]
    pub fn time_per_token(&self) -> Option<Duration> {
        let (first, last) = self.first_token.zip(self.last_token)?;
        let steps = u32::try_from(self.tokens().checked_sub(1)?).ok()?;
        (self.outputs > 1)
            .then(|| (last - first).checked_div(steps))
            .flatten()
    }
}
