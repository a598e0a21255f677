//! A campaign in real time: processes, load and scraping, held together by one loop.
//!
//! Invariant: the loop waits and copies; what follows from what was scraped the controller decides. Time is one
//! monotonic clock, that of the load, from the first moment to the last.
//! Not here: the controller (`experiment::campaign`), sums (`observed`), the document (`document`, `summary`), what is shown (`shown`).

mod after;
mod clocks;
mod corpus;
mod document;
mod gateway_pages;
mod pairing;
mod preparation;
mod shown;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use experiment::campaign::{Controller, Ending, Phase};
use experiment::telemetry::Telemetry;
use experiment::workload::apportion;
use load::observer::{Counters, Record};
use load::run::Outcome;

use super::follow::Follower;
use super::live::{Lines, Now};
use super::note::NoteKind;
use super::observed::{Ended, Observed};
use super::output::Output;
use super::scenario::Scenario;
use super::watch::Watch;
use super::{Options, RunError, hint};
use crate::interrupt::Interrupt;
use crate::load::steered::SteeredRun;
use crate::report::document::{Document, Event, Evidence, Verified};
use crate::scrape::scraper::{Heard, Scraper};
use crate::scrape::store::Store;
use after::After;
use clocks::Clocks;
use document::unloaded;
use gateway_pages::GatewayPages;
use pairing::Pairing;
#[cfg(test)]
pub(super) use preparation::upstreams_of;
use preparation::{Asked, Prepared, Unprepared};

/// Between two looks at what came.
const LOOK: Duration = Duration::from_millis(50);
/// Between two samples.
const PERIOD: Duration = Duration::from_secs(1);
/// What is under way at the end may take so long.
const DRAIN: Duration = Duration::from_secs(60);
/// And then the gateway's last page.
const LAST_PAGE: Duration = Duration::from_secs(15);
/// Rows of requests, and of what was scraped.
const REQUESTS: &str = "requests.parquet";
const SAMPLES: &str = "samples.parquet";
/// What client and relay stamped of the same requests.
const PAIRS: &str = "pairs.parquet";
/// What a verdict says where no suite was run.
const UNVERIFIED: &str = "policies were not verified";
/// Notes of the host at most.
const MOST_NOTES: usize = 1_000;

/// Runs a scenario.
pub(super) fn run(
    options: &Options,
    scenario: Scenario,
    output: &Output,
) -> Result<Document, RunError> {
    let interrupt = Interrupt::heed().map_err(RunError::of("signals"))?;
    let started = SystemTime::now();
    let watch = options.watch.map(|address| {
        Watch::start(address).map_err(RunError::of(format_args!("--watch {address}")))
    });
    let watch = watch.transpose()?;
    let prepared = preparation::prepare(Asked {
        options,
        scenario: &scenario,
        output,
        interrupt: &interrupt,
    });
    let (prepared, verified) = match prepared {
        Ok(prepared) => prepared,
        Err(Unprepared { error, verified }) => {
            // What was found until then is told as of any other end.
            let (says, ending) = match *error {
                _ if interrupt.was_heard() => {
                    (RunError::Interrupted.to_string(), Ending::Interrupted)
                }
                RunError::Unreachable(says) => (says.clone(), Ending::Failed(says)),
                error => return Err(error),
            };
            hint(&says);
            return Ok(unloaded(options, &scenario, started, verified, ending));
        }
    };
    let mut campaign = Campaign::new(prepared, verified, watch, started)?;
    if campaign.may_load() {
        campaign.load(output, &interrupt)?;
    }
    Ok(campaign.document(options))
}

/// What goes on.
struct Campaign {
    prepared: Prepared,
    /// What the suite came to, where one was run.
    verified: Option<Verified>,
    controller: Controller,
    telemetry: Telemetry,
    observed: Arc<Mutex<Observed>>,
    lines: Lines,
    watch: Option<Watch>,
    now: Now,
    notes: Vec<Event>,
    gateway_pages: GatewayPages,
    started: SystemTime,
    follower: Follower,
    /// Users that were asked for.
    users: Option<u32>,
    after: Option<After>,
    /// Somebody ended it, perhaps while answers were waited for.
    is_cut: bool,
    /// As they stood at its beginning.
    clocks: Clocks,
    /// Files that are not whole, and why.
    broken: BTreeMap<&'static str, String>,
}

