//! Scenarios: what every subject is asked, read from `race.toml` beside the subjects.
//!
//! Invariant: a scenario says everything that a measurement needs besides its length and repetitions.
//! Not here: how long and how often (command line), what many bodies hold (`bodies`).

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use experiment::random::mix;
use load::client::Protocol;
use load::run::Shape;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::bodies::{Kind, MOST_BYTES, Plan, Pool};
use super::tools::Tools;
use crate::subject::Dialect;

#[cfg(test)]
mod tests;

/// Connections opened a second while streams are being opened to be held.
const HELD_PER_SECOND: usize = 1_000;
/// What a conversation begins with has room for what it is told and asked.
const LEAST_FIRST_BYTES: usize = 1_024;
/// A turn has room for the call of a tool and for what it gives back.
const LEAST_TURN_BYTES: usize = 512;

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
    /// What is spoken to the subject.
    #[serde(default)]
    pub(crate) protocol: Spoken,
    /// What calls are written in, where the upstream does not speak it: the subject translates each.
    #[serde(default)]
    pub(crate) dialect: Option<Dialect>,
    /// Size of the request body; of a conversation that grows, the greatest.
    #[serde(default = "one_kilobyte")]
    pub(crate) body_bytes: usize,
    /// What many bodies hold, made from `seed`; without it there is one body.
    #[serde(default)]
    pub(crate) bodies: Option<Content>,
    /// So many different bodies are sent in turn; without it none comes twice.
    #[serde(default)]
    pub(crate) body_count: Option<usize>,
    /// Size of a conversation's first request.
    #[serde(default)]
    pub(crate) first_bytes: Option<usize>,
    /// By how much each further request of a conversation is longer.
    #[serde(default)]
    pub(crate) turn_bytes: Option<usize>,
    /// What bodies are made from, with the scenario's name.
    #[serde(default)]
    pub(crate) seed: u64,
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
    /// Calls of a tool in place of calls to models; with `hold` standing streams of as many sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mcp: Option<Tools>,
    /// Part of `--quick`.
    #[serde(default)]
    pub(crate) quick: bool,
    /// Part of `--meter`, and of no other race that does not name it.
    #[serde(default)]
    pub(crate) meter: bool,
}

/// What clients speak to a subject.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Spoken {
    /// HTTP/1.1, each user on a connection of its own.
    #[default]
    Http1,
    /// HTTP/2 by prior knowledge, so many users on each connection.
    Http2,
}

/// Users of one connection over HTTP/2, as in campaigns.
const USERS_OF_A_CONNECTION: usize = 32;

/// What bodies that are made hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Content {
    Prose,
    Code,
    /// One conversation of an agent for each user: it repeats all that was said, and when it is as long as it may be, another
    /// begins.
    Conversation,
}

/// A scenario with the bodies that it sends, made before any clock starts.
pub(crate) struct Traffic<'a> {
    pub(crate) scenario: &'a Scenario,
    /// The whole body; where there are many, what stands before their messages.
    pub(crate) opening: Vec<u8>,
    pub(crate) pool: Option<Arc<Pool>>,
}

/// Which scenarios are meant where none is named.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Part {
    /// The quick ones alone.
    pub(crate) quick: bool,
    /// Those of the meter, and without it all others.
    pub(crate) meter: bool,
}

impl Part {
    const fn words(self) -> &'static str {
        match (self.quick, self.meter) {
            (true, true) => "is marked `quick` and `meter`",
            (true, false) => "is marked `quick` and not `meter`",
            (false, true) => "is marked `meter`",
            (false, false) => "is there but those of `--meter`",
        }
    }
}

/// What was published of others, to stand beside the figures.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reference {
    /// Where, and on what it was measured.
    pub(crate) source: String,
    /// The scenario that asks the same.
    pub(crate) scenario: String,
    /// What it measured.
    #[serde(rename(deserialize = "row", serialize = "rows"))]
    pub(crate) rows: Vec<ReferenceRow>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReferenceRow {
    pub(crate) subject: String,
    /// Of one call, microseconds.
    pub(crate) us: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    scenario: Vec<Scenario>,
    #[serde(default)]
    reference: Vec<Reference>,
}

/// When a scenario is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Timing {
    pub(crate) ramp: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) measure: Duration,
    pub(crate) timeout: Duration,
}

const fn one_kilobyte() -> usize {
    1229
}

/// Reads the scenarios of `dir`: those `wanted`, in that order; else those of `part`.
pub(crate) fn load_all(dir: &Path, wanted: &[String], part: Part) -> Result<Vec<Scenario>, String> {
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
        let has_part = |of: &Scenario| (of.quick || !part.quick) && of.meter == part.meter;
        all.retain(has_part);
        if all.is_empty() {
            return Err(format!("{}: no scenario {}", path.display(), part.words()));
        }
        return Ok(all);
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

/// What was published, as `race.toml` of `dir` says.
pub(crate) fn references(dir: &Path) -> Result<Vec<Reference>, String> {
    let path = dir.join("race.toml");
    let said = |says: String| format!("{}: {says}", path.display());
    let text = fs::read_to_string(&path).map_err(|error| said(error.to_string()))?;
    let file: File = toml::from_str(&text).map_err(|error| said(error.to_string()))?;
    Ok(file.reference)
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
        if let Some(says) = scenario.fault_of_bodies() {
            return fault(&says);
        }
        if let Some(says) = scenario.fault_of_tools() {
            return fault(says);
        }
    }
    let of_tools = |scenario: &Scenario| scenario.mcp.is_some();
    if file.scenario.iter().any(of_tools) && !file.scenario.iter().all(of_tools) {
        return Err("scenarios with `mcp` and without it are no one race: a subject is started for one of them".into());
    }
    Ok(file.scenario)
}

