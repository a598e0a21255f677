//! A storm: a fault that strikes a share of all calls for a while.
//!
//! Invariant: exactly the share that was asked for strikes, spread evenly, whatever the calls are.
//! Not here: setting it over HTTP (`route`).

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use super::Fault;

/// What is asked for by `POST /_engine/faults`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forecast {
    fault: String,
    /// Of all calls, 0 to 1.
    #[serde(default = "all")]
    share: f64,
    /// Seconds after which it is over; until it is cleared, if not given.
    #[serde(default)]
    for_s: Option<f64>,
}

fn all() -> f64 {
    1.0
}

/// The storm that blows now, or calm.
#[derive(Debug, Default)]
pub(crate) struct Storm {
    fault: Fault,
    words: String,
    share: f64,
    until: Option<Instant>,
    due: f64,
    struck: u64,
}

impl Storm {
    /// Begins what was asked for. Fails with what is wrong with it.
    pub(crate) fn brew(forecast: &Forecast) -> Result<Self, String> {
        if !(0.0..=1.0).contains(&forecast.share) {
            return Err(format!("share must be in 0..=1, got {}", forecast.share));
        }
        let lasting = forecast.for_s.map(Duration::try_from_secs_f64).transpose();
        Ok(Self {
            fault: forecast
                .fault
                .parse()
                .map_err(|error: super::UnknownFault| error.to_string())?,
            words: forecast.fault.clone(),
            share: forecast.share,
            until: lasting
                .map_err(|error| format!("for_s: {error}"))?
                .and_then(|d| Instant::now().checked_add(d)),
            due: 0.0,
            struck: 0,
        })
    }

    /// The fault of the next call.
    pub(super) fn strike(&mut self) -> Fault {
        if self.share == 0.0 || self.until.is_some_and(|until| Instant::now() >= until) {
            return Fault::default();
        }
        self.due += self.share;
        if self.due < 1.0 {
            return Fault::default();
        }
        self.due -= 1.0;
        self.struck += 1;
        self.fault.clone()
    }

    pub(crate) fn report(&self) -> Value {
        let left = self.until.map(|until| {
            until
                .saturating_duration_since(Instant::now())
                .as_secs_f64()
        });
        json!({"fault": self.words, "share": self.share, "left_s": left, "struck": self.struck})
    }
}
