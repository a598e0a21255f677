//! What an interleaved order must keep.

use super::interleave;

#[test]
fn each_round_holds_every_subject_once_and_starts_one_further() {
    let order: Vec<_> = interleave(3, 2).collect();
    assert_eq!(order, [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 0)]);
}

#[test]
fn no_subjects_or_no_rounds_is_an_empty_order() {
    assert_eq!(interleave(0, 5).count(), 0);
    assert_eq!(interleave(4, 0).count(), 0);
}
