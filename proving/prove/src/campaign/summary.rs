//! The document of a campaign, from what was decided, what was scraped and what users had.
//!
//! Invariant: the same for both clocks; a figure that was not measured is `None`.
//! Not here: measuring, and pages.

use std::collections::BTreeMap;
use std::time::Duration;

use experiment::campaign::{
    Course, Ending, Gate, Phase as CoursePhase, PhaseSpan, Plan, Then, Threshold,
};
use experiment::telemetry::{Query, Span, Telemetry};

use super::live::clock;
use super::observed::{Cells, Observed};
use super::scenario::Scenario;
use crate::report::document::{
    Document, Event, Generator, Hardware, Latency, Objective, Overhead, Phase, PrefixCache,
    Profile, Published, Quantiles, Reproduce, Scenario as About, Series, Soak, Step, Tokens,
    VERSION, Verdict, Verified,
};
use crate::scrape::names::{NVLINK, NVLINK_CONVENTION};

/// Points of a series at most.
const MOST_POINTS: usize = 1_800;
/// Over which a point of a series is taken, at least.
const POINT: Duration = Duration::from_secs(10);

/// Time to first token, as engines tell it.
pub(super) const TTFT: &str = "mean(engine:vllm:time_to_first_token_seconds)";

/// What engines are asked, and the row of Table 2 that it fills.
const LATENCIES: [(&str, &str); 6] = [
    ("TTFT", TTFT),
    (
        "TPOT",
        "mean(engine:vllm:request_time_per_output_token_seconds)",
    ),
    ("ITL", "mean(engine:vllm:inter_token_latency_seconds)"),
    ("queue", "mean(engine:vllm:request_queue_time_seconds)"),
    ("prefill", "mean(engine:vllm:request_prefill_time_seconds)"),
    ("E2E", "mean(engine:vllm:e2e_request_latency_seconds)"),
];
const KV: &str = "avg(engine:vllm:kv_cache_usage_perc)";
const KV_MOST: &str = "max(engine:vllm:kv_cache_usage_perc)";
const PREEMPTIONS: &str = "increase(engine:vllm:num_preemptions_total)";
const RUNNING: &str = "sum(engine:vllm:num_requests_running)";
const WAITING: &str = "sum(engine:vllm:num_requests_waiting)";
const OUTPUT: &str = "rate(engine:vllm:generation_tokens_total)";
const HITS: &str = "increase(engine:vllm:prefix_cache_hits_total)";
const LOOKED_UP: &str = "increase(engine:vllm:prefix_cache_queries_total)";
const NVLINK_TX: &str = "sum(gpu:DCGM_FI_PROF_NVLINK_TX_BYTES)";
const NVLINK_RX: &str = "sum(gpu:DCGM_FI_PROF_NVLINK_RX_BYTES)";
const GPU_BUSY: &str = "avg(gpu:DCGM_FI_DEV_GPU_UTIL)";
const POWER: &str = "sum(gpu:DCGM_FI_DEV_POWER_USAGE)";
/// Of one GPU: the sum over it is how many there are.
const POWER_OF_ONE: &str = "avg(gpu:DCGM_FI_DEV_POWER_USAGE)";
/// What the kernel's scheduler did to the gateway's cgroup.
pub(super) const PERIODS: &str = "increase(cgroup:periods_total)";
pub(super) const THROTTLED: &str = "increase(cgroup:throttled_periods_total)";
pub(super) const THROTTLED_S: &str = "increase(cgroup:throttled_seconds_total)";
/// What our gate says of its own time.
pub(super) const GATE_OWN: &str = "mean(gateway:tollgate_overhead_seconds)";

/// What the document is made of.
pub(super) struct Parts<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) about: About,
    pub(super) course: &'a Course,
    pub(super) plan: &'a Plan,
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
}

/// What is known of a profile before it was run.
#[derive(Debug, Clone)]
pub(super) struct ProfilePart {
    pub(super) name: String,
    pub(super) law: String,
    pub(super) weight: f64,
}

/// All queries that a document asks, besides those of gates and objectives.
pub(super) fn queries() -> Vec<Query> {
    let latencies = LATENCIES.iter().map(|(_, query)| *query);
    let others = [
        KV,
        KV_MOST,
        PREEMPTIONS,
        RUNNING,
        WAITING,
        OUTPUT,
        HITS,
        LOOKED_UP,
        NVLINK_TX,
        NVLINK_RX,
        GPU_BUSY,
        POWER,
        POWER_OF_ONE,
        GATE_OWN,
        PERIODS,
        THROTTLED,
        THROTTLED_S,
    ];
    let named = latencies.chain(others).map(ask);
    named.chain([nvlink_by_counters()]).collect()
}

