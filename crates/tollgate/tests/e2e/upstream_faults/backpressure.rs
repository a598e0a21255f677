//! U9: backpressure: a client that reads slowly slows its upstream down; the gate does not buffer the stream.
//!
//! Invariant: the gate buffers at most one read of a stream, whatever the difference in speed.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use testing::{eventually, found, nothing_happens_for, pace};

use super::{call, one};
use crate::harness::answer::{LAST_CHUNK, chunk, events_head, whole};
use crate::harness::{Connection, Gate, Step, Upstream};

const CHUNK_BYTES: usize = 64 << 10;
/// More than the buffers of the sockets on the way hold.
const CHUNKS: usize = 320;
const FEW: usize = 20;
const MORE: usize = 80;
/// Memory that the first streams may add, with that of the allocator; the upstream has 400 MiB for them.
const FEW_MOST_KIB: i64 = 64 << 10;
/// Memory that each further stream may add: one read of output, one event under inspection, and slack.
const EACH_MOST_KIB: i64 = 256;
/// Of the clients, how many read their streams in the end.
const READERS: usize = 2;

/// An event of exactly a chunk.
fn event() -> Vec<u8> {
    let mut event = b"data: ".to_vec();
    event.resize(CHUNK_BYTES - 2, b'x');
    event.extend_from_slice(b"\n\n");
    event
}

/// A connection whose socket takes little, so that little is in the kernel for it.
fn narrow(address: SocketAddr) -> Connection {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).expect("a socket");
    socket
        .set_recv_buffer_size(4 << 10)
        .expect("a socket option");
    socket.set_tcp_mss(1400).expect("a socket option");
    socket.connect(&address.into()).expect("something listens");
    Connection::of(TcpStream::from(socket))
}

#[test]
fn clients_that_do_not_read_cost_the_gate_no_memory() {
    let upstream = Upstream::start(|_, _| {
        vec![
            Step::Send(events_head()),
            Step::Repeat(chunk(&event()), CHUNKS),
            Step::Send(LAST_CHUNK.to_vec()),
        ]
    });
    let bounds = "bounds: { write_stall: 1h }\n";
    let gate = Gate::start(&[bounds, &one(upstream.address)].concat(), &[]);
    let stalled = |n: usize| -> Vec<_> {
        let open = |_| {
            let mut connection = narrow(gate.data);
            connection.send(&call("m", true));
            connection
        };
        (0..n).map(open).collect()
    };
    // So many streams are open, and the upstream gets rid of no more.
    let stuck = |streams: f64| {
        eventually("so many streams are open", || {
            gate.metric("tollgate_open_streams", &[]) == streams
        });
        eventually("no more is taken of the upstream", || {
            let before = upstream.repeated();
            nothing_happens_for(Duration::from_millis(300));
            upstream.repeated() == before
        });
    };
    let before = gate.peak_kib();
    let clients = stalled(FEW);
    stuck(20.0);
    let few = gate.peak_kib();
    let others = stalled(MORE);
    stuck(100.0);
    let many = gate.peak_kib();
    // None of them could end.
    stuck(100.0);
    let (few, more) = (few - before, many - few);
    println!("{FEW} stalled streams added {few} KiB, {MORE} more added {more} KiB");
    assert!(few <= FEW_MOST_KIB, "{FEW} added {few} KiB");
    let most = EACH_MOST_KIB * i64::try_from(MORE).expect("few");
    assert!(more <= most, "{MORE} more added {more} KiB");
    drop(others);
    for mut connection in clients.into_iter().take(READERS) {
        let response = connection.response();
        let got = (response.whole, response.body.len());
        assert_eq!(got, (true, CHUNKS * CHUNK_BYTES));
    }
}

#[test]
fn a_slow_client_that_keeps_reading_is_not_disconnected() {
    const BYTES: usize = 24 << 20;
    let upstream = Upstream::start(|_, _| {
        let mut body = b"{}".to_vec();
        body.resize(BYTES, b' ');
        vec![Step::Send(whole(200, "application/json", &body))]
    });
    let config = format!("bounds: {{ write_stall: 1s }}\n{}", one(upstream.address));
    let gate = Gate::start(&config, &[]);
    // Where this process stands still for as long as the bound, it is no client that keeps reading.
    let calls = found("a slow client gets all of it", || {
        let mut connection = Connection::open(gate.data);
        connection.send(&call("m", false));
        // About 320 KB a second for more than three times the write stall timeout.
        let mut buffer = [0; 16384];
        let mut taken = 0;
        for _ in 0..70 {
            pace(Duration::from_millis(50));
            taken += connection.tcp.read(&mut buffer).ok()?;
        }
        while taken < BYTES {
            taken += (connection.tcp.read(&mut buffer).ok()).filter(|read| *read > 0)?;
        }
        Some(upstream.count())
    });
    let records = gate.records(calls);
    assert_eq!(records[calls - 1]["outcome"], "completed");
}
