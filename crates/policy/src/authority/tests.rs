//! Members are found by name, whatever order they came in.

use super::{Claim, Members};

fn members(of: &[(&str, i64)]) -> Members {
    let pair = |(name, value): &(&str, i64)| (Box::from(*name), Claim::Int(*value));
    Members::new(of.iter().map(pair).collect())
}

#[test]
fn a_member_is_found_by_its_whole_name() {
    let of = members(&[("b", 2), ("é", 4), ("a", 1), ("", 0), ("ab", 3)]);
    for (name, value) in [("", 0), ("a", 1), ("b", 2), ("ab", 3), ("é", 4)] {
        assert_eq!(of.get(name), Some(&Claim::Int(value)), "{name}");
    }
    for name in ["A", "e", "abc", "é "] {
        assert_eq!(of.get(name), None, "{name}");
    }
}

#[test]
fn of_a_name_that_stands_twice_the_first_counts() {
    let of = members(&[("a", 1), ("b", 2), ("a", 3), ("a", 4)]);
    assert_eq!(of.get("a"), Some(&Claim::Int(1)));
    assert_eq!(of.len(), 2);
}

#[test]
fn no_members_are_none() {
    assert!(Members::NONE.is_empty());
    assert_eq!(Members::NONE, Members::new(Vec::new()));
}
