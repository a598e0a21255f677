//! A run of the simulator played again.

use super::*;
use crate::fit::made_up;

#[test]
fn a_run_of_the_simulator_replays_to_the_nanosecond() {
    let (trace, config, cost) = made_up(60, 0.0);
    let replayed = replay(&trace, config, cost, |_| {}).unwrap();
    let times: Vec<Times> = trace.requests.iter().map(|r| r.times).collect();
    assert_eq!(replayed.requests, times);
    assert!(
        replayed.preemptions > 0,
        "the cache of this run is too small for it"
    );
    assert!(!replayed.timeseries.is_empty());
}

#[test]
fn blocks_are_as_given_else_recorded_else_estimated_else_ample() {
    let (mut trace, _, _) = made_up(60, 0.0);
    let blocks = |trace: &Trace, given| engine_of(trace, given).1;
    assert_eq!(blocks(&trace, Some(7)).source, BlockSource::Given);
    let recorded = blocks(&trace, None);
    assert_eq!(recorded.source, BlockSource::Recorded);
    trace.meta.blocks = None;
    let estimated = blocks(&trace, None);
    assert_eq!(estimated.source, BlockSource::Estimated);
    let off = f64::from(estimated.count) / f64::from(recorded.count) - 1.0;
    assert!(
        off.abs() < 0.1,
        "{} blocks for {}",
        estimated.count,
        recorded.count
    );
    trace.timeseries.clear();
    let ample = blocks(&trace, None);
    assert_eq!(ample.source, BlockSource::Ample);
    assert!(ample.count > recorded.count);
}

#[test]
fn a_request_that_never_fits_is_named_as_in_the_recording() {
    let (trace, mut config, cost) = made_up(3, 0.0);
    config.kv.blocks = 3;
    let error = replay(&trace, config, cost, |_| {}).unwrap_err();
    assert!(error.to_string().contains("request made-up-"), "{error}");
}
