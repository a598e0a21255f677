//! Names keep their numbers, and end at the bound.

use std::sync::Arc;

use super::{MAX_NAMES, NameId, Names};

#[test]
fn a_text_keeps_its_number() {
    let mut names = Names::default();
    let a = names.intern(&Arc::from("a"));
    let b = names.intern(&Arc::from("b"));
    assert_ne!(a, b);
    assert_eq!(names.intern(&Arc::from("a")), a);
    assert_eq!(names.text(a), "a");
    assert_eq!(names.text(NameId::NONE), "");
    assert_eq!(names.text(NameId::OTHER), "other");
    assert_eq!(NameId::from_bits(b.bits()), b);
}

#[test]
fn past_the_bound_a_text_is_other() {
    let mut names = Names::default();
    let ids: Vec<NameId> = (0..MAX_NAMES + 10)
        .map(|i| names.intern(&Arc::from(format!("n{i}"))))
        .collect();
    let kept = ids.iter().filter(|id| **id != NameId::OTHER).count();
    assert_eq!(kept, MAX_NAMES - 2);
    assert_eq!(*ids.last().unwrap(), NameId::OTHER);
    assert_eq!(names.intern(&Arc::from("n0")), ids[0], "old names stay");
}

#[test]
fn adopted_numbers_point_at_the_same_texts() {
    let (mut here, mut there) = (Names::default(), Names::default());
    here.intern(&Arc::from("x"));
    let a = there.intern(&Arc::from("a"));
    let x = there.intern(&Arc::from("x"));
    let adopted = here.adopt(&there);
    assert_eq!(here.text(adopted.here(a)), "a");
    assert_eq!(here.text(adopted.here(x)), "x");
    assert_eq!(adopted.here(NameId::NONE), NameId::NONE);
}
