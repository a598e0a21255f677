//! Processes as people write them, on a command line or in a file.
//!
//! Invariant: what is written is read whole or refused with what is wrong; what is printed reads back as the same.
//! Not here: reading a trace's file, which is only named.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::mmpp::{BURST_S, FLOOR, SILENCE_S};
use super::{Mmpp, Process, Trace, TraceError};

/// Means are between these, in seconds.
const MEAN_S: std::ops::RangeInclusive<f64> = 1e-6..=1e7;
/// The mean of a law until somebody says it.
const UNSAID_MEAN_S: f64 = 1.0;
/// Coefficients of variation are between these.
const CV: std::ops::RangeInclusive<f64> = 0.01..=30.0;

/// A process as it is written: complete, but for a trace's text.
///
/// ```text
/// process  = "constant:"    mean
///          | "exponential:" mean
///          | "gamma:"       mean ",cv=" number
///          | "on-off:"      mean [",on=" time] [",off=" time]
///          | "mmpp:"        mean [",factor=" number] [",on=" time] [",off=" time]
///          | "mmpp:high="   rate ",low=" rate ",on=" time ",off=" time
///          | "trace:"       file
///          | "recorded"
/// mean     = time | rate                  a mean gap, or one over it
/// time     = number ("us" | "ms" | "s" | "m" | "h")
/// rate     = number "/" ("s" | "m" | "h")
/// ```
///
/// `on` and `off` are the mean sojourns of the hidden chain, 6 s and 24 s unless said. `factor` is the rate in the high
/// state over the mean rate; unless said, it leaves 0.05 of the mean rate to the low state. An ON/OFF source leaves
/// nothing to it. `constant:0s` is for users who do not pause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Spec {
    /// A process that needs nothing more.
    Process(Process),
    /// A trace in this file, which somebody else reads.
    Trace {
        /// As it is written.
        file: String,
    },
}

/// A process that makes no sense.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProcessError {
    /// Not of the grammar.
    #[error("process {text:?}: {says}")]
    Text {
        /// What was written.
        text: String,
        /// What is wrong with it.
        says: String,
    },
    /// Parameters out of their range.
    #[error("{0}")]
    Parameters(String),
}

impl Spec {
    /// As it is read, but for its mean, which may be left out where somebody else says it, as a rate does; and whether it is.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn without_mean(text: &str) -> Result<(Self, bool), ProcessError> {
        parse(text, Some(UNSAID_MEAN_S)).map_err(|says| ProcessError::Text {
            text: text.into(),
            says,
        })
    }

    /// The process, where the text of a trace's file comes from `read`.
    ///
    /// # Errors
    /// What `read` says, or what is wrong with the trace, by line.
    pub fn resolve<E: From<TraceError>>(
        &self,
        read: impl FnOnce(&str) -> Result<String, E>,
    ) -> Result<Process, E> {
        match self {
            Self::Process(process) => Ok(process.clone()),
            Self::Trace { file } => {
                let trace = Trace::parse(file, &read(file)?)?;
                Ok(Process::Trace(trace))
            }
        }
    }
}

impl FromStr for Spec {
    type Err = ProcessError;

    fn from_str(text: &str) -> Result<Self, ProcessError> {
        let read = parse(text, None).map_err(|says| ProcessError::Text {
            text: text.into(),
            says,
        });
        read.map(|(spec, _)| spec)
    }
}

impl TryFrom<String> for Spec {
    type Error = ProcessError;

    fn try_from(text: String) -> Result<Self, ProcessError> {
        text.parse()
    }
}

impl From<Spec> for String {
    fn from(spec: Spec) -> Self {
        spec.to_string()
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(process) => process.fmt(f),
            Self::Trace { file } => write!(f, "trace:{file}"),
        }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant { mean_s } => write!(f, "constant:{mean_s}s"),
            Self::Exponential { mean_s } => write!(f, "exponential:{mean_s}s"),
            Self::Gamma { mean_s, cv } => write!(f, "gamma:{mean_s}s,cv={cv}"),
            Self::Mmpp(m) => write!(
                f,
                "mmpp:high={}/s,low={}/s,on={}s,off={}s",
                m.high(),
                m.low(),
                m.on_s(),
                m.off_s()
            ),
            Self::Trace(trace) => write!(f, "trace:{}", trace.name()),
            Self::Recorded => f.write_str("recorded"),
        }
    }
}

/// A process, and whether `mean_s` stands for the mean that it does not say.
fn parse(text: &str, mean_s: Option<f64>) -> Result<(Spec, bool), String> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    if kind == "trace" {
        let file = rest.to_owned();
        return match rest {
            "" => Err("names no file, such as trace:azure.csv".into()),
            _ => Ok((Spec::Trace { file }, false)),
        };
    }
    let mut terms = Terms::of(rest)?;
    terms.mean_s = mean_s;
    let process = match kind {
        "constant" => Process::Constant {
            mean_s: terms.mean_or_zero()?,
        },
        "exponential" => Process::Exponential {
            mean_s: terms.mean()?,
        },
        "gamma" => Process::Gamma {
            mean_s: terms.mean()?,
            cv: terms.cv()?,
        },
        "on-off" => {
            let (mean_s, on_s, off_s) = (terms.mean()?, terms.on()?, terms.off()?);
            Process::Mmpp(Mmpp::on_off(mean_s, on_s, off_s).map_err(|e| e.to_string())?)
        }
        "mmpp" => Process::Mmpp(mmpp(&mut terms)?),
        "recorded" => Process::Recorded,
        _ => {
            return Err(
                "is none of constant, exponential, gamma, on-off, mmpp, trace and recorded".into(),
            );
        }
    };
    terms.end()?;
    Ok((Spec::Process(process), terms.is_mean_unsaid))
}

