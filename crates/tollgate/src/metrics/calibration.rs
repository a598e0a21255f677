//! Metrics of the questions to engines about what prompts count.
//!
//! Not here: how calls are marked for it (`metrics::counting`), the questions themselves (`metrics::identity`).

use telemetry::Extra;
use telemetry::extras::number;

use crate::calibration::Calibrator;
use crate::calibration::round::Outcomes;
use crate::services::now_s;

/// All of them, now.
pub(super) fn of(calibrator: &Calibrator) -> Vec<Extra> {
    let mut extras = vec![Extra::counter(
        "tollgate_calibration_seconds_total",
        "Time spent asking engines what prompts count, seconds.",
        calibrator.spent().as_secs_f64(),
    )];
    for known in calibrator.known() {
        let labelled = |extra: Extra| {
            extra
                .with("backend", &known.backend)
                .with("model", &known.model)
        };
        let Some(round) = known.round.as_ref().filter(|round| round.says_anything()) else {
            continue;
        };
        let help = "Addresses of a backend that could not be asked in the last round, which then vouches for none.";
        let unasked = number(round.addresses.unasked as u64);
        let extra = Extra::gauge("tollgate_calibration_addresses_unasked", help, unasked);
        extras.push(labelled(extra));
        let Outcomes {
            same,
            other,
            refused,
        } = round.outcomes();
        for (result, probes) in [("agree", same), ("differ", other), ("refused", refused)] {
            let help = "Prompts that an engine was last asked about, by how its count stands to the gate's.";
            let extra = Extra::gauge("tollgate_calibration_probes", help, number(probes as u64));
            extras.push(labelled(extra).with("result", result));
        }
        if let Some(asked) = known.summary.asked_at_s {
            let age = now_s().saturating_sub(u64::try_from(asked).unwrap_or(0));
            let help = "Time since an engine was last asked what prompts count, seconds.";
            let extra = Extra::gauge("tollgate_calibration_age_seconds", help, number(age));
            extras.push(labelled(extra));
        }
    }
    extras
}
