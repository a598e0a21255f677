//! Golden cases as text: the outcomes of bodies and streams.
//!
//! A file holds cases `=== name`, the input, `---`, the outcome. In an input `⟦ff 00⟧` stands for bytes,
//! `⟦129×[⟧` for a repetition, and `⟦end⟧` ends it before the line's end. `UPDATE=1` rewrites the outcomes.

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use wire::call::{CallHead, CallScanner, apply, splices};
use wire::sse::Mode;

use super::{json_head, sse_scan};

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
            assert_eq!(
                whole,
                pushed.and_then(|()| scanner.finish().map(std::mem::take)),
                "cut at {at}"
            );
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

/// Random splits of each stream, unless another number is asked for: 10,000 of all streams together.
const WAYS: (&str, u64) = ("TOLLGATE_CUTS", 400);
static TRIED: AtomicU64 = AtomicU64::new(0);

/// A record depends on the stats of a stream and on the forwarded bytes, so these must be equal for every split.
#[test]
fn streams_come_out_the_same_however_they_are_cut_at_random() {
    let seed = testing::seed("cuts");
    SEED.store(seed, Relaxed);
    each_case("vectors/sse", |stream| {
        if stream.len() <= LONG {
            for mode in [Mode::Observe, Mode::Withhold] {
                let whole = sse_scan::scan(mode, [stream]);
                let ways = ways();
                for _ in 0..ways {
                    let cut = sse_scan::scan(mode, parts(stream));
                    assert_eq!(whole, cut, "{mode:?}");
                }
                TRIED.fetch_add(ways, Relaxed);
            }
        }
        stream_outcome(stream)
    });
    assert!(TRIED.load(Relaxed) >= 25 * ways(), "{TRIED:?}");
}

fn ways() -> u64 {
    let (variable, otherwise) = WAYS;
    testing::number_of(variable, otherwise)
}

static SEED: AtomicU64 = AtomicU64::new(0);

/// The stream in one to nine parts, by the next random split of the seed.
fn parts(stream: &[u8]) -> Vec<&[u8]> {
    // SplitMix64 (Steele, Lea and Flood, 2014).
    let next = || {
        let mut z = SEED.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) >> 33).expect("31 bits")
    };
    let mut cuts: Vec<usize> = (0..next() % 9)
        .map(|_| next() % (stream.len() + 1))
        .collect();
    cuts.sort_unstable();
    let mut from = 0;
    let mut parts = Vec::with_capacity(cuts.len() + 1);
    for at in cuts {
        parts.push(&stream[from..at]);
        from = at;
    }
    parts.push(&stream[from..]);
    parts
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
            let counts = [
                ("max_tokens", head.max_tokens),
                ("max_completion_tokens", head.max_completion_tokens),
                ("max_output_tokens", head.max_output_tokens),
                ("n", head.n),
                ("best_of", head.best_of),
            ];
            let given = counts
                .iter()
                .filter_map(|(name, count)| Some(format!("{name}={}", (*count)?)));
            let given = given.collect::<Vec<_>>().join(" ");
            if !given.is_empty() {
                writeln!(text, "counts: {given}").expect("a well-formed case");
            }
            if head.prompts.count != 1 || head.prompts.token_ids.is_some() {
                writeln!(text, "{:?}", head.prompts).expect("a well-formed case");
            }
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
    let (_, stats) = sse_scan::scan(Mode::Observe, [stream]);
    let (forwarded, _) = sse_scan::scan(Mode::Withhold, [stream]);
    let mut text = format!("usage: {:?}\n", stats.usage);
    writeln!(
        text,
        "data_events={} data_bytes={}",
        stats.data_events, stats.data_bytes
    )
    .expect("a well-formed case");
    let flags = [
        ("begun_only", stats.is_begun_only),
        ("done", stats.done),
        ("data_after_done", stats.data_after_done),
        ("error", stats.error),
        ("unfinished", stats.unfinished),
        ("uninspected", stats.uninspected_events > 0),
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

/// A longer input is not split at every byte.
const LONG: usize = 8 << 10;

/// Every place to split an input, but only some in a long one.
fn cuts(length: usize) -> impl Iterator<Item = usize> {
    (0..=length).step_by(if length > LONG { length / 400 } else { 1 })
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
