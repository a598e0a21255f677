//! What the gate says in logs and errors is plain English: subject, verb, object.
//!
//! Invariant: phrases that readers had to guess at do not come back into a text of the product.
//! Not here: comments and documentation, names of things (`names` in the design).

use super::Fault;
use super::tree::{File, Tree};

/// What was said, and what to say. In two halves where this file would break its own rule.
const PHRASES: &[(&str, &str)] = &[
    ("cannot be had", "who cannot get what: `cannot fetch …`"),
    ("could be had", "who could not get what"),
    ("of no use", "`cannot be used`"),
    ("goes on by what", "what stays in force"),
    ("come to none", "what is missing"),
    ("are others now", "`were changed`"),
    ("is said of objects", "`the status of objects`"),
    ("what it has to do", "the load, in the metric's name"),
    ("nobody is accused", "what was not found"),
    ("so much of the", "the number"),
    ("it is no ", "`it is not a …`"),
    ("word is not good", "which check failed"),
];

pub(super) fn faults(tree: &Tree) -> Vec<Fault> {
    let product = |file: &&File| file.path.starts_with("crates/") && file.path.contains("/src/");
    let tests = |file: &&File| !file.path.contains("tests");
    tree.rust()
        .filter(product)
        .filter(tests)
        .flat_map(found)
        .collect()
}

fn found(file: &File) -> Vec<Fault> {
    let lines = file.text.lines().enumerate();
    let code = lines.take_while(|(_, line)| !line.starts_with("mod tests {"));
    code.filter(|(_, line)| !line.trim_start().starts_with("//"))
        .flat_map(|(at, line)| {
            let said = texts(line);
            let of = move |(phrase, instead): &(&str, &str)| {
                let is_said = said.iter().any(|text| text.contains(phrase));
                is_said.then(|| {
                    let says = format!("says {phrase:?}: say {instead}");
                    Fault::new(format!("{}:{}", file.path, at + 1), says)
                })
            };
            PHRASES.iter().filter_map(of).collect::<Vec<_>>()
        })
        .collect()
}

/// What stands between quotes of a line, or all of it where a text goes on from the line before.
fn texts(line: &str) -> Vec<&str> {
    let parts: Vec<&str> = line.split('"').collect();
    match parts.len() {
        1 => Vec::new(),
        _ => parts.into_iter().skip(1).step_by(2).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{File, found};

    #[test]
    fn a_riddle_in_a_text_is_a_fault_and_one_in_a_comment_is_none() {
        let file = |text: &str| File {
            path: "crates/x/src/a.rs".to_owned(),
            text: text.to_owned(),
        };
        let of = |text: &str| found(&file(text)).len();
        assert_eq!(of(r#"warn!("the key cannot be had");"#), 1);
        assert_eq!(of(r#"    "it is no JSON, and cannot be had""#), 2);
        assert_eq!(of("// it cannot be had\n/// it is no JSON\n"), 0);
        assert_eq!(of(r#"let cannot = "be had"; // it is no JSON"#), 0);
        assert_eq!(of("mod tests {\n    \"it is no JSON\"\n"), 0);
    }
}
