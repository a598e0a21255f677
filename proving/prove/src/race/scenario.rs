//! Scenarios: what every subject is asked, read from `race.toml` beside the subjects.
//!
//! Invariant: a scenario says everything that a measurement needs besides its length and repetitions.
//! Not here: how long and how often (command line).

use std::fs;
use std::path::Path;
use std::time::Duration;

use load::run::Shape;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[cfg(test)]
mod tests;

/// Connections opened a second while streams are being opened to be held.
const HELD_PER_SECOND: usize = 1_000;

/// One scenario, as a person writes it.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// Connections, each asking again when answered.
    pub(crate) users: usize,
    /// Requests a second at a constant rate instead of as fast as answers come.
    #[serde(default)]
    pub(crate) per_second: Option<f64>,
    /// Size of the request body.
    #[serde(default = "one_kilobyte")]
    pub(crate) body_bytes: usize,
    /// File beside the scenarios with the conversation that the body holds, a JSON array of messages;
    /// without it the body is one sentence, repeated.
    #[serde(default)]
    pub(crate) messages: Option<String>,
    /// What that file holds, each message as it is written there.
    #[serde(skip)]
    turns: Vec<Box<RawValue>>,
    /// How long the upstream waits before it answers.
    #[serde(default)]
    pub(crate) latency_ms: u64,
    /// The answer is a stream of so many events.
    #[serde(default)]
    pub(crate) events: u64,
    /// Pause between two events.
    #[serde(default)]
    pub(crate) interval_ms: u64,
    /// Each stream is opened once and held; the subject starts fresh.
    #[serde(default)]
    pub(crate) hold: bool,
    /// Cores that the subject may use, by cgroup; it starts fresh in a group of its own.
    #[serde(default)]
    pub(crate) cpu_quota: Option<f64>,
    /// Part of `--quick`.
    #[serde(default)]
    pub(crate) quick: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    scenario: Vec<Scenario>,
}

/// When a scenario is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) ramp: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) measure: Duration,
    pub(crate) timeout: Duration,
}

const fn one_kilobyte() -> usize {
    1229
}

/// Reads the scenarios of `dir`: those `wanted`, in that order; else the quick ones or all.
pub(crate) fn load_all(
    dir: &Path,
    wanted: &[String],
    quick: bool,
) -> Result<Vec<Scenario>, String> {
    let path = dir.join("race.toml");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut all = parse(&text).map_err(|says| format!("{}: {says}", path.display()))?;
    for scenario in &mut all {
        let Some(name) = &scenario.messages else {
            continue;
        };
        let file = dir.join(name);
        let said = |error: String| format!("{}: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(|error| said(error.to_string()))?;
        scenario.turns = serde_json::from_str(&text).map_err(|error| said(error.to_string()))?;
    }
    if wanted.is_empty() {
        return Ok(all
            .into_iter()
            .filter(|scenario| scenario.quick || !quick)
            .collect());
    }
    let find = |name: &String| {
        all.iter()
            .find(|scenario| scenario.name == *name)
            .cloned()
            .ok_or_else(|| {
                let known: Vec<&str> = all.iter().map(|scenario| scenario.name.as_str()).collect();
                format!(
                    "{}: no scenario named {name}; there are {}",
                    path.display(),
                    known.join(", ")
                )
            })
    };
    wanted.iter().map(find).collect()
}

/// Reads scenarios; a fault names the scenario and the field.
pub(crate) fn parse(text: &str) -> Result<Vec<Scenario>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    for scenario in &file.scenario {
        let fault = |says: &str| Err(format!("scenario {}: {says}", scenario.name));
        if scenario.users == 0 {
            return fault("`users` must be at least 1");
        }
        if scenario.body_bytes < 512 {
            return fault("`body_bytes` must be at least 512");
        }
        if scenario.hold && (scenario.events > 0 || scenario.interval_ms == 0) {
            return fault("`hold` needs `interval_ms`, and sets `events` itself");
        }
        if scenario
            .per_second
            .is_some_and(|rate| !(rate > 0.0 && rate.is_finite()))
        {
            return fault("`per_second` must be above 0");
        }
        if scenario
            .cpu_quota
            .is_some_and(|cores| !(0.01..=1024.0).contains(&cores))
        {
            return fault("`cpu_quota` is a number of cores, at least 0.01");
        }
    }
    Ok(file.scenario)
}