/// Where an exporter has no rates of NVLink, its counters' growth is under a name of ours.
fn nvlink_by_counters() -> Query {
    ask(&format!("sum(gpu:{NVLINK})"))
}

/// The gate that finds the saturation point, if it is a mean time to first token, whoever says it.
pub(super) fn ttft_gate(plan: &Plan) -> Option<(usize, &Gate)> {
    let is_ttft = |metric: &str| {
        let of_token = metric.contains("time_to_first_token") || metric.contains("ttft");
        of_token && metric.ends_with("_seconds")
    };
    let gate = plan.saturation_gate();
    gate.filter(|(_, gate)| matches!(&gate.query, Query::Mean(of) if is_ttft(&of.metric)))
}

/// What is asked for time to first token: what the gate asks that finds the saturation point, or else the engine.
pub(super) fn ttft(plan: &Plan) -> Query {
    let gate = ttft_gate(plan).map(|(_, gate)| gate.query.clone());
    gate.unwrap_or_else(|| ask(TTFT))
}

fn ask(query: &str) -> Query {
    query.parse().expect("a query that is written here")
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
        ttft: ttft(parts.plan),
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
        prefix_cache: view.prefix_cache(main),
        errors: view.errors(),
        verify: parts.verify.clone(),
        objectives,
        published: Vec::new(),
        hardware: main.map_or_else(Hardware::default, |span| view.hardware(span)),
        scenario: parts.about.clone(),
        reproduce: parts.reproduce.clone(),
    };
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
        ours: json
            .pointer(&figure.figure)
            .and_then(serde_json::Value::as_f64)
            .map(|ours| ours * figure.scale),
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
            from: span.from + self.parts.plan.baseline.warm_up,
            to: span.to,
        };
        let ttft = ttft.or_else(|| self.parts.telemetry.ask(&self.ttft, measured));
        ttft.map(|seconds| seconds * 1e3)
    }

    fn ttft_gates_baseline(&self) -> Option<f64> {
        let (at, _) = ttft_gate(self.parts.plan)?;
        self.parts.course.baselines.get(at)?.1
    }

    /// The line that TTFT has to pass.
    fn ttft_limit_s(&self) -> Option<f64> {
        let (_, gate) = ttft_gate(self.parts.plan)?;
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
        Phase {
            name: span.phase.word().to_owned(),
            from_s: span.from.as_secs_f64(),
            to_s: span.to.as_secs_f64(),
            max_users: self.users_in(span),
            requests,
            requests_per_s: answered as f64 / seconds(span).max(1e-9),
            peak_requests_per_s: self.parts.observed.peak(of(span)),
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
            let warm_up = self.parts.plan.baseline.warm_up;
            let users = self.parts.plan.baseline.users;
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
            .map(|seen| seen.output_tokens as f64 / length)
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

    fn series(&self) -> BTreeMap<String, Series> {
        let end = self
            .parts
            .course
            .phases
            .last()
            .map_or(Duration::ZERO, |p| p.to);
        let points = (end.as_secs() as usize / POINT.as_secs() as usize).clamp(1, MOST_POINTS);
        let every = (end / u32::try_from(points).unwrap_or(1)).max(Duration::from_secs(1));
        let width = every.max(POINT);
        let mut all = self.parts.series.clone();
        let mut add =
            |name: &str, unit: &str, source: &str, value: &dyn Fn(Span) -> Option<f64>| {
                let mut series = Series {
                    unit: unit.to_owned(),
                    source: source.to_owned(),
                    points: Vec::new(),
                };
                for at in 1..=points {
                    let to = every * u32::try_from(at).unwrap_or(1);
                    let span = Span {
                        from: to.saturating_sub(width),
                        to,
                    };
                    series.points.push((to.as_secs_f64(), value(span)));
                }
                if series.points.iter().any(|(_, value)| value.is_some()) {
                    all.insert(name.to_owned(), series);
                }
            };
        let ttft = self.ttft.to_string();
        for (name, unit, query) in [
            ("ttft_s", "s", &*ttft),
            ("kv_cache", "share", KV),
            ("preemptions", "in the interval", PREEMPTIONS),
            ("running", "requests", RUNNING),
            ("waiting", "requests", WAITING),
            ("gpu_utilisation", "%", GPU_BUSY),
            ("power_w", "W", POWER),
        ] {
            add(name, unit, query, &|span| self.asked(query, span));
        }
        let nvlink = format!(
            "{NVLINK_TX} + {NVLINK_RX}, or what their counters grew by; {NVLINK_CONVENTION}"
        );
        add("nvlink_bytes_per_s", "B/s", &nvlink, &|span| {
            self.nvlink(span)
        });
        add("users", "users", "as the controller asked", &|span| {
            Some(f64::from(self.users_at(span.to)))
        });
        let observed = self.parts.observed;
        add("requests_per_s", "requests/s", "client", &|span| {
            Some(observed.rates(span).0)
        });
        add("errors_per_s", "errors/s", "client", &|span| {
            Some(observed.rates(span).1)
        });
        all
    }

    fn users_at(&self, at: Duration) -> u32 {
        let mut events = self.parts.course.events.iter().rev();
        events
            .find(|event| event.at <= at)
            .map_or(0, |event| event.users)
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
            let whole = cells.whole.quantiles();
            // A closed loop: users over rate is the time of a cycle, whose rest is the pause.
            let cycle_s = f64::from(users) * seconds(span) / cells.answered.max(1) as f64;
            Profile {
                name: part.name.clone(),
                law: part.law.clone(),
                users,
                requests: cells.answered + cells.errors,
                requests_per_s: cells.answered as f64 / seconds(span).max(1e-9),
                errors: cells.errors,
                prompt_tokens_mean: mean(cells.prompt_tokens),
                output_tokens_mean: mean(cells.output_tokens),
                think_mean_s: whole
                    .map(|whole| cycle_s - whole.mean)
                    .filter(|_| cells.answered > 0 && users > 0 && span.phase == CoursePhase::Soak),
                ttft: cells.first.quantiles(),
                tpot: cells.per_token.quantiles(),
                e2e: whole,
                cached_share: (cells.cached_of > 0)
                    .then(|| cells.cached_tokens as f64 / cells.cached_of as f64),
            }
        });
        profiles.collect()
    }

    fn prefix_cache(&self, main: Option<PhaseSpan>) -> PrefixCache {
        let measured = main.and_then(|span| {
            let looked_up = self.asked(LOOKED_UP, of(span)).filter(|n| *n > 0.0)?;
            Some(self.asked(HITS, of(span))? / looked_up)
        });
        PrefixCache {
            measured,
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

    /// Those of the scenario, and that no gate of the ramp would have been open; none without a soak.
    fn objectives(&self, soak: Option<PhaseSpan>) -> Vec<Objective> {
        let Some(soak) = soak.map(of) else {
            return Vec::new();
        };
        let gates = self.parts.plan.gates.iter().enumerate();
        let limits = gates
            .filter(|(_, gate)| gate.then == Then::Retract)
            .filter_map(|(at, gate)| {
                let limit = match gate.threshold {
                    Threshold::Above(limit) => limit,
                    Threshold::TimesBaseline(factor) => {
                        factor * self.parts.course.baselines.get(at)?.1?
                    }
                };
                // Not the mean of all of it, in which minutes of saturation are lost: the ramp's own rule.
                let sustained = self.parts.course.soak.get(at).and_then(|(_, most)| *most);
                let value = self.measured(&gate.query, soak).and(sustained);
                let says = match gate.windows {
                    1 => "of any window".to_owned(),
                    n => format!("held for {n} consecutive windows"),
                };
                let name = format!("{} stays closed: the most {says}", gate.name);
                Some((name, &gate.query, limit, value))
            });
        let own = self.parts.scenario.objectives.iter().map(|own| {
            let value = self.measured(&own.query, soak);
            (own.name.clone(), &own.query, own.below, value)
        });
        let objectives = own
            .chain(limits)
            .map(|(name, query, limit, value)| Objective {
                name,
                query: query.to_string(),
                limit,
                value,
                kept: value.is_some_and(|value| value <= limit),
            });
        objectives.collect()
    }

    /// The answer of what was heard throughout; of a target that was silent, or a metric that was gone from its page, for
    /// too long there is none.
    fn measured(&self, query: &Query, span: Span) -> Option<f64> {
        let telemetry = self.parts.telemetry;
        let patience = self.parts.plan.patience;
        let mut selectors = query.selectors().into_iter();
        let is_there = selectors.all(|of| telemetry.longest_absence(&of, span) <= patience);
        is_there.then(|| telemetry.ask(query, span)).flatten()
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

    /// How it ended, and what gates asked for that was never there.
    fn ended(&self) -> String {
        let ending = self.parts.course.ending.as_ref();
        let says = ending.map(ToString::to_string).unwrap_or_default();
        let gates = self.parts.plan.gates.iter();
        let missing = gates.flat_map(|gate| self.parts.telemetry.missing(&gate.query));
        let missing: Vec<String> = missing.map(|selector| selector.to_string()).collect();
        // Of what was not even begun nothing was heard.
        if missing.is_empty() || self.parts.course.phases.is_empty() {
            return says;
        }
        format!("{says}; no sample had {}", missing.join(", "))
    }

    /// With what a reader has to know besides.
    fn verdict(&self, objectives: &[Objective]) -> (Verdict, String) {
        let (verdict, mut says) = self.bare_verdict(objectives);
        if matches!(
            verdict,
            Verdict::Passed | Verdict::SloFailed | Verdict::T3Stop
        ) {
            for remark in &self.parts.remarks {
                says = format!("{says}; {remark}");
            }
        }
        (verdict, says)
    }

    fn bare_verdict(&self, objectives: &[Objective]) -> (Verdict, String) {
        let parts = self.parts;
        let ending = parts.course.ending.as_ref();
        let failed = parts.verify.as_ref().map_or(0, |verify| verify.failed);
        // Where it has another end, that is why nothing was loaded.
        if failed > 0 && ending.is_none() {
            let says = format!("{failed} of the suite's cases failed; nothing was loaded");
            return (Verdict::VerifyFailed, says);
        }
        match ending {
            Some(Ending::Aborted(limit)) => {
                let says = format!(
                    "{} stopped the campaign at {} users: {:.4} is above {}",
                    limit.gate, limit.users, limit.value, limit.limit
                );
                return (Verdict::T3Stop, says);
            }
            Some(Ending::Interrupted) | None => {
                return (Verdict::Interrupted, "it was ended before its end".into());
            }
            Some(Ending::Lapsed(_) | Ending::Broken(_)) => {
                return (Verdict::GeneratorVoid, self.ended());
            }
            Some(Ending::NoBaseline) if parts.observed.counts().0 > 0 => {
                return (Verdict::SloFailed, self.ended());
            }
            Some(
                Ending::Unreachable
                | Ending::Unanswered(_)
                | Ending::NoBaseline
                | Ending::Failed(_),
            ) => {
                return (Verdict::Unreachable, self.ended());
            }
            Some(Ending::Completed | Ending::Held) => {}
        }
        if let Err(says) = &parts.generator_fit {
            return (Verdict::GeneratorVoid, says.clone());
        }
        if matches!(ending, Some(Ending::Held)) {
            let says = ending.map(ToString::to_string).unwrap_or_default();
            return (Verdict::SloFailed, says);
        }
        let soak = parts
            .course
            .span(CoursePhase::Soak)
            .map(|span| self.phase(span));
        if let Some(soak) = soak.as_ref().filter(|soak| soak.requests == 0) {
            let says = format!(
                "nobody had an answer in the soak of {:.0} s",
                soak.to_s - soak.from_s
            );
            return (Verdict::SloFailed, says);
        }
        let errors = soak.map_or(0.0, |soak| soak.error_share);
        if errors > parts.scenario.error_share {
            let says = format!(
                "{:.3} % of the soak's requests failed, more than {:.3} %",
                errors * 100.0,
                parts.scenario.error_share * 100.0
            );
            return (Verdict::SloFailed, says);
        }
        let missed: Vec<String> = objectives
            .iter()
            .filter(|objective| !objective.kept)
            .map(|objective| match objective.value {
                Some(value) => format!(
                    "{}: {value:.4} is above {}",
                    objective.name, objective.limit
                ),
                None => format!("{}: was not measured", objective.name),
            })
            .collect();
        if !missed.is_empty() {
            return (Verdict::SloFailed, missed.join("; "));
        }
        (Verdict::Passed, self.passed())
    }

    fn passed(&self) -> String {
        let course = self.parts.course;
        let soak = course.span(CoursePhase::Soak);
        let users = soak.map_or(0, |span| self.users_in(span));
        let held = clock(soak.map_or(0.0, seconds));
        match course.t2_users {
            Some(t2) => {
                format!("saturated at {t2} users, and held {users} for {held}")
            }
            None => format!(
                "not saturated by {} users, and held {users} for {held}",
                self.parts.plan.max_users
            ),
        }
    }
}
