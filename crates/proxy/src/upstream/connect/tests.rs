//! Addresses side by side, and whose fault it is when none takes a connection: real sockets, virtual time.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use policy::attempt::Failure;
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};
use tokio::time::Instant;

use super::{APART, blame, kept_off, race};
use crate::still::still;
use crate::timers::Timers;

/// An address that answers no SYN: a listener whose queue is full.
fn silent() -> (SocketAddr, Socket, Vec<TcpStream>) {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    listener.bind(&any.into()).expect("a port");
    listener.listen(0).expect("it listens");
    let address = listener.local_addr().expect("it is bound").as_socket();
    let address = address.expect("IPv4");
    let mut queued = Vec::new();
    loop {
        match TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
            Ok(taken) => queued.push(taken),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::TimedOut);
                return (address, listener, queued);
            }
        }
    }
}

fn refused() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("it is bound")
}

/// How the race between these ends, and when, where time passes as soon as nobody does anything.
fn raced(addresses: &[SocketAddr]) -> (Result<(), Failure>, Duration) {
    in_virtual_time(async |timers| {
        let began = Instant::now();
        let raced = race(addresses.iter().copied(), timers).await;
        (raced.map(drop), began.elapsed())
    })
}

fn in_virtual_time<T>(test: impl AsyncFnOnce(&Timers) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let timers = Timers(runtime.handle().clone());
    runtime.block_on(test(&timers))
}

#[test]
fn what_a_name_of_a_server_of_tools_is_looked_up_to_is_no_metadata_service() {
    let found = |addresses: &[&str]| -> Vec<SocketAddr> {
        let addresses = addresses.iter();
        addresses
            .map(|address| SocketAddr::new(address.parse().expect("an address"), 80))
            .collect()
    };
    let kept = |addresses: &[&str]| kept_off(&found(addresses), "tools.test", false);
    let near = [
        "169.254.169.254",
        "fe80::1",
        "::ffff:169.254.169.254",
        "0.0.0.0",
    ];
    for address in near {
        assert_eq!(
            kept(&[address]).map(|_| ()),
            Err(Failure::Resolve),
            "{address}"
        );
    }
    let mixed = kept(&["169.254.169.254", "127.0.0.1", "10.0.0.7"]).expect("some may");
    assert_eq!(*mixed, found(&["127.0.0.1", "10.0.0.7"]));
    // What objects of a cluster name is not the machine either.
    let off = |addresses: &[&str]| kept_off(&found(addresses), "pod.test", true);
    for address in [
        "127.0.0.1",
        "127.9.9.9",
        "::1",
        "::ffff:127.0.0.1",
        "fe80::1",
    ] {
        assert!(off(&[address]).is_err(), "{address}");
    }
    let mixed = off(&["127.0.0.1", "10.0.0.7"]).expect("one may");
    assert_eq!(*mixed, found(&["10.0.0.7"]));
}

#[test]
fn a_silent_address_does_not_hold_up_the_next() {
    let (silent, _listener, _queued) = silent();
    let good = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = good.local_addr().expect("it is bound");
    // Side by side: no wait for one of them is added to that for another.
    let addresses = [silent, silent, silent, silent, address];
    assert_eq!(raced(&addresses), (Ok(()), 4 * APART));
}

#[test]
fn a_refusal_begins_the_next_at_once_and_the_last_one_ends_the_race() {
    let good = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = good.local_addr().expect("it is bound");
    let at_once = |addresses: &[SocketAddr]| {
        in_virtual_time(async |timers| {
            let _held = still();
            let began = Instant::now();
            let raced = race(addresses.iter().copied(), timers).await.map(drop);
            assert!(began.elapsed().is_zero(), "it waited: {raced:?}");
            raced
        })
    };
    assert_eq!(at_once(&[refused(), address]), Ok(()));
    let all = [refused(), refused(), refused()];
    assert_eq!(at_once(&all), Err(Failure::Connect));
    assert_eq!(at_once(&[]), Err(Failure::Resolve));
}

#[test]
fn what_the_gate_lacks_is_not_the_upstreams_fault() {
    let of = |errno: Errno| blame(&errno.into(), Failure::Connect);
    for errno in [
        Errno::MFILE,
        Errno::NFILE,
        Errno::ADDRNOTAVAIL,
        Errno::NOBUFS,
    ] {
        assert_eq!(of(errno), Failure::LocalCapacity, "{errno}");
    }
    for errno in [Errno::CONNREFUSED, Errno::HOSTUNREACH, Errno::TIMEDOUT] {
        assert_eq!(of(errno), Failure::Connect, "{errno}");
    }
}
