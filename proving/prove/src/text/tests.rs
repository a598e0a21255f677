//! A break comes between words, and only where one is needed.

use super::{WIDTH, wrapped};

#[test]
fn lines_are_broken_between_words_and_indented() {
    assert_eq!(wrapped("  short, as it is", 4), "  short, as it is");
    let text = wrapped(&"word ".repeat(40), 4);
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines.len() == 3 && lines.iter().all(|line| line.len() <= WIDTH),
        "{text}"
    );
    assert!(lines[1].starts_with("    word"), "{text}");
    let long = "x".repeat(100);
    assert_eq!(
        wrapped(&format!("a {long} b"), 2),
        format!("a\n  {long}\n  b")
    );
}
