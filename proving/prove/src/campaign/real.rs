//! A campaign in real time: processes, load and scraping, held together by one loop.
//!
//! Invariant: the loop waits and copies; what follows from what was scraped the controller decides. Time is one
//! monotonic clock, that of the load, from the first moment to the last.
//! Not here: the controller (`experiment::campaign`), sums (`observed`), the document (`summary`).

mod clocks;
mod gate_pages;
mod pairing;
mod preparation;

use std::collections::BTreeMap;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use experiment::campaign::{Controller, Course, Ending, Phase, Plan};
use experiment::certificate::Verdict as Fit;
use experiment::telemetry::{Query, Telemetry};
use experiment::workload::apportion;
use load::observer::{Counters, Measure, Record};
use load::run::Outcome;

use super::follow::Follower;
use super::live::{Lines, Now};
use super::observed::{Ended, Observed};
use super::output::Output;
use super::queries;
use super::scenario::Scenario;
use super::summary::{self, Parts, ProfilePart};
use super::watch::Watch;
use super::{Options, RunError, hint, not_whole};
use crate::interrupt::Interrupt;
use crate::load::steered::SteeredRun;
use crate::report::document::{self, Document, Event, Generator, PrefixCache, Reproduce, Verified};
use crate::scrape::scraper::{Heard, Scraper};
use crate::scrape::store::Store;
use clocks::Clocks;
use gate_pages::GatePages;
use pairing::Pairing;
use preparation::Prepared;
#[cfg(test)]
pub(super) use preparation::upstreams_of;

/// Between two looks at what came.
const LOOK: Duration = Duration::from_millis(50);
/// Between two samples.
const PERIOD: Duration = Duration::from_secs(1);
/// What is under way at the end may take so long.
const DRAIN: Duration = Duration::from_secs(60);
/// Over which the live TTFT is taken.
const LIVE: Duration = Duration::from_secs(30);
/// Over which the live rate is taken.
const RATE: Duration = Duration::from_secs(10);
/// Rows of requests, and of what was scraped.
const REQUESTS: &str = "requests.parquet";
const SAMPLES: &str = "samples.parquet";
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
    let interrupt = Interrupt::heed().map_err(RunError::Input)?;
    let started = SystemTime::now();
    let watch = options.watch.map(Watch::start).transpose();
    let watch = watch.map_err(RunError::Input)?;
    let mut verified = None;
    let prepared = preparation::prepare(
        options,
        scenario.clone(),
        output,
        (&interrupt, &mut verified),
    );
    let prepared = match prepared {
        Ok(prepared) => prepared,
        // What was found until then is told as of any other end.
        Err(_) if interrupt.was_heard() => {
            hint("interrupted before anything was loaded; everything that was started is ended");
            return Ok(unloaded(
                options,
                &scenario,
                (started, verified),
                Ending::Interrupted,
            ));
        }
        Err(RunError::Unreachable(says)) => {
            hint(&says);
            return Ok(unloaded(
                options,
                &scenario,
                (started, verified),
                Ending::Failed(says),
            ));
        }
        Err(error) => return Err(error),
    };
    let mut campaign = Campaign::new(prepared, verified, watch, started)?;
    if campaign.may_load() {
        campaign.load(output, &interrupt)?;
    }
    Ok(campaign.document(options))
}

/// The document of a campaign that ended before its load.
fn unloaded(
    options: &Options,
    scenario: &Scenario,
    (started, verified): (SystemTime, Option<Verified>),
    ending: Ending,
) -> Document {
    let under_test = preparation::named(options, scenario);
    summary::document(Parts {
        scenario,
        about: about(scenario, started, 0.0, under_test),
        course: &Course {
            ending: Some(ending),
            ..Course::default()
        },
        plan: &scenario.plan,
        telemetry: &Telemetry::default(),
        observed: &Observed::new(0),
        profiles: Vec::new(),
        certificate: None,
        generator: None,
        overhead: None,
        series: BTreeMap::new(),
        tokens: Vec::new(),
        prefix_cache: PrefixCache::default(),
        verify: verified,
        said: BTreeMap::new(),
        reproduce: preparation::reproduce(options, scenario, None, None),
        notes: Vec::new(),
        remarks: Vec::new(),
        generator_fit: Ok(()),
    })
}

