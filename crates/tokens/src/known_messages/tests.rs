//! What is found by its JSON counts as the whole body does, read into a tree.

use std::sync::Arc;

use wire::dialect::Operation;

use crate::tests::random::Random;
use crate::tests::{hostile, vectors};
use crate::{BuiltIn, Counter, Memo};

const OPERATIONS: [Operation; 5] = [
    Operation::Chat,
    Operation::Messages,
    Operation::Responses,
    Operation::Completions,
    Operation::Embeddings,
];

/// Two counters, of which one remembers.
struct Pair {
    with: Counter,
    without: Counter,
    memo: Arc<Memo>,
    counted: usize,
    refused: usize,
}

impl Pair {
    fn new(vocabulary: BuiltIn) -> Self {
        let memo = Arc::new(Memo::new(1 << 20, [5, 6]));
        let counter = || Counter::without_template(vocabulary);
        Self {
            with: counter().remembering_in(Arc::clone(&memo)),
            without: counter(),
            memo,
            counted: 0,
            refused: 0,
        }
    }

    /// Counts a body for the first time and again.
    #[track_caller]
    fn check(&mut self, operation: Operation, body: &[u8]) {
        let expected = self.without.prompt(operation, body, 0);
        for time in ["first", "second"] {
            let count = self.with.prompt(operation, body, 0);
            let shown = String::from_utf8_lossy(body);
            assert_eq!(count, expected, "the {time} time, {operation:?}: {shown}");
        }
        match expected {
            Ok(_) => self.counted += 1,
            Err(_) => self.refused += 1,
        }
    }

    #[track_caller]
    fn has_seen(&self, counted: usize, refused: usize, hits: u64) {
        assert!(self.counted > counted, "{} counted", self.counted);
        assert!(self.refused > refused, "{} refused", self.refused);
        let stats = self.memo.stats();
        assert!(stats.hits > hits, "{stats:?}");
    }
}

#[test]
fn golden_bodies_and_what_becomes_of_them_when_they_are_damaged() {
    let mut pair = Pair::new(BuiltIn::O200k);
    let mut random = Random::of("golden_bodies_and_what_becomes_of_them_when_they_are_damaged");
    for file in ["harmony.txt", "chatml.txt", "headers.txt"] {
        for body in vectors(file).lines().filter(|line| line.starts_with('{')) {
            for operation in OPERATIONS {
                pair.check(operation, body.as_bytes());
            }
            for _ in 0..20 {
                let mut body = body.as_bytes().to_vec();
                for _ in 0..=random.below(3) {
                    hostile::mutate(&mut body, &mut random);
                }
                pair.check(OPERATIONS[random.below(2)], &body);
            }
        }
    }
    pair.has_seen(300, 300, 300);
}

#[test]
fn what_a_body_says_beside_its_messages_is_seen_as_in_a_tree() {
    let mut pair = Pair::new(BuiltIn::O200k);
    for said in [
        r#""reasoning_effort":"low""#,
        r#""reasoning_effort":7"#,
        r#""add_special_tokens":true"#,
        r#""add_special_tokens":true,"add_special_tokens":false"#,
        r#""add_generation_prompt":false"#,
        r#""continue_final_message":true,"add_generation_prompt":false"#,
        r#""documents":[]"#,
        r#""tool_choice":"none""#,
        r#""tool_choice":{"type":"none"}"#,
        r#""tool_choice":"auto""#,
        r#""thinking":{"type":"disabled"}"#,
        r#""output_config":{"effort":"high"}"#,
    ] {
        for tools in [
            "",
            r#","tools":[{"type":"function","name":"f","function":{"name":"f"}}]"#,
        ] {
            let body = format!(
                r#"{{"model":"m",{said},"messages":[{{"role":"user","content":"Hello"}}]{tools}}}"#
            );
            for operation in OPERATIONS {
                pair.check(operation, body.as_bytes());
            }
        }
    }
    pair.has_seen(30, 10, 20);
}

