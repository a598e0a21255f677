//! How much memory counting takes, whatever the body: bytes held at once, and bytes asked for in all, which grow with the
//! work that is done.
//!
//! Not here: the counts themselves, and steps of work (`src/tests/hostile.rs`).

use std::sync::Arc;

use testing::{Memory, Noting};
use tokens::{BODY_LIMIT_BYTES, BuiltIn, Counter, Memo, TemplateSettings, Uncountable};
use wire::dialect::Operation;

#[global_allocator]
static NOTING: Noting = Noting;

/// Counts a body: the memory beside the body's own, and the outcome.
fn taken(
    counter: &Counter,
    operation: Operation,
    body: &str,
) -> (Memory, Result<u64, Uncountable>) {
    let (taken, count) = Memory::of(|| counter.prompt(operation, body.as_bytes(), 0));
    (taken, count.map(|prompt| prompt.count.tokens))
}

/// Every kind of counter, warm: each holds some megabytes of what is known of pieces.
fn counters() -> Vec<(&'static str, Counter)> {
    let template = |template: &str| {
        let tokenizer = include_bytes!("../../../vectors/tokens/tiny_tokenizer.json");
        Counter::from_template(tokenizer, template, TemplateSettings::default())
            .expect("a usable model")
    };
    let memo = Arc::new(Memo::new(1 << 20, [1, 2]));
    let o200k = || Counter::without_template(BuiltIn::O200k);
    let counters = vec![
        ("o200k", o200k()),
        ("o200k that remembers", o200k().remembering_in(memo)),
        ("harmony", Counter::harmony()),
        (
            "template",
            template(include_str!("../../../vectors/tokens/chatml.jinja")),
        ),
    ];
    for (_, counter) in &counters {
        let body = r#"{"messages":[{"role":"user","content":"hello, world"}]}"#;
        counter
            .prompt(Operation::Chat, body.as_bytes(), 0)
            .expect("countable");
    }
    counters
}

fn chat(text: &str) -> String {
    format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#)
}

#[test]
fn one_message_of_32_mib_takes_three_times_its_length() {
    let counter = Counter::without_template(BuiltIn::O200k);
    // Its escapes have to be read into a text of their own.
    let unit = "the end of the line\\n";
    let whole = BODY_LIMIT_BYTES - chat("").len();
    let body = chat(&unit.repeat(whole / unit.len()));
    let (taken, count) = taken(&counter, Operation::Chat, &body);
    assert!(count.expect("countable") > 1 << 22);
    assert!(taken.most < 3 * body.len() + (4 << 20), "{taken:?}");

    let longer = chat(&" ".repeat(whole + 1));
    let (taken, count) = self::taken(&counter, Operation::Chat, &longer);
    assert_eq!(count, Err(Uncountable::TooLong(BODY_LIMIT_BYTES + 1)));
    assert_eq!(taken.in_all, 0);
}

#[test]
fn twenty_thousand_messages_of_one_letter_take_so_many_times_their_length() {
    let messages = vec![r#"{"role":"user","content":"a"}"#; 20_000];
    let body = format!(r#"{{"messages":[{}]}}"#, messages.join(","));
    for ((name, counter), times) in counters().iter().zip([16, 2, 24, 32]) {
        let (taken, count) = taken(counter, Operation::Chat, &body);
        println!("{name}: {:.1} times", taken.most as f64 / body.len() as f64);
        assert!(count.expect("countable") > 80_000, "{name}");
        assert!(taken.most < times * body.len(), "{name}: {taken:?}");
    }
}

#[test]
fn a_body_of_the_smallest_values_takes_so_many_times_its_length() {
    for (unit, bound) in [("0", 18), (r#""""#, 14), ("[0]", 24), (r#"{"":0}"#, 30)] {
        let units = vec![unit; (1 << 18) / unit.len()].join(",");
        let body = format!(r#"{{"messages":[{{"role":"user","content":"x"}}],"more":[{units}]}}"#);
        for (name, counter) in &counters() {
            let (taken, count) = taken(counter, Operation::Chat, &body);
            println!(
                "{name} {unit}: {:.1} times",
                taken.most as f64 / body.len() as f64
            );
            assert!(count.is_ok(), "{name} {unit}");
            assert!(taken.most < bound * body.len(), "{name} {unit}: {taken:?}");
        }
    }
}

#[test]
fn texts_without_a_boundary_take_memory_and_work_by_their_length() {
    let mut letters = String::new();
    let mut state = 1_u32;
    for _ in 0..4096 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        letters.push(char::from(b'a' + (state >> 24) as u8 % 26));
    }
    for (name, counter) in &counters() {
        for unit in ["a", " ", "中", "🦀", "中文字", "\u{301}", &letters] {
            let body = |bytes: usize| chat(&unit.repeat(bytes / unit.len()));
            let (short, long) = (body(8 << 10), body(128 << 10));
            let (few, _) = taken(counter, Operation::Chat, &short);
            let (many, count) = taken(counter, Operation::Chat, &long);
            let shown: String = unit.chars().take(4).collect();
            println!(
                "{name} {shown:?}: {:.1} times at once, {:.1} in all",
                many.most as f64 / long.len() as f64,
                many.in_all as f64 / long.len() as f64
            );
            assert!(count.is_ok(), "{name} {shown:?}");
            assert!(
                many.most < 5 * long.len() + (64 << 10),
                "{name} {shown:?}: {many:?}"
            );
            // Sixteen times the text; a square would be 256 times the work.
            assert!(
                many.in_all < 24 * few.in_all.max(short.len()) + (64 << 10),
                "{name} {shown:?}: {few:?} became {many:?}"
            );
        }
    }
}

#[test]
fn a_deep_schema_takes_what_a_rendering_may() {
    let depth = 58;
    let before = r#"{"type":"object","properties":{"a":"#.repeat(depth);
    let examples = r#""","#.repeat((1 << 20) / 3);
    let after = "}}".repeat(depth);
    let body = format!(
        r#"{{"messages":[{{"role":"user","content":"x"}}],"tools":[{{"type":"function","function":{{"name":"f",
        "parameters":{before}{{"examples":[{examples}""]}}{after}}}}}]}}"#
    );
    let bounds = [(18, true), (18, true), (30, false), (62, true)];
    for ((name, counter), (times, is_counted)) in counters().iter().zip(bounds) {
        let (taken, count) = taken(counter, Operation::Chat, &body);
        println!(
            "{name}: {:.1} times, {count:?}",
            taken.most as f64 / body.len() as f64
        );
        let is_too_long = matches!(count, Err(Uncountable::TooLong(_)));
        assert_eq!(
            (count.is_ok(), is_too_long),
            (is_counted, !is_counted),
            "{name}"
        );
        assert!(taken.most < times * body.len(), "{name}: {taken:?}");
    }
}
