//! The table of styles of OpenAPI's specification, and what attackers write.

use serde_json::value::RawValue;
use testing::{Draw, seed};

use super::{Manner, Style, in_cookie, in_header, in_path, in_query};
use crate::arguments::Written;

fn written(text: &str) -> Written {
    let raw: Box<RawValue> = serde_json::from_str(text).expect("JSON");
    Written::of(&raw).expect("a value")
}

const fn manner(style: Style, explode: bool) -> Manner {
    Manner {
        style,
        explode,
        keeps_reserved: false,
    }
}

fn query(name: &str, value: &str, manner: Manner) -> String {
    let pairs = in_query(name, &written(value), manner).expect("a query");
    let pairs: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
    pairs.join("&")
}

const TEXT: &str = r#""blue""#;
const LIST: &str = r#"["blue","black","brown"]"#;
const OBJECT: &str = r#"{"R":100,"G":200,"B":150}"#;

#[test]
fn each_style_is_written_as_the_specification_has_it() {
    let path = |value: &str, of| in_path("color", &written(value), of).expect("a path");
    for (style, explode, text, list, object) in [
        (
            Style::Simple,
            false,
            "blue",
            "blue,black,brown",
            "R,100,G,200,B,150",
        ),
        (
            Style::Simple,
            true,
            "blue",
            "blue,black,brown",
            "R=100,G=200,B=150",
        ),
        (
            Style::Label,
            false,
            ".blue",
            ".blue,black,brown",
            ".R,100,G,200,B,150",
        ),
        (
            Style::Label,
            true,
            ".blue",
            ".blue.black.brown",
            ".R=100.G=200.B=150",
        ),
        (
            Style::Matrix,
            false,
            ";color=blue",
            ";color=blue,black,brown",
            ";color=R,100,G,200,B,150",
        ),
        (
            Style::Matrix,
            true,
            ";color=blue",
            ";color=blue;color=black;color=brown",
            ";R=100;G=200;B=150",
        ),
    ] {
        let of = manner(style, explode);
        assert_eq!(path(TEXT, of), text, "{of:?}");
        assert_eq!(path(LIST, of), list, "{of:?}");
        assert_eq!(path(OBJECT, of), object, "{of:?}");
    }
    for (style, explode, text, list, object) in [
        (
            Style::Form,
            false,
            "color=blue",
            "color=blue,black,brown",
            "color=R,100,G,200,B,150",
        ),
        (
            Style::Form,
            true,
            "color=blue",
            "color=blue&color=black&color=brown",
            "R=100&G=200&B=150",
        ),
        (
            Style::SpaceDelimited,
            false,
            "color=blue",
            "color=blue%20black%20brown",
            "color=R%20100%20G%20200%20B%20150",
        ),
        (
            Style::PipeDelimited,
            false,
            "color=blue",
            "color=blue%7Cblack%7Cbrown",
            "color=R%7C100%7CG%7C200%7CB%7C150",
        ),
        (
            Style::DeepObject,
            true,
            "color=blue",
            "color=blue&color=black&color=brown",
            "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
        ),
    ] {
        let of = manner(style, explode);
        assert_eq!(query("color", TEXT, of), text, "{of:?}");
        assert_eq!(query("color", LIST, of), list, "{of:?}");
        assert_eq!(query("color", OBJECT, of), object, "{of:?}");
    }
    let header = |value: &str, explode| in_header(&written(value), explode).expect("a header");
    assert_eq!(header(LIST, false), "blue,black,brown");
    assert_eq!(header(OBJECT, false), "R,100,G,200,B,150");
    assert_eq!(header(OBJECT, true), "R=100,G=200,B=150");
    let cookie = in_cookie("color", &written(LIST), false).expect("a cookie");
    assert_eq!(cookie, [("color".into(), "blue,black,brown".into())]);
}

#[test]
fn numbers_keep_their_digits_and_nothing_is_left_out() {
    let form = manner(Style::Form, true);
    assert_eq!(
        query("n", "12345678901234567890123.450", form),
        "n=12345678901234567890123.450"
    );
    assert_eq!(query("n", "1e400", form), "n=1e400");
    assert_eq!(query("b", "true", form), "b=true");
    assert_eq!(query("x", "null", form), "");
    assert_eq!(query("x", "[]", form), "");
    assert_eq!(query("x", r#""""#, form), "x=");
    let deep = manner(Style::DeepObject, true);
    assert_eq!(
        query("f", r#"{"a":{"b":["x","y"]},"c":null}"#, deep),
        "f%5Ba%5D%5Bb%5D=x&f%5Ba%5D%5Bb%5D=y"
    );
    assert!(in_query("x", &written("[[1]]"), form).is_err());
}

#[test]
fn no_value_reaches_another_place_than_its_own() {
    let simple = manner(Style::Simple, false);
    let path = |value: &str| in_path("id", &Written::Text(value.into()), simple);
    for (value, expected) in [
        ("a/b", "a%2Fb"),
        ("a?admin=1#x", "a%3Fadmin%3D1%23x"),
        ("50%25", "50%2525"),
        ("ä b", "%C3%A4%20b"),
        ("a;b=c", "a%3Bb%3Dc"),
        ("..a", "..a"),
    ] {
        assert_eq!(path(value).as_deref(), Ok(expected), "{value}");
    }
    for value in [
        "../admin",
        "a/../../b",
        "..\\x",
        "a/.",
        "",
        "a\r\nb",
        "a\0",
        "%2e%2e",
        "..%2f..",
        "%252e%252e",
        "%25252525",
        "a%0ab",
    ] {
        assert!(path(value).is_err(), "{value:?}");
    }
    for value in ["a\r\nx-admin: 1", "a\nb", "\u{e4}", "a\0", " a"] {
        assert!(
            in_header(&Written::Text(value.into()), false).is_err(),
            "{value:?}"
        );
    }
    let reserved = Manner {
        keeps_reserved: true,
        ..manner(Style::Form, true)
    };
    assert_eq!(
        query("u", r#""https://h/a?b=c&d=e#f+g[h]""#, reserved),
        "u=https://h/a?b%3Dc%26d%3De%23f%2Bg%5Bh%5D"
    );
}

#[test]
fn whatever_is_written_stays_between_its_marks() {
    let mut draw = Draw::new(seed("values_in_their_places"));
    for _ in 0..20_000 {
        let length = draw.below(12);
        let pool = [
            'a', '/', '.', '?', '#', '&', '=', '%', ';', ',', '\r', '\n', ' ', '+', '\\', 'é',
            '\0', '"',
        ];
        let value: String = (0..length).map(|_| pool[draw.below(pool.len())]).collect();
        let value = Written::Text(value);
        for style in [Style::Simple, Style::Label, Style::Matrix] {
            if let Ok(made) = in_path("id", &value, manner(style, false)) {
                let inside = made
                    .trim_start_matches(['.', ';'])
                    .trim_start_matches("id=");
                let is_own = |b: u8| b.is_ascii_alphanumeric() || b"-._~%".contains(&b);
                assert!(inside.bytes().all(is_own), "{made}");
            }
        }
        let pairs = in_query("q", &value, manner(Style::Form, true)).expect("a query");
        assert!(
            pairs
                .iter()
                .all(|(_, v)| !v.contains(['&', '=', '#', '+', ' ', '\r', '\n']))
        );
        if let Ok(made) = in_header(&value, false) {
            assert!(!made.contains(['\r', '\n', '\0']));
        }
    }
}