#[test]
fn random_bodies_of_old_and_new_messages() {
    let mut random = Random::of("random_bodies_of_old_and_new_messages");
    for vocabulary in [BuiltIn::O200k, BuiltIn::Cl100k] {
        let mut pair = Pair::new(vocabulary);
        let mut known = vec![r#"{"role":"user","content":"a"}"#.to_owned()];
        for _ in 0..2_000 {
            let messages: Vec<_> = (0..random.below(6))
                .map(|_| match random.below(3) {
                    0 => {
                        let message = message(&mut random);
                        known.push(message.clone());
                        message
                    }
                    _ => known[random.below(known.len())].clone(),
                })
                .collect();
            let body = body(&mut random, &messages);
            pair.check(OPERATIONS[random.below(2)], body.as_bytes());
        }
        pair.has_seen(100, 100, 150);
    }
}

#[test]
fn a_message_may_be_as_deep_as_in_a_tree_and_no_deeper() {
    let mut pair = Pair::new(BuiltIn::O200k);
    for depth in 118..132 {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let deep = format!(r#"{{"role":"user","content":"x","more":{open}{close}}}"#);
        let tool = format!(
            r#"{{"function":{{"name":"f","more":{open}{close}}},"name":"f","more":{open}{close}}}"#
        );
        for body in [
            format!(r#"{{"messages":[{deep}]}}"#),
            format!(r#"{{"messages":[],"tools":[{tool}]}}"#),
            format!(r#"{{"messages":[],"metadata":{open}{close}}}"#),
        ] {
            pair.check(Operation::Chat, body.as_bytes());
            pair.check(Operation::Messages, body.as_bytes());
        }
    }
    pair.has_seen(40, 20, 10);
}

#[test]
fn a_message_that_is_known_is_not_read_again() {
    let memo = Arc::new(Memo::new(1 << 20, [7, 8]));
    let counter = Counter::without_template(BuiltIn::O200k).remembering_in(Arc::clone(&memo));
    let message = r#"{"role":"user","content":"So short that its text is not looked up."}"#;
    let count = |messages: &str| {
        let body = format!(r#"{{"messages":[{messages}]}}"#);
        let count = counter.prompt(Operation::Chat, body.as_bytes(), 0);
        count.expect("countable").count.tokens
    };
    let one = count(message);
    let two = count(&format!("{message},{message}"));
    assert_eq!(two - one, one - 3);
    let stats = memo.stats();
    assert_eq!((stats.hits, stats.misses), (2, 0));
    assert_eq!(stats.hit_bytes, 2 * message.len() as u64);
}

fn pick<'a>(random: &mut Random, of: &[&'a str]) -> &'a str {
    of[random.below(of.len())]
}

/// A JSON string; seldom one that is none.
fn text(random: &mut Random) -> String {
    const PIECES: [&str; 16] = [
        "hello ",
        "wörld",
        "🦀",
        "\\n",
        "\\u0041",
        "\\ud83e\\udd80",
        "\\\"",
        "\\\\",
        "\\/",
        " the end. ",
        "'s",
        "123456",
        "<|start|>",
        "x-anthropic-billing-header: a",
        "\\t",
        "中文",
    ];
    let mut text = String::from("\"");
    for _ in 0..random.below(8) {
        text.push_str(pick(random, &PIECES));
    }
    if random.below(40) == 0 {
        text.push_str(pick(random, &["\\ud800", "\u{1}", "\\x", "\\ud800\\u0041"]));
    }
    text.push('"');
    text
}

fn value(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 5 } else { 7 }) {
        0 => pick(random, &["null", "true", "false", "[]", "{}"]).to_owned(),
        1 if random.below(20) == 0 => pick(random, &["01", "1e999"]).to_owned(),
        1 => pick(random, &["0", "-1.5e3", "18446744073709551616", "1e300"]).to_owned(),
        2..=4 => text(random),
        5 => list(random, |random| value(random, depth - 1)),
        _ => object(random, &["a", "b", "type", "text"], |random, _| {
            value(random, depth - 1)
        }),
    }
}

fn list(random: &mut Random, mut item: impl FnMut(&mut Random) -> String) -> String {
    let items: Vec<_> = (0..random.below(4)).map(|_| item(random)).collect();
    format!("[{}]", items.join(pick(random, &[",", " , ", ",\n"])))
}

/// An object with some of these members, of which some stand twice and some are spelled with an escape.
fn object(
    random: &mut Random,
    names: &[&str],
    mut member: impl FnMut(&mut Random, &str) -> String,
) -> String {
    let mut members = Vec::new();
    for name in names {
        let times = [1, 1, 1, 1, 1, 1, 1, 1, 0, 2][random.below(10)];
        for _ in 0..times {
            let value = member(random, name);
            let spelled = match (random.below(8), name.split_at(1)) {
                (0, (first, rest)) => format!("\\u{:04x}{rest}", first.as_bytes()[0]),
                _ => (*name).to_owned(),
            };
            members.push(format!(
                "\"{spelled}\"{}{value}",
                pick(random, &[":", " : "])
            ));
        }
    }
    if random.below(3) == 0 {
        members.reverse();
    }
    format!("{{{}}}", members.join(","))
}

fn message(random: &mut Random) -> String {
    let names = [
        "role",
        "content",
        "name",
        "reasoning",
        "tool_calls",
        "tool_call_id",
        "more",
        "tools",
        "task",
    ];
    let most = if random.below(4) == 0 { names.len() } else { 7 };
    let kept = 2 + random.below(most - 1);
    object(random, &names[..kept], |random, name| match name {
        "role" if random.below(40) == 0 => "\"critic\"".to_owned(),
        "role" => {
            let roles = [
                "\"user\"",
                "\"user\"",
                "\"assistant\"",
                "\"system\"",
                "\"developer\"",
                "\"tool\"",
                "\"us\\u0065r\"",
            ];
            pick(random, &roles).to_owned()
        }
        "content" => match random.below(8) {
            0 => "null".to_owned(),
            1 => list(random, part),
            2 => value(random, 2),
            _ => text(random),
        },
        "tool_calls" => match random.below(3) {
            0 => "null".to_owned(),
            _ => list(random, |random| {
                object(random, &["id", "function"], |random, name| match name {
                    "id" => text(random),
                    _ => object(random, &["name", "arguments"], |random, _| text(random)),
                })
            }),
        },
        "more" => value(random, 3),
        "tools" => list(random, tool),
        _ => text(random),
    })
}

fn part(random: &mut Random) -> String {
    let names = ["type", "text", "thinking", "id", "name", "input", "content"];
    object(random, &names, |random, name| match name {
        "type" => {
            let types = [
                "\"text\"",
                "\"text\"",
                "\"text\"",
                "\"thinking\"",
                "\"tool_use\"",
                "\"tool_result\"",
                "\"image\"",
            ];
            pick(random, &types).to_owned()
        }
        "input" => value(random, 3),
        _ => text(random),
    })
}

fn tool(random: &mut Random) -> String {
    object(
        random,
        &["type", "name", "input_schema", "function", "defer_loading"],
        |random, name| match name {
            "defer_loading" => pick(random, &["true", "false", "null"]).to_owned(),
            "type" => pick(random, &["\"function\"", "\"custom\"", "null"]).to_owned(),
            "name" => text(random),
            "input_schema" => schema(random),
            _ => object(
                random,
                &["name", "description", "parameters"],
                |random, name| match name {
                    "parameters" => schema(random),
                    _ => text(random),
                },
            ),
        },
    )
}

fn schema(random: &mut Random) -> String {
    object(random, &["type", "properties"], |random, name| match name {
        "type" => "\"object\"".to_owned(),
        _ => object(random, &["p", "q"], |random, _| {
            object(
                random,
                &["type", "description", "enum"],
                |random, name| match name {
                    "enum" => list(random, text),
                    _ => text(random),
                },
            )
        }),
    })
}

fn body(random: &mut Random, messages: &[String]) -> String {
    let names = [
        "model",
        "messages",
        "tools",
        "system",
        "functions",
        "more",
        "reasoning_effort",
        "tool_choice",
        "thinking",
        "output_config",
        "documents",
        "truncate_prompt_tokens",
        "add_generation_prompt",
        "continue_final_message",
        "add_special_tokens",
        "chat_template",
        "chat_template_kwargs",
        "kv_transfer_params",
        "input",
        "truncation",
    ];
    // Mostly the first few, so that most bodies are of the ordinary kind.
    let most = if random.below(8) == 0 {
        names.len()
    } else {
        11
    };
    let kept = 2 + random.below(most - 1);
    let body = object(random, &names[..kept], |random, name| match name {
        "messages" => match random.below(20) {
            0 => value(random, 1),
            _ => format!("[{}]", messages.join(",")),
        },
        "tools" => match random.below(3) {
            0 => "null".to_owned(),
            _ => list(random, tool),
        },
        "system" => match random.below(3) {
            0 => list(random, part),
            _ => text(random),
        },
        "functions" => pick(random, &["null", "null", "null", "[]"]).to_owned(),
        "truncate_prompt_tokens" => {
            let cuts = ["null", "3", "0", "-1", "1000000", "1.5", "\"3\"", "true"];
            pick(random, &cuts).to_owned()
        }
        "add_generation_prompt" | "continue_final_message" | "add_special_tokens" => {
            pick(random, &["true", "false", "null"]).to_owned()
        }
        "reasoning_effort" => pick(random, &["null", "\"low\"", "7"]).to_owned(),
        "tool_choice" => {
            let choices = ["null", "\"auto\"", "\"none\"", r#"{"type":"none"}"#];
            pick(random, &choices).to_owned()
        }
        "thinking" => {
            let kinds = ["null", r#"{"type":"disabled"}"#, r#"{"type":"enabled"}"#];
            pick(random, &kinds).to_owned()
        }
        "output_config" => pick(random, &["null", r#"{"effort":"high"}"#, "[]"]).to_owned(),
        "documents" => pick(random, &["null", "[]", "[{}]"]).to_owned(),
        "chat_template_kwargs" => object(
            random,
            &["chat_template", "tools", "messages"],
            |random, _| value(random, 2),
        ),
        "kv_transfer_params" => object(random, &["prompt_token_ids"], |random, _| {
            list(random, |random| {
                pick(random, &["1", "2", "null"]).to_owned()
            })
        }),
        "input" => format!("[{}]", messages.join(",")),
        "truncation" => pick(random, &["\"auto\"", "\"disabled\"", "null"]).to_owned(),
        _ => value(random, 3),
    });
    match random.below(40) {
        0 => format!("{body} x"),
        1 => format!(" {body}\n"),
        _ => body,
    }
}
