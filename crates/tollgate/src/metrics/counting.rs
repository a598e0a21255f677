//! Metrics of the gate's own count: how much of the traffic it covers, and how far the engines' reports are from it.
//!
//! Not here: when an alarm goes off (`tokens::drift`), tokens by workload (`telemetry`).

use std::collections::BTreeMap;
use std::sync::Arc;

use counting::{CountedModel, Direction, RESULTS};
use policy::billing::BilledBy;
use telemetry::Extra;
use telemetry::extras::number;
use tokens::Shape;
use tokens::calibration::{Difference, Features};

use crate::pool::Pool;

/// All of them, now.
pub(super) fn of(counting: &Pool) -> Vec<Extra> {
    let mut extras = vec![
        Extra::gauge(
            "tollgate_counting_bytes",
            "Bytes of requests and answers that wait to be counted, or are being counted.",
            number(counting.bytes_held() as u64),
        ),
        Extra::gauge(
            "tollgate_counting_threads",
            "The most threads that count at once.",
            number(counting.threads() as u64),
        ),
        Extra::counter(
            "tollgate_counting_seconds_total",
            "Time spent counting, all threads together, seconds.",
            counting.metrics().busy().as_secs_f64(),
        ),
    ];
    extras.push(Extra::counter(
        "tollgate_counting_held_back_total",
        "Answers that were held back because the queue had no room for their calls.",
        number(counting.metrics().answers_held_back()),
    ));
    let memo = counting.cache().memo();
    for (result, texts, bytes) in [
        ("hit", memo.hits, memo.hit_bytes),
        ("miss", memo.misses, memo.missed_bytes),
    ] {
        let help = "Texts by whether they had been counted before.";
        let extra = Extra::counter("tollgate_counting_texts_total", help, number(texts));
        extras.push(extra.with("result", result));
        let help = "Bytes of texts by whether they had been counted before.";
        let extra = Extra::counter("tollgate_counting_text_bytes_total", help, number(bytes));
        extras.push(extra.with("result", result));
    }
    extras.push(Extra::counter(
        "tollgate_counting_evictions_total",
        "Texts whose count was forgotten for want of room.",
        number(memo.evictions),
    ));
    for by in [BilledBy::Reported, BilledBy::Counted] {
        for direction in Direction::ALL {
            let results = counting.metrics().results(by, direction);
            for (result, n) in RESULTS.into_iter().zip(results) {
                let help =
                    "Exchanges by what became of their count, and by whose count they are billed.";
                let extra = Extra::counter("tollgate_counting_exchanges_total", help, number(n));
                extras.push(
                    extra
                        .with("billed_by", by.as_str())
                        .with("direction", direction.as_str())
                        .with("result", result),
                );
            }
        }
    }
    extras.extend(drift(counting));
    extras.extend(marks(counting));
    extras.extend(unread(counting));
    extras
}

/// How far counts of prompts can be trusted, by what was compared.
fn marks(counting: &Pool) -> Vec<Extra> {
    let calibrations = counting.calibrations();
    let mut differing = Differing::new();
    let mut extras = Vec::new();
    for (CountedModel { backend, model, .. }, summary) in calibrations.summaries() {
        let Features {
            agreed,
            differ,
            open,
        } = summary.features;
        let all = agreed.and(differ).and(open).len();
        let help = "Features of prompts that were seen whose counts are exact, as a share.";
        let share = f64::from(agreed.len()) / f64::from(all.max(1));
        let extra = Extra::gauge("tollgate_token_exact", help, share);
        extras.push(extra.with("backend", &backend).with("model", &model));
        let differences = summary.differences.into_iter();
        differences.for_each(|one| differs(&mut differing, &backend, &model, one));
    }
    for (CountedModel { backend, model, .. }, differences) in calibrations.near() {
        let differences = differences.into_iter();
        differences.for_each(|one| differs(&mut differing, &backend, &model, one));
    }
    let help = "Tokens that engines count beyond the gate's own, of a prompt with these features, on average.";
    extras.extend(
        differing
            .into_iter()
            .map(|((backend, model, features), (tokens, calls))| {
                let mean = tokens as f64 / calls.max(1) as f64;
                Extra::gauge("tollgate_token_shape_difference", help, mean)
                    .with("backend", &backend)
                    .with("model", &model)
                    .with("feature", &features.to_string())
            }),
    );
    extras
}

/// Tokens by which prompts differ, and how many do, by backend, model and features.
type Differing = BTreeMap<(Arc<str>, Arc<str>, Shape), (i64, u64)>;

fn differs(differing: &mut Differing, backend: &Arc<str>, model: &Arc<str>, one: Difference) {
    let of = (Arc::clone(backend), Arc::clone(model), one.features);
    let (tokens, calls) = differing.entry(of).or_default();
    *tokens = tokens.saturating_add(one.tokens);
    *calls += one.calls;
}

/// Models of which calls have no count.
fn unread(counting: &Pool) -> Vec<Extra> {
    let mut extras = Vec::new();
    for (model, unread) in counting.metrics().unreadable() {
        let (_, uncounted) = unread.share.exchanges();
        let help = "Calls that have no count because their prompt cannot be read or rendered, or because counting failed.";
        let total = number(uncounted);
        extras.push(
            Extra::counter("tollgate_token_uncounted_total", help, total).with("model", &model),
        );
        let help = "Whether too many of them have none (1) or not (0), and why the first had none.";
        let on = f64::from(u8::from(unread.share.is_raised()));
        extras.push(
            Extra::gauge("tollgate_token_uncounted_alarm", help, on)
                .with("model", &model)
                .with("reason", unread.reason),
        );
    }
    extras
}

fn drift(counting: &Pool) -> Vec<Extra> {
    let mut extras = Vec::new();
    for (of, series) in counting.metrics().series() {
        let labelled = |extra: Extra| {
            extra
                .with("model", &of.model)
                .with("backend", &of.backend)
                .with("direction", of.direction.as_str())
        };
        let drift = &series.drift;
        if let Some(ratio) = drift.ratio() {
            let help = "Tokens that engines reported over those that the gate counted, less one.";
            extras.push(labelled(Extra::gauge(
                "tollgate_token_drift_ratio",
                help,
                ratio,
            )));
        }
        let (reported, counted) = drift.tokens();
        for (witness, tokens) in [("reported", reported), ("counted", counted)] {
            let help = "Tokens of exchanges that have both witnesses.";
            let extra = Extra::counter("tollgate_token_drift_tokens_total", help, number(tokens));
            extras.push(labelled(extra).with("source", witness));
        }
        let (exchanges, outside) = drift.exchanges();
        for (within, n) in [("yes", exchanges.saturating_sub(outside)), ("no", outside)] {
            let help =
                "Exchanges that have both witnesses, by whether they agree within the tolerance.";
            let extra = Extra::counter("tollgate_token_drift_exchanges_total", help, number(n));
            extras.push(labelled(extra).with("within", within));
        }
        let help = "Whether the alarm is on (1) or off (0).";
        let on = f64::from(u8::from(drift.is_raised()));
        extras.push(labelled(Extra::gauge(
            "tollgate_token_drift_alarm",
            help,
            on,
        )));
        let help = "How often the alarm went off.";
        let extra = Extra::counter(
            "tollgate_token_drift_alarms_total",
            help,
            number(series.alarms),
        );
        extras.push(labelled(extra));
    }
    extras
}
