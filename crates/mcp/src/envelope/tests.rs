//! Envelopes of every kind.

use super::{Fault, Message, Says, is_same_id};

fn read(text: &str) -> Result<Message<'_>, Fault> {
    Message::read(text.as_bytes())
}

#[test]
fn an_id_is_a_string_or_a_number_and_stays_as_it_is_written() {
    for id in [
        "1",
        "0",
        "-7",
        "1.5",
        "1e3",
        "18446744073709551616",
        r#""a""#,
        r#""""#,
        r#""\u0061\"b""#,
    ] {
        let text = format!(r#" {{"jsonrpc":"2.0","id": {id} ,"method":"ping"}}"#);
        let message = read(&text).expect("a request");
        let Says::Request { id: read, at, .. } = message.says else {
            panic!("{text} is a request");
        };
        assert_eq!(read, id.as_bytes());
        assert_eq!(&text[at], id);
    }
    for id in ["null", "true", "false", "[]", "[1]", "{}", r#"{"a":1}"#] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let fault = Fault::NotRpc("`id` must be a string or a number");
        assert_eq!(read(&text), Err(fault), "{text}");
    }
}

#[test]
fn an_id_that_is_no_number_to_most_readers_is_refused() {
    for id in ["1e400", "-1E+999", "1e309", &"9".repeat(400)] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert!(matches!(read(&text), Err(Fault::NotRpc(_))), "{text}");
    }
    for id in ["1e308", "1e-400", &"9".repeat(300)] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert!(read(&text).is_ok(), "{text}");
    }
}

#[test]
fn what_is_no_message_is_refused_by_name() {
    use Fault::{Ambiguous, Batch, NotJson};
    let rpc = |fault| matches!(fault, Err(Fault::NotRpc(_)));
    for text in [
        "",
        "nonsense",
        "1",
        "\"a\"",
        "null",
        "{",
        r#"{"jsonrpc":"2.0"} x"#,
    ] {
        assert_eq!(read(text), Err(NotJson), "{text}");
    }
    for text in [
        "[]",
        "  [{}]",
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
    ] {
        assert_eq!(read(text), Err(Batch), "{text}");
    }
    for (text, member) in [
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, "id"),
        (r#"{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}"#, "id"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","Method":"x"}"#,
            "method",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","param\u017f":{}}"#,
            "params",
        ),
    ] {
        assert_eq!(read(text), Err(Ambiguous(member)), "{text}");
    }
    for text in [
        "{}",
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
    ] {
        assert!(rpc(read(text)), "{text}: {:?}", read(text));
    }
}

#[test]
fn notifications_and_answers_are_told_apart() {
    let told = read(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert!(matches!(
        told.expect("a message").says,
        Says::Notification { method } if method == "notifications/initialized"
    ));
    let text = r#"{"result":{"a":[1]},"id":"x","jsonrpc":"2.0"}"#;
    let Says::Response { id, result, .. } = read(text).expect("a message").says else {
        panic!("an answer");
    };
    assert_eq!(
        (id, result.map(|at| &text[at])),
        (&b"\"x\""[..], Some(r#"{"a":[1]}"#))
    );
    let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}"#;
    let Says::Response { id, result, .. } = read(text).expect("a message").says else {
        panic!("an answer");
    };
    assert_eq!((id, result), (&b"null"[..], None));
}

#[test]
fn ids_are_compared_by_what_they_say() {
    for (one, other, is_same) in [
        ("1", "1", true),
        ("1", "1.0", true),
        ("1e3", "1000", true),
        ("1", "\"1\"", false),
        ("\"a\"", "\"\\u0061\"", true),
        ("\"a\"", "\"b\"", false),
        ("18446744073709551616", "18446744073709551616", true),
        ("18446744073709551616", "18446744073709551617", false),
        ("null", "null", true),
        ("null", "0", false),
    ] {
        assert_eq!(
            is_same_id(one.as_bytes(), other.as_bytes()),
            is_same,
            "{one} {other}"
        );
    }
}
