//! Scenarios good and bad, and the bodies that they send.

use super::{Part, Scenario, load_all, parse};

fn one(text: &str) -> Scenario {
    let mut all = parse(&format!("[[scenario]]\nname = 'x'\n{text}")).expect("a scenario");
    all.remove(0)
}

#[test]
fn a_body_has_exactly_the_bytes_asked_for_and_is_a_chat_completion() {
    for bytes in [512, 1229, 2_300, 32_757, 524_277] {
        for stream in ["", "events = 5"] {
            let scenario = one(&format!("users = 1\nbody_bytes = {bytes}\n{stream}"));
            let traffic = scenario.traffic();
            assert!(traffic.pool.is_none());
            let body = traffic.opening;
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
fn users_of_http2_share_connections_and_those_of_http1_have_one_each() {
    use load::client::Protocol;
    let alone = one("users = 100");
    assert_eq!(alone.spoken(2), Protocol::Http1);
    let shared = one("users = 100\nprotocol = 'http2'");
    assert_eq!(shared.spoken(2), Protocol::Http2 { connections: 2 });
    assert_eq!(shared.spoken(1), Protocol::Http2 { connections: 4 });
    let few = one("users = 1\nprotocol = 'http2'");
    assert_eq!(few.spoken(8), Protocol::Http2 { connections: 1 });
    let said = serde_json::to_value(&shared).expect("JSON");
    assert_eq!(said["protocol"], "http2");
    let said = serde_json::to_value(&alone).expect("JSON");
    assert_eq!(said["protocol"], "http1");
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
fn faults_of_bodies_say_what_would_be_right() {
    let fault = |text: &str| {
        let text = format!("[[scenario]]\nname = 'x'\nusers = 8\n{text}");
        parse(&text).expect_err("a fault")
    };
    let conversation = "bodies = 'conversation'\nbody_bytes = 4096";
    for (text, says) in [
        ("body_count = 4", "need `bodies`"),
        ("turn_bytes = 512", "need `bodies`"),
        ("bodies = 'prose'\nbody_count = 0", "at least 1"),
        (
            "bodies = 'prose'\nmessages = 'x.json'",
            "exclude one another",
        ),
        (
            "bodies = 'code'\nfirst_bytes = 2048",
            "need `bodies = \"conversation\"`",
        ),
        ("bodies = 'poem'", "unknown variant `poem`"),
        (conversation, "needs `first_bytes` and `turn_bytes`"),
        (
            &format!("{conversation}\nfirst_bytes = 2048\nturn_bytes = 1000"),
            "a whole number of",
        ),
        (
            &format!("{conversation}\nfirst_bytes = 5120\nturn_bytes = 512"),
            "a whole number of",
        ),
        (
            &format!("{conversation}\nfirst_bytes = 512\nturn_bytes = 512"),
            "at least 1024",
        ),
        (
            &format!("{conversation}\nfirst_bytes = 2048\nturn_bytes = 256"),
            "at least 512",
        ),
        (
            &format!("{conversation}\nfirst_bytes = 2048\nturn_bytes = 512\nbody_count = 2"),
            "one for each user",
        ),
        (
            "bodies = 'prose'\nbody_count = 1000\nbody_bytes = 100000",
            "come to 96 MiB; at most 64",
        ),
    ] {
        let fault = fault(text);
        assert!(
            fault.contains(says) && fault.contains('x'),
            "{text}: {fault}"
        );
    }
}

#[test]
fn scenarios_of_the_meter_take_part_in_no_other_race_that_does_not_name_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |text: &str| std::fs::write(dir.path().join("race.toml"), text).expect("a file");
    write(
        "[[scenario]]\nname = 'a'\nusers = 1\nquick = true\n\
         [[scenario]]\nname = 'b'\nusers = 1\nmeter = true\n\
         [[scenario]]\nname = 'c'\nusers = 1\nmeter = true\nquick = true\n",
    );
    let names = |wanted: &[String], quick, meter| {
        let all = load_all(dir.path(), wanted, Part { quick, meter }).expect("scenarios");
        let names = all.into_iter().map(|scenario| scenario.name);
        names.collect::<Vec<_>>().join("")
    };
    assert_eq!(names(&[], false, false), "a");
    assert_eq!(names(&[], false, true), "bc");
    assert_eq!(names(&[], true, true), "c");
    assert_eq!(names(&["b".into()], false, false), "b");
    write("[[scenario]]\nname = 'a'\nusers = 1\n");
    let part = Part {
        quick: false,
        meter: true,
    };
    let says = load_all(dir.path(), &[], part).expect_err("none");
    assert!(says.ends_with("no scenario is marked `meter`"), "{says}");
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
    // Each traffic of the meter as fast as it goes, and at a rate; streams have the rate of their events.
    let meter = || {
        let meter = all.iter().filter(|scenario| scenario.meter);
        meter.filter(|scenario| scenario.events == 0)
    };
    let (free, steady): (Vec<_>, Vec<_>) = meter().partition(|scenario| scenario.closed());
    assert_eq!((free.len(), steady.len()), (5, 5));
    for scenario in &steady {
        let of = |other: &&Scenario| {
            (other.bodies, other.body_bytes, other.body_count)
                == (scenario.bodies, scenario.body_bytes, scenario.body_count)
        };
        assert!(free.iter().any(of), "{}", scenario.name);
        assert!(scenario.quick, "{}", scenario.name);
    }
}

#[test]
fn a_scenario_with_bodies_sends_them_after_its_opening() {
    let scenario = one(
        "users = 4\nbodies = 'conversation'\nfirst_bytes = 2048\nturn_bytes = 1024\nbody_bytes = 7168",
    );
    let traffic = scenario.traffic();
    assert!(traffic.opening.ends_with(b"\"messages\":["));
    assert!(traffic.pool.is_some());
    let plan = scenario.plan().expect("a plan");
    assert_eq!(plan.templates_bytes(), 4 * 7168);
    let renamed = Scenario {
        name: "y".into(),
        ..scenario.clone()
    };
    assert_ne!(
        renamed.plan().expect("a plan").seed,
        plan.seed,
        "other bodies than another scenario"
    );
}

/// What the shipped scenario of source code sends: nearly all of it is the conversation, with the escapes
/// and letters of real text, and no part of it comes twice.
#[test]
fn a_body_of_source_code_is_the_conversation_and_not_one_sentence_repeated() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/gateways");
    let named = ["unary_32k_code_c32".to_owned()];
    let all = load_all(std::path::Path::new(dir), &named, Part::default()).expect("the scenario");
    let body = all[0].traffic().opening;
    let uniform = one("users = 1\nbody_bytes = 32757").traffic().opening;
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

#[test]
fn scenarios_of_tools_say_nothing_of_models_and_are_not_mixed_with_those() {
    let tools = |more: &str| {
        parse(&format!("[[scenario]]\nname = 'a'\nusers = 2\n{more}\n"))
            .map(drop)
            .map_err(|says| says.replace("scenario a: ", ""))
    };
    assert_eq!(tools("mcp = { version = '2025-11-25' }"), Ok(()));
    assert_eq!(
        tools("mcp = { version = '2026-07-28', answers = 'events' }"),
        Ok(())
    );
    let held = "hold = true\ninterval_ms = 1000\n";
    assert_eq!(
        tools(&format!("{held}mcp = {{ version = '2025-06-18' }}")),
        Ok(())
    );
    for (more, says) in [
        (
            "latency_ms = 60\nmcp = { version = '2025-11-25' }",
            "have no meaning with `mcp`",
        ),
        (
            "hold = true\ninterval_ms = 500\nmcp = { version = '2025-11-25' }",
            "`interval_ms` of 1000",
        ),
        (
            "hold = true\ninterval_ms = 1000\nmcp = { version = '2026-07-28' }",
            "no standing stream",
        ),
        ("mcp = { version = '2024-11-05' }", "2024-11-05"),
        (
            "mcp = { version = '2025-11-25' }\n[[scenario]]\nname = 'b'\nusers = 1",
            "no one race",
        ),
    ] {
        let told = tools(more).expect_err(more);
        assert!(told.contains(says), "{told}");
    }
}

/// What is shipped of tools, and what was published of the same.
#[test]
fn the_shipped_scenarios_of_tools_stand_beside_published_figures() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/mcp-echo");
    let dir = std::path::Path::new(dir);
    let all = load_all(dir, &[], Part::default()).expect("scenarios");
    assert!(all.iter().all(|scenario| scenario.mcp.is_some()));
    let references = super::references(dir).expect("references");
    for reference in &references {
        let is_there = all.iter().any(|one| one.name == reference.scenario);
        assert!(is_there && reference.rows.len() > 1, "{reference:?}");
    }
    assert_eq!(references.len(), 2);
}
