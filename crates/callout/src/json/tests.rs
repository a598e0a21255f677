//! What is read and what is refused.

use super::*;

#[test]
fn what_is_read() {
    let text = r#"{"a":null,"b":[true,-1,2,1.5,"x\n"],"c":{"a":18446744073709551615,"d":{}}}"#;
    let read = object(text.as_bytes()).expect("an object");
    let known: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(Value::Object(read), known);
}

#[test]
fn what_is_refused() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    let table = [
        "",
        " ",
        "[]",
        "\"x\"",
        "null",
        "true",
        "{",
        "{}{}",
        "{} x",
        "\u{feff}{}",
        "<html>",
        r#"{"a":1,"a":1}"#,
        r#"{"b":{"a":1,"a":2}}"#,
        r#"{"b":[{"active":true,"\u0061ctive":false}]}"#,
        r#"{"a":1e400}"#,
        "{\"a\":\"\u{0}\"}",
        &deep,
    ];
    for text in table {
        assert!(object(text.as_bytes()).is_err(), "{text}");
    }
    assert!(object(b"{\"a\":\"\xff\"}").is_err());
}

#[test]
fn members_of_a_kind() {
    let members = object(br#"{"t":"x","n":7,"f":7.0,"m":-1,"s":"7","z":null}"#).expect("an object");
    assert_eq!(text(&members, "t", ""), Ok(Some("x")));
    assert_eq!(text(&members, "absent", ""), Ok(None));
    assert!(text(&members, "n", "").is_err() && text(&members, "z", "").is_err());
    assert_eq!(whole(&members, "n", ""), Ok(Some(7)));
    assert_eq!(whole(&members, "absent", ""), Ok(None));
    for name in ["f", "m", "s", "z", "t"] {
        assert!(whole(&members, name, "").is_err(), "{name}");
    }
}
