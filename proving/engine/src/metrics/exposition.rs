//! `/metrics`: the families of a vLLM 0.26 server, by its names, labels and buckets.
//!
//! Invariant: every family that such a server shows without flags is shown, and no other. `old_names` gives the
//! spellings that 0.26 no longer has in place of the new ones. Estimates of work on a GPU, caches of images and
//! caches outside the engine are there and stay 0, as in a server that does not use them.
//! Not here: what is counted (the parent), the families of HTTP (`http`) and of the process (`process`).

use super::histogram::{Histogram, line};
use super::{Metrics, ModelMetrics, REASONS, process};

const SLEEP_STATES: [&str; 3] = ["awake", "weights_offloaded", "discard_all"];

/// Reads one histogram of a model.
type Read = fn(&ModelMetrics) -> &Histogram;

impl Metrics {
    /// The Prometheus text exposition.
    pub(crate) fn exposition(&self) -> String {
        let mut out = String::with_capacity(16_384 * (1 + self.models.len()));
        self.gauges(&mut out);
        self.counters(&mut out);
        self.histograms(&mut out);
        self.cache_config(&mut out);
        self.http.write(&mut out);
        process::write(&mut out);
        out
    }

    /// A scheduler's figures, which the first model shows.
    fn of_scheduler<T: Default>(
        &self,
        i: usize,
        read: impl Fn(&simulator::scheduler::SchedulerStats) -> T,
    ) -> T {
        self.schedulers.get(i).map(read).unwrap_or_default()
    }

    fn running(&self, i: usize) -> u64 {
        match self.schedulers.get(i) {
            Some(stats) => stats.running as u64,
            None if self.schedulers.is_empty() => self.models[i].in_flight,
            None => 0,
        }
    }

    fn gauges(&self, out: &mut String) {
        self.each(
            out,
            "num_requests_running",
            "gauge",
            "Number of requests in model execution batches.",
            |i, _| vec![(String::new(), self.running(i) as f64)],
        );
        let waiting = |i| self.of_scheduler(i, |s| s.waiting as f64);
        self.each(
            out,
            "num_requests_waiting",
            "gauge",
            "Number of requests waiting to be processed.",
            |i, _| vec![(String::new(), waiting(i))],
        );
        let help = "Number of requests that wait, by what they wait for.";
        self.each(
            out,
            "num_requests_waiting_by_reason",
            "gauge",
            help,
            |i, _| {
                vec![
                    (label("reason", "capacity"), waiting(i)),
                    (label("reason", "deferred"), 0.0),
                ]
            },
        );
        let help = "Engine sleep state; one label value is 1.";
        self.each(out, "engine_sleep_state", "gauge", help, |_, _| {
            SLEEP_STATES
                .map(|state| (label("sleep_state", state), f64::from(state == "awake")))
                .to_vec()
        });
        let name = if self.old_names {
            "gpu_cache_usage_perc"
        } else {
            "kv_cache_usage_perc"
        };
        self.each(
            out,
            name,
            "gauge",
            "KV-cache usage. 1 means 100 percent usage.",
            |i, _| vec![(String::new(), self.of_scheduler(i, |s| s.kv_usage))],
        );
    }

    fn counters(&self, out: &mut String) {
        let own = |name: &str| {
            if self.old_names {
                format!("gpu_{name}")
            } else {
                name.to_owned()
            }
        };
        self.count(
            out,
            &own("prefix_cache_queries"),
            "Prefix cache queries, in tokens.",
            |i, _| self.of_scheduler(i, |s| s.totals.prefix_queries),
        );
        self.count(
            out,
            &own("prefix_cache_hits"),
            "Prefix cache hits, in tokens.",
            |i, _| self.of_scheduler(i, |s| s.totals.prefix_hits),
        );
        for (name, help) in [
            (
                "external_prefix_cache_queries",
                "Queries of a prefix cache outside the engine, in tokens.",
            ),
            (
                "external_prefix_cache_hits",
                "Hits of a prefix cache outside the engine, in tokens.",
            ),
            ("mm_cache_queries", "Multi-modal cache queries, in items."),
            ("mm_cache_hits", "Multi-modal cache hits, in items."),
            (
                "estimated_flops_per_gpu",
                "Estimated floating point operations per GPU.",
            ),
            (
                "estimated_read_bytes_per_gpu",
                "Estimated bytes read from memory per GPU.",
            ),
            (
                "estimated_write_bytes_per_gpu",
                "Estimated bytes written to memory per GPU.",
            ),
        ] {
            self.count(out, name, help, |_, _| 0);
        }
        self.count(
            out,
            "num_preemptions",
            "Cumulative number of preemptions from the engine.",
            |i, _| self.of_scheduler(i, |s| s.totals.preemptions),
        );
        self.count(
            out,
            "prompt_tokens",
            "Number of prefill tokens processed.",
            |_, m| m.prompt_tokens,
        );
        let help = "Number of prompt tokens by where they came from.";
        self.each(
            out,
            "prompt_tokens_by_source_total",
            "counter",
            help,
            |_, m| {
                vec![
                    (
                        label("source", "local_compute"),
                        m.prompt_tokens.saturating_sub(m.cached_tokens) as f64,
                    ),
                    (label("source", "local_cache_hit"), m.cached_tokens as f64),
                    (label("source", "external_kv_transfer"), 0.0),
                ]
            },
        );
        self.count(
            out,
            "prompt_tokens_cached",
            "Number of cached prompt tokens.",
            |_, m| m.cached_tokens,
        );
        self.count(
            out,
            "generation_tokens",
            "Number of generation tokens processed.",
            |_, m| m.generation_tokens,
        );
        let help = "Count of successfully processed requests.";
        self.each(out, "request_success_total", "counter", help, |_, m| {
            REASONS
                .iter()
                .zip(m.ended)
                .map(|(reason, n)| (label("finished_reason", reason), n as f64))
                .collect()
        });
    }

