//! The wheel against the clock: real time, short waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::time::Instant;

use super::*;
use crate::clock::monotonic;

#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Bell {
    fn rings(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A wheel that began so long ago, as if nobody had ticked since.
fn begun(ago: Duration) -> Wheel {
    let mut wheel = Wheel::new(monotonic);
    wheel.base.0 -= nanos(ago);
    wheel
}

#[test]
fn a_waiter_is_woken_once_when_its_time_is_past_and_not_before() {
    let wheel = Wheel::new(monotonic);
    let (bell, waiter) = (Arc::new(Bell::default()), Waiter::new());
    let begun = Instant::now();
    let due = wheel.look().after(Duration::from_millis(250));
    wheel.arm(&waiter, due, &Arc::clone(&bell).into());
    while bell.rings() == 0 {
        std::thread::sleep(Duration::from_millis(10));
        wheel.advance();
        assert!(begun.elapsed() < Duration::from_secs(5), "never woken");
    }
    assert!(wheel.look() >= due);
    wheel.advance();
    assert_eq!(bell.rings(), 1);
}

#[test]
fn what_is_put_off_waits_and_what_is_brought_forward_comes_first() {
    let mut wheel = begun(Duration::from_secs(100));
    let (bell, waiter) = (Arc::new(Bell::default()), Waiter::new());
    let waker = Arc::clone(&bell).into();
    let now = wheel.look();
    let earlier = |by: Duration| Mono(now.0 - nanos(by));
    wheel.arm(&waiter, earlier(Duration::from_secs(50)), &waker);
    wheel.arm(&waiter, now.after(Duration::from_hours(1)), &waker);
    wheel.advance();
    assert_eq!(bell.rings(), 0, "it was put off");
    wheel.arm(&waiter, earlier(Duration::from_millis(1)), &waker);
    wheel.base.0 -= nanos(Duration::from_millis(200));
    wheel.advance();
    assert_eq!(bell.rings(), 1, "it was brought forward");
}

#[test]
fn the_wheel_keeps_nothing_of_those_that_are_gone() {
    let wheel = begun(Duration::ZERO);
    for n in 0..1000 {
        let waiter = Waiter::new();
        let due = wheel.look().after(Duration::from_secs(n));
        wheel.arm(&waiter, due, Waker::noop());
    }
    let mut wheel = wheel;
    wheel.base.0 -= nanos(TICK * SLOTS as u32);
    wheel.advance();
    assert_eq!(wheel.slots.borrow().iter().map(Vec::len).sum::<usize>(), 0);
}

#[test]
fn an_arrival_is_timed_anew_after_a_sleep_alone() {
    let wheel = Wheel::new(monotonic);
    let left = wheel.look();
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(wheel.arrival(), left);
    woken();
    let arrived = wheel.arrival();
    assert!(arrived >= left.after(Duration::from_millis(2)));
    assert_eq!(wheel.arrival(), arrived);
}
