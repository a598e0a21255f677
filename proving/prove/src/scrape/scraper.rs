//! Every target is asked on schedule, each on its own, until somebody has enough.
//!
//! Invariant: ticks lie at whole multiples of the period after the start, whatever an answer takes; one that comes while
//! the target is still asked is skipped and counted. A sample that finds no room is lost and counted; an
//! event waits, and of one target's at most [`WAITING_EVENTS`] do: the latest make way.
//! Not here: what is asked for (`targets`), one page (`page`), where samples go (whoever receives).

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use experiment::telemetry::{Sample, Value};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::cfs::Cfs;
use super::names::Names;
pub(crate) use super::page::Fault;
use super::page::Pages;
use super::targets::{MOST_TARGETS, Target};

#[cfg(test)]
mod tests;

/// Samples and events that may wait for whoever receives them.
pub(crate) const WAITING: usize = 256;
/// Events of one target that may wait for room; more than begin and end in so many ticks there are not.
const WAITING_EVENTS: usize = 64;

/// What whoever receives hears.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Heard {
    /// A page.
    Sample(Sample),
    /// A target's last answer was none; told once.
    Silent {
        /// Since the start.
        at: Duration,
        target: String,
        fault: Fault,
    },
    /// It answers again; told once.
    Back {
        /// Since the start.
        at: Duration,
        target: String,
        /// For how long it did not.
        after: Duration,
    },
    /// A page has lines that cannot be read; told once of each target.
    Unread {
        target: String,
        lines: u64,
        /// Its number from 1, and its beginning.
        first: (usize, String),
    },
}

/// What was not done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Ticks at which a target was still being asked.
    pub(crate) ticks: u64,
    /// Samples that found no room.
    pub(crate) samples: u64,
}

#[derive(Debug, Default)]
struct Counts {
    ticks: AtomicU64,
    samples: AtomicU64,
}

/// A thread that asks.
pub(crate) struct Scraper {
    thread: Option<JoinHandle<()>>,
    over: watch::Sender<bool>,
    counts: Arc<Counts>,
}

/// Where one target's samples and events go.
struct Out {
    to: SyncSender<Heard>,
    events: VecDeque<Heard>,
    counts: Arc<Counts>,
}

impl Scraper {
    /// Asks `targets` every `period` from `start` on; an answer may take one period. `cgroup` is read beside them.
    ///
    /// # Errors
    /// The operating system gives no thread or event queue, or no authority's certificates can be read.
    pub(crate) fn start(
        targets: Vec<Target>,
        cgroup: Option<Cfs>,
        start: Instant,
        period: Duration,
    ) -> Result<(Self, Receiver<Heard>), String> {
        if targets.len() > MOST_TARGETS || period < Duration::from_millis(10) {
            return Err(format!(
                "at most {MOST_TARGETS} targets are scraped, and no oftener than every 10 ms"
            ));
        }
        let (to, heard) = sync_channel(WAITING);
        let (over, is_over) = watch::channel(false);
        let (ready, is_ready) = sync_channel(1);
        let counts = Arc::new(Counts::default());
        let given = Arc::clone(&counts);
        let work = move || {
            let out = || Out {
                to: to.clone(),
                events: VecDeque::new(),
                counts: Arc::clone(&given),
            };
            run(targets, cgroup, (start, period), &out, is_over, &ready);
        };
        let named = std::thread::Builder::new().name("scrape".into());
        let cannot = |error: io::Error| format!("the scraper could not start: {error}");
        let thread = named.spawn(work).map_err(cannot)?;
        is_ready
            .recv()
            .map_err(|_| "bug: the scraper's thread panicked".to_owned())??;
        let scraper = Self {
            thread: Some(thread),
            over,
            counts,
        };
        Ok((scraper, heard))
    }

    /// What was not done so far.
    pub(crate) fn lost(&self) -> Lost {
        Lost {
            ticks: self.counts.ticks.load(Ordering::Relaxed),
            samples: self.counts.samples.load(Ordering::Relaxed),
        }
    }

    /// Ends it; what is being asked is left. Then nobody sends any more.
    pub(crate) fn finish(mut self) -> Lost {
        self.end();
        self.lost()
    }

    fn end(&mut self) {
        self.over.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing left to say.
            drop(thread.join());
        }
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.end();
    }
}