fn about(
    scenario: &Scenario,
    started: SystemTime,
    seconds: f64,
    under_test: BTreeMap<String, String>,
) -> document::Scenario {
    let started = started.duration_since(UNIX_EPOCH);
    document::Scenario {
        name: scenario.name.clone(),
        title: scenario.title.clone(),
        is_virtual: false,
        started_unix_ms: started.map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        }),
        seconds,
        under_test,
    }
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
    gate_pages: GatePages,
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

/// What is known once the load is over.
#[derive(Default)]
struct After {
    certificate: Option<serde_json::Value>,
    /// Why no figure of the generator counts.
    void: Option<String>,
    generator: Option<Generator>,
    said: BTreeMap<String, String>,
    overhead: Option<document::Overhead>,
    series: BTreeMap<String, document::Series>,
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
            title: prepared.scenario.title.clone(),
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
            gate_pages: GatePages::default(),
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
        self.drain(&run, interrupt);
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
            self.note(start.elapsed(), "scrape", says);
        }
        run.running.control().stop();
        if let Some(says) = store.left_out() {
            self.note(start.elapsed(), "file", says);
        }
        if let Err(error) = store.finish() {
            self.broken.insert(SAMPLES, error.to_string());
            self.note(start.elapsed(), "file", error.to_string());
        }
        self.finish(run, pairing);
        Ok(())
    }

    fn hear(&mut self, heard: Heard, store: &mut Store) {
        match heard {
            Heard::Sample(sample) => {
                self.telemetry.hear(&sample);
                self.gate_pages.hear(&sample);
                // A fault of the file is told at its end, and the campaign goes on.
                drop(store.add(&sample));
            }
            Heard::Silent { at, target, fault } => {
                self.note(at, "silent", format!("{target}: {fault}"));
            }
            Heard::Back { at, target, after } => {
                let says = format!("{target} answers again, after {:.0} s", after.as_secs_f64());
                self.note(at, "heard", says);
            }
            Heard::Unread {
                target,
                lines,
                first: (number, line),
            } => {
                let says = format!("{target}: {lines} lines cannot be read; line {number}: {line}");
                self.note(Duration::ZERO, "unread", says);
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

    fn show(&mut self, at: Duration) {
        let plan = self.controller.plan();
        let gate = queries::ttft_gate(plan);
        let limit = gate.and_then(|(at, _)| self.controller.limit(at));
        let span = experiment::telemetry::Span {
            from: at.saturating_sub(LIVE),
            to: at,
        };
        let whole = experiment::telemetry::Span {
            from: Duration::ZERO,
            to: at,
        };
        let asked = |query: &str, span| -> Option<f64> {
            let query: Query = query.parse().ok()?;
            self.telemetry.ask(&query, span)
        };
        let ttft = self.telemetry.ask(&queries::ttft(plan), span);
        let ttft = ttft.map(|seconds| seconds * 1e3);
        let observed = lock(&self.observed);
        let (answered, errors) = observed.counts();
        let rate = observed
            .rates(experiment::telemetry::Span {
                from: at.saturating_sub(RATE),
                to: at,
            })
            .0;
        drop(observed);
        let kv = asked("avg(engine:vllm:kv_cache_usage_perc)", span);
        let preemptions = asked("increase(engine:vllm:num_preemptions_total)", whole);
        let now = &mut self.now;
        now.phase = self.controller.phase().word().to_owned();
        now.seconds = at.as_secs_f64();
        let ends = self.controller.phase_ends();
        let ends = ends.or(self.controller.window_ends());
        now.left_s = ends.map(|ends| ends.saturating_sub(at).as_secs_f64());
        now.left_of = self
            .controller
            .window_ends()
            .map_or(&*now.phase, |_| "step")
            .to_owned();
        now.users = self.controller.users();
        (now.ttft_ms, now.limit_ms) = (ttft, limit.map(|limit| limit * 1e3));
        (now.kv_cache, now.preemptions) = (kv, preemptions);
        (now.requests_per_s, now.answered, now.errors) = (rate, answered, errors);
        now.remember();
        self.lines
            .show(&mut self.now, &self.controller.course().events);
        if let Some(watch) = &self.watch {
            watch.show(&self.now);
        }
    }

    /// Answers under way may end, unless there is a reason for haste.
    fn drain(&self, run: &SteeredRun, interrupt: &Interrupt) {
        let is_whole = matches!(self.controller.course().ending, Some(Ending::Completed));
        let began = Instant::now();
        let is_under_way = |counters: &Counters| {
            let failed: u64 = counters.failures.iter().map(|(_, count)| count).sum();
            counters.sent > counters.answered + failed
        };
        while is_whole
            && began.elapsed() < DRAIN
            && !interrupt.was_heard()
            && run.running.counters().iter().any(is_under_way)
        {
            thread::sleep(LOOK);
        }
    }

    fn note(&mut self, at: Duration, kind: &str, says: String) {
        if kind == "file" {
            hint(&format!("warning: {says}"));
        }
        if self.notes.len() < MOST_NOTES {
            self.notes.push(Event {
                at_s: at.as_secs_f64(),
                kind: kind.to_owned(),
                users: self.controller.users(),
                says,
            });
        }
    }

    /// Takes what the load came to. A client that failed takes nothing from what was seen until then.
    fn finish(&mut self, run: SteeredRun, pairing: Pairing) {
        let at = run.running.start.elapsed();
        let (outcome, summed) = run.finish();
        let fault = match &summed {
            Ok(summed) => summed.fault.as_ref().map(ToString::to_string),
            Err(error) => Some(error.to_string()),
        };
        if let Some(says) = fault {
            self.broken.insert(REQUESTS, says.clone());
            self.note(at, "file", says);
        }
        let mut after = match outcome {
            Ok(outcome) => self.outcome(&outcome, at),
            Err(error) => {
                self.note(at, "load", error.to_string());
                After {
                    void: Some(format!("the load failed: {error}")),
                    ..After::default()
                }
            }
        };
        let span = self.measured_span();
        match pairing.finish(span, &self.telemetry) {
            Ok((overhead, series, missing)) => {
                if let Some(says) = missing {
                    self.note(at, "overhead", says);
                }
                (after.overhead, after.series) = (overhead, series);
            }
            Err(says) => self.note(at, "overhead", says),
        }
        self.after = Some(after);
    }

    fn outcome(&mut self, outcome: &Outcome, at: Duration) -> After {
        // What was cut by an end in haste is nobody's fault.
        if matches!(self.controller.course().ending, Some(Ending::Completed)) {
            let mut observed = lock(&self.observed);
            for (profile, outcome) in outcome.profiles.iter().enumerate() {
                observed.left(profile, Phase::Soak.word(), outcome.observations.left);
            }
        }
        let certificate = outcome.certificate();
        let fit = certificate.as_ref().map(|certificate| certificate.verdict);
        let seconds = outcome
            .measured
            .as_secs_f64()
            .max(at.as_secs_f64())
            .max(1e-9);
        let total = outcome.total();
        let said = total.said.iter();
        let said = said.map(|(failure, said)| (failure.to_string(), said.clone()));
        let lag = total.quantiles(Measure::Lag);
        #[expect(clippy::cast_precision_loss, reason = "microseconds below 2^53")]
        let s = |us: u64| us as f64 / 1e6;
        let generator = Generator {
            threads: 1,
            cores: outcome.client_cpu.as_secs_f64() / seconds,
            lag: lag.map(|lag| document::Quantiles {
                count: total.histogram(Measure::Lag).len(),
                mean: total.histogram(Measure::Lag).mean() / 1e6,
                p50: s(lag.p50),
                p90: s(lag.p90),
                p95: s(lag.p95),
                p99: s(lag.p99),
                p999: s(lag.p999),
                max: s(lag.max),
            }),
            rows_lost: outcome.records_lost,
            verdict: fit.map_or("unproven", Fit::word).to_owned(),
        };
        After {
            certificate: certificate
                .and_then(|certificate| serde_json::to_value(&certificate).ok()),
            void: void(fit, outcome.records_lost),
            generator: Some(generator),
            said: said.collect(),
            ..After::default()
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

    fn document(mut self, options: &Options) -> Document {
        let observed = lock(&self.observed);
        let after = self.after.take();
        let profiles = self.prepared.steered.profiles.iter();
        let profiles = profiles.map(|profile| ProfilePart {
            name: profile.name.clone(),
            law: profile.law.clone(),
            weight: profile.weight,
        });
        let mut course = self.controller.course().clone();
        if after.is_none() {
            // A suite that failed let nothing begin.
            course = Course::default();
        } else if self.is_cut {
            course.ending = Some(Ending::Interrupted);
        }
        let plan: &Plan = self.controller.plan();
        let under_test = self.prepared.under_test();
        let about = about(
            &self.prepared.scenario,
            self.started,
            self.now.seconds,
            under_test,
        );
        let mut reproduce: Reproduce = self.prepared.reproduce(options);
        reproduce
            .files
            .retain(|file| !self.broken.contains_key(&**file));
        let after = after.unwrap_or_default();
        let evidence = self.broken.values().next().map(|says| not_whole(says));
        let fit = after.void.or(evidence).map_or(Ok(()), Err);
        let is_verified = self.verified.is_some();
        let remarks = (!is_verified).then(|| UNVERIFIED.to_owned());
        summary::document(Parts {
            scenario: &self.prepared.scenario,
            about,
            course: &course,
            plan,
            telemetry: &self.telemetry,
            observed: &observed,
            profiles: profiles.collect(),
            certificate: after.certificate,
            generator: after.generator,
            overhead: after.overhead,
            series: after.series,
            tokens: self.gate_pages.tokens(),
            prefix_cache: PrefixCache {
                predicted: Some(self.prepared.steered.corpus.predicted_hit_rate),
                sessions: Some(self.prepared.steered.corpus.sessions),
                unique_sessions: observed.unique_sessions(),
                ..PrefixCache::default()
            },
            verify: self.verified.clone(),
            said: after.said,
            reproduce,
            notes: self.notes.clone(),
            remarks: remarks.into_iter().collect(),
            generator_fit: fit,
        })
    }
}

/// Why no figure counts, of what is known of the generator itself.
fn void(fit: Option<Fit>, rows_lost: u64) -> Option<String> {
    match fit {
        Some(Fit::Void) => Some("the generator could not keep up: no figure counts".to_owned()),
        Some(Fit::Failed) => Some("what was sent has not the law that was asked for".to_owned()),
        None => Some("bug: a campaign was not certified".to_owned()),
        // Errors may be among them: a share of what is left is no share of all.
        Some(Fit::Good | Fit::Unproven) => (rows_lost > 0)
            .then(|| format!("{rows_lost} rows of requests found no room: no figure counts")),
    }
}

fn lock(observed: &Mutex<Observed>) -> MutexGuard<'_, Observed> {
    observed.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ended(row: &Record) -> Ended {
    let at = Duration::from_nanos;
    Ended {
        profile: usize::try_from(row.profile).unwrap_or(usize::MAX),
        session: Some(row.session),
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

#[cfg(test)]
mod tests {
    //! What makes the figures of a generator void.

    use super::*;

    #[test]
    fn rows_that_found_no_room_void_a_campaign_whatever_its_certificate_says() {
        assert_eq!(void(Some(Fit::Good), 0), None);
        let lost = void(Some(Fit::Good), 4096).expect("void");
        assert!(lost.contains("4096 rows"), "{lost}");
        for fit in [Some(Fit::Void), Some(Fit::Failed), None] {
            assert!(void(fit, 0).is_some(), "{fit:?}");
        }
    }
}
