//! Quantiles, errors and shares.

use super::*;

#[test]
fn quantiles_lie_between_their_neighbours() {
    let d = Distribution::of((1..=101).rev().map(f64::from).collect()).unwrap();
    assert_eq!((d.mean, d.p50, d.p90, d.p99), (51.0, 51.0, 91.0, 100.0));
    assert_eq!(Distribution::of(vec![1.0, 2.0]).unwrap().p50, 1.5);
    assert_eq!(Distribution::of(Vec::new()), None);
}

#[test]
fn errors_are_relative_and_signed() {
    let flat = |x| Distribution {
        mean: x,
        p50: x,
        p90: x,
        p99: x,
    };
    let errors = |recorded, simulated| {
        Compared {
            recorded: flat(recorded),
            simulated: flat(simulated),
        }
        .errors()[0]
    };
    assert_eq!(errors(2.0, 3.0), ("mean", 0.5));
    assert_eq!(errors(2.0, 1.0), ("mean", -0.5));
    assert_eq!(errors(0.0, 0.0), ("mean", 0.0));
}

#[test]
fn a_share_is_read_and_refused() {
    let share: Share = "0.5..1".parse().unwrap();
    assert_eq!(share.of(300), 150..300);
    assert_eq!("0..0.5".parse::<Share>().unwrap().of(3), 0..2);
    assert_eq!("0.9..1".parse::<Share>().unwrap().of(2), 1..2);
    for bad in ["", "1", "1..0.5", "0..2", "-1..1", "a..b", "0..nan"] {
        assert!(bad.parse::<Share>().is_err(), "{bad}");
    }
}
