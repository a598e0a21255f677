//! Clocks made one, and bad lines by number.

use super::*;
use std::time::Duration;

const LINE: &str = r#"{"request_id": "a", "input_toks": 10, "output_toks": 3, "arrival_time": 1000.5, "queued_ts": 20.5, "scheduled_ts": 20.5, "first_token_ts": 20.75, "last_token_ts": 21.25}"#;

#[test]
fn times_count_from_the_first_arrival_on_one_clock() {
    let later = LINE
        .replace("1000.5", "1001.5")
        .replace("\"queued_ts\": 20.5", "\"queued_ts\": 21.6")
        .replace("\"scheduled_ts\": 20.5", "\"scheduled_ts\": 21.7");
    let later = later
        .replace("20.75", "22.0")
        .replace("21.25", "22.5")
        .replace("\"a\"", "\"b\"");
    let requests = request::parse(&format!("{later}\n{LINE}\n")).unwrap();
    let [a, b] = requests.as_slice() else {
        panic!("two requests")
    };
    assert_eq!((a.id.as_str(), b.id.as_str()), ("a", "b"));
    assert_eq!(a.times.arrival, Duration::ZERO);
    assert_eq!(
        (a.times.ttft(), a.times.e2e(), a.times.tpot(3)),
        (0.25, 0.75, Some(0.25))
    );
    assert_eq!(a.times.tpot(1), None);
    assert!(
        (b.times.ttft() - 0.5).abs() < 1e-9,
        "it was queued late, and has itself to thank for it"
    );
}

#[test]
fn a_recording_of_months_or_of_endless_answers_is_refused() {
    let late = LINE
        .replace("1000.5", "9000000.5")
        .replace("\"a\"", "\"late\"");
    let (_, says) = request::parse(&format!("{LINE}\n{late}\n")).unwrap_err();
    assert!(
        says.contains("late arrives") && says.contains("30 days"),
        "{says}"
    );
    let endless = LINE.replace("\"last_token_ts\": 21.25", "\"last_token_ts\": 9000000.0");
    assert!(request::parse(&endless).unwrap_err().1.contains("30 days"));
    let long = LINE.replace("\"output_toks\": 3", "\"output_toks\": 100000000");
    assert!(request::parse(&long).unwrap_err().1.contains("tokens"));
    assert!(
        request::parse(&format!("\u{feff}{LINE}")).is_ok(),
        "a byte order mark"
    );
}

#[test]
fn a_bad_line_is_named() {
    let faults = [
        ("{", "EOF"),
        (
            &LINE.replace("\"output_toks\": 3", "\"output_toks\": 0"),
            "without",
        ),
        (&LINE.replace("20.75", "20.25"), "out of order"),
        (&LINE.replace("\"input_toks\": 10, ", ""), "input_toks"),
    ];
    for (line, says) in faults {
        let (number, what) = request::parse(&format!("{LINE}\n\n{line}\n")).unwrap_err();
        assert!(number == 3 && what.contains(says), "{number}: {what}");
    }
    assert!(request::parse("\n").is_err());
    assert!(
        parse_timeseries("t,running\n")
            .unwrap_err()
            .1
            .contains("waiting")
    );
    let (number, _) =
        parse_timeseries("t,running,waiting,kv_cache_pct\n1,2,3,4\n2,x,3,4\n").unwrap_err();
    assert_eq!(number, 3);
}

#[test]
fn what_meta_says_in_full_goes_before_what_was_asked_for() {
    let meta = Meta::parse(
        r#"{"model": "m", "engine_kwargs": {"max_num_seqs": 128, "max_num_batched_tokens": 2048, "max_model_len": null},
        "kv_cache": {"num_gpu_blocks": 99, "block_size": 16, "enable_prefix_caching": true},
        "resolved_config": {"scheduler_config": {"max_num_seqs": 64, "async_scheduling": false}}}"#,
    )
    .unwrap();
    assert_eq!(
        (meta.max_num_seqs, meta.max_num_batched_tokens),
        (Some(64), Some(2048))
    );
    assert_eq!((meta.blocks, meta.max_model_len), (Some(99), None));
    assert_eq!(
        (meta.async_scheduling, meta.reserve_full_prompt),
        (Some(false), None)
    );
    assert!(Meta::parse(r#"{"model": "m", "engine_kwargs": {"max_num_seqs": 0}}"#).is_err());
}

#[test]
fn blocks_are_of_one_engine_and_what_is_not_simulated_is_refused_by_name() {
    let meta = Meta::parse(
        r#"{"model": "m", "engine_kwargs": {"data_parallel_size": 2, "enable_expert_parallel": true},
        "kv_cache": {"num_gpu_blocks": 75638, "block_size": 16}}"#,
    )
    .unwrap();
    assert_eq!((meta.data_parallel, meta.blocks), (Some(2), Some(37819)));
    assert!(meta.shares_experts);
    for (kwargs, resolved, name) in [
        (
            r#""pipeline_parallel_size": 2"#,
            "",
            "pipeline_parallel_size is 2",
        ),
        (
            "",
            r#""speculative_config": {"method": "eagle"}"#,
            "speculative_config",
        ),
        (
            "",
            r#""scheduler_config": {"policy": "priority"}"#,
            "policy is priority",
        ),
        (
            r#""data_parallel_size": 65"#,
            "",
            "data_parallel_size is more than 64",
        ),
        (r#""data_parallel_size": 0"#, "", "a limit is 0"),
        (
            r#""max_model_len": 4294967295"#,
            "",
            "more than 268435456 tokens",
        ),
        (
            r#""max_num_seqs": 1000000000"#,
            "",
            "max_num_seqs is more than",
        ),
        (
            r#""tensor_parallel_size": 4294967295"#,
            "",
            "tensor_parallel_size is more than 64",
        ),
    ] {
        let text = format!(
            r#"{{"model": "m", "engine_kwargs": {{{kwargs}}}, "resolved_config": {{{resolved}}}}}"#
        );
        let (_, says) = Meta::parse(&text).unwrap_err();
        assert!(says.contains(name), "{says}");
    }
}
