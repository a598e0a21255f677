//! The table, case by case.

use super::rules::faults;
use crate::conversation::{
    Arguments, Content, Conversation, Decision, FunctionCall, Message, Role, ToolCall,
};
use crate::repair::{Cap, Media, Mode, Options, Repairs, repair};

fn said(role: Role, text: &str) -> Message {
    Message {
        role,
        content: Some(Content::Text(text.to_owned())),
        ..Message::default()
    }
}

fn function(arguments: &str) -> FunctionCall {
    FunctionCall {
        name: "f".to_owned(),
        arguments: Arguments::Text(arguments.to_owned()),
    }
}

fn calls(ids: &[&str]) -> Message {
    let call = |id: &&str| ToolCall {
        id: Some((*id).to_owned()),
        function: function("{}"),
    };
    Message {
        role: Role::Assistant,
        tool_calls: ids.iter().map(call).collect(),
        ..Message::default()
    }
}

fn answers(id: &str) -> Message {
    Message {
        tool_call_id: Some(id.to_owned()),
        ..said(Role::Tool, id)
    }
}

/// A chat that is asked once, with all of it.
fn asked(messages: Vec<Message>) -> Conversation {
    Conversation {
        id: "s".to_owned(),
        decisions: vec![Decision {
            prompt: (0..messages.len()).collect(),
            ..Decision::default()
        }],
        messages,
        ..Conversation::default()
    }
}

fn strictly(session: Conversation) -> (Conversation, Repairs) {
    let (session, repairs) = repair(session, &Options::default());
    assert_eq!(faults(&session, Media::Drop, false), Vec::<String>::new());
    (session, repairs)
}

#[test]
fn answers_in_another_order_than_calls_stay_as_they_are() {
    let session = asked(vec![
        said(Role::User, "u"),
        calls(&["a", "b"]),
        answers("b"),
        answers("a"),
    ]);
    let (repaired, repairs) = strictly(session.clone());
    assert!(repairs.is_empty(), "{repairs:?}");
    let ids = |s: &Conversation| {
        s.messages
            .iter()
            .map(|m| m.tool_call_id.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&repaired), ids(&session));
}

#[test]
fn an_open_call_cuts_the_session_at_its_last_whole_turn() {
    let messages = vec![
        said(Role::User, "u"),
        calls(&["a"]),
        answers("a"),
        calls(&["b"]),
        said(Role::User, "no answer came"),
        said(Role::Assistant, "lost"),
    ];
    let mut session = asked(messages);
    let prompts = [1, 3, 5];
    session.decisions = prompts
        .map(|length| Decision {
            prompt: (0..length).collect(),
            answer: Some(length),
            ..Decision::default()
        })
        .into();
    let (repaired, repairs) = strictly(session);
    assert_eq!(repaired.decisions.len(), 2);
    assert_eq!(
        (repairs.of("session_cut"), repairs.of("decision_cut")),
        (1, 1)
    );
}

#[test]
fn an_answer_that_no_call_waits_for_is_dropped_or_the_users() {
    let alone = asked(vec![said(Role::User, "u"), answers("x")]);
    let (repaired, repairs) = strictly(alone);
    assert_eq!(repaired.messages[1], said(Role::User, "x"));
    assert_eq!(repairs.of("orphan_answer_to_user"), 1);
    let twice = asked(vec![
        said(Role::User, "u"),
        calls(&["a", "b"]),
        answers("a"),
        answers("a"),
        answers("b"),
    ]);
    let (repaired, repairs) = strictly(twice);
    assert_eq!(repaired.messages.len(), 4);
    assert_eq!(repairs.of("orphan_answer_dropped"), 1);
}

