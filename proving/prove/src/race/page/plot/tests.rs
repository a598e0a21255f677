//! Plots by example.

use experiment::statistics::Spread;

use super::{Bar, Lines, Point, Series, bars, lines};

fn spread(median: f64) -> Spread {
    Spread {
        median,
        min: median * 0.9,
        max: median * 1.1,
    }
}

fn bar(name: &str, value: f64) -> Bar {
    Bar {
        name: name.into(),
        colour: 1,
        value: spread(value),
    }
}

#[test]
fn bars_are_bars_from_nothing_or_points_where_they_would_mislead() {
    let near = bars("CPU", &[bar("a<b", 10.0), bar("c", 20.0)]);
    assert_eq!(
        (
            near.matches("<rect").count(),
            near.matches("<circle").count()
        ),
        (2, 0)
    );
    assert!(near.contains("a&lt;b") && near.contains("10 (9–11)") && !near.contains("logarithmic"));
    let far = bars("CPU", &[bar("a", 10.0), bar("c", 7_000.0)]);
    assert_eq!(
        (far.matches("<rect").count(), far.matches("<circle").count()),
        (0, 2)
    );
    assert!(far.contains("logarithmic"));
}

#[test]
fn what_was_not_measured_is_not_plotted() {
    assert_eq!(bars("CPU", &[]), "");
    let plot = |points: Vec<Point>| {
        let series = Series {
            name: "a".into(),
            colour: 0,
            points,
        };
        lines(&Lines {
            title: "t",
            x: "x",
            y: "y",
            log: true,
            series: vec![series],
        })
    };
    let point = |x: f64| Point { x, y: spread(x) };
    assert_eq!(plot(vec![point(1.0)]), "");
    let drawn = plot(vec![point(50.0), point(500.0)]);
    assert_eq!(
        (
            drawn.matches("<polyline").count(),
            drawn.matches("<circle").count()
        ),
        (1, 2)
    );
    assert!(drawn.contains("a at 500: 500 (450–550)"), "{drawn}");
}
