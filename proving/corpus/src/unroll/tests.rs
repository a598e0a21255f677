//! Bytes of requests against requests that are written whole.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::conversation::{Decision, ToolCall};
use crate::json::Json;
use crate::seeded::seeded;

fn said(role: Role, text: &str) -> Message {
    Message {
        role,
        content: Some(Content::Text(text.to_owned())),
        ..Message::default()
    }
}

fn parsed(text: &str) -> Json {
    Json::from(serde_json::from_str::<Value>(text).unwrap())
}

fn asked(prompt: impl IntoIterator<Item = usize>) -> Decision {
    Decision {
        prompt: prompt.into_iter().collect(),
        ..Decision::default()
    }
}

fn request(unrolled: &Unrolled, bodies: &Bodies, turn: usize) -> Vec<u8> {
    let mut whole = unrolled.head("m", true);
    whole.extend_from_slice(&bodies.bytes[bodies.turns[turn].0.clone()]);
    whole.extend(tail(Some(7), false));
    whole
}

#[test]
fn a_message_has_its_members_in_one_order_and_no_nulls() {
    let call = FunctionCall {
        name: "look".to_owned(),
        arguments: Arguments::Object(parsed(r#"{"a": [null], "b": 1}"#)),
    };
    let message = Message {
        role: Role::Assistant,
        reasoning: Some("hm".to_owned()),
        tool_calls: vec![ToolCall {
            id: Some("c1".to_owned()),
            function: call,
        }],
        ..Message::default()
    };
    assert_eq!(
        written(&message),
        r#"{"role":"assistant","reasoning":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"a\":[null],\"b\":1}"}}]}"#
    );
    let answer = Message {
        role: Role::Tool,
        name: Some("look".to_owned()),
        tool_call_id: Some("c1".to_owned()),
        content: Some(Content::Parts(vec![parsed(
            r#"{"text": "é", "type": "text"}"#,
        )])),
        ..Message::default()
    };
    assert_eq!(
        written(&answer),
        r#"{"role":"tool","content":[{"text":"é","type":"text"}],"name":"look","tool_call_id":"c1"}"#
    );
}

#[test]
fn prompts_that_go_on_share_a_body_and_one_that_does_not_starts_its_own() {
    let conversation = Conversation {
        messages: ["s", "u", "a", "u2", "b"]
            .iter()
            .map(|text| said(Role::User, text))
            .collect(),
        // On, on, back to a shorter one, one without the third message, on from there.
        decisions: vec![
            asked([0, 1]),
            asked([0, 1, 2, 3]),
            asked([0, 1, 2]),
            asked([0, 1, 3]),
            asked([0, 1, 3, 4]),
        ],
        ..Conversation::default()
    };
    let unrolled = Unrolled::new(&conversation).unwrap();
    let bodies = unrolled.bodies().unwrap();
    let starts: Vec<usize> = bodies.turns.iter().map(|(part, _)| part.start).collect();
    let goes_on: Vec<bool> = bodies.turns.iter().map(|(_, goes_on)| *goes_on).collect();
    let second = bodies.turns[1].0.end;
    assert_eq!(starts, [0, 0, 0, second, second]);
    assert_eq!(goes_on, [true, true, false, false, true]);
}

#[test]
fn a_tail_says_how_long_an_answer_may_be() {
    assert_eq!(tail(None, true), b"]}");
    assert_eq!(tail(Some(405), false), b"],\"max_tokens\":405}");
    assert_eq!(
        tail(Some(405), true),
        b"],\"max_tokens\":405,\"ignore_eos\":true}"
    );
}

#[test]
fn what_asks_nothing_or_names_nothing_is_refused() {
    let mut conversation = Conversation::default();
    assert_eq!(Unrolled::new(&conversation), Err(UnrollError::Empty));
    conversation.decisions = vec![asked([]), asked([0])];
    let error = Unrolled::new(&conversation).unwrap_err();
    assert_eq!(
        error.to_string(),
        "decision 1 names message 0, and there are 0"
    );
    conversation.decisions = vec![asked([]); MOST_TURNS + 1];
    assert!(matches!(
        Unrolled::new(&conversation),
        Err(UnrollError::TooLarge { .. })
    ));
}

proptest! {
    #![proptest_config(seeded("every_request_is_the_json_of_its_messages", 256))]

    #[test]
    fn every_request_is_the_json_of_its_messages(
        texts in prop::collection::vec("[a-c\"\\\\é\n]{0,4}", 1..6),
        prompts in prop::collection::vec(prop::collection::vec(0_usize..5, 0..6), 1..8),
        tools in any::<bool>(),
    ) {
        let conversation = Conversation {
            tools: if tools { vec![parsed(r#"{"type": "function", "function": {"name": "f"}}"#)] } else { Vec::new() },
            messages: texts.iter().map(|text| said(Role::User, text)).collect(),
            decisions: prompts.iter().map(|places| asked(places.iter().map(|p| p % texts.len()))).collect(),
            ..Conversation::default()
        };
        let unrolled = Unrolled::new(&conversation).unwrap();
        let bodies = unrolled.bodies().unwrap();
        let mut most = 0;
        for (i, decision) in conversation.decisions.iter().enumerate() {
            let messages: Vec<Value> = decision
                .prompt
                .iter()
                .map(|place| json!({"role": "user", "content": texts[*place]}))
                .collect();
            let sent: Value = serde_json::from_slice(&request(&unrolled, &bodies, i)).unwrap();
            prop_assert_eq!(&sent["messages"], &json!(messages));
            prop_assert_eq!(sent.get("tools").is_some(), tools);
            prop_assert_eq!(&sent["max_tokens"], 7);
            most += bodies.turns[i].0.len();
        }
        prop_assert!(bodies.bytes.len() <= most);
    }
}

#[test]
fn answers_are_streams_that_end_with_their_usage_or_come_in_one_piece() {
    let session = Unrolled {
        id: String::new(),
        licence: None,
        tools: None,
        messages: Vec::new(),
        turns: Vec::new(),
    };
    assert_eq!(
        session.head("m", true),
        br#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":["#
    );
    assert_eq!(session.head("m", false), br#"{"model":"m","messages":["#);
}
