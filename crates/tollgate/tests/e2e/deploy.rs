//! `deploy/`: the rules are valid, and every metric that dashboards and rules query is exported by gate,
//! engine or exporter.
//!
//! A real Prometheus scrapes all three and evaluates every query; without it these tests fail.
//! Not here: the looks of a panel.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use fixture::Fixture;
use prometheus::{Known, Prometheus};
use promql::ParsedQuery;

mod fixture;
mod package;
mod prometheus;
mod promql;
mod stack;

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
const DASHBOARDS: [&str; 3] = ["gateway", "finops", "engine"];

/// Metrics that are exported only under a condition, with the condition; documented in docs/metrics.md or docs/usage.md.
const CONDITIONAL: [(&str, &str); 4] = [
    ("tollgate_cpu_quota", "a cgroup that sets a quota"),
    (
        "tollgate_cpu_throttled_seconds_total",
        "a cgroup that counts",
    ),
    (
        "tollgate_ledger_ship_forked",
        "a Postgres beside the ledger",
    ),
    ("tollgate_ledger_unshipped", "a Postgres beside the ledger"),
];

fn dashboard(name: &str) -> Value {
    let path = format!("{DEPLOY}/grafana/dashboards/{name}.json");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn promtool(args: &[&str]) {
    let output = Command::new("promtool").args(args).output();
    let output = output.expect("promtool is not installed: run `cargo xtask setup`");
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "promtool {args:?}\n{said}");
}

#[test]
fn promtool_accepts_the_configuration_and_alerts_fire_when_they_should() {
    promtool(&[
        "check",
        "config",
        &format!("{DEPLOY}/prometheus/prometheus.yml"),
    ]);
    promtool(&["test", "rules", &format!("{DEPLOY}/prometheus/tests.yml")]);
}

/// A query of a dashboard or a rule, where it stands, and the legend of its panel.
struct Query {
    whose: String,
    expr: String,
    legend: String,
    is_alert: bool,
}

/// Every query of a dashboard: panels and variables.
fn queries_of(name: &str) -> Vec<Query> {
    let board = dashboard(name);
    let mut queries = Vec::new();
    for panel in board["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            queries.push(Query {
                whose: format!("{name}: {}", panel["title"]),
                expr: substituted(target["expr"].as_str().expect("an expression")),
                legend: target["legendFormat"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                is_alert: false,
            });
        }
    }
    for variable in board["templating"]["list"].as_array().expect("variables") {
        if let Some(label_values) = variable["query"]["query"].as_str() {
            let inside = label_values
                .strip_prefix("label_values(")
                .and_then(|q| q.strip_suffix(')'));
            let (metric, label) = inside
                .and_then(|i| i.split_once(", "))
                .expect("label_values");
            queries.push(Query {
                whose: format!("{name}: ${}", variable["name"]),
                expr: format!("group by ({label}) ({metric})"),
                legend: String::new(),
                is_alert: false,
            });
        }
    }
    assert!(queries.len() > 15, "{name} has {} queries", queries.len());
    queries
}

/// An expression as Grafana sends it when every variable selects everything.
fn substituted(expr: &str) -> String {
    let mut expr = expr
        .replace("$__rate_interval", "1m")
        .replace("$__range", "5m");
    for variable in ["workload", "backend", "model_name", "model", "instance"] {
        expr = expr.replace(&format!("\"${variable}\""), "\".*\"");
    }
    assert!(!expr.contains('$'), "a variable is not filled in: {expr}");
    expr
}

/// The metrics, labels and values of a query that are not exported.
fn missing(query: &Query, known: &Known) -> Vec<String> {
    let parsed = ParsedQuery::read(&query.expr);
    let mut unknown_names = Vec::new();
    let mut labels = BTreeSet::new();
    for selector in &parsed.selectors {
        let name = &selector.name;
        if CONDITIONAL
            .iter()
            .any(|(conditional, _)| conditional == name)
        {
            continue;
        }
        let Some(has) = known.get(name) else {
            unknown_names.push(format!("{}: no metric {name}", query.whose));
            continue;
        };
        labels.extend(has.keys().map(String::as_str));
        for matcher in &selector.matchers {
            let values = has.get(&matcher.label);
            let is_there = match (values, matcher.is_equal) {
                (Some(values), true) => values.contains(&matcher.value),
                (values, _) => values.is_some(),
            };
            if !is_there {
                let (label, value) = (&matcher.label, &matcher.value);
                unknown_names.push(format!("{}: no {name} with {label} {value:?}", query.whose));
            }
        }
    }
    let is_conditional = labels.is_empty();
    let legend = query
        .legend
        .split("{{")
        .skip(1)
        .filter_map(|l| l.split("}}").next());
    for label in parsed.groupings.iter().map(String::as_str).chain(legend) {
        if !is_conditional && label != "le" && !labels.contains(label) {
            unknown_names.push(format!("{}: no label {label}", query.whose));
        }
    }
    unknown_names
}

