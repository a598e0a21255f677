//! What a campaign asks of what was scraped, by name.
//!
//! Invariant: each query is written once, here, and is asked only of telemetry that was made with all of them.
//! Not here: the gates' and objectives' own queries, which a scenario has.

use experiment::campaign::{Gate, Plan};
use experiment::telemetry::Query;

use crate::scrape::names::NVLINK;

/// Time to first token, as engines tell it.
pub(super) const TTFT: &str = "mean(engine:vllm:time_to_first_token_seconds)";

/// What engines are asked, and the row of Table 2 that it fills.
pub(super) const LATENCIES: [(&str, &str); 6] = [
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
pub(super) const KV: &str = "avg(engine:vllm:kv_cache_usage_perc)";
pub(super) const KV_MOST: &str = "max(engine:vllm:kv_cache_usage_perc)";
pub(super) const PREEMPTIONS: &str = "increase(engine:vllm:num_preemptions_total)";
pub(super) const RUNNING: &str = "sum(engine:vllm:num_requests_running)";
pub(super) const WAITING: &str = "sum(engine:vllm:num_requests_waiting)";
pub(super) const OUTPUT: &str = "rate(engine:vllm:generation_tokens_total)";
pub(super) const HIT_SHARE: &str =
    "ratio(engine:vllm:prefix_cache_hits_total, engine:vllm:prefix_cache_queries_total)";
pub(super) const LOOKED_UP: &str = "increase(engine:vllm:prefix_cache_queries_total)";
pub(super) const NVLINK_TX: &str = "sum(gpu:DCGM_FI_PROF_NVLINK_TX_BYTES)";
pub(super) const NVLINK_RX: &str = "sum(gpu:DCGM_FI_PROF_NVLINK_RX_BYTES)";
pub(super) const GPU_BUSY: &str = "avg(gpu:DCGM_FI_DEV_GPU_UTIL)";
pub(super) const POWER: &str = "sum(gpu:DCGM_FI_DEV_POWER_USAGE)";
/// Of one GPU: the sum over it is how many there are.
pub(super) const POWER_OF_ONE: &str = "avg(gpu:DCGM_FI_DEV_POWER_USAGE)";
/// What the kernel's scheduler did to the gateway's cgroup.
pub(super) const PERIODS: &str = "increase(cgroup:periods_total)";
pub(super) const THROTTLED: &str = "increase(cgroup:throttled_periods_total)";
pub(super) const THROTTLED_S: &str = "increase(cgroup:throttled_seconds_total)";
/// What our gate says of its own time.
pub(super) const GATE_OWN: &str = "mean(gateway:tollgate_overhead_seconds)";

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
        HIT_SHARE,
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
pub(super) fn nvlink_by_counters() -> Query {
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

pub(super) fn ask(query: &str) -> Query {
    query.parse().expect("a query that is written here")
}
