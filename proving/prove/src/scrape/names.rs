//! One name for each thing, whatever the version that tells of it: old spellings of vLLM and of DCGM as today's.
//!
//! Invariant: a page that has a metric under today's name keeps it as it is, and an old spelling beside it is dropped;
//! what "not supported" stands for (above [`SENTINEL`]) is no value.
//! Not here: reading a page (`exposition`).

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use experiment::telemetry::Value;

use super::exposition::{Kind, Page};

/// DCGM's blanks for "not supported", "not permitted" and the like lie near 2^63; nothing that is measured does.
const SENTINEL: f64 = 1e18;

/// The sum over GPUs of what each sends and receives over NVLink.
pub(crate) const NVLINK: &str = "nvlink_bytes_per_second";

/// Which ends that sum counts.
pub(crate) const NVLINK_CONVENTION: &str = "TX + RX summed over all GPUs, headers included: each transfer between two GPUs counts twice, once at each end";

/// What was called so, and is called otherwise today; suffixes of histograms stay. From vLLM 0.6 to 0.26, and from
/// DCGM 3 to 4.6.
const RENAMED: [(&str, &str); 14] = [
    ("vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"),
    // Both are the time from one token to the next, observed for every token.
    (
        "vllm:time_per_output_token_seconds",
        "vllm:inter_token_latency_seconds",
    ),
    (
        "vllm:gpu_prefix_cache_queries",
        "vllm:prefix_cache_queries_total",
    ),
    ("vllm:gpu_prefix_cache_hits", "vllm:prefix_cache_hits_total"),
    (
        "vllm:gpu_prefix_cache_queries_total",
        "vllm:prefix_cache_queries_total",
    ),
    (
        "vllm:gpu_prefix_cache_hits_total",
        "vllm:prefix_cache_hits_total",
    ),
    ("vllm:num_preemptions", "vllm:num_preemptions_total"),
    ("vllm:prompt_tokens", "vllm:prompt_tokens_total"),
    ("vllm:generation_tokens", "vllm:generation_tokens_total"),
    ("vllm:request_success", "vllm:request_success_total"),
    (
        "vllm:prefix_cache_queries",
        "vllm:prefix_cache_queries_total",
    ),
    ("vllm:prefix_cache_hits", "vllm:prefix_cache_hits_total"),
    (
        "DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES",
        "DCGM_FI_DEV_NVLINK_TX_BYTES_TOTAL",
    ),
    (
        "DCGM_FI_DEV_NVLINK_COUNT_RX_BYTES",
        "DCGM_FI_DEV_NVLINK_RX_BYTES_TOTAL",
    ),
];

/// Shares that are percent under another name.
const SHARES: [(&str, &str); 1] = [("DCGM_FI_DEV_GPU_UTIL_RATIO", "DCGM_FI_DEV_GPU_UTIL")];

/// Bytes a second and, where they are not told, the counters that they are the growth of. What is called a throughput or
/// a bandwidth and has no stated unit is left alone.
const NVLINK_ENDS: [(&str, &str); 2] = [
    (
        "DCGM_FI_PROF_NVLINK_TX_BYTES",
        "DCGM_FI_DEV_NVLINK_TX_BYTES_TOTAL",
    ),
    (
        "DCGM_FI_PROF_NVLINK_RX_BYTES",
        "DCGM_FI_DEV_NVLINK_RX_BYTES_TOTAL",
    ),
];

/// Today's name of a metric, which may end as parts of histograms do.
pub(crate) fn current(metric: &str) -> Option<String> {
    let suffix = ["_sum", "_count", "_created"]
        .into_iter()
        .find(|suffix| metric.ends_with(suffix))
        .unwrap_or("");
    let family = metric.strip_suffix(suffix).unwrap_or(metric);
    let known = |table: &[(&str, &'static str)]| {
        let found = table.iter().find(|(old, _)| *old == family);
        found.map(|(_, new)| *new)
    };
    known(&RENAMED)
        .or_else(|| known(&SHARES))
        .map(|new| format!("{new}{suffix}"))
}

/// Counters by their labels, their names among these.
type Standing = BTreeMap<Vec<(String, String)>, f64>;

/// One target's pages under today's names. It remembers counters whose growth is a figure of its own.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// When the last page came, and where its counters of NVLink stood.
    before: Option<(Duration, Standing)>,
}

