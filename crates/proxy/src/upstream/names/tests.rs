//! What is kept of a name, for how long, and in which order.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::{MAX_ADDRESSES, Names, interleaved};
use crate::timers::Timers;

const HOUR: Duration = Duration::from_secs(3600);

fn addresses(of: &[&str]) -> Vec<SocketAddr> {
    of.iter().map(|a| a.parse().expect("an address")).collect()
}

fn run<T>(test: impl AsyncFnOnce(&Timers) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let timers = Timers(runtime.handle().clone());
    runtime.block_on(test(&timers))
}

#[test]
fn the_last_good_addresses_serve_while_look_ups_fail() {
    let good = addresses(&["192.0.2.1:80"]);
    run(async |timers| {
        let names = Names::default();
        names.keep_for(HOUR);
        let failing = || async { Err(io::Error::other("no")) };
        assert!(names.found("h", timers, failing).await.is_err());
        let found = names
            .found("h", timers, || async { Ok(good.clone()) })
            .await;
        assert_eq!(&*found.expect("it is found"), &good[..]);
        for _ in 0..3 {
            names.doubt();
            let found = names.found("h", timers, failing).await;
            assert_eq!(&*found.expect("the last good ones"), &good[..]);
        }
        names.doubt();
        let none = names.found("h", timers, || async { Ok(Vec::new()) }).await;
        assert_eq!(&*none.expect("no address is no answer"), &good[..]);
        names.doubt();
        let new = addresses(&["192.0.2.2:80"]);
        let found = names.found("h", timers, || async { Ok(new.clone()) }).await;
        assert_eq!(&*found.expect("the new ones"), &new[..]);
    });
}

#[test]
fn a_look_up_that_hangs_gives_way_to_the_last_good_addresses() {
    let good = addresses(&["192.0.2.1:80"]);
    run(async |timers| {
        let names = Names::default();
        names.keep_for(HOUR);
        let found = names
            .found("h", timers, || async { Ok(good.clone()) })
            .await;
        assert!(found.is_ok());
        names.doubt();
        let hanging = || std::future::pending();
        let found = timers
            .timeout(Duration::from_secs(10), names.found("h", timers, hanging))
            .await
            .expect("it does not hang");
        assert_eq!(&*found.expect("the last good ones"), &good[..]);
    });
}

#[test]
fn connections_of_one_moment_share_a_look_up() {
    let good = addresses(&["192.0.2.1:80"]);
    run(async |timers| {
        let (names, asked) = (Names::default(), Cell::new(0));
        let look_up = || async {
            asked.set(asked.get() + 1);
            tokio::task::yield_now().await;
            Ok(good.clone())
        };
        let ask = || names.found("h", timers, look_up);
        let (a, b, c) = tokio::join!(ask(), ask(), ask());
        assert!(a.is_ok() && b.is_ok() && c.is_ok());
        assert_eq!(asked.get(), 1);
        names.doubt();
        assert!(ask().await.is_ok());
        assert_eq!(asked.get(), 2, "after none of them took a connection");
        let fails = || async {
            asked.set(asked.get() + 1);
            tokio::task::yield_now().await;
            Err(io::Error::other("no"))
        };
        let unknown = Names::default();
        let ask = || unknown.found("h", timers, fails);
        let (a, b, c) = tokio::join!(ask(), ask(), ask());
        assert!(a.is_err() && b.is_err() && c.is_err());
        assert_eq!(asked.get(), 3, "a failure is shared, too");
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
