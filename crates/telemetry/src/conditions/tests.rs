//! A condition begins, lasts and ends in few lines, and no failure is left out of their counts.

use std::sync::Arc;
use std::time::Duration;

use policy::id::EndpointId;
use policy::record::{Count, Sink, Tokens, Trouble};

use super::{Condition, Conditions, DETAIL_BYTES, Heard, Phase};
use crate::sample::{completed, snapshot};
use crate::worker_metrics::WorkerMetrics;

const UP: &str = "on-prem#0";

fn bad(times: u64) -> Heard {
    Heard {
        times,
        detail: "Connection refused".into(),
        is_over: false,
    }
}

fn well() -> Heard {
    Heard {
        is_over: true,
        ..Heard::default()
    }
}

fn endpoint() -> Condition {
    Condition::Endpoint(UP.into())
}

/// Looks at this second; what the lines say.
fn look(conditions: &mut Conditions, second: u64) -> Vec<(Phase, u64, u64, u64)> {
    let changes = conditions.look(Duration::from_secs(second));
    let said = |c: &super::Change| (c.phase, c.times, c.total, c.lasts.as_secs());
    changes.iter().map(said).collect()
}

#[test]
fn an_endpoint_that_fails_and_returns_leaves_a_line_at_each_change() {
    let mut conditions = Conditions::default();
    assert_eq!(look(&mut conditions, 0), []);
    conditions.tell(endpoint(), bad(1));
    assert_eq!(look(&mut conditions, 1), [(Phase::Begins, 1, 1, 0)]);
    for second in 2..=30 {
        conditions.tell(endpoint(), bad(10));
        assert_eq!(look(&mut conditions, second), [], "{second}");
    }
    conditions.tell(endpoint(), bad(10));
    assert_eq!(look(&mut conditions, 31), [(Phase::Lasts, 300, 301, 30)]);
    conditions.tell(endpoint(), bad(1));
    conditions.tell(endpoint(), well());
    assert_eq!(
        look(&mut conditions, 32),
        [],
        "well and bad in one look is not over"
    );
    conditions.tell(endpoint(), well());
    assert_eq!(look(&mut conditions, 33), [(Phase::Ends, 1, 302, 32)]);
    conditions.tell(endpoint(), well());
    assert_eq!(look(&mut conditions, 34), [], "once");
}

#[test]
fn one_that_comes_and_goes_is_told_of_at_most_once_in_a_while_and_counted_whole() {
    let mut conditions = Conditions::default();
    let (mut begun, mut counted, mut lines) = (0, 0, 0);
    for second in 0..300 {
        let heard = if second % 2 == 0 { bad(3) } else { well() };
        conditions.tell(endpoint(), heard);
        for (phase, times, ..) in look(&mut conditions, second) {
            begun += u64::from(phase == Phase::Begins);
            counted += times;
            lines += 1;
        }
    }
    assert!((9..=10).contains(&begun), "{begun}");
    assert_eq!(lines, 2 * begun, "as many ends as beginnings");
    assert!(
        counted > 400,
        "all but those of the last half minute: {counted}"
    );
}

#[test]
fn an_endpoint_is_not_over_for_want_of_calls() {
    let mut conditions = Conditions::default();
    conditions.tell(endpoint(), bad(1));
    assert_eq!(look(&mut conditions, 0).len(), 1);
    for second in 1..1000 {
        assert_eq!(look(&mut conditions, second), []);
    }
    conditions.tell(endpoint(), well());
    assert_eq!(look(&mut conditions, 1000), [(Phase::Ends, 0, 1, 1000)]);
}

#[test]
fn what_nobody_tells_the_end_of_is_over_when_it_is_quiet() {
    let mut conditions = Conditions::default();
    let handshakes = || Condition::Connections(Trouble::ClientTls);
    conditions.tell(handshakes(), bad(7));
    assert_eq!(look(&mut conditions, 0), [(Phase::Begins, 7, 7, 0)]);
    conditions.tell(handshakes(), bad(1));
    assert_eq!(look(&mut conditions, 20), []);
    assert_eq!(look(&mut conditions, 49), [(Phase::Lasts, 1, 8, 49)]);
    assert_eq!(look(&mut conditions, 50), [(Phase::Ends, 0, 8, 50)]);
}

