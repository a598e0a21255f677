//! Clients of a WebSocket that take nothing, say what nobody serves, or stay too long.
//!
//! Not here: calls over one as an SDK makes them (the end-to-end tests), frames (`wire::websocket`).

use std::rc::Rc;
use std::time::Duration;

use policy::record::{Closed, Outcome};
use policy::snapshot::Snapshot;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::super::connect;
use super::{World, two_backends};
use crate::memory::Pipe;
use crate::worker::Worker;

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
const CREATE: &str = r#"{"type":"response.create","model":"m","input":"hello"}"#;

/// A frame of a client's, masked with nothing.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("short");
    assert!(length < 126, "short");
    [&[first, 0x80 | length, 0, 0, 0, 0], payload].concat()
}

/// Opens a connection to its first frame.
async fn open(worker: &Rc<Worker>) -> Pipe {
    let mut client = connect(worker);
    let request = b"GET /v1/responses HTTP/1.1\r\nhost: gate.test\r\nx-workload-app: app\r\n\
        connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    client.write_all(request).await.expect("a gate");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.expect("a head"));
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{head:?}");
    client
}

/// The next frame of the gate's: its first byte and its payload.
async fn read(client: &mut Pipe) -> Option<(u8, Vec<u8>)> {
    let first = client.read_u8().await.ok()?;
    let length = match client.read_u8().await.ok()? {
        126 => client.read_u16().await.ok()?.into(),
        short => usize::from(short),
    };
    let mut payload = vec![0; length];
    client.read_exact(&mut payload).await.ok()?;
    Some((first, payload))
}

/// Reads to a frame that begins so.
async fn read_to(client: &mut Pipe, first: u8) -> Option<Vec<u8>> {
    loop {
        let (is, payload) = read(client).await?;
        if is == first {
            return Some(payload);
        }
    }
}

/// Upstreams that may take two hours to begin.
fn patient() -> Snapshot {
    let mut s = two_backends();
    for backend in &mut s.backends {
        backend.timeouts.first_byte = Duration::from_secs(2 * 60 * 60);
    }
    s
}

#[test]
fn a_client_that_asks_and_takes_nothing_is_read_no_further_and_then_is_gone() {
    for asks in [frame(PING, &[b'x'; 125]), frame(TEXT, br#"{"type":"a"}"#)] {
        let (world, s) = (World::default(), two_backends());
        let stall = s.bounds.write_stall;
        let written = world.run(s, Vec::new(), usize::MAX, async |worker| {
            let mut client = open(&worker).await;
            let mut written = 0;
            while written < 16 << 20 {
                match timeout(2 * stall, client.write_all(&asks)).await {
                    Ok(Ok(())) => written += asks.len(),
                    Ok(Err(_)) => break,
                    Err(_) => panic!("it is still there"),
                }
            }
            written
        });
        assert!(written < 1 << 20, "{written} bytes were read of it");
        let facts = world.facts();
        assert_eq!(facts.closed, [Closed::WriteStall]);
        assert_eq!(facts.records[0].outcome, Outcome::Aborted);
    }
}

#[test]
fn while_a_call_runs_the_latest_ping_of_many_is_answered() {
    let answer = vec![String::new()];
    let (pongs, last) = World::default().run(patient(), answer, usize::MAX, async |worker| {
        let mut client = open(&worker).await;
        let call = frame(TEXT, CREATE.as_bytes());
        client.write_all(&call).await.expect("a gate");
        for nth in 0..100_000_u32 {
            let ping = frame(PING, &[nth.to_be_bytes(); 25].concat());
            client.write_all(&ping).await.expect("a gate");
        }
        let (mut pongs, mut last) = (0, 0);
        while last < 99_999 {
            let payload = read_to(&mut client, PONG).await.expect("a pong");
            last = u32::from_be_bytes(payload[..4].try_into().expect("four bytes"));
            pongs += 1;
        }
        (pongs, last)
    });
    assert_eq!(last, 99_999);
    assert!(pongs < 1_000, "{pongs} waited for it");
}

#[test]
fn what_nobody_serves_ends_a_call_and_the_connection_by_its_code() {
    let gate = |says: &'static [u8]| {
        let world = World::default();
        let code = world.run(patient(), vec![String::new()], usize::MAX, async |worker| {
            let mut client = open(&worker).await;
            let call = frame(TEXT, CREATE.as_bytes());
            client.write_all(&call).await.expect("a gate");
            // The call is on its way when its pong comes.
            client.write_all(&frame(PING, b"")).await.expect("a gate");
            read_to(&mut client, PONG).await.expect("a pong");
            client.write_all(says).await.expect("a gate");
            read_to(&mut client, CLOSE).await
        });
        let outcomes: Vec<_> = world.facts().records.iter().map(|r| r.outcome).collect();
        (
            code.map(|code| u16::from_be_bytes([code[0], code[1]])),
            outcomes,
        )
    };
    let both = vec![Outcome::Aborted, Outcome::Completed];
    let binary: &[u8] = &[BINARY, 0x80, 0, 0, 0, 0];
    assert_eq!(gate(binary), (Some(1003), both.clone()));
    // No frame: its client masks nothing.
    assert_eq!(gate(&[TEXT, 0]), (Some(1002), both.clone()));
    let closes: &[u8] = &[CLOSE, 0x82, 0, 0, 0, 0, 0x03, 0xe9];
    assert_eq!(gate(closes), (Some(1001), both));
}

#[test]
fn a_connection_is_renewed_within_the_hour_though_calls_wait() {
    let world = World::default();
    let code = world.run(patient(), vec![String::new()], usize::MAX, async |worker| {
        let mut client = open(&worker).await;
        let call = frame(TEXT, CREATE.as_bytes());
        client.write_all(&call.repeat(2)).await.expect("a gate");
        read_to(&mut client, CLOSE).await
    });
    assert_eq!(code, Some(1001_u16.to_be_bytes().to_vec()));
    // The call that ran, and the connection.
    assert_eq!(world.facts().records.len(), 2);
}
