//! Random sessions with everything that datasets have and more: what comes out satisfies the rules, and stays.
//!
//! A failure shows its smallest case.

use proptest::prelude::*;

use super::rules::faults;
use crate::conversation::{
    Arguments, Content, Conversation, Decision, FunctionCall, Message, Role, ToolCall,
};
use crate::json::{Json, parse};
use crate::repair::{Cap, Media, Mode, Options, repair};
use crate::seeded::seeded;

fn json(text: &str) -> Json {
    parse(text.as_bytes(), &mut Default::default()).expect("JSON")
}

fn one_of(all: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(all).prop_map(str::to_owned)
}

fn id() -> impl Strategy<Value = Option<String>> {
    proptest::option::weighted(0.7, one_of(&["a", "b", "c", "", "call_x"]))
}

fn function() -> impl Strategy<Value = FunctionCall> {
    let texts = &[
        "",
        "{}",
        "{\"a\":1}",
        "{\"a\":NaN}",
        "x",
        "[1]",
        "\"{\\\"b\\\":2}\"",
        "\"s\"",
    ];
    let arguments = prop_oneof![
        one_of(texts).prop_map(Arguments::Text),
        one_of(&["{\"k\":1.0}", "[1]", "null"]).prop_map(|text| Arguments::Object(json(&text))),
    ];
    (one_of(&["f", "g h", "Finish", "", "é"]), arguments)
        .prop_map(|(name, arguments)| FunctionCall { name, arguments })
}

fn content() -> impl Strategy<Value = Option<Content>> {
    let parts = &[
        "{\"type\":\"text\",\"text\":\"abc\"}",
        "{\"type\":\"output_text\",\"text\":\"abc\"}",
        "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:,\"}}",
        "{\"type\":\"text\"}",
        "7",
    ];
    let parts = proptest::collection::vec(one_of(parts).prop_map(|text| json(&text)), 0..3);
    prop_oneof![
        Just(None),
        one_of(&["", "hello", "<|start|>"]).prop_map(|text| Some(Content::Text(text))),
        (60..200_usize).prop_map(|n| Some(Content::Text("long é ".repeat(n)))),
        parts.prop_map(|parts| Some(Content::Parts(parts))),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let roles = vec![
        Role::System,
        Role::Developer,
        Role::User,
        Role::Assistant,
        Role::Assistant,
        Role::Assistant,
        Role::Tool,
        Role::Tool,
        Role::Function,
    ];
    let calls = proptest::collection::vec((id(), function()), 0..3);
    let name = proptest::option::weighted(0.2, one_of(&["f", "g h", ""]));
    let stray = (
        proptest::option::weighted(0.2, function()),
        proptest::option::weighted(0.1, Just("r".to_owned())),
    );
    let all = (
        proptest::sample::select(roles),
        content(),
        calls,
        id(),
        name,
        stray,
        any::<bool>(),
    );
    all.prop_map(
        |(role, content, calls, answers, name, (function_call, reasoning), plain)| {
            let calls = calls
                .into_iter()
                .map(|(id, function)| ToolCall { id, function });
            let is_answer = matches!(role, Role::Tool | Role::Function);
            Message {
                role,
                content,
                name,
                reasoning,
                tool_calls: if plain { Vec::new() } else { calls.collect() },
                function_call: function_call.filter(|_| !plain),
                tool_call_id: answers.filter(|_| is_answer || !plain),
            }
        },
    )
}

/// Half of the sessions are one growing chat, half have any prompts.
fn session() -> impl Strategy<Value = Conversation> {
    let tools = &[
        "{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"optional\":[],\"properties\":{\"optional\":{\"example_value\":1}}}}",
        "{\"type\":\"function\",\"function\":{\"name\":\"g h\",\"parameters\":null,\"extra\":1}}",
        "{\"type\":\"web_search\"}",
        "{\"function\":{\"name\":\"f\"}}",
        "3",
    ];
    let tools = proptest::collection::vec(one_of(tools).prop_map(|text| json(&text)), 0..4);
    let prompts =
        proptest::collection::vec((any::<u64>(), proptest::option::of(0..20_usize)), 0..6);
    let messages = proptest::collection::vec(message(), 0..14);
    (tools, messages, prompts, any::<bool>()).prop_map(|(tools, messages, prompts, chat)| {
        let any = prompts.into_iter().map(|(mask, answer)| Decision {
            prompt: (0..messages.len()).filter(|i| mask >> i & 1 == 1).collect(),
            answer,
            ..Decision::default()
        });
        let growing = messages
            .iter()
            .enumerate()
            .filter(|(_, m)| m.role == Role::Assistant);
        let growing = growing.map(|(i, _)| Decision {
            prompt: (0..i).collect(),
            answer: Some(i),
            ..Decision::default()
        });
        let decisions = if chat {
            growing.collect()
        } else {
            any.collect()
        };
        Conversation {
            id: "s".to_owned(),
            licence: None,
            tools,
            messages,
            decisions,
        }
    })
}

proptest! {
    #![proptest_config(seeded("strict_repair", 700))]

    #[test]
    fn strict_repair_satisfies_the_rules_and_is_idempotent(
        session in session(), keep in any::<bool>(), merge in any::<bool>(), cap in proptest::option::of(0..300_usize), tokens in any::<bool>(),
    ) {
        let media = if keep { Media::Keep } else { Media::Drop };
        let count = |text: &str| text.split_whitespace().count();
        let cap = cap.map(|most| if tokens { Cap::Tokens { most, count: &count } } else { Cap::Bytes(most) });
        let options = Options { mode: Mode::Strict, media, merge, cap };
        let before = session.decisions.len();
        let (repaired, made) = repair(session, &options);
        let faults = faults(&repaired, media, merge);
        prop_assert!(faults.is_empty(), "{:?}", faults);
        let lost = made.of("decision_cut") + made.of("empty_prompt_dropped");
        prop_assert_eq!(before, repaired.decisions.len() + lost as usize);
        let (again, none) = repair(repaired.clone(), &options);
        prop_assert_eq!(&again, &repaired);
        prop_assert!(none.is_empty(), "{:?}", none);
    }

    #[test]
    fn paper_repair_is_idempotent_and_loses_no_decision(session in session()) {
        let options = Options { mode: Mode::Paper, ..Options::default() };
        let before = session.decisions.clone();
        let (repaired, _) = repair(session, &options);
        prop_assert_eq!(&repaired.decisions, &before);
        prop_assert!(repaired.messages.iter().all(|m| m.role != Role::Function && matches!(m.content, Some(Content::Text(_)))));
        let (again, none) = repair(repaired.clone(), &options);
        prop_assert_eq!(again, repaired);
        prop_assert!(none.is_empty());
    }
}
