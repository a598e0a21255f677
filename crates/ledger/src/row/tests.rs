//! A row that its count completes.

use policy::id::PriceId;

use super::*;

fn pending(prompt: Count, completion: Count) -> Settlement {
    let admission = Admission {
        id: RecordId([1; 16]),
        started_unix_ms: 0,
        request_id: "r".into(),
        named: Named::default(),
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
    row.record.outcome = Outcome::Completed;
    row.record.tokens.prompt = prompt;
    row.record.tokens.completion = completion;
    row
}

#[test]
fn a_count_stands_beside_whatever_is_billed() {
    let beside = |billed, counted| {
        let mut row = pending(billed, billed);
        row.count(counted, counted, None);
        let tokens = &row.record.tokens;
        assert_eq!((tokens.prompt, tokens.completion), (billed, billed));
        assert_eq!(row.prompt.counted, row.completion.counted);
        row.prompt.counted
    };
    assert_eq!(beside(Count::Reported(10), Some(11)), Some(11));
    assert_eq!(beside(Count::Estimated(99), Some(12)), Some(12));
    assert_eq!(beside(Count::Estimated(99), None), None);
    assert_eq!(beside(Count::Unknown, Some(12)), None);
}

#[test]
fn a_count_that_is_billed_is_charged() {
    let tokens = Tokens {
        prompt: Count::Reported(10),
        completion: Count::Counted(20),
        ..Tokens::default()
    };
    let charge = Charge {
        price: PriceId(0),
        cost: Some(Pico(30_007)),
    };
    for (billed, cost, completion) in [
        (Some((tokens, Some(charge))), 30_007, Count::Counted(20)),
        (None, 1, Count::Estimated(5)),
    ] {
        let mut row = pending(Count::Reported(10), Count::Estimated(5));
        row.price = Some(Price {
            id: "p".into(),
            currency: "USD".into(),
            cost: Some(Pico(1)),
        });
        row.count(Some(10), Some(20), billed);
        let charged = row.price.and_then(|price| price.cost);
        assert_eq!(charged, Some(Pico(cost)), "{billed:?}");
        assert_eq!(row.record.tokens.completion, completion);
    }
}
