//! Workloads that the demo can make of itself: who asks, what, and how much.
//!
//! Not here: sending (`drive`).

use serde_json::{Value, json};
use tollgate::demo::Workload;

use super::chance::Chance;

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) caller: &'static str,
    pub(super) body: String,
}

const AGENT: &str = "toolbench-agent";
const IDE: &str = "swe-rebench-ide";
const CI: &str = "terminal-bench-ci";
const GUEST: &str = "unknown-guest";
const ON_PREM: &str = "gpt-oss-120b";
const FRONTIER: &str = "gemini-2.5-flash";

/// Agents whose conversations grow.
const SESSIONS: usize = 3;
/// A conversation begins anew after so many messages.
const MESSAGES_MAX: usize = 24;

/// Asks, call by call.
pub(super) struct Asker {
    workload: Workload,
    chance: Chance,
    sessions: [Vec<Value>; SESSIONS],
    asked: usize,
}

impl Asker {
    pub(super) fn new(workload: Workload, seed: u64) -> Self {
        Self {
            workload,
            chance: Chance::new(seed),
            sessions: Default::default(),
            asked: 0,
        }
    }

    /// The next call.
    pub(super) fn next(&mut self) -> Asked {
        self.asked += 1;
        match self.workload {
            Workload::Mixed => self.mixed(),
            Workload::Agents => self.turn(),
            Workload::Limits => self.pressing(),
        }
    }

    fn mixed(&mut self) -> Asked {
        let caller = match self.chance.below(20) {
            0..=3 => IDE,
            4..=5 => CI,
            6..=7 => GUEST,
            8..=13 => return self.turn(),
            _ => AGENT,
        };
        let words = 20 + self.chance.below(400);
        let cap = 40 + self.chance.below(120);
        let streams = self.chance.below(4) > 0;
        let asks = message("user", self.text(words));
        asked(caller, &[asks], streams, cap)
    }

    /// A turn of one of the agents: what its tool said, and what was said before.
    fn turn(&mut self) -> Asked {
        let at = self.chance.below(SESSIONS);
        let words = 150 + self.chance.below(500);
        let cap = 60 + self.chance.below(100);
        let said = self.text(40);
        let heard = self.text(words);
        let session = &mut self.sessions[at];
        if session.len() >= MESSAGES_MAX {
            session.clear();
        }
        if !session.is_empty() {
            session.push(message("assistant", said));
        }
        session.push(message("user", heard));
        asked(AGENT, session, true, cap)
    }

    fn pressing(&mut self) -> Asked {
        let caller = match self.asked % 4 {
            0 => IDE,
            1 => CI,
            _ => AGENT,
        };
        let words = 6_000 + self.chance.below(3_000);
        let cap = 30 + self.chance.below(60);
        let asks = message("user", self.text(words));
        asked(caller, &[asks], true, cap)
    }

    /// So many words.
    fn text(&mut self, words: usize) -> String {
        let words = (0..words).map(|_| self.chance.of(&WORDS).copied().unwrap_or_default());
        words.collect::<Vec<_>>().join(" ")
    }
}

fn message(role: &str, content: String) -> Value {
    json!({ "role": role, "content": content })
}

fn asked(caller: &'static str, messages: &[Value], streams: bool, cap: usize) -> Asked {
    let model = if caller == AGENT { FRONTIER } else { ON_PREM };
    let body = json!({
        "model": model, "stream": streams, "max_tokens": cap, "messages": messages,
    });
    Asked {
        caller,
        body: body.to_string(),
    }
}

const WORDS: [&str; 40] = [
    "the", "build", "fails", "on", "a", "test", "of", "parser", "which", "reads", "every", "line",
    "twice", "and", "then", "compares", "both", "with", "what", "was", "written", "before",
    "please", "find", "cause", "explain", "it", "in", "plain", "words", "show", "smallest",
    "change", "that", "would", "mend", "it,", "run", "again,", "report.",
];
