//! Every form of an answer, read in any number of pieces.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Form, Heard, Meter};
use crate::encoding::Coding;
use crate::usage::{Reading, Usage};

const JSON: &str =
    r#"{"id":"x","usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#;

fn events() -> String {
    let usage =
        r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#;
    format!("data: {{\"choices\":[{{}}]}}\n\ndata: {usage}\n\ndata: [DONE]\n\n")
}

fn gzipped(text: &str) -> Vec<u8> {
    let mut coder = GzEncoder::new(Vec::new(), Compression::default());
    coder.write_all(text.as_bytes()).expect("memory");
    coder.finish().expect("memory")
}

fn said() -> Reading {
    Reading::Valid(Usage {
        prompt: Some(3),
        completion: Some(4),
        total: Some(7),
        ..Usage::default()
    })
}

/// What is read of an answer, and how many events it has.
fn heard(form: Form, answer: &[u8], piece: usize) -> (Reading, Option<u64>) {
    let mut meter = Meter::new(form);
    let last = answer.len().div_ceil(piece);
    for (nth, chunk) in answer.chunks(piece).enumerate() {
        assert!(meter.pass(chunk, nth + 1 == last), "nothing is withheld");
    }
    let heard = meter.heard(true);
    (*heard.reading, heard.events)
}

#[test]
fn every_form_is_read_however_it_is_cut() {
    let events = events();
    let coded = gzipped(&events);
    for piece in [1, 2, 3, 7, 64, 4096] {
        let json = heard(Form::Json, JSON.as_bytes(), piece);
        assert_eq!(json, (said(), None));
        let plain = heard(Form::Events { withhold: false }, events.as_bytes(), piece);
        assert_eq!(plain, (said(), Some(2)));
        let gzip = heard(Form::CodedEvents(Coding::Gzip), &coded, piece);
        assert_eq!(gzip, plain);
        let json = heard(Form::CodedJson(Coding::Gzip), &gzipped(JSON), piece);
        assert_eq!(json.0, said());
        let unread = heard(Form::Unread, JSON.as_bytes(), piece);
        assert_eq!(unread, (Reading::Absent, None));
    }
}

#[test]
fn what_does_not_decode_says_nothing_and_what_was_not_whole_is_believed_as_far_as_it_came() {
    let whole = gzipped(&events());
    let (cut, _) = whole.split_at(whole.len() - 4);
    let form = Form::CodedEvents(Coding::Gzip);
    let mut meter = Meter::new(form);
    assert!(meter.pass(cut, false));
    let heard = meter.heard(false);
    assert_eq!(*heard.reading, said(), "its client left");
    assert_eq!(heard.decoded_bytes, Some(events().len() as u64));
    let mut meter = Meter::new(form);
    assert!(meter.pass(cut, true));
    assert_eq!(meter.heard(true), Heard::NOTHING, "it should be whole");
    let mut meter = Meter::new(form);
    assert!(meter.pass(b"not gzip at all", true));
    assert_eq!(meter.heard(true), Heard::NOTHING);
    assert_eq!(meter.text(b"x"), b"");
}

#[test]
fn the_usage_event_is_withheld_and_what_is_held_back_of_a_broken_stream_is_released() {
    let form = Form::Events { withhold: true };
    let (mut meter, mut out) = (Meter::new(form), Vec::new());
    let events = events();
    for chunk in events.as_bytes().chunks(5) {
        if meter.pass(chunk, false) {
            out.push(Bytes::copy_from_slice(chunk));
        } else {
            meter.sift(chunk, false, &mut out);
        }
    }
    let out = String::from_utf8(out.concat()).expect("text");
    assert_eq!(out, "data: {\"choices\":[{}]}\n\ndata: [DONE]\n\n");
    assert_eq!(*meter.heard(true).reading, said());

    let (mut meter, mut out) = (Meter::new(form), Vec::new());
    if !meter.pass(b"data: {\"choices\":[],\"usage\":{\"prom", false) {
        meter.sift(b"data: {\"choices\":[],\"usage\":{\"prom", false, &mut out);
        meter.release(&mut out);
        assert_eq!(out.concat(), b"data: {\"choices\":[],\"usage\":{\"prom");
    }
}

#[test]
fn of_a_stream_whose_text_comes_at_its_end_no_number_of_events_is_known_before() {
    let coded = include_bytes!("../encoding/text_twice.zst");
    let form = Form::CodedEvents(Coding::Zstd);
    let mut meter = Meter::new(form);
    let (begun, rest) = coded.split_at(coded.len() / 2);
    assert!(meter.pass(begun, false));
    assert_eq!((meter.events(), meter.so_far().events), (None, None));
    assert_eq!(meter.heard(false).events, None, "its client left");
    assert!(meter.pass(rest, true));
    assert_eq!(meter.heard(true).events, Some(2));
    assert_eq!(
        *meter.heard(true).reading,
        Reading::Valid(Usage {
            prompt: Some(3),
            completion: Some(4),
            ..Usage::default()
        })
    );
}

#[test]
fn binary_events_are_read_to_the_one_with_usage_and_to_a_failure() {
    use testing::eventstream::{event, exception};
    let usage = r#"{"usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7},"metrics":{"latencyMs":1},"p":"ab"}"#;
    // What an answer says of usage is none.
    let text = r#"{"contentBlockIndex":0,"delta":{"text":"x"},"usage":{"inputTokens":9}}"#;
    let begun = [
        event("messageStart", "{}"),
        event("contentBlockDelta", text),
    ]
    .concat();
    let whole = [&begun[..], &event("metadata", usage)].concat();
    let failed = exception("throttlingException", r#"{"message":"slow"}"#);
    let failed = [&begun[..], &failed].concat();
    let mut broken = whole.clone();
    broken[begun.len() + 20] ^= 1;
    for piece in [1, 2, 3, 7, 64, 4096] {
        let read = |answer: &[u8]| {
            let mut meter = Meter::new(Form::Frames);
            for chunk in answer.chunks(piece) {
                assert!(meter.pass(chunk, false), "nothing is withheld");
            }
            let so_far = meter.so_far();
            assert_eq!(so_far.events, meter.events());
            let told_error = so_far.told_error;
            let heard = meter.heard(true);
            (*heard.reading, heard.events, told_error)
        };
        assert_eq!(read(&whole), (said(), Some(3), false));
        assert_eq!(read(&begun), (Reading::Absent, Some(2), false));
        assert_eq!(read(&failed), (Reading::Absent, Some(2), true));
        assert_eq!(read(&broken), (Reading::Absent, Some(2), false));
    }
}
