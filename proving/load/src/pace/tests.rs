//! The schedule keeps its due times, whoever comes late.

use std::rc::Rc;
use std::time::Duration;

use tokio::task::LocalSet;
use tokio::time::{Instant, sleep};

use super::Schedule;

fn on_one_thread<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    LocalSet::new().block_on(&runtime, work)
}

#[test]
fn a_taker_that_comes_late_gets_the_oldest_due_time() {
    on_one_thread(async {
        let start = Instant::now();
        let schedule = Rc::new(Schedule::new(
            start,
            start + Duration::from_millis(60),
            1000.0,
            u64::MAX,
        ));
        let releasing = Rc::clone(&schedule);
        let releaser = tokio::task::spawn_local(async move { releasing.run().await });
        sleep(Duration::from_millis(30)).await;
        assert_eq!(schedule.next().await, Some(start));
        assert_eq!(
            schedule.next().await,
            Some(start + Duration::from_millis(1))
        );
        releaser.await.expect("no panic").expect("a timer");
        assert_eq!(schedule.next().await, None);
        assert_eq!(schedule.unsent(), 58);
    });
}

#[test]
fn due_requests_are_released_in_time_and_no_more_than_asked() {
    on_one_thread(async {
        let start = Instant::now();
        let schedule = Rc::new(Schedule::new(
            start,
            start + Duration::from_millis(50),
            500.0,
            5,
        ));
        let releasing = Rc::clone(&schedule);
        tokio::task::spawn_local(async move { releasing.run().await });
        let mut dues = Vec::new();
        while let Some(due) = schedule.next().await {
            assert!(Instant::now() >= due, "released before it was due");
            dues.push(due.duration_since(start).as_millis());
        }
        assert_eq!(dues, [0, 2, 4, 6, 8]);
    });
}
