//! U9: backpressure: a client that reads slowly slows its upstream down; the gate does not buffer the stream.
//!
//! Invariant: the gate buffers at most one read of a stream, whatever the difference in speed.

use std::io::Read;
use std::time::Duration;

use super::{call, one};
use crate::harness::answer::{LAST_CHUNK, chunk, events_head, whole};
use crate::harness::{Connection, Gate, Step, Upstream, eventually};

const CHUNK_BYTES: usize = 64 << 10;
const CHUNKS: usize = 320;
const FEW: usize = 20;
const MORE: usize = 80;
/// Memory that the first streams may add, with that of the allocator; the upstream has 400 MiB for them.
const FEW_MOST_KIB: u64 = 64 << 10;
/// Memory that each further stream may add: one read of output, one event under inspection, and slack.
const EACH_MOST_KIB: u64 = 256;

fn resident_kib(gate: &Gate) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gate.id()));
    let status = status.expect("the gate runs");
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let kib = line
        .and_then(|l| l.trim().strip_suffix(" kB"))
        .expect("a resident size");
    kib.trim().parse().expect("a number")
}

/// An event of exactly a chunk.
fn event() -> Vec<u8> {
    let mut event = b"data: ".to_vec();
    event.resize(CHUNK_BYTES - 2, b'x');
    event.extend_from_slice(b"\n\n");
    event
}

#[test]
fn clients_that_do_not_read_cost_the_gate_no_memory() {
    let upstream = Upstream::start(|_, _| {
        let mut steps = vec![Step::Send(events_head())];
        steps.extend(std::iter::repeat_n(Step::Send(chunk(&event())), CHUNKS));
        steps.push(Step::Send(LAST_CHUNK.to_vec()));
        steps
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    let stalled = |n: usize| -> Vec<_> {
        let open = |_| {
            let mut connection = Connection::open(gate.data);
            connection.send(&call("m", true));
            connection
        };
        (0..n).map(open).collect()
    };
    let grown = || {
        let mut most = 0;
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(100));
            most = most.max(resident_kib(&gate));
        }
        most
    };
    let open = |streams: f64| {
        eventually("so many streams are open", Duration::from_secs(20), || {
            gate.metric("tollgate_open_streams", &[]) == streams
        });
    };
    let before = resident_kib(&gate);
    let clients = stalled(FEW);
    open(20.0);
    let few = grown();
    let others = stalled(MORE);
    open(100.0);
    let many = grown();
    // None of them could end.
    open(100.0);
    let (few, more) = (few.saturating_sub(before), many.saturating_sub(few));
    println!("{FEW} stalled streams added {few} KiB, {MORE} more added {more} KiB");
    assert!(few <= FEW_MOST_KIB, "{FEW} added {few} KiB");
    let most = EACH_MOST_KIB * u64::try_from(MORE).expect("few");
    assert!(more <= most, "{MORE} more added {more} KiB");
    drop(others);
    let readers: Vec<_> = clients
        .into_iter()
        .map(|mut connection| {
            std::thread::spawn(move || {
                let response = connection.response();
                (response.whole, response.body.len())
            })
        })
        .collect();
    for reader in readers {
        let got = reader.join().expect("the reader ends");
        assert_eq!(got, (true, CHUNKS * CHUNK_BYTES));
    }
}

#[test]
fn a_slow_client_that_keeps_reading_is_not_disconnected() {
    const BYTES: usize = 24 << 20;
    let upstream = Upstream::start(|_, _| {
        let body = vec![b' '; BYTES];
        vec![Step::Send(whole(200, "application/json", &body))]
    });
    let config = format!("bounds: {{ write_stall: 2s }}\n{}", one(upstream.address));
    let gate = Gate::start(&config, &[]);
    let mut connection = Connection::open(gate.data);
    connection.send(&call("m", false));
    // About 320 KB a second for more than three times the write stall timeout.
    let mut buffer = [0; 16384];
    let mut taken = 0;
    for _ in 0..140 {
        std::thread::sleep(Duration::from_millis(50));
        taken += connection.tcp.read(&mut buffer).expect("the gate goes on");
    }
    while taken < BYTES {
        let read = connection.tcp.read(&mut buffer).expect("the gate goes on");
        assert!(read > 0, "cut after {taken} bytes");
        taken += read;
    }
    assert_eq!(gate.records(1)[0]["outcome"], "completed");
}
