//! Streams as an engine sends them.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use load::client::Failure;
use load::observer::Measure;
use load::run::Plan;

use super::server::{self, Server};
use super::{closed, plan, seen};

const ROLE: &[u8] =
    b"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
const TOKEN: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
const FINISH: &[u8] = b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &[u8] =
    b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n";

#[test]
fn a_stream_is_timed_by_its_tokens_and_its_row_says_what_it_reported() {
    let server = Server::new(|_| {
        vec![
            server::bytes(server::EVENTS),
            server::chunk(ROLE),
            server::wait(40),
            server::chunk(TOKEN),
            server::wait(20),
            server::chunk(TOKEN),
            server::wait(20),
            server::chunk(&[TOKEN, FINISH].concat()),
            server::chunk(USAGE),
            server::last_chunk(),
        ]
    });
    let (sink, rows) = sync_channel(64);
    let plan = Plan {
        // The machine may stand still in some, not in half of them.
        most: Some(40),
        warm_up: Duration::ZERO,
        measure: Duration::from_secs(20),
        usage: true,
        records: Some(sink),
        ..plan(&server, closed(2))
    };
    let running = load::run::start(plan).expect("threads");
    let outcome = running.finish().expect("a run");
    let seen = outcome.total();
    assert_eq!((seen.answered, seen.outputs, seen.tokens), (40, 120, 120));
    let at_least = |measure, ms: u64| {
        let found = seen.quantiles(measure).expect("times");
        assert!(
            found.p50 >= ms * 1000 && found.p50 < ms * 1000 + 25_000,
            "{measure:?} {found:?}"
        );
    };
    at_least(Measure::FirstToken, 40);
    at_least(Measure::FirstVisible, 40);
    at_least(Measure::BetweenTokens, 20);
    at_least(Measure::TimePerToken, 20);
    assert!(seen.quantiles(Measure::Head).expect("heads").p50 < 35_000);
    let rows: Vec<_> = rows.iter().flatten().collect();
    assert_eq!(rows.len(), 40);
    for row in rows {
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
    }
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
