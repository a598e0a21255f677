//! Floods of frames that are cheap for the sender: C2.
//!
//! Invariant: a flood ends its own connection or is answered at the pace at which its sender reads;
//! memory stays bounded, upstream work is cancelled, and others are served meanwhile.
//! Not here: malformed frames (`malformed`).

use std::time::{Duration, Instant};

use super::{engine, list, stream};
use crate::fixture::{call, config};
use crate::harness::h2::{self, Ended, Frames};
use crate::harness::{Connection, Gate, chat, eventually};

/// Memory that a flood may cost, in MiB.
const MARGIN_MIB: i64 = 48;

/// The gate's resident memory.
pub(crate) fn resident_mib(gate: &Gate) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gate.id())).expect("it runs");
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("VmRSS:"))
        .expect("Linux says so");
    let kib: i64 = line
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number");
    kib / 1024
}

/// Clock ticks of processor time that the gate has used.
fn ticks(gate: &Gate) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", gate.id())).expect("it runs");
    let after = stat.rsplit(") ").next().unwrap_or_default();
    let fields: Vec<u64> = after.split(' ').map(|f| f.parse().unwrap_or(0)).collect();
    fields[11] + fields[12]
}

/// Runs a flood and asserts that the gate recovers from it. `flood` returns how its connection ended.
fn survives(flood: impl FnOnce(&mut Frames) -> Ended + Send) -> Ended {
    let engine = engine(20);
    let gate = Gate::start(&config(engine.addr(), ""), &[]);
    let before = resident_mib(&gate);
    let mut bystander = Connection::open(gate.data);
    let mut frames = Frames::open(gate.data, &[]);
    let ended = std::thread::scope(|scope| {
        let flooding = scope.spawn(|| flood(&mut frames));
        let mut slowest = Duration::ZERO;
        while !flooding.is_finished() {
            let began = Instant::now();
            let response = bystander.call(&call(
                &chat("gpt-oss-120b", false)
                    .replace("\"messages\"", "\"max_tokens\":1,\"messages\""),
            ));
            assert_eq!(response.status, 200, "{}", response.text());
            slowest = slowest.max(began.elapsed());
        }
        assert!(
            slowest < Duration::from_secs(3),
            "a bystander waited {slowest:?}"
        );
        flooding.join().expect("the flood ends")
    });
    eventually(
        "upstream work is cancelled",
        Duration::from_secs(10),
        || engine.stats().running == 0,
    );
    let after = resident_mib(&gate);
    assert!(
        after - before < MARGIN_MIB,
        "{before} MiB, then {after} MiB"
    );
    drop(frames);
    // No work is left over: an idle second uses next to no processor time.
    let used = ticks(&gate);
    std::thread::sleep(Duration::from_secs(1));
    let used = ticks(&gate) - used;
    assert!(
        used < 30,
        "{used} ticks of processor time in a second of quiet"
    );
    let last = bystander.call(&call(&chat("gpt-oss-120b", false)));
    assert_eq!(last.status, 200);
    ended
}

#[test]
fn c2_rapid_reset_is_answered_with_enhance_your_calm() {
    let ended = survives(|frames| {
        let body = stream(5000);
        for n in 0..20_000_u32 {
            let id = 2 * n + 1;
            let mut bytes = h2::frame(h2::HEADERS, h2::END_HEADERS, id, &h2::encoded(&list("")));
            bytes.extend(h2::frame(h2::DATA, h2::END_STREAM, id, body.as_bytes()));
            bytes.extend(h2::frame(h2::RST_STREAM, 0, id, &h2::CANCEL.to_be_bytes()));
            if !frames.write(&bytes) {
                break;
            }
        }
        frames.ended(40_001)
    });
    assert!(
        matches!(ended, Ended::GoAway(h2::ENHANCE_YOUR_CALM) | Ended::Closed),
        "{ended:?}"
    );
}

#[test]
fn c2_streams_that_provoke_resets_are_answered_with_enhance_your_calm() {
    let ended = survives(|frames| {
        for n in 0..20_000_u32 {
            let id = 2 * n + 1;
            let mut bytes = h2::frame(h2::HEADERS, h2::END_HEADERS, id, &h2::encoded(&list("")));
            // WINDOW_UPDATE with an increment of 0 is a stream error.
            bytes.extend(h2::frame(h2::WINDOW_UPDATE, 0, id, &[0; 4]));
            if !frames.write(&bytes) {
                break;
            }
        }
        frames.ended(40_001)
    });
    assert!(
        matches!(ended, Ended::GoAway(_) | Ended::Closed),
        "{ended:?}"
    );
}

#[test]
fn c2_endless_continuation_frames_close_the_connection() {
    let ended = survives(|frames| {
        frames.send(h2::HEADERS, h2::END_STREAM, 1, &h2::encoded(&list("")));
        let more = h2::encoded(&[("x-a", "v".repeat(16_000).as_str())]);
        for _ in 0..20_000 {
            if !frames.send(h2::CONTINUATION, 0, 1, &more) {
                break;
            }
        }
        frames.ended(3)
    });
    assert!(
        matches!(ended, Ended::GoAway(_) | Ended::Closed),
        "{ended:?}"
    );
}

