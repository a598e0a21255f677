//! Thin series by example.

use super::{MOST, points};

#[test]
fn the_ends_the_extremes_and_the_gaps_stay() {
    let all: Vec<(f64, Option<f64>)> = (0..2_000)
        .map(|at| match at {
            777 => (777.0, Some(99.0)),
            1_234 => (1_234.0, Some(-99.0)),
            1_500..1_530 => (f64::from(at), None),
            at => (f64::from(at), Some(f64::from(at % 7))),
        })
        .collect();
    let thin = points(&all);
    assert!(thin.len() <= MOST, "{}", thin.len());
    for kept in [all[0], all[777], all[1_234], all[1_999]] {
        assert!(thin.contains(&kept), "{kept:?}");
    }
    assert!(
        thin.iter()
            .any(|(x, y)| y.is_none() && (1_500.0..1_530.0).contains(x))
    );
    assert!(
        thin.is_sorted_by(|a, b| a.0 < b.0),
        "in order, and none twice"
    );
    assert_eq!(points(&thin), thin, "thin already");
}

#[test]
fn a_short_series_stays_as_it_is() {
    let all = [(0.0, None), (1.0, Some(2.0))];
    assert_eq!(points(&all), all);
    assert_eq!(points(&[]), []);
}
