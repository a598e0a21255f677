//! Live agents before the simulated engine, and the replay of what they recorded.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::PROVE;

fn agents(out: &Path, further: &[&str]) -> Output {
    let mut command = Command::new(PROVE);
    command.args(["agents", "--json", "--out"]).arg(out);
    command.args(further).output().expect("prove runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    })
}

fn measure<'a>(result: &'a Value, name: &str) -> &'a Value {
    let all = result["measures"].as_array().expect("measures");
    all.iter()
        .find(|measure| measure["name"] == name)
        .expect(name)
}

#[test]
fn a_replay_sends_an_engine_what_live_agents_sent_request_by_request() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("agents");
    let few = [
        "--agents",
        "4",
        "--sessions",
        "12",
        "--steps",
        "3",
        "--tool-time",
        "20ms",
        "--output-tokens",
        "24",
        "--no-ramp",
    ];
    let output = agents(&out, &few);
    let result = json(&output);
    assert_eq!(
        (&result["sessions"], &result["t2"]),
        (&12.into(), &Value::Null),
        "{result}"
    );
    // What time decides is no part of a test; lengths are the same to the token.
    for name in ["tokens of a prompt", "tokens of an answer"] {
        let measure = measure(&result, name);
        assert_eq!(
            (&measure["different"], &measure["is_equal"]),
            (&0.into(), &true.into()),
            "{measure}"
        );
    }
    let cached = measure(&result, "tokens of a prompt that were cached");
    // Which session is the first to bring the common beginning into the cache is chance, with four at once.
    assert!(cached["different"].as_u64() <= Some(8), "{cached}");
    for run in ["live", "replay"] {
        assert_eq!(result[run]["failed"], 0, "{result}");
        assert_eq!(result[run]["requests"], result["live"]["requests"]);
        assert!(
            result[run]["cached_share"].as_f64() > Some(0.2),
            "{}",
            result[run]
        );
    }
    let code = output.status.code();
    let is_equal = result["verdict"] == "equal";
    assert_eq!(code, Some(i32::from(!is_equal)), "{}", result["verdict"]);
    // What was recorded is a log that others read, too.
    let log = fs::read_to_string(out.join("trajectories.jsonl")).expect("a recording");
    assert_eq!(log.lines().count(), 12);
    let session: Value = serde_json::from_str(log.lines().next().expect("a line")).expect("JSON");
    let roles = session["messages"].as_array().expect("messages").iter();
    let roles: Vec<&str> = roles
        .filter_map(|message| message["role"].as_str())
        .collect();
    assert_eq!(roles[..3], ["system", "user", "assistant"]);
    let page = fs::read_to_string(out.join("agents.html")).expect("a page");
    assert!(page.contains("Figure 1. The live loop") && page.contains("Figure 2. The replay"));
    // A second run says that the directory is not new.
    let again = agents(&out, &few);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("name another directory"));
}

#[test]
#[ignore = "timing"]
fn timing_live_agents_and_their_replay_have_one_law_and_one_saturation_point() {
    let dir = tempfile::tempdir().expect("a directory");
    // What else runs on the machine tells two runs apart; it does not do so each time.
    let is_equal = (0..3).any(|nth| {
        let out = dir.path().join(nth.to_string());
        let output = agents(&out, &["--agents", "16", "--sessions", "64"]);
        println!("{}", String::from_utf8_lossy(&output.stdout));
        output.status.code() == Some(0)
    });
    assert!(is_equal, "three times they were told apart");
}
