//! The retry budget: when every upstream fails, retries do not multiply the load.

use super::{bad, pair, siblings};
use crate::harness::{Connection, Gate, free_address};
use crate::upstream_faults::call;

/// Retries that are available at the start: ten for each worker, of which there are at most two.
const INITIAL_RETRIES: usize = 10 * 2;
const CALLS: usize = 200;

#[test]
fn with_every_upstream_down_retries_stay_within_ten_percent() {
    let config = format!("workers: 2\n{}", pair(free_address(), free_address()));
    let gate = Gate::start(&config, &[]);
    let mut connections: Vec<_> = (0..8).map(|_| Connection::open(gate.data)).collect();
    for n in 0..CALLS {
        let response = connections[n % 8].call(&call("m", false));
        assert_eq!(response.status, 502, "{}", response.text());
        assert_eq!(response.code(), "upstream_unreachable");
    }
    let attempts: u64 = gate
        .records(CALLS)
        .iter()
        .filter_map(|r| r["attempts"].as_u64())
        .sum();
    let most = CALLS + CALLS / 10 + INITIAL_RETRIES;
    assert!(
        usize::try_from(attempts).expect("few") <= most,
        "{attempts} tries, {most} allowed"
    );
}

#[test]
fn overloaded_upstreams_get_at_most_ten_percent_more_calls() {
    // 425 ejects no endpoint and has none rest, so only the budget limits retries here.
    let (first, second) = (bad(), bad());
    let config = siblings(first.address, second.address, 1);
    let gate = Gate::start(&format!("workers: 2\n{config}"), &[]);
    let mut connections: Vec<_> = (0..8).map(|_| Connection::open(gate.data)).collect();
    for n in 0..CALLS {
        assert_eq!(connections[n % 8].call(&call("425", false)).status, 425);
    }
    let attempts = first.seen().len() + second.seen().len();
    let most = CALLS + CALLS / 10 + INITIAL_RETRIES;
    assert!(attempts > CALLS, "some were tried again");
    assert!(attempts <= most, "{attempts} tries, {most} allowed");
    let counted = gate.metric("tollgate_attempts_total", &["result=\"4xx\""]);
    assert!(
        (counted - f64::from(u32::try_from(attempts).expect("few"))).abs() < 0.5,
        "{counted}"
    );
    // After the first try of each call another one was made or refused; after the second there was no other endpoint.
    let retried = gate.metric("tollgate_retries_total", &["backend=\"up\""]);
    let refused = gate.metric("tollgate_retries_refused_total", &["backend=\"up\""]);
    let calls = f64::from(u32::try_from(CALLS).expect("few"));
    assert!(refused > 0.5, "the budget was spent");
    assert!(
        (retried + refused - calls).abs() < 0.5,
        "{retried} {refused}"
    );
}
