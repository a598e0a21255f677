//! Halves in any order, what is no pair, and what pairs come to.

use load::client::Failure;
use load::observer::Record;
use load::source::RequestId;

use super::{Loopback, OwnMeans, Pair, Pairs, Unpaired, paired};
use crate::tap::Stamp;

const START: u64 = 1_000_000;

fn id(user: u64) -> RequestId {
    RequestId {
        profile: 0,
        user,
        session: 0,
        turn: 0,
        intended_ns: 5,
    }
}

/// A request that was sent at 100, whose first byte came at 900 and whose last at 2,000.
fn row(user: u64, failure: Option<Failure>) -> Record {
    Record {
        profile: 0,
        user,
        session: 0,
        turn: 0,
        intended_ns: 5,
        sent_ns: Some(100),
        head_ns: Some(900),
        body_ns: Some(900),
        first_token_ns: None,
        first_visible_ns: None,
        last_token_ns: None,
        longest_gap_ns: None,
        time_per_token_ns: None,
        ended_ns: 2_000,
        status: 200,
        failure,
        prompt_tokens: None,
        completion_tokens: None,
        cached_tokens: None,
        events: 0,
        outputs: 0,
        bytes_up: 0,
        bytes_down: 0,
        reopened: false,
    }
}

fn stamp(user: u64) -> Stamp {
    Stamp {
        id: id(user),
        in_ns: START + 140,
        whole_in_ns: START + 150,
        first_out_ns: START + 870,
        last_out_ns: START + 1_960,
        delay_ns: 0,
        own_ns: 12,
    }
}

const PAIR: Pair = Pair {
    id: RequestId {
        profile: 0,
        user: 1,
        session: 0,
        turn: 0,
        intended_ns: 5,
    },
    sent_ns: 100,
    to_upstream_ns: 50,
    first_back_ns: 30,
    last_back_ns: 40,
    upstream_ns: 1_810,
    downstream_ns: 1_900,
    delay_ns: 0,
};

#[test]
fn halves_are_paired_whichever_comes_first() {
    let mut pairs = Pairs::new(START);
    pairs.row(&row(1, None));
    pairs.stamp(stamp(1));
    pairs.stamp(stamp(2));
    pairs.row(&row(2, None));
    let (pairs, unpaired) = pairs.finish();
    assert_eq!(pairs, [PAIR, Pair { id: id(2), ..PAIR }]);
    assert_eq!(unpaired, Unpaired::default());
    assert_eq!(PAIR.gate_ns(), 80);
}

#[test]
fn what_failed_was_retried_or_has_no_other_half_is_counted_and_not_paired() {
    let mut pairs = Pairs::new(START);
    pairs.stamp(stamp(1));
    pairs.row(&row(1, Some(Failure::Truncated)));
    pairs.stamp(stamp(2));
    pairs.stamp(stamp(2));
    pairs.row(&row(2, None));
    pairs.stamp(stamp(3));
    pairs.row(&row(4, None));
    let (pairs, unpaired) = pairs.finish();
    assert!(pairs.is_empty());
    let expected = Unpaired {
        failed: 1,
        repeated: 1,
        no_room: 0,
        halves: 2,
    };
    assert_eq!(unpaired, expected);
}

#[test]
fn pairs_come_to_means_quantiles_and_what_is_net_of_loopback() {
    let pairs: Vec<Pair> = (1..=1_000)
        .map(|at| Pair {
            to_upstream_ns: at * 1_000,
            first_back_ns: 10_000,
            ..PAIR
        })
        .collect();
    let direct = [Pair {
        to_upstream_ns: 20_000,
        first_back_ns: 4_000,
        ..PAIR
    }];
    let relayed = [Pair {
        to_upstream_ns: 50_000,
        first_back_ns: 20_000,
        ..PAIR
    }];
    let passed = [Stamp {
        own_ns: 9_000,
        ..stamp(1)
    }];
    let own = OwnMeans {
        histogram_s: Some(1.0),
        record_s: Some(2.0),
    };
    let overhead = paired(&pairs, Loopback::of(&direct, &relayed, &passed), own).expect("pairs");
    let near = |is: f64, expected: f64| assert!((is - expected).abs() < 1e-12, "{is} {expected}");
    near(overhead.gate.mean, 510.5e-6);
    near(overhead.gate.p50, 510e-6);
    near(overhead.gate.p99, 1_000e-6);
    near(overhead.gate.max, 1_010e-6);
    near(overhead.upstream_s, 1.81e-6);
    near(overhead.parts[0].1, 500.5e-6);
    let isolated = overhead.isolated.expect("loopback is known");
    near(isolated.net_of_one_hop_s, 510e-6 - 24e-6);
    near(isolated.own_s, 510e-6 - (70e-6 - 9e-6));
    assert_eq!(Loopback::of(&direct, &relayed, &[]), None);
    assert_eq!(overhead.cdf.len(), 200);
    assert_eq!(overhead.cdf[199], (overhead.gate.max, 1.0));
    assert!(overhead.cdf.is_sorted_by(|a, b| a.0 <= b.0 && a.1 < b.1));
    assert_eq!(
        (overhead.own_histogram_s, overhead.own_record_s),
        (Some(1.0), Some(2.0))
    );
    assert!(paired(&[], None, own).is_none());
}

#[test]
fn a_file_of_pairs_that_cannot_be_written_is_named() {
    let error = super::pairs_file::write("/nowhere/pairs.parquet".as_ref(), &[], &[]);
    let error = error.expect_err("no directory");
    assert!(error.starts_with("/nowhere/pairs.parquet: "), "{error}");
}
