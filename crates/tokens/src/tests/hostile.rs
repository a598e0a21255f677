//! Bodies and texts made to hurt. Not here: honest ones.

use super::random::Random;
use super::{CLOCK_S, tiny, vectors};
use crate::{BuiltIn, Certainty, Counter, Uncountable, work};
use wire::dialect::Operation;

const OPERATIONS: [Operation; 5] = [
    Operation::Chat,
    Operation::Completions,
    Operation::Responses,
    Operation::Messages,
    Operation::Embeddings,
];

#[test]
fn no_body_panics_whatever_was_done_to_it() {
    let counters = [
        Counter::harmony(),
        Counter::without_template(BuiltIn::Cl100k),
        tiny(&vectors("chatml.jinja")),
    ];
    let cases = vectors("harmony.txt");
    let bodies: Vec<_> = cases.lines().filter(|line| line.starts_with('{')).collect();
    let mut random = Random::of("no_body_panics_whatever_was_done_to_it");
    let (mut counted, mut refused) = (0, 0);
    for _ in 0..4_000 {
        let mut body = bodies[random.below(bodies.len())].as_bytes().to_vec();
        for _ in 0..random.below(4) {
            mutate(&mut body, &mut random);
        }
        let operation = OPERATIONS[random.below(OPERATIONS.len())];
        match counters[random.below(3)].prompt(operation, &body, CLOCK_S) {
            Ok(_) => counted += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(counted > 200 && refused > 200, "{counted} {refused}");
}

pub(crate) fn mutate(body: &mut Vec<u8>, random: &mut Random) {
    const VALUES: [&[u8]; 8] = [
        b"null",
        b"[]",
        b"{}",
        b"-1",
        b"1e400",
        b"\"\"",
        b"\"\\ud800\"",
        b"\xff",
    ];
    let at = random.below(body.len());
    match random.below(4) {
        0 => body.truncate(at.max(1)),
        1 => body[at] = b"\"{}[],:0a\\"[random.below(10)],
        2 => {
            let end = (at + 1 + random.below(12)).min(body.len());
            body.drain(at..end.max(at));
            body.push(b'}');
        }
        // A value becomes another: found by its colon, up to the next comma.
        _ => {
            let from = body.iter().skip(at).position(|byte| *byte == b':');
            let from = from.map_or(at, |by| at + by + 1);
            let end = body
                .iter()
                .skip(from)
                .position(|byte| matches!(byte, b',' | b'}'));
            let end = end.map_or(body.len(), |by| from + by);
            body.splice(
                from..end,
                VALUES[random.below(VALUES.len())].iter().copied(),
            );
        }
    }
}

#[test]
fn depth_beyond_the_parsers_limit_is_refused() {
    let body = format!(
        "{{\"messages\":{}{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let count = Counter::harmony().prompt(Operation::Chat, body.as_bytes(), CLOCK_S);
    assert!(matches!(count, Err(Uncountable::NotJson(_))));
}

/// A tool whose schema has a list of empty examples, so many objects deep.
fn deep_examples(depth: usize, bytes: usize) -> String {
    let examples = r#""","#.repeat(bytes / 3);
    let before = r#"{"type":"object","properties":{"a":"#.repeat(depth);
    let after = "}}".repeat(depth);
    format!(
        r#"{{"messages":[{{"role":"user","content":"x"}}],"tools":[{{"type":"function","function":{{"name":"f",
        "parameters":{before}{{"examples":[{examples}""]}}{after}}}}}]}}"#
    )
}

#[test]
fn a_schema_that_grows_by_its_depth_is_refused() {
    let harmony = Counter::harmony();
    // Each example of three bytes would be a line of 240.
    let body = deep_examples(58, 1 << 18);
    let count = harmony.prompt(Operation::Chat, body.as_bytes(), CLOCK_S);
    let bound = 8 * body.len() + (1 << 20);
    assert_eq!(count, Err(Uncountable::TooLong(bound + 1)));
    // Small bodies may grow more, and flat ones do not grow.
    for body in [deep_examples(58, 300), deep_examples(1, 1 << 18)] {
        let count = harmony.prompt(Operation::Chat, body.as_bytes(), CLOCK_S);
        assert!(count.is_ok(), "{count:?}");
    }
}

#[test]
fn a_template_that_joins_texts_one_by_one_takes_so_many() {
    let joins = "{% set ns = namespace(all='') %}{% for m in messages %}{% set ns.all = ns.all + '\n' + m['content'] %}{% endfor %}{{ ns.all }}";
    let prints = "{% for m in messages %}{{ m['content'] }}{% endfor %}";
    let body = |messages: usize, bytes: usize| {
        let message = serde_json::json!({"role": "user", "content": "x".repeat(bytes)});
        serde_json::json!({"messages": vec![message; messages]}).to_string()
    };
    let count = |template: &str, body: &str| {
        tiny(template).prompt(Operation::Chat, body.as_bytes(), CLOCK_S)
    };
    let many = body(8_000, 120);
    let refused = count(joins, &many);
    assert!(
        matches!(&refused, Err(Uncountable::Template(reason)) if reason.contains("8000 texts")),
        "{refused:?}"
    );
    assert!(count(prints, &many).is_ok());
    assert!(count(joins, &body(1_000, 120)).is_ok());
}

