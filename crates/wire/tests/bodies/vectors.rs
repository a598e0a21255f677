//! Golden cases as text: what is made of a body, and of a stream.
//!
//! A file holds cases `=== name`, the input, `---`, the outcome. In an input `⟦ff 00⟧` stands for bytes,
//! `⟦129×[⟧` for a repetition, and `⟦end⟧` ends it before the line's end. `UPDATE=1` rewrites the outcomes.

use std::fmt::Write;
use std::path::Path;

use wire::call::{CallHead, CallScanner, apply, splices};
use wire::sse::Mode;

use crate::{json_head, sse_scan};

#[test]
fn bodies_come_out_as_the_vectors_say() {
    each_case("vectors/json", |input| {
        let body = input.strip_suffix(b"\n").unwrap_or(input);
        json_head::fuzz_one(body);
        let whole = CallHead::read(body);
        for at in cuts(body.len()) {
            let mut scanner = CallScanner::new();
            let pushed = scanner
                .push(&body[..at])
                .and_then(|()| scanner.push(&body[at..]));
            assert_eq!(whole, pushed.and_then(|()| scanner.finish()), "cut at {at}");
        }
        body_outcome(body, whole)
    });
}

#[test]
fn streams_come_out_as_the_vectors_say() {
    each_case("vectors/sse", |stream| {
        sse_scan::fuzz_one(stream);
        for mode in [Mode::Observe, Mode::Withhold] {
            let whole = sse_scan::scan(mode, [stream]);
            for at in cuts(stream.len()) {
                assert_eq!(
                    whole,
                    sse_scan::scan(mode, [&stream[..at], &stream[at..]]),
                    "{mode:?} cut at {at}"
                );
            }
        }
        stream_outcome(stream)
    });
}

fn body_outcome(body: &[u8], read: Result<CallHead, wire::call::CallFault>) -> String {
    let mut text = String::new();
    match read {
        Err(fault) => {
            writeln!(text, "refused: {}: {fault}", fault.code()).expect("a well-formed case")
        }
        Ok(head) => {
            writeln!(
                text,
                "model={:?} stream={} asked_for_usage={}",
                head.model,
                head.stream,
                head.asked_for_usage()
            )
            .expect("a well-formed case");
            writeln!(text, "output_cap={:?} n={:?}", head.output_cap(), head.n)
                .expect("a well-formed case");
            let rope = [bytes::Bytes::copy_from_slice(body)];
            let edited = apply(&rope, &splices(&head, Some("other"), true)).concat();
            if edited.len() < 400 {
                writeln!(text, "edited: {}", edited.escape_ascii()).expect("a well-formed case");
            }
        }
    }
    text
}

fn stream_outcome(stream: &[u8]) -> String {
    let (_, tally) = sse_scan::scan(Mode::Observe, [stream]);
    let (forwarded, _) = sse_scan::scan(Mode::Withhold, [stream]);
    let mut text = format!("usage: {:?}\n", tally.usage);
    writeln!(
        text,
        "data_events={} data_bytes={}",
        tally.data_events, tally.data_bytes
    )
    .expect("a well-formed case");
    let flags = [
        ("done", tally.done),
        ("data_after_done", tally.data_after_done),
        ("error", tally.error),
        ("unfinished", tally.unfinished),
        ("uninspected", tally.uninspected_events > 0),
    ];
    let flags: Vec<&str> = flags
        .iter()
        .filter(|(_, set)| *set)
        .map(|(name, _)| *name)
        .collect();
    writeln!(text, "flags: {}", flags.join(" ")).expect("a well-formed case");
    if forwarded.len() == stream.len() {
        text.push_str("withheld: nothing\n");
    } else {
        writeln!(text, "forwarded: {}", forwarded.escape_debug()).expect("a well-formed case");
    }
    text
}

/// Every place to cut a short input, and some in a long one.
fn cuts(length: usize) -> impl Iterator<Item = usize> {
    (0..=length).step_by(length / 400 + 1)
}

fn each_case(folder: &str, outcome: fn(&[u8]) -> String) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the person who runs the test asks for a rewrite"
    )]
    let update = std::env::var_os("UPDATE").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("a well-formed case") {
        let path = entry.expect("a well-formed case").path();
        let text = std::fs::read_to_string(&path).expect("a well-formed case");
        let (intro, cases) = text.split_once("=== ").expect("a case");
        let mut fresh = intro.to_owned();
        for case in cases.split("\n=== ") {
            count += 1;
            let (name, rest) = case.split_once('\n').expect("a case has a body");
            let (input, _) = rest.split_once("---\n").expect("a case has an outcome");
            println!("{name}");
            write!(
                fresh,
                "=== {name}\n{input}---\n{}\n",
                outcome(&bytes_of(input))
            )
            .expect("a well-formed case");
        }
        let fresh = format!("{}\n", fresh.trim_end());
        if update {
            std::fs::write(&path, fresh).expect("a well-formed case");
        } else {
            assert_eq!(text, fresh, "{}: UPDATE=1 rewrites it", path.display());
        }
    }
    assert!(count > 10, "cases are missing in {}", folder.display());
}

fn bytes_of(input: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = input;
    while let Some((plain, after)) = rest.split_once('⟦') {
        bytes.extend_from_slice(plain.as_bytes());
        let (code, after) = after.split_once('⟧').expect("a closed code");
        if code == "end" {
            return bytes;
        }
        if let Some((times, what)) = code.split_once('×') {
            bytes.extend(
                what.repeat(times.parse().expect("a well-formed case"))
                    .into_bytes(),
            );
        } else {
            bytes.extend(
                code.split(' ')
                    .map(|hex| u8::from_str_radix(hex, 16).expect("a well-formed case")),
            );
        }
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}
