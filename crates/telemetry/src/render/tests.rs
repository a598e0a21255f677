//! The page is valid, stable and documented.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use policy::limit::Kind;
use policy::record::Sink;

use crate::extras::{Extra, ExtraKind};
use crate::merge::{Merged, merge};
use crate::sample::{completed, limited, snapshot, unknown};
use crate::worker_metrics::{MetricsSnapshot, WorkerMetrics};

/// A page that has a sample in nearly every family.
fn busy() -> Merged {
    let mut s = snapshot("v1", &["a", "we\"ird\\ work\nload"]);
    s.prices
        .insert("override", None, crate::priced::price("USD", 1));
    let mut facts = WorkerMetrics::new(None);
    for who in [0, 1] {
        facts.exchange(&s, &completed(who));
        facts.exchange(&s, &limited(who, Kind::Requests));
    }
    facts.exchange(&s, &unknown());
    let mut broken = completed(0);
    broken.outcome = policy::record::Outcome::Failed;
    broken.code = "upstream_reset";
    broken.tokens.invalid = true;
    facts.exchange(&s, &broken);
    let attempt = policy::record::AttemptRecord {
        endpoint: policy::id::EndpointId(0),
        result: Ok(200),
        retry: policy::retry::Retry::No,
    };
    facts.attempt(&s, &attempt);
    merge(vec![MetricsSnapshot::of(facts.copy()).unwrap()])
}

fn extras() -> Vec<Extra> {
    let extra = |name: &str, labels: &[(&str, &str)], value| Extra {
        name: name.to_owned(),
        help: "A line\nwith a \\ in it".to_owned(),
        kind: ExtraKind::Gauge,
        labels: labels
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        value,
    };
    vec![
        extra("tollgate_limit_remaining", &[("workload", "a")], 1.5),
        extra("tollgate_config_info", &[("version", "v\"1")], 1.0),
        extra("tollgate_limit_remaining", &[("workload", "b")], 0.0),
    ]
}

struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// A reader of the text format, stricter than Prometheus's own: a family's samples stand
/// together under its HELP and TYPE, and no sample comes twice.
fn parse(page: &str) -> (BTreeMap<String, String>, Vec<Sample>) {
    assert!(page.ends_with('\n'));
    let mut types: BTreeMap<String, String> = BTreeMap::new();
    let mut samples = Vec::new();
    let mut seen = HashSet::new();
    let (mut helped, mut current) = (String::new(), String::new());
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            helped = rest.split_once(' ').expect("a help text").0.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, helped, "HELP comes before TYPE");
            assert!(["counter", "gauge", "histogram"].contains(&kind));
            assert!(
                types.insert(name.to_owned(), kind.to_owned()).is_none(),
                "{name} twice"
            );
            name.clone_into(&mut current);
        } else {
            let sample = parse_sample(line);
            let family = match types[&current].as_str() {
                "histogram" => ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|s| sample.name.strip_suffix(s))
                    .unwrap(),
                _ => &sample.name,
            };
            assert_eq!(family, current, "{line}");
            assert!(
                seen.insert((sample.name.clone(), sample.labels.clone())),
                "{line}"
            );
            samples.push(sample);
        }
    }
    (types, samples)
}

fn parse_sample(line: &str) -> Sample {
    let end = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(end);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    assert!(name.chars().all(is_name), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").unwrap();
            assert!(label.chars().all(is_name) && !label.is_empty(), "{line}");
            let mut value = String::new();
            let mut chars = after.char_indices();
            let close = loop {
                match chars.next().unwrap() {
                    (at, '"') => break at,
                    (_, '\\') => value.push(match chars.next().unwrap().1 {
                        'n' => '\n',
                        c @ ('\\' | '"') => c,
                        c => panic!("escape {c} in {line}"),
                    }),
                    (_, c) => value.push(c),
                }
            };
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
            rest = &after[close + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}').unwrap();
    }
    let value = rest.strip_prefix(' ').unwrap().parse().unwrap();
    Sample {
        name: name.to_owned(),
        labels,
        value,
    }
}

#[test]
fn the_page_is_valid_text_format() {
    let (types, samples) = parse(&busy().render(&extras()));
    assert!(types.len() > 20);
    let histograms: BTreeSet<&str> = types
        .iter()
        .filter(|(_, kind)| *kind == "histogram")
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(histograms.len(), 9);
    for family in histograms {
        check_histogram(family, &samples);
    }
}

