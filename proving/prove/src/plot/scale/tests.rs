//! Axes by example.

use super::{Scale, short};

#[test]
fn a_linear_axis_starts_at_nothing_and_ends_at_a_round_number() {
    let scale = Scale::over([3.0, 17.0], false);
    assert_eq!(scale.ticks(), [0.0, 5.0, 10.0, 15.0, 20.0]);
    assert!((scale.place(5.0) - 0.25).abs() < 1e-9);
}

#[test]
fn a_logarithmic_axis_gives_every_power_the_same_room() {
    let scale = Scale::over([10.0, 100.0, 1000.0], true);
    let places = [10.0, 100.0, 1000.0].map(|value| scale.place(value));
    assert!(
        places[0].abs() < 1e-9 && (places[1] - 0.5).abs() < 1e-9 && (places[2] - 1.0).abs() < 1e-9
    );
    assert!(scale.ticks().contains(&200.0));
    let wide = Scale::over([1.0, 9_000.0], true);
    assert!(
        wide.ticks()
            .iter()
            .all(|tick| tick.log10().fract().abs() < 1e-6),
        "{:?}",
        wide.ticks()
    );
}

#[test]
fn whatever_the_values_all_lie_within_and_there_are_ticks() {
    for log in [false, true] {
        for values in [
            vec![],
            vec![0.0],
            vec![5.0],
            vec![-1.0, 2.0],
            vec![1e-3, 1e9],
            vec![f64::NAN],
            vec![5e-324],
            vec![5e-324, 1.7e308],
            vec![1.7e308, -1.7e308],
            vec![f64::INFINITY, 1.0],
            vec![1e-150, 1e150],
        ] {
            for of in [Scale::over, Scale::close, Scale::up_to] {
                let scale = of(values.clone(), log);
                let ticks = scale.ticks().len();
                assert!((2..=50).contains(&ticks), "{ticks}: {values:?} {log}");
                for value in values.iter().filter(|value| value.is_finite()) {
                    assert!((0.0..=1.0).contains(&scale.place(*value)), "{value} {log}");
                }
            }
        }
    }
}

#[test]
fn an_axis_may_end_close_above_its_values_or_with_them() {
    let close = Scale::close([0.0, 12.1], false);
    assert_eq!(close.ticks(), [0.0, 5.0, 10.0, 15.0]);
    let ends = Scale::up_to([0.0, 12_690.0], false);
    assert_eq!(ends.ticks(), [0.0, 5_000.0, 10_000.0]);
    assert!((ends.place(12_690.0) - 1.0).abs() < 1e-9 && (close.high() - 15.0).abs() < 1e-9);
    for none in [
        Scale::close([], false),
        Scale::up_to([f64::NAN, -1.0], false),
    ] {
        assert!(none.ticks().len() >= 2 && none.low() == 0.0);
    }
}

#[test]
fn numbers_are_short() {
    let cases = [
        (0.5, "0.5"),
        (16.04, "16"),
        (61.47, "61.5"),
        (812.3, "812"),
        (15_662.0, "15.7k"),
        (0.0, "0"),
        (1_978_400.0, "1.98M"),
        (1.7e308, "1.7e308"),
    ];
    for (value, text) in cases {
        assert_eq!(short(value), text);
    }
}
