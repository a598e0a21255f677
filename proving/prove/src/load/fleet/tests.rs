//! Names, and what one exchange counts as.

use std::path::Path;
use std::time::{Duration, SystemTime};

use load::client::Failure;

use super::{CorpusProfile, LocustStats, classes, count, locustfile, numbered};
use crate::load::rows::tests::row;

fn has(name: &str) -> CorpusProfile {
    CorpusProfile {
        name: name.into(),
        sessions: 3,
        later: 0,
        with_pauses: 0,
    }
}

#[test]
fn profiles_are_classes_of_a_locustfile_and_two_of_one_name_are_refused() {
    let text = locustfile(&[has("api-orchestration"), has("4k chat")]).expect("classes");
    assert!(
        text.contains("class ApiOrchestration(User):\n    weight = 3\n"),
        "{text}"
    );
    assert!(text.contains("class Profile4kChat(User):"), "{text}");
    let taken = classes(&["none".into(), "user".into()]).expect("classes");
    assert_eq!(taken, ["ProfileNone", "ProfileUser"]);
    let twice = classes(&["a-b".into(), "AB".into()]).map_err(|error| error.to_string());
    assert_eq!(
        twice,
        Err("profiles a-b and AB would both be class AB of a locustfile: rename one".into())
    );
}

#[test]
fn files_of_later_runs_have_names_of_their_own() {
    let of = |path, run| numbered(Path::new(path), run).display().to_string();
    assert_eq!(of("x/rows.parquet", 1), "x/rows.parquet");
    assert_eq!(of("x/rows.parquet", 3), "x/rows-3.parquet");
    assert_eq!(of("rows", 2), "rows-2");
}

#[test]
fn an_exchange_counts_from_when_it_was_due_and_a_failure_has_no_parts() {
    let mut tally = LocustStats::new(SystemTime::UNIX_EPOCH);
    let began = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    let names = ["coding".to_owned()];
    let late = load::observer::Record {
        sent_ns: Some(20_000_000),
        intended_ns: 0,
        ..row(0, None)
    };
    count(&mut tally, began, &names, &late);
    count(&mut tally, began, &names, &row(0, Some(Failure::Timeout)));
    let entries: Vec<_> = tally
        .entries()
        .map(|(name, _, counts)| (name, counts.requests, counts.failures, counts.max_us))
        .collect();
    assert_eq!(
        entries,
        [
            ("coding".to_owned(), 2, 1, 60_000),
            ("coding TTFT".to_owned(), 1, 0, 10_000),
            ("coding TPOT".to_owned(), 1, 0, 10_000),
            ("coding E2E".to_owned(), 1, 0, 40_000),
        ]
    );
    assert_eq!(tally.errors().count(), 1);
}
