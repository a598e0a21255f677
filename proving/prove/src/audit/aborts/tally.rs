//! What clients had received, what the engine saw, and what the ledger says of each stream that was left.
//!
//! Invariant: a stream has exactly one row, however it was left.
//! Not here: leaving (`client`).

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use engine::ground_truth::Entry;
use engine::tokenizer::Tokenizer;

use super::NEXT_TOKEN;
use super::client::{Left, Phase, Way};
use crate::audit::rows::Row;
use crate::audit::verdict::{Found, Verdict};
use crate::host::stalls::Stalls;

/// Tokens, or events where nobody counted tokens, that a row may be off.
const OFF_MAX: u64 = 1;
/// A client may leave in the moment in which its stream ends: either outcome is right then. It is as long as
/// a gate may take to notice.
const MOMENT: Duration = Duration::from_millis(100);

/// How long before a client's leaving a stall may lie of which tokens were still on their way.
const AFTER_STALL: Duration = Duration::from_millis(500);

/// Tokens, beside those that the engine made between a client's leaving and its seeing that, by which a row may
/// lie below the engine's own account: events that were on their way, and the error of a prompt's estimate.
const BELOW_MAX: u64 = 24;

#[derive(Default)]
pub(super) struct Tally {
    drains: bool,
    /// Of an answer that nobody leaves.
    tokens: u64,
    left: HashMap<Box<str>, Left>,
    engine: HashMap<Box<str>, Entry>,
    /// What nobody is blamed for.
    stalls: Stalls,
    rows: HashMap<Box<str>, u32>,
    tokenizer: Option<Tokenizer>,
    spent: u64,
    by_source: HashMap<String, u64>,
    /// Of clients that left at once: how many more tokens were sent than they had read.
    unread: Vec<u64>,
    off: [u64; 2],
    doubled: Found,
    outcome: Found,
    far: Found,
    /// Rows below the engine's account: by how much, and those by too much.
    below: Vec<u64>,
    too_low: Found,
    /// What the engine made, of all rows.
    made: u64,
    unanswered: BTreeMap<String, u64>,
    not_so: Found,
    unreported: Found,
    strange: Found,
    /// Whether times have to be kept, too.
    judges_times: bool,
}

impl Tally {
    pub(super) fn new(
        (drains, tokens): (bool, u64),
        judges_times: bool,
        left: Vec<Left>,
        engine: Vec<Entry>,
        stalls: Stalls,
    ) -> Self {
        Self {
            drains,
            tokens,
            judges_times,
            stalls,
            left: left
                .into_iter()
                .map(|left| (left.id.clone(), left))
                .collect(),
            engine: engine
                .into_iter()
                .map(|entry| (entry.id.clone(), entry))
                .collect(),
            tokenizer: Some(Tokenizer::cl100k()),
            ..Self::default()
        }
    }

    pub(super) fn row(&mut self, row: &Row) {
        let rows = self.rows.entry(row.request_id.as_str().into()).or_default();
        *rows += 1;
        if *rows > 1 {
            self.doubled.add(|| row.request_id.clone());
            return;
        }
        self.spent += row.tokens();
        self.hold_against(row);
        let Some(left) = self.left.get(row.request_id.as_str()) else {
            self.strange.add(|| row.request_id.clone());
            return;
        };
        let entry = self.engine.get(row.request_id.as_str());
        // A gate that is not given a core reads to the end before it sees that its client left.
        let may_be_whole =
            |e: &Entry, at| !self.judges_times || self.noticed_after(at, e) <= MOMENT;
        let was_whole = self.drains
            && entry.is_some_and(|e| left.at.is_some_and(|at| may_be_whole(e, at)))
            || !self.drains && entry.is_some_and(|e| e.whole)
            || entry.is_some_and(|e| e.whole && left.events >= e.completion_tokens)
            || left.at.is_none();
        let outcome = row.outcome.as_deref().unwrap_or_default();
        let may_be = outcome == "aborted" || (was_whole && outcome == "completed");
        if row.state != "settled" || !may_be {
            self.outcome.add(|| format!("{row:?}, {left:?}"));
        }
        let source = row.completion_source.as_deref().unwrap_or("unknown");
        *self.by_source.entry(source.to_owned()).or_default() += 1;
        match source {
            _ if row.estimate_reason.is_some() => self.unheard(row),
            "reported" => {
                let counted = entry.map(|e| (e.prompt_tokens, e.completion_tokens));
                if counted != row.reported() {
                    self.far.add(|| format!("{row:?}, the engine {counted:?}"));
                }
            }
            _ if self.drains && entry.is_some_and(|e| e.whole) => {
                self.unreported.add(|| format!("{row:?}"));
            }
            "counted" => {
                let text = &left.text;
                let tokens = self.tokenizer.as_ref().map_or(0, |t| t.count(text));
                self.compare(row, tokens);
            }
            _ => self.compare(row, left.events),
        }
    }

