//! What servers say, and what their clients are told of it.

use super::{Said, Speaker, Unusable, answer_to, progress_to, said, told, write_event};

const A: Speaker<'_> = Speaker {
    name: "a",
    is_prefixed: true,
};

fn of(text: &str) -> Result<Said<'_>, Unusable> {
    said(text.as_bytes(), A, b"7")
}

#[test]
fn an_answer_to_another_request_is_given_to_nobody() {
    let answer = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    for id in ["7", "7.0"] {
        let text = answer(id);
        assert!(matches!(of(&text), Ok(Said::Answer(whole)) if *whole == *text.as_bytes()));
    }
    for id in ["8", "\"7\"", "null", "77"] {
        assert_eq!(of(&answer(id)), Err(Unusable::OtherId), "{id}");
    }
    for text in ["no JSON", "[]", "{}", r#"{"jsonrpc":"2.0","id":7}"#] {
        assert_eq!(of(text), Err(Unusable::NoMessage), "{text}");
    }
    let unread = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#;
    let told = unread.replace("null", "7").into_bytes();
    assert_eq!(of(unread), Ok(Said::Answer(told.into())));
}

#[test]
fn an_answer_outside_a_call_is_given_to_nobody() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":"x","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#,
    ] {
        assert_eq!(told(text.as_bytes(), A), Err(Unusable::OtherId), "{text}");
    }
    let text = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    assert!(matches!(told(text, A), Ok(Said::Before { .. })));
}

#[test]
fn a_servers_own_request_is_answered_under_its_own_id() {
    for id in ["1", "\"x\"", r#""a\"~b""#, "18446744073709551617"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"roots/list"}}"#);
        let Ok(Said::Before { text, .. }) = of(&text) else {
            panic!("{text} comes before the answer");
        };
        let message: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let shown = message["id"].as_str().expect("a string");
        assert_eq!(shown, format!("a~{id}"));
        let answer = serde_json::json!({"jsonrpc": "2.0", "result": {"roots": []}, "id": shown});
        let (server, told) = answer_to(answer.to_string().as_bytes()).expect("it is a's");
        assert_eq!(server, "a");
        let told = String::from_utf8(told).expect("text");
        assert!(told.contains(&format!(r#""id":{id}"#)), "{told}");
    }
    for id in [
        "7",
        "\"7\"",
        r#""a~""#,
        r#""a~[1]""#,
        r#""a~1,\"x\":2""#,
        r#""a~1}""#,
        "null",
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert_eq!(answer_to(text.as_bytes()), None, "{id}");
    }
}

#[test]
fn a_list_that_changed_is_noticed_and_told() {
    let text = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    assert!(matches!(
        of(text),
        Ok(Said::Before {
            is_list_changed: true,
            ..
        })
    ));
    let text = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
    assert!(matches!(
        of(text),
        Ok(Said::Before {
            is_list_changed: false,
            ..
        })
    ));
}

#[test]
fn what_tells_of_a_task_is_known_as_that() {
    let text = r#"{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"a"}}"#;
    assert!(matches!(
        of(text),
        Ok(Said::Before {
            is_of_task: true,
            ..
        })
    ));
}

#[test]
fn a_message_of_several_lines_is_one_event() {
    let mut out = Vec::new();
    write_event(b"{\n\"a\":\r1}", None, &mut out);
    assert_eq!(out, b"event: message\ndata: {\ndata: \"a\":\ndata: 1}\n\n");
    let mut seen = Vec::new();
    wire::sse::DataReader::new().push(&out, |data| seen.push(data.to_vec()));
    assert_eq!(seen, [b"{\n\"a\":\n1}"]);
}

#[test]
fn what_a_server_names_of_its_own_its_client_knows_as_that_server_s() {
    let shown = |text: &str| match of(text) {
        Ok(Said::Before { text, updated, .. }) => {
            let text = String::from_utf8(text.into_owned()).expect("text");
            (text, updated)
        }
        other => panic!("{other:?}"),
    };
    let cancelled = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        )
    };
    assert_eq!(shown(&cancelled("5")).0, cancelled(r#""a~5""#));
    let updated = |uri: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#
        )
    };
    let (text, own) = shown(&updated("memo://x"));
    assert_eq!(
        (text, own.as_deref()),
        (updated("a+memo://x"), Some("memo://x"))
    );
    for (before, after) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"_meta":{"progressToken":9}}}"#,
            r#"{"jsonrpc":"2.0","id":"a~1","method":"sampling/createMessage","params":{"_meta":{"progressToken":"a~9"}}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"sampling/createMessage","params":{"_meta":{"progressToken":"x"}},"id":1}"#,
            r#"{"jsonrpc":"2.0","method":"sampling/createMessage","params":{"_meta":{"progressToken":"a~\"x\""}},"id":"a~1"}"#,
        ),
    ] {
        assert_eq!(shown(before).0, after);
    }
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"a~\"x\""}}"#;
    let (server, told) = progress_to(progress.as_bytes()).expect("it is a's");
    let told = String::from_utf8(told).expect("text");
    assert!(
        server == "a" && told.contains(r#""progressToken":"x""#),
        "{told}"
    );
    for token in ["1", "\"x\"", r#""a~x,""#, "null"] {
        let text = progress.replace(r#""a~\"x\"""#, token);
        assert_eq!(progress_to(text.as_bytes()), None, "{token}");
    }
}