#[test]
fn every_metric_label_and_value_that_is_queried_exists() {
    let fixture = Fixture::start();
    let prometheus = Prometheus::start(DEPLOY, &fixture.targets());
    let rules = prometheus.rules();
    assert!(rules.len() > 15, "{} rules", rules.len());
    let mut queries: Vec<Query> = DASHBOARDS
        .iter()
        .flat_map(|name| queries_of(name))
        .collect();
    queries.extend(rules.iter().map(|rule| Query {
        whose: rule.name.clone(),
        expr: rule.query.clone(),
        legend: String::new(),
        is_alert: rule.is_alert,
    }));
    let recorded: Vec<&str> = rules
        .iter()
        .filter(|r| !r.is_alert)
        .map(|r| &*r.name)
        .collect();
    testing::eventually("rules are recorded", || {
        let known = prometheus.known();
        recorded.iter().all(|name| known.contains_key(*name))
    });
    let known = prometheus.known();
    let unknown_names: Vec<String> = queries.iter().flat_map(|q| missing(q, &known)).collect();
    assert!(unknown_names.is_empty(), "{unknown_names:#?}");
    let mut silent = Vec::new();
    for query in &queries {
        let answer = prometheus.ask(&query.expr);
        if answer.is_empty() && !query.is_alert {
            silent.push(format!("{}: {}", query.whose, query.expr));
        }
    }
    assert!(silent.is_empty(), "nothing to show for {silent:#?}");
    for rule in &rules {
        assert_eq!(rule.fault, "", "{}", rule.name);
    }
    println!(
        "{} queries, {} rules, {} metrics",
        queries.len(),
        rules.len(),
        known.len()
    );
}

#[test]
fn a_query_for_a_missing_metric_or_label_is_detected() {
    let mut known = Known::new();
    let labels = [("workload", "w"), ("outcome", "failed")];
    let labels = labels.map(|(l, v)| (l.to_owned(), BTreeSet::from([v.to_owned()])));
    known.insert("exchanges_total".to_owned(), BTreeMap::from(labels));
    let faults = |expr: &str, legend: &str| {
        let query = Query {
            whose: "x".to_owned(),
            expr: expr.to_owned(),
            legend: legend.to_owned(),
            is_alert: false,
        };
        missing(&query, &known)
    };
    let good =
        "sum by (workload) (rate(exchanges_total{outcome=\"failed\",workload=~\".*\"}[5m])) > 1e3";
    assert_eq!(faults(good, "{{workload}}"), [""; 0]);
    for (wrong, says) in [
        ("rate(exchange_total[5m])", "x: no metric exchange_total"),
        (
            "exchanges_total{outcom=\"failed\"}",
            "x: no exchanges_total with outcom \"failed\"",
        ),
        (
            "exchanges_total{outcome=\"lost\"}",
            "x: no exchanges_total with outcome \"lost\"",
        ),
        ("sum by (worload) (exchanges_total)", "x: no label worload"),
        (
            "exchanges_total / on (route) exchanges_total",
            "x: no label route",
        ),
    ] {
        assert_eq!(faults(wrong, ""), [says], "{wrong}");
    }
    assert_eq!(
        faults("exchanges_total", "{{backend}}"),
        ["x: no label backend"]
    );
}

#[test]
fn dashboards_have_unique_ids_and_panels_that_do_not_overlap() {
    let mut uids = BTreeSet::new();
    for name in DASHBOARDS {
        let board = dashboard(name);
        assert!(uids.insert(board["uid"].as_str().expect("a uid").to_owned()));
        let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
        for panel in board["panels"].as_array().expect("panels") {
            let title = panel["title"]
                .as_str()
                .filter(|t| !t.is_empty())
                .expect("a title");
            assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{title}");
            let at = |key: &str| panel["gridPos"][key].as_u64().expect("a place");
            assert!(at("x") + at("w") <= 24, "{name}: {title} is too wide");
            for (x, y) in (at("x")..at("x") + at("w"))
                .flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y)))
            {
                assert!(cells.insert((x, y)), "{name}: {title} lies over another");
            }
            if panel["type"] != "row" {
                assert_eq!(
                    panel["datasource"]["uid"], "${datasource}",
                    "{name}: {title}"
                );
                assert!(
                    panel["fieldConfig"]["defaults"]["unit"].is_string()
                        || panel["type"] == "table",
                    "{title}"
                );
            }
        }
    }
    let docs = ["metrics", "usage"].map(|page| {
        std::fs::read_to_string(format!("{DEPLOY}/../docs/{page}.md")).expect("a page")
    });
    for (name, needs) in CONDITIONAL {
        assert!(
            docs.iter().any(|page| page.contains(name)),
            "{name} ({needs}) is not documented"
        );
    }
}

#[test]
fn the_deployment_is_one_that_the_restricted_profile_admits_as_the_page_of_vsphere_says() {
    let path = format!("{DEPLOY}/kubernetes/tollgate.yaml");
    let manifest = std::fs::read_to_string(&path).expect("the manifest");
    let values = format!("{DEPLOY}/helm/tollgate/values.yaml");
    let values = std::fs::read_to_string(&values).expect("the values");
    // Pod Security Standards, restricted: what a pod has to say, and the sysctls that it may.
    for line in [
        "runAsNonRoot: true",
        "seccompProfile: { type: RuntimeDefault }",
        "sysctls: [ { name: net.ipv4.ip_unprivileged_port_start, value: \"0\" } ]",
    ] {
        assert!(manifest.contains(line), "{line}");
        assert!(values.contains(line), "{line}");
    }
    for line in [
        "allowPrivilegeEscalation: false",
        "capabilities: { drop: [ALL] }",
        "readOnlyRootFilesystem: true",
    ] {
        assert!(manifest.contains(line), "{line}");
    }
    for word in [
        "hostPath",
        "hostNetwork",
        "hostPID",
        "privileged:",
        "hostPort",
    ] {
        assert!(!manifest.contains(word), "{word}");
    }
    let limits = manifest.lines().find(|line| line.contains("limits:"));
    let limits = limits.expect("limits");
    assert!(
        limits.contains("memory") && !limits.contains("cpu"),
        "{limits}"
    );
    assert!(values.contains("type: ClusterIP") && values.contains("imagePullSecrets:"));
}
