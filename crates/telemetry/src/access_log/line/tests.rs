//! Lines are JSON and say what the record says.

use policy::balancing::{Choice, Why};
use policy::caller::{Caller, Proven};
use policy::limit::Kind;
use policy::operation::Operation;
use policy::record::{Count, Extra, Outcome, Record, Tokens};
use serde_json::{Value, json};

use super::super::name_cache::NameCache;
use super::super::timestamp::Timestamp;
use super::{long, whole_micros, write};
use crate::sample::{completed, limited, snapshot, unknown};

fn line(record: &Record) -> Value {
    let of = snapshot("v1", &["a", "we\"ird\\\nname é"]);
    let line = long(&mut Timestamp::default(), &NameCache::of(&of), &of, record);
    let text = String::from_utf8(line).unwrap();
    assert_eq!(text.matches('\n').count(), 1);
    assert!(text.ends_with('\n'));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_completed_exchange_in_full() {
    let mut record = completed(0);
    record.tokens.reasoning = Some(5);
    record.upstream_id = Some("theirs-1".into());
    let expected = json!({
        "ts": "2026-08-01T12:00:00.123Z", "request_id": "req-1",
        "upstream_request_id": "theirs-1",
        "client_address": "203.0.113.9", "workload": "a",
        "operation": "chat", "route": "all", "backend": "on-prem", "endpoint": "on-prem#0",
        "model": "asked", "model_sent": "gpt-oss-120b", "status": 200, "outcome": "completed",
        "streamed": true, "attempts": 1, "prompt_tokens": 100, "prompt_source": "reported",
        "completion_tokens": 21, "completion_source": "reported", "cached_tokens": 64,
        "reasoning_tokens": 5, "bytes_in": 1024, "bytes_out": 4096, "duration_us": 450_000,
        "first_byte_us": 50_000, "own_us": 18, "upstream_us": 49_000, "config": "v1",
    });
    assert_eq!(line(&record), expected);
}

#[test]
fn what_is_not_known_is_left_out() {
    let expected = json!({
        "ts": "2026-08-01T12:00:00.123Z", "request_id": "req-1",
        "client_address": "203.0.113.9", "operation": "chat",
        "status": 404, "outcome": "refused", "code": "workload_not_registered",
        "streamed": false, "attempts": 0, "bytes_in": 1024, "bytes_out": 180, "duration_us": 70,
        "config": "v1",
    });
    assert_eq!(line(&unknown()), expected);
    let silent = Record {
        status: 0,
        operation: None,
        outcome: Outcome::Aborted,
        code: "",
        ..unknown()
    };
    let silent = line(&silent);
    assert!(silent.get("status").is_none() && silent.get("code").is_none());
    assert!(silent.get("operation").is_none());
}

#[test]
fn an_address_of_either_kind_is_written_as_it_is_read() {
    for address in [
        "0.0.0.0",
        "7.10.100.255",
        "255.255.255.255",
        "::",
        "::1",
        "2001:db8::5",
        "2001:db8:1111:2222:3333:4444:5555:6666",
    ] {
        let record = Record {
            client: address.parse().ok(),
            ..completed(0)
        };
        assert_eq!(line(&record)["client_address"], address);
    }
    let unknown = Record {
        client: None,
        ..completed(0)
    };
    assert!(line(&unknown).get("client_address").is_none());
}

/// A caller of whom all is known.
fn ada() -> Caller {
    Caller {
        workload: "a".into(),
        by: Proven::Token,
        key: Some("k\"1".into()),
        user: Some("ada\n".into()),
        tags: [("b", "2"), ("a", "\"1")]
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        models: Box::default(),
        ..Caller::default()
    }
}

#[test]
fn who_it_was_and_why_it_was_refused_are_said() {
    let mut record = unknown();
    record.reason = Some("no key of this\nname".into());
    let said = line(&record);
    assert_eq!(said["reason"], "no key of this\u{fffd}name");
    for none in ["key", "user", "tags", "identity"] {
        assert!(said.get(none).is_none(), "{none}");
    }
    record.caller = Some(std::sync::Arc::new(ada()));
    let said = line(&record);
    assert_eq!(
        [&said["key"], &said["user"], &said["identity"]],
        ["k\"1", "ada\u{fffd}", "token"]
    );
    assert_eq!(said["tags"], json!({"a": "\"1", "b": "2"}));
    record.hides_user = true;
    let said = line(&record);
    assert!(said.get("user").is_none() && said.get("key").is_some());
}

#[test]
fn a_limit_and_an_impossible_usage_are_said() {
    assert_eq!(line(&limited(0, Kind::Tokens))["limited"], "tokens");
    let mut record = completed(0);
    record.tokens = Tokens {
        prompt: Count::Estimated(7),
        completion: Count::Unknown,
        cached: None,
        reasoning: None,
        invalid: true,
        ..Tokens::default()
    };
    let line = line(&record);
    assert_eq!(line["usage_invalid"], true);
    assert_eq!(line["prompt_source"], "estimated");
    assert!(line.get("completion_tokens").is_none() && line.get("completion_source").is_none());
}

#[test]
fn why_an_estimate_is_charged_is_said() {
    let mut record = completed(0);
    record.estimate_reason = "left_before_answer";
    record.unconfirmed.add(30, 12);
    record.unconfirmed.add(30, 12);
    let line = line(&record);
    assert_eq!(line["estimate_reason"], "left_before_answer");
    assert_eq!(line["unconfirmed_attempts"], 2);
    assert_eq!(line["unconfirmed_tokens"], 84);
}

#[test]
fn hostile_text_stays_inside_its_string() {
    let mut record = completed(1);
    record.id = "a\"b\\c\u{7f}".into();
    record.model_asked = Some("x\",\"status\":0,\"\u{1}\t\u{2028}é".into());
    let line = line(&record);
    assert_eq!(line["request_id"], "a\"b\\c\u{7f}");
    assert_eq!(line["workload"], "we\"ird\\\nname é");
    assert_eq!(line["model"], "x\",\"status\":0,\"\u{1}\t\u{2028}é");
    assert_eq!(line["status"], 200);
}

#[test]
fn every_operation_and_extreme_number_fits() {
    for operation in Operation::ALL {
        let record = Record {
            operation: Some(operation),
            bytes_in: u64::MAX,
            bytes_out: 0,
            duration: std::time::Duration::MAX,
            ..completed(0)
        };
        let line = line(&record);
        assert_eq!(line["operation"], operation.as_str());
        assert_eq!(line["bytes_in"], u64::MAX);
        assert_eq!(line["bytes_out"], 0);
        assert_eq!(line["duration_us"], u64::MAX);
    }
}

#[test]
fn durations_are_cut_to_whole_microseconds_and_stop_at_the_largest() {
    use std::time::Duration;
    assert_eq!(whole_micros(Duration::from_nanos(1_000_001_999)), 1_000_001);
    let last = Duration::from_micros(u64::MAX);
    assert_eq!(whole_micros(last), u64::MAX);
    assert_eq!(whole_micros(last + Duration::from_micros(1)), u64::MAX);
    assert_eq!(whole_micros(last - Duration::from_micros(1)), u64::MAX - 1);
}

/// The members about ids are kept as they were last written.
#[test]
fn lines_of_many_workloads_never_show_one_anothers_names() {
    let names: Vec<String> = (0..100).map(|i| format!("workload-{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let of = snapshot("v1", &names);
    let names_cached = NameCache::of(&of);
    for nth in 0..3000_u32 {
        let workload = nth * 37 % 100;
        let record = match nth % 3 {
            0 => limited(workload, Kind::Requests),
            1 => unknown(),
            _ => completed(workload),
        };
        let line = long(&mut Timestamp::default(), &names_cached, &of, &record);
        let line: Value = serde_json::from_slice(&line).unwrap();
        let known = record.workload.map(|id| names[id.index()]);
        assert_eq!(line.get("workload").and_then(Value::as_str), known);
        let endpoint = record.endpoint.map(|_| "on-prem#0");
        assert_eq!(line.get("endpoint").and_then(Value::as_str), endpoint);
        assert_eq!(line["operation"], "chat");
    }
}

#[test]
fn a_line_takes_the_room_that_it_needs() {
    let mut record = completed(0);
    record.model_asked = Some("\u{1}".repeat(5000).into());
    assert_eq!(line(&record)["model"], *"\u{1}".repeat(5000));
    let of = snapshot("v1", &["a"]);
    let names_cached = NameCache::of(&of);
    let whole = long(&mut Timestamp::default(), &names_cached, &of, &completed(0));
    let mut room = vec![0; whole.len()];
    let written = write(
        &mut room,
        &mut Timestamp::default(),
        &names_cached,
        &of,
        &completed(0),
    );
    assert_eq!(written, None);
}

/// The exact bytes: whoever cuts lines by column or by text must not see them change.
#[test]
fn a_line_to_the_byte() {
    let of = snapshot("v1", &["a"]);
    let names_cached = NameCache::of(&of);
    let mut timestamp = Timestamp::default();
    let mut out = long(&mut timestamp, &names_cached, &of, &completed(0));
    out.extend(long(
        &mut timestamp,
        &names_cached,
        &of,
        &limited(0, Kind::Requests),
    ));
    let golden = include_str!("golden.jsonl");
    assert_eq!(String::from_utf8(out).unwrap(), golden);
}

/// docs/metrics.md lists exactly the fields that lines have.
#[test]
fn the_manual_lists_exactly_these_fields() {
    let manual = include_str!("../../../../../docs/metrics.md");
    let section = &manual[manual.find("## Access log").unwrap()..];
    let listed: std::collections::BTreeSet<&str> = section
        .lines()
        .filter_map(|l| l.strip_prefix("| `"))
        .filter_map(|l| l.split('`').next())
        .collect();
    let mut full = completed(0);
    full.tokens.reasoning = Some(1);
    full.tokens.invalid = true;
    full.estimate_reason = "upstream_timeout";
    full.prompt_doubt = "not_compared";
    full.unconfirmed.add(30, 12);
    full.trace = Some(policy::trace::Trace {
        id: 0xabc,
        span: 1,
        parent: None,
        is_sampled: false,
    });
    full.upstream_id = Some("theirs".into());
    full.caller = Some(std::sync::Arc::new(Caller {
        is_user_said: true,
        ..ada()
    }));
    full.reason = Some("y".into());
    full.code = "x";
    full.extra = Some(Box::new(Extra {
        unconfirmed: None,
        dropped: ["seed", "store"].into(),
        method: "tools/call",
        named: Some("github__search".into()),
        chosen: Some(Choice {
            place: 1,
            why: Why::Prefix,
            seen: 512,
            prompt: 700,
        }),
    }));
    full.limited = Some(Kind::Requests);
    full.tokens.cache_write_5m = Some(1);
    full.tokens.cache_write_1h = Some(1);
    full.tokens.audio_prompt = Some(1);
    full.tokens.audio_completion = Some(1);
    full.tokens.units = 1;
    let said = line(&full);
    assert_eq!(said["dropped"], "seed,store");
    assert_eq!(said["mcp_method"], "tools/call");
    assert_eq!(said["chosen_by"], "prefix");
    assert_eq!(said["prefix_bytes"], 512);
    assert_eq!(said["prompt_bytes"], 700);
    assert_eq!(said["mcp_name"], "github__search");
    assert_eq!(said["trace_id"], format!("{:032x}", 0xabc));
    // A usage is invalid or doubtful, never both.
    full.tokens.invalid = false;
    full.tokens.doubtful = true;
    let doubtful = line(&full);
    // Units are images, or else searches.
    full.operation = Some(policy::operation::Operation::Images);
    let images = line(&full);
    let written = [&said, &doubtful, &images].map(|line| line.as_object().unwrap());
    let written = written.into_iter().flatten().map(|(name, _)| name.as_str());
    assert_eq!(listed, written.collect());
}
