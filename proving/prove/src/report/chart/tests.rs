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
    let svg = chart.svg();
    let named: Vec<(f64, f64, &str)> = words(&svg, "point").collect();
    assert!((5..=50).contains(&named.len()), "{named:?}");
    for (at, one) in named.iter().enumerate() {
        for other in &named[..at] {
            // As large as a phone shows them.
            let is_apart = (one.1 - other.1).abs() >= 18.0 || (one.0 - other.0).abs() >= 9.6;
            assert!(is_apart, "{one:?} {other:?}");
        }
    }
}

/// Where each text of a class stands, and whether it ends there.
fn words<'s>(svg: &'s str, class: &'s str) -> impl Iterator<Item = (f64, f64, &'s str)> {
    svg.split("<text class=\"").skip(1).filter_map(move |text| {
        let (of, rest) = text.split_once('"')?;
        let (x, rest) = rest.strip_prefix(" x=\"")?.split_once('"')?;
        let (y, rest) = rest.strip_prefix(" y=\"")?.split_once('"')?;
        let says = rest.strip_prefix('>')?.split('<').next()?;
        let is_of = of.split(' ').any(|word| word == class);
        is_of.then_some((x.parse().ok()?, y.parse().ok()?, says))
    })
}

#[test]
fn words_stand_beside_points_and_not_on_them() {
    let mut chart = Chart::new("t", "users", "s");
    // Points all along where the words of marks stood: at the top of an upright, and over a level.
    let high = (0..50).map(|at| (f64::from(at), Some(10.0)));
    let _ = chart.line("high", Side::Left, high);
    let low = (0..20).map(|at| (f64::from(at), Some(1.2)));
    let _ = chart.line("low", Side::Left, low);
    chart.marks.push(Mark::Across {
        at: 25.0,
        says: "T2: 224 users".into(),
    });
    for (at, says) in [(1.0, "baseline 56.9 ms"), (1.4, "3.0 x baseline: 170.6 ms")] {
        chart.marks.push(Mark::Level {
            at,
            says: says.into(),
        });
    }
    let svg = chart.svg();
    let placed: Vec<_> = words(&svg, "mark").collect();
    assert_eq!(placed.len(), 3, "{svg}");
    let dots: Vec<(f64, f64)> = svg
        .split("<circle cx=\"")
        .skip(1)
        .filter_map(|rest| {
            let (x, rest) = rest.split_once("\" cy=\"")?;
            Some((x.parse().ok()?, rest.split('"').next()?.parse().ok()?))
        })
        .collect();
    assert!(dots.len() >= 50, "{svg}");
    for (x, y, says) in &placed {
        let wide = says.len() as f64 * 11.6;
        let is_end = svg.contains(&format!("end mark\" x=\"{x:.1}\" y=\"{y:.1}\""));
        let left = if is_end { x - wide } else { *x };
        let on = dots.iter().find(|(across, down)| {
            (left..left + wide).contains(across) && (y - 18.0..y + 6.0).contains(down)
        });
        assert_eq!(on, None, "{says} at {x} {y}");
    }
    let apart = |a: &(f64, f64, &str), b: &(f64, f64, &str)| {
        (a.1 - b.1).abs() >= 24.0 || (a.0 - b.0).abs() > 200.0
    };
    assert!(apart(&placed[1], &placed[2]), "{placed:?}");
}

#[test]
fn long_times_are_in_minutes_and_hours_with_their_marks() {
    let over = |most: f64| {
        let mut chart = Chart::new("t", super::TIME, "y");
        let _ = chart.line("l", Side::Left, [(0.0, Some(1.0)), (most, Some(2.0))]);
        chart.marks.push(Mark::Across {
            at: most / 2.0,
            says: "soak".into(),
        });
        chart.svg()
    };
    for (most, unit, to) in [
        (800.0, "seconds", "800"),
        (1_800.0, "minutes", "30"),
        (12_600.0, "hours", "3.5"),
    ] {
        let svg = over(most);
        assert!(
            svg.contains(&format!(">{unit} since the beginning<")),
            "{svg}"
        );
        assert!(svg.contains(&format!("data-to=\"{to}\"")), "{svg}");
        assert!(svg.contains(&format!("{to},2 \"")), "{svg}");
    }
    // An axis of something else stays as it is.
    let mut chart = Chart::new("t", "users", "y");
    let _ = chart.line("l", Side::Left, [(20_000.0, Some(1.0))]);
    assert!(chart.svg().contains("data-to=\"20000\""));
}
