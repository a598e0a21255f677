//! Bodies and texts made to hurt. Not here: honest ones.

use std::time::{Duration, Instant};

use super::random::Random;
use super::{CLOCK_S, tiny, vectors};
use crate::{BuiltIn, Counter, Uncountable};
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
    let mut random = Random::announced();
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

fn mutate(body: &mut Vec<u8>, random: &mut Random) {
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

#[test]
fn a_template_that_never_ends_is_stopped() {
    let endless =
        "{% for a in range(90000) %}{% for b in range(90000) %}{{ a }}{% endfor %}{% endfor %}";
    let body = br#"{"messages":[{"role":"user","content":"a"}]}"#;
    let count = tiny(endless).prompt(Operation::Chat, body, CLOCK_S);
    assert!(matches!(count, Err(Uncountable::Template(_))));
}

#[test]
fn time_grows_with_length_and_not_with_its_square() {
    let counters = [
        ("o200k", Counter::without_template(BuiltIn::O200k)),
        ("cl100k", Counter::without_template(BuiltIn::Cl100k)),
        ("harmony", Counter::harmony()),
        ("own", tiny(&vectors("chatml.jinja"))),
    ];
    for unit in ["a", " ", "🦀", "\n ", "A中", "<|", "'", "1", "aA", " a"] {
        for (name, counter) in &counters {
            let short = time(counter, &unit.repeat((16 << 10) / unit.len()));
            let long = time(counter, &unit.repeat((256 << 10) / unit.len()));
            // Sixteen times the text: a square would take 256 times as long.
            let bound = 80 * short + Duration::from_millis(40);
            assert!(
                long < bound,
                "{unit:?} by {name}: {short:?} became {long:?}"
            );
        }
    }
}

fn time(counter: &Counter, text: &str) -> Duration {
    let body = serde_json::json!({ "prompt": text }).to_string();
    let times = (0..3).map(|_| {
        let started = Instant::now();
        counter
            .prompt(Operation::Completions, body.as_bytes(), CLOCK_S)
            .expect("countable");
        started.elapsed()
    });
    times.min().expect("three times")
}
