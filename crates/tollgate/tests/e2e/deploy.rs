//! `deploy/`: the rules are good, and what dashboards and rules ask for is what gate, engine and
//! exporter have.
//!
//! A real Prometheus scrapes all three and is asked every question; without it nothing here passes.
//! Not here: whether a panel is pleasant to look at.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::harness::eventually;
use prometheus::{Known, Prometheus};
use promql::Question;
use fixture::Scene;

mod prometheus;
mod promql;
mod fixture;

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
const DASHBOARDS: [&str; 3] = ["gateway", "finops", "engine"];

/// Metrics that not every process has, and what they need; docs/metrics.md and docs/usage.md say so.
const CONDITIONAL: [(&str, &str); 3] = [
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

/// A question, whose it is, and what its legend names.
struct Asked {
    whose: String,
    expr: String,
    legend: String,
    is_alert: bool,
}

/// Every question of a dashboard: panels and variables.
fn asked_by(name: &str) -> Vec<Asked> {
    let board = dashboard(name);
    let mut asked = Vec::new();
    for panel in board["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().into_iter().flatten() {
            asked.push(Asked {
                whose: format!("{name}: {}", panel["title"]),
                expr: filled(target["expr"].as_str().expect("an expression")),
                legend: target["legendFormat"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                is_alert: false,
            });
        }
    }
    for variable in board["templating"]["list"].as_array().expect("variables") {
        if let Some(query) = variable["query"]["query"].as_str() {
            let inside = query
                .strip_prefix("label_values(")
                .and_then(|q| q.strip_suffix(')'));
            let (metric, label) = inside
                .and_then(|i| i.split_once(", "))
                .expect("label_values");
            asked.push(Asked {
                whose: format!("{name}: ${}", variable["name"]),
                expr: format!("group by ({label}) ({metric})"),
                legend: String::new(),
                is_alert: false,
            });
        }
    }
    assert!(asked.len() > 15, "{name} asks {} questions", asked.len());
    asked
}

/// An expression as Grafana sends it, everything chosen.
fn filled(expr: &str) -> String {
    let mut expr = expr
        .replace("$__rate_interval", "1m")
        .replace("$__range", "5m");
    for variable in ["workload", "backend", "model_name", "model", "instance"] {
        expr = expr.replace(&format!("\"${variable}\""), "\".*\"");
    }
    assert!(!expr.contains('$'), "a variable is not filled in: {expr}");
    expr
}

/// What of a question is nowhere to be found.
fn unknown(asked: &Asked, known: &Known) -> Vec<String> {
    let question = Question::read(&asked.expr);
    let mut unknown = Vec::new();
    let mut labels = BTreeSet::new();
    for selector in &question.selectors {
        let name = &selector.name;
        if CONDITIONAL
            .iter()
            .any(|(conditional, _)| conditional == name)
        {
            continue;
        }
        let Some(has) = known.get(name) else {
            unknown.push(format!("{}: no metric {name}", asked.whose));
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
                unknown.push(format!("{}: no {name} with {label} {value:?}", asked.whose));
            }
        }
    }
    let is_conditional = labels.is_empty();
    let legend = asked
        .legend
        .split("{{")
        .skip(1)
        .filter_map(|l| l.split("}}").next());
    for label in question.groupings.iter().map(String::as_str).chain(legend) {
        if !is_conditional && label != "le" && !labels.contains(label) {
            unknown.push(format!("{}: no label {label}", asked.whose));
        }
    }
    unknown
}

#[test]
fn every_metric_label_and_value_that_is_queried_exists() {
    let scene = Scene::play();
    let prometheus = Prometheus::start(DEPLOY, &scene.targets());
    let rules = prometheus.rules();
    assert!(rules.len() > 15, "{} rules", rules.len());
    let mut asked: Vec<Asked> = DASHBOARDS.iter().flat_map(|name| asked_by(name)).collect();
    asked.extend(rules.iter().map(|rule| Asked {
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
    eventually("rules are recorded", Duration::from_secs(30), || {
        let known = prometheus.known();
        recorded.iter().all(|name| known.contains_key(*name))
    });
    let known = prometheus.known();
    let unknown: Vec<String> = asked.iter().flat_map(|a| unknown(a, &known)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    let mut silent = Vec::new();
    for asked in &asked {
        let answer = prometheus.ask(&asked.expr);
        if answer.is_empty() && !asked.is_alert {
            silent.push(format!("{}: {}", asked.whose, asked.expr));
        }
    }
    assert!(silent.is_empty(), "nothing to show for {silent:#?}");
    for rule in &rules {
        assert_eq!(rule.fault, "", "{}", rule.name);
    }
    println!(
        "{} questions, {} rules, {} metrics",
        asked.len(),
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
        let asked = Asked {
            whose: "x".to_owned(),
            expr: expr.to_owned(),
            legend: legend.to_owned(),
            is_alert: false,
        };
        unknown(&asked, &known)
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
