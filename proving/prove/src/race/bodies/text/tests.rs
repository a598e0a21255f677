//! Escapes, cuts, and what is made new.

use experiment::random::Rng;
use proptest::prelude::*;

use super::super::words::{Class, of, words};
use super::{Kind, Text};

fn json(text: &[u8]) -> String {
    let quoted = [b"\"", text, b"\""].concat();
    serde_json::from_slice(&quoted).expect("the inside of a JSON string")
}

#[test]
fn what_is_said_is_read_again() {
    let mut text = Text::default();
    let said = "a \"b\"\n\tc:\\d\\\\ é 東京 ✅ \\n";
    text.say(said);
    assert_eq!(json(text.bytes()), said);
}

#[test]
fn a_renewed_text_differs_at_its_places_alone_and_follows_from_the_seed() {
    let mut text = Text::default();
    text.say("\"");
    text.slot(Kind::Word(Class::Noun), "window");
    text.say(" of \n");
    let mut rng = Rng::new(7);
    text.drawn(Kind::Name, 7, &mut rng);
    text.say(" ");
    text.drawn(Kind::Digits, 5, &mut rng);
    text.say(" ");
    text.drawn(Kind::Hex, 8, &mut rng);
    let mut other = Text::default();
    other.say("é");
    other.append(&text);
    let renewed = |seed| json(&other.renewed(&mut Rng::new(seed)));
    assert_eq!(renewed(1), renewed(1));
    assert_ne!(renewed(1), renewed(2));
    for seed in 0..200 {
        let new = renewed(seed);
        let inside = new.strip_prefix("é\"").expect("the same beginning");
        let (word, rest) = inside.split_once(" of \n").expect("the same middle");
        assert!(words(Class::Noun, 6).contains(&word), "{word}");
        let parts: Vec<&str> = rest.split(' ').collect();
        let [name, digits, hex] = parts[..] else {
            panic!("{rest}");
        };
        assert!(name.len() == 7 && name.bytes().all(|byte| byte.is_ascii_lowercase()));
        assert!(digits.len() == 5 && !digits.starts_with('0') && digits.parse::<u32>().is_ok());
        assert!(hex.len() == 8 && u32::from_str_radix(hex, 16).is_ok());
    }
}

#[test]
fn every_word_is_ascii_and_is_found_by_its_length() {
    for class in [Class::Noun, Class::Verb, Class::Adjective, Class::Adverb] {
        assert!(of(class).len() > 25);
        for word in of(class) {
            assert!(word.bytes().all(|byte| byte.is_ascii_lowercase()), "{word}");
            assert!(words(class, word.len()).contains(word));
        }
        assert!(words(class, 1_000).is_empty());
    }
}

proptest! {
    #[test]
    fn a_text_that_is_made_to_fit_has_its_length_and_is_still_json(said in "[a-z\"\\\\\n\té東✅ ]{0,60}", len in 0_usize..120) {
        let mut text = Text::default();
        text.say("before ");
        let from = text.len();
        text.say(&said);
        text.drawn(Kind::Hex, 8, &mut Rng::new(1));
        text.fit(from, len);
        prop_assert_eq!(text.len(), from + len);
        let read = json(text.bytes());
        prop_assert!(read.starts_with("before "));
        // What is left of its places lies within.
        prop_assert_eq!(json(&text.renewed(&mut Rng::new(2))).chars().count(), read.chars().count());
    }
}
