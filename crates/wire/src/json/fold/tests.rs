//! Which names are spellings of which.

use super::*;

#[test]
fn a_name_is_a_spelling_in_any_case_and_with_the_letters_that_fold_to_ascii() {
    for name in [
        "max_tokens",
        "MAX_TOKENS",
        "Max_Tokens",
        "max_to\u{212a}ens",
        "max_token\u{17f}",
        "MAX_TO\u{212a}EN\u{17f}",
    ] {
        assert!(is_spelling(name.as_bytes(), b"max_tokens"), "{name}");
        let longest = "max_tokens".len() + more_bytes("max_tokens");
        assert!(name.len() <= longest, "{name}");
    }
    for name in ["\u{130}nclude_usage", "\u{131}nclude_u\u{17f}age"] {
        assert!(is_spelling(name.as_bytes(), b"include_usage"), "{name}");
    }
    for name in [
        "",
        "max_token",
        "max_tokenss",
        "max-tokens",
        "max_tokens ",
        "max_to\u{2c6}ens",
        "max_to\u{3ba}ens",
        "max_token\u{df}",
        "ma\u{445}_tokens",
    ] {
        assert!(!is_spelling(name.as_bytes(), b"max_tokens"), "{name}");
    }
}

/// The rule against the tables of Unicode that the standard library has: each character whose lower or
/// upper case is, alone, a letter of ASCII or shares one with it.
#[test]
fn every_character_of_unicode_that_maps_to_a_letter_is_known() {
    // No character beyond has another case.
    for c in '\u{80}'..='\u{1ffff}' {
        let lower: Vec<char> = c.to_lowercase().collect();
        let upper: Vec<char> = c.to_uppercase().collect();
        for letter in b'a'..=b'z' {
            let is_mapped = [&lower, &upper]
                .into_iter()
                .any(|to| matches!(to[..], [one] if one.eq_ignore_ascii_case(&char::from(letter))));
            let mut text = [0; 4];
            let known = is_spelling(c.encode_utf8(&mut text).as_bytes(), &[letter]);
            // The dotted capital I maps to two characters here, and to `i` alone by Unicode's simple mapping.
            let is_dotted = c == '\u{130}' && letter == b'i';
            assert_eq!(known, is_mapped || is_dotted, "{c:?} and {letter}");
        }
    }
}

#[test]
fn a_spelling_is_shown_so_that_it_can_be_told_from_the_name() {
    let shown = Spelling::of("max_to\u{212a}ens".as_bytes()).to_string();
    assert_eq!(shown, "max_to\\u{212a}ens");
    assert_eq!(Spelling::of(b"MODEL").to_string(), "MODEL");
    assert_eq!(Spelling::of(&[b'M'; 99]).to_string(), "M".repeat(40));
}
