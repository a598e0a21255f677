//! Answers to queries as a report writes them: `mean(engine:vllm:time_to_first_token_seconds)`.
//!
//! Not here: what pages say (`samples`).

use super::samples::{Samples, Series, Span};

/// The answers for the spans that these seconds may be.
pub(super) fn answers(samples: &Samples, query: &str, from: f64, to: f64) -> [Option<f64>; 4] {
    Span::all(from, to).map(|span| answer(samples, query, span))
}

fn answer(samples: &Samples, query: &str, span: Span) -> Option<f64> {
    let (function, inside) = query.split_once('(').expect("a function");
    let inside = inside.strip_suffix(')').expect("an end");
    match function {
        "mean" => {
            let [sum, count] = ["_sum", "_count"].map(|suffix| {
                let metric = format!("{inside}{suffix}");
                samples
                    .grown(&series(&metric), span)
                    .map(|(_, grown)| grown)
            });
            count
                .filter(|count| *count > 0.0)
                .and_then(|count| Some(sum? / count))
        }
        "ratio" => {
            let (part, whole) = inside.split_once(", ").expect("two metrics");
            let grown = |of: &str| samples.grown(&series(of), span).map(|(_, grown)| grown);
            Some(grown(part)? / grown(whole)?.max(1.0))
        }
        "increase" => {
            let of = series(inside);
            let is_there = !samples.gauges(&of, span).is_empty();
            let (_, grown) = samples.grown(&of, span).filter(|_| is_there)?;
            Some(grown)
        }
        "rate" => {
            let (seconds, grown) = samples.grown(&series(inside), span)?;
            Some(grown / seconds)
        }
        "avg" => mean(
            samples
                .gauges(&series(inside), span)
                .into_iter()
                .map(|(sum, count, _)| {
                    #[expect(clippy::cast_precision_loss, reason = "series are few")]
                    let count = count as f64;
                    sum / count
                }),
        ),
        "sum" => mean(
            samples
                .gauges(&series(inside), span)
                .into_iter()
                .map(|(sum, ..)| sum),
        ),
        "max" => {
            let gauges = samples.gauges(&series(inside), span).into_iter();
            gauges.map(|(.., most)| most).reduce(f64::max)
        }
        other => panic!("{other} is no function"),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    super::rows::mean(&values.collect::<Vec<f64>>())
}

/// `target:metric`, perhaps with labels.
fn series(text: &str) -> Series<'_> {
    let (name, labels) = text.split_once('{').unwrap_or((text, ""));
    let (target, metric) = name.split_once(':').expect("a target");
    let labels = labels
        .trim_end_matches('}')
        .split(", ")
        .filter(|label| !label.is_empty());
    Series {
        target,
        metric,
        labels: labels.map(str::to_owned).collect(),
    }
}
