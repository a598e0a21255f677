//! The wheel against a clock that the tests set.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;

thread_local! {
    static NOW: Cell<Mono> = const { Cell::new(Mono(1_000_000_000_000)) };
}

fn pass(time: Duration) {
    NOW.set(NOW.get().after(time));
}

fn wheel() -> Wheel {
    Wheel::new(|| NOW.get())
}

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

#[test]
fn a_waiter_is_woken_once_when_its_time_is_past_and_not_before() {
    for late in [0, 1, 30, 99] {
        let wheel = wheel();
        let (bell, waiter) = (Arc::new(Bell::default()), Waiter::new());
        // Ticks come when they come: the thread has other work, too.
        pass(Duration::from_millis(late));
        let due = wheel.look().after(Duration::from_millis(250));
        wheel.arm(&waiter, due, &Arc::clone(&bell).into());
        while NOW.get() <= due.after(TICK) {
            wheel.advance();
            assert!(bell.rings() == 0 || NOW.get() >= due, "before its time");
            pass(Duration::from_millis(10));
        }
        assert_eq!(bell.rings(), 1, "at most a tick after its time");
        pass(TICK * 2 * SLOTS as u32);
        wheel.advance();
        assert_eq!(bell.rings(), 1);
    }
}

#[test]
fn what_is_put_off_waits_and_what_is_brought_forward_comes_first() {
    let wheel = wheel();
    let (bell, waiter) = (Arc::new(Bell::default()), Waiter::new());
    let waker = Arc::clone(&bell).into();
    let begun = wheel.look();
    pass(Duration::from_secs(100));
    let now = wheel.look();
    wheel.arm(&waiter, begun.after(Duration::from_secs(50)), &waker);
    wheel.arm(&waiter, now.after(Duration::from_hours(1)), &waker);
    wheel.advance();
    assert_eq!(bell.rings(), 0, "it was put off");
    wheel.arm(&waiter, now, &waker);
    pass(2 * TICK);
    wheel.advance();
    assert_eq!(bell.rings(), 1, "it was brought forward");
}

#[test]
fn the_wheel_keeps_nothing_of_those_that_are_gone() {
    let wheel = wheel();
    for n in 0..1000 {
        let waiter = Waiter::new();
        let due = wheel.look().after(Duration::from_secs(n));
        wheel.arm(&waiter, due, Waker::noop());
    }
    pass(TICK * SLOTS as u32);
    wheel.advance();
    assert_eq!(wheel.slots.borrow().iter().map(Vec::len).sum::<usize>(), 0);
}

#[test]
fn an_arrival_is_timed_anew_after_a_sleep_alone() {
    let wheel = wheel();
    let left = wheel.look();
    let between = Duration::from_millis(2);
    pass(between);
    assert_eq!(wheel.arrival(), left);
    woken();
    assert_eq!(wheel.arrival(), left.after(between));
    pass(between);
    assert_eq!(wheel.arrival(), left.after(between));
}
