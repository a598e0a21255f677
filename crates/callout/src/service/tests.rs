//! The thread, its room, and its end.

use std::future::pending;
use std::sync::mpsc;
use std::time::Duration;

use testing::{Began, PATIENCE, eventually};

use super::*;

const LONG: Duration = Duration::from_secs(60);

/// Waits on a runtime that is not the service's.
fn wait<T>(answered: Answered<T>) -> Result<T, Fault> {
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(answered)
}

#[test]
fn an_answer_is_awaited_on_another_runtime() {
    let service = Service::start().expect("a thread");
    let here = std::thread::current().id();
    let there = wait(
        service
            .handle()
            .ask(LONG, async { Ok(std::thread::current().id()) }),
    );
    assert_ne!(there, Ok(here));
    assert!(there.is_ok());
}

#[test]
fn a_question_ends_in_time() {
    let service = Service::start().expect("a thread");
    let within = Duration::from_millis(30);
    let began = Began::now();
    let found = wait(service.handle().ask(within, pending::<Result<(), Fault>>()));
    assert!(matches!(found, Err(Fault::Late { .. })), "{found:?}");
    began.took_at_least(within);
}

#[test]
fn beyond_its_room_the_next_question_is_unanswered_at_once() {
    let service = Service::start().expect("a thread");
    let mut kept: Vec<_> = (0..QUESTIONS_MAX)
        .map(|_| service.handle().ask(LONG, pending::<Result<(), Fault>>()))
        .collect();
    assert_eq!(
        wait(service.handle().ask(LONG, async { Ok(()) })),
        Err(Fault::Full)
    );
    drop(kept.pop());
    eventually("a dropped answer gives room", || {
        wait(service.handle().ask(LONG, async { Ok(()) })) == Ok(())
    });
}

#[test]
fn a_question_that_nobody_waits_for_is_dropped() {
    struct Told(mpsc::Sender<()>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.send(()).expect("a test that waits");
        }
    }
    let service = Service::start().expect("a thread");
    let (tell, told) = mpsc::channel();
    let told_of = Told(tell);
    let answered = service.handle().ask(LONG, async move {
        let never = pending::<Result<(), Fault>>().await;
        drop(told_of);
        never
    });
    drop(answered);
    told.recv_timeout(PATIENCE).expect("it was dropped");
}

#[test]
fn closing_ends_what_runs_and_what_is_asked_later() {
    let service = Service::start().expect("a thread");
    let handle = service.handle().clone();
    let running = handle.ask(LONG, pending::<Result<(), Fault>>());
    service.close();
    assert_eq!(wait(running), Err(Fault::Closed));
    assert_eq!(wait(handle.ask(LONG, async { Ok(()) })), Err(Fault::Closed));
}

#[test]
fn a_question_that_panics_is_unanswered_and_the_next_is_answered() {
    let service = Service::start().expect("a thread");
    let broken = service.handle().ask(LONG, async { panic!("on purpose") });
    assert_eq!(wait::<()>(broken), Err(Fault::Closed));
    assert_eq!(wait(service.handle().ask(LONG, async { Ok(7) })), Ok(7));
}

#[tokio::test(start_paused = true)]
async fn a_task_ends_with_its_owner() {
    let handle = Handle::here();
    let (tell, told) = oneshot::channel::<()>();
    let running = handle.run(async move {
        pending::<()>().await;
        drop(tell);
    });
    tokio::task::yield_now().await;
    drop(running);
    assert!(told.await.is_err());
}
