//! Edits in a rope. What is read and refused: `vectors/json` and `tests/bodies`.

use bytes::Bytes;

use super::*;

#[test]
fn what_lies_between_edits_is_shared_and_not_copied() {
    let body = Bytes::from_static(br#"{"model":"m","stream":true,"messages":["hello"]}"#);
    let head = CallHead::read(&body).unwrap();
    let edited = apply(
        std::slice::from_ref(&body),
        &splices(&head, Some("other"), true),
    );
    assert_eq!(
        edited.concat(),
        br#"{"stream_options":{"include_usage":true},"model":"other","stream":true,"messages":["hello"]}"#
    );
    let rest = edited.last().unwrap();
    assert_eq!(rest.as_ptr(), body[12..].as_ptr());
}

#[test]
fn a_body_that_says_it_already_is_not_edited() {
    let body = br#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#;
    let head = CallHead::read(body).unwrap();
    assert_eq!(splices(&head, Some("m"), true), []);
}

#[test]
fn a_name_that_needs_escapes_is_escaped() {
    let head = CallHead::read(b"{}").unwrap();
    let edit = &splices(&head, Some("a\"b"), false)[0];
    assert_eq!(edit.with, Bytes::from_static(br#""model":"a\"b""#));
    assert_eq!(
        spliced_len(2, std::slice::from_ref(edit)),
        2 + edit.with.len()
    );
}

#[test]
fn what_follows_a_whole_body_is_blank_or_refused_where_it_starts() {
    let read = |pieces: &[&str]| {
        let mut scanner = CallScanner::new();
        pieces
            .iter()
            .try_for_each(|piece| scanner.push(piece.as_bytes()))
            .and_then(|()| scanner.finish().map(std::mem::take))
    };
    let body = r#"{"model":"m","n":2}"#;
    assert_eq!(
        read(&[body, " \n", "", "\t"]),
        read(&[&format!("{body} \n\t")])
    );
    let fault = read(&[body, "  ", " {}"]).unwrap_err();
    assert_eq!(fault.offset, 22);
    assert_eq!(read(&[body, "   {}"]), Err(fault.clone()));
    assert_eq!(read(&[&format!("{body}   {{}}")]), Err(fault));
}

#[test]
fn a_refused_body_stays_refused() {
    let mut scanner = CallScanner::new();
    scanner.push(b"{}").unwrap();
    let fault = scanner.push(b"x").unwrap_err();
    assert_eq!(scanner.push(b" ").unwrap_err(), fault);
    assert_eq!(scanner.finish().unwrap_err(), fault);
}

#[test]
fn a_long_body_reads_the_same_whole_and_in_parts() {
    let turn = |text: &str| format!(r#"{{"role":"user","content":"{text}"}}"#);
    let texts = [
        "x".repeat(3000),
        "é\\n".repeat(300),
        "\\u00e9\\\\".repeat(90),
        String::new(),
    ];
    for length in 0..130 {
        let turns = texts.each_ref().map(|text| turn(text)).join(",");
        let body = format!(
            r#"{{"x":"{}","messages":[{turns}, {turns}],"model":"m","max_tokens":1234567}}"#,
            "y".repeat(length)
        );
        let whole = CallHead::read(body.as_bytes()).unwrap();
        assert_eq!(whole.max_tokens, Some(1_234_567));
        let mut parts = CallScanner::new();
        body.as_bytes()
            .chunks(length + 1)
            .for_each(|part| parts.push(part).unwrap());
        assert_eq!(*parts.finish().unwrap(), whole);
        let damaged = body.replacen("},{", "},\"role\":{", 1);
        assert!(CallHead::read(damaged.as_bytes()).is_err());
    }
}

#[test]
fn what_leans_on_the_provider_is_read_the_same_whole_and_in_parts() {
    let rows: [(&str, bool, Option<&str>); 14] = [
        (r#"{"model":"m"}"#, false, None),
        (r#"{"background":true}"#, true, None),
        (r#"{"b\u0061ckground":true}"#, true, None),
        (r#"{"background":"no"}"#, true, None),
        (r#"{"background":false,"container":null}"#, false, None),
        (r#"{"conversation":false}"#, false, None),
        (r#"{"conversation":"c"}"#, false, Some("conversation")),
        (
            r#"{"conversation":{"id":"c"},"model":"m"}"#,
            false,
            Some("conversation"),
        ),
        (
            r#"{"previous_response_id":"r"}"#,
            false,
            Some("previous_response_id"),
        ),
        (r#"{"container":[1,[2]],"n":1}"#, false, Some("container")),
        (
            r#"{"container":"c","background":true}"#,
            true,
            Some("container"),
        ),
        (
            r#"{"conversation":"c","previous_response_id":"r"}"#,
            false,
            Some("previous_response_id"),
        ),
        (
            r#"{"input":[{"conversation":"c","background":true}]}"#,
            false,
            None,
        ),
        (r#"{"Background":true,"conversations":1}"#, false, None),
    ];
    for (body, background, keeps) in rows {
        let whole = CallHead::read(body.as_bytes());
        let mut parts = CallScanner::new();
        let in_parts = body
            .as_bytes()
            .chunks(1)
            .try_for_each(|byte| parts.push(byte))
            .and_then(|()| parts.finish());
        assert_eq!(whole, in_parts.cloned(), "{body}");
        if let Ok(head) = whole {
            assert_eq!((head.background, head.keeps), (background, keeps), "{body}");
            assert_eq!(head.leans_on_upstream(), background || keeps.is_some());
        } else {
            assert!(body.contains("Background"), "{body}: {whole:?}");
        }
    }
    for member in [
        "background",
        "previous_response_id",
        "conversation",
        "container",
    ] {
        let body = format!(r#"{{"{member}":null,"{member}":null}}"#);
        let fault = CallHead::read(body.as_bytes()).unwrap_err();
        assert_eq!(
            (fault.code(), fault.member),
            ("duplicate_member", Some(member))
        );
    }
}
