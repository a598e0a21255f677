//! Metrics of the gate's own count: how much of the traffic it covers, and how far the engines' reports are from it.
//!
//! Not here: when an alarm goes off (`tokens::drift`), tokens by workload (`telemetry`).

use telemetry::Extra;

use super::{With, counter, gauge, number};
use crate::counting::{Counting, Direction, RESULTS};

/// All of them, now.
pub(super) fn of(counting: &Counting) -> Vec<Extra> {
    let mut extras = vec![
        gauge(
            "tollgate_counting_bytes",
            "Bytes of requests and answers that wait to be counted, or are being counted.",
            number(counting.room.taken() as u64),
        ),
        counter(
            "tollgate_counting_seconds_total",
            "Time spent counting, all threads together, seconds.",
            counting.board.busy().as_secs_f64(),
        ),
    ];
    for direction in Direction::ALL {
        let results = counting.board.results(direction);
        for (result, n) in RESULTS.into_iter().zip(results) {
            let help = "Exchanges by what became of their count.";
            let extra = counter("tollgate_counting_exchanges_total", help, number(n));
            extras.push(
                extra
                    .with("direction", direction.as_str())
                    .with("result", result),
            );
        }
    }
    extras.extend(drift(counting));
    extras
}

fn drift(counting: &Counting) -> Vec<Extra> {
    let mut extras = Vec::new();
    for ((model, direction), series) in counting.board.series() {
        let labelled = |extra: Extra| {
            extra
                .with("model", &model)
                .with("direction", direction.as_str())
        };
        let drift = &series.drift;
        if let Some(ratio) = drift.ratio() {
            let help = "Tokens that engines reported over those that the gate counted, less one.";
            extras.push(labelled(gauge("tollgate_token_drift_ratio", help, ratio)));
        }
        let (reported, counted) = drift.tokens();
        for (witness, tokens) in [("reported", reported), ("counted", counted)] {
            let help = "Tokens of exchanges that have both witnesses.";
            let extra = counter("tollgate_token_drift_tokens_total", help, number(tokens));
            extras.push(labelled(extra).with("source", witness));
        }
        let (exchanges, outside) = drift.exchanges();
        for (within, n) in [("yes", exchanges.saturating_sub(outside)), ("no", outside)] {
            let help =
                "Exchanges that have both witnesses, by whether they agree within the tolerance.";
            let extra = counter("tollgate_token_drift_exchanges_total", help, number(n));
            extras.push(labelled(extra).with("within", within));
        }
        let help = "Whether the alarm is on (1) or off (0).";
        let on = f64::from(u8::from(drift.is_raised()));
        extras.push(labelled(gauge("tollgate_token_drift_alarm", help, on)));
        let help = "How often the alarm went off.";
        let extra = counter(
            "tollgate_token_drift_alarms_total",
            help,
            number(series.alarms),
        );
        extras.push(labelled(extra));
    }
    extras
}
