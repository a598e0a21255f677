//! Each probe is counted, and is of the shape that it says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wire::dialect::Operation;

use super::*;
use crate::tests::{CLOCK_S, tiny, vectors};
use crate::{BuiltIn, Certainty, Counter};

#[test]
fn each_is_counted_by_a_template_and_has_the_features_that_it_says() {
    let counter = tiny(&vectors("chatml.jinja"));
    for Probe {
        name,
        operation,
        body,
        shape,
    } in all()
    {
        let counted = counter.prompt(operation, body.as_bytes(), CLOCK_S);
        let counted = counted.unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(counted.shape, shape, "{name}");
        assert_eq!(counted.count.certainty, Certainty::Exact, "{name}");
    }
}

#[test]
fn harmony_and_the_public_overhead_take_them_too() {
    let harmony = Counter::harmony();
    let hosted = Counter::without_template(BuiltIn::O200k);
    for probe in all() {
        for counter in [&harmony, &hosted] {
            let counted = counter.prompt(probe.operation, probe.body.as_bytes(), CLOCK_S);
            let counted = counted.unwrap_or_else(|why| panic!("{}: {why}", probe.name));
            let others = counted.shape.without(probe.shape);
            assert!(others.is_empty(), "{}: {others}", probe.name);
        }
    }
}

#[test]
fn names_are_their_own_and_bodies_are_small_objects_without_a_model() {
    let all = all();
    assert_eq!(all.len(), COUNT);
    let names: BTreeSet<_> = all.iter().map(|probe| probe.name).collect();
    assert_eq!(names.len(), COUNT);
    for probe in &all {
        let body: Value = serde_json::from_str(&probe.body).expect("JSON");
        assert!(body.is_object() && body.get("model").is_none());
        let most = if probe.shape.has(Feature::Long) {
            32 << 10
        } else {
            2 << 10
        };
        assert!(probe.body.len() <= most, "{}", probe.name);
    }
}

#[test]
fn what_agents_send_is_asked_for_in_each_api_that_has_it() {
    let mut of: BTreeMap<&str, Shape> = BTreeMap::new();
    for probe in all() {
        let api = probe.name.split('_').next().expect("a word");
        let shapes = of.entry(api).or_default();
        *shapes = shapes.and(probe.shape);
    }
    let agents = Shape::of(&[
        Feature::History,
        Feature::Tools,
        Feature::Calls,
        Feature::Answers,
        Feature::System,
    ]);
    for api in ["chat", "messages", "responses"] {
        assert_eq!(of[api].common(agents), agents, "{api}");
    }
    let first = |operation| all().into_iter().find(|it| it.operation == operation);
    let simplest = first(Operation::Chat).expect("one");
    assert_eq!(simplest.shape, Shape::of(&[Feature::Chat]));
}
