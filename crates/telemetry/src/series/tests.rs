//! Keys, labels and the bound on series.

use policy::attempt::Failure;
use policy::limit::Kind;
use policy::operation::Operation;
use policy::record::{Outcome, Record};
use std::sync::Arc;

use super::{
    CellKey, MAX_SERIES, OPERATIONS, RESULTS, Series, Status, endpoint_key, endpoint_parts,
    limited_key, limited_parts, operation_index, operation_label, result_index,
};
use crate::names::NameId;
use crate::sample::completed;

#[test]
fn keys_unpack_to_what_was_packed() {
    let mut series = Series::default();
    let mut name = |text: &str| series.names.intern(&Arc::from(text));
    let key = CellKey {
        operation: 5,
        workload: name("w"),
        route: name("r"),
        backend: name("b"),
        model: name("m"),
    };
    assert_eq!(CellKey::unpack(key.pack()), key);
    for kind in [Kind::Requests, Kind::Tokens] {
        let limited = limited_key(key.workload, key.route, kind);
        assert_eq!(limited_parts(limited), (key.workload, key.route, kind));
    }
    let endpoint = endpoint_key(key.backend, key.model);
    assert_eq!(endpoint_parts(endpoint), (key.backend, key.model));
}

#[test]
fn every_operation_has_its_own_label() {
    for operation in Operation::ALL {
        let label = operation_label(operation_index(Some(operation)));
        assert_eq!(label, operation.as_str());
    }
    assert_eq!(operation_label(operation_index(None)), "");
}

#[test]
fn failures_are_labelled_by_their_own_codes() {
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
    ];
    for failure in failures {
        assert_eq!(RESULTS[result_index(Err(failure))], failure.code());
    }
    let classes = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];
    assert_eq!(RESULTS.len(), classes.len() + failures.len());
    assert_eq!(RESULTS[result_index(Ok(200))], "2xx");
    assert_eq!(RESULTS[result_index(Err(Failure::Status(503)))], "5xx");
    assert_eq!(RESULTS[result_index(Ok(777))], "other");
    assert_eq!(RESULTS[result_index(Ok(0))], "other");
}

#[test]
fn an_upstream_cannot_invent_status_labels() {
    let labels: std::collections::HashSet<String> =
        (0..=u16::MAX).map(|s| Status::of(s).label()).collect();
    assert!(labels.len() < 60, "{} labels", labels.len());
    let label = |s| Status::of(s).label();
    assert_eq!((label(429), label(299)), ("429".into(), "2xx".into()));
    assert_eq!((label(0), label(700)), (String::new(), "other".into()));
}

/// Adds `n` cells with names of their own, each with one ending.
fn fill(series: &mut Series, n: usize, record: &Record) {
    for i in 0..n {
        let key = CellKey {
            operation: i % OPERATIONS,
            workload: series.names.intern(&Arc::from(format!("w{i}"))),
            route: NameId::NONE,
            backend: NameId::NONE,
            model: NameId::NONE,
        };
        series.ended(key, record);
    }
}

#[test]
fn past_the_bound_exchanges_are_counted_as_other() {
    let mut series = Series::default();
    let n = MAX_SERIES;
    fill(&mut series, n, &completed(0));
    assert!(series.held <= MAX_SERIES, "{}", series.held);
    let cells = series.cells.rows().count();
    assert_eq!(cells, MAX_SERIES / 5 + OPERATIONS);
    assert_eq!(series.folded, (n - MAX_SERIES / 5) as u64);
    let counted: u64 = series
        .cells
        .rows()
        .flat_map(|(_, cell)| &cell.endings)
        .map(|(_, n)| n)
        .sum();
    assert_eq!(counted, n as u64, "none is lost");
    let tokens: u64 = series.cells.rows().map(|(_, cell)| cell.tokens[0][0]).sum();
    assert_eq!(tokens, 100 * n as u64);
}

#[test]
fn past_the_bound_new_endings_go_to_other_and_old_ones_stay() {
    let mut series = Series::default();
    fill(&mut series, MAX_SERIES, &completed(0));
    let first = CellKey {
        operation: 0,
        workload: series.names.intern(&Arc::from("w0")),
        route: NameId::NONE,
        backend: NameId::NONE,
        model: NameId::NONE,
    };
    let before = series.held;
    series.ended(first, &completed(0));
    let failed = Record {
        outcome: Outcome::Failed,
        status: 502,
        code: "upstream_reset",
        ..completed(0)
    };
    series.ended(first, &failed);
    assert_eq!(series.held, before);
    let own = series.cells.find(first.pack()).unwrap();
    assert_eq!(series.cells.at(own).endings.len(), 1);
    assert_eq!(series.cells.at(own).endings[0].1, 2);
    let other = series.cells.find(first.other().pack()).unwrap();
    let other = series.cells.at(other);
    assert!(
        other
            .endings
            .iter()
            .any(|(e, n)| e.outcome == Outcome::Failed && *n == 1)
    );
    assert_eq!(other.codes, [((Outcome::Failed, "upstream_reset"), 1)]);
}

#[test]
fn limits_and_endpoints_share_the_bound() {
    let mut series = Series::default();
    for i in 0..MAX_SERIES + 5 {
        let name = series.names.intern(&Arc::from(format!("n{i}")));
        let place = series.limit(name, NameId::NONE, Kind::Tokens);
        *series.limited.at(place) += 1;
    }
    assert_eq!(series.held, MAX_SERIES);
    let other = limited_key(NameId::OTHER, NameId::OTHER, Kind::Tokens);
    let place = series.limited.find(other).unwrap();
    assert_eq!(*series.limited.at(place), 5);
    series.endpoint(NameId::NONE, NameId::NONE);
    assert_eq!(
        series.attempts.rows().next().unwrap().0,
        endpoint_key(NameId::OTHER, NameId::OTHER)
    );
}
