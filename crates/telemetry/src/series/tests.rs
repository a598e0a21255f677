//! What a scrape shows: each label where it belongs, and a page that is bounded whatever comes.

use std::collections::{BTreeMap, BTreeSet};

use policy::attempt::Failure;
use policy::id::EndpointId;
use policy::limit::Kind;
use policy::operation::Operation;
use policy::record::{AttemptRecord, Outcome, Record, Sink};
use policy::retry::Retry;
use policy::snapshot::Snapshot;

use super::{CELL_WEIGHT, MAX_SERIES, OPERATIONS, RESULTS};
use crate::merge::merge;
use crate::sample::{completed, limited, snapshot};
use crate::worker_metrics::{MetricsSnapshot, WorkerMetrics};

/// The samples of a page by their names and labels, as they stand there, but for the buckets of histograms.
struct Page(BTreeMap<String, u64>);

impl Page {
    fn of(facts: &WorkerMetrics) -> Self {
        let page = merge(vec![MetricsSnapshot::of(facts.copy()).unwrap()]).render(&[]);
        let sample = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        let lines = page.lines().filter(|line| !line.contains("_bucket{"));
        Self(lines.filter_map(sample).collect())
    }

    fn at(&self, sample: &str) -> u64 {
        self.0.get(sample).copied().unwrap_or(0)
    }

    /// Of each sample of a family that has a label: its value.
    fn labels(&self, family: &str, label: &str) -> Vec<(&str, u64)> {
        let label = format!("{label}=\"");
        let mut found = Vec::new();
        for (sample, n) in &self.0 {
            let labels = sample.strip_prefix(family).filter(|at| at.starts_with('{'));
            if let Some((_, value)) = labels.and_then(|at| at.split_once(&label)) {
                found.push((value.split('"').next().unwrap_or_default(), *n));
            }
        }
        found
    }
}

fn exchanges(workload: &str, operation: &str, ending: &str) -> String {
    format!(
        "tollgate_exchanges_total{{workload=\"{workload}\",route=\"all\",backend=\"on-prem\",\
         operation=\"{operation}\",{ending}}}"
    )
}

#[test]
fn every_operation_and_kind_of_limit_has_its_own_label_beside_the_others() {
    let of = snapshot("v1", &["v", "w"]);
    let mut facts = WorkerMetrics::new(None);
    let all = Operation::ALL.into_iter().map(Some).chain([None]);
    for operation in all.clone() {
        let record = Record {
            operation,
            ..completed(1)
        };
        facts.exchange(&of, &record);
    }
    facts.exchange(&of, &limited(0, Kind::Requests));
    for _ in 0..2 {
        facts.exchange(&of, &limited(1, Kind::Tokens));
    }
    let page = Page::of(&facts);
    for operation in all {
        let label = operation.map_or("", |operation| operation.as_str());
        let sample = exchanges("w", label, "outcome=\"completed\",status=\"200\"");
        assert_eq!(page.at(&sample), 1, "{sample}");
    }
    for (workload, kind, n) in [
        ("v", "requests", 1),
        ("v", "tokens", 0),
        ("w", "requests", 0),
        ("w", "tokens", 2),
    ] {
        let sample = format!(
            "http_local_rate_limit_rate_limited{{workload=\"{workload}\",route=\"all\",kind=\"{kind}\"}}"
        );
        assert_eq!(page.0.get(&sample), Some(&n), "{sample}");
    }
}

#[test]
fn attempts_are_labelled_by_their_class_or_by_their_failures_own_code() {
    let failures = [
        Failure::Resolve,
        Failure::Connect,
        Failure::ConnectTimeout,
        Failure::Tls,
        Failure::FirstByteTimeout,
        Failure::Reset,
        Failure::Malformed,
        Failure::Exhausted,
        Failure::LocalCapacity,
        Failure::Proxy,
        Failure::Credential,
        Failure::Untranslatable,
        Failure::BadResponse,
    ];
    let own = failures.map(|failure| (Err(failure), failure.code()));
    let classes = [
        (Ok(101), "1xx"),
        (Ok(200), "2xx"),
        (Ok(302), "3xx"),
        (Ok(404), "4xx"),
        (Err(Failure::Status(503)), "5xx"),
        (Ok(777), "other"),
    ];
    assert_eq!(RESULTS.len(), own.len() + classes.len());
    let of = snapshot("v1", &["a"]);
    for (result, label) in own.into_iter().chain(classes).chain([(Ok(0), "other")]) {
        let mut facts = WorkerMetrics::new(None);
        let attempt = AttemptRecord {
            endpoint: EndpointId(0),
            result,
            retry: Retry::No,
        };
        facts.attempt(&of, &attempt);
        let page = Page::of(&facts);
        let shown = page.labels("tollgate_attempts_total", "result");
        assert_eq!(shown, [(label, 1)], "{result:?}");
    }
}

