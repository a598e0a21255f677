//! Where a figure of ours stands that somebody published: a place in the document, or what two of them come to.
//!
//! A place is a JSON pointer; where it leads into a list, an element may be named in place of counted: `/phases/ramp/to_s`,
//! `/latency/ITL/engine_mean_s`. `A - B` and `A / B` are a difference and a quotient of two places.
//! Not here: which figures were published (a scenario says it), how they are shown (`report`).

use serde_json::Value;

/// By which members an element of a list is named.
const NAMES: [&str; 2] = ["name", "measure"];
const SIGNS: [(&str, Of); 2] = [(" - ", |a, b| a - b), (" / ", |a, b| a / b)];

/// What two figures come to.
type Of = fn(f64, f64) -> f64;

/// Why a text is no place.
pub(super) fn fault(figure: &str) -> Option<&'static str> {
    let is_good = parts(figure).into_iter().all(|part| part.starts_with('/'));
    (!is_good).then_some(
        "is a place in report.json, such as /soak/ttft_ms or /phases/ramp/to_s - /phases/ramp/from_s",
    )
}

/// What stands there; `None` where nothing does.
pub(super) fn figure(document: &Value, figure: &str) -> Option<f64> {
    let sign = SIGNS.iter().find(|(sign, _)| figure.contains(sign));
    let mut parts = parts(figure).into_iter();
    let first = number(document, parts.next()?)?;
    let value = match (sign, parts.next()) {
        (Some((_, of)), Some(second)) => of(first, number(document, second)?),
        _ => first,
    };
    value.is_finite().then_some(value)
}

fn parts(figure: &str) -> Vec<&str> {
    let sign = SIGNS.iter().find(|(sign, _)| figure.contains(sign));
    match sign.and_then(|(sign, _)| figure.split_once(sign)) {
        Some((first, second)) => vec![first.trim(), second.trim()],
        None => vec![figure],
    }
}

fn number(document: &Value, place: &str) -> Option<f64> {
    let mut steps = place.strip_prefix('/')?.split('/');
    let found = steps.try_fold(document, |at, step| match at {
        Value::Array(list) => match step.parse::<usize>() {
            Ok(nth) => list.get(nth),
            Err(_) => list
                .iter()
                .find(|one| NAMES.iter().any(|name| one[name] == step)),
        },
        other => other.get(step),
    });
    found?.as_f64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_names_elements_and_two_of_them_come_to_a_figure() {
        let document = json!({
            "phases": [{ "name": "baseline", "to_s": 80.0 }, { "name": "ramp", "from_s": 80.0, "to_s": 380.0 }],
            "latency": [{ "measure": "ITL", "engine_mean_s": 0.035 }],
            "overhead": { "gate": { "mean": 0.002 }, "upstream_s": 14.0 },
            "none": 0,
        });
        for (place, value) in [
            ("/phases/1/to_s", Some(380.0)),
            ("/phases/ramp/to_s", Some(380.0)),
            ("/phases/ramp/to_s - /phases/ramp/from_s", Some(300.0)),
            ("/latency/ITL/engine_mean_s", Some(0.035)),
            ("/overhead/upstream_s / /none", None),
            ("/phases/soak/to_s", None),
            ("/phases/soak/to_s - /phases/soak/from_s", None),
            ("/overhead", None),
        ] {
            assert_eq!(figure(&document, place), value, "{place}");
            assert_eq!(fault(place), None, "{place}");
        }
        let share = figure(&document, "/overhead/gate/mean / /overhead/upstream_s");
        assert!(share.is_some_and(|share| (share - 0.002 / 14.0).abs() < 1e-12));
        for bad in ["soak", "/soak - ttft", ""] {
            assert!(fault(bad).is_some(), "{bad}");
        }
    }
}
