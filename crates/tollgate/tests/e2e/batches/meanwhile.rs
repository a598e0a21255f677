//! What happens while a result takes its time: a provider that does not know it yet, another configuration, a person who gives up.
//!
//! Not here: batches that nothing comes between (`batches`).

use serde_json::{Value, json};
use testing::eventually;

use super::provider::Provider;
use super::{KEY, MONTH, config, give_up, sums, tricks, used};
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

#[test]
fn a_line_of_a_call_that_failed_stands_for_none_that_was_answered() {
    let provider = Provider::start(false);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let gate = Gate::start(&config(&provider, &ledger, ""), &KEY);
    let id = tricks::id_of(&tricks::begin(&gate, "a", "m1", 3));
    // One that failed and one that was answered, of two that were.
    provider.finish_failing(2);
    let result = format!("GET /v1/files/{id}-output/content ");
    let asked = || provider.asked(&result);
    eventually("its result is read, and again", || asked() > 2);
    assert_eq!(used(&ledger), Vec::<Value>::new());
    assert!(usage(&ledger, &["batches"]).contains(&id));
    provider.whole();
    eventually("it is charged", || used(&ledger).len() == 1);
    let (prompt, completion) = provider.served("m1");
    let told = sums(&used(&ledger));
    assert_eq!((told.0, told.1), (prompt, completion));
    stop(gate);
}

#[test]
fn a_batch_is_charged_by_the_configuration_of_the_moment_in_which_it_is_counted() {
    let provider = Provider::start(true);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    // One worker: what it serves by is what it charges by.
    let first = config(&provider, &ledger, "workers: 1\n");
    let gate = Gate::start(&first, &KEY);
    let takes = |config: &str, newcomer: &str| {
        let config = config.replace("workload: b,", &format!("workload: [b, {newcomer}],"));
        gate.reconfigure(&config);
        gate.signal(libc::SIGHUP);
        eventually("the worker has it", || {
            tricks::get(&gate, newcomer, "/v1/files").status == 200
        });
    };
    let begun = |nth: usize| {
        provider.hold_results();
        let id = tricks::id_of(&tricks::begin(&gate, "a", "m1", 3));
        let result = format!("GET /v1/files/{id}-output/content ");
        let asked = || provider.asked(&result);
        eventually("its result is asked for", || asked() == 1);
        assert_eq!(used(&ledger).len(), nth);
    };
    // A budget that comes meanwhile.
    begun(0);
    let second = format!("{first}{MONTH}");
    takes(&second, "c");
    let left = || gate.metric("tollgate_budget_left", &[r#"budget="company""#]);
    let before = left();
    provider.let_go();
    eventually("it is charged", || used(&ledger).len() == 1);
    let spent = left();
    assert!(spent < before, "{spent} of {before}");
    // Another price.
    begun(1);
    takes(&second.replace("input: 2,", "input: 6,"), "d");
    provider.let_go();
    eventually("the other is charged", || used(&ledger).len() == 2);
    let mut costs: Vec<_> = used(&ledger)
        .iter()
        .map(|row| sums(std::slice::from_ref(row)))
        .collect();
    costs.sort_unstable();
    let (prompt, completion) = (303, 21);
    let cost = |input: u64| prompt * input * 500_000 + completion * 4_000_000;
    let expected = [2, 6].map(|input| (prompt, completion, cost(input)));
    assert_eq!(costs, expected);
    assert!(left() < spent);
    stop(gate);
}

#[test]
fn a_batch_that_is_given_up_while_its_result_is_read_is_charged_nothing() {
    let provider = Provider::start(true);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let ledger = dir.path().join("usage.db");
    let gate = Gate::start(&config(&provider, &ledger, MONTH), &KEY);
    provider.hold_results();
    let id = tricks::id_of(&tricks::begin(&gate, "a", "m1", 3));
    let result = format!("GET /v1/files/{id}-output/content ");
    eventually("its result is asked for", || provider.asked(&result) == 1);
    let given_up = give_up(&ledger, &id, "it takes too long");
    assert_eq!(given_up.code, Some(0), "{}", given_up.err);
    eventually("its row says so", || {
        usage(&ledger, &["batches"]) == "Every batch is counted.\n"
    });
    let other = tricks::id_of(&tricks::begin(&gate, "a", "m1", 1));
    provider.let_go();
    // It is asked about behind the first.
    eventually("the other is charged", || used(&ledger).len() == 2);
    let mut rows: Vec<_> = used(&ledger)
        .iter()
        .map(|row| (row["request_id"].clone(), row["prompt_tokens"].clone()))
        .collect();
    rows.sort_by_key(|(id, _)| id.to_string());
    assert_eq!(rows, [(json!(id), Value::Null), (json!(other), json!(100))]);
    stop(gate);
}
