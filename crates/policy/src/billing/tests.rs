//! Whose count is charged.

use super::*;

/// No attempt beside the last may have run.
const ALONE: Unconfirmed = Unconfirmed {
    attempts: 0,
    prompt: 0,
    completion: 0,
    is_all: false,
};

fn tokens(prompt: Count, completion: Count) -> Tokens {
    Tokens {
        prompt,
        completion,
        ..Tokens::default()
    }
}

#[test]
fn a_count_takes_the_place_of_an_estimate_and_of_a_report_where_the_route_says_so() {
    let call = tokens(Count::Reported(10), Count::Estimated(5));
    let by = |by: BilledBy| {
        let tokens = by.charged(call, ALONE, Some(11), Some(20));
        (tokens.prompt, tokens.completion)
    };
    assert_eq!(
        by(BilledBy::Reported),
        (Count::Reported(10), Count::Counted(20))
    );
    assert_eq!(
        by(BilledBy::Counted),
        (Count::Counted(11), Count::Counted(20))
    );
    let uncounted = BilledBy::Counted.charged(call, ALONE, None, None);
    assert_eq!(uncounted, call, "what cannot be counted stays");
    let unknown = Tokens::default();
    let stays = BilledBy::Counted.charged(unknown, ALONE, Some(11), Some(20));
    assert_eq!(stays, Tokens::default(), "nothing was used");
}

#[test]
fn attempts_that_may_have_run_stay_in_what_is_charged() {
    let mut others = ALONE;
    others.add(12, 100);
    let call = others.added_to(tokens(Count::Reported(10), Count::Reported(5)));
    assert_eq!(call.prompt, Count::Estimated(22));
    assert_eq!(call.completion, Count::Estimated(105));
    assert_eq!(call.prompt_said, Said::Believed(10));
    assert!(BilledBy::Reported.awaits(&call));
    let by = |by: BilledBy| {
        let tokens = by.charged(call, others, Some(11), Some(6));
        (tokens.prompt, tokens.completion)
    };
    let reported = (Count::Estimated(22), Count::Estimated(105));
    assert_eq!(by(BilledBy::Reported), reported);
    let counted = (Count::Estimated(23), Count::Estimated(106));
    assert_eq!(by(BilledBy::Counted), counted);
}

#[test]
fn a_prompt_that_its_body_cannot_hold_is_charged_by_the_gates_count_where_there_is_one() {
    let call = Tokens {
        is_beyond_body: true,
        doubtful: true,
        ..tokens(Count::Reported(50_000), Count::Reported(5))
    };
    assert!(BilledBy::Reported.awaits(&call));
    let counted = BilledBy::Reported.charged(call, ALONE, Some(8), Some(6));
    assert_eq!(
        (counted.prompt, counted.completion),
        (Count::Counted(8), Count::Reported(5))
    );
    assert_eq!(counted.prompt_said, Said::Refused(50_000));
    assert!(!counted.is_charged_beyond_text());
    let uncounted = BilledBy::Reported.charged(call, ALONE, None, Some(6));
    assert_eq!(uncounted, call, "what it refers to may be as long");
    assert!(uncounted.is_charged_beyond_text());
}
