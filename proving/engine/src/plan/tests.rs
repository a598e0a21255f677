//! Caps, context and overrides decide the length and the reason.

use super::*;

fn settle(prompt_tokens: u64, wanted: Wanted, overrides: Overrides) -> Result<Plan, Refusal> {
    let config = EngineConfig {
        max_model_len: 100,
        ..EngineConfig::default()
    };
    Plan::settle(
        &config,
        Tally {
            tokens: prompt_tokens,
            hash: 5,
        },
        wanted,
        None,
        overrides,
    )
}

#[test]
fn an_uncapped_output_ends_by_itself_within_the_default_range() {
    let plan = settle(10, Wanted::default(), Overrides::default()).unwrap();
    assert!((SHORTEST_TOKENS..=LONGEST_TOKENS).contains(&plan.completion_tokens()));
    assert_eq!(plan.finish, Finish::Stop);
}

#[test]
fn a_cap_cuts_and_says_length() {
    let plan = settle(
        10,
        Wanted {
            cap: Some(3),
            ..Wanted::default()
        },
        Overrides::default(),
    )
    .unwrap();
    assert_eq!((plan.completion_tokens(), plan.finish), (3, Finish::Length));
}

#[test]
fn the_header_gives_the_exact_length_below_the_cap() {
    let overrides = Overrides {
        tokens: Some(70),
        ..Overrides::default()
    };
    let plan = settle(
        10,
        Wanted {
            cap: Some(80),
            ..Wanted::default()
        },
        overrides,
    )
    .unwrap();
    assert_eq!((plan.completion_tokens(), plan.finish), (70, Finish::Stop));
}

#[test]
fn the_context_cuts_what_the_header_asks_beyond_it() {
    let overrides = Overrides {
        tokens: Some(1_000),
        ..Overrides::default()
    };
    let plan = settle(10, Wanted::default(), overrides).unwrap();
    assert_eq!(
        (plan.completion_tokens(), plan.finish),
        (90, Finish::Length)
    );
}

#[test]
fn ignoring_the_end_mark_runs_to_the_cap() {
    let plan = settle(
        10,
        Wanted {
            cap: Some(77),
            ignore_eos: true,
            min: 0,
        },
        Overrides::default(),
    )
    .unwrap();
    assert_eq!(
        (plan.completion_tokens(), plan.finish),
        (77, Finish::Length)
    );
}

#[test]
fn a_prompt_or_cap_beyond_the_context_is_refused() {
    assert!(settle(100, Wanted::default(), Overrides::default()).is_err());
    assert!(settle(99, Wanted::default(), Overrides::default()).is_ok());
    for cap in [91, 0, -1] {
        assert!(
            settle(
                10,
                Wanted {
                    cap: Some(cap),
                    ..Wanted::default()
                },
                Overrides::default()
            )
            .is_err()
        );
    }
}

#[test]
fn a_header_that_is_no_number_is_refused() {
    let mut headers = HeaderMap::new();
    headers.insert("x-engine-ttft-ms", http::HeaderValue::from_static("soon"));
    assert!(Overrides::read(&headers).is_err());
}
