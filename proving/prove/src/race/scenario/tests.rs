//! Scenarios good and bad, and the bodies that they send.

use super::{Scenario, load_all, parse};

fn one(text: &str) -> Scenario {
    let mut all = parse(&format!("[[scenario]]\nname = 'x'\n{text}")).expect("a scenario");
    all.remove(0)
}

#[test]
fn a_body_has_exactly_the_bytes_asked_for_and_is_a_chat_completion() {
    for bytes in [512, 1229, 2_300, 32_757, 524_277] {
        for stream in ["", "events = 5"] {
            let scenario = one(&format!("users = 1\nbody_bytes = {bytes}\n{stream}"));
            let body = scenario.body();
            assert_eq!(body.len(), bytes);
            let json: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(
                json["stream"].as_bool().unwrap_or(false),
                scenario.streams()
            );
            assert!(
                json["messages"]
                    .as_array()
                    .is_some_and(|turns| !turns.is_empty())
            );
        }
    }
}

#[test]
fn faults_name_the_scenario_and_the_field() {
    let fault =
        |text: &str| parse(&format!("[[scenario]]\nname = 'x'\n{text}")).expect_err("a fault");
    assert!(fault("users = 0").contains("scenario x: `users`"));
    assert!(fault("users = 1\nbody_bytes = 10").contains("scenario x: `body_bytes`"));
    assert!(fault("users = 1\nhold = true").contains("scenario x: `hold`"));
    assert!(fault("users = 1\nper_second = -1.0").contains("scenario x: `per_second`"));
    assert!(fault("users = 1\ncpu_quota = 0.0").contains("scenario x: `cpu_quota`"));
    assert!(fault("users = 1\nlatancy_ms = 1").contains("latancy_ms"));
}

#[test]
fn held_streams_outlast_their_opening_and_the_measurement() {
    let scenario = one("users = 5000\nhold = true\ninterval_ms = 1000");
    let timing = scenario.timing(3.0);
    assert_eq!(timing.ramp.as_millis(), 5_000);
    let lasts_ms = (scenario.events_of(&timing) - 1) * 1000;
    assert!(u128::from(lasts_ms) >= (timing.warm_up + timing.measure).as_millis());
}

#[test]
fn the_scenarios_that_are_shipped_parse_and_have_different_names() {
    let all =
        parse(include_str!("../../../../../scenarios/gateways/race.toml")).expect("scenarios");
    let mut names: Vec<_> = all.iter().map(|scenario| scenario.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len());
    assert!(names.contains(&"unary_1k_c32"));
}

/// What the shipped scenario of source code sends: nearly all of it is the conversation, with the escapes
/// and letters of real text, and no part of it comes twice.
#[test]
fn a_body_of_source_code_is_the_conversation_and_not_one_sentence_repeated() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/gateways");
    let named = ["unary_32k_code_c32".to_owned()];
    let all = load_all(std::path::Path::new(dir), &named, false).expect("the scenario");
    let body = all[0].body();
    let uniform = one("users = 1\nbody_bytes = 32757").body();
    assert_eq!((body.len(), uniform.len()), (32_757, 32_757));
    let text = String::from_utf8(body).expect("UTF-8");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["messages"].as_array().map(Vec::len), Some(18));
    for (what, least) in [
        ("\\n", 600),
        ("\\\"", 200),
        ("\\u00", 5),
        ("fn ", 15),
        ("日本", 1),
    ] {
        let found = text.matches(what).count();
        assert!(found >= least, "{what:?}: {found}");
    }
    let twice = |body: &[u8]| {
        let mut seen = std::collections::HashSet::new();
        body.chunks_exact(64)
            .filter(|part| !seen.insert(*part))
            .count()
    };
    assert!(
        twice(text.as_bytes()) < 20 && twice(&uniform) > 100,
        "{} {}",
        twice(text.as_bytes()),
        twice(&uniform)
    );
}
