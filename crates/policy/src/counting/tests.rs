//! Which tokenizer a model has, and under which name it is shown.

use super::*;
use crate::fixture::{self, ONE, RoutePlan};

fn counted(patterns: &[&str]) -> Snapshot {
    let plan = RoutePlan {
        workloads: &["w"],
        backends: &[ONE],
        ..RoutePlan::default()
    };
    let mut snapshot = fixture::snapshot(&[plan]);
    let pattern = |text: &str| match text.strip_suffix('*') {
        Some(start) => ModelPattern::Prefix(start.to_owned()),
        None => ModelPattern::Exact(text.into()),
    };
    snapshot.tokenizers = patterns
        .iter()
        .zip(0..)
        .map(|(text, key)| Tokenizer {
            models: pattern(text),
            key,
            window: None,
        })
        .collect();
    snapshot
}

#[test]
fn the_first_that_takes_a_model_counts_it() {
    let snapshot = counted(&["gpt-oss-120b", "gpt-*"]);
    let key = |model| tokenizer(&snapshot, model).map(|t| t.key);
    assert_eq!(key("gpt-oss-120b"), Some(0));
    assert_eq!(key("gpt-4o"), Some(1));
    assert_eq!(key("llama"), None);
}

#[test]
fn a_model_that_the_configuration_does_not_name_is_shown_by_its_pattern() {
    let mut snapshot = counted(&["exact", "gpt-*"]);
    snapshot.backends[0].models = vec!["gpt-served".into()];
    snapshot.routes[0].model = Some("gpt-sent".into());
    let shown = |model: &str| {
        let tokenizer = tokenizer(&snapshot, model).expect("it is counted");
        label(&snapshot, tokenizer, model).to_string()
    };
    for (model, is) in [
        ("exact", "exact"),
        ("gpt-served", "gpt-served"),
        ("gpt-sent", "gpt-sent"),
        ("gpt-invented-by-a-client", "gpt-*"),
    ] {
        assert_eq!(shown(model), is);
    }
}

#[test]
fn a_tally_asks_to_be_handed_over_at_a_batch_and_keeps_nothing_once_broken() {
    let mut tally = CountCapture::new(1);
    assert!(!tally.keep(&[0; BATCH_BYTES - 1]));
    assert!(tally.keep(&[0; 1]));
    tally.batch.clear();
    tally.is_broken = true;
    assert!(!tally.keep(&[0; BATCH_BYTES]));
    assert!(tally.batch.is_empty());
}

#[test]
fn threads_follow_the_share_of_the_cpus_and_are_at_least_one() {
    let half = |cpus: f64| Threads::Share(500).on(cpus);
    let threads = [0.2, 1.0, 2.0, 2.5, 3.0, 8.0, 400.0].map(half);
    assert_eq!(threads, [1, 1, 1, 1, 2, 4, 64]);
    assert_eq!(Threads::Share(0).on(32.0), 1);
    assert_eq!(Threads::Share(1000).on(1.5), 2);
    assert_eq!(Threads::Most(3).on(1.0), 3);
    assert_eq!(Threads::Share(500).on(f64::NAN), 1);
}