#[test]
fn a_template_stops_where_its_text_is_too_long_for_the_body() {
    let repeats = "{% for a in range(90000) %}{{ messages[0]['content'] }}{% endfor %}";
    let body = serde_json::json!({"messages": [{"role": "user", "content": "x".repeat(1 << 17)}]});
    let body = body.to_string();
    let count = tiny(repeats).prompt(Operation::Chat, body.as_bytes(), CLOCK_S);
    // Eight times the body and 1 MiB: at the seventeenth time.
    assert_eq!(count, Err(Uncountable::TooLong(17 << 17)));
    let indents = "{{ tools | tojson(indent=4) }}";
    let body = deep_examples(58, 1 << 20);
    let count = tiny(indents).prompt(Operation::Chat, body.as_bytes(), CLOCK_S);
    assert!(matches!(count, Err(Uncountable::Template(_))), "{count:?}");
}

/// A body of so many conversations, and an argument of so many bytes that each of them is given.
fn conversations(many: usize, bytes: usize) -> String {
    let one = r#"[{"role":"user","content":"x"}]"#;
    let (all, note) = (vec![one; many].join(","), "n".repeat(bytes));
    format!(r#"{{"input":[{all}],"chat_template_kwargs":{{"note":"{note}"}}}}"#)
}

#[test]
fn conversations_of_one_body_are_bounded_together() {
    let count = |template: &str, body: &str| {
        tiny(template).prompt(Operation::Embeddings, body.as_bytes(), CLOCK_S)
    };
    let (notes, texts) = ("{{ note }}", "{{ messages[0].content }}");
    // All their texts together are longer than eight times the body and 1 MiB.
    let body = conversations(100, 1 << 16);
    assert!(
        matches!(count(notes, &body), Err(Uncountable::TooLong(_))),
        "{:?}",
        count(notes, &body)
    );
    assert!(count(texts, &body).is_ok());
    // More than is handed on, though nothing of it is written.
    let body = conversations(600, 1 << 19);
    let refused = count(texts, &body);
    assert!(
        matches!(refused, Err(Uncountable::Member { member, .. }) if member == "chat_template_kwargs"),
        "{refused:?}"
    );
    assert!(count(texts, &conversations(600, 100)).is_ok());
}

#[test]
fn two_hundred_thousand_arguments_are_put_together() {
    let members: Vec<_> = (0..200_000).map(|at| format!(r#""n{at}":{at}"#)).collect();
    let body = format!(
        r#"{{"messages":[{{"role":"user","content":"x"}}],"chat_template_kwargs":{{{}}}}}"#,
        members.join(",")
    );
    let counter = tiny("{{ n199999 }}");
    let count = counter.prompt(Operation::Chat, body.as_bytes(), CLOCK_S);
    assert_eq!(
        count.map(|prompt| prompt.count.certainty),
        Ok(Certainty::Exact)
    );
}

#[test]
fn work_grows_with_length_and_not_with_its_square() {
    let counters = [
        ("o200k", Counter::without_template(BuiltIn::O200k)),
        ("cl100k", Counter::without_template(BuiltIn::Cl100k)),
        ("harmony", Counter::harmony()),
        ("own", tiny(&vectors("chatml.jinja"))),
    ];
    for unit in [
        "a", " ", "🦀", "\n ", "A中", "<|", "'", "1", "aA", " a", "é ", "٣", "é\n",
    ] {
        for (name, counter) in &counters {
            // Longer than any window, so that a long one is many of those.
            let (short, long) = (2 << 10, 32 << 10);
            let few = steps(counter, &unit.repeat(short / unit.len()));
            let many = steps(counter, &unit.repeat(long / unit.len()));
            println!("{unit:?} by {name}: {few} became {many}");
            // Sixteen times the text: a square would be 256 times the work.
            assert!(
                few >= short / 4 && many < 20 * few,
                "{unit:?} by {name}: {few} became {many}"
            );
            assert!(many < 40 * long, "{unit:?} by {name}: {many} for {long}");
        }
    }
}

/// What is looked at to count a text.
fn steps(counter: &Counter, text: &str) -> usize {
    let body = serde_json::json!({ "prompt": text }).to_string();
    work::steps(|| {
        counter
            .prompt(Operation::Completions, body.as_bytes(), CLOCK_S)
            .expect("countable");
    })
}
