//! WebSockets of services: opened by an HTTP/1.1 upgrade, then copied both ways, counted and recorded at their end.
//!
//! Not here: frames, which the gate does not read.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use serde_json::json;

use crate::harness::{Connection, Gate, Sdk, free_address};

const ASKED: &str = "connection: keep-alive, Upgrade\r\nupgrade: WebSocket\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

fn config(service: SocketAddr, idle: &str) -> String {
    format!(
        "backends: {{ web: {{ serves: http, url: http://{service}, timeouts: {{ idle: {idle} }} }} }}\n\
         routes: [ {{ workload: w, match: {{ path: /socket }}, backend: web, limits: [ {{ requests: 1, per: 366d }} ] }} ]\n"
    )
}

/// A service that gives 101 and a word at once, and then back what comes. It ends where it reads a `!`, and with it.
fn service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            thread::spawn(move || drop(echo(socket)));
        }
    });
    address
}

fn echo(mut socket: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let asked = head.contains("\r\nconnection: upgrade\r\nupgrade: websocket\r\n");
    if !asked || !head.contains("\r\nsec-websocket-key: dghlihnhbxbszsbub25jzq==\r\n") {
        return socket.write_all(b"HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n");
    }
    socket.write_all(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
          Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello ",
    )?;
    let mut buffer = [0; 4096];
    loop {
        let read = socket.read(&mut buffer)?;
        socket.write_all(&buffer[..read])?;
        if read == 0 || buffer[..read].contains(&b'!') {
            return Ok(());
        }
    }
}

fn open(gate: &Gate, fields: &str, then: &str) -> Connection<TcpStream> {
    let mut connection = Connection::open(gate.data);
    let head =
        format!("GET /socket HTTP/1.1\r\nhost: g\r\nx-workload-app: w\r\n{fields}\r\n{then}");
    connection.send(head.as_bytes());
    connection
}

fn until(connection: &mut Connection<TcpStream>, end: &str) -> String {
    while !connection.unread().ends_with(end.as_bytes()) {
        assert!(connection.more(), "{end:?} comes");
    }
    String::from_utf8_lossy(connection.unread()).into_owned()
}

#[test]
fn a_websocket_of_a_real_client_passes_both_ways_and_is_one_request() {
    let service = free_address();
    let gate = Gate::start(&config(service, "5m"), &[]);
    let said = Sdk::Python.run(
        "websocket",
        &json!({
            "listen": service.port(),
            "url": format!("ws://{}/socket?a=b", gate.data),
            "headers": { "x-workload-app": "w", "authorization": "Bearer mine" },
        }),
    );
    let wanted = json!({
        "first": "first chat",
        "text": "text",
        "large": [true, true, true, true],
        "pong": true,
        "closed": [4000, "as asked"],
        "second": 429,
    });
    assert_eq!(said, wanted);
    let mut records = gate.records(2);
    // The second is refused before the first has ended.
    records.sort_by_key(|record| record["status"].as_u64());
    let of = |name: &str| records.iter().map(|r| r[name].clone()).collect::<Vec<_>>();
    assert_eq!(of("status"), [json!(101), json!(429)], "{records:?}");
    assert_eq!(of("outcome"), ["completed", "refused"]);
    for name in ["bytes_in", "bytes_out"] {
        let bytes = records[0][name].as_u64().expect("a number");
        assert!(bytes > 4 * 256 * 8192, "{name}: {bytes}");
    }
}

#[test]
fn what_a_client_sends_behind_its_head_and_a_service_behind_its_101_is_not_lost() {
    let gate = Gate::start(&config(service(), "5m"), &[]);
    let mut socket = open(&gate, ASKED, "early ");
    let said = until(&mut socket, "hello early ");
    assert!(
        said.starts_with(
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        ),
        "{said}"
    );
    assert!(
        said.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
        "{said}"
    );
    assert!(
        !said.contains("content-length") && !said.contains("transfer-encoding"),
        "{said}"
    );
    socket.send(b"bye!");
    until(&mut socket, "bye!");
    assert!(
        !socket.more(),
        "the end of the service is that of its client"
    );
    assert_eq!(gate.records(1)[0]["outcome"], "completed");
}

#[test]
fn a_client_that_ends_its_side_ends_the_websocket() {
    let gate = Gate::start(&config(service(), "5m"), &[]);
    let mut socket = open(&gate, ASKED, "");
    until(&mut socket, "hello ");
    drop(socket);
    assert_eq!(gate.records(1)[0]["status"], 101);
}

#[test]
fn a_silent_websocket_ends_at_the_idle_time_of_its_backend() {
    let gate = Gate::start(&config(service(), "300ms"), &[]);
    let mut socket = open(&gate, ASKED, "");
    until(&mut socket, "hello ");
    while socket.more() {}
    assert_eq!(gate.records(1)[0]["status"], 101);
}

#[test]
fn what_asks_for_no_websocket_gets_none() {
    let gate = Gate::start(
        &config(service(), "5m").replace("requests: 1,", "requests: 9,"),
        &[],
    );
    for fields in [
        "",
        "upgrade: websocket\r\n",
        "connection: upgrade\r\nupgrade: h2c\r\n",
        "connection: upgrade\r\nupgrade: websocket\r\nupgrade: h2c\r\n",
        // Without a key, of another version, with two keys, and with a key that ends with the connection.
        "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n",
        "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 7\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        "connection: upgrade, sec-websocket-key\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    ] {
        let answer = open(&gate, fields, "").response();
        assert_eq!(answer.status, 426, "{fields:?}");
        assert_eq!(answer.header("upgrade"), None);
    }
}
