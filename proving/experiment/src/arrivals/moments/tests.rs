//! The closed forms against values computed elsewhere, and against each other where they meet.

use super::super::Mmpp;
use super::*;

fn near(value: f64, wanted: f64, within: f64) {
    assert!((value - wanted).abs() <= within, "{value} is not {wanted}");
}

#[test]
fn modulated_processes_have_the_tabled_moments() {
    // (high, low, r1, r2), then rate, cv^2, lag-1, dispersion at 10 s and at 100 s.
    for ([high, low, r1, r2], [rate, cv2, lag, at_10, at_100]) in [
        ([20.0, 0.0, 0.5, 0.1], [3.33, 56.6, 0.0, 47.3, 55.6]),
        ([20.0, 0.5, 0.5, 0.1], [3.75, 9.62, 0.366, 40.1, 47.2]),
        ([10.0, 1.0, 0.2, 0.05], [2.80, 3.42, 0.331, 24.4, 36.5]),
    ] {
        let mmpp = Process::Mmpp(Mmpp::new(high, low, 1.0 / r1, 1.0 / r2).unwrap());
        near(mmpp.rate().unwrap(), rate, 0.005);
        near(mmpp.cv2().unwrap(), cv2, 0.06);
        near(mmpp.correlation(1).unwrap(), lag, 0.0006);
        near(mmpp.dispersion(10.0).unwrap(), at_10, 0.06);
        near(mmpp.dispersion(100.0).unwrap(), at_100, 0.06);
    }
}

#[test]
fn later_lags_of_a_modulated_process_fall_geometrically() {
    let mmpp = Mmpp::new(20.0, 0.5, 2.0, 10.0).unwrap();
    let falls = |lag| mmpp.correlation(lag + 1) / mmpp.correlation(lag);
    near(falls(1), falls(7), 1e-12);
    assert!(falls(1) > 0.0 && falls(1) < 1.0);
    assert_eq!(mmpp.correlation(0), 1.0);
}

#[test]
fn gamma_counts_have_the_dispersion_of_their_limits() {
    let process = |cv| Process::Gamma { mean_s: 1.0, cv };
    for window in [0.1, 1.0, 10.0, 300.0] {
        near(process(1.0).dispersion(window).unwrap(), 1.0, 1e-9);
    }
    let bursty = process(1.5);
    // In a window without room for two, counts are those of a coin; in a wide one, the variance is cv^2 of the mean.
    near(bursty.dispersion(1e-6).unwrap(), 1.0, 0.01);
    near(bursty.dispersion(30_000.0).unwrap(), 2.25, 1e-4);
    let (series, expansion) = (
        gamma_dispersion(1_999.0, 2.25),
        gamma_dispersion(2_001.0, 2.25),
    );
    near(series, expansion, 1e-5);
    let smooth = process(0.5);
    near(smooth.dispersion(30_000.0).unwrap(), 0.25, 1e-4);
    assert!(smooth.dispersion(1.0).unwrap() > 0.25);
}

#[test]
fn a_constant_process_counts_the_same_in_whole_windows() {
    let process = Process::Constant { mean_s: 0.25 };
    assert_eq!(process.dispersion(1.0), Some(0.0));
    assert_eq!(process.dispersion(0.125), Some(0.5));
    assert_eq!(process.cv2(), Some(0.0));
    assert_eq!(Process::Constant { mean_s: 0.0 }.rate(), None);
    assert_eq!(Process::Recorded.rate(), None);
}
