//! What is known of bytes that were written when the peer has ended.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::unacknowledged;

/// A connection's two ends.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    let ours = TcpStream::connect(address).expect("it listens");
    let (theirs, _) = listener.accept().expect("it was connected to");
    (ours, theirs)
}

#[test]
fn a_peer_that_ended_before_a_request_came_took_nothing_of_it() {
    let (mut ours, theirs) = pair();
    drop(theirs);
    // Its end is there, unread, as with a kept connection that closed a moment ago.
    std::thread::sleep(Duration::from_millis(20));
    ours.write_all(b"request").expect("the kernel takes it");
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(unacknowledged(&ours), Some(7));
}

#[test]
fn a_peer_that_read_the_request_and_then_ended_took_all_of_it() {
    let (mut ours, mut theirs) = pair();
    ours.write_all(b"before").expect("the kernel takes it");
    theirs.read_exact(&mut [0; 6]).expect("it comes");
    ours.write_all(b"request").expect("the kernel takes it");
    theirs.read_exact(&mut [0; 7]).expect("it comes");
    drop(theirs);
    let until = Instant::now() + Duration::from_secs(5);
    while unacknowledged(&ours) != Some(0) {
        assert!(
            Instant::now() < until,
            "an acknowledgement may be late, not missing"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}
