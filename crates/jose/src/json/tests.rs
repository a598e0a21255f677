//! What JSON is read, and as what.

use serde_json::json;

use super::{Fault, object};

#[test]
fn an_object_is_read_whole() {
    let text = r#" {"a":[1,-2,2.5,true,false,null,"\u00e9\n"],"b":{"a":{}},"A":18446744073709551615}
"#;
    let expected = json!({
        "a": [1, -2, 2.5, true, false, null, "é\n"],
        "b": {"a": {}},
        "A": u64::MAX,
    });
    assert_eq!(
        object(text.as_bytes()).as_ref(),
        Ok(expected.as_object().unwrap())
    );
}

#[test]
fn what_is_no_such_object_says_why() {
    let syntax = |line, column| Err(Fault::Syntax { line, column });
    let rows: [(&[u8], _); 12] = [
        (b"", syntax(1, 0)),
        (b"{", syntax(1, 1)),
        (b"{}\n x", syntax(2, 2)),
        (b"{\"a\":1,}", syntax(1, 8)),
        (b"{\"a\":1e999}", syntax(1, 10)),
        (b"{\"a\":\"\xff\"}", syntax(1, 7)),
        (b"[]", Err(Fault::NotAnObject)),
        (b"\"a\"", Err(Fault::NotAnObject)),
        (b"null", Err(Fault::NotAnObject)),
        (b"{\"a\":1,\"a\":1}", Err(Fault::Duplicate)),
        (b"{\"b\":[{\"a\":1,\"\\u0061\":2}]}", Err(Fault::Duplicate)),
        (b"[{\"a\":1,\"a\":1}]", Err(Fault::Duplicate)),
    ];
    for (text, expected) in rows {
        assert_eq!(object(text), expected, "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn depth_is_bounded() {
    let deep = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    assert!(object(deep(100).as_bytes()).is_ok());
    for levels in [128, 100_000] {
        let found = object(deep(levels).as_bytes());
        assert!(matches!(found, Err(Fault::Syntax { .. })), "{levels}");
    }
}
