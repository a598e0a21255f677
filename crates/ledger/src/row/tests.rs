//! A row that its count completes.

use policy::price::Rates;

use super::*;

fn pending(prompt: Count, completion: Count) -> PendingRow {
    let admission = Admission {
        id: RecordId([1; 16]),
        started_unix_ms: 0,
        request_id: "r".into(),
        trace_id: None,
        workload: None,
        budget_group: None,
        route: None,
        backend: None,
        model_asked: None,
        model_sent: None,
        reserved: 0,
        at_most: None,
    };
    let progress = Progress {
        id: admission.id,
        tokens: 0,
        bytes_out: 0,
    };
    let mut row = Settlement::indeterminate(admission, progress, 0);
    row.state = State::Settled;
    row.outcome = Outcome::Completed;
    row.prompt.billed = prompt;
    row.completion.billed = completion;
    PendingRow { row, price: None }
}

#[test]
fn a_count_stands_beside_whatever_is_billed() {
    let beside = |billed, counted| {
        let mut pending = pending(billed, billed);
        pending.complete(counted, counted, None);
        let Settlement {
            prompt, completion, ..
        } = pending.row;
        assert_eq!((prompt.billed, completion.billed), (billed, billed));
        assert_eq!(prompt.counted, completion.counted);
        prompt.counted
    };
    assert_eq!(beside(Count::Reported(10), Some(11)), Some(11));
    assert_eq!(beside(Count::Estimated(99), Some(12)), Some(12));
    assert_eq!(beside(Count::Estimated(99), None), None);
    assert_eq!(beside(Count::Unknown, Some(12)), None);
}

#[test]
fn a_count_that_is_billed_is_charged() {
    let per_token = Pico(1_000);
    let price = policy::price::Price {
        id: "p".into(),
        currency: "USD".into(),
        request: Pico(7),
        rates: Rates::flat(per_token, per_token),
        tiers: Vec::new(),
    };
    let billed = Tokens {
        prompt: Count::Reported(10),
        completion: Count::Counted(20),
        ..Tokens::default()
    };
    for (billed, cost) in [(Some(&billed), 7 + 10_000 + 20_000), (None, 1)] {
        let mut pending = pending(Count::Reported(10), Count::Estimated(5));
        pending.price = Some(Arc::new(price.clone()));
        pending.row.price = Some(Price {
            id: "p".into(),
            currency: "USD".into(),
            cost: Some(Pico(1)),
        });
        pending.complete(Some(10), Some(20), billed);
        let charged = pending.row.price.and_then(|price| price.cost);
        assert_eq!(charged, Some(Pico(cost)), "{billed:?}");
    }
}