#[test]
fn workers_count_for_themselves_and_one_line_has_the_sum() {
    let of = snapshot("v1", &["a"]);
    let mut conditions = Conditions::default();
    let mut workers = [conditions.reporter(), conditions.reporter()];
    let name: Arc<str> = Arc::clone(&of.endpoints[0].name);
    for worker in &mut workers {
        worker.well(&of, EndpointId(0));
        for n in 0..5 {
            worker.trouble(&of, Trouble::Endpoint(EndpointId(0)), &format!("try {n}"));
        }
        worker.trouble(&of, Trouble::Endpoint(EndpointId(99)), &"unknown");
        worker.flush();
    }
    let changes = conditions.look(Duration::ZERO);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!((changes[0].times, &*changes[0].detail), (10, "try 0"));
    assert_eq!(changes[0].condition, Condition::Endpoint(Arc::clone(&name)));
    // Any worker's success ends it, now that it is on.
    workers[1].well(&of, EndpointId(0));
    workers[1].flush();
    assert_eq!(look(&mut conditions, 1), [(Phase::Ends, 0, 10, 1)]);
}

#[test]
fn a_report_that_is_charged_though_its_text_cannot_hold_it_names_its_backend() {
    let of = snapshot("v1", &["a"]);
    let mut conditions = Conditions::default();
    let mut worker = WorkerMetrics::new(None).with_reporter(Some(conditions.reporter()));
    let mut record = completed(0);
    worker.exchange(&of, &record);
    record.bytes_in = 108;
    record.tokens = Tokens {
        prompt: Count::Reported(16_000_000),
        is_beyond_body: true,
        ..record.tokens
    };
    worker.exchange(&of, &record);
    record.tokens = Tokens {
        completion: Count::Reported(50_000),
        is_beyond_answer: true,
        ..completed(0).tokens
    };
    worker.exchange(&of, &record);
    // The gate's own count is charged in its place.
    record.tokens.completion = Count::Counted(8);
    worker.exchange(&of, &record);
    worker.tick();
    let changes = conditions.look(Duration::ZERO);
    let [change] = &changes[..] else {
        panic!("{changes:?}")
    };
    assert_eq!(change.condition, Condition::Beyond("on-prem".into()));
    assert_eq!(change.times, 2);
    assert_eq!(
        &*change.detail,
        "reported 100 and 50000 tokens, which are charged: a body of 108 bytes, an answer of 4096"
    );
}

#[test]
fn a_worker_never_waits_and_loses_no_count_when_nobody_looks() {
    let of = snapshot("v1", &["a"]);
    let mut conditions = Conditions::default();
    let mut worker = conditions.reporter();
    for _ in 0..1000 {
        worker.trouble(&of, Trouble::ClientTls, &"x");
        worker.flush();
    }
    let first = conditions.look(Duration::ZERO);
    worker.flush();
    conditions.look(Duration::from_secs(1));
    let second = conditions.look(Duration::from_secs(31));
    assert_eq!(first[0].times + second[0].times, 1000);
}

#[test]
fn a_detail_is_one_line_of_bounded_length() {
    let of = snapshot("v1", &["a"]);
    let mut conditions = Conditions::default();
    let mut worker = conditions.reporter();
    let long = "é\n\u{1b}[31m".repeat(1000);
    worker.trouble(&of, Trouble::ClientTls, &long);
    worker.flush();
    let changes = conditions.look(Duration::ZERO);
    let detail = &changes[0].detail;
    assert!(detail.len() <= DETAIL_BYTES + 2, "{}", detail.len());
    assert!(!detail.chars().any(char::is_control), "{detail}");
}
