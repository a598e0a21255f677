//! The bounds of a pool, and that new ones count at once.

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
    assert!(pool.take().is_some());
    tokio::time::advance(Duration::from_millis(1)).await;
    pool.prune();
    assert!(pool.take().is_none());
}

#[tokio::test]
async fn an_idle_connection_that_its_peer_closed_is_not_taken_and_not_kept() {
    let pool = pool(PoolBounds::default());
    let (one, end) = connection(&pool);
    pool.put(one);
    drop(end);
    assert!(pool.take().is_none());
    let (one, end) = connection(&pool);
    let (two, _open) = connection(&pool);
    pool.put(one);
    pool.put(two);
    assert_eq!(pool.prune(), 2, "both are open");
    drop(end);
    assert_eq!(pool.prune(), -1, "the one is closed");
    assert!(pool.take().is_some());
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
        let handle = h2::take(&pool).expect("it has room");
        let busy = handle.busy();
        assert!(h2::take(&pool).is_none());
        pool.bound(PoolBounds::default());
        assert!(h2::take(&pool).is_some());
        pool.bound(PoolBounds {
            streams: 1,
            ..PoolBounds::default()
        });
        drop(busy);
        assert!(h2::take(&pool).is_some());
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
        let busy = h2::take(&pool).expect("the first").busy();
        pool.prune();
        assert_eq!(pool.h2.borrow().len(), 3, "one is busy, two rest");
        tokio::time::advance(Duration::from_secs(4)).await;
        pool.prune();
        assert_eq!(pool.h2.borrow().len(), 1, "two have rested for too long");
        drop(busy);
        pool.prune();
        assert_eq!(pool.h2.borrow().len(), 1, "it rests from now on");
        tokio::time::advance(Duration::from_secs(2)).await;
        drop(h2::take(&pool).expect("it rests").busy());
        tokio::time::advance(Duration::from_secs(2)).await;
        pool.prune();
        assert_eq!(pool.h2.borrow().len(), 1, "it was used in between");
        tokio::time::advance(Duration::from_secs(4)).await;
        pool.prune();
        assert!(pool.h2.borrow().is_empty());
    });
    run.await;
}
