//! Characters that a reader does not see, or that change how what stands beside them is read.
//!
//! Names that came from outside are told apart by people, in tables and in exports: where one holds such a character, two
//! names look the same, or a line reads otherwise than it is written.

/// Whether it is a control character, or one of format: without width, a turn of direction, an end of a line or a paragraph,
/// a tag (Unicode 16: Cc, Zl, Zp, and Cf but for the signs of number that have a shape), or a letter or mark without a shape (fillers of
/// Hangul, the blank of Braille, what Unicode lets be ignored). The selectors of a variation, and the two joiners, U+200C and U+200D, are part of
/// how names and emoji are written, and pass.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    if c < '\u{ad}' {
        return c.is_control();
    }
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::is_unseen;

    #[test]
    fn what_is_not_seen_is_told_from_what_is() {
        let unseen = "\0\n\u{1b}\u{7f}\u{9b}\u{ad}\u{200b}\u{200f}\u{202e}\u{2028}\u{2066}\u{feff}\u{e0041}\u{34f}\u{1160}\u{17b4}\u{2800}\u{3164}\u{ffa0}";
        assert!(unseen.chars().all(is_unseen));
        assert!(
            !"ada lovelace می\u{200c}خواهم 👩\u{200d}🚀 größe 模型 \u{a0}ß\u{300}🙂 ☂\u{fe0f} 한글"
                .chars()
                .any(is_unseen)
        );
    }
}
