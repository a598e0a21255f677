//! The document of a campaign, from what was decided, what was scraped and what users had.
//!
//! Invariant: the same for both clocks; a figure that was not measured is `None`.
//! Not here: measuring, pages, and what is asked (`queries`).

mod objectives;
mod series;
mod verdict;

use std::collections::BTreeMap;
use std::time::Duration;

use experiment::campaign::{Course, Ending, Phase as CoursePhase, PhaseSpan, Plan, Threshold};
use experiment::telemetry::{Query, Span, Telemetry};

use super::observed::{Cells, Observed};
use super::queries::{
    GPU_BUSY, HIT_SHARE, KV, KV_MOST, LATENCIES, LOOKED_UP, NVLINK_RX, NVLINK_TX, OUTPUT, POWER,
    POWER_OF_ONE, PREEMPTIONS, RUNNING, WAITING, ask, nvlink_by_counters, ttft, ttft_gate,
};
use super::scenario::Scenario;
use crate::report::document::{
    Document, Event, Generator, Hardware, Latency, Overhead, Phase, PrefixCache, Profile,
    Published, Quantiles, Reproduce, Scenario as About, Series, Soak, Step, Tokens, VERSION,
    Verified,
};
use crate::scrape::names::NVLINK_CONVENTION;

/// What the document is made of.
pub(super) struct Parts<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) about: About,
    pub(super) course: &'a Course,
    pub(super) telemetry: &'a Telemetry,
    pub(super) observed: &'a Observed,
    pub(super) profiles: Vec<ProfilePart>,
    pub(super) certificate: Option<serde_json::Value>,
    pub(super) generator: Option<Generator>,
    pub(super) overhead: Option<Overhead>,
    /// Series that come from elsewhere.
    pub(super) series: BTreeMap<String, Series>,
    pub(super) tokens: Vec<Tokens>,
    pub(super) prefix_cache: PrefixCache,
    pub(super) verify: Option<Verified>,
    pub(super) said: BTreeMap<String, String>,
    pub(super) reproduce: Reproduce,
    /// Events of the host, such as a target that answers with a page for people.
    pub(super) notes: Vec<Event>,
    /// What a reader of the verdict has to know besides, such as what was not verified.
    pub(super) remarks: Vec<String>,
    /// Whether the generator kept up; `Err` says why no figure counts.
    pub(super) generator_fit: Result<(), String>,
    /// The least share of sessions that are no repetition, where one was asked for.
    pub(super) strict: Option<f64>,
}

impl<'a> Parts<'a> {
    /// What each campaign has, though nothing was loaded; what else was measured is put beside it.
    pub(super) fn new(
        scenario: &'a Scenario,
        about: About,
        course: &'a Course,
        telemetry: &'a Telemetry,
        observed: &'a Observed,
        reproduce: Reproduce,
    ) -> Self {
        Self {
            scenario,
            about,
            course,
            telemetry,
            observed,
            profiles: Vec::new(),
            certificate: None,
            generator: None,
            overhead: None,
            series: BTreeMap::new(),
            tokens: Vec::new(),
            prefix_cache: PrefixCache::default(),
            verify: None,
            said: BTreeMap::new(),
            reproduce,
            notes: Vec::new(),
            remarks: Vec::new(),
            generator_fit: Ok(()),
            strict: None,
        }
    }

    /// What was asked for.
    const fn plan(&self) -> &'a Plan {
        &self.scenario.plan
    }
}

/// What is known of a profile before it was run.
#[derive(Debug, Clone)]
pub(super) struct ProfilePart {
    pub(super) name: String,
    pub(super) law: String,
    pub(super) weight: f64,
}

