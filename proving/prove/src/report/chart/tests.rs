//! Charts by example.

use super::{Chart, Kind, Mark, Side};

fn chart() -> Chart {
    let mut chart = Chart::new("a<b", "users", "TTFT, s");
    let points = [
        (1.0, Some(0.1)),
        (2.0, None),
        (3.0, Some(0.25)),
        (4.0, Some(f64::NAN)),
        (5.0, Some(0.123_456_789)),
    ];
    let _ = chart.line("mean", Side::Left, points);
    chart
}

#[test]
fn a_gap_in_the_data_is_a_gap_in_the_line() {
    let svg = chart().svg();
    let (_, path) = svg.split_once("<path d=\"").expect("a line");
    let (path, _) = path.split_once('"').expect("its end");
    assert_eq!(
        (path.matches('M').count(), path.matches('L').count()),
        (3, 0),
        "{path}"
    );
    assert!(
        svg.contains("data-values=\"1,0.1 3,0.25 5,0.12346 \""),
        "{svg}"
    );
    assert!(svg.contains("<title>mean: 0.1235 at 5</title>"), "{svg}");
    assert!(svg.contains("aria-label=\"a&lt;b\""));
}

#[test]
fn what_has_no_value_is_no_line_and_a_chart_without_lines_is_empty() {
    let mut chart = Chart::new("t", "x", "y");
    assert!(chart.line("a", Side::Left, [(1.0, None)]).is_none());
    assert!(chart.line("a", Side::Left, []).is_none());
    assert!(chart.is_empty());
}

#[test]
fn a_second_axis_has_its_own_scale_and_marks_lie_within_the_chart() {
    let mut chart = chart();
    let _ = chart.line(
        "preemptions",
        Side::Right,
        [(1.0, Some(0.0)), (5.0, Some(4_000.0))],
    );
    chart.right = Some("preemptions".into());
    chart.marks.push(Mark::Level {
        at: 0.3,
        says: "limit".into(),
    });
    chart.marks.push(Mark::Across {
        at: 9.0,
        says: "T2".into(),
    });
    let svg = chart.svg();
    assert!(
        svg.contains("(right axis)") && svg.contains(">4000<"),
        "{svg}"
    );
    assert!(
        svg.contains("data-to=\"9\""),
        "the axis reaches the mark: {svg}"
    );
    chart.lines[0].kind = Kind::Steps;
    assert!(!chart.svg().contains("mean: "), "steps have no marks");
}

#[test]
fn names_of_points_do_not_lie_over_one_another() {
    let mut chart = Chart::new("t", "x", "y");
    let points = (0..50).map(|at| (f64::from(at), Some(1.0)));
    let line = chart.line("l", Side::Left, points).expect("a line");
    line.names = (0..50).map(|at| at.to_string()).collect();
    let named = chart.svg().matches("class=\"point end\"").count();
    assert!((5..=15).contains(&named), "{named}");
}
