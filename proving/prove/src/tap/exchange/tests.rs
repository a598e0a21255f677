//! Answers of every frame, however their bytes are cut, and what is not understood.

use proptest::prelude::*;

use super::{Exchanges, id};
use crate::tap::{Arrival, Departure, Ended, Stamp};

const REQUEST: &[u8] =
    b"POST /v1 HTTP/1.1\r\nhost: x\r\nX-Request-ID: prove-0-1-2-3-4\r\ncontent-length: 2\r\n\r\n{}";

/// Bytes with their time, and whether they are of a request.
type Part<'a> = (u64, bool, &'a [u8]);

/// Requests and answers with their times; what was told.
fn told(parts: &[Part<'_>]) -> (Vec<Stamp>, [u32; 3]) {
    let mut exchanges = Exchanges::new("x-request-id");
    let (mut stamps, mut others) = (Vec::new(), [0; 3]);
    for (now, is_request, bytes) in parts {
        let tell = |what| match what {
            Ended::Stamp(stamp) => stamps.push(stamp),
            Ended::WithoutId => others[0] += 1,
            Ended::NotUnderstood => others[1] += 1,
            Ended::Cut => others[2] += 1,
        };
        match (is_request, bytes.is_empty()) {
            (true, _) => {
                let came = Arrival {
                    at_ns: *now,
                    delay_ns: 0,
                };
                exchanges.request(came, bytes);
                exchanges.sent_on(7);
            }
            (false, true) => exchanges.closed(*now, tell),
            (false, false) => {
                let went = Departure {
                    at_ns: *now,
                    took_ns: 3,
                };
                exchanges.answer(went, bytes, tell);
            }
        }
    }
    exchanges.ended(|_| others[2] += 1);
    (stamps, others)
}

fn times(stamp: &Stamp) -> [u64; 4] {
    [
        stamp.in_ns,
        stamp.whole_in_ns,
        stamp.first_out_ns,
        stamp.last_out_ns,
    ]
}

#[test]
fn an_exchange_has_the_times_of_its_first_and_last_bytes_both_ways() {
    let (head, body) = REQUEST.split_at(20);
    let whole: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
    let (stamps, others) = told(&[
        (1, true, head),
        (2, true, body),
        (
            5,
            false,
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        ),
        (6, false, b"3\r\nabc\r\n"),
        (9, false, b"0\r\n\r\n"),
        (20, true, REQUEST),
        (22, false, whole),
        (30, true, REQUEST),
        (31, false, b"HTTP/1.1 100 Continue\r\n\r\n"),
        (33, false, whole),
        (40, true, REQUEST),
        (41, false, b"HTTP/1.1 200 OK\r\n\r\nuntil"),
        (45, false, b""),
    ]);
    assert_eq!(others, [0; 3]);
    let own: Vec<u64> = stamps.iter().map(|stamp| stamp.own_ns).collect();
    assert_eq!(own, [7 + 3; 4]);
    let all: Vec<[u64; 4]> = stamps.iter().map(times).collect();
    assert_eq!(
        all,
        [
            [1, 2, 5, 9],
            [20, 20, 22, 22],
            [30, 30, 33, 33],
            [40, 40, 41, 45]
        ]
    );
    assert_eq!(stamps[0].id.to_string(), "prove-0-1-2-3-4");
}

#[test]
fn what_is_not_understood_ends_the_reading_of_its_connection_alone() {
    let answer: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let cases: [(&[Part<'_>], [u32; 3]); 5] = [
        (
            &[(1, false, answer), (2, true, REQUEST), (3, false, answer)],
            [0, 1, 0],
        ),
        (
            &[
                (1, true, REQUEST),
                (2, false, b"no HTTP\r\n\r\n"),
                (3, true, REQUEST),
            ],
            [0, 1, 0],
        ),
        (
            &[(1, true, b"GET / HTTP/1.1\r\n\r\n"), (2, false, answer)],
            [1, 0, 0],
        ),
        (
            &[
                (1, true, REQUEST),
                (2, false, b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"),
                (3, false, b""),
            ],
            [0, 0, 1],
        ),
        (
            &[(1, true, b"HEAD / HTTP/1.1\r\n\r\n"), (2, false, answer)],
            [0, 0, 0],
        ),
    ];
    for (parts, expected) in cases {
        assert_eq!(told(parts), (Vec::new(), expected));
    }
}

#[test]
fn an_id_is_found_whatever_the_letters_of_its_header() {
    let head =
        b"POST / HTTP/1.1\r\na: x-request-id: prove-9-9-9-9-9\r\nx-REQUEST-id:prove-1-2-3-4-5 ";
    let found = id(head, "x-request-id").expect("an id");
    assert_eq!(found.to_string(), "prove-1-2-3-4-5");
    assert_eq!(
        id(b"POST / HTTP/1.1\r\nx-request-id: 77", "x-request-id"),
        None
    );
}

proptest! {
    #[test]
    fn however_bytes_are_cut_the_exchange_is_the_same(cuts in proptest::collection::vec(1_usize..40, 0..20)) {
        let answer: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        let (mut parts, mut now): (Vec<Part<'_>>, u64) = (Vec::new(), 0);
        for (is_request, all) in [(true, REQUEST), (false, answer)] {
            let mut rest = all;
            for cut in cuts.iter().chain([&usize::MAX]) {
                let (part, later) = rest.split_at((*cut).min(rest.len()));
                if !part.is_empty() {
                    now += 1;
                    parts.push((now, is_request, part));
                }
                rest = later;
            }
        }
        let first_answer = parts.iter().find(|part| !part.1).expect("an answer").0;
        let (stamps, others) = told(&parts);
        prop_assert_eq!(others, [0; 3]);
        prop_assert_eq!(times(&stamps[0]), [1, first_answer - 1, first_answer, now]);
    }

    #[test]
    fn any_bytes_are_borne(parts in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..80)), 0..20)) {
        let parts: Vec<Part<'_>> = parts.iter().map(|(is_request, bytes)| (1, *is_request, &bytes[..])).collect();
        let (stamps, _) = told(&parts);
        prop_assert!(stamps.is_empty(), "no id of ours by chance");
    }
}