fn mmpp(terms: &mut Terms<'_>) -> Result<Mmpp, String> {
    let made = if let Some(high) = terms.take("high") {
        let low = terms.take("low").ok_or("high= needs low= beside it")?;
        let on_s = time(terms.take("on").ok_or("high= needs on= beside it")?)?;
        let off_s = time(terms.take("off").ok_or("high= needs off= beside it")?)?;
        Mmpp::new(rate(high)?, rate(low)?, on_s, off_s)
    } else {
        let (mean_s, on_s, off_s) = (terms.mean()?, terms.on()?, terms.off()?);
        let factor = match terms.take("factor") {
            Some(factor) => number(factor)?,
            None => (on_s + off_s - FLOOR * off_s) / on_s,
        };
        Mmpp::with_factor(mean_s, factor, on_s, off_s)
    };
    made.map_err(|e| e.to_string())
}

/// What stands after the colon: at most one bare term, and named ones.
struct Terms<'a> {
    bare: Option<&'a str>,
    named: Vec<(&'a str, &'a str)>,
    /// In the place of a mean that is not said.
    mean_s: Option<f64>,
    is_mean_unsaid: bool,
}

impl<'a> Terms<'a> {
    fn of(text: &'a str) -> Result<Self, String> {
        let mut terms = Self {
            bare: None,
            named: Vec::new(),
            mean_s: None,
            is_mean_unsaid: false,
        };
        for term in text
            .split(',')
            .map(str::trim)
            .filter(|term| !term.is_empty())
        {
            match term.split_once('=') {
                None if terms.bare.is_none() => terms.bare = Some(term),
                None => return Err(format!("{term:?} is a second mean")),
                Some((name, _)) if terms.named.iter().any(|(known, _)| *known == name) => {
                    return Err(format!("{name} is said twice"));
                }
                Some(named) => terms.named.push(named),
            }
        }
        Ok(terms)
    }

    fn take(&mut self, name: &str) -> Option<&'a str> {
        let place = self.named.iter().position(|(known, _)| *known == name)?;
        Some(self.named.remove(place).1)
    }

    fn mean_or_zero(&mut self) -> Result<f64, String> {
        let Some(text) = self.bare.take() else {
            let says = "says no mean: a time such as 7.5s, or a rate such as 8/s";
            self.is_mean_unsaid = true;
            return self.mean_s.ok_or_else(|| says.into());
        };
        if text.contains('/') {
            return Ok(rate(text)?.recip());
        }
        time(text)
    }

    fn mean(&mut self) -> Result<f64, String> {
        let mean_s = self.mean_or_zero()?;
        if MEAN_S.contains(&mean_s) {
            return Ok(mean_s);
        }
        Err("has a mean gap that is not between 1 us and 10,000,000 s".into())
    }

    fn cv(&mut self) -> Result<f64, String> {
        let cv = number(self.take("cv").ok_or("says no cv, such as cv=1.5")?)?;
        if CV.contains(&cv) {
            return Ok(cv);
        }
        Err("has a cv that is not between 0.01 and 30".into())
    }

    fn on(&mut self) -> Result<f64, String> {
        self.take("on").map_or(Ok(BURST_S), time)
    }

    fn off(&mut self) -> Result<f64, String> {
        self.take("off").map_or(Ok(SILENCE_S), time)
    }

    fn end(&self) -> Result<(), String> {
        match (self.bare, self.named.first()) {
            (Some(term), _) => Err(format!("{term:?} has no place here")),
            (None, Some((name, _))) => Err(format!("{name} is no parameter of it")),
            (None, None) => Ok(()),
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|value| value.is_finite() && *value >= 0.0)
        .ok_or_else(|| format!("{text:?} is no number of at least 0"))
}

/// Seconds of a time such as `250ms`, `7.5s` or `2m`.
///
/// # Errors
/// What is wrong with it.
pub fn time(text: &str) -> Result<f64, String> {
    let units = [
        ("us", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    units
        .iter()
        .find(|(name, _)| *name == unit)
        .and_then(|(_, factor)| Some(number(text.strip_suffix(unit)?).ok()? * factor))
        .ok_or_else(|| format!("{text:?} is no time, such as 250ms, 7.5s or 2m"))
}

/// A second.
fn rate(text: &str) -> Result<f64, String> {
    let says = || format!("{text:?} is no rate, such as 8/s or 30/m");
    let (count, unit) = text.split_once('/').ok_or_else(says)?;
    let per = match unit {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(says()),
    };
    Ok(number(count).map_err(|_| says())? / per)
}
