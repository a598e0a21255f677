//! Figures by example.

use super::{bandwidth, difference, duration, maybe, percent, plain, time};

#[test]
fn times_have_the_unit_of_their_size() {
    let cases = [
        (0.0, "0 s"),
        (0.000_002_54, "2.5 µs"),
        (0.002, "2.000 ms"),
        (0.103, "103.0 ms"),
        (14.2914, "14.291 s"),
        (10_800.0, "10800 s"),
        (f64::NAN, "–"),
    ];
    for (value, text) in cases {
        assert_eq!(time(value), text);
    }
    assert_eq!(
        [90.0, 1_500.0, 10_800.0].map(duration),
        ["90.0 s", "25 min 00 s", "3 h 00 min"]
    );
}

#[test]
fn small_shares_keep_their_digits_and_differences_their_sign() {
    assert_eq!(
        [0.000_125, 0.000_14, 0.105, 0.0].map(percent),
        ["0.0125 %", "0.0140 %", "10.5 %", "0 %"]
    );
    assert_eq!(
        [0.1, -0.012, 0.0].map(difference),
        ["+10.0 %", "−1.20 %", "0 %"]
    );
}

#[test]
fn plain_figures_have_three_digits_and_what_is_absent_is_a_dash() {
    let cases = [
        (8.7, "8.70"),
        (0.0125, "0.0125"),
        (1_234_567.0, "1,234,567"),
        (4.2e-7, "4.20e-7"),
        (7.71e-4, "0.000771"),
        (-2.5e-6, "-0.00000250"),
        (224.0, "224"),
    ];
    for (value, text) in cases {
        assert_eq!(plain(value), text);
    }
    assert_eq!(maybe(None, plain), "–");
    assert_eq!(bandwidth(261.87e9), "261.87 GB/s");
}
