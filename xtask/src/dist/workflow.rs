//! What holds of the workflow that makes packages of a tag: it is read as YAML, and what it runs is what anybody can run.
//!
//! Not here: GitHub, which runs it. It was never run there.

use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

use super::Plan;
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
    for step in jobs
        .values()
        .flat_map(|job| job["steps"].as_array().expect("steps"))
    {
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
            }
            _ => panic!("{step} neither runs nor uses"),
        }
    }
    assert_eq!(verbs, ["tag \"$TAG\"", "setup", "--twice"]);
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
