//! What an answer holds and is charged, with a report and without.

use wire::usage::Usage;

use super::*;

#[test]
fn an_answer_holds_what_was_said_before_it_and_is_charged_what_is_reported() {
    let context = SaidSoFar {
        tokens: 1_000,
        text_bytes: 400,
        audio_bytes: 64_000,
    };
    let (estimator, open) = (Estimator::default(), Some(Cap::Open));
    let held = context.demand(None, None, estimator);
    // A quarter of a token for each byte of text, and ten for the second of sound.
    assert_eq!((held.prompt, held.completion), (1_000 + 100 + 10, 256));
    assert!(!held.is_capped && !held.is_bounded);
    let capped = context.demand(Some(Cap::Tokens(50)), None, estimator);
    assert_eq!((capped.completion, capped.is_capped), (50, true));
    assert_eq!(context.demand(open, None, estimator), held);
    let usage = Usage {
        prompt: Some(900),
        completion: Some(40),
        audio_prompt: Some(10),
        ..Usage::default()
    };
    let seen = SeenOfAnswer {
        text_bytes: 400,
        audio_bytes: 64_000,
    };
    let charged = seen.tokens(&Reading::Valid(usage), held);
    assert_eq!(charged.prompt, Count::Reported(900));
    assert_eq!(
        (charged.completion, charged.audio_prompt),
        (Count::Reported(40), Some(10))
    );
    assert!(!charged.doubtful);
    // A second of sound that was made has twenty tokens.
    let unreported = seen.unreported(held);
    assert_eq!(unreported.prompt, Count::Estimated(1_110));
    assert_eq!(unreported.completion, Count::Estimated(100 + 20));
    assert_eq!(of_seconds(3).prompt, Count::Estimated(30));
}
