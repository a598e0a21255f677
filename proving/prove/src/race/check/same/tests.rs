//! Equal and unequal answers by example.

use super::{same_bytes, same_events, same_json};

fn json(got: &str, expected: &str, may: &[&str]) -> Result<Option<String>, String> {
    let may: Vec<String> = may.iter().map(|&path| path.to_owned()).collect();
    same_json("the answer", got.as_bytes(), expected.as_bytes(), &may)
}

#[test]
fn bytes_that_differ_are_told_by_their_place() {
    assert_eq!(same_bytes("x", b"abc", b"abc"), Ok(()));
    let says = same_bytes("x", b"abd", b"abc").expect_err("different");
    assert!(says.contains("at byte 2"), "{says}");
}

#[test]
fn a_value_written_anew_is_the_same_value_and_a_note() {
    let expected = r#"{"id":"a","n":1,"list":[{"x":1}]}"#;
    assert_eq!(json(expected, expected, &[]), Ok(None));
    let anew = r#"{ "list": [{"x":1.0}], "n": 1, "id": "a" }"#;
    assert_eq!(
        json(anew, expected, &[]),
        Ok(Some("writes JSON anew".into()))
    );
}

#[test]
fn only_members_that_were_named_may_differ_and_each_is_told() {
    let expected = r#"{"id":"a","usage":{"n":1,"details":{"x":0}},"list":[{"x":1}]}"#;
    let got = r#"{"id":"b","usage":{"n":1},"list":[{"x":1,"y":2}],"provider":"p"}"#;
    let may = ["id", "usage.details", "list[].y", "provider"];
    let note = json(got, expected, &may).expect("allowed").expect("a note");
    assert_eq!(
        note,
        "writes JSON anew: adds list[].y, provider; drops usage.details; changes id"
    );
    let says = json(got, expected, &may[..3]).expect_err("provider");
    assert_eq!(
        says,
        "the answer differs from the upstream's: adds provider"
    );
    let says = json(r#"{"ids":1}"#, "{}", &["id"]).expect_err("ids is not id");
    assert!(says.ends_with("adds ids"), "{says}");
    assert!(
        json("[1]", "[1,2]", &[])
            .expect_err("shorter")
            .contains("changes")
    );
    assert!(
        json("no", "{}", &[])
            .expect_err("no JSON")
            .contains("not JSON")
    );
}

#[test]
fn streams_are_the_same_by_text_and_usage_however_they_are_cut() {
    let whole = b"data: {\"choices\":[{\"delta\":{\"content\":\"one two\"}}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
    let cut = b"data: {\"choices\":[{\"delta\":{\"content\":\"one\"}}]}\n\n\
        data:{\"choices\":[{\"delta\":{\"content\":\" two\"}}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n";
    assert_eq!(same_events("x", cut, whole), Ok(()));
    let text = String::from_utf8_lossy(cut).replace("two", "three");
    assert!(
        same_events("x", text.as_bytes(), whole)
            .expect_err("text")
            .contains("another text")
    );
    let usage = String::from_utf8_lossy(cut).replace(":2", ":3");
    assert!(
        same_events("x", usage.as_bytes(), whole)
            .expect_err("usage")
            .contains("usage")
    );
}
