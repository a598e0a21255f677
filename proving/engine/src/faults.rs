//! Faults on demand: what a gateway has to live with, in one call or in a share of all calls.
//!
//! A call asks by a header, `x-fault: reset=5, usage=x10`; `POST /_engine/faults` sets one for a share of all
//! calls. The list is in `docs/engine-faults.md`.
//! Invariant: a call that asks for nothing, while no share is set, is served without a fault; exactly the share that
//! was set is hit, whatever the calls are.
//! Not here: what a fault does to a body (`body`) and to usage (`usage`).

pub(crate) mod body;
mod usage;

use std::str::FromStr;
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::Refusal;
pub use usage::UsageFault;

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
    pub usage: Option<UsageFault>,
}

/// A fault that is not in the list.
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

    /// The fault that a call's header asks for, or else the one that the injector gives.
    pub(crate) fn of(headers: &HeaderMap, injector: &mut FaultInjector) -> Result<Self, Refusal> {
        let Some(value) = headers.get("x-fault") else {
            return Ok(injector.next_fault());
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

/// What is asked for by `POST /_engine/faults`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultRequest {
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

/// Injects a fault into a share of all calls for a while, spread evenly; none by default.
#[derive(Debug, Default)]
pub(crate) struct FaultInjector {
    fault: Fault,
    text: String,
    share: f64,
    until: Option<Instant>,
    due: f64,
    injected: u64,
}

impl FaultInjector {
    /// One that begins now. Fails with what is wrong with it.
    pub(crate) fn new(request: &FaultRequest) -> Result<Self, String> {
        if !(0.0..=1.0).contains(&request.share) {
            return Err(format!("share must be in 0..=1, got {}", request.share));
        }
        let lasting = request.for_s.map(Duration::try_from_secs_f64).transpose();
        Ok(Self {
            fault: request
                .fault
                .parse()
                .map_err(|error: UnknownFault| error.to_string())?,
            text: request.fault.clone(),
            share: request.share,
            until: lasting
                .map_err(|error| format!("for_s: {error}"))?
                .and_then(|d| Instant::now().checked_add(d)),
            due: 0.0,
            injected: 0,
        })
    }

    /// The fault of the next call.
    fn next_fault(&mut self) -> Fault {
        if self.share == 0.0 || self.until.is_some_and(|until| Instant::now() >= until) {
            return Fault::default();
        }
        self.due += self.share;
        if self.due < 1.0 {
            return Fault::default();
        }
        self.due -= 1.0;
        self.injected += 1;
        self.fault.clone()
    }

    pub(crate) fn report(&self) -> Value {
        let left = self.until.map(|until| {
            until
                .saturating_duration_since(Instant::now())
                .as_secs_f64()
        });
        json!({"fault": self.text, "share": self.share, "left_s": left, "struck": self.injected})
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
