//! Ids rise and differ.

use super::Ids;

#[test]
fn ids_rise_when_the_clock_steps_back_and_when_it_stands_still() {
    let mut ids = Ids::new(7, 1);
    let clock = [1000, 1000, 1000, 900, 5, 1001, 2000];
    let made: Vec<_> = clock.iter().map(|ms| ids.next(*ms)).collect();
    assert!(made.windows(2).all(|two| two[0] < two[1]), "{made:?}");
}

#[test]
fn more_ids_than_a_millisecond_counts_run_into_the_next() {
    let mut ids = Ids::new(7, 1);
    let mut last = ids.next(1000);
    for _ in 0..200_000 {
        let id = ids.next(1000);
        assert!(id > last);
        last = id;
    }
}

#[test]
fn workers_and_processes_differ() {
    let first = Ids::new(7, 1).next(1000);
    assert_ne!(first, Ids::new(7, 2).next(1000));
    assert_ne!(first, Ids::new(8, 1).next(1000));
    assert_eq!(first.to_string().len(), 32);
}
