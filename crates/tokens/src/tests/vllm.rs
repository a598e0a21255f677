//! Small bodies and the prompt tokens that a vLLM 0.32.0 reported for them, with `chatml.jinja` and
//! `tiny_tokenizer.json`.
//!
//! They are the habits of its request handling, which no renderer or tokenizer shows by itself.
//! Not here: many conversations at once (`tests/vllm` asks a running vLLM).

mod items;

use super::{CLOCK_S, tiny, vectors};
use crate::Count;
use wire::dialect::Operation;

#[track_caller]
fn check(operation: Operation, cases: &[(u64, &str)]) {
    let counter = tiny(&vectors("chatml.jinja"));
    for (tokens, body) in cases {
        assert_eq!(
            counter
                .prompt(operation, body.as_bytes(), CLOCK_S)
                .map(|prompt| prompt.count),
            Ok(Count::exact(*tokens)),
            "{body}\n{:?}",
            counter.rendered(operation, body.as_bytes(), CLOCK_S)
        );
    }
}

#[test]
fn empty_parts_of_a_message_leave_no_line() {
    check(
        Operation::Chat,
        &[
            (
                11,
                r#"{"messages":[{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"a"},
                {"type":"text","text":""},{"type":"text","text":"b"},{"type":"text","text":""}]}]}"#,
            ),
            (
                8,
                r#"{"messages":[{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":""}]}]}"#,
            ),
            (
                66,
                r#"{"messages":[{"role":"user","content":"hello"},
                {"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
                {"role":"tool","tool_call_id":"c","content":[{"type":"text","text":""},{"type":"text","text":"x"},
                {"type":"text","text":""},{"type":"text","text":"y"}]}]}"#,
            ),
        ],
    );
}

#[test]
fn the_billing_line_of_a_system_message_is_left_out_and_of_no_other() {
    check(
        Operation::Chat,
        &[
            (
                27,
                r#"{"messages":[{"role":"system","content":"x-anthropic-billing-header: cch=1\nBe brief."},
                {"role":"user","content":"hello"}]}"#,
            ),
            (
                19,
                r#"{"messages":[{"role":"system","content":"x-anthropic-billing-header: cch=1"},
                {"role":"user","content":"hello"}]}"#,
            ),
            (
                27,
                r#"{"messages":[{"role":"system","content":[{"type":"text","text":"x-anthropic-billing-header: cch=1\n"},
                {"type":"text","text":"Be brief."}]},{"role":"user","content":"hello"}]}"#,
            ),
            (
                53,
                r#"{"messages":[{"role":"developer","content":"x-anthropic-billing-header: cch=1\nBe brief."},
                {"role":"user","content":"hello"}]}"#,
            ),
        ],
    );
    check(
        Operation::Messages,
        &[
            (
                27,
                r#"{"system":"x-anthropic-billing-header: cch=1\nBe brief.","messages":[{"role":"user","content":"hello"}]}"#,
            ),
            (
                11,
                r#"{"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1\nBe brief."}],
                "messages":[{"role":"user","content":"hello"}]}"#,
            ),
        ],
    );
}

#[test]
fn a_message_to_be_continued_has_no_end() {
    check(
        Operation::Chat,
        &[(
            33,
            r#"{"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":" so  \nfar "}],
            "add_generation_prompt":false,"continue_final_message":true}"#,
        )],
    );
}

#[test]
fn the_tokenizers_own_tokens_are_added_where_the_body_or_the_dialect_says_so() {
    check(
        Operation::Chat,
        &[
            (11, r#"{"messages":[{"role":"user","content":"hello"}]}"#),
            (
                12,
                r#"{"messages":[{"role":"user","content":"hello"}],"add_special_tokens":true}"#,
            ),
        ],
    );
    check(
        Operation::Responses,
        &[
            (12, r#"{"input":"hello"}"#),
            (12, r#"{"input":"hello","add_special_tokens":false}"#),
        ],
    );
    check(
        Operation::Completions,
        &[
            (4, r#"{"prompt":"hello"}"#),
            (3, r#"{"prompt":"hello","add_special_tokens":false}"#),
        ],
    );
}

#[test]
fn empty_blocks_of_anthropics_messages_are_nothing() {
    check(
        Operation::Messages,
        &[
            (
                9,
                r#"{"messages":[{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"a"},{"type":"text","text":""}]}]}"#,
            ),
            (
                11,
                r#"{"messages":[{"role":"user","content":"hello"},
                {"role":"user","content":[{"type":"text","text":""},{"type":"text","text":""}]}]}"#,
            ),
            (
                24,
                r#"{"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":[{"type":"text","text":""}]},
                {"role":"user","content":"hello"}]}"#,
            ),
            (
                25,
                r#"{"messages":[{"role":"user","content":"hello"},
                {"role":"assistant","content":[{"type":"thinking","thinking":"","signature":""},{"type":"text","text":"a"}]},
                {"role":"user","content":"hello"}]}"#,
            ),
        ],
    );
}

#[test]
fn thinking_that_is_disabled_is_an_effort_of_none() {
    check(
        Operation::Messages,
        &[(
            25,
            r#"{"messages":[{"role":"user","content":"hello"}],"thinking":{"type":"disabled"}}"#,
        )],
    );
}
