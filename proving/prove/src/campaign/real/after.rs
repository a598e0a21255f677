//! What is known once the load is over: the generator's certificate, its own figures, and why none counts.
//!
//! Not here: what users had (`observed`), the gateway's own time (`pairing`).

use std::collections::BTreeMap;
use std::time::Duration;

use experiment::certificate::Verdict as Fit;
use load::observer::Measure;
use load::run::Outcome;

use crate::report::document::{self, Generator};

/// What is known once the load is over.
#[derive(Default)]
pub(super) struct After {
    pub(super) certificate: Option<serde_json::Value>,
    /// Why no figure of the generator counts.
    pub(super) void: Option<String>,
    pub(super) generator: Option<Generator>,
    pub(super) said: BTreeMap<String, String>,
    pub(super) overhead: Option<document::Overhead>,
    pub(super) series: BTreeMap<String, document::Series>,
}

impl After {
    /// What the load says of itself, at the end of so much time.
    pub(super) fn of(outcome: &Outcome, at: Duration) -> Self {
        let certificate = outcome.certificate();
        let fit = certificate.as_ref().map(|certificate| certificate.verdict);
        let seconds = outcome
            .measured
            .as_secs_f64()
            .max(at.as_secs_f64())
            .max(1e-9);
        let total = outcome.total();
        let said = total.said.iter();
        let said = said.map(|(failure, said)| (failure.to_string(), said.clone()));
        let lag = total.quantiles(Measure::Lag);
        #[expect(clippy::cast_precision_loss, reason = "microseconds below 2^53")]
        let s = |us: u64| us as f64 / 1e6;
        let generator = Generator {
            threads: 1,
            cores: outcome.client_cpu.as_secs_f64() / seconds,
            lag: lag.map(|lag| document::Quantiles {
                count: total.histogram(Measure::Lag).len(),
                mean: total.histogram(Measure::Lag).mean() / 1e6,
                p50: s(lag.p50),
                p90: s(lag.p90),
                p95: s(lag.p95),
                p99: s(lag.p99),
                p999: s(lag.p999),
                max: s(lag.max),
            }),
            rows_lost: outcome.records_lost,
            verdict: fit.map_or("unproven", Fit::word).to_owned(),
        };
        Self {
            certificate: certificate
                .and_then(|certificate| serde_json::to_value(&certificate).ok()),
            void: void(fit, outcome.records_lost),
            generator: Some(generator),
            said: said.collect(),
            ..Self::default()
        }
    }
}

/// Why no figure counts, of what is known of the generator itself.
fn void(fit: Option<Fit>, rows_lost: u64) -> Option<String> {
    match fit {
        Some(Fit::Void) => Some("the generator could not keep up: no figure counts".to_owned()),
        Some(Fit::Failed) => Some("what was sent has not the law that was asked for".to_owned()),
        None => Some("bug: a campaign was not certified".to_owned()),
        // Lost rows may be errors, so an error rate over the rest would be too low.
        Some(Fit::Good | Fit::Unproven) => (rows_lost > 0)
            .then(|| format!("{rows_lost} rows of requests found no room: no figure counts")),
    }
}

#[cfg(test)]
mod tests {
    //! What makes the figures of a generator void.

    use super::*;

    #[test]
    fn rows_that_found_no_room_void_a_campaign_whatever_its_certificate_says() {
        assert_eq!(void(Some(Fit::Good), 0), None);
        let lost = void(Some(Fit::Good), 4096).expect("void");
        assert!(lost.contains("4096 rows"), "{lost}");
        for fit in [Some(Fit::Void), Some(Fit::Failed), None] {
            assert!(void(fit, 0).is_some(), "{fit:?}");
        }
    }
}
