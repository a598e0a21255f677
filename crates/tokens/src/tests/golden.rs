//! The cases in `vectors/tokens`: text and token count as other implementations give them.
//!
//! They are not rewritten by `UPDATE=1`, since the truth is not ours: their first line says whose it is.
//! `tiny_tokenizer.json` is a byte-level BPE of 700 tokens, trained on random text of our own.
//! Not here: cases whose outcome we decide ourselves (`dialects`).

use super::{CLOCK_S, tiny, vectors};
use crate::Counter;
use wire::dialect::Operation;

#[test]
fn harmony_is_what_vllm_renders() {
    assert_eq!(check("harmony.txt", &Counter::harmony()), 60);
}

#[test]
fn chatml_is_what_transformers_renders() {
    assert_eq!(check("chatml.txt", &tiny(&vectors("chatml.jinja"))), 30);
}

#[test]
fn headers_are_what_transformers_renders() {
    assert_eq!(check("headers.txt", &tiny(&vectors("headers.jinja"))), 30);
}

/// Checks every case of a file and says how many there were.
fn check(file: &str, counter: &Counter) -> usize {
    let cases = vectors(file);
    let mut checked = 0;
    for case in cases.split("\n=== ").skip(1) {
        let (name, rest) = case.split_once('\n').expect("a name");
        let (body, outcome) = rest.split_once("\n---\n").expect("an outcome");
        let operation = if name.contains("responses") {
            Operation::Responses
        } else {
            Operation::Chat
        };
        let count = counter.prompt(operation, body.as_bytes(), CLOCK_S);
        if outcome.trim() == "refused" {
            assert!(count.is_err(), "{file} {name}");
        } else {
            let (tokens, text) = outcome.split_once('\n').expect("tokens and text");
            let text: String = serde_json::from_str(text.trim()).expect("a JSON string");
            let shown = counter.rendered(operation, body.as_bytes(), CLOCK_S);
            assert_eq!(shown, Ok(text), "{file} {name}");
            let count = count.map(|count| format!("tokens={}", count.count.tokens));
            assert_eq!(count.as_deref(), Ok(tokens), "{file} {name}");
        }
        checked += 1;
    }
    checked
}
