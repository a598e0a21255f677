//! Pages as engines write them, and pages that are none.

use super::Report;

const VLLM: &str = r#"# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="gpt-oss-120b"} 12.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="gpt-oss-120b"} 3.0
vllm:kv_cache_usage_perc{engine="0",model_name="gpt-oss-120b"} 0.25
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="1000"} 1.0
process_start_time_seconds 1.7643e+09
"#;

#[test]
fn a_page_of_vllm_says_what_it_has_to_do() {
    let report = Report::of(VLLM).expect("a report");
    let expected = Report {
        running: 12.0,
        waiting: 3.0,
        kv_share: 0.25,
        began_s: Some(1_764_300_000),
        cache_bytes: Some(64_000),
    };
    assert_eq!(report, expected);
}

#[test]
fn older_names_and_those_of_sglang_are_known() {
    let older = Report::of("vllm:gpu_cache_usage_perc 0.5\n").expect("a report");
    assert_eq!(older.kv_share, 0.5);
    let page = "sglang:num_running_reqs{model_name=\"m\"} 4\nsglang:num_queue_reqs 2\nsglang:token_usage 0.75 1764300000000\n";
    let sglang = Report::of(page).expect("a report");
    let said = (sglang.running, sglang.waiting, sglang.kv_share);
    assert_eq!(said, (4.0, 2.0, 0.75));
}

#[test]
fn several_engines_behind_one_address_are_added_up() {
    let page = "vllm:num_requests_waiting{engine=\"0\"} 2\nvllm:num_requests_waiting{engine=\"1\"} 4\nvllm:kv_cache_usage_perc{engine=\"0\"} 0.2\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.6\n";
    let report = Report::of(page).expect("a report");
    assert_eq!(report.waiting, 6.0);
    assert!((report.kv_share - 0.4).abs() < 1e-9);
}

#[test]
fn what_is_no_number_of_calls_is_passed_over() {
    for page in [
        "",
        "hello",
        "<html>vllm:num_requests_waiting</html>",
        "vllm:num_requests_waiting NaN",
        "vllm:num_requests_waiting -1",
        "vllm:num_requests_waiting{engine=\"0\" 3",
        "vllm:num_requests_waiting_by_reason 3",
        "# vllm:num_requests_waiting 3",
        "other_total 3",
    ] {
        assert_eq!(Report::of(page), None, "{page}");
    }
    let label = "vllm:num_requests_waiting{model_name=\"a}b{c\"} 3";
    assert_eq!(Report::of(label).expect("a report").waiting, 3.0);
}
