//! One event stream: the scanner against a reader that takes its time, in both modes.
//!
//! Invariant: nothing is forwarded but what came, without whole events that only report usage.
//! Also compiled into the fuzz target of the same name.

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::Value;
use wire::sse::{HOLD_LIMIT_BYTES, INSPECT_LIMIT_BYTES, Mode, Scanner, StreamStats};
use wire::usage::{Reading, USAGE_LIMIT_BYTES, Usage};

/// Panics if the scanner breaks a promise on this stream.
pub(crate) fn fuzz_one(stream: &[u8]) {
    for mode in [Mode::Observe, Mode::Withhold] {
        let whole = scan(mode, [stream]);
        for step in [1, 2, 3, 5, 17, 64] {
            assert_eq!(
                whole,
                scan(mode, stream.chunks(step)),
                "{mode:?} in chunks of {step}"
            );
        }
        for step in [1, 3, 17, 64, usize::MAX] {
            let passing = scan_by(mode, stream.chunks(step), Scanner::pass);
            assert_eq!(whole, passing, "{mode:?} passing chunks of {step}");
        }
        if let Some(naive) = naive(mode, stream) {
            assert_eq!(whole, naive, "{mode:?}");
        }
    }
}

/// What is forwarded of a stream that comes in these chunks, and what is seen of it.
pub(crate) fn scan<'a>(
    mode: Mode,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (String, StreamStats) {
    scan_by(mode, chunks, |_, _| false)
}

/// The same where chunks may be passed on whole.
fn scan_by<'a>(
    mode: Mode,
    chunks: impl IntoIterator<Item = &'a [u8]>,
    pass: fn(&mut Scanner, &[u8]) -> bool,
) -> (String, StreamStats) {
    let mut scanner = Scanner::new(mode);
    let mut out = Vec::new();
    for chunk in chunks {
        let whole = Bytes::copy_from_slice(chunk);
        if pass(&mut scanner, chunk) {
            out.push(whole);
        } else {
            scanner.push(whole, &mut out);
        }
    }
    scanner.finish(&mut out);
    // One character a byte, so that a difference can be read.
    (
        out.concat().iter().copied().map(char::from).collect(),
        *scanner.stats(),
    )
}

/// `None` where `serde_json` is stricter or laxer than the scanner has to be.
fn naive(mode: Mode, stream: &[u8]) -> Option<(String, StreamStats)> {
    let mut stats = StreamStats::default();
    let mut forwarded = Vec::new();
    for (index, (length, ended, event)) in events(stream).into_iter().enumerate() {
        stats.unfinished |= !ended;
        if length > INSPECT_LIMIT_BYTES {
            return None;
        }
        let text = event
            .strip_prefix(b"\xef\xbb\xbf")
            .filter(|_| index == 0)
            .unwrap_or(event);
        let data = data_of(text);
        let joined = data.join(&b'\n');
        if data.len() == 1 && joined.trim_ascii() == b"[DONE]" {
            stats.done = true;
            forwarded.extend_from_slice(event);
            continue;
        }
        stats.data_after_done |= stats.done && !data.is_empty();
        let mut withheld = false;
        let holds = |key: &[u8]| text.windows(key.len()).any(|w| w == key);
        if !data.is_empty() && (holds(b"\"usage\"") || holds(b"\"error\"")) {
            match serde_json::from_slice::<Value>(&joined) {
                Ok(value) => {
                    let (usage, alone, error) = interpret(&value);
                    stats.error |= error;
                    if !stats.done {
                        stats.usage.take_later(usage);
                    }
                    withheld = mode == Mode::Withhold && alone && length <= HOLD_LIMIT_BYTES;
                }
                Err(_) if serde_json::from_slice::<IgnoredAny>(&joined).is_ok() => return None,
                Err(_) => {}
            }
        }
        if withheld {
            stats.withheld_events += 1;
        } else {
            stats.data_events += u64::from(!data.is_empty());
            stats.data_bytes += data.iter().map(|line| line.len() as u64).sum::<u64>();
            forwarded.extend_from_slice(event);
        }
    }
    Some((forwarded.into_iter().map(char::from).collect(), stats))
}

/// Each event: its length up to the blank line's first end byte, whether it has ended, and its bytes.
fn events(stream: &[u8]) -> Vec<(usize, bool, &[u8])> {
    let mut events = Vec::new();
    let (mut start, mut line, mut at) = (0, 0, 0);
    while at < stream.len() {
        let width = match (stream[at], stream.get(at + 1)) {
            (b'\r', Some(b'\n')) => 2,
            (b'\r' | b'\n', _) => 1,
            _ => {
                at += 1;
                continue;
            }
        };
        if line == at {
            events.push((at + 1 - start, true, &stream[start..at + width]));
            start = at + width;
        }
        at += width;
        line = at;
    }
    if start < stream.len() {
        events.push((stream.len() - start, false, &stream[start..]));
    }
    events
}

