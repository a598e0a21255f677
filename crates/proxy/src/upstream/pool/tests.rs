//! The bounds of a pool, and that new ones count at once.

use std::net::SocketAddr;
use std::time::Duration;

use policy::snapshot::{Origin, PoolBounds, Protocol};
use tokio::io::AsyncReadExt as _;

use super::{Connection, Pool};
use crate::memory::{Pipe, pipe};
use crate::stream::Stream;
use crate::timers::Timers;
use crate::upstream::h2;

fn pool(bounds: PoolBounds) -> Pool {
    let pool = Pool::new(Origin {
        tls: false,
        host: "one.test".to_owned(),
        port: 80,
        protocol: Protocol::Auto,
        ca_file: String::new(),
        certificate: String::new(),
        proxy: None,
        is_kept_off_the_link: false,
        is_kept_off_the_machine: false,
        tls_name: None,
        alt_names: [].into(),
    });
    pool.bound(bounds);
    pool
}

/// A connection that the pool has room for, and its other end.
fn connection(pool: &Pool) -> (Connection, Pipe) {
    let (ours, theirs) = pipe();
    let open = pool.admit().expect("there is room");
    (Connection::new(Stream::Memory(ours), open), theirs)
}

#[test]
fn a_pool_opens_as_many_connections_as_it_may() {
    let two = PoolBounds {
        connections: 2,
        ..PoolBounds::default()
    };
    let pool = pool(two);
    let open = [pool.admit(), pool.admit()];
    assert!(open.iter().all(Option::is_some));
    assert!(pool.admit().is_none());
    pool.bound(PoolBounds::default());
    assert!(pool.admit().is_some());
    pool.bound(two);
    assert!(pool.admit().is_none());
    drop(open);
    assert!(pool.admit().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_pool_keeps_as_many_idle_connections_as_it_may_for_as_long() {
    let pool = pool(PoolBounds {
        idle: 2,
        idle_time: Duration::from_secs(3),
        ..PoolBounds::default()
    });
    let (connections, _ends): (Vec<_>, Vec<_>) = (0..3).map(|_| connection(&pool)).unzip();
    pool.prune();
    connections.into_iter().for_each(|one| pool.put(one));
    assert_eq!(pool.idle.borrow().len(), 2);
    tokio::time::advance(Duration::from_secs(3)).await;
    assert_eq!(pool.prune(), -1, "the third was closed");
    assert!(pool.take(None).is_some());
    tokio::time::advance(Duration::from_millis(1)).await;
    pool.prune();
    assert!(pool.take(None).is_none());
}

#[tokio::test]
async fn an_idle_connection_that_its_peer_closed_is_not_taken_and_not_kept() {
    let pool = pool(PoolBounds::default());
    let (one, end) = connection(&pool);
    pool.put(one);
    drop(end);
    assert!(pool.take(None).is_none());
    let (one, end) = connection(&pool);
    let (two, _open) = connection(&pool);
    pool.put(one);
    pool.put(two);
    assert_eq!(pool.prune(), 2, "both are open");
    drop(end);
    assert_eq!(pool.prune(), -1, "the one is closed");
    assert!(pool.take(None).is_some());
}

#[tokio::test]
async fn connections_of_a_pool_that_is_gone_are_counted_to_their_end() {
    let pool = pool(PoolBounds::default());
    let (busy, _end) = connection(&pool);
    let (idle, _other) = connection(&pool);
    pool.put(idle);
    assert_eq!(pool.prune(), 2);
    let retired = pool.opened();
    drop(pool);
    assert_eq!((retired.change(), retired.is_none()), (-1, false));
    drop(busy);
    assert_eq!((retired.change(), retired.is_none()), (-1, true));
}

#[tokio::test]
async fn an_http2_connection_has_as_many_calls_as_it_may() {
    let local = tokio::task::LocalSet::new();
    let run = local.run_until(async {
        let pool = pool(PoolBounds {
            streams: 1,
            ..PoolBounds::default()
        });
        let (ours, mut theirs) = pipe();
        let open = pool.admit().expect("there is room");
        let timers = Timers(tokio::runtime::Handle::current());
        let begun = h2::begin(&pool, &timers, Stream::Memory(ours), open).await;
        assert!(begun.is_ok());
        let mut preface = [0; 24];
        theirs.read_exact(&mut preface).await.expect("a preface");
        let handle = h2::take(&pool, None).expect("it has room");
        let busy = handle.busy();
        assert!(h2::take(&pool, None).is_none());
        pool.bound(PoolBounds::default());
        assert!(h2::take(&pool, None).is_some());
        pool.bound(PoolBounds {
            streams: 1,
            ..PoolBounds::default()
        });
        drop(busy);
        assert!(h2::take(&pool, None).is_some());
    });
    run.await;
}

#[tokio::test(start_paused = true)]
async fn shared_connections_that_rest_are_closed_as_others_are() {
    let local = tokio::task::LocalSet::new();
    let run = local.run_until(async {
        let pool = pool(PoolBounds {
            idle: 2,
            idle_time: Duration::from_secs(3),
            ..PoolBounds::default()
        });
        let timers = Timers(tokio::runtime::Handle::current());
        let mut ends = Vec::new();
        for _ in 0..4 {
            let (ours, theirs) = pipe();
            let open = pool.admit().expect("there is room");
            let begun = h2::begin(&pool, &timers, Stream::Memory(ours), open).await;
            assert!(begun.is_ok());
            ends.push(theirs);
        }
        let busy = h2::take(&pool, None).expect("the first").busy();
        pool.prune();
        assert_eq!(pool.h2.borrow().len(), 3, "one is busy, two rest");
        tokio::time::advance(Duration::from_secs(4)).await;
        pool.prune();
        assert_eq!(pool.h2.borrow().len(), 1, "two have rested for too long");
        drop(busy);
        pool.prune();
        assert_eq!(pool.h2.borrow().len(), 1, "it rests from now on");
        tokio::time::advance(Duration::from_secs(2)).await;
        drop(h2::take(&pool, None).expect("it rests").busy());
        tokio::time::advance(Duration::from_secs(2)).await;
        pool.prune();
        assert_eq!(pool.h2.borrow().len(), 1, "it was used in between");
        tokio::time::advance(Duration::from_secs(4)).await;
        pool.prune();
        assert!(pool.h2.borrow().is_empty());
    });
    run.await;
}

/// The pool's name has these addresses from now on.
fn found(pool: &Pool, addresses: &[&str]) {
    let at = |ip: &&str| SocketAddr::new(ip.parse().expect("an address"), 80);
    let addresses: Vec<SocketAddr> = addresses.iter().map(at).collect();
    pool.names.apply("one.test", addresses);
}

fn connection_to(pool: &Pool, address: &str) -> (Connection, Pipe) {
    let (mut connection, end) = connection(pool);
    connection.address = address.parse().expect("an address");
    (connection, end)
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_to_no_connection_whose_address_the_name_has_no_longer() {
    let pool = pool(PoolBounds::default());
    found(&pool, &["192.0.2.1"]);
    let (old, _end) = connection_to(&pool, "192.0.2.1");
    pool.put(old);
    let busy = connection_to(&pool, "192.0.2.1");
    found(&pool, &["192.0.2.2"]);
    assert!(pool.take(pool.names.turn()).is_none());
    let (new, _open) = connection_to(&pool, "192.0.2.2");
    pool.put(new);
    assert!(pool.take(pool.names.turn()).is_some());
    tokio::time::advance(Duration::from_secs(20)).await;
    found(&pool, &["192.0.2.2"]);
    pool.prune();
    assert!(pool.idle.borrow().is_empty());
    pool.put(busy.0);
    assert!(pool.idle.borrow().is_empty(), "it closes after its call");
    assert_eq!((pool.take_moved(), pool.take_moved()), (2, 0));
}

#[tokio::test]
async fn kept_connections_to_several_addresses_are_taken_in_turn() {
    let pool = pool(PoolBounds::default());
    let both = ["192.0.2.1", "192.0.2.2"];
    found(&pool, &both);
    let (kept, _ends): (Vec<_>, Vec<_>) = [both, both]
        .concat()
        .into_iter()
        .map(|to| connection_to(&pool, to))
        .unzip();
    kept.into_iter().for_each(|one| pool.put(one));
    let mut taken = Vec::new();
    for _ in 0..4 {
        let to = pool.names.turn();
        let one = pool.take(to).expect("one is kept");
        assert_eq!(Some(one.address), to);
        taken.push(one.address.to_string());
    }
    assert_ne!(taken.first(), taken.get(1));
    assert_eq!(taken.first(), taken.get(2));
    assert!(pool.take(pool.names.turn()).is_none());
}