    /// The row with what the engine made of its call.
    fn hold_against(&mut self, row: &Row) {
        let id = row.request_id.as_str();
        let (Some(entry), Some(left)) = (self.engine.get(id), self.left.get(id)) else {
            return;
        };
        let made = entry.prompt_tokens + entry.completion_tokens;
        self.made += made;
        let below = made.saturating_sub(row.tokens());
        self.below.push(below);
        let at = left.at.unwrap_or(entry.ended);
        // After a stall the engine makes at once what was due meanwhile, and a client may leave before any of that was read.
        let since = at.checked_sub(AFTER_STALL).unwrap_or(at).max(entry.began);
        let stalled = self.stalls.between(since, at);
        let late = entry.ended.saturating_duration_since(at) + stalled;
        let late = late.as_micros() / NEXT_TOKEN.as_micros();
        if u128::from(below) > u128::from(BELOW_MAX) + late {
            self.too_low
                .add(|| format!("{row:?}, the engine {entry:?}"));
        }
    }

    /// A row of a call of which no answer was heard.
    fn unheard(&mut self, row: &Row) {
        let Some(left) = self.left.get(row.request_id.as_str()) else {
            return;
        };
        let reason = row.estimate_reason.clone().unwrap_or_default();
        *self.unanswered.entry(reason).or_default() += 1;
        let completion = match left.phase {
            Phase::Waiting => self.tokens,
            Phase::Streaming => 0,
            Phase::Uploading => u64::MAX,
        };
        let is_so = row.completion_tokens == Some(completion)
            && row.prompt_tokens > Some(0)
            && row.completion_source.as_deref() == Some("estimated");
        if !is_so {
            self.not_so.add(|| format!("{row:?}, {left:?}"));
        }
    }

    /// A row that says what was forwarded, with what its client had received.
    fn compare(&mut self, row: &Row, received: u64) {
        let Some(left) = self.left.get(row.request_id.as_str()) else {
            return;
        };
        let said = row.completion_tokens.unwrap_or(0);
        let off = said.abs_diff(received);
        match left.way {
            Way::Reading => {
                if let Some(count) = self.off.get_mut(usize::try_from(off).unwrap_or(usize::MAX)) {
                    *count += 1;
                }
                if off > OFF_MAX {
                    self.far.add(|| format!("{row:?}, received {received}"));
                }
            }
            Way::AtOnce if said + OFF_MAX < received => {
                self.far.add(|| format!("{row:?}, received {received}"));
            }
            Way::AtOnce => self.unread.push(off),
        }
    }

    /// Tokens of all rows, which limits were charged.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }

