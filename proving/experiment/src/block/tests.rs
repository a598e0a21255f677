//! Names are of the whole way to a block, and stay as they are.

use super::name;

#[test]
fn names_stay_as_they_are() {
    let first = name(0, &[1, 2, 3]);
    assert_eq!(first, 0xa95e_8130_fbaf_a8d0);
    assert_eq!(name(first, &[4, 5, u32::MAX]), 0x4156_eba0_6fa4_e730);
}

#[test]
fn a_name_follows_from_all_tokens_and_their_order() {
    let first = name(0, &[1, 2]);
    for other in [
        name(0, &[2, 1]),
        name(0, &[1]),
        name(0, &[1, 2, 0]),
        name(first, &[1, 2]),
    ] {
        assert_ne!(first, other);
    }
}
