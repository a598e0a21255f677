//! Old spellings, blanks, and both ends of NVLink.

use std::time::Duration;

use experiment::telemetry::Value;

use super::{NVLINK, Names, current};
use crate::scrape::exposition::Page;

fn named(names: &mut Names, at_s: u64, text: &str) -> Vec<Value> {
    let page = Page::read(text.as_bytes());
    assert_eq!(page.unread, 0, "{text}");
    names.apply(page, Duration::from_secs(at_s))
}

fn once(text: &str) -> Vec<Value> {
    named(&mut Names::default(), 1, text)
}

fn of(values: &[Value], metric: &str) -> Option<f64> {
    let mut found = values.iter().filter(|value| value.metric == metric);
    let first = found.next().map(|value| value.value);
    assert!(found.next().is_none(), "one {metric}");
    first
}

#[test]
fn old_names_of_vllm_are_todays() {
    let values = once(
        "vllm:gpu_cache_usage_perc{engine=\"0\"} 0.5\nvllm:time_per_output_token_seconds_sum 3\n\
         vllm:time_per_output_token_seconds_count 4\nvllm:gpu_prefix_cache_hits_total 7\n\
         # TYPE vllm:anything_else counter\nvllm:anything_else 9\nvllm:num_requests_running 2\n",
    );
    assert_eq!(of(&values, "vllm:kv_cache_usage_perc"), Some(0.5));
    assert_eq!(
        of(&values, "vllm:inter_token_latency_seconds_sum"),
        Some(3.0)
    );
    assert_eq!(
        of(&values, "vllm:inter_token_latency_seconds_count"),
        Some(4.0)
    );
    assert_eq!(of(&values, "vllm:prefix_cache_hits_total"), Some(7.0));
    assert_eq!(of(&values, "vllm:anything_else_total"), Some(9.0));
    assert_eq!(of(&values, "vllm:num_requests_running"), Some(2.0));
    assert_eq!(of(&values, "vllm:gpu_cache_usage_perc"), None);
    assert_eq!(current("vllm:kv_cache_usage_perc"), None);
}

#[test]
fn a_page_that_has_both_spellings_keeps_todays_alone() {
    let values = once("vllm:gpu_cache_usage_perc 0.1\nvllm:kv_cache_usage_perc 0.2\n");
    assert_eq!(of(&values, "vllm:kv_cache_usage_perc"), Some(0.2));
    assert_eq!(values.len(), 1);
}

#[test]
fn blanks_of_dcgm_are_no_values_and_shares_are_percent() {
    let values = once(
        "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",Hostname=\"h\"} 9223372036854775794\n\
         DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",Hostname=\"h\",hostname=\"h\"} 40\n\
         DCGM_FI_DEV_GPU_UTIL_RATIO{gpu=\"0\",Hostname=\"h\"} 0.25\nother 9223372036854775794\n",
    );
    assert_eq!(of(&values, "DCGM_FI_DEV_POWER_USAGE"), None);
    assert_eq!(of(&values, "DCGM_FI_DEV_GPU_UTIL"), Some(25.0));
    assert!(
        of(&values, "other").is_some(),
        "others may be as large as they like"
    );
    let labels = &values[0].labels;
    let expected = [("gpu", "0"), ("hostname", "h")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(*labels, expected);
    assert_eq!(of(&values, NVLINK), None);
}

#[test]
fn both_ends_of_all_gpus_are_summed_and_a_blank_is_left_out() {
    let values = once(
        "DCGM_FI_PROF_NVLINK_TX_BYTES{gpu=\"0\"} 10\nDCGM_FI_PROF_NVLINK_TX_BYTES{gpu=\"1\"} 20\n\
         DCGM_FI_PROF_NVLINK_RX_BYTES{gpu=\"0\"} 30\n\
         DCGM_FI_PROF_NVLINK_RX_BYTES{gpu=\"1\"} 9.3e18\n",
    );
    assert_eq!(of(&values, NVLINK), Some(60.0));
}

#[test]
fn where_there_are_counters_alone_their_growth_is_the_rate_and_a_reset_says_nothing() {
    let mut names = Names::default();
    let mut at = |second: u64, tx: u64, rx: u64| {
        let text = format!(
            "DCGM_FI_DEV_NVLINK_COUNT_TX_BYTES{{gpu=\"0\"}} {tx}\n\
             DCGM_FI_DEV_NVLINK_RX_BYTES_TOTAL{{gpu=\"0\"}} {rx}\n"
        );
        of(&named(&mut names, second, &text), NVLINK)
    };
    assert_eq!(at(1, 1000, 500), None, "the first says where it stands");
    assert_eq!(at(3, 1400, 700), Some(300.0));
    assert_eq!(at(4, 10, 800), None, "reset");
    assert_eq!(at(5, 20, 820), Some(30.0));
    assert_eq!(at(5, 20, 820), None, "no time has passed");
}
