//! When the wall clock is believed.

use super::*;

const DAY_MS: u64 = 86_400_000;
/// Some moment.
const START_MS: u64 = 1_795_000_000_000;

/// Both clocks so many seconds after the start, the wall clock so much ahead.
fn at(seconds: u64, ahead_ms: i64) -> Reading {
    let wall_ms = START_MS + seconds * 1000;
    Reading {
        wall_ms: wall_ms.checked_add_signed(ahead_ms).expect("a moment"),
        monotonic: Duration::from_secs(7 + seconds),
    }
}

fn started() -> Clock {
    Clock::new(AGREE_FOR, at(0, 0))
}

/// Looks, and gives whether the clock is believed then; no step is expected.
fn believed(clock: &mut Clock, now: Reading) -> bool {
    assert_eq!(clock.step(now), None, "{now:?}");
    clock
        .believed(now)
        .inspect(|ms| assert_eq!(*ms, now.wall_ms))
        .is_some()
}

#[test]
fn the_clock_is_believed_an_hour_after_each_start() {
    for ahead in [0, 70 * DAY_MS] {
        let start = at(0, i64::try_from(ahead).expect("fits"));
        let mut clock = Clock::new(AGREE_FOR, start);
        let later = |seconds| Reading {
            wall_ms: start.wall_ms + seconds * 1000,
            monotonic: start.monotonic + Duration::from_secs(seconds),
        };
        assert!(!believed(&mut clock, later(0)));
        assert!(!believed(&mut clock, later(3599)));
        assert!(believed(&mut clock, later(3600)));
        assert!(believed(&mut clock, later(400 * 86_400)));
    }
}

#[test]
fn a_clock_that_jumps_forwards_and_back_is_reported_twice_and_believed_an_hour_later() {
    let ahead = 70 * 86_400_000_i64;
    let mut clock = started();
    assert!(believed(&mut clock, at(7200, 0)));
    let step = clock.step(at(7201, ahead)).expect("a step");
    let expected = ClockStep {
        expected_unix_ms: at(7201, 0).wall_ms,
        found_unix_ms: at(7201, ahead).wall_ms,
        after: at(7201, 0).monotonic,
    };
    assert_eq!(step, expected);
    assert_eq!(clock.believed(at(7201, ahead)), None);
    // Said once, and never believed in those 20 seconds.
    (7201..7221).for_each(|second| assert!(!believed(&mut clock, at(second, ahead))));
    let back = clock.step(at(7221, 0)).expect("a step");
    assert_eq!(back.found_unix_ms, at(7221, 0).wall_ms);
    assert!(!believed(&mut clock, at(7221 + 3599, 0)));
    assert!(believed(&mut clock, at(7221 + 3600, 0)));
}

#[test]
fn a_clock_that_is_set_back_is_not_believed_for_an_hour() {
    let back = -40 * 86_400_000_i64;
    let mut clock = started();
    assert!(clock.step(at(5000, back)).is_some());
    assert!(!believed(&mut clock, at(5000 + 3599, back)));
    assert!(believed(&mut clock, at(5000 + 3600, back)));
    // Before the epoch it reads zero.
    let zero = Reading {
        wall_ms: 0,
        ..at(9000, 0)
    };
    assert!(clock.step(zero).is_some() && clock.step(zero).is_none());
}

#[test]
fn a_drift_is_a_step_once_it_comes_to_more_than_a_minute() {
    let mut clock = started();
    for second in 0..=60_000 {
        let ahead = i64::try_from(second).expect("fits");
        assert_eq!(believed(&mut clock, at(second, ahead)), second >= 3600);
    }
    let step = clock.step(at(60_001, 60_001)).expect("a step");
    assert_eq!(step.found_unix_ms - step.expected_unix_ms, 60_001);
    assert!(!believed(&mut clock, at(60_002, 60_002)));
}

#[test]
fn a_host_that_slept_is_not_believed_for_an_hour() {
    // The monotonic clock does not count what a host sleeps.
    let slept = 8 * 3600 * 1000;
    let mut clock = started();
    assert!(believed(&mut clock, at(4000, 0)));
    assert!(clock.step(at(4001, slept)).is_some());
    assert!(!believed(&mut clock, at(4002, slept)));
    assert!(believed(&mut clock, at(4001 + 3600, slept)));
}
