//! Service levels of one exchange, and goodput: the share of exchanges that keep all of them.
//!
//! Invariant: an exchange that failed is never good; one that is good kept every limit.
//! Not here: measuring times (`load`).

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::arrivals::time;

/// A time of an exchange that a limit can be set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Intended moment to first token.
    Ttft,
    /// The longest gap between a token and the next.
    Itl,
    /// Mean time for each token after the first.
    Tpot,
    /// Intended moment to last byte.
    E2e,
}

/// The times of one exchange, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    /// As of [`Measure::Ttft`]; `None` where no token came.
    pub ttft_s: Option<f64>,
    /// As of [`Measure::Itl`]; `None` of fewer than two tokens.
    pub itl_s: Option<f64>,
    /// As of [`Measure::Tpot`]; `None` of fewer than two tokens.
    pub tpot_s: Option<f64>,
    /// As of [`Measure::E2e`]; `None` where the exchange failed.
    pub e2e_s: Option<f64>,
}

/// Limits, at most one for each measure and at least one in all. Written as `ttft<=2s,tpot<=50ms`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Slo(Vec<(Measure, f64)>);

/// Limits that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("service level {text:?}: {says}")]
pub struct SloError {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub says: String,
}

/// Exchanges counted against limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Goodput {
    /// All exchanges.
    pub exchanges: u64,
    /// Those that kept every limit.
    pub good: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that missed a limit, for each measure; one may be in several.
    pub missed: std::collections::BTreeMap<Measure, u64>,
}

impl Slo {
    /// Limits in the order in which they are written, in seconds.
    #[must_use]
    pub fn limits(&self) -> &[(Measure, f64)] {
        &self.0
    }

    /// The limits that an exchange missed.
    ///
    /// Without a first token that limit is missed. With a single token there is no time between tokens, and limits to
    /// it are kept.
    pub fn missed(&self, times: &Times) -> impl Iterator<Item = Measure> {
        let times = *times;
        self.0.iter().filter_map(move |&(measure, limit)| {
            let kept = match times.of(measure) {
                Some(time) => time <= limit,
                None => matches!(measure, Measure::Itl | Measure::Tpot),
            };
            (!kept).then_some(measure)
        })
    }

    /// Whether an exchange ended well and kept every limit.
    #[must_use]
    pub fn is_good(&self, times: &Times) -> bool {
        times.e2e_s.is_some() && self.missed(times).next().is_none()
    }
}

impl Goodput {
    /// Counts an exchange.
    pub fn count(&mut self, slo: &Slo, times: &Times) {
        self.exchanges += 1;
        self.good += u64::from(slo.is_good(times));
        if times.e2e_s.is_none() {
            self.failed += 1;
            return;
        }
        for measure in slo.missed(times) {
            *self.missed.entry(measure).or_default() += 1;
        }
    }

    /// Adds up.
    pub fn absorb(&mut self, other: &Self) {
        self.exchanges += other.exchanges;
        self.good += other.good;
        self.failed += other.failed;
        for (&measure, count) in &other.missed {
            *self.missed.entry(measure).or_default() += count;
        }
    }

    /// The share of good exchanges among all, failed ones included; `None` of none.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.exchanges > 0).then(|| self.good as f64 / self.exchanges as f64)
    }
}

impl Times {
    /// The time of a measure.
    #[must_use]
    pub const fn of(&self, measure: Measure) -> Option<f64> {
        match measure {
            Measure::Ttft => self.ttft_s,
            Measure::Itl => self.itl_s,
            Measure::Tpot => self.tpot_s,
            Measure::E2e => self.e2e_s,
        }
    }
}

impl Measure {
    const ALL: [Self; 4] = [Self::Ttft, Self::Itl, Self::Tpot, Self::E2e];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::Itl => "itl",
            Self::Tpot => "tpot",
            Self::E2e => "e2e",
        }
    }
}

impl FromStr for Slo {
    type Err = SloError;

    fn from_str(text: &str) -> Result<Self, SloError> {
        parse(text).map_err(|says| SloError {
            text: text.into(),
            says,
        })
    }
}

impl TryFrom<String> for Slo {
    type Error = SloError;

    fn try_from(text: String) -> Result<Self, SloError> {
        text.parse()
    }
}

impl From<Slo> for String {
    fn from(slo: Slo) -> Self {
        slo.to_string()
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (measure, limit)) in self.0.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{}<={limit}s", measure.word())?;
        }
        Ok(())
    }
}

fn parse(text: &str) -> Result<Slo, String> {
    let mut limits: Vec<(Measure, f64)> = Vec::new();
    for term in text.split(',').map(str::trim) {
        let (name, limit) = term
            .split_once("<=")
            .ok_or_else(|| format!("{term:?} is no limit, such as ttft<=2s"))?;
        let measure = Measure::ALL
            .into_iter()
            .find(|measure| measure.word() == name.trim())
            .ok_or_else(|| format!("{:?} is none of ttft, itl, tpot and e2e", name.trim()))?;
        if limits.iter().any(|(known, _)| *known == measure) {
            return Err(format!("{} is limited twice", measure.word()));
        }
        limits.push((measure, time(limit.trim())?));
    }
    Ok(Slo(limits))
}
