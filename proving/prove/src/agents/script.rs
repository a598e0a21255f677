//! What scripted agents have to do: tasks, how many steps each takes, what its tools find and for how long they run.
//!
//! Invariant: everything follows from the seed, the session and the step, so that an agent in any run has the same task.
//! Not here: what the model says (the engine), when agents come in (`experiment::workload`).

use std::time::Duration;

use experiment::random::Rng;
use experiment::workload::Sessions;
use serde_json::{Value, json};

/// Names of the streams of what is drawn.
const STEPS: u64 = 101;
const PAUSE: u64 = 102;
const TEXT: u64 = 103;
/// Steps of a session at most.
const MOST_STEPS: f64 = 40.0;
/// Words of one token each in most vocabularies.
const WORDS: [&str; 32] = [
    "file", "line", "error", "test", "value", "list", "name", "path", "type", "call", "state",
    "index", "node", "table", "key", "time", "size", "count", "data", "user", "code", "text",
    "link", "page", "root", "result", "check", "build", "load", "start", "end", "open",
];
/// What agents of every session are told first.
const SYSTEM: &str = "You are an agent that works in a repository. Think about what is asked, call one tool at a time, read what it finds, \
and go on until the task is done. Say shortly what you did when it is. Never guess what a file holds: read it. Keep changes small.";

/// Tasks of so many sessions.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) seed: u64,
    pub(super) sessions: u64,
    /// Mean number of steps of a session.
    pub(super) steps: f64,
    /// Mean run time of a tool, seconds.
    pub(super) tool_s: f64,
    /// Mean words of what a tool finds.
    pub(super) found: f64,
}

impl Script {
    fn rng(&self, kind: u64, session: u64, step: u32) -> Rng {
        Rng::stream(self.seed, &[kind, session, u64::from(step)])
    }

    /// How long the tool runs whose result the step's prompt ends with; with the variation of published agents.
    pub(super) fn tool_time(&self, session: u64, step: u32) -> Duration {
        let mut rng = self.rng(PAUSE, session, step);
        Duration::from_secs_f64(rng.lognormal(self.tool_s, 1.5).min(60.0))
    }

    /// What everybody is told first.
    pub(super) fn system() -> Value {
        json!({"role": "system", "content": SYSTEM})
    }

    /// What the session is about.
    pub(super) fn task(&self, session: u64) -> Value {
        let words = self.words(session, 0, 60.0);
        json!({"role": "user", "content": format!("Task {session}. {words}")})
    }

    /// What a tool found before this step, or what a user says where none was called.
    pub(super) fn found(&self, session: u64, step: u32) -> String {
        self.words(session, step, self.found)
    }

    fn words(&self, session: u64, step: u32, mean: f64) -> String {
        let mut rng = self.rng(TEXT, session, step);
        let count = rng.lognormal(mean, 1.0).round().clamp(1.0, 20_000.0) as usize;
        let mut word = || {
            let place = rng.below(WORDS.len() as u64);
            usize::try_from(place)
                .ok()
                .and_then(|place| WORDS.get(place))
                .copied()
                .unwrap_or_default()
        };
        let words: Vec<&str> = (0..count).map(|_| word()).collect();
        words.join(" ")
    }

    /// What may be called.
    pub(super) fn tools() -> Value {
        let tool = |name: &str, says: &str, of: &str| {
            json!({"type": "function", "function": {"name": name, "description": says, "parameters": {
                "type": "object", "properties": {of: {"type": "string"}}, "required": [of]}}})
        };
        json!([
            tool("read_file", "Reads a file of the repository.", "path"),
            tool(
                "run_command",
                "Runs a command in a shell and gives what it printed.",
                "command"
            ),
            tool(
                "search",
                "Finds lines of the repository that hold a text.",
                "text"
            ),
        ])
    }
}

impl Sessions for Script {
    fn count(&self) -> u64 {
        self.sessions
    }

    fn turns(&self, session: u64) -> u32 {
        let mut rng = self.rng(STEPS, session, 0);
        rng.lognormal(self.steps, 0.5)
            .round()
            .clamp(1.0, MOST_STEPS) as u32
    }

    fn think(&self, session: u64, turn: u32) -> Option<Duration> {
        (turn > 0).then(|| self.tool_time(session, turn))
    }
}
