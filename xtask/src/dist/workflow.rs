//! What holds of the workflow that makes packages of a tag: it is read as YAML, and what it runs is what anybody can run.
//!
//! Not here: GitHub, which runs it. It was never run there.

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

use super::Plan;
use super::signature::KEY;
use crate::cargo::root;

const FILE: &str = ".github/workflows/release.yml";

#[test]
fn each_step_is_one_verb_of_ours_or_an_action() {
    let workflow = workflow();
    let tags = workflow.pointer("/on/push/tags/0").and_then(Value::as_str);
    assert_eq!(tags, Some("v*"), "{workflow}");
    let jobs = workflow
        .get("jobs")
        .and_then(Value::as_object)
        .expect("jobs");
    let mut verbs = Vec::new();
    for step in jobs.values().flat_map(steps) {
        match (&step["run"], &step["uses"]) {
            (Value::String(run), Value::Null) => {
                let words: Vec<&str> = run.split_whitespace().collect();
                let ["cargo", "xtask", "dist", rest @ ..] = words.as_slice() else {
                    panic!("{run} is not one `cargo xtask dist`");
                };
                assert!(Plan::of(rest).is_some(), "{run} is not understood");
                verbs.push(rest.join(" "));
            }
            (Value::Null, Value::String(uses)) => {
                assert!(uses.starts_with("actions/"), "{uses} is of somebody else");
                let commit = uses.split_once('@').map_or("", |(_, commit)| commit);
                let is_commit = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
                assert!(is_commit, "{uses}: a tag can be moved, a commit cannot");
                if uses.starts_with("actions/checkout@") {
                    let persists = step.pointer("/with/persist-credentials");
                    assert_eq!(persists.and_then(Value::as_str), Some("false"), "{step}");
                }
            }
            _ => panic!("{step} neither runs nor uses"),
        }
    }
    let packages = ["tag \"$TAG\"", "setup", "--twice --all-tried"];
    let signature = ["tag \"$TAG\"", "sign"];
    assert_eq!(verbs, [&packages[..], &signature[..]].concat());
}

#[test]
fn the_key_is_in_one_step_of_a_job_that_builds_nothing_beside_it() {
    let text = std::fs::read_to_string(root().join(FILE)).expect(FILE);
    assert_eq!(text.matches("secrets.").count(), 1, "one secret, once");
    let workflow = workflow();
    assert_eq!(workflow.get("env"), None, "a step's own is enough");
    let jobs = workflow["jobs"].as_object().expect("jobs");
    for (name, job) in jobs {
        assert_eq!(job.get("env"), None, "{name}: a step's own is enough");
        let with_key = steps(job).filter(|step| step["env"].get(KEY).is_some());
        let runs: Vec<_> = with_key.map(|step| &step["run"]).collect();
        if name == "signature" {
            assert_eq!(runs, ["cargo xtask dist sign"]);
            assert_eq!(job["needs"], "packages");
            assert!(
                job["environment"].is_string(),
                "who may use it is set there"
            );
            assert!(
                job["container"].get("options").is_none(),
                "it mounts nothing"
            );
            // xtask itself is built by the step before.
            let runs: Vec<_> = steps(job).filter_map(|step| step["run"].as_str()).collect();
            assert_eq!(
                runs,
                ["cargo xtask dist tag \"$TAG\"", "cargo xtask dist sign"]
            );
        } else {
            assert!(runs.is_empty(), "{name}: {runs:?}");
        }
    }
}

#[test]
fn what_a_person_writes_reaches_no_shell() {
    let text = std::fs::read_to_string(root().join(FILE)).expect(FILE);
    let runs = text
        .lines()
        .filter(|line| line.trim_start().starts_with("run:"));
    for run in runs {
        assert!(!run.contains("${{"), "{run}: by an environment variable");
    }
}

fn steps(job: &Value) -> impl Iterator<Item = &Value> {
    job["steps"].as_array().expect("steps").iter()
}

fn workflow() -> Value {
    let text = std::fs::read_to_string(root().join(FILE)).expect(FILE);
    let mut parser = Parser::new_from_str(&text);
    let mut events = std::iter::from_fn(move || {
        parser.next_event().map(|event| match event {
            Ok((event, _)) => event,
            Err(error) => panic!("{FILE}: {error}"),
        })
    });
    let is_document = |event: &Event| matches!(event, Event::DocumentStart(..));
    assert!(events.any(|event| is_document(&event)), "{FILE} is empty");
    value(&mut events).expect("a document is a value")
}

/// The next value, or nothing where a list or a mapping ends. Every scalar is text.
fn value<'a>(events: &mut impl Iterator<Item = Event<'a>>) -> Option<Value> {
    match events.next()? {
        Event::Scalar(text, ..) => Some(Value::String(text.into_owned())),
        Event::SequenceStart(..) => {
            Some(Value::Array(std::iter::from_fn(|| value(events)).collect()))
        }
        Event::MappingStart(..) => {
            let mut members = Map::new();
            while let Some(key) = value(events) {
                let key = key.as_str().expect("a key is text").to_owned();
                let before = members.insert(key, value(events).expect("a member has a value"));
                assert!(before.is_none(), "a key stands twice");
            }
            Some(Value::Object(members))
        }
        _ => None,
    }
}
