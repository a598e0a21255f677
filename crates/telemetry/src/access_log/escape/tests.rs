//! Any text comes back from JSON, wherever in it the odd byte stands.

use super::{escape, is_plain};

fn inside(text: &str) -> String {
    let mut out = Vec::new();
    escape(&mut out, text.as_bytes());
    let inside = String::from_utf8(out).unwrap();
    assert_eq!(is_plain(text.as_bytes()), inside == text, "{text:?}");
    inside
}

#[test]
fn every_ascii_byte_at_every_place_comes_back() {
    for odd in 0..=0x7f_u8 {
        for len in 1..40 {
            for at in 0..len {
                let mut text = vec![b'a'; len];
                text[at] = odd;
                let text = String::from_utf8(text).unwrap();
                let inside = inside(&text);
                let plain = (0x20..0x7f).contains(&odd) && odd != b'"' && odd != b'\\';
                assert_eq!(inside == text, plain, "{odd:#x} at {at} of {len}");
                let back: String = serde_json::from_str(&format!("\"{inside}\"")).unwrap();
                assert_eq!(back, text);
            }
        }
    }
}

#[test]
fn texts_beyond_ascii_and_empty_ones_stay_as_they_are() {
    for text in [
        "",
        "é",
        "naïve-modèle-très-long/\u{2028}",
        "模型模型模型模型",
    ] {
        assert_eq!(inside(text), text);
    }
}

#[test]
fn escapes_are_the_short_ones_for_quotes_and_hexadecimal_for_controls() {
    assert_eq!(inside("a\"b\\c\u{7f}\n"), r#"a\"b\\c\u007f\u000a"#);
}
