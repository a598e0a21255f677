//! Counts prompts as a gate does that remembers, for a count of instructions:
//! `cargo build --release -p tokens --example prompts`, then
//! `valgrind --tool=callgrind --toggle-collect='*counted*' target/release/examples/prompts SCENE TOKENIZER`.
//!
//! Scenes: `conversation` (40 that grow to 7 KB, call by call), `varied` (380 bodies of 1.2 KB), `code` (100 bodies of
//! 32 KB). Tokenizers: `o200k`, `harmony`, `template`. The texts are this repository's own; each scene is counted once and
//! its first tenth before that, so that tables are warm and texts are new. Printed are calls, bytes and tokens.
//! Not here: time (`benches`).

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokens::{BuiltIn, Counter, Memo, TemplateSettings};
use wire::dialect::Operation;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [scene, tokenizer] = arguments.as_slice() else {
        return Err("SCENE and TOKENIZER".into());
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let counter = match tokenizer.as_str() {
        "o200k" => Counter::without_template(BuiltIn::O200k),
        "harmony" => Counter::harmony(),
        _ => Counter::from_template(
            &std::fs::read(root.join("vectors/tokens/tiny_tokenizer.json"))?,
            std::fs::read_to_string(root.join("vectors/tokens/chatml.jinja"))?.as_str(),
            TemplateSettings::default(),
        )?,
    };
    let counter = counter.remembering_in(Arc::new(Memo::new(16 << 20, [1, 2])));
    let bodies = match scene.as_str() {
        "conversation" => conversations(&texts(&root.join("docs"), "md")?),
        "varied" => single(&texts(&root.join("docs"), "md")?, 380, 1_100),
        _ => single(&texts(&root.join("crates"), "rs")?, 100, 30_000),
    };
    let (warm, measured) = bodies.split_at(bodies.len() / 10);
    for body in warm {
        counter.prompt(Operation::Chat, body.as_bytes(), 0)?;
    }
    let tokens = counted(&counter, measured)?;
    let bytes: usize = measured.iter().map(String::len).sum();
    println!("{} calls, {bytes} bytes, {tokens} tokens", measured.len());
    Ok(())
}

#[inline(never)]
fn counted(counter: &Counter, bodies: &[String]) -> Result<u64, tokens::Uncountable> {
    bodies.iter().try_fold(0, |sum, body| {
        Ok(sum
            + counter
                .prompt(Operation::Chat, body.as_bytes(), 0)?
                .count
                .tokens)
    })
}

/// The text of all files of a kind below a directory.
fn texts(directory: &Path, ending: &str) -> std::io::Result<String> {
    let mut places: Vec<_> = std::fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    places.sort();
    let mut text = String::new();
    for place in places {
        if place.is_dir() {
            text.push_str(&texts(&place, ending)?);
        } else if place.extension().is_some_and(|it| it == ending) {
            text.push_str(&std::fs::read_to_string(place)?);
        }
    }
    Ok(text)
}

/// Stretches of a text, one after the other.
struct Stretches<'a>(&'a str);

impl Stretches<'_> {
    fn next(&mut self, bytes: usize) -> String {
        let (text, rest) = self.0.split_at(self.0.ceil_char_boundary(bytes));
        self.0 = rest;
        text.to_owned()
    }
}

fn single(text: &str, count: usize, bytes: usize) -> Vec<String> {
    let mut stretches = Stretches(text);
    let body = |text| json!({"model": "m", "messages": [{"role": "user", "content": text}], "stream": true, "temperature": 0.2});
    let bodies = (0..count).map(|_| body(stretches.next(bytes)).to_string());
    bodies.collect()
}

/// Each begins with a system prompt and tools, and grows by an answer and a result.
fn conversations(text: &str) -> Vec<String> {
    let mut stretches = Stretches(text);
    let tools: Vec<Value> = ["read_file", "search", "run"]
        .into_iter()
        .map(|name| {
            json!({"type": "function", "function": {"name": name, "description": "Does what its name says, in the workspace of the task.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string", "description": "Where."}, "pattern": {"type": "string"}}, "required": ["path"]}}})
        })
        .collect();
    let mut bodies = Vec::new();
    for _ in 0..40 {
        let mut messages = vec![
            json!({"role": "system", "content": stretches.next(1_000)}),
            json!({"role": "user", "content": stretches.next(300)}),
        ];
        for turn in 0..10 {
            let body =
                json!({"model": "m", "messages": messages, "tools": tools, "temperature": 0.2});
            bodies.push(body.to_string());
            let id = format!("call_{turn}");
            messages.push(json!({"role": "assistant", "content": stretches.next(120), "tool_calls": [
                {"id": id, "type": "function", "function": {"name": "read_file", "arguments": "{\"path\":\"src/lib.rs\"}"}}]}));
            messages
                .push(json!({"role": "tool", "tool_call_id": id, "content": stretches.next(350)}));
        }
    }
    bodies
}
