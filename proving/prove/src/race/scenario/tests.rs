//! Scenarios good and bad, and the bodies that they send.

use super::{Scenario, parse};

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
