//! What an engine says of itself on its page of metrics, as Prometheus reads it: vLLM's names, and SGLang's.
//!
//! Invariant: a line that is none is passed over, and so is a number that none can be; a page without any of the names says nothing.
//! Not here: fetching the page (`callout`), what follows from it ([`super::load`]).

/// The longest page that is read.
pub const PAGE_BYTES_MAX: usize = 4 << 20;
/// What a token of a prompt comes to in bytes of a call's body, about.
const TOKEN_BYTES: u64 = 4;

const RUNNING: [&str; 2] = ["vllm:num_requests_running", "sglang:num_running_reqs"];
const WAITING: [&str; 2] = ["vllm:num_requests_waiting", "sglang:num_queue_reqs"];
const KV: [&str; 3] = [
    "vllm:kv_cache_usage_perc",
    // Until vLLM 0.10.
    "vllm:gpu_cache_usage_perc",
    "sglang:token_usage",
];
const BEGAN: &str = "process_start_time_seconds";
const CACHE: &str = "vllm:cache_config_info";

/// What a page says. Of several engines behind one address calls are added up, and of their caches it is the mean.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Report {
    /// Calls that run.
    pub running: f64,
    /// Calls that wait.
    pub waiting: f64,
    /// Of the KV cache in use, 0 to 1.
    pub kv_share: f64,
    /// When its process began, in seconds since the Unix epoch.
    pub began_s: Option<u64>,
    /// What its KV cache holds, in bytes of prompts, about.
    pub cache_bytes: Option<u64>,
}

impl Report {
    /// What this page says; `None` where it names neither calls nor a cache.
    #[must_use]
    pub fn of(page: &str) -> Option<Self> {
        let mut report = Self::default();
        let mut is_known = false;
        let mut caches = 0_u32;
        let mut cache_sum = 0.0;
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, labels, value)) = sample(line) else {
                continue;
            };
            if RUNNING.contains(&name) {
                report.running += value;
                is_known = true;
            } else if WAITING.contains(&name) {
                report.waiting += value;
                is_known = true;
            } else if KV.contains(&name) {
                cache_sum += value;
                caches += 1;
                is_known = true;
            } else if name == BEGAN {
                report.began_s = Some(value as u64);
            } else if name == CACHE {
                report.cache_bytes = cache_of(labels).or(report.cache_bytes);
            }
        }
        if caches > 0 {
            report.kv_share = cache_sum / f64::from(caches);
        }
        is_known.then_some(report)
    }
}

/// A line's name, labels and value, where that is a number of something.
fn sample(line: &str) -> Option<(&str, &str, f64)> {
    let (name, labels, rest) = match line.split_once('{') {
        Some((name, labelled)) => {
            // Values of labels may hold braces; what follows the last one is the number.
            let (labels, rest) = labelled.rsplit_once('}')?;
            (name, labels, rest)
        }
        None => {
            let (name, rest) = line.split_once(' ')?;
            (name, "", rest)
        }
    };
    let value: f64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some((name.trim(), labels, value))
}

/// What the labels of vLLM's cache say that it holds.
fn cache_of(labels: &str) -> Option<u64> {
    let label = |name: &str| {
        let mut values = labels.split(',').filter_map(|label| label.split_once('='));
        let (_, value) = values.find(|(known, _)| known.trim() == name)?;
        value.trim().trim_matches('"').parse::<u64>().ok()
    };
    let tokens = label("block_size")?.checked_mul(label("num_gpu_blocks")?)?;
    tokens.checked_mul(TOKEN_BYTES).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests;
