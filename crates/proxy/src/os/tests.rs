//! Both twins, by the same questions.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use rustix::io::{Errno, FdFlags, fcntl_getfd};
use rustix::net::{SendFlags, send};
use socket2::{Domain, Socket, Type};
use testing::{PATIENCE, eventually, found};

use super::{linux, portable};

type Accept = fn(&TcpListener) -> Result<(TcpStream, Option<SocketAddr>), Errno>;

const TWINS: [(&str, Accept, SendFlags); 2] = [
    ("linux", linux::accept, linux::QUIET),
    ("portable", portable::accept, portable::QUIET),
];

fn listener() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("nonblocking");
    listener
}

/// The connection of a client, which may take a moment to be there.
fn accepted(accept: Accept, listener: &TcpListener) -> (TcpStream, Option<SocketAddr>) {
    found("a connection", || match accept(listener) {
        Err(Errno::AGAIN) => None,
        other => Some(other.expect("a connection")),
    })
}

#[test]
fn a_connection_is_given_once_with_its_peer_and_neither_blocks_nor_is_inherited() {
    for (twin, accept, _) in TWINS {
        let listener = listener();
        assert_eq!(accept(&listener).err(), Some(Errno::AGAIN), "{twin}");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (mut connection, from) = accepted(accept, &listener);
        assert_eq!(from, client.local_addr().ok(), "{twin}");
        assert_eq!(accept(&listener).err(), Some(Errno::AGAIN), "{twin}");
        let waits = connection
            .read(&mut [0; 8])
            .expect_err("nothing has come yet");
        assert_eq!(waits.kind(), std::io::ErrorKind::WouldBlock, "{twin}");
        let flags = fcntl_getfd(&connection).expect("flags");
        assert!(flags.contains(FdFlags::CLOEXEC), "{twin}");
    }
}

#[test]
fn a_write_to_a_peer_that_is_gone_is_an_error_and_no_signal() {
    for (twin, accept, quiet) in TWINS {
        let listener = listener();
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        let (mut connection, _) = accepted(accept, &listener);
        drop(client);
        connection
            .write_all(b"answered by a reset")
            .expect("the kernel takes it");
        let refused = found("a reset", || send(&connection, b"more", quiet).err());
        let gone = [Errno::PIPE, Errno::CONNRESET];
        assert!(gone.contains(&refused), "{twin}: {refused:?}");
    }
}

#[test]
fn what_one_twin_knows_of_a_socket_the_other_does_not_claim() {
    let listener = listener();
    let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
    assert_eq!(linux::unacknowledged(&client), Some(0));
    assert_eq!(portable::unacknowledged(&client), None);

    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    linux::limit_unsent(&socket, 4096).expect("Linux has it");
    assert_eq!(socket.tcp_notsent_lowat().ok(), Some(4096));
    portable::limit_unsent(&socket, 8192).expect("nothing to do");
    assert_eq!(socket.tcp_notsent_lowat().ok(), Some(4096));
}

/// A connection's two ends.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    let ours = TcpStream::connect(address).expect("it listens");
    let (theirs, _) = listener.accept().expect("it was connected to");
    for end in [&ours, &theirs] {
        end.set_read_timeout(Some(PATIENCE)).expect("it is open");
    }
    (ours, theirs)
}

#[test]
fn a_peer_that_ended_before_a_request_came_took_nothing_of_it() {
    let (mut ours, theirs) = pair();
    drop(theirs);
    // Its end is there, unread, as with a kept connection that closed a moment ago.
    assert_eq!(ours.peek(&mut [0]).expect("its end"), 0);
    ours.write_all(b"request").expect("the kernel takes it");
    eventually("a reset", || ours.take_error().expect("a socket").is_some());
    assert_eq!(linux::unacknowledged(&ours), Some(7));
}

#[test]
fn a_peer_that_read_the_request_and_then_ended_took_all_of_it() {
    let (mut ours, mut theirs) = pair();
    ours.write_all(b"before").expect("the kernel takes it");
    theirs.read_exact(&mut [0; 6]).expect("it comes");
    ours.write_all(b"request").expect("the kernel takes it");
    theirs.read_exact(&mut [0; 7]).expect("it comes");
    drop(theirs);
    eventually("the last acknowledgement, which may be late", || {
        linux::unacknowledged(&ours) == Some(0)
    });
}