fn run(
    targets: Vec<Target>,
    cgroup: Option<Cfs>,
    (start, period): (Instant, Duration),
    out: &dyn Fn() -> Out,
    mut is_over: watch::Receiver<bool>,
    ready: &SyncSender<Result<(), String>>,
) {
    let runtime = match crate::runtime::make_local() {
        Ok(runtime) => runtime,
        Err(error) => {
            return drop(ready.send(Err(format!("the scraper could not start: {error}"))));
        }
    };
    runtime.block_on(async {
        let mut asking = JoinSet::new();
        for target in targets {
            let name = target.name.clone();
            match Pages::new(target, period) {
                Ok(pages) => asking.spawn_local(ask(pages, name, (start, period), out())),
                Err(says) => return drop(ready.send(Err(says))),
            };
        }
        if let Some(cgroup) = cgroup {
            asking.spawn_local(read(cgroup, (start, period), out()));
        }
        drop(ready.send(Ok(())));
        // Whoever let go of the scraper has enough of it too.
        drop(is_over.wait_for(|is_over| *is_over).await);
    });
}

/// Asks one target at every tick.
async fn ask(mut pages: Pages, name: String, (start, period): (Instant, Duration), mut out: Out) {
    let mut names = Names::default();
    let mut silent: Option<(Duration, Fault)> = None;
    let (mut tick, mut is_unread_told) = (0, false);
    loop {
        tokio::time::sleep_until((start + period.saturating_mul(tick)).into()).await;
        let asked = start.elapsed();
        let got = pages.get().await;
        let at = start.elapsed();
        match got {
            Ok(page) => {
                if let Some((since, _)) = silent.take() {
                    out.event(Heard::Back {
                        at,
                        target: name.clone(),
                        after: at.saturating_sub(since),
                    });
                }
                if let (Some(first), false) = (page.first_unread.clone(), is_unread_told) {
                    is_unread_told = true;
                    out.event(Heard::Unread {
                        target: name.clone(),
                        lines: page.unread,
                        first,
                    });
                }
                let values = names.apply(page, at);
                out.sample(&name, at, values);
            }
            Err(fault) => {
                let is_new = silent
                    .as_ref()
                    .is_none_or(|(_, last)| !last.is_like(&fault));
                let since = silent.take().map_or(asked, |(since, _)| since);
                silent = Some((since, fault.clone()));
                if is_new {
                    out.event(Heard::Silent {
                        at,
                        target: name.clone(),
                        fault,
                    });
                }
            }
        }
        out.hand_on();
        tick = out.next_tick(tick, (start, period));
    }
}

/// Reads a cgroup at every tick.
async fn read(mut cgroup: Cfs, (start, period): (Instant, Duration), mut out: Out) {
    let mut tick = 0;
    loop {
        tokio::time::sleep_until((start + period.saturating_mul(tick)).into()).await;
        // One that is gone has no figures: its target is silent.
        if let Some(values) = cgroup.read() {
            out.sample(super::cfs::TARGET, start.elapsed(), values);
        }
        tick = out.next_tick(tick, (start, period));
    }
}

impl Out {
    /// The first tick that has not passed; those in between were skipped.
    fn next_tick(&self, tick: u32, (start, period): (Instant, Duration)) -> u32 {
        let passed = start.elapsed().as_nanos() / period.as_nanos().max(1);
        let next = u32::try_from(passed).unwrap_or(u32::MAX).saturating_add(1);
        let next = next.max(tick.saturating_add(1));
        let skipped = u64::from(next - tick - 1);
        self.counts.ticks.fetch_add(skipped, Ordering::Relaxed);
        next
    }

    fn sample(&mut self, target: &str, at: Duration, values: Vec<Value>) {
        self.hand_on();
        let sample = Heard::Sample(Sample {
            at,
            target: target.to_owned(),
            values,
        });
        // Nothing overtakes an event of its target.
        if !self.events.is_empty() || self.to.try_send(sample).is_err() {
            self.counts.samples.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn event(&mut self, event: Heard) {
        if self.events.len() >= WAITING_EVENTS {
            // Nobody has received anything for a minute or more: what began first is what matters. The last of them then
            // stands for all that came after it, and whether the target is silent its samples tell.
            self.events.pop_back();
        }
        self.events.push_back(event);
        self.hand_on();
    }

    fn hand_on(&mut self) {
        while let Some(event) = self.events.pop_front() {
            match self.to.try_send(event) {
                Ok(()) => {}
                Err(TrySendError::Full(event)) => return self.events.push_front(event),
                Err(TrySendError::Disconnected(_)) => return self.events.clear(),
            }
        }
    }
}
