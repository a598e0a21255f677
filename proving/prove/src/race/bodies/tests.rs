//! Bodies are what they are said to be: sizes, growth, what comes twice and what does not.

use std::collections::HashSet;
use std::sync::Arc;

use load::source::{Fixed, Head, Source};
use serde_json::Value;

use super::{Bodies, Kind, Plan, Requests};

const OPENING: &str = r#"{"model":"m","messages":["#;

fn plan(kind: Kind, bytes: usize) -> Plan {
    Plan {
        kind,
        bytes,
        opening: OPENING.len(),
        seed: 3,
    }
}

fn requests(plan: &Plan, round: u64) -> Requests {
    let head = Head::post("/").expect("a path");
    let bodies = Bodies::new(Arc::new(plan.make()), round);
    Requests::new(Fixed::one(head, OPENING.into()), Some(bodies))
}

/// The next body, as it is sent.
fn body(requests: &Requests) -> Vec<u8> {
    let turn = requests.turn(0, 0, 0).expect("a turn");
    let parts = turn.payload.parts().iter();
    parts.flat_map(|part| part.to_vec()).collect()
}

fn bodies(plan: &Plan, round: u64, count: usize) -> Vec<Vec<u8>> {
    let requests = requests(plan, round);
    (0..count).map(|_| body(&requests)).collect()
}

fn messages(body: &[u8]) -> Vec<Value> {
    let json: Value = serde_json::from_slice(body).expect("JSON");
    json["messages"].as_array().expect("messages").clone()
}

#[test]
fn a_number_of_bodies_comes_over_and_over_and_each_is_another() {
    for kind in [Kind::Prose(Some(40)), Kind::Code(Some(40))] {
        let all = bodies(&plan(kind, 1_229), 0, 80);
        assert_eq!(all[..40], all[40..], "{kind:?}");
        let different: HashSet<_> = all.iter().collect();
        assert_eq!(different.len(), 40, "{kind:?}");
        assert!(all.iter().all(|body| body.len() == 1_229));
        assert_eq!(all, bodies(&plan(kind, 1_229), 1, 80), "in every round");
    }
}

#[test]
fn bodies_without_a_number_have_no_message_that_came_before_in_any_round() {
    for (kind, bytes) in [(Kind::Prose(None), 512), (Kind::Code(None), 32_768)] {
        let plan = plan(kind, bytes);
        let mut seen = HashSet::new();
        for round in 0..3 {
            for body in bodies(&plan, round, 200) {
                assert_eq!(body.len(), bytes);
                for message in messages(&body) {
                    let content = message["content"].as_str().expect("text").to_owned();
                    assert!(seen.insert(content.clone()), "{kind:?}: {content}");
                }
            }
        }
    }
}

#[test]
fn what_is_sent_follows_from_seed_and_round_alone() {
    for kind in [
        Kind::Code(None),
        Kind::Conversations {
            at_once: 4,
            first: 1_024,
            turn: 1_024,
        },
    ] {
        let plan = plan(kind, 8_192);
        assert_eq!(bodies(&plan, 1, 50), bodies(&plan, 1, 50));
        assert_ne!(bodies(&plan, 1, 50), bodies(&plan, 2, 50));
        let other = Plan { seed: 4, ..plan };
        assert_ne!(bodies(&plan, 1, 50), bodies(&other, 1, 50));
    }
}

#[test]
fn a_conversation_grows_by_appending_and_another_begins_when_it_is_as_long_as_it_may_be() {
    const AT_ONCE: usize = 5;
    const TURNS: usize = 11;
    let kind = Kind::Conversations {
        at_once: AT_ONCE,
        first: 2_048,
        turn: 512,
    };
    let all = bodies(&plan(kind, 2_048 + 10 * 512), 0, AT_ONCE * TURNS * 3);
    let mut begun = HashSet::new();
    let mut lengths = HashSet::new();
    for place in 0..AT_ONCE {
        let own: Vec<&Vec<u8>> = all.iter().skip(place).step_by(AT_ONCE).collect();
        lengths.insert(own[0].len());
        for pair in own.windows(2) {
            let (before, after) = (messages(pair[0]), messages(pair[1]));
            if pair[1].len() == 2_048 {
                assert_eq!(pair[0].len(), 2_048 + 10 * 512);
                assert!(begun.insert(after[1]["content"].to_string()), "a new task");
                continue;
            }
            assert_eq!(pair[1].len(), pair[0].len() + 512);
            assert_eq!(after[..before.len()], before, "the history, as it was");
            assert_eq!(after.len(), before.len() + 2);
        }
    }
    assert_eq!(begun.len(), AT_ONCE * 3 - 1, "the first began as one");
    assert!(lengths.len() > 3, "they do not move in step: {lengths:?}");
}

#[test]
fn an_agent_calls_tools_and_what_they_give_names_the_call() {
    let kind = Kind::Conversations {
        at_once: 1,
        first: 4_096,
        turn: 4_096,
    };
    let all = bodies(&plan(kind, 4_096 * 9), 0, 9);
    let messages = messages(&all[8]);
    let roles: Vec<&str> = messages
        .iter()
        .map(|message| message["role"].as_str().expect("a role"))
        .collect();
    assert_eq!(roles[..4], ["system", "user", "assistant", "tool"]);
    assert_eq!(roles[8..10], ["assistant", "user"], "the next task");
    for pair in messages.windows(2).filter(|pair| pair[1]["role"] == "tool") {
        let call = &pair[0]["tool_calls"][0];
        assert_eq!(call["id"], pair[1]["tool_call_id"]);
        let arguments = call["function"]["arguments"].as_str().expect("a text");
        let arguments: Value = serde_json::from_str(arguments).expect("JSON");
        assert!(arguments.is_object());
    }
}

/// Not random bytes and not one sentence: shares that real text has, within wide bounds.
#[test]
fn prose_and_code_look_like_prose_and_code() {
    let text = |kind| {
        let all = bodies(&plan(kind, 32_768), 0, 4);
        let contents = all.iter().flat_map(|body| messages(body));
        let texts = contents.map(|message| message["content"].as_str().expect("text").to_owned());
        texts.collect::<String>()
    };
    let (prose, code) = (text(Kind::Prose(None)), text(Kind::Code(None)));
    let share = |text: &str, is_one: fn(char) -> bool| {
        text.chars().filter(|c| is_one(*c)).count() as f64 / text.chars().count() as f64
    };
    let spaces = share(&prose, |c| c == ' ');
    assert!((0.13..0.22).contains(&spaces), "{spaces}");
    let digits = share(&prose, |c| c.is_ascii_digit());
    assert!((0.005..0.05).contains(&digits), "{digits}");
    for text in [&prose, &code] {
        let foreign = share(text, |c| !c.is_ascii());
        assert!((0.0002..0.03).contains(&foreign), "{foreign}");
    }
    let marks = share(&code, |c| c.is_ascii_punctuation());
    assert!((0.1..0.35).contains(&marks), "{marks}");
    for shape in [
        "fn ", "def ", "const ", "func ", "\n\t", "\n    ", "\"", "// ", "# ",
    ] {
        assert!(code.contains(shape), "{shape:?}");
    }
    let words: Vec<&str> = prose.split_whitespace().collect();
    let different: HashSet<&&str> = words.iter().collect();
    let share = different.len() as f64 / words.len() as f64;
    assert!((0.08..0.5).contains(&share), "{share}");
}
