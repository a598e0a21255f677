//! Names, there and back.

use std::collections::HashSet;

use testing::{Draw, seed};

use super::{SHOWN_BYTES_MAX, may_be_shortened, shown, split, split_id, split_uri, whole};

#[test]
fn the_first_two_underscores_part_a_server_from_its_tool() {
    for (server, tool) in [
        ("a", "b"),
        ("a", "b__c"),
        ("a", "__b"),
        ("a_b", "_c"),
        ("a", ""),
    ] {
        assert_eq!(split(&whole(server, tool)), Some((server, tool)));
    }
    assert_eq!(split("bare"), None);
    assert_eq!(split_uri("a+file:///x+y"), Some(("a", "file:///x+y")));
    assert_eq!(split_id("a~\"x~y\""), Some(("a", "\"x~y\"")));
}

#[test]
fn a_long_name_is_shortened_to_what_models_take_and_keeps_its_server() {
    let fits = "x".repeat(SHOWN_BYTES_MAX);
    assert_eq!(shown(&fits), fits);
    let long = whole("server", &"y".repeat(100));
    let short = shown(&long);
    assert_eq!(short.len(), SHOWN_BYTES_MAX);
    assert!(short.starts_with("server__yyy"), "{short}");
    assert!(may_be_shortened(&short));
    let is_taken = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    assert!(short.chars().all(is_taken), "{short}");
    assert_ne!(short, shown(&whole("server", &"y".repeat(101))));
}

#[test]
fn names_that_differ_are_shown_so() {
    let mut random = Draw::new(seed("names_that_differ_are_shown_so"));
    let mut seen = HashSet::new();
    let mut whole_ones = HashSet::new();
    for _ in 0..20_000 {
        let length = random.below(120);
        let letters = ["a", "b", "_", "é", "-"];
        let name: String = (0..length).map(|_| letters[random.below(5)]).collect();
        let whole = whole("s", &name);
        let short = shown(&whole).into_owned();
        assert!(short.len() <= SHOWN_BYTES_MAX, "{short}");
        if whole_ones.insert(name) {
            assert!(seen.insert(short.clone()), "{short} stands for two");
        }
    }
}
