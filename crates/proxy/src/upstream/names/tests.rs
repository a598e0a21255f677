//! What is kept of a name, for how long, and in which order; who waits for a look-up, and who need not: in virtual time.

use std::cell::Cell;
use std::future::{Future, ready};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::runtime::LocalOptions;
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::{FRESH_FOR, MAX_ADDRESSES, Names, PATIENCE, interleaved};
use crate::timers::Timers;

const HOUR: Duration = Duration::from_secs(3600);

fn addresses(of: &[&str]) -> Vec<SocketAddr> {
    of.iter().map(|a| a.parse().expect("an address")).collect()
}

fn run<T>(test: impl AsyncFnOnce(&Timers) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build_local(LocalOptions::default())
        .expect("a runtime");
    let timers = Timers(runtime.handle().clone());
    runtime.block_on(test(&timers))
}

async fn turns(many: usize) {
    for _ in 0..many {
        yield_now().await;
    }
}

/// A look-up that is counted and answers after so many turns.
fn counted(
    asked: &Rc<Cell<usize>>,
    after: usize,
    answer: io::Result<Vec<SocketAddr>>,
) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + use<> {
    asked.set(asked.get() + 1);
    async move {
        turns(after).await;
        answer
    }
}

#[test]
fn the_last_good_addresses_serve_while_look_ups_fail() {
    let good = addresses(&["192.0.2.1:80"]);
    run(async |timers| {
        let names = Names::default();
        names.keep_for(HOUR);
        let failing = || ready(Err(io::Error::other("no")));
        assert!(names.found("h", timers, failing).await.is_err());
        let found = names.found("h", timers, || ready(Ok(good.clone()))).await;
        assert_eq!(&*found.expect("it is found"), &good[..]);
        for _ in 0..3 {
            names.doubt();
            let found = names.found("h", timers, failing).await;
            assert_eq!(&*found.expect("the last good ones"), &good[..]);
        }
        names.doubt();
        let none = names.found("h", timers, || ready(Ok(Vec::new()))).await;
        assert_eq!(&*none.expect("no address is no answer"), &good[..]);
        names.doubt();
        let new = addresses(&["192.0.2.2:80"]);
        let found = names.found("h", timers, || ready(Ok(new.clone()))).await;
        assert_eq!(&*found.expect("the new ones"), &new[..]);
        tokio::time::advance(HOUR).await;
        let found = names.found("h", timers, failing).await;
        assert!(found.is_err(), "they were found too long ago");
    });
}

#[test]
fn a_look_up_that_hangs_gives_way_to_the_last_good_addresses() {
    let good = addresses(&["192.0.2.1:80"]);
    run(async |timers| {
        let names = Names::default();
        names.keep_for(HOUR);
        let found = names.found("h", timers, || ready(Ok(good.clone()))).await;
        assert!(found.is_ok());
        names.doubt();
        let (answer, answered) = oneshot::channel();
        let hanging = async || Ok(answered.await.expect("it is answered in the end"));
        let began = Instant::now();
        let found = names.found("h", timers, hanging).await;
        assert_eq!(&*found.expect("the last good ones"), &good[..]);
        assert_eq!(began.elapsed(), PATIENCE, "it is waited for first");

        let second = || -> std::future::Pending<_> { panic!("a second look-up beside the first") };
        names.doubt();
        let began = Instant::now();
        let found = names.found("h", timers, second).await;
        assert_eq!(&*found.expect("the last good ones"), &good[..]);
        assert!(began.elapsed().is_zero(), "patience is lost once");

        let late = addresses(&["192.0.2.2:80"]);
        assert!(answer.send(late.clone()).is_ok(), "the look-up goes on");
        turns(10).await;
        let found = names.found("h", timers, second).await;
        assert_eq!(&*found.expect("what came late"), &late[..]);
    });
}

#[test]
fn connections_of_one_moment_share_a_look_up() {
    let good = addresses(&["192.0.2.1:80"]);
    run(async |timers| {
        let (names, asked) = (Names::default(), Rc::new(Cell::new(0)));
        let look_up = || counted(&asked, 1, Ok(good.clone()));
        let ask = || names.found("h", timers, look_up);
        let (a, b, c) = tokio::join!(ask(), ask(), ask());
        assert!(a.is_ok() && b.is_ok() && c.is_ok());
        assert_eq!(asked.get(), 1);
        names.doubt();
        assert!(ask().await.is_ok());
        assert_eq!(asked.get(), 2, "after none of them took a connection");
        tokio::time::advance(FRESH_FOR).await;
        assert!(ask().await.is_ok());
        assert_eq!(asked.get(), 3, "another moment");
        let full = 24;
        let fails = || counted(&asked, 1, Err(io::Error::from_raw_os_error(full)));
        let unknown = Names::default();
        let ask = || unknown.found("h", timers, fails);
        let (a, b, c) = tokio::join!(ask(), ask(), ask());
        for shared in [a, b, c] {
            let error = shared.expect_err("a failure is shared, too");
            assert_eq!(error.raw_os_error(), Some(full), "with its reason");
        }
        assert_eq!(asked.get(), 4);
        assert!(ask().await.is_err());
        assert_eq!(asked.get(), 5, "who comes after a failure asks anew");
    });
}

#[test]
fn whoever_gives_up_leaves_the_look_up_to_the_next_one() {
    let good = addresses(&["192.0.2.1:80"]);
    run(async |timers| {
        let (names, asked) = (Names::default(), Rc::new(Cell::new(0)));
        let mut found = None;
        for _ in 0..20 {
            // It takes longer than any of them waits, and less than all of them do.
            let look_up = || counted(&asked, 50, Ok(good.clone()));
            found = tokio::select! {
                found = names.found("h", timers, look_up) => Some(found),
                () = turns(20) => None,
            };
            if found.is_some() {
                break;
            }
        }
        let found = found.expect("one of them gets an answer");
        assert_eq!(&*found.expect("it is found"), &good[..]);
        assert_eq!(asked.get(), 1);
    });
}

#[test]
fn a_look_up_whose_task_is_cut_off_holds_up_nobody() {
    let good = addresses(&["192.0.2.1:80"]);
    run(async |timers| {
        let names = Names::default();
        let breaks = async || panic!("a look-up that breaks");
        let told = names.found("h", timers, breaks).await;
        assert!(told.is_err());
        let found = names.found("h", timers, || ready(Ok(good.clone()))).await;
        assert_eq!(&*found.expect("the next one begins"), &good[..]);
    });
}

#[test]
fn families_take_turns_beginning_with_the_systems_choice() {
    let mixed = addresses(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"]);
    let order = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"];
    assert_eq!(interleaved(mixed), addresses(&order));
    let four_first = addresses(&["1.1.1.1:1", "2.2.2.2:1", "[::1]:1"]);
    let order = ["1.1.1.1:1", "[::1]:1", "2.2.2.2:1"];
    assert_eq!(interleaved(four_first), addresses(&order));
    let many = vec!["1.1.1.1:1"; 100];
    assert_eq!(interleaved(addresses(&many)).len(), MAX_ADDRESSES);
    assert!(interleaved(Vec::new()).is_empty());
}
