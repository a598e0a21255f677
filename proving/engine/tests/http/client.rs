//! A blocking HTTP/1.1 client: one request on one connection, and the whole answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use engine::{EngineConfig, EngineHandle, Stats, spawn_thread};
use serde_json::{Value, json};

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// The data of each server-sent event, in order.
    pub(crate) fn events(&self) -> Vec<String> {
        let data = |event: &str| {
            event
                .lines()
                .find_map(|l| l.strip_prefix("data: "))
                .map(str::to_owned)
        };
        self.body
            .split_terminator("\n\n")
            .map(|e| data(e).expect("an event has data"))
            .collect()
    }
}

/// An engine without delays.
pub(crate) fn fast() -> EngineConfig {
    EngineConfig {
        ttft: Duration::ZERO,
        inter_token: Duration::ZERO,
        inspect: true,
        ..EngineConfig::default()
    }
}

pub(crate) fn start(config: EngineConfig) -> EngineHandle {
    spawn_thread(config).expect("a free port")
}

/// Waits until the engine's totals are so, and gives them.
pub(crate) fn wait_for(engine: &EngineHandle, what: &str, is_so: impl Fn(&Stats) -> bool) -> Stats {
    testing::found(what, || Some(engine.stats()).filter(&is_so))
}

pub(crate) fn chat(extra: Value) -> Value {
    let mut body =
        json!({"model": "gpt-oss-120b", "messages": [{"role": "user", "content": "How are you?"}]});
    for (member, value) in extra.as_object().expect("an object") {
        body[member] = value.clone();
    }
    body
}

pub(crate) fn post(addr: SocketAddr, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    send(addr, "POST", path, headers, body)
}

/// A chat call without headers of its own.
pub(crate) fn post_chat(addr: SocketAddr, body: &Value) -> Reply {
    post(addr, "/v1/chat/completions", &[], &body.to_string())
}

/// Asserts that a call is refused, and that the refusal says so.
pub(crate) fn assert_refused(addr: SocketAddr, path: &str, body: &Value, says: &str) {
    let reply = post(addr, path, &[], &body.to_string());
    assert_eq!(reply.status, 400, "{path} {body}: {}", reply.body);
    let error = &reply.json()["error"];
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains(says), "{says}: {message}");
}

pub(crate) fn get(addr: SocketAddr, path: &str) -> Reply {
    send(addr, "GET", path, &[], "")
}

pub(crate) fn open(
    addr: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> TcpStream {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(testing::PATIENCE)).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: engine\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes()).unwrap();
    // The engine may refuse after the head and close.
    let _ = stream.write_all(body.as_bytes());
    stream
}

pub(crate) fn send(
    addr: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut raw = Vec::new();
    open(addr, method, path, headers, body)
        .read_to_end(&mut raw)
        .unwrap();
    reply(&raw)
}

pub(crate) fn reply(raw: &[u8]) -> Reply {
    let split = raw
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .expect("a whole head");
    let head = String::from_utf8(raw[..split].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let rest = &raw[split + 4..];
    let chunked = head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked");
    let body = if chunked {
        dechunk(rest)
    } else {
        rest.to_vec()
    };
    Reply {
        status,
        head,
        body: String::from_utf8(body).unwrap(),
    }
}

pub(crate) fn dechunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let line = rest
            .windows(2)
            .position(|w| w == b"\r\n")
            .expect("a chunk size");
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        let data = &rest[line + 2..];
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&data[..size]);
        assert_eq!(&data[size..size + 2], b"\r\n");
        rest = &data[size + 2..];
    }
}
