//! Edits in a rope. What is read and refused: `vectors/json` and `tests/bodies.rs`.

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