    pub(super) fn tell(&mut self, verdict: &mut Verdict, cancelled_within: Duration) {
        let by = |way| {
            self.left
                .values()
                .filter(|l| l.at.is_some() && l.way == way)
                .count()
        };
        verdict.tell("clients that left and read on", by(Way::Reading));
        verdict.tell("clients that left at once", by(Way::AtOnce));
        let phase = |phase| {
            let of = self.left.values();
            of.filter(|l| l.at.is_some() && l.phase == phase).count()
        };
        for (what, of) in [
            ("of all these, while they sent", Phase::Uploading),
            ("waiting for an answer in one piece", Phase::Waiting),
            ("of a stream", Phase::Streaming),
        ] {
            verdict.tell(what, phase(of));
        }
        let early = self
            .left
            .values()
            .filter(|l| l.at.is_some() && l.events == 0 && l.phase == Phase::Streaming);
        verdict.tell(
            "of those of a stream, before the first event",
            early.count(),
        );
        let ended = self.left.values().filter(|l| l.at.is_none()).count();
        verdict.tell("clients whose stream ended first", ended);
        let mut lost = Found::default();
        for (id, left) in &self.left {
            let went = self.engine.contains_key(id) || left.status != 0;
            if went && !self.rows.contains_key(id) {
                lost.add(|| format!("{left:?}"));
            }
        }
        let unknown = self
            .left
            .keys()
            .filter(|id| !self.engine.contains_key(*id))
            .count();
        verdict.tell("calls that never came to the engine", unknown);
        verdict.none("streams without a row", &lost);
        verdict.none("rows doubled", &self.doubled);
        verdict.none("rows of nobody", &self.strange);
        verdict.none("rows with a wrong outcome", &self.outcome);
        let mut sources: Vec<_> = self.by_source.iter().collect();
        sources.sort();
        for (source, count) in sources {
            verdict.tell(&format!("rows with completion {source}"), *count);
        }
        for (reason, count) in &self.unanswered {
            verdict.tell(&format!("rows without an answer, {reason}"), *count);
        }
        verdict.none(
            "rows without an answer, not as they should be",
            &self.not_so,
        );
        verdict.tell("tokens of the engine's account", self.made);
        let lower: u64 = self.below.iter().sum();
        verdict.tell("tokens by which rows lie below it, all together", lower);
        verdict.tell("below it, p99", quantile(&mut self.below, 0.99));
        verdict.tell("below it, most", quantile(&mut self.below, 1.0));
        verdict.none_in_time("rows too far below the engine's account", &self.too_low);
        if self.drains {
            verdict.none("drained to the end, and not reported", &self.unreported);
        }
        let [exact, by_one] = self.off;
        verdict.tell("rows exactly as received by clients that read on", exact);
        verdict.tell("rows off by one", by_one);
        verdict.none("rows further off, or not as the engine counted", &self.far);
        verdict.tell(
            "sent and unread when a client left at once, p99",
            quantile(&mut self.unread, 0.99),
        );
        verdict.tell(
            "sent and unread when a client left at once, most",
            quantile(&mut self.unread, 1.0),
        );
        let mut after: Vec<u64> = self.cancelled_after();
        let seen = "streams that the engine saw cancelled";
        if self.drains {
            verdict.tell(seen, after.len());
        } else {
            verdict.hold(seen, after.len(), !after.is_empty());
            verdict.none(
                "calls that ran to their end without their client",
                &self.run_on(),
            );
            verdict.tell("cancelled after, p50, µs", quantile(&mut after, 0.5));
            let p99 = quantile(&mut after, 0.99);
            let is_within = Duration::from_micros(p99) <= cancelled_within;
            verdict.in_time("cancelled after, p99, µs", p99, is_within);
            verdict.tell("cancelled after, most, µs", quantile(&mut after, 1.0));
        }
        verdict.stalls(&self.stalls);
    }

    /// Calls that the engine served whole, for longer than any machine stands still after their clients had left.
    fn run_on(&self) -> Found {
        let mut found = Found::default();
        for entry in self.engine.values().filter(|entry| entry.whole) {
            if self
                .left
                .get(&entry.id)
                .is_some_and(|left| left.at.is_some())
            {
                found.add(|| format!("{entry:?}"));
            }
        }
        found
    }

    /// How long it took from a client's leaving to the engine's seeing it, less what the machine stood still.
    fn noticed_after(&self, left: Instant, entry: &Entry) -> Duration {
        let after = entry.ended.saturating_duration_since(left);
        after.saturating_sub(self.stalls.between(left, entry.ended))
    }

    /// The same of each stream that was cut, microseconds.
    fn cancelled_after(&self) -> Vec<u64> {
        let cut = self.engine.values().filter(|entry| !entry.whole);
        cut.filter_map(|entry| {
            let left = self.left.get(&entry.id)?.at?;
            u64::try_from(self.noticed_after(left, entry).as_micros()).ok()
        })
        .collect()
    }
}

/// The value below which this share of them lies; 0 of nothing.
fn quantile(values: &mut [u64], share: f64) -> u64 {
    values.sort_unstable();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place in a list, from a share between 0 and 1"
    )]
    let place = (values.len().saturating_sub(1) as f64 * share).round() as usize;
    values.get(place).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
