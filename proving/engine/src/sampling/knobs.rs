//! Temperature and its like, which all dialects have: their ranges.
//!
//! Invariant: ranges, order and words are those of vLLM 0.26. What passes has no effect.
//! Not here: members that hold token ids or texts (the parent).

use serde::Deserialize;

use crate::error::Refusal;

/// Below it, sampling is greedy.
const GREEDY_BELOW: f64 = 1e-5;

#[derive(Default, Deserialize)]
pub(crate) struct Knobs {
    #[serde(default)]
    presence_penalty: Option<f64>,
    #[serde(default)]
    frequency_penalty: Option<f64>,
    #[serde(default)]
    repetition_penalty: Option<f64>,
    #[serde(default)]
    temperature: Option<f64>,
    #[serde(default)]
    top_p: Option<f64>,
    #[serde(default)]
    top_k: Option<i64>,
    #[serde(default)]
    min_p: Option<f64>,
    /// Read so that one that is no number of 64 bits is refused.
    #[serde(default, rename = "seed")]
    _seed: Option<i64>,
}

impl Knobs {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let fault = |why: String| Err(Refusal::bad_request(why));
        let penalties = [
            ("presence_penalty", self.presence_penalty),
            ("frequency_penalty", self.frequency_penalty),
        ];
        for (name, value) in penalties {
            if let Some(value) = value.filter(|value| !(-2.0..=2.0).contains(value)) {
                return fault(format!("{name} must be in [-2, 2], got {value:?}."));
            }
        }
        if let Some(value) = self.repetition_penalty.filter(|value| *value <= 0.0) {
            return fault(format!(
                "repetition_penalty must be greater than zero, got {value:?}."
            ));
        }
        self.check_temperature()?;
        if let Some(value) = self.top_p.filter(|p| !(*p > 0.0 && *p <= 1.0)) {
            let why = format!("top_p must be in (0, 1], got {value:?}.");
            return Err(Refusal::bad_request(why).about("top_p"));
        }
        if let Some(value @ ..=-2) = self.top_k {
            return fault(format!(
                "top_k must be 0 (disable), or at least 1, got {value}."
            ));
        }
        if let Some(value) = self.min_p.filter(|p| !(0.0..=1.0).contains(p)) {
            return fault(format!("min_p must be in [0, 1], got {value:?}."));
        }
        Ok(())
    }

    fn check_temperature(&self) -> Result<(), Refusal> {
        let why = match self.temperature {
            Some(value) if value < 0.0 => {
                format!("temperature must be non-negative, got {value:?}.")
            }
            Some(value) if value > 2.0 => format!("temperature must be in [0, 2], got {value:?}."),
            _ => return Ok(()),
        };
        Err(Refusal::bad_request(why).about("temperature"))
    }

    pub(crate) fn is_greedy(&self) -> bool {
        self.temperature.is_some_and(|t| t < GREEDY_BELOW)
    }
}
