//! An engine that records every request and reads no body with GET, HEAD and DELETE: it parses what follows such
//! a head as the next request.
//!
//! Not here: how it parses requests (`decoders`).

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::decoders::Decoder;
use crate::harness::answer;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) body: Vec<u8>,
}

#[derive(Default)]
struct Records {
    /// By the gate's request id.
    seen: HashMap<String, Seen>,
    newest: Option<Seen>,
    /// Heads of requests without a request id of the gate, or with one that was seen before.
    unmatched: Vec<String>,
}

/// The engine; its threads end with the test's process.
pub(super) struct Engine {
    pub(super) address: SocketAddr,
    records: Arc<Mutex<Records>>,
}

impl Engine {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let records = Arc::<Mutex<Records>>::default();
        let to = Arc::clone(&records);
        std::thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                let to = Arc::clone(&to);
                std::thread::spawn(move || serve(tcp, &to));
            }
        });
        Self { address, records }
    }

    /// Every request so far, by the gate's request id.
    pub(super) fn seen(&self) -> HashMap<String, Seen> {
        self.records().seen.clone()
    }

    /// The last request.
    pub(super) fn newest(&self) -> Option<Seen> {
        self.records().newest.clone()
    }

    /// How many requests arrived so far.
    pub(super) fn count(&self) -> usize {
        let records = self.records();
        records.seen.len() + records.unmatched.len()
    }

    /// The heads of requests that belong to no exchange of the gate.
    pub(super) fn unmatched(&self) -> Vec<String> {
        self.records().unmatched.clone()
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(mut tcp: TcpStream, records: &Mutex<Records>) {
    drop(tcp.set_nodelay(true));
    let mut unread = Vec::new();
    while let Some(head) = head(&mut tcp, &mut unread) {
        let mut words = head.split(' ').map(str::to_owned);
        let (method, target) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let takes_body = !matches!(&*method, "GET" | "HEAD" | "DELETE");
        let length = if takes_body { length(&head) } else { 0 };
        while unread.len() < length {
            if !more(&mut tcp, &mut unread) {
                return;
            }
        }
        let body: Vec<u8> = unread.drain(..length).collect();
        let answer = answer_to(&method, &body);
        {
            let mut records = records.lock().unwrap_or_else(PoisonError::into_inner);
            let seen = Seen {
                method,
                target,
                body,
            };
            records.newest = Some(seen.clone());
            match field(&head, "x-request-id") {
                Some(id) if !records.seen.contains_key(id) => {
                    records.seen.insert(id.to_owned(), seen);
                }
                _ => records.unmatched.push(head),
            }
        }
        if tcp.write_all(&answer).is_err() {
            return;
        }
    }
}

/// A stream where one is asked for; the usage is always the same.
fn answer_to(method: &str, body: &[u8]) -> Vec<u8> {
    let usage = answer::counts(1, 1);
    if method == "HEAD" {
        return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n"
            .to_vec();
    }
    let streams = Decoder::JavaScript
        .read(body)
        .is_some_and(|call| call.stream);
    if streams {
        let events = [
            answer::delta("a"),
            answer::usage_event(&usage),
            answer::DONE.to_owned(),
        ];
        return answer::events(events.concat().as_bytes());
    }
    answer::json(
        200,
        &format!(r#"{{"id":"c","choices":[],"usage":{usage}}}"#),
    )
}

fn head(tcp: &mut TcpStream, unread: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = unread.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&unread[..end]).into_owned();
            unread.drain(..end + 4);
            return Some(head);
        }
        if !more(tcp, unread) {
            return None;
        }
    }
}

fn more(tcp: &mut TcpStream, unread: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 16384];
    match tcp.read(&mut buffer) {
        Ok(0) | Err(_) => false,
        Ok(n) => {
            unread.extend_from_slice(&buffer[..n]);
            true
        }
    }
}

fn length(head: &str) -> usize {
    field(head, "content-length").map_or(0, |length| length.parse().expect("a length"))
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let lines = head
        .split("\r\n")
        .skip(1)
        .filter_map(|line| line.split_once(':'));
    let mut values = lines.filter(|(n, _)| n.eq_ignore_ascii_case(name));
    values.next().map(|(_, value)| value.trim())
}
