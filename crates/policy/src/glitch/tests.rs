//! Budgets of frames by example.

use std::time::Duration;

use super::{BURST, Glitches, PER_ANSWER, PER_REQUEST, PER_SECOND};
use crate::clock::Mono;
use wire::http2::{DATA, END_STREAM, FrameHead, HEADERS};

const START: Mono = Mono(0);

fn frame(kind: u8, length: u32) -> FrameHead {
    FrameHead {
        length,
        kind,
        flags: 0,
    }
}

/// How many frames of this kind it takes at one moment.
fn taken(glitches: &mut Glitches, kind: u8, length: u32, now: Mono) -> u32 {
    let fits = |_: &u32| glitches.received(frame(kind, length), || now);
    u32::try_from((0..10 * BURST).take_while(fits).count()).expect("few")
}

#[test]
fn every_kind_draws_from_the_same_budget() {
    for kind in (2..=255_u8).chain([DATA]) {
        let mut glitches = Glitches::new(START);
        assert_eq!(taken(&mut glitches, kind, 0, START), BURST, "{kind}");
        assert_eq!(taken(&mut glitches, 8, 4, START), 0, "after {kind}");
    }
}

#[test]
fn data_that_may_be_padding_alone_is_not_free() {
    let padded = |length| FrameHead {
        length,
        kind: DATA,
        flags: 0x8,
    };
    let mut glitches = Glitches::new(START);
    let fits = |length| move |glitches: &mut Glitches| glitches.received(padded(length), || START);
    let short = (0..2 * BURST).take_while(|_| fits(256)(&mut glitches));
    assert_eq!(short.count(), BURST as usize);
    assert!(fits(257)(&mut glitches), "it holds a byte of data at least");
}

#[test]
fn data_is_free_and_requests_and_answers_earn() {
    let mut glitches = Glitches::new(START);
    assert_eq!(taken(&mut glitches, DATA, 1, START), 10 * BURST);
    assert_eq!(taken(&mut glitches, 2, 5, START), BURST);
    assert!(glitches.received(frame(HEADERS, 40), || START));
    assert_eq!(taken(&mut glitches, 2, 5, START), PER_REQUEST);
    glitches.sent(frame(HEADERS, 20));
    glitches.sent(frame(DATA, 300));
    glitches.sent(FrameHead {
        flags: END_STREAM,
        ..frame(DATA, 0)
    });
    assert_eq!(taken(&mut glitches, 8, 4, START), 3 * PER_ANSWER);
    // Windows of a byte earn no further windows.
    glitches.sent(frame(DATA, 1));
    glitches.sent(frame(6, 8));
    assert_eq!(taken(&mut glitches, 8, 4, START), 0);
}

#[test]
fn time_gives_back_up_to_the_burst() {
    let mut glitches = Glitches::new(START);
    assert_eq!(taken(&mut glitches, 6, 8, START), BURST);
    let second = START.after(Duration::from_secs(1));
    assert_eq!(taken(&mut glitches, 6, 8, second), PER_SECOND);
    let day = START.after(Duration::from_secs(86_400));
    assert_eq!(taken(&mut glitches, 6, 8, day), BURST);
}