/// All that is known, whatever it came to.
pub(super) fn document(parts: Parts<'_>) -> Document {
    let spans = spans(parts.course);
    // The soak, or the last phase that there was.
    let main = parts
        .course
        .span(CoursePhase::Soak)
        .or(spans.last().copied());
    let baseline = parts.course.span(CoursePhase::Baseline);
    let view = View {
        ttft: ttft(parts.plan()),
        parts: &parts,
    };
    // Without a soak they were not measured.
    let objectives = view.objectives(parts.course.span(CoursePhase::Soak));
    let soak = parts
        .course
        .span(CoursePhase::Soak)
        .map(|span| view.soak(span));
    let (verdict, reason) = view.verdict(&objectives);
    let t3 = matches!(parts.course.ending, Some(Ending::Aborted(_)));
    let mut document = Document {
        version: VERSION,
        verdict,
        reason,
        reservations: Vec::new(),
        baseline_ttft_ms: baseline.and_then(|span| view.baseline_ttft_ms(span)),
        t2_users: parts.course.t2_users,
        t3,
        soak,
        phases: spans.iter().map(|span| view.phase(*span)).collect(),
        latency: main.map_or_else(Vec::new, |span| view.latency(span)),
        steps: view.steps(baseline),
        events: view.events(),
        ttft_limit_s: view.ttft_limit_s(),
        series: view.series(),
        overhead: parts.overhead.clone(),
        profiles: main.map_or_else(Vec::new, |span| view.profiles(span)),
        certificate: parts.certificate.clone(),
        generator: parts.generator.clone(),
        tokens: parts.tokens.clone(),
        prefix_cache: view.prefix_cache(main, spans.last().copied()),
        errors: view.errors(),
        verify: parts.verify.clone(),
        objectives,
        published: Vec::new(),
        hardware: main.map_or_else(Hardware::default, |span| view.hardware(span)),
        scenario: parts.about.clone(),
        reproduce: parts.reproduce.clone(),
    };
    document.reservations = document.found_reservations();
    document
        .reproduce
        .files
        .insert(0, document.evidence().file("json"));
    document.published = published(parts.scenario, &document);
    document
}

/// Phases that took time.
fn spans(course: &Course) -> Vec<PhaseSpan> {
    let spans = course.phases.iter().copied();
    spans.filter(|span| span.to > span.from).collect()
}

fn seconds(span: PhaseSpan) -> f64 {
    span.to.saturating_sub(span.from).as_secs_f64()
}

const fn of(span: PhaseSpan) -> Span {
    Span {
        from: span.from,
        to: span.to,
    }
}

/// What is published beside what we have.
fn published(scenario: &Scenario, document: &Document) -> Vec<Published> {
    let json = serde_json::to_value(document).unwrap_or_default();
    let published = scenario.published.iter().map(|figure| Published {
        name: figure.name.clone(),
        unit: figure.unit.clone(),
        published: figure.value,
        ours: super::published::figure(&json, &figure.figure).map(|ours| ours * figure.scale),
        note: figure.note.clone(),
    });
    published.collect()
}

