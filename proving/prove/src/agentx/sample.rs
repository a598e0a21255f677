//! Made-up traces in the form of the published ones, for tests and first steps.
//!
//! Lengths are a hundredth of the published ones: some thousand tokens of prompt in the place of a hundred thousand.
//! Invariant: the same number and seed give the same lines.
//! Not here: reading them (`file`).

use std::fmt::Write as _;

use experiment::random::Rng;
use serde_json::{Value, json};

/// Tokens of a block.
const BLOCK: u64 = 64;
const STREAM: u64 = 211;

/// So many lines.
pub(super) fn lines(traces: u64, seed: u64) -> String {
    let mut out = String::new();
    for number in 0..traces {
        let mut rng = Rng::stream(seed, &[STREAM, number]);
        let trace = Made::default().trace(&mut rng, number);
        let _ = writeln!(out, "{trace}");
    }
    out
}

/// A trace that is being made; names of blocks count up in it.
#[derive(Default)]
struct Made {
    names: u64,
    sub_agents: u64,
}

impl Made {
    fn trace(&mut self, rng: &mut Rng, number: u64) -> Value {
        let mut requests = Vec::new();
        let turns = 4 + rng.below(14);
        let mut clock = 0.0;
        let mut known = self.blocks(12 + rng.below(20));
        for turn in 0..turns {
            let (request, ended) = self.request(rng, clock, &mut known, "s");
            requests.push(request);
            clock = ended;
            if turn > 0 && rng.below(5) == 0 {
                let (group, ended) = self.sub_agent(rng, clock, &known);
                requests.push(group);
                // The agent waits for it, or does not.
                clock = if rng.below(4) == 0 { clock } else { ended };
            }
            clock += pause(rng);
        }
        json!({
            "id": format!("sample-{number:03}"),
            "models": ["made-up"],
            "block_size": BLOCK,
            "hash_id_scope": "local",
            "requests": requests,
        })
    }

    fn sub_agent(&mut self, rng: &mut Rng, from: f64, of_parent: &[u64]) -> (Value, f64) {
        // It shares what its parent was told first.
        let mut known: Vec<u64> = of_parent.iter().take(6).copied().collect();
        let mut clock = from + 0.1 + rng.unit();
        let mut requests = Vec::new();
        for _ in 0..1 + rng.below(4) {
            let (request, ended) = self.request(rng, clock, &mut known, "s");
            requests.push(request);
            clock = ended + 0.2 + rng.exponential(1.0);
        }
        self.sub_agents += 1;
        let group = json!({
            "t": rounded(from),
            "type": "subagent",
            "agent_id": format!("agent_{:03}", self.sub_agents),
            "subagent_type": "Explore",
            "status": "completed",
            "models": ["made-up"],
            "requests": requests,
        });
        (group, clock)
    }

    /// One request after `from`; what it adds is known afterwards.
    fn request(
        &mut self,
        rng: &mut Rng,
        from: f64,
        known: &mut Vec<u64>,
        kind: &str,
    ) -> (Value, f64) {
        let more = 1 + rng.below(6);
        let new = self.blocks(more);
        known.extend(new);
        let output = rng.lognormal(60.0, 1.0).round().clamp(4.0, 600.0);
        let took = output * 0.02 + 0.3;
        let last = rng.below(BLOCK);
        let tokens = known.len() as u64 * BLOCK - last;
        let request = json!({
            "t": rounded(from),
            "type": kind,
            "model": "made-up",
            "in": tokens,
            "out": output as u64,
            "hash_ids": &*known,
            "api_time": rounded(took),
            "ttft": 0.3,
        });
        // The last block was not whole, so the next prompt has another in its place.
        if last > 0 {
            known.pop();
            known.extend(self.blocks(1));
        }
        (request, from + took)
    }

    fn blocks(&mut self, count: u64) -> Vec<u64> {
        let first = self.names;
        self.names += count;
        (first..self.names).collect()
    }
}

/// Between an answer and the next request: tools mostly, and a person now and then.
fn pause(rng: &mut Rng) -> f64 {
    if rng.below(10) == 0 {
        rng.exponential(120.0)
    } else {
        rng.lognormal(2.0, 1.5)
    }
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}
