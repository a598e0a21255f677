//! Text of somebody else's on a line of a terminal, and in a command to paste.
//!
//! Invariant: what is shown moves no cursor, changes no colour and no direction, and has a bound.
//! Not here: what is said (`init`).

use wire::unseen::is_unseen;

/// Stands for a character that a terminal would act on.
const REPLACED: char = '\u{fffd}';

/// At most so many characters, the last of them `…` where some are left out; none that a terminal acts on.
pub(super) fn shown(text: &str, most: usize) -> String {
    let plain = |c: char| if is_unseen(c) { REPLACED } else { c };
    if text.chars().nth(most).is_none() {
        return text.chars().map(plain).collect();
    }
    let kept = text.chars().take(most.saturating_sub(1)).map(plain);
    kept.chain(['…']).collect()
}

/// A path as one word of a shell; none where it has a character that a terminal acts on.
pub(super) fn shell_word(path: &str) -> Option<String> {
    if path.is_empty() || path.chars().any(is_unseen) {
        return None;
    }
    // A word that begins so would be read as an option.
    let path = match path.strip_prefix('-') {
        Some(_) => format!("./{path}"),
        None => path.to_owned(),
    };
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "._/-+:@%,".contains(c);
    if path.chars().all(is_bare) {
        return Some(path);
    }
    Some(format!("'{}'", path.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::{shell_word, shown};

    #[test]
    fn nothing_that_a_terminal_acts_on_is_shown() {
        for (said, is_shown) in [
            ("gpt-oss-120b", "gpt-oss-120b"),
            ("größe 模型", "größe 模型"),
            ("a\u{1b}]0;owned\u{7}\u{1b}[2J", "a�]0;owned��[2J"),
            ("a\u{9b}31mb\u{7f}\r\n", "a�31mb���"),
            (
                "a\u{202e}b\u{2066}c\u{200f}d\u{2028}e\u{feff}",
                "a�b�c�d�e�",
            ),
        ] {
            assert_eq!(shown(said, 80), is_shown, "{said:?}");
        }
    }

    #[test]
    fn what_is_long_is_clipped() {
        assert_eq!(shown("abcde", 5), "abcde");
        assert_eq!(shown("abcdef", 5), "abcd…");
        let long = "a\u{1b}".repeat(500_000);
        assert_eq!(shown(&long, 80).chars().count(), 80);
        assert_eq!(shown("ab", 0), "…");
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for (path, word) in [
            ("a/b-c_1.yaml", Some("a/b-c_1.yaml")),
            ("a b;c.yaml", Some("'a b;c.yaml'")),
            ("it's $HOME.yaml", Some(r"'it'\''s $HOME.yaml'")),
            ("-x.yaml", Some("./-x.yaml")),
            ("~/a.yaml", Some("'~/a.yaml'")),
            ("größe.yaml", Some("'größe.yaml'")),
            ("a\u{1b}[31m.yaml", None),
            ("a\u{202e}.yaml", None),
            ("", None),
        ] {
            assert_eq!(shell_word(path).as_deref(), word, "{path:?}");
        }
    }
}