impl Campaign {
    fn new(
        prepared: Prepared,
        verified: Option<Verified>,
        watch: Option<Watch>,
        started: SystemTime,
    ) -> Result<Self, RunError> {
        let queries = prepared.queries();
        let plan = prepared.scenario.plan.clone();
        let controller = Controller::new(plan).map_err(|faults| {
            let faults = faults.iter().map(ToString::to_string);
            RunError::Usage(faults.collect::<Vec<_>>().join("\n"))
        })?;
        let profiles = prepared.steered.profiles.len();
        let now = Now {
            title: titled(&prepared),
            phase: "prepared".into(),
            ..Now::default()
        };
        Ok(Self {
            telemetry: Telemetry::new(&queries),
            observed: Arc::new(Mutex::new(Observed::new(profiles))),
            controller,
            lines: Lines::new(),
            watch,
            now,
            notes: prepared.notes(),
            gateway_pages: GatewayPages::default(),
            started,
            follower: Follower::default(),
            users: None,
            after: None,
            is_cut: false,
            clocks: Clocks::now(),
            broken: BTreeMap::new(),
            verified,
            prepared,
        })
    }

    /// Whether the suite lets the load begin.
    fn may_load(&self) -> bool {
        let verified = self.verified.as_ref();
        verified.is_none_or(|verified| verified.failed == 0)
    }

