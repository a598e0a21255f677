//! Pages as gateways write them.

use super::{Reading, reading};
use crate::verify::suite::selector;

const PAGE: &str = "# HELP refused_total what was refused\n# TYPE refused_total counter\n\
    refused_total{workload=\"a\",kind=\"x\"} 3\n\
    refused_total{workload=\"a\",kind=\"y\"} 4 1767225600000\n\
    refused_total{workload=\"say \\\"b\\\", {c}\",kind=\"x\"} 5e0\n\
    # not finite\nodd NaN\nplain_total 9\nrefused_bytes_total 1\n";

fn of(series: &str) -> Reading {
    reading(PAGE, &selector(series).expect("a series"))
}

#[test]
fn a_value_is_the_sum_over_the_series_whose_labels_fit() {
    assert_eq!(of("refused_total").value, Some(12.0));
    assert_eq!(of("refused_total{workload=\"a\"}").value, Some(7.0));
    assert_eq!(
        of("refused_total{kind=\"x\", workload=\"a\"}").value,
        Some(3.0)
    );
    assert_eq!(of("plain_total").value, Some(9.0));
}

#[test]
fn a_metric_that_is_not_there_is_told_with_the_nearest_names() {
    let nothing = of("refused_totl");
    assert_eq!(
        (nothing.value, nothing.nearest[0].as_str()),
        (None, "refused_total")
    );
    assert_eq!(nothing.nearest.len(), 3);
    let other = of("refused_total{workload=\"z\"}");
    assert_eq!(other.value, None);
    assert_eq!(other.nearest[0], "refused_total{kind=\"x\",workload=\"a\"}");
    let empty = reading("", &selector("a_total").expect("a series"));
    assert_eq!((empty.value, empty.nearest.len()), (None, 0));
}

#[test]
fn lines_that_are_no_series_are_passed_over() {
    let page = "a_total\na_total{\na_total{x=\"1\na_total{x=\"1\"}\na_total 2\n";
    let of = |page: &str| reading(page, &selector("a_total").expect("a series")).value;
    assert_eq!(of(page), Some(2.0));
    // A series of which nothing can be said is there: a sum without it would be another's.
    let much = of(&format!("{page}a_total{{x=\"1\"}} much\n"));
    assert!(much.is_some_and(f64::is_nan), "{much:?}");
}
