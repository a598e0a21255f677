//! Single rules of the scanner. Grammar and cuts: `tests/bodies`.

use super::*;

static LAST: Interests = Interests::new(&[
    Interest::new("a", Want::Raw(8), Repeat::LastWins),
    Interest::new("o", Want::Place, Repeat::LastWins),
    Interest::new("o.b", Want::Raw(8), Repeat::LastWins),
    Interest::new("s", Want::Scalar, Repeat::Refuse),
]);

fn find(body: &str) -> Result<Found, JsonFault> {
    let mut scanner = Scanner::new(&LAST);
    scanner.push(body.as_bytes())?;
    scanner.finish().cloned()
}

fn raw(found: &Found, interest: usize) -> Option<&str> {
    found
        .member(interest)
        .map(|member| std::str::from_utf8(found.raw(member)).unwrap())
}

#[test]
fn the_last_of_several_wins_and_the_others_are_forgotten() {
    let found = find(r#"{"a":1,"o":{"b":"x"},"a":[2],"o":{"b":3}}"#).unwrap();
    assert_eq!((raw(&found, 0), raw(&found, 2)), (Some("[2]"), Some("3")));
    let found = find(r#"{"o":{"b":"x"},"a":"y","o":{}}"#).unwrap();
    assert_eq!((raw(&found, 0), raw(&found, 2)), (Some("\"y\""), None));
}

#[test]
fn a_value_beyond_its_bound_is_cut_and_one_within_is_not() {
    let found = find(r#"{"a":"123456"}"#).unwrap();
    assert_eq!(
        (raw(&found, 0), found.member(0).unwrap().cut),
        (Some("\"123456\""), false)
    );
    let found = find(r#"{"a":"1234567"}"#).unwrap();
    assert_eq!(
        (raw(&found, 0), found.member(0).unwrap().cut),
        (Some(""), true)
    );
}

#[test]
fn a_scalar_may_have_its_limit_and_not_a_byte_more() {
    let body = |length| format!("{{\"s\":\"{}\"}}", "x".repeat(length));
    assert!(find(&body(STRING_LIMIT_BYTES)).is_ok());
    let fault = find(&body(STRING_LIMIT_BYTES + 1)).unwrap_err();
    assert_eq!(
        fault.kind,
        JsonFaultKind::TooLong {
            path: "s",
            limit: STRING_LIMIT_BYTES
        }
    );
    assert_eq!(fault.offset, 5);
}

#[test]
fn places_are_offsets_in_the_whole_body() {
    let body = r#" {"x":[], "o" : { "b": 7 } }"#;
    let mut scanner = Scanner::new(&LAST);
    for byte in body.bytes() {
        scanner.push(&[byte]).unwrap();
    }
    let found = scanner.finish().unwrap();
    let (outer, inner) = (found.member(1).unwrap(), found.member(2).unwrap());
    assert_eq!((found.open, found.length), (Some(2), body.len()));
    assert_eq!(
        (&body[outer.value.clone()], &body[inner.value.clone()]),
        ("{ \"b\": 7 }", "7")
    );
    assert!(body[outer.key..].starts_with("\"o\"") && !outer.empty);
}

#[test]
fn a_fault_stays() {
    let mut scanner = Scanner::new(&LAST);
    let fault = scanner.push(b"{]").unwrap_err();
    assert_eq!(scanner.push(b"}").unwrap_err(), fault);
    assert_eq!(scanner.finish().unwrap_err(), fault);
}

#[test]
fn a_string_ends_at_its_quote_however_long_it_is_and_wherever_the_look_began() {
    for length in (0..140).chain(500..600).chain(1000..1100) {
        let text = ["é".repeat(length / 2), "x".repeat(length % 2)].concat() + "\"ab\\\"c\"d";
        for start in [0, 1, 63, 64, 200] {
            let text = [&"y".repeat(start), &text[..]].concat();
            let mut marks = marks::Marks::new();
            let end = start + length;
            assert_eq!(marks.string_end(text.as_bytes(), start), Ok(end + 1));
            assert_eq!(marks.string_end(text.as_bytes(), end + 1), Ok(end + 7));
            assert_eq!(marks.string_end(text.as_bytes(), end + 7), Err(end + 8));
            assert_eq!(
                marks.string_end(text.as_bytes(), start),
                Ok(end + 1),
                "going back"
            );
        }
    }
}

#[test]
fn a_string_is_left_at_what_is_no_part_of_one() {
    for length in (0..140).chain(500..600) {
        for fault in ["\n", "\0", "\u{1f}", "\\x", "\\", "\\u12", "\\u12g4\"", ""] {
            let text = "z".repeat(length) + fault;
            let end = marks::Marks::new().string_end(text.as_bytes(), 0);
            assert_eq!(end, Err(length), "{fault:?}");
        }
    }
}

#[test]
fn an_object_in_one_piece_reads_as_one_in_single_bytes() {
    let long = format!(r#"{{"a":1,"s":"{}"}}"#, "x".repeat(600));
    for body in [
        r#"{"a":[1,{"b":[]}],"o":{"x":{"b":1},"b":"\"}"},"s":"t","z":[[],{}]}"#,
        " { \"a\" : { } , \"o\" : { \"b\" : null } , \"s\" : -1.5e3 } ",
        r#"{"o":{},"a":[ ],"s":"\u0041"}"#,
        r#"{"s":1,"s":2}"#,
        r#"{"a":"123456789"}"#,
        r#"{"o":{"b":1},"o":{"b":2}}"#,
        r#"{"o":[{"b":1}],"a":tru}"#,
        r#"{"a":1}}"#,
        r#"{"a":[1}"#,
        "{}",
        &long,
    ] {
        let mut slow = Scanner::new(&LAST);
        let slow = body
            .bytes()
            .try_for_each(|byte| slow.push(&[byte]))
            .and_then(|()| slow.finish().cloned());
        match (find(body), slow) {
            (Ok(fast), Ok(slow)) => {
                assert_eq!(
                    (fast.open, fast.empty, fast.length),
                    (slow.open, slow.empty, slow.length)
                );
                for at in 0..4 {
                    let place = |found: &Found| {
                        let member = found.member(at)?;
                        let (key, value) = (member.key, member.value.clone());
                        Some((key, value, member.kind, member.empty, member.cut))
                    };
                    assert_eq!(place(&fast), place(&slow), "{body}");
                    assert_eq!(raw(&fast, at), raw(&slow, at), "{body}");
                }
            }
            (fast, slow) => assert_eq!(fast.err(), slow.err(), "{body}"),
        }
    }
}

#[test]
fn a_short_number_is_read_as_its_digits_say() {
    let word = |text: &str| short::word_at(text.as_bytes(), 0).unwrap();
    for number in (0..2000).chain([9999, 10_000, 123_456, 999_999, 1_000_000, 9_999_999]) {
        let digits = number.to_string();
        for after in [",", "}", " ", "]x,y,z,0,1", "-"] {
            let word = word(&(digits.clone() + after));
            assert_eq!(short::short_count(word), Some((number, digits.len())));
            assert_eq!(short::short_length(word), Some(digits.len()));
        }
        for after in ["", ".5,", "e1,", "E1,", ".", "\0"] {
            let word = word(&(digits.clone() + after));
            assert_eq!(short::short_count(word), None, "{digits}{after}");
            assert_eq!(short::short_length(word), None, "{digits}{after}");
        }
    }
    for other in [
        "00,",
        "012,",
        "12345678,",
        "-1,",
        "x",
        "\"1\"",
        "nul",
        "falsd,",
        ",",
    ] {
        assert_eq!(short::short_length(word(other)), None, "{other}");
        assert_eq!(short::short_count(word(other)), None, "{other}");
    }
    for literal in ["null", "true", "false"] {
        assert_eq!(short::short_length(word(literal)), Some(literal.len()));
        assert_eq!(short::short_count(word(literal)), None);
    }
}

#[test]
fn the_items_of_a_list_are_gone_through_one_by_one_inside_of_objects_and_outside() {
    let mut reader = Reader::new(br#" [ 1 , {"a": [ ] , "b": ["x]"]}, [2] ] "#);
    let mut seen = Vec::new();
    let mut more = reader.open_list().expect("a list");
    while more {
        if reader.kind() == Some(Kind::Object) {
            assert_eq!(reader.open(), Some(true));
            assert_eq!(reader.name().as_deref(), Some(&b"a"[..]));
            assert_eq!(reader.open_list(), Some(false));
            assert_eq!(reader.more(), Some(true));
            assert_eq!(reader.name().as_deref(), Some(&b"b"[..]));
            assert_eq!(reader.open_list(), Some(true));
            assert_eq!(reader.value(), Some((Kind::String, &br#""x]""#[..])));
            assert_eq!(reader.more_items(), Some(false));
            assert_eq!(reader.more(), Some(false));
        } else {
            seen.push(reader.value().expect("a value").1);
        }
        more = reader.more_items().expect("an item or an end");
    }
    assert!(reader.is_at_end());
    assert_eq!(seen, [&b"1"[..], b"[2]"]);
    // An object's end is none of a list, nor the other way round.
    for (text, is_list) in [("[1}", true), (r#"{"a":1]"#, false)] {
        let mut reader = Reader::new(text.as_bytes());
        if is_list {
            assert_eq!(reader.open_list(), Some(true));
            assert!(reader.value().is_some());
            assert_eq!(reader.more_items(), None);
        } else {
            assert_eq!(reader.open(), Some(true));
            assert!(reader.name().is_some() && reader.value().is_some());
            assert_eq!(reader.more(), None);
        }
    }
    assert_eq!(Reader::new(b"{}").open_list(), None);
}

#[test]
fn a_reader_goes_past_what_is_written_just_so_and_else_stays_where_it_is() {
    let mut reader = Reader::new(br#"{"a":1,"b\n":"c","d" :"e\"","f":[]}"#);
    assert_eq!(reader.open(), Some(true));
    let start = reader.spot();
    assert_eq!(reader.past(r#""a" :1"#), None);
    assert_eq!(reader.past(r#""a":1"#), Some(()));
    assert_eq!(reader.more(), Some(true));
    assert_eq!(reader.plain_name(), None, "an escape");
    assert!(reader.name().is_some());
    assert_eq!(reader.plain_text(), Some(14..15));
    assert_eq!(reader.more(), Some(true));
    assert_eq!(reader.plain_name(), None, "a blank");
    assert!(reader.name().is_some());
    assert_eq!(reader.plain_text(), None, "an escape");
    reader.go_back(start);
    assert_eq!(reader.plain_name(), Some(2..3));
    assert_eq!(reader.plain_text(), None, "a number");
    assert_eq!(reader.past("1"), Some(()));
}

#[test]
fn a_text_is_plain_without_what_a_string_escapes_wherever_that_stands() {
    for length in 0..70 {
        assert!(is_plain(&vec![0xe9; length]), "{length}");
        for at in 0..length {
            for byte in [b'"', b'\\', b'\n', 0, 0x1f] {
                let mut text = vec![b'a'; length];
                text[at] = byte;
                assert!(!is_plain(&text), "{byte:#x} at {at} of {length}");
            }
        }
    }
}
