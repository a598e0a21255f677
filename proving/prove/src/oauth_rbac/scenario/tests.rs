//! Scenarios good and bad.

use super::{Scenario, Wanted};

const SHIPPED: &str = include_str!("../../../../../scenarios/oauth-rbac/scenario.toml");

fn fault(from: &str, to: &str) -> String {
    assert!(SHIPPED.contains(from), "{from}");
    let text = SHIPPED.replacen(from, to, 1);
    Scenario::parse(&text, &Wanted::default()).expect_err("a fault")
}

#[test]
fn the_scenario_that_is_shipped_asks_what_the_published_one_asked() {
    let scenario = Scenario::parse(SHIPPED, &Wanted::default()).expect("a scenario");
    let asked = (scenario.iterations, scenario.requests, scenario.connections);
    assert_eq!(asked, (5, 10_000, 50));
    let published = &scenario.reference.runs[0];
    assert_eq!(published.iterations.len(), 5);
    let mean = |of: fn(&super::Figures) -> Option<f64>| {
        published.iterations.iter().filter_map(of).sum::<f64>() / 5.0
    };
    let is_near = |a: f64, b: Option<f64>| (a - b.expect("a figure")).abs() < 0.06;
    assert!(is_near(mean(|f| f.p50_ms), published.average.p50_ms));
    assert!(is_near(mean(|f| f.p95_ms), published.average.p95_ms));
    assert!(is_near(mean(|f| f.p99_ms), published.average.p99_ms));
    assert!(is_near(mean(|f| f.rps), published.average.rps));
    let limited: Vec<&str> = scenario
        .variants
        .iter()
        .filter(|variant| scenario.limits[2].is_for(variant))
        .map(|variant| variant.name.as_str())
        .collect();
    assert_eq!(
        limited,
        ["introspection-new", "ext_authz", "kubernetes-new"]
    );
}

#[test]
fn what_is_wanted_is_taken_in_that_order_and_what_is_unknown_is_refused() {
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|&name| name.into())
            .collect::<Vec<String>>()
    };
    let (variants, limits) = (names(&["jwt", "introspection"]), names(&["none"]));
    let wanted = Wanted {
        variants: &variants,
        limits: &limits,
        iterations: Some(1),
        requests: Some(20),
        connections: Some(4),
    };
    let scenario = Scenario::parse(SHIPPED, &wanted).expect("a scenario");
    let taken: Vec<&str> = scenario.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(
        (taken, scenario.limits.len()),
        (vec!["jwt", "introspection"], 1)
    );
    assert_eq!(
        (scenario.iterations, scenario.requests, scenario.connections),
        (1, 20, 4)
    );
    let variants = names(&["saml"]);
    let wanted = Wanted {
        variants: &variants,
        ..Wanted::default()
    };
    let says = Scenario::parse(SHIPPED, &wanted).expect_err("a fault");
    assert!(
        says.contains("no variant named saml; there are introspection,"),
        "{says}"
    );
}

#[test]
fn faults_name_the_field() {
    assert!(fault("iterations = 5", "iterations = 0").contains("`iterations`"));
    assert!(fault("requests = 10000", "requests = 40").contains("`connections`"));
    assert!(fault("rest_seconds = 2.0", "rest_seconds = 0.0").contains("`rest_seconds`"));
    assert!(
        fault("iteration_seconds = 120", "iteration_seconds = 0").contains("`iteration_seconds`")
    );
    assert!(fault("tokens = 50000", "tokens = 0").contains("variant introspection-new: `tokens`"));
    assert!(fault("gate = 0.05", "gate = 0.0").contains("limit gate at 0.05 core"));
    assert!(fault("token = \"RS256\"", "token = \"HS256\"").contains("HS256"));
    assert!(fault("requests = 10000", "reqests = 10000").contains("reqests"));
}
