//! The white paper's three policies against the running demo, by the real OpenAI SDKs.
//!
//! Invariant: every case runs with each SDK, streaming and not, each time on a fresh demo, because
//! limits are by the minute. An SDK takes its time to start, so that it makes all calls of a demo at once.

mod credential;
mod limit;
mod route;

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::harness::{Demo, Sdk, seen_by};

/// What was seen of one demo, by the calls that one SDK made in one way.
struct Run {
    sdk: Sdk,
    stream: bool,
    /// Six calls of the workload that may make two a minute.
    limited: Vec<Value>,
    /// The same call of the agent, and of nobody.
    routed: Vec<Value>,
    /// Calls that carry a rogue credential, and what came of each.
    rogue: Vec<(Value, Value)>,
    /// What each engine saw of them.
    on_prem: Vec<Value>,
    frontier: Vec<Value>,
    records: Vec<Value>,
    /// Refusals by limits, before and after the calls.
    refusals: [limit::Refusals; 2],
    /// Statuses of the engine's own answers, without the gate.
    direct: [u16; 3],
}

/// One for each SDK, streaming and not.
fn runs() -> &'static [Run] {
    static RUNS: OnceLock<Vec<Run>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let ways = Sdk::ways();
        ways.map(|(sdk, stream)| Run::new(sdk, stream)).collect()
    })
}

impl Run {
    fn new(sdk: Sdk, stream: bool) -> Self {
        let demo = Demo::start();
        let engines = || (seen_by(demo.on_prem), seen_by(demo.frontier));
        assert_eq!(engines(), (Vec::new(), Vec::new()));
        let before = limit::Refusals::of(&demo);
        let limited = vec![call("swe-rebench-ide", stream); 6];
        let routed = ["toolbench-agent", "unknown-guest"].map(|of| call(of, stream));
        let rogues = credential::rogues(stream);
        let calls = [&limited[..], &routed, &rogues].concat();
        let input = json!({ "base_url": demo.base_url(), "calls": calls });
        let outcomes = sdk.run("calls", &input);
        let mut outcomes = outcomes.as_array().expect("a list").clone().into_iter();
        assert_eq!(outcomes.len(), calls.len());
        let (on_prem, frontier) = engines();
        let run = Self {
            sdk,
            stream,
            limited: outcomes.by_ref().take(limited.len()).collect(),
            routed: outcomes.by_ref().take(routed.len()).collect(),
            rogue: rogues.into_iter().zip(outcomes).collect(),
            on_prem,
            direct: credential::direct(&demo, &frontier),
            frontier,
            records: demo.records(calls.len()),
            refusals: [before, limit::Refusals::of(&demo)],
        };
        assert_eq!(run.records.len(), calls.len(), "one record for each call");
        run
    }

    /// Which of them it is, for what fails.
    fn what(&self) -> String {
        let Self { sdk, stream, .. } = self;
        format!("{sdk:?}, streaming: {stream}")
    }

    /// The record of what came so.
    fn record(&self, outcome: &Value) -> &Value {
        let mut records = self.records.iter();
        let record = records.find(|record| record["request_id"] == outcome["request_id"]);
        record.unwrap_or_else(|| panic!("{}: no record of {outcome}", self.what()))
    }
}

/// A chat call under a workload, for the script `calls`.
fn call(workload: &str, stream: bool) -> Value {
    json!({
        "headers": { "x-workload-app": workload },
        "body": {
            "model": "gpt-oss-120b",
            "messages": [{ "role": "user", "content": "Hello" }],
            "stream": stream,
        },
    })
}

/// The values of a header that an engine saw.
fn values<'a>(request: &'a Value, name: &str) -> Vec<&'a str> {
    let headers = request["headers"].as_array().expect("a list").iter();
    let of = headers.filter(|header| header[0] == name);
    of.filter_map(|header| header[1].as_str()).collect()
}
