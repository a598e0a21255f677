//! Lines are JSON and say what the record says.

use policy::limit::Kind;
use policy::operation::Operation;
use policy::record::{Count, Outcome, Record, Tokens};
use serde_json::{Value, json};

use super::{date, decimal, timestamp, write};
use crate::sample::{completed, limited, snapshot, unknown};

fn line(record: &Record) -> Value {
    let mut out = Vec::new();
    write(
        &mut out,
        &snapshot("v1", &["a", "we\"ird\\\nname é"]),
        record,
    );
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.matches('\n').count(), 1);
    assert!(text.ends_with('\n'));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_completed_exchange_in_full() {
    let mut record = completed(0);
    record.tokens.reasoning = Some(5);
    let expected = json!({
        "ts": "2026-08-01T12:00:00.123Z", "request_id": "req-1", "workload": "a",
        "operation": "chat", "route": "all", "backend": "on-prem", "endpoint": "on-prem#1",
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
        "ts": "2026-08-01T12:00:00.123Z", "request_id": "req-1", "operation": "chat",
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
fn a_limit_and_an_impossible_usage_are_said() {
    assert_eq!(line(&limited(0, Kind::Tokens))["limited"], "tokens");
    let mut record = completed(0);
    record.tokens = Tokens {
        prompt: Count::Estimated(7),
        completion: Count::Unknown,
        cached: None,
        reasoning: None,
        invalid: true,
    };
    let line = line(&record);
    assert_eq!(line["usage_invalid"], true);
    assert_eq!(line["prompt_source"], "estimated");
    assert!(line.get("completion_tokens").is_none() && line.get("completion_source").is_none());
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
fn dates_follow_the_calendar() {
    // Walk the calendar day by day beside the arithmetic.
    let (mut year, mut month, mut day) = (1970, 1, 1);
    for days in 0..200_000 {
        assert_eq!(date(days), (year, month, day), "day {days}");
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = match month {
            2 => 28 + u64::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        day += 1;
        if day > last {
            (month, day) = (month + 1, 1);
        }
        if month > 12 {
            (year, month) = (year + 1, 1);
        }
    }
}

#[test]
fn timestamps_have_milliseconds() {
    let text = |ms| {
        let mut out = Vec::new();
        timestamp(&mut out, ms);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
    assert_eq!(text(951_782_399_999), "2000-02-28T23:59:59.999Z");
    assert_eq!(text(951_782_400_007), "2000-02-29T00:00:00.007Z");
}

#[test]
fn decimals_are_padded_to_their_width_only() {
    let text = |value, width| {
        let mut out = Vec::new();
        decimal(&mut out, value, width);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        (text(0, 1), text(7, 3), text(1234, 2)),
        ("0".into(), "007".into(), "1234".into())
    );
    assert_eq!(text(u64::MAX, 1), u64::MAX.to_string());
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
    full.code = "x";
    full.limited = Some(Kind::Requests);
    let full = line(&full);
    let written = full.as_object().unwrap().keys().map(String::as_str);
    assert_eq!(listed, written.collect());
}
