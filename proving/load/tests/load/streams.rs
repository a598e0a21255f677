//! Streams as an engine sends them.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use load::client::Failure;
use load::observer::{Measure, Record};
use load::run::Plan;
use testing::{eventually, nothing_happens_for};

use super::server::{self, Gate, Server};
use super::{closed, plan, seen};

const ROLE: &[u8] =
    b"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
const TOKEN: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
const FINISH: &[u8] = b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &[u8] =
    b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n";

/// Between two gates.
const PAUSE: Duration = Duration::from_millis(30);

#[test]
fn a_stream_is_timed_by_its_tokens_and_its_row_says_what_it_reported() {
    let [first, others] = [(); 2].map(|()| Gate::default());
    let gates = [&first, &others].map(server::until);
    let server = Server::new(move |_| {
        vec![
            server::bytes(server::EVENTS),
            server::chunk(ROLE),
            gates[0].clone(),
            server::chunk(TOKEN),
            gates[1].clone(),
            server::chunk(TOKEN),
            server::chunk(&[TOKEN, FINISH].concat()),
            server::chunk(USAGE),
            server::last_chunk(),
        ]
    });
    let (sink, rows) = sync_channel(64);
    let plan = Plan {
        most: Some(2),
        warm_up: Duration::ZERO,
        measure: super::ENOUGH,
        usage: true,
        records: Some(sink),
        ..plan(&server, closed(2))
    };
    let running = load::run::start(plan).expect("threads");
    // What was heard before a gate opened was so at least as long before what came behind it.
    eventually("two bodies", || running.open() == 2);
    nothing_happens_for(PAUSE);
    first.open();
    eventually("two tokens", || running.counters()[0].outputs == 2);
    nothing_happens_for(PAUSE);
    others.open();
    let outcome = running.finish().expect("a run");
    let seen = outcome.total();
    assert_eq!((seen.answered, seen.outputs), (2, 6));
    assert!((seen.tokens - 6.0).abs() < 1e-9, "{}", seen.tokens);
    let rows: Vec<_> = rows.iter().flatten().collect();
    assert_eq!(rows.len(), 2);
    let pause = u64::try_from(PAUSE.as_nanos()).expect("little");
    for row in &rows {
        assert_eq!((row.status, row.failure, row.bytes_up), (200, None, 2));
        assert_eq!(
            (row.prompt_tokens, row.completion_tokens, row.cached_tokens),
            (Some(12), Some(3), None)
        );
        let moments = [
            Some(row.intended_ns),
            row.sent_ns,
            row.head_ns,
            row.body_ns,
            row.first_token_ns,
            row.last_token_ns,
            Some(row.ended_ns),
        ];
        let moments = moments.map(|moment| moment.expect("it came to that"));
        assert!(moments.is_sorted(), "{moments:?}");
        let [_, _, _, body, first, last, _] = moments;
        assert!(
            body + pause <= first && first + pause <= last,
            "{moments:?}"
        );
        assert_eq!(row.first_visible_ns, Some(first));
        assert_eq!(row.time_per_token_ns, Some((last - first) / 2));
        let gap = row.longest_gap_ns.expect("three tokens");
        assert!(gap >= pause && gap <= last - first, "{gap} {moments:?}");
    }
    // What is told of all of them is what their rows say, to a hundredth.
    let longest = |measure, of: fn(&Record) -> Option<u64>| {
        let told = seen.quantiles(measure).expect("times").max;
        let row = rows.iter().map(|row| of(row).expect("a time")).max();
        let row = row.expect("two rows") / 1000;
        assert!(
            told.abs_diff(row) <= 1 + row / 100,
            "{measure:?} {told} {row}"
        );
    };
    longest(Measure::Head, |row| Some(row.head_ns? - row.intended_ns));
    longest(Measure::FirstToken, |row| {
        Some(row.first_token_ns? - row.intended_ns)
    });
    longest(Measure::FirstVisible, |row| {
        Some(row.first_visible_ns? - row.intended_ns)
    });
    longest(Measure::BetweenTokens, |row| row.longest_gap_ns);
    longest(Measure::TimePerToken, |row| row.time_per_token_ns);
}

#[test]
fn streams_that_break_off_or_tell_of_an_error_are_told_apart() {
    let cases: [(Failure, server::Script); 3] = [
        (Failure::Unfinished, |_| {
            vec![
                server::bytes(server::EVENTS),
                server::chunk(TOKEN),
                server::last_chunk(),
            ]
        }),
        (Failure::ErrorEvent, |_| {
            let error = b"data: {\"error\":{\"message\":\"out of memory\"}}\n\ndata: [DONE]\n\n";
            vec![
                server::bytes(server::EVENTS),
                server::chunk(error),
                server::last_chunk(),
            ]
        }),
        (Failure::Truncated, |_| {
            vec![
                server::bytes(server::EVENTS),
                server::chunk(TOKEN),
                server::close(),
            ]
        }),
    ];
    for (expected, script) in cases {
        let server = Server::new(script);
        let plan = Plan {
            most: Some(1),
            warm_up: Duration::ZERO,
            measure: super::ENOUGH,
            ..plan(&server, closed(1))
        };
        let seen = seen(plan);
        assert_eq!(
            seen.failures.into_iter().collect::<Vec<_>>(),
            [(expected, 1)]
        );
    }
}
