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
    let members = object(br#"{"t":"x","n":7,"z":null}"#).expect("an object");
    assert_eq!(text(&members, "t", ""), Ok(Some("x")));
    for absent in ["absent", "z"] {
        assert_eq!(text(&members, absent, ""), Ok(None));
        assert_eq!(seconds(&members, absent, ""), Ok(None));
    }
    assert!(text(&members, "n", "").is_err());
}

#[test]
fn a_number_is_one_however_it_is_written_and_what_is_none_is_none() {
    let table = [
        ("7", Some(7)),
        ("0", Some(0)),
        ("-0", Some(0)),
        ("7.0", Some(7)),
        ("7.9", Some(7)),
        ("7e2", Some(700)),
        ("\"7\"", Some(7)),
        ("\"7.9\"", Some(7)),
        ("9007199254740991.0", Some((1 << 53) - 1)),
        ("18446744073709551615", Some(u64::MAX)),
        ("\"18446744073709551615\"", Some(u64::MAX)),
        ("9007199254740992.0", None),
        ("18446744073709551616", None),
        ("\"18446744073709551616\"", None),
        ("1e300", None),
        ("-1", None),
        ("-0.5", None),
        ("\"-1\"", None),
        ("\"+7\"", None),
        ("\"7.\"", None),
        ("\".7\"", None),
        ("\"7.8.9\"", None),
        ("\"7e2\"", None),
        ("\" 7\"", None),
        ("\"0x7\"", None),
        ("\"\u{0667}\"", None),
        ("\"seven\"", None),
        ("\"\"", None),
        ("true", None),
        ("[7]", None),
        ("{}", None),
    ];
    for (written, expected) in table {
        let members = object(format!("{{\"n\":{written}}}").as_bytes()).expect(written);
        let read = seconds(&members, "n", "no number");
        let expected = expected.map(Some).ok_or(Fault::Garbage("no number"));
        assert_eq!(read, expected, "{written}");
    }
}
