//! Order within an exchange, order between exchanges, and that nothing is passed over.

use std::collections::BTreeMap;

use testing::Draw;

use super::*;
use crate::exchange_id::exchange_id;
use crate::moment;

fn counted(nth: u64) -> u64 {
    exchange_id(0, nth, BilledBy::Counted)
}

fn reported(nth: u64) -> u64 {
    exchange_id(0, nth, BilledBy::Reported)
}

#[test]
fn what_is_billed_by_count_goes_first_and_the_others_have_every_eighth_turn() {
    let now = moment();
    let mut queue: Queue<(), ()> = Queue::default();
    for nth in 0..16 {
        queue.push(reported(nth), (), now);
    }
    for nth in 0..16 {
        queue.push(counted(nth), (), now);
    }
    let turns: Vec<u64> = std::iter::from_fn(|| {
        let id = queue.take()?.id;
        queue.put_back(id, None, now);
        Some(id)
    })
    .collect();
    let mut expected: Vec<u64> = (0..7).map(counted).collect();
    expected.push(reported(0));
    expected.extend((7..14).map(counted));
    expected.push(reported(1));
    expected.extend((14..16).map(counted));
    expected.extend((2..16).map(reported));
    assert_eq!(turns, expected);
    assert!(queue.exchanges.is_empty());
}

#[test]
fn events_that_come_while_a_thread_is_at_an_exchange_wait_for_its_next_turn() {
    let now = moment();
    let mut queue: Queue<u8, &str> = Queue::default();
    queue.push(1, 10, now);
    queue.push(1, 11, now);
    let turn = queue.take().expect("it waits");
    assert_eq!((turn.events, turn.kept), (vec![10, 11], None));
    queue.push(1, 12, now);
    assert!(queue.take().is_none(), "two threads at one exchange");
    queue.put_back(1, Some("begun"), now);
    let turn = queue.take().expect("there is more of it");
    assert_eq!((turn.events, turn.kept), (vec![12], Some("begun")));
    queue.put_back(1, Some("begun"), now);
    assert!(queue.take().is_none() && queue.exchanges.len() == 1);
    queue.push(1, 13, now);
    assert_eq!(queue.take().and_then(|turn| turn.kept), Some("begun"));
    queue.put_back(1, None, now);
    assert!(queue.exchanges.is_empty());
}

impl Length for () {
    fn bytes(&self) -> usize {
        0
    }
}

impl Length for u8 {
    fn bytes(&self) -> usize {
        0
    }
}

impl Length for u64 {
    fn bytes(&self) -> usize {
        if self.is_multiple_of(5) {
            LONG_BYTES
        } else {
            0
        }
    }
}

/// So many bytes.
struct Bytes(usize);

impl Length for Bytes {
    fn bytes(&self) -> usize {
        self.0
    }
}

#[test]
fn prompts_of_megabytes_hold_up_nobody_for_longer_than_one_of_them() {
    const MEGABYTE: usize = 1 << 20;
    let now = moment();
    let mut queue: Queue<Bytes, ()> = Queue::default();
    for nth in 0..20 {
        queue.push(counted(nth), Bytes(4 * MEGABYTE), now);
    }
    let short = 11 << 10;
    for nth in 20..10_000 {
        queue.push(reported(nth), Bytes(short), now);
    }
    let (mut long_bytes, mut short_bytes) = (0, 0);
    while let Some(turn) = queue.take() {
        queue.put_back(turn.id, None, now);
        match turn.events[0].0 {
            bytes if bytes == short => short_bytes += bytes,
            bytes => {
                if !queue.short.is_empty() {
                    let fair = short_bytes / 2 + 4 * MEGABYTE;
                    assert!(long_bytes <= fair, "{long_bytes} beside {short_bytes}");
                }
                long_bytes += bytes;
            }
        }
    }
    assert_eq!(long_bytes, 80 * MEGABYTE, "long ones are late and not lost");
    assert_eq!(short_bytes, 9_980 * short);
}

#[test]
fn the_longest_wait_is_told_whichever_line_it_stands_in() {
    let start = moment();
    let later = start + Duration::from_millis(7);
    let mut queue: Queue<(), ()> = Queue::default();
    assert_eq!(queue.waited(start), Duration::ZERO);
    queue.push(reported(1), (), start);
    queue.push(counted(2), (), later);
    assert_eq!(queue.waited(later), Duration::from_millis(7));
}

/// Many exchanges, events and threads in any order, against what each exchange was given.
#[test]
fn whoever_takes_turns_each_exchange_gets_its_events_once_and_in_order() {
    let name = "whoever_takes_turns_each_exchange_gets_its_events_once_and_in_order";
    let mut random = Draw::new(testing::seed(name));
    for _ in 0..200 {
        one_run(&mut random);
    }
}

fn one_run(random: &mut Draw) {
    let now = moment();
    let mut queue: Queue<u64, Vec<u64>> = Queue::default();
    let mut given: BTreeMap<u64, u64> = BTreeMap::new();
    let mut had: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut taken: Vec<Turn<u64, Vec<u64>>> = Vec::new();
    let mut steps = 300;
    loop {
        if steps > 0 && random.below(2) == 0 {
            let by = [BilledBy::Reported, BilledBy::Counted][random.below(2)];
            let id = exchange_id(random.below(3), random.below(4) as u64, by);
            let nth = given.entry(id).or_default();
            queue.push(id, *nth, now);
            *nth += 1;
        } else if random.below(2) == 0
            && let Some(turn) = queue.take()
        {
            assert!(!turn.events.is_empty());
            assert!(taken.iter().all(|other| other.id != turn.id));
            taken.push(turn);
        } else if !taken.is_empty() {
            let turn = taken.swap_remove(random.below(taken.len()));
            had.entry(turn.id).or_default().extend(turn.events);
            // What is kept is what came before, unless it was forgotten.
            let kept = (random.below(3) > 0).then(|| had[&turn.id].clone());
            assert!(
                turn.kept
                    .is_none_or(|kept| had[&turn.id].starts_with(&kept))
            );
            queue.put_back(turn.id, kept, now);
        } else if steps == 0 && queue.is_empty() {
            break;
        }
        steps = usize::saturating_sub(steps, 1);
    }
    for (id, events) in given {
        assert_eq!(had[&id], (0..events).collect::<Vec<_>>());
    }
}