#[test]
fn c2_empty_continuation_frames_close_the_connection() {
    let ended = survives(|frames| {
        frames.send(h2::HEADERS, h2::END_STREAM, 1, &h2::encoded(&list("")));
        let some = h2::frame(h2::CONTINUATION, 0, 1, b"").repeat(1000);
        for _ in 0..1000 {
            if !frames.write(&some) {
                break;
            }
        }
        frames.ended(3)
    });
    assert!(
        matches!(ended, Ended::GoAway(_) | Ended::Closed),
        "{ended:?}"
    );
}

#[test]
fn c2_frames_that_carry_no_request_share_one_budget() {
    let empty = h2::frame(h2::DATA, 0, 1, b"");
    let rows = [
        ("PRIORITY", h2::frame(h2::PRIORITY, 0, 3, &[0, 0, 0, 0, 1])),
        (
            "a window for the connection",
            h2::frame(h2::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
        ),
        (
            "a window for a stream that ended",
            h2::frame(h2::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
        ),
        (
            "a reset of a stream that ended",
            h2::frame(h2::RST_STREAM, 0, 1, &h2::CANCEL.to_be_bytes()),
        ),
        ("an unknown kind", h2::frame(0xfa, 0, 0, b"x")),
        ("PING", h2::frame(h2::PING, 0, 0, &[7; 8])),
        ("SETTINGS", h2::frame(h2::SETTINGS, 0, 0, &[])),
        ("empty DATA", empty),
    ];
    let engine = engine(0);
    let gate = Gate::start(&config(engine.addr(), ""), &[]);
    for (n, (what, frame)) in rows.into_iter().enumerate() {
        let mut frames = Frames::open(gate.data, &[]);
        let is_open = what == "empty DATA";
        frames.headers(1, &list(""), false);
        if !is_open {
            let body = chat("gpt-oss-120b", false);
            frames.send(h2::DATA, h2::END_STREAM, 1, body.as_bytes());
            assert_eq!(frames.ended(1), Ended::Whole(200), "{what}");
        }
        // Somewhat more than the budget allows at once, and far less than would use noticeable resources.
        for _ in 0..60 {
            if !frames.write(&frame.repeat(100)) {
                break;
            }
        }
        let ended = frames.ended(u32::MAX);
        assert!(
            matches!(ended, Ended::GoAway(h2::ENHANCE_YOUR_CALM) | Ended::Closed),
            "{what}: {ended:?}"
        );
        if is_open {
            // The h2 library has a limit of its own for these, which is reached first.
            continue;
        }
        let bound = ["bound=\"http2_glitches\""];
        let closed = gate.metric("tollgate_connections_closed_total", &bound);
        let expected = u32::try_from(n + 1).expect("few");
        assert!(
            (closed - f64::from(expected)).abs() < 0.1,
            "{what}: {closed}"
        );
    }
}

#[test]
fn c2_window_updates_and_pings_of_an_active_client_are_never_refused() {
    // A millisecond apart, so that each event is a frame.
    let engine = engine(1);
    let gate = Gate::start(&config(engine.addr(), ""), &[]);
    let mut frames = Frames::open(gate.data, &[]);
    let tokens = 3000;
    frames.headers(1, &list(""), false);
    let whole = stream(tokens);
    let to_its_cap = whole.strip_suffix('}').expect("an object");
    let body = format!("{to_its_cap},\"ignore_eos\":true}}");
    frames.send(h2::DATA, h2::END_STREAM, 1, body.as_bytes());
    let mut events = 0;
    while let Some(frame) = frames.next() {
        assert!(
            frame.kind != h2::GOAWAY && frame.kind != h2::RST_STREAM,
            "{frame:?}"
        );
        if frame.kind != h2::DATA {
            continue;
        }
        events += 1;
        if frame.flags & h2::END_STREAM != 0 {
            break;
        }
        // Both windows for each frame, as some libraries do.
        let length = u32::try_from(frame.payload.len())
            .expect("a frame is small")
            .max(1);
        frames.send(h2::WINDOW_UPDATE, 0, 0, &length.to_be_bytes());
        frames.send(h2::WINDOW_UPDATE, 0, 1, &length.to_be_bytes());
    }
    assert!(events > 100, "{events} frames");
    let record = &gate.records(1)[0];
    assert_eq!(record["outcome"], "completed", "{record}");
}

#[test]
fn c2_floods_of_control_frames_and_empty_data_cost_no_memory() {
    survives(|frames| {
        frames.headers(1, &list(""), false);
        let mut some = h2::frame(h2::SETTINGS, 0, 0, &[]);
        some.extend(h2::frame(h2::PING, 0, 0, &[7; 8]));
        some.extend(h2::frame(2, 0, 1, &[0, 0, 0, 0, 1]));
        some.extend(h2::frame(h2::DATA, 0, 1, b""));
        let some = some.repeat(100);
        let until = Instant::now() + Duration::from_secs(2);
        // The sender reads nothing meanwhile, so the gate's answers are blocked by flow control.
        frames.timeout(Duration::from_millis(500));
        while Instant::now() < until && frames.write(&some) {}
        Ended::Closed
    });
}