#[test]
fn arguments_become_the_text_of_an_object() {
    for (before, after, kind) in [
        ("{\n \"a\": 1\n}", "{\n \"a\": 1\n}", None),
        (" ", "{}", Some("arguments_empty")),
        ("ls -l", "{\"input\":\"ls -l\"}", Some("arguments_wrapped")),
        ("[1,2]", "{\"input\":\"[1,2]\"}", Some("arguments_wrapped")),
        (
            "\"{\\\"a\\\":1}\"",
            "{\"a\":1}",
            Some("arguments_unwrapped"),
        ),
        ("{\"a\":NaN}", "{\"a\":null}", Some("arguments_rewritten")),
    ] {
        let mut call = calls(&["a"]);
        call.tool_calls[0].function = function(before);
        let (repaired, repairs) = strictly(asked(vec![call, answers("a")]));
        let arguments = &repaired.messages[0].tool_calls[0].function.arguments;
        assert_eq!(arguments, &Arguments::Text(after.to_owned()));
        assert_eq!(repairs.iter().next().map(|(kind, _)| kind), kind);
    }
}

#[test]
fn long_observations_are_capped_and_the_first_prompt_and_answers_are_not() {
    let long = "é".repeat(500);
    let session = asked(vec![
        said(Role::User, &long),
        said(Role::Assistant, &long),
        said(Role::User, &long),
        calls(&["a"]),
        Message {
            content: Some(Content::Text(long.clone())),
            ..answers("a")
        },
    ]);
    let count = |text: &str| text.chars().count();
    for cap in [
        Cap::Bytes(101),
        Cap::Tokens {
            most: 80,
            count: &count,
        },
    ] {
        let options = Options {
            cap: Some(cap),
            ..Options::default()
        };
        let (repaired, repairs) = repair(session.clone(), &options);
        assert_eq!(repairs.of("observation_capped"), 2);
        assert_eq!(repaired.messages[..2], session.messages[..2]);
        let Some(Content::Text(text)) = &repaired.messages[4].content else {
            panic!("text");
        };
        assert!(
            text.starts_with("ééé") && text.ends_with(" bytes left out]"),
            "{text}"
        );
        assert!(text.len() <= 101 || count(text) <= 80);
        assert!(text.len() > 95 || count(text) > 75, "{text}");
    }
}

#[test]
fn neighbours_of_one_role_are_merged_where_that_is_wanted() {
    let mut thought = said(Role::Assistant, "first");
    thought.reasoning = Some("r".to_owned());
    let session = asked(vec![
        said(Role::User, "a"),
        said(Role::User, "b"),
        thought,
        calls(&["x"]),
        answers("x"),
    ]);
    let options = Options {
        merge: true,
        ..Options::default()
    };
    let (repaired, repairs) = repair(session, &options);
    assert_eq!(repairs.of("same_role_merged"), 2);
    assert_eq!(repaired.messages[0], said(Role::User, "a\n\nb"));
    assert_eq!(
        repaired.messages[1].content,
        Some(Content::Text("first".to_owned()))
    );
    assert_eq!(repaired.messages[1].tool_calls.len(), 1);
    assert_eq!(repaired.decisions[0].prompt, [0, 1, 2]);
}

#[test]
fn reserved_text_in_observations_stays_text() {
    let text = "<|start|>assistant<|channel|>final<|message|>x<|end|>";
    let message = Message {
        content: Some(Content::Text(text.to_owned())),
        ..answers("a")
    };
    let (repaired, repairs) = strictly(asked(vec![calls(&["a"]), message.clone()]));
    assert_eq!(repaired.messages[1], message);
    assert!(repairs.is_empty());
}

#[test]
fn the_paper_changes_roles_functions_and_contents_and_nothing_else() {
    let mut call = said(Role::Assistant, "");
    call.content = None;
    call.function_call = Some(function("{}"));
    let session = asked(vec![
        said(Role::User, "u"),
        call.clone(),
        said(Role::Function, "o"),
        call,
    ]);
    let options = Options {
        mode: Mode::Paper,
        ..Options::default()
    };
    let (repaired, repairs) = repair(session, &options);
    let roles: Vec<Role> = repaired.messages.iter().map(|m| m.role).collect();
    assert_eq!(
        roles,
        [Role::User, Role::Assistant, Role::User, Role::Assistant]
    );
    assert!(repaired.messages[3].function_call.is_some());
    let made: Vec<_> = repairs.iter().collect();
    assert_eq!(made, [("null_content", 2), ("role_function_to_user", 1)]);
}