struct View<'a> {
    parts: &'a Parts<'a>,
    /// What is asked for time to first token.
    ttft: Query,
}

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
impl View<'_> {
    fn asked(&self, query: &str, span: Span) -> Option<f64> {
        self.parts.telemetry.ask(&ask(query), span)
    }

    fn counted(&self, query: &str, span: Span) -> Option<u64> {
        self.asked(query, span).map(|value| value.round() as u64)
    }

    /// What all users had in a phase.
    fn cells(&self, span: PhaseSpan) -> Option<Cells> {
        Some(Cells::sum(self.parts.observed.cells(span.phase.word())?))
    }

    fn baseline_ttft_ms(&self, span: PhaseSpan) -> Option<f64> {
        let ttft = self.ttft_gates_baseline();
        let measured = Span {
            from: span.from + self.parts.plan().baseline.warm_up,
            to: span.to,
        };
        let ttft = ttft.or_else(|| self.parts.telemetry.ask(&self.ttft, measured));
        ttft.map(|seconds| seconds * 1e3)
    }

    fn ttft_gates_baseline(&self) -> Option<f64> {
        let (at, _) = ttft_gate(self.parts.plan())?;
        self.parts.course.baselines.get(at)?.1
    }

    /// The line that TTFT has to pass.
    fn ttft_limit_s(&self) -> Option<f64> {
        let (_, gate) = ttft_gate(self.parts.plan())?;
        match gate.threshold {
            Threshold::TimesBaseline(factor) => Some(factor * self.ttft_gates_baseline()?),
            Threshold::Above(_) => None,
        }
    }

    fn soak(&self, span: PhaseSpan) -> Soak {
        let cells = self.cells(span);
        let answered = cells.as_ref().map_or(0, |cells| cells.answered);
        let engine = |row: usize| self.asked(LATENCIES[row].1, of(span));
        let client = |times: fn(&Cells) -> Option<Quantiles>| {
            cells.as_ref().and_then(times).map(|times| times.mean)
        };
        Soak {
            users: self.users_in(span),
            seconds: seconds(span),
            requests: answered,
            ttft_ms: self
                .parts
                .telemetry
                .ask(&self.ttft, of(span))
                .or_else(|| client(|cells| cells.first.quantiles()))
                .map(|s| s * 1e3),
            tpot_ms: engine(1)
                .or_else(|| client(|cells| cells.per_token.quantiles()))
                .map(|s| s * 1e3),
            e2e_s: client(|cells| cells.whole.quantiles()).or_else(|| engine(5)),
            requests_per_second: answered as f64 / seconds(span).max(1e-9),
            kv_cache: self.asked(KV, of(span)),
            preemptions: self.counted(PREEMPTIONS, of(span)),
        }
    }

    /// The most that were at work.
    fn users_in(&self, span: PhaseSpan) -> u32 {
        let events = self.parts.course.events.iter();
        let in_it = events
            .clone()
            .filter(|e| e.at > span.from && e.at < span.to);
        let before = events.rev().find(|event| event.at <= span.from);
        let all = in_it.chain(before).map(|event| event.users);
        all.max().unwrap_or(0)
    }

    fn phase(&self, span: PhaseSpan) -> Phase {
        let cells = self.cells(span);
        let (answered, errors) = cells.map_or((0, 0), |cells| (cells.answered, cells.errors));
        let requests = answered + errors;
        let rate = answered as f64 / seconds(span).max(1e-9);
        let length = span.to.saturating_sub(span.from);
        Phase {
            name: span.phase.word().to_owned(),
            from_s: span.from.as_secs_f64(),
            to_s: span.to.as_secs_f64(),
            max_users: self.users_in(span),
            requests,
            requests_per_s: rate,
            // A phase that ten seconds do not divide may have no ten seconds as good as the whole.
            peak_requests_per_s: self
                .parts
                .observed
                .peak(span.phase.word(), length)
                .max(rate),
            errors,
            error_share: errors as f64 / (requests.max(1)) as f64,
        }
    }

    fn latency(&self, span: PhaseSpan) -> Vec<Latency> {
        let cells = self.cells(span);
        let rows = LATENCIES.iter().map(|(measure, query)| Latency {
            measure: (*measure).to_owned(),
            engine_mean_s: self.asked(query, of(span)),
            client: cells.as_ref().and_then(|cells| match *measure {
                "TTFT" => cells.first.quantiles(),
                "TPOT" => cells.per_token.quantiles(),
                "E2E" => cells.whole.quantiles(),
                _ => None,
            }),
        });
        rows.collect()
    }

    fn steps(&self, baseline: Option<PhaseSpan>) -> Vec<Step> {
        let course = self.parts.course;
        let first = baseline.map(|span| {
            let warm_up = self.parts.plan().baseline.warm_up;
            let users = self.parts.plan().baseline.users;
            let span = Span {
                from: span.from + warm_up,
                to: span.to,
            };
            self.step(users, span, true, "baseline".into())
        });
        let steps = course.steps.iter().map(|step| {
            let span = Span {
                from: step.from,
                to: step.to,
            };
            self.step(step.users, span, step.is_stable, step.says.clone())
        });
        first.into_iter().chain(steps).collect()
    }

    fn step(&self, users: u32, span: Span, is_stable: bool, says: String) -> Step {
        let seen = self.parts.observed.window_at(span.from);
        let length = span.to.saturating_sub(span.from).as_secs_f64().max(1e-9);
        let seen = seen.as_ref();
        let requests = seen.map_or(0, |seen| seen.answered);
        let first = seen.and_then(|seen| seen.first);
        let output = seen
            .map(|seen| seen.output_tokens / length)
            .filter(|rate| *rate > 0.0);
        Step {
            users,
            from_s: span.from.as_secs_f64(),
            to_s: span.to.as_secs_f64(),
            requests,
            requests_per_s: requests as f64 / length,
            output_tokens_per_s: self.asked(OUTPUT, span).or(output),
            ttft_mean_s: self
                .parts
                .telemetry
                .ask(&self.ttft, span)
                .or(first.map(|q| q.mean)),
            ttft_p50_s: first.map(|q| q.p50),
            ttft_p99_s: first.map(|q| q.p99),
            tpot_mean_s: seen.and_then(|seen| seen.per_token).map(|q| q.mean),
            e2e_mean_s: seen.and_then(|seen| seen.whole).map(|q| q.mean),
            kv_cache: self.asked(KV, span),
            running: self.asked(RUNNING, span),
            waiting: self.asked(WAITING, span),
            preemptions: self.counted(PREEMPTIONS, span),
            errors: seen.map_or(0, |seen| seen.errors),
            is_stable,
            says,
        }
    }

    fn events(&self) -> Vec<Event> {
        let decided = self.parts.course.events.iter().map(|event| Event {
            at_s: event.at.as_secs_f64(),
            kind: event.kind.word().to_owned(),
            users: event.users,
            says: event.says.clone(),
        });
        let mut events: Vec<Event> = decided.chain(self.parts.notes.iter().cloned()).collect();
        events.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        events
    }

    fn nvlink(&self, span: Span) -> Option<f64> {
        let rates = self.asked(NVLINK_TX, span).zip(self.asked(NVLINK_RX, span));
        let by_counters = || self.parts.telemetry.ask(&nvlink_by_counters(), span);
        rates.map(|(tx, rx)| tx + rx).or_else(by_counters)
    }

    fn gpus(&self, span: Span) -> Option<u32> {
        let (all, one) = (self.asked(POWER, span)?, self.asked(POWER_OF_ONE, span)?);
        (one > 0.0).then(|| (all / one).round() as u32)
    }

    fn profiles(&self, span: PhaseSpan) -> Vec<Profile> {
        let Some(cells) = self.parts.observed.cells(span.phase.word()) else {
            return Vec::new();
        };
        let weights: Vec<f64> = self.parts.profiles.iter().map(|part| part.weight).collect();
        let users = experiment::workload::apportion(self.users_in(span), &weights);
        let parts = self.parts.profiles.iter().zip(cells).zip(users);
        let profiles = parts.map(|((part, cells), users)| {
            let mean = |sum: u64| (cells.reported > 0).then(|| sum as f64 / cells.reported as f64);
            Profile {
                name: part.name.clone(),
                law: part.law.clone(),
                users,
                requests: cells.answered + cells.errors,
                requests_per_s: cells.answered as f64 / seconds(span).max(1e-9),
                errors: cells.errors,
                prompt_tokens_mean: mean(cells.prompt_tokens),
                output_tokens_mean: mean(cells.output_tokens),
                // In a ramp users come back after their absence.
                think_mean_s: (cells.pauses > 0 && span.phase == CoursePhase::Soak)
                    .then(|| cells.pauses_s / cells.pauses as f64),
                ttft: cells.first.quantiles(),
                tpot: cells.per_token.quantiles(),
                e2e: cells.whole.quantiles(),
                cached_share: (cells.cached_of > 0)
                    .then(|| cells.cached_tokens as f64 / cells.cached_of as f64),
            }
        });
        profiles.collect()
    }

    fn prefix_cache(&self, main: Option<PhaseSpan>, last: Option<PhaseSpan>) -> PrefixCache {
        let hits = |span: Span| {
            self.asked(LOOKED_UP, span).filter(|n| *n > 0.0)?;
            self.asked(HIT_SHARE, span)
        };
        let all = last.map(|last| Span {
            from: Duration::ZERO,
            to: last.to,
        });
        PrefixCache {
            measured: main.and_then(|span| hits(of(span))),
            measured_throughout: all.and_then(hits),
            ..self.parts.prefix_cache.clone()
        }
    }

    fn errors(&self) -> Vec<crate::report::document::Errors> {
        let mut errors = self.parts.observed.errors();
        for error in &mut errors {
            error.says = self.parts.said.get(&error.kind).cloned();
        }
        errors
    }

    fn hardware(&self, span: PhaseSpan) -> Hardware {
        Hardware {
            kv_cache_mean: self.asked(KV, of(span)),
            kv_cache_max: self.asked(KV_MOST, of(span)),
            nvlink_bytes_per_s: self.nvlink(of(span)),
            nvlink_convention: NVLINK_CONVENTION.to_owned(),
            gpu_utilisation: self
                .asked(GPU_BUSY, of(span))
                .map(|percent| percent / 100.0),
            power_w: self.asked(POWER, of(span)),
            gpus: self.gpus(of(span)),
        }
    }
}
