//! Recorded tool-using conversations through the demo: all answered, each leaving one record with
//! the engine's own token counts.
//!
//! The samples beside this file were written for this project in ToolBench's format. The genuine files may not
//! be distributed here: where they are available (`TOLLGATE_TOOLBENCH`, or `shared/data/toolbench` beside the
//! checkout) they are replayed too.
//! Not here: the conversion of old messages to the current format (`sdk/toolbench.py`).

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Demo, Sdk, seen_by};

#[test]
fn sample_conversations_are_answered_with_the_engines_token_counts() {
    let (files, prefixes) = replay(&here().join("tests/e2e/toolbench"));
    assert_eq!((files, prefixes), (4, 11));
}

#[test]
fn genuine_conversations_are_answered_with_the_engines_token_counts() {
    let named = std::env::var_os("TOLLGATE_TOOLBENCH").map(PathBuf::from);
    let beside = here().join("../../../shared/data/toolbench");
    let Some(dir) = named.or_else(|| beside.is_dir().then_some(beside)) else {
        testing::skip("TOLLGATE_TOOLBENCH names no genuine ToolBench files");
        return;
    };
    let (files, prefixes) = replay(&dir);
    drop(writeln!(
        std::io::stderr(),
        "ToolBench: {files} files, {prefixes} prefixes"
    ));
}

/// Replays all files below `dir`; returns how many files and how many prefixes there were.
fn replay(dir: &Path) -> (usize, usize) {
    let mut files = Vec::new();
    find(dir, &mut files);
    files.sort();
    assert!(!files.is_empty(), "no answer files in {}", dir.display());
    let held: usize = files.iter().map(|f| prefixes(f)).sum();
    let demo = Demo::start();
    let input = json!({ "base_url": demo.base_url(), "files": files });
    let answers = Sdk::Python.run("toolbench", &input);
    let answers = answers.as_array().expect("a list");
    assert_eq!(answers.len(), held, "every prefix is answered");
    let records = demo.records(held);
    assert_eq!(records.len(), held, "each leaves exactly one record");
    let records = by_id(&records, |r| r["request_id"].as_str());
    let seen = seen_by(demo.frontier);
    assert_eq!(seen.len(), held, "each reached the engine once");
    let seen = by_id(&seen, request_id);
    for answer in answers {
        let id = answer["request_id"].as_str().expect("an id");
        agree(answer, records[id], seen[id]);
    }
    (files.len(), held)
}

/// Asserts that the answer, the record and the engine agree.
fn agree(answer: &Value, record: &Value, seen: &Value) {
    assert_eq!(answer["status"], 200, "{answer}");
    assert!(
        answer["text"].as_str().is_some_and(|t| !t.is_empty()),
        "{answer}"
    );
    for counted in ["prompt_tokens", "completion_tokens"] {
        assert!(seen[counted].as_u64() > Some(0), "{seen}");
        assert_eq!(answer[counted], seen[counted], "{answer}");
        assert_eq!(record[counted], seen[counted], "{record}");
    }
    let expected = [
        ("workload", json!("toolbench-agent")),
        ("outcome", json!("completed")),
        ("streamed", json!(true)),
        ("model_sent", json!("gemini-2.5-flash")),
        ("prompt_source", json!("reported")),
        ("completion_source", json!("reported")),
    ];
    for (name, value) in expected {
        assert_eq!(record[name], value, "{name}: {record}");
    }
}

fn by_id(all: &[Value], id: fn(&Value) -> Option<&str>) -> HashMap<&str, &Value> {
    let map: HashMap<&str, &Value> = all
        .iter()
        .map(|one| (id(one).expect("it has an id"), one))
        .collect();
    assert_eq!(map.len(), all.len(), "ids are unique");
    map
}

/// The request id that the gate sent upstream.
fn request_id(seen: &Value) -> Option<&str> {
    let headers = seen["headers"].as_array()?;
    headers.iter().find(|h| h[0] == "x-request-id")?[1].as_str()
}

fn prefixes(file: &Path) -> usize {
    let text = std::fs::read(file).expect("a file");
    let answer = serde_json::from_slice::<Value>(&text).expect("JSON")["answer_generation"].take();
    let held = answer["train_messages"].as_array();
    assert_eq!(
        answer["valid_data"] == true,
        held.is_some(),
        "{}",
        file.display()
    );
    held.map_or(0, Vec::len)
}

fn find(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|e| e == "json") {
            files.push(path);
        }
    }
}

fn here() -> PathBuf {
    env!("CARGO_MANIFEST_DIR").into()
}