/// Buckets rise to +Inf, which is the count.
fn check_histogram(family: &str, samples: &[Sample]) {
    let of = |suffix: &str| {
        let name = format!("{family}{suffix}");
        samples.iter().filter(move |s| s.name == name)
    };
    assert!(of("_count").count() > 0, "{family} has no sample");
    for count in of("_count") {
        let mine = |s: &&Sample| {
            let mut labels = s.labels.clone();
            labels.remove("le");
            labels == count.labels
        };
        let buckets: Vec<(f64, f64)> = of("_bucket")
            .filter(mine)
            .map(|s| (s.labels["le"].parse().unwrap(), s.value))
            .collect();
        assert!(
            buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
            "{family} {buckets:?}"
        );
        let last = buckets.last().unwrap();
        assert_eq!(*last, (f64::INFINITY, count.value), "{family}");
        assert_eq!(of("_sum").filter(mine).count(), 1);
    }
}

#[test]
fn label_values_survive_the_trip() {
    let (_, samples) = parse(&busy().render(&extras()));
    let workloads: BTreeSet<&str> = samples
        .iter()
        .filter_map(|s| s.labels.get("workload"))
        .map(String::as_str)
        .collect();
    assert!(workloads.contains("we\"ird\\ work\nload"), "{workloads:?}");
    let info = samples
        .iter()
        .find(|s| s.name == "tollgate_config_info")
        .unwrap();
    assert_eq!(info.labels["version"], "v\"1");
}

#[test]
fn an_extras_samples_stand_together() {
    let (_, samples) = parse(&busy().render(&extras()));
    let values: Vec<f64> = samples
        .iter()
        .filter(|s| s.name == "tollgate_limit_remaining")
        .map(|s| s.value)
        .collect();
    assert_eq!(values, [1.5, 0.0]);
}

#[test]
fn the_same_counts_give_the_same_bytes() {
    assert_eq!(busy().render(&extras()), busy().render(&extras()));
}

#[test]
fn seconds_are_exact_decimals() {
    let page = busy().render(&[]);
    let le = |bound: &str| {
        page.contains(&format!(
            "tollgate_own_seconds_bucket{{operation=\"chat\",le=\"{bound}\"}}"
        ))
    };
    assert!(
        le("0.000005") && le("0.00002") && le("0.05") && le("+Inf"),
        "{page}"
    );
    assert!(
        page.contains("tollgate_own_seconds_sum{operation=\"chat\"} 0.000054\n"),
        "{page}"
    );
}

#[test]
fn a_shown_value_loses_only_trailing_zeros() {
    use super::page::shown;
    use crate::histogram::Unit;
    assert_eq!(shown(Unit::Seconds, 0), "0");
    assert_eq!(shown(Unit::Seconds, 10_000_000_000), "10");
    assert_eq!(shown(Unit::Seconds, 1_500_000_001), "1.500000001");
    assert_eq!(shown(Unit::Tokens, 100), "100");
}

/// docs/metrics.md names every family that the page has, and none that it has not (but for those
/// the binary adds).
#[test]
fn the_manual_lists_exactly_these_metrics() {
    let manual = include_str!("../../../../docs/metrics.md");
    let section = |from: &str, to: &str| {
        let from = manual.find(from).expect(from);
        let text = &manual[from..];
        &text[..text.find(to).unwrap_or(text.len())]
    };
    let listed: BTreeSet<String> = section("## Metrics", "## Added by the binary")
        .lines()
        .filter_map(|l| l.strip_prefix("| `"))
        .filter_map(|l| l.split('`').next())
        .map(str::to_owned)
        .collect();
    let (types, samples) = parse(&busy().render(&[]));
    let shown: BTreeSet<String> = types.into_keys().collect();
    assert_eq!(listed, shown);
    for sample in samples {
        for label in sample.labels.keys().filter(|l| *l != "le") {
            let family = shown.iter().filter(|f| sample.name.starts_with(f.as_str()));
            let family = family.max_by_key(|f| f.len()).unwrap();
            let row = format!("| `{family}`");
            let row = manual.lines().find(|l| l.starts_with(&row)).unwrap();
            assert!(row.contains(&format!("`{label}`")), "{label} of {family}");
        }
    }
}

#[test]
fn an_empty_page_is_valid_too() {
    let (types, samples) = parse(&merge(vec![]).render(&[]));
    assert!(types.contains_key("tollgate_exchanges_total"));
    assert!(samples.iter().all(|s| s.value == 0.0));
}
