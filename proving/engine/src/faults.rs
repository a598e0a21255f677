//! Faults on demand: what a gateway has to live with, one call at a time or as a storm.
//!
//! A call asks by a header, `x-fault: reset=5, usage=x10`; a storm is set by `POST /_engine/faults` and strikes a
//! share of all calls. The list is in `docs/engine-faults.md`.
//! Invariant: a call that asks for nothing, while no storm blows, is served without a fault.
//! Not here: what a fault does to a body (`body`) and to usage (`usage`).

pub(crate) mod body;
mod storm;
mod usage;

use std::str::FromStr;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use crate::error::Refusal;
pub(crate) use storm::{Forecast, Storm};
pub use usage::Lie;

/// Longest stall that can be asked for.
const MAX_STALL: Duration = Duration::from_secs(600);

/// What is to go wrong with one call. Nothing, by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fault {
    /// Answer with this status and nothing else.
    pub status: Option<StatusCode>,
    /// `retry-after` of such an answer, in seconds.
    pub retry_after_s: Option<u64>,
    /// Wait before the answer's head.
    pub stall_head: Option<Duration>,
    /// Wait before event `.0` of a stream, counted from 0.
    pub stall: Option<(usize, Duration)>,
    /// Break the connection before event `.0`; an answer in one piece is broken in its middle.
    pub reset: Option<usize>,
    /// Make event `.0` something that is no JSON.
    pub garble: Option<usize>,
    /// Send half of event `.0`, and end as if all were well.
    pub truncate: Option<usize>,
    /// Send the body in pieces of at most so many bytes, wherever that cuts.
    pub split: Option<usize>,
    /// What to say of the tokens.
    pub usage: Option<Lie>,
}

/// A fault that was asked for in words that mean nothing here.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault {0:?}; see docs/engine-faults.md")]
pub struct UnknownFault(String);

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let mut fault = Self::default();
        for item in text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            fault
                .add(item)
                .ok_or_else(|| UnknownFault(item.to_owned()))?;
        }
        Ok(fault)
    }
}

impl Fault {
    fn add(&mut self, item: &str) -> Option<()> {
        let (name, value) = item.split_once('=')?;
        match name {
            "status" => {
                let status: StatusCode = value.parse().ok()?;
                self.status = Some(status).filter(|s| s.is_client_error() || s.is_server_error());
                self.status?;
            }
            "retry-after" => self.retry_after_s = Some(value.parse().ok()?),
            "stall-head" => self.stall_head = Some(stall(value)?),
            "stall" => {
                let (event, ms) = value.split_once(':')?;
                self.stall = Some((event.parse().ok()?, stall(ms)?));
            }
            "reset" => self.reset = Some(value.parse().ok()?),
            "garble" => self.garble = Some(value.parse().ok()?),
            "truncate" => self.truncate = Some(value.parse().ok()?),
            "split" => self.split = Some(value.parse().ok().filter(|n| *n > 0)?),
            "usage" => self.usage = Some(value.parse().ok()?),
            _ => return None,
        }
        Some(())
    }

    /// The fault that a call's header asks for, or else the one that the storm deals out.
    pub(crate) fn of(headers: &HeaderMap, storm: &mut Storm) -> Result<Self, Refusal> {
        let Some(value) = headers.get("x-fault") else {
            return Ok(storm.strike());
        };
        let text = value.to_str().unwrap_or("(not text)");
        text.parse()
            .map_err(|error: UnknownFault| Refusal::bad_request(error.to_string()).about("x-fault"))
    }

    /// The refusal that this fault is, if it is one.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.status
            .map(|status| Refusal::injected(status, self.retry_after_s))
    }

    /// Whether the body needs no hand laid on it.
    pub(crate) fn leaves_body(&self) -> bool {
        let Self {
            stall,
            reset,
            garble,
            truncate,
            split,
            usage,
            ..
        } = self;
        stall.is_none()
            && usage.is_none()
            && [reset, garble, truncate, split].iter().all(|f| f.is_none())
    }
}

fn stall(ms: &str) -> Option<Duration> {
    ms.parse()
        .ok()
        .map(Duration::from_millis)
        .filter(|wait| *wait <= MAX_STALL)
}

#[cfg(test)]
mod tests;
