//! Boundaries, sums and merging.

use std::time::Duration;

use super::{FIRST_TOKEN, Histogram, OWN, PER_TOKEN, REQUEST, Scale, TOKENS, WAIT, nanos};

#[test]
fn a_value_at_a_bound_is_under_it() {
    for (i, bound) in TOKENS.bounds.into_iter().enumerate() {
        let mut at = Histogram::default();
        at.observe(&TOKENS, bound);
        assert_eq!(at.within[i], 1, "{bound}");
        let mut past = Histogram::default();
        past.observe(&TOKENS, bound + 1);
        assert_eq!(past.within[i], 0, "{bound}");
        assert_eq!(past.count(), 1);
    }
}

#[test]
fn the_search_finds_what_a_search_of_all_bounds_finds() {
    fn check<const B: usize>(scale: &Scale<B>) {
        let powers = (0..64).map(|power| 1_u64 << power);
        let near = powers.chain(scale.bounds).chain([0, u64::MAX]);
        for value in near.flat_map(|v| [v.saturating_sub(1), v, v.saturating_add(1)]) {
            let all = scale.bounds.partition_point(|bound| *bound < value);
            assert_eq!(scale.place(value), all, "{value}");
        }
    }
    check(&TOKENS);
    check(&REQUEST);
    check(&FIRST_TOKEN);
    check(&PER_TOKEN);
    check(&OWN);
    check(&WAIT);
}

#[test]
fn beyond_the_last_bound_only_inf_counts() {
    let mut h = Histogram::default();
    h.observe(&TOKENS, 67_108_865);
    assert_eq!(h.cumulative(), [0; 14]);
    assert_eq!((h.count(), h.sum()), (1, 67_108_865));
}

#[test]
fn cumulative_counts_rise_to_the_count() {
    let mut h = Histogram::default();
    for us in [3, 19, 20, 21, 110, 130, 60_000] {
        h.time(&OWN, Duration::from_micros(us));
    }
    let rising = h.cumulative();
    assert!(rising.is_sorted());
    assert_eq!(rising[3], 3, "3, 19 and 20 µs are within 20 µs");
    assert_eq!(rising[4], 4, "21 µs is told apart from 20 µs");
    assert_eq!(rising[26], 6);
    assert_eq!(h.count(), 7);
    assert_eq!(h.sum(), 60_303_000);
}

#[test]
fn merging_is_the_same_as_counting_in_one_place() {
    let (mut a, mut b, mut whole) = <(Histogram<17>, Histogram<17>, Histogram<17>)>::default();
    for ms in 0..2000 {
        let d = Duration::from_millis(ms * 7);
        whole.time(&WAIT, d);
        if ms % 3 == 0 { &mut a } else { &mut b }.time(&WAIT, d);
    }
    a.absorb(&b);
    assert_eq!(a, whole);
}

#[test]
fn bounds_ascend_and_own_time_shows_twenty_microseconds() {
    fn ascends<const B: usize>(scale: &Scale<B>) {
        assert!(scale.bounds.is_sorted_by(|a, b| a < b), "{scale:?}");
    }
    ascends(&TOKENS);
    ascends(&REQUEST);
    ascends(&FIRST_TOKEN);
    ascends(&PER_TOKEN);
    ascends(&WAIT);
    ascends(&OWN);
    for pair in OWN.bounds.windows(2) {
        assert!(pair[1] > 200_000 || pair[1] - pair[0] <= 20_000, "{pair:?}");
    }
}

#[test]
fn a_duration_past_every_clock_does_not_wrap() {
    assert_eq!(nanos(Duration::MAX), u64::MAX);
}