impl Scenario {
    /// What its client speaks, where it has so many threads.
    pub(crate) fn spoken(&self, threads: usize) -> Protocol {
        match self.protocol {
            Spoken::Http1 => Protocol::Http1,
            Spoken::Http2 => Protocol::Http2 {
                connections: self.users.div_ceil(USERS_OF_A_CONNECTION * threads.max(1)),
            },
        }
    }

    /// What makes no sense of what is said of bodies.
    fn fault_of_bodies(&self) -> Option<String> {
        let grows = self.first_bytes.zip(self.turn_bytes);
        let says = match self.bodies {
            None if self.body_count.is_some() || self.first_bytes.or(self.turn_bytes).is_some() => {
                "`body_count`, `first_bytes` and `turn_bytes` need `bodies`"
            }
            None => return None,
            Some(_) if self.messages.is_some() => "`bodies` and `messages` exclude one another",
            Some(Content::Conversation) if self.body_count.is_some() => {
                "`body_count` has no meaning with conversations: there is one for each user"
            }
            Some(Content::Conversation) => match grows {
                None => "`bodies = \"conversation\"` needs `first_bytes` and `turn_bytes`",
                Some((first, _)) if first < LEAST_FIRST_BYTES => {
                    "`first_bytes` must be at least 1024"
                }
                Some((_, turn)) if turn < LEAST_TURN_BYTES => "`turn_bytes` must be at least 512",
                Some((first, turn))
                    if first > self.body_bytes
                        || !(self.body_bytes - first).is_multiple_of(turn) =>
                {
                    "`body_bytes` must be `first_bytes` and a whole number of `turn_bytes`"
                }
                Some(_) => return self.fault_of_room(),
            },
            Some(Content::Prose | Content::Code)
                if self.first_bytes.or(self.turn_bytes).is_some() =>
            {
                "`first_bytes` and `turn_bytes` need `bodies = \"conversation\"`"
            }
            Some(_) if self.body_count == Some(0) => "`body_count` must be at least 1",
            Some(_) => return self.fault_of_room(),
        };
        Some(says.to_owned())
    }

    /// What makes no sense beside `mcp`.
    fn fault_of_tools(&self) -> Option<&'static str> {
        let tools = self.mcp?;
        if self.bodies.is_some()
            || self.messages.is_some()
            || self.latency_ms > 0
            || self.events > 0
            || self.dialect.is_some()
            || self.meter
        {
            return Some(
                "`bodies`, `messages`, `latency_ms`, `events`, `dialect` and `meter` have no meaning with `mcp`",
            );
        }
        if !self.hold {
            return None;
        }
        if !tools.version.has_sessions() {
            return Some(
                "`hold` needs a version of `mcp` with sessions: others have no standing stream",
            );
        }
        (self.interval_ms != 1_000).then_some("`hold` with `mcp` has an `interval_ms` of 1000: the server of tools says something every second")
    }

    fn fault_of_room(&self) -> Option<String> {
        let bytes = self.plan()?.templates_bytes();
        let (most, is) = (MOST_BYTES >> 20, bytes.div_ceil(1 << 20));
        (bytes > MOST_BYTES).then(|| {
            format!("`body_bytes` of all bodies, or of a conversation for each of `users`, come to {is} MiB; at most {most} are made")
        })
    }

    /// The bodies to be made, where there are many.
    fn plan(&self) -> Option<Plan> {
        let kind = match self.bodies? {
            Content::Prose => Kind::Prose(self.body_count),
            Content::Code => Kind::Code(self.body_count),
            Content::Conversation => Kind::Conversations {
                at_once: self.users,
                first: self.first_bytes?,
                turn: self.turn_bytes?,
            },
        };
        let name = self.name.bytes();
        Some(Plan {
            kind,
            bytes: self.body_bytes,
            opening: self.opening().len(),
            seed: name.fold(self.seed, |seed, byte| mix(seed ^ u64::from(byte))),
        })
    }

    /// Makes the bodies.
    pub(crate) fn traffic(&self) -> Traffic<'_> {
        let plan = self.plan();
        Traffic {
            scenario: self,
            opening: plan.map_or_else(|| self.body(), |_| self.opening().into_bytes()),
            pool: plan.map(|plan| Arc::new(plan.make())),
        }
    }

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

    /// A call up to its messages, which is written alike in every dialect but for what a chat completion asks of a stream.
    fn opening(&self) -> String {
        let stream = match (self.streams(), self.dialect) {
            (false, _) => "",
            (true, None) => r#""stream":true,"stream_options":{"include_usage":true},"#,
            (true, Some(Dialect::Anthropic)) => r#""stream":true,"#,
        };
        format!(r#"{{"model":"race-model",{stream}"max_tokens":256,"temperature":0.2,"messages":["#)
    }

    /// A call of exactly `body_bytes` bytes: the conversation as far as it fits, or turns of
    /// about a kilobyte, and a last turn that fills what is left.
    fn body(&self) -> Vec<u8> {
        let tail = r#"{"role":"user","content":""}]}"#;
        let mut body = self.opening().into_bytes();
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
