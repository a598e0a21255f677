//! Sets of statuses, and today's numbers.

use std::time::Duration;

use super::{Ejection, MAX_ATTEMPTS, Retries, Statuses};

#[test]
fn a_set_has_what_was_put_into_it_and_nothing_else() {
    let set = Statuses::NONE.with(400).with(463).with(464).with(599);
    assert_eq!(set.iter().collect::<Vec<_>>(), [400, 463, 464, 599]);
    let set = set.with(399).with(600).with(0).with(u16::MAX);
    let held: Vec<u16> = (0..=u16::MAX).filter(|s| set.contains(*s)).collect();
    assert_eq!(held, [400, 463, 464, 599]);
    assert_eq!(Statuses::NONE.iter().count(), 0);
}

#[test]
fn unless_said_the_numbers_are_what_the_book_says() {
    let retries = Retries::default();
    assert_eq!(retries.attempts, 4);
    assert!(retries.attempts <= MAX_ATTEMPTS);
    assert_eq!((retries.share_millionths, retries.burst), (100_000, 10));
    let statuses: Vec<u16> = retries.statuses.iter().collect();
    assert_eq!(statuses, [408, 425, 429, 500, 502, 503, 504, 529]);
    let ejection = Ejection::default();
    assert_eq!(ejection.failures, 5);
    assert_eq!(ejection.time, Duration::from_secs(5));
    assert_eq!(ejection.max_time, Duration::from_secs(300));
}