fn data_of(event: &[u8]) -> Vec<&[u8]> {
    let lines = event.split(|b| matches!(b, b'\r' | b'\n'));
    lines
        .filter_map(|line| match line.iter().position(|&b| b == b':') {
            Some(4) if line.starts_with(b"data") => {
                Some(line[5..].strip_prefix(b" ").unwrap_or(&line[5..]))
            }
            None if line == b"data" => Some(b"".as_slice()),
            _ => None,
        })
        .collect()
}

fn interpret(value: &Value) -> (Reading, bool, bool) {
    let some = |path| value.pointer(path).filter(|v: &&Value| !v.is_null());
    let says = |path| {
        some(path).is_some_and(|error| match error {
            Value::Object(members) => !members.is_empty(),
            Value::String(text) => !text.is_empty(),
            _ => false,
        })
    };
    let error = says("/error")
        || (value["response"].is_object() && says("/response/error"))
        || (value.is_object() && value["type"] == "error");
    let nested =
        |path: &'static str, parent: &str| some(path).filter(|_| value[parent].is_object());
    let usage = some("/usage")
        .filter(|_| value.is_object())
        .or_else(|| nested("/response/usage", "response"))
        .or_else(|| nested("/message/usage", "message"));
    let Some(usage) = usage else {
        return (Reading::Absent, false, error && value.is_object());
    };
    let alone = usage.is_object() && value["choices"].as_array().is_some_and(Vec::is_empty);
    (read(usage), alone, error && value.is_object())
}

fn read(usage: &Value) -> Reading {
    if !usage.is_object() || usage.to_string().len() > USAGE_LIMIT_BYTES {
        return Reading::Invalid(Usage::default());
    }
    let mut invalid = false;
    let mut count = |paths: [&str; 2]| {
        let mut first = None;
        for path in paths {
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            match usage.pointer(parent) {
                Some(Value::Object(_)) => {}
                Some(Value::Null) | None => continue,
                Some(_) => invalid = true,
            }
            match usage.pointer(path) {
                None | Some(Value::Null) => {}
                Some(value) => match value.as_u64().filter(|&n| n <= 1 << 40) {
                    Some(n) => first = first.or(Some(n)),
                    None => invalid = true,
                },
            }
        }
        first
    };
    // Whole numbers that a ledger can hold are kept, believed or not.
    let number = |name: &str| usage[name].as_u64().filter(|&n| i64::try_from(n).is_ok());
    let said = Usage {
        prompt: number("prompt_tokens").or_else(|| number("input_tokens")),
        completion: number("completion_tokens").or_else(|| number("output_tokens")),
        ..Usage::default()
    };
    let read = count(["/cache_read_input_tokens"; 2]);
    let stored = count(["/cache_creation_input_tokens"; 2]);
    let five_minutes = count(["/cache_creation/ephemeral_5m_input_tokens"; 2]);
    let hour = count(["/cache_creation/ephemeral_1h_input_tokens"; 2]);
    // What the sum has beyond its parts is kept for five minutes.
    let parted = five_minutes.unwrap_or(0) + hour.unwrap_or(0);
    let has_parts = five_minutes.is_some() || hour.is_some();
    let rest = stored.unwrap_or(0).saturating_sub(parted);
    let cache_write_5m = if has_parts {
        Some(five_minutes.unwrap_or(0) + rest)
    } else {
        stored
    };
    let written = cache_write_5m.unwrap_or(0) + hour.unwrap_or(0);
    let beside = read.unwrap_or(0) + written;
    let mut usage = Usage {
        prompt: count(["/prompt_tokens", "/input_tokens"]).map(|n| n + beside),
        completion: count(["/completion_tokens", "/output_tokens"]),
        total: count(["/total_tokens"; 2]),
        cached: count([
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
        ])
        .or(read),
        cache_write_5m,
        cache_write_1h: hour,
        reasoning: count([
            "/completion_tokens_details/reasoning_tokens",
            "/output_tokens_details/reasoning_tokens",
        ]),
        audio_prompt: count([
            "/prompt_tokens_details/audio_tokens",
            "/input_tokens_details/audio_tokens",
        ]),
        audio_completion: count([
            "/completion_tokens_details/audio_tokens",
            "/output_tokens_details/audio_tokens",
        ]),
        doubtful: has_parts && stored.is_some_and(|stored| stored != parted),
    };
    let parts = usage.prompt.unwrap_or(0) + usage.completion.unwrap_or(0);
    if invalid
        || usage.total.is_some_and(|t| t < parts)
        || usage.prompt.zip(usage.cached).is_some_and(|(p, c)| c > p)
    {
        return Reading::Invalid(said);
    }
    if usage == Usage::default() {
        return Reading::Absent;
    }
    if let (Some(prompt), Some(completion)) = (usage.prompt, usage.completion) {
        let reasoning = usage.reasoning.unwrap_or(0);
        if reasoning > 0 && usage.total == Some(prompt + completion + reasoning) {
            usage.completion = Some(completion + reasoning);
        } else {
            usage.doubtful |= usage
                .total
                .is_some_and(|total| total != prompt + completion)
                || reasoning > completion
                || usage.audio_prompt > Some(prompt)
                || usage.audio_completion > Some(completion);
        }
    }
    Reading::Valid(usage)
}
