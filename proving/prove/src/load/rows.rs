//! The rows of a run as they come: sums that histograms cannot have, goodput, and the file.
//!
//! Invariant: every row that comes is counted, whether or not it can be written; the first error of the file is told at the
//! end, and rows go on being counted.
//! Not here: histograms (`load::observer`).

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use experiment::slo::{Goodput, Slo, Times};
use load::observer::{BATCH, Record};

use super::records::{Records, RecordsError};
use super::rig::OnRows;

/// Rows that may wait for the thread: 1,048,576, some 250 MB at most.
const WAITING_BATCHES: usize = 256;
const _: () = assert!(BATCH * WAITING_BATCHES == 1 << 20);

/// Tokens as answers reported them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct Tokens {
    /// Of prompts.
    pub(super) prompt: u64,
    /// Of prompts, those that an engine's cache had, as far as answers tell of it.
    pub(super) cached: u64,
    /// Of the prompts whose answers tell of it.
    pub(super) cached_of: u64,
    /// Of completions.
    pub(super) completion: u64,
    /// Answers that reported them.
    pub(super) reported: u64,
}

/// Sums of the rows of one profile, those of the measured interval alone.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub(super) tokens: Tokens,
    /// Whether there are service levels, so that `goodput` says something.
    pub(super) has_levels: bool,
    pub(super) goodput: Goodput,
}

/// Sums, by profile.
#[derive(Debug, Default)]
pub(crate) struct Summed {
    pub(super) profiles: Vec<Sums>,
    pub(crate) rows: u64,
    /// Why the file is not whole.
    pub(crate) fault: Option<RecordsError>,
}

/// A thread that takes rows.
pub(super) struct Rows {
    thread: JoinHandle<Summed>,
}

impl Rows {
    /// Begins to take rows; the run is given what is returned beside it. Rows that were due before `warm_up` are written,
    /// and not summed; where there is an `on_rows`, it hears all of them.
    pub(super) fn start(
        profiles: usize,
        slo: Option<Slo>,
        warm_up: Duration,
        (file, on_rows): (Option<Records>, Option<OnRows>),
    ) -> std::io::Result<(Self, SyncSender<Vec<Record>>)> {
        let (sender, rows) = sync_channel(WAITING_BATCHES);
        let warm_up_ns = u64::try_from(warm_up.as_nanos()).unwrap_or(u64::MAX);
        let thread = std::thread::Builder::new()
            .name("rows".into())
            .spawn(move || take(&rows, profiles, slo.as_ref(), warm_up_ns, (file, on_rows)))?;
        Ok((Self { thread }, sender))
    }

    /// Takes what is left, once the run has let go of its sender.
    pub(super) fn finish(self) -> Result<Summed, &'static str> {
        self.thread
            .join()
            .map_err(|_| "bug: the thread of rows panicked")
    }
}

fn take(
    rows: &Receiver<Vec<Record>>,
    profiles: usize,
    slo: Option<&Slo>,
    warm_up_ns: u64,
    (mut file, mut on_rows): (Option<Records>, Option<OnRows>),
) -> Summed {
    let mut summed = Summed {
        profiles: vec![
            Sums {
                has_levels: slo.is_some(),
                ..Sums::default()
            };
            profiles
        ],
        ..Summed::default()
    };
    while let Ok(batch) = rows.recv() {
        summed.rows += batch.len() as u64;
        for row in &batch {
            let sums = usize::try_from(row.profile).ok();
            let sums = sums.and_then(|at| summed.profiles.get_mut(at));
            if let Some(sums) = sums.filter(|_| row.intended_ns >= warm_up_ns) {
                sums.add(row, slo);
            }
        }
        if let Some(on_rows) = &mut on_rows {
            on_rows(&batch);
        }
        if let Some(records) = &mut file
            && let Err(error) = records.add(&batch)
        {
            (file, summed.fault) = (None, Some(error));
        }
    }
    if let Some(records) = file
        && let Err(error) = records.finish()
    {
        summed.fault = Some(error);
    }
    summed
}

impl Sums {
    fn add(&mut self, row: &Record, slo: Option<&Slo>) {
        if let (Some(prompt), true) = (row.prompt_tokens, row.failure.is_none()) {
            let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
            add(&mut self.tokens.prompt, prompt);
            // More than there are is no report.
            if let Some(cached) = row.cached_tokens.filter(|cached| *cached <= prompt) {
                add(&mut self.tokens.cached, cached);
                add(&mut self.tokens.cached_of, prompt);
            }
            add(
                &mut self.tokens.completion,
                row.completion_tokens.unwrap_or(0),
            );
            self.tokens.reported += 1;
        }
        if let Some(slo) = slo {
            self.goodput.count(slo, &times(row));
        }
    }

    pub(super) fn absorb(&mut self, other: &Self) {
        self.tokens.prompt = self.tokens.prompt.saturating_add(other.tokens.prompt);
        self.tokens.cached = self.tokens.cached.saturating_add(other.tokens.cached);
        self.tokens.cached_of = self.tokens.cached_of.saturating_add(other.tokens.cached_of);
        self.tokens.completion = self
            .tokens
            .completion
            .saturating_add(other.tokens.completion);
        self.tokens.reported += other.tokens.reported;
        self.has_levels |= other.has_levels;
        self.goodput.absorb(&other.goodput);
    }
}

/// The times of a row, from the moment at which it was to be sent.
fn times(row: &Record) -> Times {
    #[expect(
        clippy::cast_precision_loss,
        reason = "nanoseconds below 2^53 are 104 days"
    )]
    let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
    let since = |to: u64| seconds(row.intended_ns, to);
    Times {
        // A stream without a token has none, whatever else it sent; an answer in one piece begins with its first byte.
        ttft_s: row
            .first_token_ns
            .or(row.body_ns.filter(|_| row.events == 0))
            .map(since),
        itl_s: row.longest_gap_ns.map(|gap| seconds(0, gap)),
        tpot_s: row.time_per_token_ns.map(|time| seconds(0, time)),
        e2e_s: row.failure.is_none().then(|| since(row.ended_ns)),
    }
}

#[cfg(test)]
pub(super) mod tests;
