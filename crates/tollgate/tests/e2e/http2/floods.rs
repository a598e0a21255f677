//! Floods of frames that are cheap for the sender: C2.
//!
//! Invariant: a flood ends its own connection or is answered at the pace at which its sender reads;
//! memory stays bounded, upstream work is cancelled, and others are served meanwhile.
//! Not here: malformed frames (`malformed`).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use testing::{eventually, nothing_happens_for};

use super::{engine, list, stream, whole};
use crate::fixture::{call, config};
use crate::harness::answer::{DONE, LAST_CHUNK, chunk, delta, events_head};
use crate::harness::h2::{self, Ended, Frames};
use crate::harness::{Connection, Gate, Signal, Step, Upstream, chat};

/// Memory that a flood may cost.
const MARGIN_KIB: i64 = 48 << 10;

/// Clock ticks of processor time that the gate has used.
fn ticks(gate: &Gate) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", gate.id())).expect("it runs");
    let after = stat.rsplit(") ").next().unwrap_or_default();
    let fields: Vec<u64> = after.split(' ').map(|f| f.parse().unwrap_or(0)).collect();
    fields[11] + fields[12]
}

/// Runs a flood and asserts that the gate recovers from it. `flood` returns how its connection ended; it is told how many
/// calls of another client were answered meanwhile.
fn survives(flood: impl FnOnce(&mut Frames, &AtomicU32) -> Ended + Send) -> Ended {
    let engine = engine(20);
    let gate = Gate::start(&config(engine.addr(), ""), &[]);
    let before = gate.resident_kib();
    let mut bystander = Connection::open(gate.data);
    let mut frames = Frames::open(gate.data, &[]);
    let answered = AtomicU32::new(0);
    let ended = std::thread::scope(|scope| {
        let flooding = scope.spawn(|| flood(&mut frames, &answered));
        while !flooding.is_finished() {
            let response = bystander.call(&call(
                &chat("gpt-oss-120b", false)
                    .replace("\"messages\"", "\"max_tokens\":1,\"messages\""),
            ));
            assert_eq!(response.status, 200, "{}", response.text());
            answered.fetch_add(1, Ordering::SeqCst);
        }
        flooding.join().expect("the flood ends")
    });
    eventually("upstream work is cancelled", || engine.stats().running == 0);
    let peak = gate.peak_kib();
    assert!(
        peak - before < MARGIN_KIB,
        "{before} KiB, then {peak} KiB at most"
    );
    drop(frames);
    // No work is left over: once it is quiet it uses next to no processor time.
    eventually("the gate is quiet", || {
        let used = ticks(&gate);
        nothing_happens_for(Duration::from_millis(200));
        ticks(&gate) - used < 5
    });
    let last = bystander.call(&call(&chat("gpt-oss-120b", false)));
    assert_eq!(last.status, 200);
    ended
}

#[test]
fn c2_rapid_reset_is_answered_with_enhance_your_calm() {
    let ended = survives(|frames, _| {
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
    let ended = survives(|frames, _| {
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
    let ended = survives(|frames, _| {
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
    let ended = survives(|frames, _| {
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
        // A few times what the budget allows at once, and far less than would use noticeable resources.
        frames.write(&frame.repeat(10_000));
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
    // More than the budget allows at once, were it not for the answer's frames. Each event is a frame: the next one comes
    // once it is there.
    const EVENTS: usize = 1200;
    let seen: Vec<Signal> = std::iter::repeat_with(Signal::default)
        .take(EVENTS)
        .collect();
    let until = seen.clone();
    let upstream = Upstream::start(move |_, _| {
        let event = Step::Send(chunk(delta("x").as_bytes()));
        let mut steps = vec![Step::Send(events_head())];
        for seen in &until {
            steps.extend([event.clone(), Step::Until(seen.clone())]);
        }
        steps.push(Step::Send(
            [&chunk(DONE.as_bytes())[..], LAST_CHUNK].concat(),
        ));
        steps
    });
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    let mut frames = Frames::open(gate.data, &[]);
    frames.write(&whole(1, chat("m", true).as_bytes()));
    let (mut text, mut signals) = (String::new(), seen.into_iter());
    while let Some(frame) = frames.next() {
        assert!(
            frame.kind != h2::GOAWAY && frame.kind != h2::RST_STREAM,
            "{frame:?}"
        );
        if frame.kind != h2::DATA {
            continue;
        }
        text.push_str(&String::from_utf8_lossy(&frame.payload));
        if frame.flags & h2::END_STREAM != 0 {
            break;
        }
        // Both windows for each frame, as some libraries do, and a ping now and then.
        let length = u32::try_from(frame.payload.len())
            .expect("a frame is small")
            .max(1);
        frames.send(h2::WINDOW_UPDATE, 0, 0, &length.to_be_bytes());
        frames.send(h2::WINDOW_UPDATE, 0, 1, &length.to_be_bytes());
        if let Some(seen) = signals.next() {
            seen.give();
        }
    }
    assert_eq!(text.len(), delta("x").len() * EVENTS + DONE.len());
    let record = &gate.records(1)[0];
    assert_eq!(record["outcome"], "completed", "{record}");
}

#[test]
fn c2_floods_of_control_frames_and_empty_data_cost_no_memory() {
    survives(|frames, answered| {
        frames.headers(1, &list(""), false);
        let mut some = h2::frame(h2::SETTINGS, 0, 0, &[]);
        some.extend(h2::frame(h2::PING, 0, 0, &[7; 8]));
        some.extend(h2::frame(2, 0, 1, &[0, 0, 0, 0, 1]));
        some.extend(h2::frame(h2::DATA, 0, 1, b""));
        let some = some.repeat(100);
        // The sender reads nothing meanwhile, so the gate's answers are blocked by flow control.
        let is_enough = || answered.load(Ordering::SeqCst) >= 20;
        frames.timeout(Duration::from_millis(100));
        while !is_enough() && frames.write(&some) {}
        eventually("others are served meanwhile", is_enough);
        Ended::Closed
    });
}
