//! Addresses side by side, and whose fault it is when none takes a connection.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use policy::attempt::Failure;
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};

use super::{blame, race};
use crate::timers::Timers;

/// An address that answers no SYN: a listener whose queue is full.
fn silent() -> (SocketAddr, Socket, Vec<Socket>) {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    listener.bind(&any.into()).expect("a port");
    listener.listen(0).expect("it listens");
    let address = listener.local_addr().expect("it is bound");
    let queued = (0..8).map(|_| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_nonblocking(true).expect("a socket option");
        // In progress, or for good.
        drop(socket.connect(&address));
        socket
    });
    let queued = queued.collect();
    (address.as_socket().expect("IPv4"), listener, queued)
}

fn refused() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("it is bound")
}

/// How the race between these ends, within so long.
fn raced(addresses: &[SocketAddr], within: Duration) -> Option<Result<(), Failure>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let timers = Timers(runtime.handle().clone());
    runtime.block_on(async {
        let raced = timers.timeout(within, race(addresses, &timers)).await;
        raced.ok().map(|raced| raced.map(drop))
    })
}

#[test]
fn a_silent_address_does_not_hold_up_the_next() {
    let (silent, _listener, _queued) = silent();
    let good = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let good = good.local_addr().map(|address| (address, good));
    let (good, _good) = good.expect("it is bound");
    let probe = TcpStream::connect_timeout(&silent, Duration::from_millis(100));
    assert_eq!(
        probe.expect_err("nothing comes").kind(),
        io::ErrorKind::TimedOut
    );
    // One after the other with 1.5 s for each would take 6 s.
    let addresses = [silent, silent, silent, silent, good];
    assert_eq!(raced(&addresses, Duration::from_secs(4)), Some(Ok(())));
    assert_eq!(raced(&[silent], Duration::from_millis(600)), None);
}

#[test]
fn a_refusal_begins_the_next_at_once_and_the_last_one_ends_the_race() {
    let good = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = good.local_addr().expect("it is bound");
    let within = Duration::from_secs(5);
    assert_eq!(raced(&[refused(), address], within), Some(Ok(())));
    let all = [refused(), refused(), refused()];
    assert_eq!(raced(&all, within), Some(Err(Failure::Connect)));
    assert_eq!(raced(&[], within), Some(Err(Failure::Resolve)));
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
