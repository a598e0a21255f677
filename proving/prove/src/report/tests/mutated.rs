//! Documents that are damaged or mean harm: each is refused with its path, or is a report of bounded size, and nothing
//! panics on the way.
//!
//! Not here: what a good document's report says (`tests`).

#[path = "../../../../corpus/src/seeded.rs"]
mod seeded;

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::sample::{empty, full};
use super::super::{compare, html, json as as_json, markdown, page, read};
use seeded::seeded;

/// What stands in the place of something else.
fn harmful() -> impl Strategy<Value = Value> {
    let numbers = [
        json!(0),
        json!(-1),
        json!(5e-324),
        json!(-5e-324),
        json!(1.7e308),
        json!(-1.7e308),
        json!(1e15),
        json!(u64::MAX),
        json!(1_u64 << 63),
        json!(u32::MAX),
        json!(i64::MIN),
    ];
    let others = [
        Value::Null,
        json!(true),
        json!(""),
        json!("</script><script>alert(1)</script>\u{202e}"),
        json!("x".repeat(20_000)),
        json!([]),
        json!({}),
        json!([[0, null], [5e-324, 1.7e308]]),
    ];
    prop_oneof![
        4 => proptest::sample::select(numbers.to_vec()),
        1 => proptest::sample::select(others.to_vec()),
    ]
}

/// Where something stands: a share of all places.
fn place(value: &mut Value, share: f64) -> &mut Value {
    fn pointers(value: &Value, at: &str, all: &mut Vec<String>) {
        all.push(at.to_owned());
        let name = |name: &str| name.replace('~', "~0").replace('/', "~1");
        match value {
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.for_each(|(n, item)| pointers(item, &format!("{at}/{n}"), all));
            }
            Value::Object(items) => {
                let items = items.iter();
                items.for_each(|(key, item)| pointers(item, &format!("{at}/{}", name(key)), all));
            }
            _ => {}
        }
    }
    // Points of series are most of a document; what they all mean is one place.
    fn members(value: &Value) -> Vec<String> {
        let mut all = Vec::new();
        pointers(value, "", &mut all);
        let is_point = |at: &String| at.contains("/points/") || at.contains("/cdf/");
        let mut points = 0;
        all.retain(|at| {
            points += usize::from(is_point(at));
            !is_point(at) || points.is_multiple_of(97)
        });
        all
    }
    let all = members(value);
    let at = ((share * all.len() as f64) as usize).clamp(1, all.len() - 1);
    value.pointer_mut(&all[at]).expect("it is there")
}

/// A page of Markdown without its fenced code, in which nothing is HTML: CommonMark 0.31, 4.5.
fn outside_fences(page: &str) -> String {
    let ticks = |line: &str| line.bytes().take_while(|byte| *byte == b'`').count();
    let mut fence = None;
    let mut out = String::new();
    for line in page.lines() {
        match fence {
            Some(length) if ticks(line) >= length && line.trim_matches('`').is_empty() => {
                fence = None;
            }
            Some(_) => {}
            None if ticks(line) >= 3 => fence = Some(ticks(line)),
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

/// Makes every page of a document.
fn is_shown(text: &str) -> Result<(), TestCaseError> {
    let document = match read::document(Path::new("some/report.json"), text) {
        Ok(document) => document,
        Err(error) => {
            let says = error.to_string();
            prop_assert!(says.starts_with("some/report.json: "), "{}", says);
            return Ok(());
        }
    };
    let (shown, whole) = (html(&document), as_json(&document).expect("JSON"));
    let other = full();
    let sections = compare::sections(&[("this", &document), ("other", &other)]);
    let beside = super::super::html::page("two", &sections);
    let marked = markdown(&document);
    let (prose, terminal) = (
        outside_fences(&marked),
        page(&document, Path::new("r"), false),
    );
    let pages = [
        &shown,
        &prose,
        &beside,
        &compare::page(&[("this", &document)], Path::new("r")),
    ];
    for page in pages {
        prop_assert!(!page.contains("<script>alert"));
    }
    for page in pages.into_iter().chain([&marked, &terminal]) {
        prop_assert!(page.len() < (1 << 21) + 8 * text.len(), "{}", page.len());
        prop_assert!(!page.contains("NaN"));
    }
    let again = read::document(Path::new("again"), &whole).expect("what was written");
    prop_assert_eq!(whole, as_json(&again).expect("JSON"));
    Ok(())
}

proptest! {
    #![proptest_config(seeded("whatever_stands_in_a_document", 96))]

    #[test]
    fn whatever_stands_in_a_document_it_is_refused_or_shown(
        changes in proptest::collection::vec((0.0..1.0, harmful()), 1..6),
        repeats in 0.0..1.0,
        from_full in proptest::bool::weighted(0.9),
    ) {
        let document = if from_full { full() } else { empty() };
        let mut value = serde_json::to_value(&document).expect("JSON");
        for (share, by) in changes {
            *place(&mut value, share) = by;
        }
        if let Value::Array(items) = place(&mut value, repeats) {
            let one = items.clone();
            items.extend(one.iter().cycle().take(one.len().min(20) * 40).cloned());
        }
        is_shown(&value.to_string())?;
    }

    #[test]
    fn whatever_bytes_of_a_document_are_lost_or_changed_it_is_refused_or_shown(
        changes in proptest::collection::vec((0.0..1.0, 0x20..0x7f_u8), 1..4),
        end in 0.5..1.5,
    ) {
        let mut text = as_json(&full()).expect("JSON").into_bytes();
        for (share, by) in changes {
            let at = (share * text.len() as f64) as usize;
            text[at] = by;
        }
        text.truncate((end * text.len() as f64) as usize);
        is_shown(&String::from_utf8_lossy(&text))?;
    }
}

#[test]
fn the_least_and_the_greatest_numbers_there_are_end_no_axis_and_no_sum() {
    for hostile in [
        json!(5e-324),
        json!(1.7e308),
        json!(-1.7e308),
        json!(1_u64 << 63),
        json!(u64::MAX),
    ] {
        let mut value = serde_json::to_value(full()).expect("JSON");
        fn all(value: &mut Value, by: &Value) {
            match value {
                Value::Number(number) if number.is_f64() == by.is_f64() => *value = by.clone(),
                Value::Array(items) => items.iter_mut().for_each(|item| all(item, by)),
                Value::Object(items) => items.values_mut().for_each(|item| all(item, by)),
                _ => {}
            }
        }
        all(&mut value, &hostile);
        value["version"] = json!(1);
        // Counts of users have 32 bits; they stay as they were.
        let sound = serde_json::to_value(full()).expect("JSON");
        restore(&mut value, &sound);
        is_shown(&value.to_string()).expect("it is shown");
    }
}

/// Puts back what has 32 bits.
fn restore(value: &mut Value, sound: &Value) {
    match (value, sound) {
        (Value::Array(items), Value::Array(sound)) => {
            items
                .iter_mut()
                .zip(sound)
                .for_each(|(item, sound)| restore(item, sound));
        }
        (Value::Object(items), Value::Object(sound)) => {
            for (name, item) in items {
                match name.as_str() {
                    "users" | "max_users" | "t2_users" | "gpus" | "threads" => {
                        *item = sound[name].clone()
                    }
                    _ => restore(item, &sound[name]),
                }
            }
        }
        _ => {}
    }
}
