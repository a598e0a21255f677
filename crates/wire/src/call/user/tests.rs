//! What bodies say of who is behind them, however they are cut.

use crate::call::{CallFault, CallHead, CallScanner};
use crate::dialect::Operation;

fn read(operation: Operation, body: &str, cut: usize) -> Result<CallHead, CallFault> {
    let mut scanner = CallScanner::with_user(operation);
    for piece in body.as_bytes().chunks(cut) {
        scanner.push(piece)?;
    }
    scanner.finish().map(std::mem::take)
}

/// The user, or the code of the fault and its member; the same for every way to cut the body.
fn said(operation: Operation, body: &str) -> Result<Option<String>, (&'static str, Option<&str>)> {
    let of = |cut| {
        let head = read(operation, body, cut).map_err(|fault| (fault.code(), fault.member))?;
        Ok(head.user.map(String::from))
    };
    let whole = of(body.len());
    for cut in [1, 2, 7, 64] {
        assert_eq!(of(cut), whole, "{body} in pieces of {cut}");
    }
    whole
}

#[test]
fn each_dialect_says_it_in_its_own_member() {
    let cases = [
        (Operation::Chat, r#"{"user":"ada"}"#, Some("ada")),
        (
            Operation::Chat,
            r#"{"safety_identifier":"ada"}"#,
            Some("ada"),
        ),
        (
            Operation::Responses,
            r#"{"safety_identifier":"hash","user":"ada"}"#,
            Some("ada"),
        ),
        (
            Operation::Chat,
            r#"{"user":"","safety_identifier":"hash"}"#,
            Some("hash"),
        ),
        (Operation::Chat, r#"{"user":null}"#, None),
        (Operation::Chat, r#"{}"#, None),
        (Operation::Chat, r#"{"metadata":{"user_id":"ada"}}"#, None),
        (Operation::Chat, r#"{"messages":[{"user":"eve"}]}"#, None),
        (Operation::Completions, r#"{"user":"ada"}"#, Some("ada")),
        // Not its member, and so nobody's.
        (Operation::Completions, r#"{"safety_identifier":"x"}"#, None),
        (Operation::Embeddings, r#"{"user":"Ada é"}"#, Some("Ada é")),
        (
            Operation::Messages,
            r#"{"metadata":{"user_id":"ada"},"user":"eve"}"#,
            Some("ada"),
        ),
        (Operation::Messages, r#"{"metadata":null}"#, None),
        (Operation::Messages, r#"{"metadata":{"user":"eve"}}"#, None),
        (Operation::Moderations, r#"{"user":"ada"}"#, None),
    ];
    for (operation, body, expected) in cases {
        assert_eq!(
            said(operation, body),
            Ok(expected.map(str::to_owned)),
            "{body}"
        );
    }
}

#[test]
fn what_two_readers_could_read_in_two_ways_is_refused() {
    let long = format!(r#"{{"user":"{}"}}"#, "é".repeat(257));
    let longest = format!(r#"{{"user":"{}"}}"#, "é".repeat(256));
    assert_eq!(said(Operation::Chat, &longest), Ok(Some("é".repeat(256))));
    let cases = [
        (Operation::Chat, r#"{"user":7}"#, "wrong_type", "user"),
        (Operation::Chat, r#"{"user":"a\nb"}"#, "wrong_type", "user"),
        (
            Operation::Chat,
            r#"{"user":"\u202Eada"}"#,
            "wrong_type",
            "user",
        ),
        (Operation::Chat, r#"{"user":["a"]}"#, "wrong_type", "user"),
        (Operation::Chat, &long, "wrong_type", "user"),
        (
            Operation::Chat,
            r#"{"user":"a","user":"b"}"#,
            "duplicate_member",
            "user",
        ),
        (
            Operation::Chat,
            r#"{"User":"b"}"#,
            "ambiguous_member",
            "user",
        ),
        (
            Operation::Messages,
            r#"{"metadata":{"user_id":1}}"#,
            "wrong_type",
            "metadata.user_id",
        ),
        (
            Operation::Messages,
            r#"{"metadata":{"user_id":"a"},"metadata":{}}"#,
            "duplicate_member",
            "metadata",
        ),
    ];
    for (operation, body, code, member) in cases {
        assert_eq!(said(operation, body), Err((code, Some(member))), "{body}");
    }
}

#[test]
fn a_call_of_which_nobody_wants_to_know_it_may_say_anything() {
    for body in [
        r#"{"user":7}"#,
        r#"{"user":"a","user":"b"}"#,
        r#"{"USER":"a"}"#,
    ] {
        let head = CallHead::read(body.as_bytes()).expect("a call");
        assert_eq!(head.user, None);
    }
}

#[test]
fn of_two_faults_the_first_is_told_however_the_body_is_cut() {
    for (body, member) in [
        (
            r#"{"user":"a","user":"b","model":"m","model":"m"}"#,
            Some("user"),
        ),
        (
            r#"{"model":"m","model":"m","user":"a","user":"b"}"#,
            Some("model"),
        ),
        (r#"{"user":"a","user":"b"} x"#, Some("user")),
    ] {
        let expected = Err(("duplicate_member", member));
        assert_eq!(said(Operation::Chat, body), expected, "{body}");
    }
}

#[test]
fn a_fault_of_either_scan_is_kept() {
    let mut scanner = CallScanner::with_user(Operation::Chat);
    let fault = scanner.push(br#"{"user":"a","user":"b"}"#);
    assert!(fault.is_err());
    assert_eq!(scanner.push(b" "), fault);
    assert!(scanner.finish().is_err());
}
