//! What scrapes of engines, GPUs and client would show, second by second.
//!
//! Engines are numbered by label `engine`: the ranks of the first replica, then those of the next. Their times are
//! stamped as vLLM's front end does, from the arrival there to the token's way out.
//! Invariant: names, labels and units are those of the engine's own pages (vLLM 0.26, the DCGM exporter); a scrape has
//! every series from the first on, in one order.
//! Not here: pages as text (`engine`), what is asked of them (`experiment::telemetry`).

use std::time::Duration;

use experiment::telemetry::{Sample, Value};

use super::SCRAPE;
use crate::bounds::Bounds;
use crate::crowd::{Crowd, Ran, Sum, Told};
use crate::gpus::{Activity, Gpus, dcgm};
use crate::preset::Preset;
use crate::scheduler::SchedulerStats;

/// The machine that GPUs say they are in.
const HOSTNAME: &str = "simulated";

/// What all show.
pub(super) struct Meters {
    gpus: Gpus,
    bounds: Option<Bounds>,
    /// GPUs of one replica.
    of_replica: u32,
    activity: Vec<Activity>,
    client: Client,
    steps: u64,
    beyond_bounds: u64,
    /// `engine`, `gpu` and `client`, of which only moments and figures change.
    samples: [Sample; 3],
}

/// What the users' side counts.
#[derive(Default)]
struct Client {
    ttft: Sum,
    tpot: Sum,
    e2e: Sum,
}

type Series = (&'static str, Option<&'static str>, f64);

/// One engine's, in their order: the metric, `finished_reason` where it has one, and the figure.
fn of_engine(stats: &SchedulerStats, told: &Told) -> [Series; 29] {
    let totals = &stats.totals;
    let plain = |metric, value| (metric, None, value);
    let count = |metric, value: u64| (metric, None, value as f64);
    let ended = |reason, value: u64| {
        let metric = "vllm:request_success_total";
        (metric, Some(reason), value as f64)
    };
    [
        count("vllm:num_requests_running", stats.running as u64),
        count("vllm:num_requests_waiting", stats.waiting as u64),
        plain("vllm:kv_cache_usage_perc", stats.kv_usage),
        count("vllm:num_preemptions_total", totals.preemptions),
        count("vllm:prefix_cache_queries_total", totals.prefix_queries),
        count("vllm:prefix_cache_hits_total", totals.prefix_hits),
        count("vllm:prompt_tokens_total", totals.prompt_tokens),
        count(
            "vllm:prompt_tokens_cached_total",
            totals.prompt_tokens_cached,
        ),
        count("vllm:generation_tokens_total", totals.generation_tokens),
        ended("stop", totals.finished),
        ended("length", 0),
        ended("abort", totals.aborted),
        ended("error", 0),
        plain("vllm:time_to_first_token_seconds_sum", told.ttft.sum),
        count("vllm:time_to_first_token_seconds_count", told.ttft.count),
        plain("vllm:inter_token_latency_seconds_sum", told.inter_token.sum),
        count(
            "vllm:inter_token_latency_seconds_count",
            told.inter_token.count,
        ),
        plain(
            "vllm:request_time_per_output_token_seconds_sum",
            told.per_output_token.sum,
        ),
        count(
            "vllm:request_time_per_output_token_seconds_count",
            told.per_output_token.count,
        ),
        plain("vllm:e2e_request_latency_seconds_sum", told.e2e.sum),
        count("vllm:e2e_request_latency_seconds_count", told.e2e.count),
        plain("vllm:request_queue_time_seconds_sum", told.queue.sum),
        count("vllm:request_queue_time_seconds_count", told.queue.count),
        plain("vllm:request_prefill_time_seconds_sum", told.prefill.sum),
        count(
            "vllm:request_prefill_time_seconds_count",
            told.prefill.count,
        ),
        plain("vllm:request_decode_time_seconds_sum", told.decode.sum),
        count("vllm:request_decode_time_seconds_count", told.decode.count),
        plain(
            "vllm:request_inference_time_seconds_sum",
            told.inference.sum,
        ),
        count(
            "vllm:request_inference_time_seconds_count",
            told.inference.count,
        ),
    ]
}

