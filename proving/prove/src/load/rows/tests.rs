//! Sums of rows.

use std::time::Duration;

use load::client::Failure;
use load::observer::Record;

use super::Rows;

pub(in crate::load) fn row(intended_ms: u64, failure: Option<Failure>) -> Record {
    let at = |ms: u64| (intended_ms + ms) * 1_000_000;
    Record {
        profile: 0,
        user: 1,
        session: 2,
        turn: 3,
        intended_ns: at(0),
        sent_ns: Some(at(0)),
        head_ns: Some(at(5)),
        body_ns: Some(at(5)),
        first_token_ns: Some(at(10)),
        first_visible_ns: Some(at(10)),
        last_token_ns: Some(at(50)),
        longest_gap_ns: Some(20_000_000),
        time_per_token_ns: Some(10_000_000),
        ended_ns: at(60),
        status: 200,
        failure,
        prompt_tokens: Some(100),
        completion_tokens: Some(5),
        cached_tokens: Some(64),
        events: 6,
        outputs: 5,
        bytes_up: 400,
        bytes_down: 900,
        reopened: false,
    }
}

#[test]
fn rows_of_the_warm_up_are_not_summed_and_failures_have_no_tokens_and_are_not_good() {
    let slo = "ttft<=10ms,tpot<=10ms,itl<=20ms,e2e<=60ms"
        .parse()
        .expect("levels");
    let (rows, sender) =
        Rows::start(1, Some(slo), Duration::from_millis(100), (None, None)).expect("a thread");
    let batch = vec![
        row(50, None),
        row(100, None),
        row(150, Some(Failure::Truncated)),
    ];
    sender.send(batch).expect("room");
    drop(sender);
    let summed = rows.finish().expect("a sum");
    assert_eq!(summed.rows, 3);
    let sums = &summed.profiles[0];
    let tokens = sums.tokens;
    assert_eq!(
        (
            tokens.prompt,
            tokens.cached,
            tokens.completion,
            tokens.reported
        ),
        (100, 64, 5, 1)
    );
    let goodput = &sums.goodput;
    assert_eq!((goodput.exchanges, goodput.good, goodput.failed), (2, 1, 1));
}

#[test]
fn a_stream_without_a_token_has_no_first_token_and_cached_tokens_are_no_more_than_there_are() {
    let slo = "ttft<=50ms".parse().expect("a level");
    let (rows, sender) = Rows::start(1, Some(slo), Duration::ZERO, (None, None)).expect("a thread");
    let silent = Record {
        first_token_ns: None,
        cached_tokens: Some(1000),
        ..row(0, None)
    };
    let in_one_piece = Record {
        events: 0,
        prompt_tokens: Some(u64::MAX),
        ..silent
    };
    sender
        .send(vec![silent, in_one_piece, in_one_piece])
        .expect("room");
    drop(sender);
    let sums = &rows.finish().expect("a sum").profiles[0];
    assert_eq!((sums.goodput.exchanges, sums.goodput.good), (3, 2));
    let tokens = sums.tokens;
    assert_eq!((tokens.cached, tokens.prompt), (2000, u64::MAX));
}
