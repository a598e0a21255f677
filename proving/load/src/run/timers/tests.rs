//! Nothing before it is due, and how long after it.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::Timers;

fn on_one_thread<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(Default::default())
        .expect("a runtime");
    runtime.block_on(work)
}

#[test]
fn nothing_wakes_before_it_is_due_whatever_the_order_and_the_lateness_is_told() {
    let late = on_one_thread(async {
        let timers = Rc::new(Timers::new().expect("a timer"));
        let driving = Rc::clone(&timers);
        let driver = tokio::task::spawn_local(async move { driving.run().await });
        let late = Rc::new(std::cell::RefCell::new(Vec::new()));
        let start = Instant::now();
        let wait = |at: u64| {
            let (timers, late) = (Rc::clone(&timers), Rc::clone(&late));
            // Later ones are asked for first, and some are due together.
            let due = start + Duration::from_micros(20_000 - at / 2 * 100);
            tokio::task::spawn_local(async move {
                timers.until(due).await;
                let now = Instant::now();
                assert!(now >= due, "woken before it was due");
                late.borrow_mut().push(now - due);
            })
        };
        let waits: Vec<_> = (0..200).map(wait).collect();
        for wait in waits {
            wait.await.expect("no panic");
        }
        assert!(timers.waiting.borrow().is_empty());
        driver.abort();
        late.take()
    });
    assert_eq!(late.len(), 200);
    let mut late = late;
    late.sort_unstable();
    eprintln!(
        "lateness of timers: half within {:?}, all within {:?}",
        late[100], late[199]
    );
}

#[test]
fn a_wait_that_is_given_up_leaves_nothing_behind() {
    on_one_thread(async {
        let timers = Timers::new().expect("a timer");
        let mut far = Box::pin(timers.until(Instant::now() + Duration::from_secs(3600)));
        let looked_at = poll_fn(|cx| Poll::Ready(far.as_mut().poll(cx))).await;
        assert!(looked_at.is_pending() && timers.waiting.borrow().len() == 1);
        drop(far);
        assert!(timers.waiting.borrow().is_empty());
        timers.until(Instant::now()).await;
    });
}
