//! What the pages of a campaign's targets come to.

use super::{Again, HITS, OF_BOTH, TTFT, Told, float, list};
use crate::recomputed::EXACT;
use crate::recomputed::query::answers;
use crate::recomputed::samples::{Samples, Series};

/// The time at the ends of which a rate is taken is in whole milliseconds.
const OF_RATE: f64 = 1e-3;

impl Again<'_> {
    /// The rows of Table 2 that the engine says, and what it says of the soak.
    pub(super) fn answers(&mut self, span: Told) {
        let queries = [
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
        for (at, row) in list(self.report, "latency").iter().enumerate() {
            let measure = row["measure"].as_str().expect("a name");
            let query = queries
                .iter()
                .find(|(name, _)| *name == measure)
                .expect("a query")
                .1;
            self.asked(&format!("/latency/{at}/engine_mean_s"), query, span);
        }
        let ms = |own: [Option<f64>; 4]| own.map(|own| own.map(|own| own * 1e3));
        let ttft = ms(self.of_step(&span));
        self.figures.is_one_of("/soak/ttft_ms", &ttft, EXACT);
        let tpot = ms(answers(&self.samples, queries[1].1, span.from, span.to));
        self.figures.is_one_of("/soak/tpot_ms", &tpot, EXACT);
        self.asked(
            "/soak/kv_cache",
            "avg(engine:vllm:kv_cache_usage_perc)",
            span,
        );
        self.asked(
            "/soak/preemptions",
            "increase(engine:vllm:num_preemptions_total)",
            span,
        );
        for (at, objective) in list(self.report, "objectives").iter().enumerate() {
            let place = format!("/objectives/{at}/value");
            let name = objective["name"].as_str().expect("a name");
            // What a gate of the ramp said the most is of its windows, whose ends are in no file.
            if name.contains(" stays closed: ") {
                self.figures.except(&[&place]);
            } else {
                self.asked(&place, objective["query"].as_str().expect("a query"), span);
            }
        }
        self.asked("/prefix_cache/measured", HITS, span);
        if !self.report["overhead"]["throttling"].is_null() {
            for (name, metric) in [
                ("periods", "periods_total"),
                ("throttled_periods", "throttled_periods_total"),
                ("throttled_s", "throttled_seconds_total"),
            ] {
                let place = format!("/overhead/throttling/{name}");
                self.asked(&place, &format!("increase(cgroup:{metric})"), span);
            }
        }
        if self.samples.has("gateway") && !self.report["overhead"].is_null() {
            self.asked(
                "/overhead/own_histogram_s",
                "mean(gateway:tollgate_overhead_seconds)",
                span,
            );
        }
    }

    /// A window of the baseline or the ramp, as pages tell of it.
    pub(super) fn step_of_pages(&mut self, at: usize) {
        let span = Told::of(&self.report["steps"][at]);
        for (name, query) in [
            ("kv_cache", "avg(engine:vllm:kv_cache_usage_perc)"),
            ("running", "sum(engine:vllm:num_requests_running)"),
            ("waiting", "sum(engine:vllm:num_requests_waiting)"),
            ("preemptions", "increase(engine:vllm:num_preemptions_total)"),
            (
                "output_tokens_per_s",
                "rate(engine:vllm:generation_tokens_total)",
            ),
        ] {
            self.asked(&format!("/steps/{at}/{name}"), query, span);
        }
        let ttft = self.of_step(&span);
        self.figures
            .is_one_of(&format!("/steps/{at}/ttft_mean_s"), &ttft, EXACT);
    }

    pub(super) fn series(&mut self, end: f64) {
        let all = self.report["series"].as_object().expect("series");
        for (name, series) in all {
            let points = list(series, "points");
            if name == "users" {
                self.users_over_time(points, end);
            }
            if ["users", "downstream_s", "upstream_s", "gate_s"].contains(&&**name) {
                continue;
            }
            let count = float(i64::try_from(points.len()).expect("a count"));
            let width = (end / count).max(10.0);
            for (at, _) in points.iter().enumerate() {
                let place = format!("/series/{name}/points/{at}");
                let to = end * (float(i64::try_from(at).expect("a count")) + 1.0) / count;
                self.figures.is(&format!("{place}/0"), Some(to), 1e-6);
                let to = self.figures.get(&format!("{place}/0")).expect("a moment");
                let span = Told {
                    from: (to - width).max(0.0),
                    to,
                };
                let source = series["source"].as_str().expect("text");
                match &**name {
                    "nvlink_bytes_per_s" => {
                        let own = self.nvlink(span);
                        self.figures.is_one_of(&format!("{place}/1"), &own, EXACT);
                    }
                    "requests_per_s" | "errors_per_s" => {
                        self.rate_of_ends(&format!("{place}/1"), span, name == "requests_per_s");
                    }
                    _ => self.asked(&format!("{place}/1"), source, span),
                }
            }
        }
    }

    pub(super) fn hardware(&mut self, span: Told) {
        for (name, query, scale) in [
            ("kv_cache_mean", "avg(engine:vllm:kv_cache_usage_perc)", 1.0),
            ("kv_cache_max", "max(engine:vllm:kv_cache_usage_perc)", 1.0),
            ("gpu_utilisation", "avg(gpu:DCGM_FI_DEV_GPU_UTIL)", 0.01),
            ("power_w", "sum(gpu:DCGM_FI_DEV_POWER_USAGE)", 1.0),
        ] {
            let own = answers(&self.samples, query, span.from, span.to);
            let own = own.map(|own| own.map(|own| own * scale));
            self.figures
                .is_one_of(&format!("/hardware/{name}"), &own, EXACT);
        }
        let gpus = self.samples.labels("gpu", "DCGM_FI_DEV_POWER_USAGE").len();
        let own = (gpus > 0).then(|| float(i64::try_from(gpus).expect("a few")));
        self.figures.equals("/hardware/gpus", own);
        let nvlink = self.nvlink(span);
        self.figures
            .is_one_of("/hardware/nvlink_bytes_per_s", &nvlink, EXACT);
    }

    pub(super) fn nvlink(&self, span: Told) -> [Option<f64>; 4] {
        let one = |way: &str| {
            let query = format!("sum(gpu:DCGM_FI_PROF_NVLINK_{way}_BYTES)");
            answers(&self.samples, &query, span.from, span.to)
        };
        let (tx, rx) = (one("TX"), one("RX"));
        [0, 1, 2, 3].map(|at| tx[at].zip(rx[at]).map(|(tx, rx)| tx + rx))
    }

    /// What the gateway's pages counted from the first to the last.
    pub(super) fn tokens(&mut self) {
        for (at, row) in list(self.report, "tokens").iter().enumerate() {
            let place = |name: &str| format!("/tokens/{at}/{name}");
            let text = |name: &str| row[name].as_str().expect("text");
            let (workload, model) = (text("workload"), text("model"));
            let is_of_both = workload == OF_BOTH;
            let label = |name: &str, value: &str| format!("{name}={value:?}");
            let sum = |samples: &Samples, metric: &str, labels: Vec<String>| {
                samples.all_of(&Series {
                    target: "gateway",
                    metric,
                    labels,
                })
            };
            let tokens = |kind: &str, source: &str| {
                let of = [label("model", model), label("source", source)];
                if is_of_both {
                    let labels = [of.to_vec(), vec![label("direction", kind)]].concat();
                    return sum(&self.samples, "tollgate_token_drift_tokens_total", labels);
                }
                let labels = [
                    of.to_vec(),
                    vec![label("workload", workload), label("type", kind)],
                ]
                .concat();
                sum(&self.samples, "tollgate_tokens_total", labels)
            };
            let figures = [
                ("input_tokens", tokens("input", "reported")),
                ("output_tokens", tokens("output", "reported")),
                ("input_counted", tokens("input", "counted")),
                ("output_counted", tokens("output", "counted")),
            ];
            let requests = if is_of_both {
                let of = |way: &str| vec![label("model", model), label("direction", way)];
                let ways = ["input", "output"];
                let each = ways.map(|way| {
                    sum(
                        &self.samples,
                        "tollgate_token_drift_exchanges_total",
                        of(way),
                    )
                });
                each.into_iter().fold(0.0, f64::max)
            } else {
                let all = sum(
                    &self.samples,
                    "tollgate_exchanges_total",
                    vec![label("workload", workload)],
                );
                let refused = vec![label("workload", workload), label("outcome", "refused")];
                all - sum(&self.samples, "tollgate_exchanges_total", refused)
            };
            let labels = vec![label("workload", workload), label("model", model)];
            let cost = sum(&self.samples, "tollgate_cost_total", labels);
            self.figures.equals(&place("requests"), requests);
            for (name, own) in figures {
                let is_there = !row[name].is_null();
                self.figures.equals(&place(name), is_there.then_some(own));
            }
            let [input, output, counted_in, counted_out] = figures.map(|(_, own)| own);
            let drift = (input + output) / (counted_in + counted_out) - 1.0;
            let has_counts = !row["input_counted"].is_null() && !row["output_counted"].is_null();
            // A difference of two that are nearly the same.
            let told = self.figures.get(&place("drift"));
            if has_counts != told.is_some() || told.is_some_and(|told| (told - drift).abs() > 1e-9)
            {
                let says = format!("{} is {told:?}; by the files {drift}", place("drift"));
                self.figures.differences.push(says);
            }
            self.figures
                .equals(&place("cost"), (!is_of_both && cost > 0.0).then_some(cost));
        }
    }

    pub(super) fn asked(&mut self, place: &str, query: &str, span: Told) {
        let own = answers(&self.samples, query, span.from, span.to);
        let within = if query.starts_with("rate(") {
            OF_RATE
        } else {
            EXACT
        };
        self.figures.is_one_of(place, &own, within);
    }

    /// What is asked for time to first token: what the gate asks.
    pub(super) fn of_step(&self, span: &Told) -> [Option<f64>; 4] {
        let query = self.report["series"]["ttft_s"]["source"]
            .as_str()
            .unwrap_or(TTFT);
        answers(&self.samples, query, span.from, span.to)
    }
}
