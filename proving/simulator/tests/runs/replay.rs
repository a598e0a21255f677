//! A run of the simulator played again.

use simulator::replay::{BlockSource, Blocks, Setup, replay};
use simulator::trace::{Times, Trace};
use simulator::virtual_time::Parallelism;

use crate::fit::{MadeUp, made_up};

#[test]
fn a_run_of_the_simulator_replays_to_the_nanosecond() {
    for parallelism in [
        Parallelism::default(),
        Parallelism {
            data: 3,
            lockstep: false,
        },
        Parallelism {
            data: 3,
            lockstep: true,
        },
    ] {
        let (trace, setup, cost) = made_up(MadeUp {
            parallelism,
            gap: 0.03,
            ..MadeUp::default()
        });
        let replayed = replay(&trace, &setup, cost, |_| {}).unwrap();
        let times: Vec<Times> = trace.requests.iter().map(|r| r.times).collect();
        assert_eq!(replayed.requests, times);
        assert!(
            replayed.preemptions > 0,
            "the cache of this run is too small for it"
        );
        assert!(!replayed.timeseries.is_empty());
    }
}

#[test]
fn blocks_are_as_given_else_recorded_else_the_presets_else_ample() {
    let (mut trace, _, _) = made_up(MadeUp::default());
    let blocks = |trace: &Trace, given, preset| Setup::of(trace, given, preset).blocks;
    assert_eq!(blocks(&trace, Some(7), Some(8)).source, BlockSource::Given);
    let recorded = blocks(&trace, None, Some(8));
    assert_eq!(recorded.source, BlockSource::Recorded);
    trace.meta.blocks = None;
    let preset = blocks(&trace, None, Some(8));
    assert_eq!((preset.count, preset.source), (8, BlockSource::Preset));
    let ample = blocks(&trace, None, None);
    assert_eq!(ample.source, BlockSource::Ample);
    assert!(ample.count > recorded.count);
}

#[test]
fn a_request_that_never_fits_is_named_as_in_the_recording() {
    let (trace, setup, cost) = made_up(MadeUp {
        requests: 3,
        ..MadeUp::default()
    });
    let setup = setup.with_blocks(Blocks {
        count: 3,
        ..setup.blocks
    });
    let error = replay(&trace, &setup, cost, |_| {}).unwrap_err();
    assert!(error.to_string().contains("request made-up-"), "{error}");
}
