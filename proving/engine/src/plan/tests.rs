//! How long an answer is, and why it ends.

use super::*;
use crate::render::Format;
use crate::text::Composer;
use crate::tokenizer::Tokenizer;

fn model(harmony: bool) -> Model {
    let format = if harmony {
        Format::Harmony {
            date: "2025-06-28".to_owned(),
        }
    } else {
        Format::ChatMl
    };
    Model {
        templated: format.clone(),
        format,
        composer: Composer::new(&Tokenizer::o200k()).unwrap(),
        today: Vec::new(),
    }
}

fn spec(harmony: bool) -> AnswerSpec {
    AnswerSpec {
        harmony,
        reasoning_eighths: 2,
        tool: None,
        content: None,
    }
}

fn settle_as(
    harmony: bool,
    prompt: usize,
    lengths: &LengthSpec,
    overrides: Overrides,
) -> Result<Plan, Refusal> {
    settle_of(&model(harmony), harmony, prompt, lengths, overrides)
}

fn settle_of(
    model: &Model,
    harmony: bool,
    prompt: usize,
    lengths: &LengthSpec,
    overrides: Overrides,
) -> Result<Plan, Refusal> {
    let config = EngineConfig {
        max_model_len: 100,
        ..EngineConfig::default()
    };
    Plan::settle(
        &config,
        model,
        vec![vec![1; prompt]],
        lengths,
        &spec(harmony),
        overrides,
    )
}

fn settle(
    prompt: usize,
    lengths: &LengthSpec,
    overrides: Overrides,
) -> Result<(usize, Finish), Refusal> {
    let plan = settle_as(false, prompt, lengths, overrides)?;
    Ok((plan.completion_tokens(), plan.choices[0].finish))
}

fn exactly(tokens: usize) -> Overrides {
    Overrides {
        tokens: Some(tokens),
        ..Overrides::default()
    }
}

#[test]
fn a_cap_cuts_and_says_length() {
    let capped = LengthSpec {
        cap: Some(5),
        ..LengthSpec::default()
    };
    assert_eq!(
        settle(10, &capped, exactly(6)).unwrap(),
        (5, Finish::Length)
    );
    assert_eq!(settle(10, &capped, exactly(5)).unwrap(), (5, Finish::Stop));
}

#[test]
fn without_a_cap_the_answer_ends_itself_within_the_context() {
    let (tokens, finish) = settle(10, &LengthSpec::default(), Overrides::default()).unwrap();
    assert!((8..=64).contains(&tokens));
    assert_eq!(finish, Finish::Stop);
    assert_eq!(
        settle(95, &LengthSpec::default(), Overrides::default()).unwrap(),
        (5, Finish::Length)
    );
}

#[test]
fn min_tokens_and_ignore_eos_lengthen() {
    let least = LengthSpec {
        min: 80,
        ..LengthSpec::default()
    };
    assert_eq!(
        settle(10, &least, Overrides::default()).unwrap(),
        (80, Finish::Stop)
    );
    let endless = LengthSpec {
        cap: Some(77),
        ignore_eos: true,
        ..LengthSpec::default()
    };
    assert_eq!(
        settle(10, &endless, Overrides::default()).unwrap(),
        (77, Finish::Length)
    );
}

#[test]
fn a_prompt_or_cap_beyond_the_context_is_refused() {
    assert!(settle(100, &LengthSpec::default(), Overrides::default()).is_err());
    assert!(settle(99, &LengthSpec::default(), Overrides::default()).is_ok());
    for cap in [91, 0, -1] {
        let lengths = LengthSpec {
            cap: Some(cap),
            ..LengthSpec::default()
        };
        assert!(settle(10, &lengths, Overrides::default()).is_err());
    }
}

#[test]
fn harmony_counts_its_marks_in_every_length() {
    let (model, tokenizer) = (model(true), Tokenizer::o200k());
    for tokens in 1..=60 {
        let lengths = LengthSpec::default();
        let plan = settle_of(&model, true, 10, &lengths, exactly(tokens)).unwrap();
        assert_eq!(plan.completion_tokens(), tokens);
        let turn = &plan.choices[0].turn;
        let said = |text: &str| tokenizer.count(text) as usize;
        let (reasoning, content) = (said(turn.reasoning()), said(turn.content()));
        assert_eq!(reasoning, turn.reasoning_tokens());
        let marks = if reasoning > 0 { 10 } else { tokens.min(4) };
        assert_eq!(marks + reasoning + content, tokens);
    }
}

#[test]
fn choices_differ_and_each_has_its_prompt() {
    let lengths = LengthSpec {
        choices: 3,
        ..LengthSpec::default()
    };
    let plan = settle_as(false, 10, &lengths, exactly(20)).unwrap();
    assert_eq!(
        (
            plan.choices.len(),
            plan.completion_tokens(),
            plan.prompt_tokens()
        ),
        (3, 60, 10)
    );
    assert_ne!(
        plan.choices[0].turn.content(),
        plan.choices[1].turn.content()
    );
    assert_eq!(plan.prompt_of(2).len(), 10);
}

#[test]
fn a_stop_ends_the_answer_and_is_not_said() {
    let plain = settle_as(false, 10, &LengthSpec::default(), exactly(40)).unwrap();
    let text = plain.choices[0].turn.content().to_owned();
    let stop = text.split(' ').nth(3).unwrap().to_owned();
    let lengths = LengthSpec {
        stops: vec!["never said".to_owned(), stop.clone()],
        ..LengthSpec::default()
    };
    let plan = settle_as(false, 10, &lengths, exactly(40)).unwrap();
    let turn = &plan.choices[0].turn;
    assert_eq!(turn.content(), &text[..text.find(&stop).unwrap()]);
    assert_eq!(
        (turn.stopped_by.as_deref(), plan.choices[0].finish),
        (Some(stop.as_str()), Finish::Stop)
    );
    assert!(turn.tokens() < 40);
    let said: String = (0..turn.tokens()).map(|i| turn.token(i).1).collect();
    assert_eq!(said, turn.content());
}

#[test]
fn a_header_that_is_no_number_is_refused() {
    let mut headers = HeaderMap::new();
    headers.insert("x-engine-ttft-ms", http::HeaderValue::from_static("soon"));
    assert!(Overrides::read(&headers).is_err());
}

#[test]
fn an_answer_is_the_same_tomorrow_unless_the_date_was_given() {
    let seed = |config: &EngineConfig, date: &str| {
        let model = Model::all(config, date).unwrap().remove(0);
        let prompt = model
            .tokenizer()
            .encode(&format!("Current date: {date}\n\nHello"));
        model.seed(1, &prompt)
    };
    let today = EngineConfig {
        models: vec!["gpt-oss-120b".into()],
        ..EngineConfig::default()
    };
    assert_eq!(seed(&today, "2026-11-23"), seed(&today, "2026-12-24"));
    let given = EngineConfig {
        date: Some("2026-11-23".into()),
        ..today
    };
    assert_ne!(seed(&given, "2026-11-23"), seed(&given, "2026-12-24"));
}
