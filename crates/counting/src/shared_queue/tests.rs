//! Threads that take turns: one that is stuck, many at once, none that has anything to do.

use std::collections::HashMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};

use policy::billing::BilledBy;

use super::*;
use crate::exchange_id::exchange_id;

fn id(nth: u64) -> u64 {
    exchange_id(0, nth, BilledBy::Reported)
}

/// What a thread does with an event.
enum Do {
    Nothing,
    /// Stays at it until the other end is gone.
    Wait(Receiver<()>),
}

impl Length for Do {
    fn bytes(&self) -> usize {
        0
    }
}

type Shared = Arc<SharedQueue<Do, ()>>;

/// Starts threads that tell of each turn's exchange.
fn start(threads: usize, told: &Sender<u64>) -> (Shared, Vec<thread::JoinHandle<()>>) {
    let queue: Shared = Arc::new(SharedQueue::new(threads));
    let run = |index| {
        let (queue, told) = (Arc::clone(&queue), told.clone());
        thread::spawn(move || {
            let turn = |turn: Turn<Do, ()>| {
                for event in turn.events {
                    if let Do::Wait(until) = event {
                        assert!(until.recv().is_err());
                    }
                }
                told.send(turn.id).expect("the test listens");
                None
            };
            queue.run(index, turn, || {});
        })
    };
    let threads = (0..threads).map(run).collect();
    (queue, threads)
}

const SOON: Duration = Duration::from_secs(20);

#[test]
fn one_that_is_stuck_holds_up_no_other() {
    let (told, turns) = channel();
    let (queue, threads) = start(2, &told);
    let inlet = queue.inlet();
    let (stuck, until) = channel();
    assert!(inlet.send(id(1), Do::Wait(until)).is_ok());
    for nth in 2..100 {
        assert!(inlet.send(id(nth), Do::Nothing).is_ok());
        // Also those that come while it is stuck.
        thread::sleep(Duration::from_micros(200));
    }
    let mut had: Vec<u64> = (2..100)
        .map(|_| turns.recv_timeout(SOON).expect("its turn"))
        .collect();
    had.sort_unstable();
    assert_eq!(had, (2..100).map(id).collect::<Vec<_>>());
    // More of the one that is stuck waits for it, whoever is free.
    assert!(inlet.send(id(1), Do::Nothing).is_ok());
    let none = turns.recv_timeout(Duration::from_millis(100));
    assert_eq!(none, Err(RecvTimeoutError::Timeout));
    drop(stuck);
    let last = [turns.recv_timeout(SOON), turns.recv_timeout(SOON)];
    assert_eq!(last, [Ok(id(1)); 2]);
    drop(inlet);
    queue.close();
    threads
        .into_iter()
        .for_each(|t| t.join().expect("no panic"));
}

#[test]
fn all_that_was_sent_has_its_turn_before_the_threads_end() {
    const WORKERS: u64 = 3;
    const EVENTS: u64 = 3000;
    let queue: Arc<SharedQueue<u64, u64>> = Arc::new(SharedQueue::new(4));
    let (told, turns) = channel();
    let run = |index| {
        let (queue, told) = (Arc::clone(&queue), told.clone());
        thread::spawn(move || {
            let turn = |turn: Turn<u64, u64>| {
                // What was kept is the next one that has to come.
                let mut next = turn.kept.unwrap_or(0);
                for event in turn.events {
                    assert_eq!(event, next);
                    next += 1;
                }
                told.send((turn.id, next)).expect("the test listens");
                Some(next)
            };
            queue.run(index, turn, || {});
        })
    };
    let threads: Vec<_> = (0..4).map(run).collect();
    let send = |worker: u64| {
        let inlet = queue.inlet();
        thread::spawn(move || {
            for n in 0..EVENTS {
                assert!(inlet.send(id(10 * worker + n % 7), n / 7).is_ok());
            }
        })
    };
    let workers: Vec<_> = (0..WORKERS).map(send).collect();
    workers
        .into_iter()
        .for_each(|w| w.join().expect("no panic"));
    queue.close();
    threads
        .into_iter()
        .for_each(|t| t.join().expect("no panic"));
    drop(told);
    let last: HashMap<u64, u64> = turns.iter().collect();
    assert_eq!(last.len() as u64, 7 * WORKERS);
    assert_eq!(last.values().sum::<u64>(), EVENTS * WORKERS);
    let inlet = queue.inlet();
    drop(queue);
    assert_eq!(inlet.send(id(1), 0), Err(0), "nobody counts any more");
}

#[test]
fn an_event_after_a_quiet_time_wakes_who_sleeps() {
    let (told, turns) = channel();
    let (queue, threads) = start(2, &told);
    let inlet = queue.inlet();
    let began = Instant::now();
    while !queue.bell.has_sleeper() {
        assert!(began.elapsed() < SOON, "nobody sleeps");
        thread::sleep(Duration::from_millis(1));
    }
    assert!(began.elapsed() >= QUIET_AFTER / 2);
    let began = Instant::now();
    assert!(inlet.send(id(1), Do::Nothing).is_ok());
    assert!(!queue.bell.has_sleeper(), "it was not rung for");
    assert_eq!(turns.recv_timeout(SOON), Ok(id(1)));
    println!("woken after {:?}", began.elapsed());
    drop(inlet);
    queue.close();
    threads
        .into_iter()
        .for_each(|t| t.join().expect("no panic"));
}

#[test]
fn the_more_rest_the_less_often_they_look_and_each_does() {
    let times: Vec<u128> = (0..6).map(|level| look_after(level).as_millis()).collect();
    assert_eq!(times, [20, 80, 320, 1000, 1000, 1000]);
    assert_eq!(look_after(63), SLEEP);
}