impl Names {
    /// The values of a page that came at `at`.
    pub(crate) fn apply(&mut self, page: Page, at: Duration) -> Vec<Value> {
        let Page { values, kinds, .. } = page;
        let own: BTreeSet<String> = values.iter().map(|value| value.metric.clone()).collect();
        let mut named: Vec<Value> = values
            .into_iter()
            .filter_map(|value| rename(value, &own, &kinds))
            .collect();
        named.extend(self.nvlink(&named, at));
        named
    }

    /// The sum over both ends of all GPUs, by rates where there are any, else by what counters grew by.
    fn nvlink(&mut self, values: &[Value], at: Duration) -> Option<Value> {
        let of = |name: &'static str| values.iter().filter(move |value| value.metric == name);
        let mut rates = NVLINK_ENDS.iter().flat_map(|(rate, _)| of(rate)).peekable();
        let sum = if rates.peek().is_some() {
            rates.map(|value| value.value).sum()
        } else {
            let counters = NVLINK_ENDS.iter().flat_map(|(_, counter)| of(counter));
            let now: Standing = counters
                .map(|value| {
                    let mut key = value.labels.clone();
                    key.push(("metric".into(), value.metric.clone()));
                    (key, value.value)
                })
                .collect();
            if now.is_empty() {
                return None;
            }
            let before = self.before.replace((at, now.clone()));
            growth(&before?, at, &now)?
        };
        Some(Value {
            metric: NVLINK.into(),
            labels: Vec::new(),
            value: sum,
        })
    }
}

/// By the second; `None` where no time has passed, or where a counter began anew.
fn growth((then, before): &(Duration, Standing), at: Duration, now: &Standing) -> Option<f64> {
    let seconds = at.saturating_sub(*then).as_secs_f64();
    let mut sum = 0.0;
    for (key, value) in now {
        let grown = value - before.get(key)?;
        if grown < 0.0 {
            return None;
        }
        sum += grown;
    }
    (seconds > 0.0).then_some(sum / seconds)
}

/// A value under today's name; `None` for one that is none, or that the page has under today's name too.
fn rename(
    mut value: Value,
    own: &BTreeSet<String>,
    kinds: &BTreeMap<String, Kind>,
) -> Option<Value> {
    let is_dcgm = value.metric.starts_with("DCGM_FI_");
    if is_dcgm && value.value.abs() > SENTINEL {
        return None;
    }
    if is_dcgm {
        lower_hostname(&mut value.labels);
    }
    if SHARES.iter().any(|(share, _)| *share == value.metric) {
        value.value *= 100.0;
    }
    let is_bare_counter = value.metric.starts_with("vllm:")
        && !value.metric.ends_with("_total")
        && kinds.get(&value.metric) == Some(&Kind::Counter);
    let new = current(&value.metric)
        .or_else(|| is_bare_counter.then(|| format!("{}_total", value.metric)));
    if let Some(new) = new {
        if own.contains(&new) {
            return None;
        }
        value.metric = new;
    }
    Some(value)
}

/// Exporters before 4.5 say `Hostname`, later ones `hostname`, some both.
fn lower_hostname(labels: &mut Vec<(String, String)>) {
    let has_new = labels.iter().any(|(name, _)| name == "hostname");
    labels.retain(|(name, _)| !has_new || name != "Hostname");
    for (name, _) in labels.iter_mut().filter(|(name, _)| name == "Hostname") {
        *name = "hostname".into();
    }
    labels.sort_unstable();
}
