//! Tables for medians, least and greatest.

use super::Spread;

fn spread(values: &[f64]) -> Option<(f64, f64, f64)> {
    Spread::of(values.iter().copied()).map(|s| (s.median, s.min, s.max))
}

#[test]
fn an_odd_number_of_values_has_its_middle_as_median() {
    assert_eq!(spread(&[9.0, 1.0, 4.0]), Some((4.0, 1.0, 9.0)));
}

#[test]
fn an_even_number_of_values_has_the_mean_of_its_two_middles() {
    assert_eq!(spread(&[8.0, 1.0, 4.0, 2.0]), Some((3.0, 1.0, 8.0)));
}

#[test]
fn one_value_is_all_three() {
    assert_eq!(spread(&[-2.5]), Some((-2.5, -2.5, -2.5)));
}

#[test]
fn nothing_finite_has_no_spread_and_does_not_disturb_the_rest() {
    assert_eq!(spread(&[]), None);
    assert_eq!(spread(&[f64::NAN, f64::INFINITY]), None);
    assert_eq!(spread(&[f64::NAN, 3.0, 5.0, 4.0]), Some((4.0, 3.0, 5.0)));
}
