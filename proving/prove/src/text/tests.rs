//! A break comes between words, and only where one is needed; a terminal is told nothing by what others wrote.

use super::{WIDTH, printable, wrapped};

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

#[test]
fn what_a_terminal_would_obey_is_not_shown() {
    let plain = "Zürich, 東京 — a b/c.json…";
    assert_eq!(printable(plain), plain);
    for obeyed in [
        "\x1b", "\0", "\n", "\r", "\t", "\x7f", "\u{80}", "\u{9b}", "\u{9f}", "\u{202a}",
        "\u{202e}", "\u{2066}", "\u{2069}",
    ] {
        assert_eq!(
            printable(&format!("a{obeyed}[2Jb")),
            "a\u{fffd}[2Jb",
            "{obeyed:?}"
        );
    }
}