#[test]
fn an_upstream_cannot_invent_status_labels() {
    let of = snapshot("v1", &["a"]);
    let shown = |statuses: &mut dyn Iterator<Item = u16>| {
        let mut facts = WorkerMetrics::new(None);
        for status in statuses {
            let record = Record {
                status,
                ..completed(0)
            };
            facts.exchange(&of, &record);
        }
        let page = Page::of(&facts);
        let labels = page.labels("tollgate_exchanges_total", "status");
        let labels = labels.into_iter().map(|(label, _)| label.to_owned());
        labels.collect::<BTreeSet<String>>()
    };
    let all = shown(&mut (0..1100).chain([u16::MAX]));
    assert!(all.len() < 60, "{all:?}");
    for (status, label) in [(429, "429"), (299, "2xx"), (0, ""), (700, "other")] {
        assert_eq!(shown(&mut [status].into_iter()), [label.to_owned()].into());
        assert!(all.contains(label), "{label}");
    }
}

/// A snapshot with so many workloads, which have no limits.
fn crowd(version: &str, workloads: usize) -> Snapshot {
    let mut of = crowd_with_limits(version, workloads);
    of.limits.clear();
    of
}

fn crowd_with_limits(version: &str, workloads: usize) -> Snapshot {
    let names: Vec<String> = (0..workloads).map(|nth| format!("w{nth}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    snapshot(version, &names)
}

#[test]
fn past_the_bound_exchanges_and_new_endings_are_counted_as_other_and_none_is_lost() {
    let of = crowd("v1", MAX_SERIES);
    let mut facts = WorkerMetrics::new(None);
    let operations: Vec<_> = Operation::ALL.into_iter().map(Some).chain([None]).collect();
    let record = |who: usize| Record {
        operation: operations[who % OPERATIONS],
        // The page is shorter without histograms of these.
        first_byte: None,
        ..completed(u32::try_from(who).unwrap())
    };
    (0..MAX_SERIES).for_each(|who| facts.exchange(&of, &record(who)));
    // One that has a place keeps it for what is counted already, and finds none for what is new.
    facts.exchange(&of, &record(0));
    let failed = Record {
        outcome: Outcome::Failed,
        status: 502,
        code: "upstream_reset",
        ..record(0)
    };
    facts.exchange(&of, &failed);

    let page = Page::of(&facts);
    let shown = page.labels("tollgate_exchanges_total", "workload");
    let ended = shown.iter().map(|(_, n)| n).sum::<u64>();
    assert_eq!(ended, MAX_SERIES as u64 + 2, "none is lost");
    let tokens = page.labels("gen_ai_client_token_usage_token_sum", "gen_ai_token_type");
    let input = tokens.iter().filter(|(kind, _)| *kind == "input");
    assert_eq!(input.map(|(_, n)| n).sum::<u64>(), 100 * ended);
    // A cell and its one ending; the endpoint has been there before them.
    let own = (MAX_SERIES - 1) / (CELL_WEIGHT + 1);
    let (other, named): (Vec<_>, Vec<_>) =
        shown.into_iter().partition(|(name, _)| *name == "other");
    assert_eq!(named.len(), own);
    assert_eq!(other.len(), OPERATIONS + 1, "one each, and the failure");
    assert!(page.at("tollgate_series") <= MAX_SERIES as u64);
    let folded = (MAX_SERIES - own) as u64 + 1;
    assert_eq!(page.at("tollgate_series_folded_total"), folded);

    let label = operations[0].map_or("", |operation| operation.as_str());
    let completed = exchanges("w0", label, "outcome=\"completed\",status=\"200\"");
    assert_eq!(page.at(&completed), 2);
    let failed = exchanges("w0", label, "outcome=\"failed\",status=\"502\"");
    assert_eq!(page.0.get(&failed), None);
    assert_eq!(
        page.labels("tollgate_failures_total", "workload"),
        [("other", 1)]
    );
}

#[test]
fn limits_and_endpoints_share_the_bound() {
    let workloads = MAX_SERIES / 2 + 3;
    let of = crowd_with_limits("v1", workloads);
    let mut facts = WorkerMetrics::new(None);
    let last = u32::try_from(workloads - 1).unwrap();
    for _ in 0..5 {
        facts.exchange(&of, &limited(last, Kind::Tokens));
    }
    let mut new = snapshot("v2", &["a"]);
    new.backends[0].name = "new".into();
    new.endpoints[0].name = "new#0".into();
    let attempt = AttemptRecord {
        endpoint: EndpointId(0),
        result: Ok(200),
        retry: Retry::No,
    };
    facts.attempt(&new, &attempt);
    let page = Page::of(&facts);
    assert_eq!(page.at("tollgate_series"), MAX_SERIES as u64);
    let refused =
        "http_local_rate_limit_rate_limited{workload=\"other\",route=\"other\",kind=\"tokens\"}";
    assert_eq!(page.at(refused), 5);
    let tried = "tollgate_attempts_total{backend=\"other\",endpoint=\"other\",result=\"2xx\"}";
    assert_eq!(page.at(tried), 1);
}