    /// From the first request to the last.
    fn load(&mut self, output: &Output, interrupt: &Interrupt) -> Result<(), RunError> {
        let observed = Arc::clone(&self.observed);
        let on_rows = move |rows: &[Record]| {
            let mut observed = lock(&observed);
            for row in rows {
                observed.ended(&ended(row));
            }
        };
        let pairing = self.prepared.pairing();
        let listens = pairing.listener();
        let on_rows = move |rows: &[Record]| {
            listens(rows);
            on_rows(rows);
        };
        let file = output.path(REQUESTS);
        let mut store = Store::create(&output.path(SAMPLES))
            .map_err(|error| RunError::Usage(error.to_string()))?;
        store.prefer(&self.prepared.queries());
        let run = self.prepared.steered.begin(&file, Box::new(on_rows))?;
        let start = run.running.start;
        pairing.begin(start);
        let targets = self.prepared.targets.clone();
        let scraper = Scraper::start(targets, self.prepared.cgroup.clone(), start, PERIOD);
        let (scraper, heard) = scraper.map_err(RunError::Rig)?;
        self.clocks = Clocks::now();
        self.tell_course();
        let mut due = start + PERIOD;
        while self.controller.phase() != Phase::Over {
            match heard.recv_timeout(LOOK) {
                Ok(heard) => self.hear(heard, &mut store),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let ending = Ending::Broken("bug: the scraper is gone".into());
                    self.controller.stop(start.elapsed(), ending);
                }
            }
            if Instant::now() >= due {
                due += PERIOD;
                self.tick(&run, &mut store);
                pairing.tick();
            }
            if interrupt.was_heard() {
                self.controller.stop(start.elapsed(), Ending::Interrupted);
            } else if let Some(says) = self.prepared.ended() {
                self.controller.stop(start.elapsed(), Ending::Failed(says));
            } else if run.running.is_over() {
                let ending = Ending::Broken("the load ended before the campaign".into());
                self.controller.stop(start.elapsed(), ending);
            }
        }
        self.apply_users(&run);
        self.drain(&run, &heard, &mut store, interrupt);
        self.is_cut = interrupt.was_heard();
        self.lines
            .show(&mut self.now, &self.controller.course().events);
        self.lines.clear();
        let lost = scraper.finish();
        if lost.ticks + lost.samples > 0 {
            let says = format!(
                "{} looks at targets were left out, {} samples found no room",
                lost.ticks, lost.samples
            );
            self.note(start.elapsed(), NoteKind::Scrape, says);
        }
        run.running.control().stop();
        if let Some(says) = store.left_out() {
            self.note(start.elapsed(), NoteKind::File, says);
        }
        if let Err(error) = store.finish() {
            self.broken.insert(SAMPLES, error.to_string());
            self.note(start.elapsed(), NoteKind::File, error.to_string());
        }
        self.finish(run, pairing, &output.path(PAIRS));
        Ok(())
    }

    fn hear(&mut self, heard: Heard, store: &mut Store) {
        match heard {
            Heard::Sample(sample) => {
                self.telemetry.hear(&sample);
                self.gateway_pages.hear(&sample);
                // A fault of the file is told at its end, and the campaign goes on.
                drop(store.add(&sample));
            }
            Heard::Silent { at, target, fault } => {
                self.note(at, NoteKind::Silent, format!("{target}: {fault}"));
            }
            Heard::Back { at, target, after } => {
                let says = format!("{target} answers again, after {:.0} s", after.as_secs_f64());
                self.note(at, NoteKind::Heard, says);
            }
            Heard::Unread {
                target,
                lines,
                first: (number, line),
            } => {
                let says = format!("{target}: {lines} lines cannot be read; line {number}: {line}");
                self.note(Duration::ZERO, NoteKind::Unread, says);
            }
        }
    }

    /// Once a second.
    fn tick(&mut self, run: &SteeredRun, store: &mut Store) {
        let now = run.running.start.elapsed();
        let counters = run.running.counters();
        let users = counters.iter().map(|counters| counters.users).sum::<u64>();
        let sample = lock(&self.observed).sample(now, u32::try_from(users).unwrap_or(u32::MAX));
        self.telemetry.hear(&sample);
        drop(store.add(&sample));
        let slept = Clocks::now().slept_since(self.clocks);
        if slept > self.controller.plan().patience {
            self.controller.stop(now, Ending::Lapsed(slept));
        }
        self.controller.tick(now, &self.telemetry);
        self.tell_course();
        self.apply_users(run);
        self.show(now);
    }

    fn tell_course(&mut self) {
        self.follower
            .tell(&self.controller, &mut lock(&self.observed));
    }

    fn apply_users(&mut self, run: &SteeredRun) {
        let users = self.controller.users();
        if self.users == Some(users) {
            return;
        }
        self.users = Some(users);
        let profiles = self.prepared.steered.profiles.iter();
        let weights: Vec<f64> = profiles.map(|profile| profile.weight).collect();
        let control = run.running.control();
        for (profile, users) in apportion(users, &weights).into_iter().enumerate() {
            control.set_users(profile, users);
        }
    }

    /// Answers under way may end, unless there is a reason for haste; the gateway's pages are heard until one has them all.
    fn drain(
        &mut self,
        run: &SteeredRun,
        heard: &Receiver<Heard>,
        store: &mut Store,
        interrupt: &Interrupt,
    ) {
        let is_whole = matches!(self.controller.course().ending, Some(Ending::Completed));
        let start = run.running.start;
        let until = start.elapsed() + DRAIN;
        let is_under_way = |counters: &Counters| {
            let failed: u64 = counters.failures.iter().map(|(_, count)| count).sum();
            counters.sent > counters.answered + failed
        };
        let mut quiet = None;
        while is_whole && start.elapsed() < until && !interrupt.was_heard() {
            if quiet.is_none() && !run.running.counters().iter().any(is_under_way) {
                quiet = Some(start.elapsed());
            }
            if quiet.is_some_and(|quiet| self.has_last_page(quiet, start.elapsed())) {
                break;
            }
            match heard.recv_timeout(LOOK) {
                Ok(heard) => self.hear(heard, store),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    }

    /// Whether no page of the gateway is waited for any more, once nothing is under way since a moment.
    fn has_last_page(&self, quiet: Duration, now: Duration) -> bool {
        let last = self.gateway_pages.last_heard();
        // An answer takes a period at most, and the gateway has one more to write down what it served.
        last.is_none_or(|last| last > quiet + 2 * PERIOD) || now > quiet + LAST_PAGE
    }

    fn note(&mut self, at: Duration, kind: NoteKind, says: String) {
        if kind == NoteKind::File {
            hint(&format!("warning: {says}"));
        }
        if self.notes.len() < MOST_NOTES {
            self.notes.push(Event {
                at_s: at.as_secs_f64(),
                kind: kind.word().to_owned(),
                users: self.controller.users(),
                says,
            });
        }
    }

    /// Takes what the load came to. A client that failed takes nothing from what was seen until then.
    fn finish(&mut self, run: SteeredRun, pairing: Pairing, pairs: &Path) {
        let at = run.running.start.elapsed();
        let (outcome, summed) = run.finish();
        let fault = match &summed {
            Ok(summed) => summed.fault.as_ref().map(ToString::to_string),
            Err(error) => Some(error.to_string()),
        };
        if let Some(says) = fault {
            self.broken.insert(REQUESTS, says.clone());
            self.note(at, NoteKind::File, says);
        }
        let mut after = match outcome {
            Ok(outcome) => {
                self.note_left(&outcome);
                After::of(&outcome, at)
            }
            Err(error) => {
                self.note(at, NoteKind::Load, error.to_string());
                After {
                    void: Some(format!("the load failed: {error}")),
                    ..After::default()
                }
            }
        };
        let span = self.measured_span();
        let profiles = self.prepared.steered.profiles.iter();
        let profiles: Vec<String> = profiles.map(|profile| profile.name.clone()).collect();
        match pairing.finish(span, &self.telemetry, (pairs, &profiles)) {
            Ok(found) => {
                if let Some(says) = found.missing {
                    self.note(at, NoteKind::Overhead, says);
                }
                if let Some(says) = found.fault {
                    self.broken.insert(PAIRS, says.clone());
                    self.note(at, NoteKind::File, says);
                }
                (after.overhead, after.series) = (found.overhead, found.series);
            }
            Err(says) => self.note(at, NoteKind::Overhead, says),
        }
        self.after = Some(after);
    }

    /// Tells whose answers had not ended when the load did.
    fn note_left(&self, outcome: &Outcome) {
        // What was cut by an end in haste is nobody's fault.
        if matches!(self.controller.course().ending, Some(Ending::Completed)) {
            let mut observed = lock(&self.observed);
            for (profile, outcome) in outcome.profiles.iter().enumerate() {
                observed.left(profile, Phase::Soak.word(), outcome.observations.left);
            }
        }
    }

    /// The soak, or the last phase that there was.
    fn measured_span(&self) -> experiment::telemetry::Span {
        let course = self.controller.course();
        let last = course.phases.iter().rfind(|span| span.to > span.from);
        let span = course.span(Phase::Soak).or(last.copied());
        experiment::telemetry::Span {
            from: span.map_or(Duration::ZERO, |span| span.from),
            to: span.map_or(Duration::ZERO, |span| span.to),
        }
    }
}

/// Whoever looks on has to know what answers.
fn titled(prepared: &Prepared) -> String {
    let title = &prepared.scenario.title;
    if prepared.is_simulated() {
        return format!("{title} ({})", Evidence::SimulatedEngine.word());
    }
    title.clone()
}

fn lock(observed: &Mutex<Observed>) -> MutexGuard<'_, Observed> {
    observed.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ended(row: &Record) -> Ended {
    let at = Duration::from_nanos;
    Ended {
        profile: usize::try_from(row.profile).unwrap_or(usize::MAX),
        user: Some(row.user),
        session: Some(row.session),
        turn: Some(row.turn),
        due: at(row.intended_ns),
        sent: row.sent_ns.map(at),
        // An answer in one piece begins with its first byte.
        first_token: row
            .first_token_ns
            .or(row.body_ns.filter(|_| row.events == 0))
            .map(at),
        ended: at(row.ended_ns),
        per_token: row.time_per_token_ns.map(at),
        longest_gap: row.longest_gap_ns.map(at),
        prompt_tokens: row.prompt_tokens,
        output_tokens: row.completion_tokens,
        cached_tokens: row.cached_tokens,
        failure: row.failure.map(|failure| failure.to_string()),
    }
}
