//! Records as calls, and a log that never waits for its reader.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

use super::{Record, Sink, ended};
use crate::view::{Ending, Tokens};

#[test]
fn a_record_becomes_a_call_and_a_refusal_says_why() {
    let line = r#"{"ts":"2026-11-25T22:40:01.123Z","request_id":"r1","workload":"w","backend":"b","model":"m","model_sent":"n","status":200,"outcome":"completed","streamed":true,"attempts":1,"prompt_tokens":12,"prompt_source":"reported","completion_tokens":3,"completion_source":"reported","duration_us":1500,"own_us":9}"#;
    let call = serde_json::from_str::<Record>(line)
        .expect("a record")
        .call();
    assert_eq!((&*call.at, &*call.who, &*call.to), ("22:40:01", "w", "b"));
    assert_eq!(
        (call.status, call.ending, &*call.model),
        (200, Ending::Streamed, "n")
    );
    let tokens = Tokens {
        input: 12,
        output: 3,
    };
    assert_eq!(call.engine, Some(tokens));

    let line = r#"{"ts":"t","request_id":"r2","status":404,"outcome":"refused","code":"workload_not_registered","streamed":false}"#;
    let call = serde_json::from_str::<Record>(line)
        .expect("a record")
        .call();
    assert_eq!(
        (call.ending, &*call.why),
        (Ending::Refused, "workload_not_registered")
    );
    assert_eq!((call.at, call.who, call.engine), Default::default());
    let line = r#"{"ts":"t","request_id":"r3","workload":"w","status":429,"outcome":"refused","code":"rate_limit_exceeded","limited":"requests","streamed":false}"#;
    let call = serde_json::from_str::<Record>(line)
        .expect("a record")
        .call();
    assert_eq!(call.why, "over its limit of requests");
    let larger = line.replace("rate_limit_exceeded", "request_exceeds_limit");
    let call = serde_json::from_str::<Record>(&larger)
        .expect("a record")
        .call();
    assert_eq!(call.why, "request_exceeds_limit");
}

#[test]
fn a_reader_that_is_away_costs_records_and_no_waiting() {
    let (to, records) = sync_channel(1);
    let missed = Arc::new(AtomicU64::new(0));
    let mut sink = Sink {
        file: None,
        to,
        missed: Arc::clone(&missed),
    };
    for _ in 0..3 {
        sink.write_all(b"{}\n{}\n").expect("is taken");
    }
    assert_eq!(missed.load(Ordering::Relaxed), 4);
    drop(records);
    sink.write_all(b"{}\n").expect("is taken");
    assert_eq!(missed.load(Ordering::Relaxed), 5);
}

#[test]
fn a_call_is_told_of_at_its_end_also_over_midnight() {
    assert_eq!(ended("2026-11-25T22:40:01.123Z", 876_999), "22:40:01");
    assert_eq!(ended("2026-11-25T22:40:01.123Z", 877_000), "22:40:02");
    assert_eq!(ended("2026-11-25T23:59:59.999Z", 1_000), "00:00:00");
    assert_eq!(ended("2026-11-25T00:00:00.000Z", u64::MAX).len(), 8);
    assert_eq!(ended("yesterday", 1), "");
}
