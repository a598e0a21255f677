//! Tables end at their bounds.

use super::*;

#[test]
fn names_past_the_table_are_counted_together() {
    let mut names = Names::default();
    for i in 0..1_500 {
        names.count(&format!("m{i}"), 2);
        names.count("m0", 1);
    }
    names.count(&"é".repeat(80), 1);
    assert_eq!(names.counts.len(), 1_000);
    assert_eq!(names.counts["m0"], 1_502);
    assert_eq!(names.past, 500 * 2 + 1);
}

#[test]
fn counts_of_threads_add_up() {
    let mut one = Tally::default();
    one.note("odd");
    one.unknown_members(
        "m",
        &Json::object([("a", Json::Null), ("b", Json::Null)]),
        &["a"],
    );
    let mut both = one.clone();
    both.absorb(one);
    assert_eq!(both.notes["odd"], 2);
    assert_eq!(both.unknown.counts["m.b"], 2);
}