impl Client {
    fn series(&self, users: u32) -> [(&'static str, f64); 12] {
        [
            ("ttft_seconds_sum", self.ttft.sum),
            ("ttft_seconds_count", self.ttft.count as f64),
            ("tpot_seconds_sum", self.tpot.sum),
            ("tpot_seconds_count", self.tpot.count as f64),
            ("e2e_seconds_sum", self.e2e.sum),
            ("e2e_seconds_count", self.e2e.count as f64),
            ("requests_total", self.e2e.count as f64),
            ("answered_total", self.e2e.count as f64),
            ("lag_seconds_sum", 0.0), // what is simulated is never late
            ("lag_seconds_count", self.e2e.count as f64),
            ("errors_total", 0.0), // what is simulated never fails
            ("users", f64::from(users)),
        ]
    }
}

impl Meters {
    pub(super) fn new(preset: &Preset, replicas: u32) -> Self {
        let (gpus, ranks) = (preset.gpus.clone(), preset.parallelism.data.max(1));
        let of_replica = gpus.count * ranks;
        let values = [
            engine_values(&preset.model, replicas * ranks),
            gpu_values(&gpus, replicas * of_replica),
            client_values(),
        ];
        let [engine, gpu, client] = values;
        let sample = |target: &str, values| Sample {
            at: Duration::ZERO,
            target: target.to_owned(),
            values,
        };
        Self {
            bounds: preset.bounds,
            of_replica,
            activity: vec![Activity::default(); replicas as usize],
            client: Client::default(),
            steps: 0,
            beyond_bounds: 0,
            samples: [
                sample("engine", engine),
                sample("gpu", gpu),
                sample("client", client),
            ],
            gpus,
        }
    }

    /// A step has run; its replica has so many groups.
    pub(super) fn record(&mut self, ran: &Ran, groups: usize) {
        let (took, tokens) = ran.iteration.on_each_rank(groups);
        if let Some(activity) = self.activity.get_mut(ran.replica) {
            activity.record(took, tokens);
        }
        self.steps += 1;
        let load = &ran.iteration.load;
        self.beyond_bounds += u64::from(self.bounds.is_some_and(|b| b.are_left_by(load)));
        // A user's times are counted with the whole answer, as a client does in real time.
        for answer in &ran.delivered.answers {
            self.client.ttft.add(answer.ttft_s());
            self.client.e2e.add(answer.e2e_s());
            if let Some(tpot) = answer.tpot_s() {
                self.client.tpot.add(tpot);
            }
        }
    }

    /// What a scrape shows now, a second after the one before.
    pub(super) fn sample(&mut self, at: Duration, crowd: &Crowd) -> &[Sample] {
        let engines = crowd.engines().zip(crowd.told());
        let engines =
            engines.flat_map(|(stats, told)| of_engine(&stats, told).map(|(_, _, value)| value));
        let span = SCRAPE.min(at);
        let (gpus, of_replica) = (&self.gpus, self.of_replica as usize);
        let shown = self.activity.iter_mut();
        let shown: Vec<_> = shown
            .map(|activity| dcgm::families(&activity.close(span, gpus), gpus))
            .collect();
        let families = shown.first().map_or(0, |families| families.len());
        let figures = (0..families).flat_map(|family| {
            let replicas = shown.iter().filter_map(move |of| of.get(family));
            replicas.flat_map(move |family| std::iter::repeat_n(family.value, of_replica))
        });
        let client = self.client.series(crowd.at_work());
        let [engine, gpu, of_client] = &mut self.samples;
        set(engine, at, engines);
        set(gpu, at, figures);
        set(of_client, at, client.into_iter().map(|(_, value)| value));
        &self.samples
    }

    pub(super) const fn steps(&self) -> u64 {
        self.steps
    }

    /// Share of the steps.
    pub(super) fn beyond_bounds(&self) -> f64 {
        self.beyond_bounds as f64 / self.steps.max(1) as f64
    }
}

fn set(sample: &mut Sample, at: Duration, figures: impl Iterator<Item = f64>) {
    sample.at = at;
    for (value, figure) in sample.values.iter_mut().zip(figures) {
        value.value = figure;
    }
}

fn engine_values(model: &str, engines: u32) -> Vec<Value> {
    let value = |engine: u32, (metric, reason, _): Series| {
        let reason = reason.map(|reason| ("finished_reason".to_owned(), reason.to_owned()));
        let own = ("engine".to_owned(), engine.to_string());
        let model = ("model_name".to_owned(), model.to_owned());
        Value {
            metric: metric.to_owned(),
            labels: std::iter::once(own).chain(reason).chain([model]).collect(),
            value: 0.0,
        }
    };
    let empty = of_engine(&SchedulerStats::default(), &Told::default());
    (0..engines)
        .flat_map(|engine| empty.map(|series| value(engine, series)))
        .collect()
}

fn gpu_values(gpus: &Gpus, count: u32) -> Vec<Value> {
    let families = dcgm::families(&Activity::default(), gpus);
    let labels = |gpu| {
        let labels = dcgm::labels(gpu, gpus, HOSTNAME);
        let mut labels = labels
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec();
        labels.sort();
        labels
    };
    let value = |family: &dcgm::Family, gpu| Value {
        metric: family.name.to_owned(),
        labels: labels(gpu),
        value: 0.0,
    };
    let families = families.iter();
    families
        .flat_map(|family| (0..count).map(move |gpu| value(family, gpu)))
        .collect()
}

fn client_values() -> Vec<Value> {
    let value = |(metric, _): (&str, f64)| Value {
        metric: metric.to_owned(),
        labels: Vec::new(),
        value: 0.0,
    };
    Client::default().series(0).map(value).to_vec()
}