impl Scenario {
    /// Whether the answer is a stream of events.
    pub(crate) const fn streams(&self) -> bool {
        self.hold || self.events > 0
    }

    /// Whether users ask again when answered.
    pub(crate) const fn closed(&self) -> bool {
        !self.streams() && self.per_second.is_none()
    }

    #[expect(clippy::cast_precision_loss, reason = "users below 2^53")]
    pub(crate) const fn users_f64(&self) -> f64 {
        self.users as f64
    }

    pub(crate) const fn shape(&self) -> Shape {
        match self.per_second {
            _ if self.hold => Shape::Hold {
                streams: self.users,
            },
            Some(per_second) => Shape::Open {
                per_second,
                connections: self.users,
            },
            None => Shape::Closed {
                users: self.users,
                think: Duration::ZERO,
            },
        }
    }

    /// Users come evenly over one answer's time, so that they do not all move in step.
    pub(crate) fn timing(&self, seconds: f64) -> Timing {
        let measure = Duration::from_secs_f64(seconds);
        if self.hold {
            let opening = u32::try_from(self.users).unwrap_or(u32::MAX);
            let ramp =
                Duration::from_secs(1) * opening / u32::try_from(HELD_PER_SECOND).unwrap_or(1);
            let timeout = 2 * ramp + measure + Duration::from_secs(30);
            return Timing {
                ramp,
                warm_up: ramp + Duration::from_millis(500),
                measure,
                timeout,
            };
        }
        let answer = Duration::from_millis(self.latency_ms + self.events * self.interval_ms);
        let ramp = answer
            .max(Duration::from_millis(self.users as u64 / 2))
            .min(Duration::from_secs(2));
        let warm_up = ramp + Duration::from_millis(500);
        Timing {
            ramp,
            warm_up,
            measure,
            timeout: answer * 3 + Duration::from_secs(10),
        }
    }

    /// Events of one stream: for a held one, enough to outlast the opening and the measurement.
    pub(crate) fn events_of(&self, timing: &Timing) -> u64 {
        if !self.hold {
            return self.events;
        }
        let open_for = timing.warm_up + timing.measure;
        u64::try_from(open_for.as_millis()).unwrap_or(u64::MAX) / self.interval_ms.max(1) + 2
    }

    /// A chat completion of exactly `body_bytes` bytes: the conversation as far as it fits, or turns of
    /// about a kilobyte, and a last turn that fills what is left.
    pub(crate) fn body(&self) -> Vec<u8> {
        let stream = if self.streams() {
            r#""stream":true,"stream_options":{"include_usage":true},"#
        } else {
            ""
        };
        let head = format!(
            r#"{{"model":"race-model",{stream}"max_tokens":256,"temperature":0.2,"messages":["#
        );
        let tail = r#"{"role":"user","content":""}]}"#;
        let mut body = head.into_bytes();
        if self.messages.is_some() {
            for turn in &self.turns {
                let turn = turn.get().as_bytes();
                if body.len() + turn.len() + 1 + tail.len() > self.body_bytes {
                    break;
                }
                body.extend_from_slice(turn);
                body.push(b',');
            }
        } else {
            self.repeated(&mut body, tail.len());
        }
        let left = self.body_bytes.saturating_sub(body.len() + tail.len());
        body.extend_from_slice(
            tail.replace(r#""""#, &format!(r#""{}""#, words(left)))
                .as_bytes(),
        );
        body
    }

    /// Turns of one sentence, over and over, until less than two kilobytes are left beside the tail.
    fn repeated(&self, body: &mut Vec<u8>, tail: usize) {
        while self.body_bytes - body.len() > 2_048 + tail {
            let role = if (body.len() / 1_024).is_multiple_of(2) {
                "user"
            } else {
                "assistant"
            };
            body.extend_from_slice(
                format!(r#"{{"role":"{role}","content":"{}"}},"#, words(980)).as_bytes(),
            );
        }
    }
}

fn words(bytes: usize) -> String {
    "the quick brown fox counts every token at the gate and "
        .chars()
        .cycle()
        .take(bytes)
        .collect()
}
