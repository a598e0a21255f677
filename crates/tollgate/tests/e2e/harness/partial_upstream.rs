//! An upstream that sends part of an answer and then reports when the gate closes the connection.
//!
//! Not here: scripted whole answers (`upstream`).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use testing::PATIENCE;

/// The upstream; its threads end with the test's process.
pub(crate) struct PartialUpstream {
    pub(crate) address: SocketAddr,
    reached: Receiver<()>,
    closed: Receiver<()>,
}

impl PartialUpstream {
    /// Reads each request and sends `answer`, which may be empty or end in the middle.
    pub(crate) fn start(answer: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let ((to_reached, reached), (to_closed, closed)) = (channel(), channel());
        thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                let (answer, reached, closed) =
                    (answer.clone(), to_reached.clone(), to_closed.clone());
                thread::spawn(move || watch(tcp, &answer, &reached, &closed));
            }
        });
        Self {
            address,
            reached,
            closed,
        }
    }

    /// Waits until a request has arrived and the answer is sent.
    pub(crate) fn reached(&self) {
        self.reached
            .recv_timeout(PATIENCE)
            .expect("the gate calls its upstream");
    }

    /// Whether any request has arrived so far.
    pub(crate) fn is_reached(&self) -> bool {
        self.reached.try_recv().is_ok()
    }

    /// Waits until the gate has closed a connection.
    pub(crate) fn closed(&self) {
        self.closed
            .recv_timeout(PATIENCE)
            .expect("the gate closes its upstream connection")
    }
}

fn watch(mut tcp: TcpStream, answer: &[u8], reached: &Sender<()>, closed: &Sender<()>) {
    let mut request = Vec::new();
    let mut buffer = [0; 16384];
    while !is_whole(&request) {
        match tcp.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(read) => request.extend_from_slice(&buffer[..read]),
        }
    }
    if tcp.write_all(answer).is_err() {
        return;
    }
    if reached.send(()).is_err() {
        return; // The test no longer waits for it.
    }
    while matches!(tcp.read(&mut buffer), Ok(1..)) {}
    let _: Result<(), _> = closed.send(());
}

fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|w| w == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
    let mut lengths = head
        .lines()
        .filter_map(|l| l.strip_prefix("content-length: "));
    let length = lengths
        .next()
        .map_or(0, |l| l.trim().parse().expect("a length"));
    request.len() >= end + 4 + length
}
