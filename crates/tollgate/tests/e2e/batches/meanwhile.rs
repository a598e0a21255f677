//! What happens while a result takes its time: a provider that does not know it yet, another configuration, a person who gives up.
//!
//! Not here: batches that nothing comes between (`batches`).

use serde_json::Value;
use testing::eventually;

use super::provider::Provider;
use super::{KEY, config, sums, tricks, used};
use crate::harness::Gate;
use crate::ledger::{stop, usage};

#[test]
fn zeros_that_stand_until_a_provider_knows_are_no_sum() {
    let provider = Provider::start(false);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let gate = Gate::start(&config(&provider, &ledger, ""), &KEY);
    let id = tricks::id_of(&tricks::begin(&gate, "a", "m1", 2));
    provider.finish_unnamed();
    let asked = || provider.asked("GET /v1/batches/");
    let before = asked();
    eventually("it was asked again", || asked() > before + 2);
    assert_eq!(used(&ledger), Vec::<Value>::new());
    assert!(usage(&ledger, &["batches"]).contains(&id));
    provider.name_results();
    eventually("it is charged", || used(&ledger).len() == 1);
    let (prompt, completion) = provider.served("m1");
    let told = sums(&used(&ledger));
    assert_eq!((told.0, told.1), (prompt, completion));
    assert!(prompt > 0);
    stop(gate);
}
