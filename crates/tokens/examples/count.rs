//! Counts prompts from standard input, one JSON object a line: `{"dialect": …, "body": …}`; one line of answer each.
//!
//! `cargo run -p tokens --example count -- harmony 1751068800 < prompts.jsonl`
//! `cargo run -p tokens --example count -- template 1751068800 tokenizer.json template.jinja < prompts.jsonl`
//! For a template, `<s>` and `</s>` are the special tokens. Not here: anything that judges the answers.

#![expect(clippy::disallowed_methods, reason = "how fast it counts is measured")]

use std::io::{BufRead, Read};

use serde_json::Value;
use serde_json::value::RawValue;
use tokens::{BuiltIn, Counter, TemplateSettings};
use wire::dialect::Operation;

#[derive(serde::Deserialize)]
struct Prompt<'a> {
    dialect: String,
    #[serde(borrow)]
    body: &'a RawValue,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (kind, clock) = (arguments[0].as_str(), arguments[1].parse()?);
    let counter = match kind {
        "harmony" => Counter::harmony(),
        "template" => template(&arguments[2], &arguments[3])?,
        "cl100k" => Counter::without_template(BuiltIn::Cl100k),
        _ => Counter::without_template(BuiltIn::O200k),
    };
    let mut input = std::io::stdin().lock();
    if arguments.last().is_some_and(|last| last == "text") {
        return text(&counter, input);
    }
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        let prompt: Prompt<'_> = serde_json::from_str(&line)?;
        let operation = match prompt.dialect.as_str() {
            "chat" => Operation::Chat,
            "completions" => Operation::Completions,
            "responses" => Operation::Responses,
            "messages" => Operation::Messages,
            _ => Operation::Embeddings,
        };
        match counter.prompt(operation, prompt.body.get().as_bytes(), clock) {
            Ok(prompt) => println!("{}", prompt.count.tokens),
            Err(error) => println!("{error}"),
        }
        line.clear();
    }
    Ok(())
}

fn template(tokenizer: &str, template: &str) -> Result<Counter, Box<dyn std::error::Error>> {
    let settings = TemplateSettings {
        special_tokens: vec![
            ("bos_token".to_owned(), "<s>".to_owned()),
            ("eos_token".to_owned(), "</s>".to_owned()),
        ],
        ..TemplateSettings::default()
    };
    let template = std::fs::read_to_string(template)?;
    Ok(Counter::from_template(
        &std::fs::read(tokenizer)?,
        template.as_str(),
        settings,
    )?)
}

/// Counts the whole input as one text and says how fast.
fn text(counter: &Counter, mut input: impl Read) -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    input.read_to_string(&mut text)?;
    let body = serde_json::to_vec(&serde_json::json!({ "prompt": Value::String(text.clone()) }))?;
    counter.prompt(Operation::Completions, &body, 0)?;
    let started = std::time::Instant::now();
    let prompt = counter.prompt(Operation::Completions, &body, 0)?;
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} tokens, {:.1} MB/s",
        prompt.count.tokens,
        text.len() as f64 / 1e6 / seconds
    );
    Ok(())
}
