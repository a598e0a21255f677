//! Random conversations, whole and damaged, whose turns have the same JSON between their texts.
//!
//! Not here: documents of every shape (`random`).

use proptest::prelude::*;
use proptest::sample::select;

use super::json_head;
use super::random::runner;

const BEGINS: &[&str] = &[
    r#"{"role":"user","content":""#,
    r#"{"role":"assistant","content":""#,
    r#"{"role":"user","name":"a \" b","content":""#,
    r#"{"role": "user", "content":""#,
    r#"{"content":""#,
    r#"""#,
    r#"[""#,
];
const ENDS: &[&str] = &[
    r#""}"#,
    r#""}"#,
    r#"","role":"tool"}"#,
    r#"" }"#,
    r#"""#,
    r#""]"#,
    r#"","n":1}"#,
];
const TEXTS: &[&str] = &[
    "of a length that is worth a look at what comes after it, and then some: 0123456789",
    "with an escape \\\" in its midst, and of a length that is worth a look at what follows",
    "short",
    "",
];

fn conversation() -> impl Strategy<Value = String> {
    let begin = prop_oneof![3 => select(&BEGINS[..2]), 1 => select(BEGINS)];
    let end = prop_oneof![5 => select(&ENDS[..1]), 1 => select(ENDS)];
    let text = prop_oneof![3 => select(&TEXTS[..2]), 1 => select(TEXTS)];
    let turn = (begin, text, end).prop_map(|(begin, text, end)| format!("{begin}{text}{end}"));
    let messages = prop::collection::vec(turn, 1..9);
    messages.prop_map(|turns| {
        format!(
            r#"{{"messages":[{}],"model":"m","max_tokens":7}}"#,
            turns.join(",")
        )
    })
}

#[test]
fn conversations_read_as_the_naive_reader_reads_them() {
    let run = |body: String| {
        json_head::fuzz_one(body.as_bytes());
        Ok(())
    };
    runner(500).run(&conversation(), run).unwrap();
}

#[test]
fn a_damaged_conversation_is_refused_or_read_as_the_naive_reader_does() {
    let byte = select(&b"\"\\{}[],: \n\x01ax7"[..]);
    let damaged = (conversation(), any::<prop::sample::Index>(), byte);
    let run = |(body, at, byte): (String, prop::sample::Index, u8)| {
        let mut body = body.into_bytes();
        let at = at.index(body.len());
        body[at] = byte;
        json_head::fuzz_one(&body);
        Ok(())
    };
    runner(1000).run(&damaged, run).unwrap();
}
