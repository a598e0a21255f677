//! A relay before a gateway that misbehaves in one way.
//!
//! Not here: what the gateway behind it does.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

/// What it does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    Nothing,
    /// Sends what a client gave as its credential once more, under a name that goes upstream.
    CopiesCredential,
    /// Adds an upstream's key to every answer.
    EchoesKey,
    /// Says an upstream's key in an interim answer before each.
    HintsKey,
    /// Ends an answer that was cut as if it were whole.
    EndsCleanly,
    /// Cuts streams before their third event.
    Truncates,
}

/// The relay; its threads end with the test's process.
pub(super) struct Relay {
    pub(super) port: u16,
}

impl Relay {
    /// Before the gateway at this port.
    pub(super) fn start(gateway: u16, wrong: Wrong) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                thread::spawn(move || relay(client, gateway, wrong));
            }
        });
        Self { port }
    }
}

fn relay(client: TcpStream, gateway: u16, wrong: Wrong) {
    let Ok(gateway) = TcpStream::connect(("127.0.0.1", gateway)) else {
        return;
    };
    let (from, to) = (client.try_clone(), gateway.try_clone());
    let (from, to) = (from.expect("a socket"), to.expect("a socket"));
    thread::spawn(move || {
        pump(from, &to, |head| match wrong {
            Wrong::CopiesCredential => copied(head),
            _ => head.to_owned(),
        });
        let _ = to.shutdown(Shutdown::Write);
    });
    if wrong == Wrong::Truncates {
        truncated(gateway, &client);
        let _ = client.shutdown(Shutdown::Both);
        return;
    }
    pump(gateway, &client, |head| match wrong {
        Wrong::EchoesKey => format!("{head}x-debug: Bearer gemini-api-key\r\n"),
        Wrong::HintsKey => {
            format!("HTTP/1.1 103 Early Hints\r\nlink: gemini-api-key\r\n\r\n{head}")
        }
        _ => head.to_owned(),
    });
    if wrong == Wrong::EndsCleanly {
        // The client has gone where its answer was whole.
        let _ = (&client).write_all(b"0\r\n\r\n");
    }
    let _ = client.shutdown(Shutdown::Both);
}

/// Copies until the end, with the lines of the first head changed.
fn pump(mut from: TcpStream, mut to: &TcpStream, change: impl Fn(&str) -> String) {
    let (mut head, mut buffer, mut is_past) = (Vec::new(), [0; 16384], false);
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if is_past {
            if to.write_all(&buffer[..count]).is_err() {
                return;
            }
            continue;
        }
        head.extend_from_slice(&buffer[..count]);
        let Some(end) = head.windows(4).position(|part| part == b"\r\n\r\n") else {
            continue;
        };
        is_past = true;
        let mut changed = change(&String::from_utf8_lossy(&head[..end + 2])).into_bytes();
        changed.extend_from_slice(&head[end + 2..]);
        if to.write_all(&changed).is_err() {
            return;
        }
    }
}

/// Copies until the end, or to the third event of a stream.
fn truncated(mut from: TcpStream, mut to: &TcpStream) {
    let (mut all, mut sent, mut buffer) = (Vec::new(), 0, [0; 16384]);
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        all.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&all);
        let mut events = text.match_indices("data: ").map(|(at, _)| at);
        let third = events.nth(2).filter(|_| text.contains("text/event-stream"));
        let end = third.unwrap_or(all.len());
        if to.write_all(&all[sent..end]).is_err() || third.is_some() {
            return;
        }
        sent = end;
    }
}

/// A head with its credential a second time.
fn copied(head: &str) -> String {
    let credential = head
        .lines()
        .find_map(|line| line.strip_prefix("authorization: "));
    credential.map_or_else(
        || head.to_owned(),
        |value| format!("{head}x-title: {value}\r\n"),
    )
}