    fn histograms(&self, out: &mut String) {
        let token = if self.old_names {
            "time_per_output_token_seconds"
        } else {
            "inter_token_latency_seconds"
        };
        let all: [(&str, &str, Read); 14] = [
            (
                "request_prompt_tokens",
                "Number of prefill tokens processed.",
                |m| &m.prompt_lengths,
            ),
            (
                "request_generation_tokens",
                "Number of generation tokens processed.",
                |m| &m.output_lengths,
            ),
            (
                "request_max_num_generation_tokens",
                "Maximum number of requested generation tokens.",
                |m| &m.most_output,
            ),
            ("request_params_n", "The n request parameter.", |m| {
                &m.choices
            }),
            (
                "request_params_max_tokens",
                "The max_tokens request parameter.",
                |m| &m.caps,
            ),
            (
                "time_to_first_token_seconds",
                "Time to first token in seconds.",
                |m| &m.ttft,
            ),
            (token, "Inter-token latency in seconds.", |m| &m.inter_token),
            (
                "request_time_per_output_token_seconds",
                "Time per output token of a request.",
                |m| &m.per_output_token,
            ),
            (
                "e2e_request_latency_seconds",
                "E2e request latency in seconds.",
                |m| &m.e2e,
            ),
            (
                "request_queue_time_seconds",
                "Time spent in the waiting phase.",
                |m| &m.queue,
            ),
            (
                "request_inference_time_seconds",
                "Time spent in the running phase.",
                |m| &m.inference,
            ),
            (
                "request_prefill_time_seconds",
                "Time spent in the prefill phase.",
                |m| &m.prefill,
            ),
            (
                "request_decode_time_seconds",
                "Time spent in the decode phase.",
                |m| &m.decode,
            ),
            (
                "request_prefill_kv_computed_tokens",
                "New KV tokens computed during prefill.",
                |m| &m.computed,
            ),
        ];
        for (name, help, read) in all {
            head(out, name, "histogram", help);
            for m in &self.models {
                read(m).write(out, &format!("vllm:{name}"), &m.labels);
            }
        }
        head(
            out,
            "iteration_tokens_total",
            "histogram",
            "Histogram of number of tokens per engine step.",
        );
        for (steps, first) in self.step_tokens.iter().zip(&self.models) {
            steps.write(out, "vllm:iteration_tokens_total", &first.labels);
        }
    }

    fn cache_config(&self, out: &mut String) {
        let Some(limits) = &self.limits else {
            return;
        };
        head(
            out,
            "cache_config_info",
            "gauge",
            "Information of the LLMEngine CacheConfig.",
        );
        let (kv, caching) = (
            &limits.kv,
            if limits.kv.prefix_caching {
                "True"
            } else {
                "False"
            },
        );
        // vLLM adds up the blocks of its engines and shows the sum with each.
        let blocks = u64::from(kv.blocks) * self.ranks as u64;
        for rank in 0..self.ranks {
            line(
                out,
                format_args!(
                    "vllm:cache_config_info{{block_size=\"{}\",enable_prefix_caching=\"{caching}\",engine=\"{rank}\",num_gpu_blocks=\"{blocks}\"}} 1.0",
                    kv.block_size,
                ),
            );
        }
    }

    fn count(
        &self,
        out: &mut String,
        name: &str,
        help: &str,
        read: impl Fn(usize, &ModelMetrics) -> u64,
    ) {
        self.each(out, &format!("{name}_total"), "counter", help, |i, m| {
            vec![(String::new(), read(i, m) as f64)]
        });
    }

    fn each(
        &self,
        out: &mut String,
        name: &str,
        kind: &str,
        help: &str,
        read: impl Fn(usize, &ModelMetrics) -> Vec<(String, f64)>,
    ) {
        head(out, name, kind, help);
        for (i, m) in self.models.iter().enumerate() {
            for (more, value) in read(i, m) {
                line(
                    out,
                    format_args!("vllm:{name}{{{}{more}}} {value:?}", m.labels),
                );
            }
        }
    }
}

fn label(name: &str, value: &str) -> String {
    format!(",{name}=\"{value}\"")
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    line(
        out,
        format_args!("# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}"),
    );
}
