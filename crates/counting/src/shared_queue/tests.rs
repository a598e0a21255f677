//! Threads that take turns: one that is stuck, many at once, none that has anything to do.

use std::collections::HashMap;
use std::sync::mpsc::{Sender, TryRecvError, channel};

use policy::billing::BilledBy;
use testing::{Began, PATIENCE, eventually};

use super::*;
use crate::exchange_id::exchange_id;

fn id(nth: u64) -> u64 {
    exchange_id(0, nth, BilledBy::Reported)
}

/// What a thread does with an event.
enum Do {
    Nothing,
    /// Tells that it has begun, and stays at it until the other end is gone.
    Wait(Sender<()>, Receiver<()>),
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
                    if let Do::Wait(begun, until) = event {
                        begun.send(()).expect("the test listens");
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

#[test]
fn one_that_is_stuck_holds_up_no_other() {
    let (told, turns) = channel();
    let (queue, threads) = start(2, &told);
    let inlet = queue.inlet();
    let (stuck, until) = channel();
    let (begun, has_begun) = channel();
    assert!(inlet.send(id(1), Do::Wait(begun, until)).is_ok());
    let send = |nth| assert!(inlet.send(id(nth), Do::Nothing).is_ok());
    (2..50).for_each(send);
    // Also those that come while it is stuck.
    has_begun.recv_timeout(PATIENCE).expect("its turn");
    (50..100).for_each(send);
    let mut had: Vec<u64> = (2..100)
        .map(|_| turns.recv_timeout(PATIENCE).expect("its turn"))
        .collect();
    had.sort_unstable();
    assert_eq!(had, (2..100).map(id).collect::<Vec<_>>());
    // More of the one that is stuck waits for it, whoever is free; what came later has had its turn.
    send(1);
    send(100);
    assert_eq!(turns.recv_timeout(PATIENCE), Ok(id(100)));
    assert_eq!(turns.try_recv(), Err(TryRecvError::Empty));
    drop(stuck);
    let last = [(); 2].map(|()| turns.recv_timeout(PATIENCE));
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
    let began = Began::now();
    let (queue, threads) = start(2, &told);
    let inlet = queue.inlet();
    eventually("one of them sleeps", || queue.bell.has_sleeper());
    began.took_at_least(QUIET_AFTER);
    assert!(inlet.send(id(1), Do::Nothing).is_ok());
    assert_eq!(turns.recv_timeout(PATIENCE), Ok(id(1)));
    drop(inlet);
    queue.close();
    threads
        .into_iter()
        .for_each(|t| t.join().expect("no panic"));
}

#[test]
fn who_sleeps_is_rung_for_once() {
    let queue: Shared = Arc::new(SharedQueue::new(1));
    let inlet = queue.inlet();
    queue.bell.join(0);
    assert!(queue.bell.listen(0), "nobody sleeps");
    assert!(inlet.send(id(1), Do::Nothing).is_ok());
    assert!(!queue.bell.has_sleeper(), "it was not rung for");
    // Returns, as it was woken.
    thread::park();
    assert!(inlet.send(id(2), Do::Nothing).is_ok());
}

#[test]
fn the_more_rest_the_less_often_they_look_and_each_does() {
    let times: Vec<u128> = (0..6).map(|level| look_after(level).as_millis()).collect();
    assert_eq!(times, [20, 80, 320, 1000, 1000, 1000]);
    assert_eq!(look_after(63), SLEEP);
}
