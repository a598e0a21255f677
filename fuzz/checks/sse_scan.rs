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
        if let Some((forwarded, naive)) = naive(mode, stream) {
            // Where text stands is told by names: of how much there is, the naive reader knows bounds alone.
            let text_tokens = whole.1.text_tokens;
            let most = naive.data_events + naive.data_bytes / 4;
            assert!(
                (naive.data_events..=most).contains(&text_tokens),
                "{text_tokens}"
            );
            let naive = StreamStats {
                text_tokens,
                ..naive
            };
            assert_eq!(whole, (forwarded, naive), "{mode:?}");
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
    let mut reported: Option<Reported> = None;
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
        if !data.is_empty() && (holds(b"\"usage") || holds(b"\"error\"")) {
            match serde_json::from_slice::<Value>(&joined) {
                Ok(value) => {
                    let (usage, alone, error, begins) = interpret(&value);
                    stats.error |= error;
                    if is_written_oddly(&joined) {
                        return None;
                    }
                    if let (Some(usage), false) = (usage, stats.done) {
                        let completion = usage.said[COMPLETION].iter();
                        let mut completion = completion.chain(&usage.said[REASONING_BESIDE]);
                        if completion.any(|said| matches!(said, Said::Good(_))) {
                            stats.is_begun_only = begins;
                        }
                        stats.usage = told(&mut reported, usage);
                    }
                    withheld = mode == Mode::Withhold && alone && length <= HOLD_LIMIT_BYTES;
                }
                Err(_) if serde_json::from_slice::<IgnoredAny>(&joined).is_ok() => return None,
                Err(_) if !stats.done && may_tell_usage(text, &data) => {
                    stats.usage = told(&mut reported, Reported::UNREAD);
                }
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

/// What is told with one more report.
fn told(reported: &mut Option<Reported>, usage: Reported) -> Reading {
    match reported {
        Some(earlier) => earlier.take_later(&usage),
        None => *reported = Some(usage),
    }
    reported.as_ref().map(Reported::reading).unwrap_or_default()
}

/// Whether an event that cannot be read is to be an object, and has a usage that is not null.
fn may_tell_usage(text: &[u8], data: &[&[u8]]) -> bool {
    let at = |from: &[u8]| {
        from.starts_with(b"\"usage")
            && !from.starts_with(b"\"usage\":null")
            && !from.starts_with(b"\"usage\": null")
    };
    (0..text.len()).any(|from| at(&text[from..]))
        && data
            .first()
            .is_some_and(|line| line.trim_ascii_start().starts_with(b"{"))
}

/// A tree does not show how a number was written: long ones are rounded there, and an escaped digit is a digit.
fn is_written_oddly(data: &[u8]) -> bool {
    let is_number =
        |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'-' | b'+');
    let mut numbers = data.split(|byte| !is_number(byte));
    numbers.any(|number| number.len() > 15 && number.iter().any(|byte| !byte.is_ascii_digit()))
        || data.windows(2).any(|pair| pair == b"\\u")
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

/// Its usage; whether it is only that; whether it tells of an error; whether the usage is of a message's beginning.
fn interpret(value: &Value) -> (Option<Reported>, bool, bool, bool) {
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
    let later = some("/usage")
        .filter(|_| value.is_object())
        .or_else(|| nested("/response/usage", "response"))
        .or_else(|| some("/usageMetadata").filter(|_| value.is_object()));
    let Some(usage) = later.or_else(|| nested("/message/usage", "message")) else {
        return (None, false, error && value.is_object(), false);
    };
    let alone = usage.is_object() && value["choices"].as_array().is_some_and(Vec::is_empty);
    (
        Some(Reported::read(usage)),
        alone,
        error && value.is_object(),
        later.is_none(),
    )
}

/// What an answer reported, as it said it: a place for each count, under each of its names.
#[derive(Clone, Default)]
struct Reported {
    said: [[Said; 3]; COUNTS.len()],
    doubtful: bool,
    is_unread: bool,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Said {
    #[default]
    Nothing,
    Good(u64),
    /// With the whole number that it is, if it is one that a ledger can hold.
    Bad(Option<u64>),
}

/// Each count, where it stands: under three names, or more than once under one; `[`: in a list.
const COUNTS: [[&str; 3]; 15] = [
    ["/prompt_tokens", "/input_tokens", "/promptTokenCount"],
    [
        "/completion_tokens",
        "/output_tokens",
        "/candidatesTokenCount",
    ],
    ["/toolUsePromptTokenCount"; 3],
    ["/thoughtsTokenCount"; 3],
    ["/total_tokens", "/total_tokens", "/totalTokenCount"],
    ["/cache_read_input_tokens"; 3],
    ["/cache_creation_input_tokens"; 3],
    ["/cache_creation/ephemeral_5m_input_tokens"; 3],
    ["/cache_creation/ephemeral_1h_input_tokens"; 3],
    two(
        "/prompt_tokens_details/cached_tokens",
        "/input_tokens_details/cached_tokens",
    ),
    [
        "/prompt_cache_hit_tokens",
        "/cached_tokens",
        "/cachedContentTokenCount",
    ],
    two(
        "/prompt_tokens_details/cache_write_tokens",
        "/input_tokens_details/cache_write_tokens",
    ),
    [
        "/prompt_tokens_details/audio_tokens",
        "/input_tokens_details/audio_tokens",
        "[promptTokensDetails",
    ],
    two(
        "/completion_tokens_details/reasoning_tokens",
        "/output_tokens_details/reasoning_tokens",
    ),
    [
        "/completion_tokens_details/audio_tokens",
        "/output_tokens_details/audio_tokens",
        "[candidatesTokensDetails",
    ],
];
const COMPLETION: usize = 1;
const REASONING_BESIDE: usize = 3;
const TOTAL: usize = 4;
/// Its two parts follow it.
const STORED: usize = 6;

const fn two(one: &'static str, other: &'static str) -> [&'static str; 3] {
    [one, other, other]
}

impl Reported {
    const UNREAD: Self = Self {
        said: [[Said::Nothing; 3]; COUNTS.len()],
        doubtful: true,
        is_unread: true,
    };

    fn read(usage: &Value) -> Self {
        if usage.to_string().len() > USAGE_LIMIT_BYTES {
            return Self::UNREAD;
        }
        if !usage.is_object() {
            let doubtful = true;
            return Self {
                doubtful,
                ..Self::default()
            };
        }
        let said = |path: &str| {
            if let Some(list) = path.strip_prefix('[') {
                return audio_of(&usage[list]);
            }
            let (parent, _) = path.rsplit_once('/').expect("a path");
            match (usage.pointer(parent), usage.pointer(path)) {
                (Some(Value::Object(_)), Some(value)) => number(value),
                (Some(Value::Object(_) | Value::Null) | None, _) => Said::Nothing,
                (Some(_), _) => Said::Bad(None),
            }
        };
        Self {
            said: COUNTS.map(|names| names.map(said)),
            doubtful: false,
            is_unread: false,
        }
    }

    fn take_later(&mut self, later: &Self) {
        let is_good = |said: &[Said; 3]| said.iter().any(|said| matches!(said, Said::Good(_)));
        let is_bad = |said: &[Said; 3]| said.iter().any(|said| matches!(said, Said::Bad(_)));
        if later.said[..TOTAL].iter().any(is_good) && later.said[TOTAL] == [Said::Nothing; 3] {
            self.said[TOTAL] = [Said::Nothing; 3];
        }
        let good = |said: [Said; 3]| match said[0] {
            Said::Good(n) => Some(n),
            Said::Nothing | Said::Bad(_) => None,
        };
        let parts = |of: &Self| [good(of.said[STORED + 1]), good(of.said[STORED + 2])];
        match (parts(later), good(later.said[STORED])) {
            ([Some(_), Some(_)], _) => self.said[STORED] = [Said::Nothing; 3],
            ([None, None], Some(stored))
                if parts(self).into_iter().flatten().sum::<u64>() > stored =>
            {
                self.said[STORED + 1..=STORED + 2].fill([Said::Nothing; 3]);
            }
            _ => {}
        }
        self.is_unread =
            later.is_unread || (self.is_unread && !later.said[..TOTAL].iter().any(is_good));
        self.doubtful |= later.doubtful;
        for (earlier, later) in self.said.iter_mut().zip(&later.said) {
            if *later == [Said::Nothing; 3] {
                continue;
            }
            self.doubtful |= is_bad(earlier) || is_bad(later);
            if is_good(later) || !is_good(earlier) {
                *earlier = *later;
            }
        }
    }

    fn reading(&self) -> Reading {
        let counts = self.said.map(|said| {
            said.into_iter().find_map(|said| match said {
                Said::Good(n) => Some(n),
                Said::Nothing | Said::Bad(_) => None,
            })
        });
        let [
            mut prompt,
            mut completion,
            prompt_beside,
            reasoning_beside,
            total,
            read,
            stored,
            five,
            hour,
            details @ ..,
        ] = counts;
        let [
            cached,
            cached_beside,
            written,
            audio_prompt,
            reasoning,
            audio_completion,
        ] = details;
        let bad = |said: &Said| matches!(said, Said::Bad(_));
        let mut doubtful = self.doubtful || self.said.iter().flatten().any(bad);
        // What the sum has beyond its parts is kept for five minutes.
        let parted = five.unwrap_or(0) + hour.unwrap_or(0);
        let has_parts = five.is_some() || hour.is_some();
        doubtful |= has_parts && stored.is_some_and(|stored| stored != parted);
        let rest = stored.unwrap_or(0).saturating_sub(parted);
        let five = match has_parts {
            true => Some(five.unwrap_or(0) + rest),
            false => stored,
        };
        // Whole numbers that a ledger can hold are kept, believed or not.
        let whole = |said: [Said; 3]| {
            said.into_iter().find_map(|said| match said {
                Said::Good(n) => Some(n),
                Said::Bad(whole) => whole,
                Said::Nothing => None,
            })
        };
        let mut prompt_said = whole(self.said[0]);
        let mut completion_said = whole(self.said[COMPLETION]);
        if matches!(
            self.said[0],
            [Said::Bad(_) | Said::Nothing, Said::Good(_), _]
        ) && let Some(input) = prompt
        {
            prompt = Some(input + read.unwrap_or(0) + five.unwrap_or(0) + hour.unwrap_or(0));
        }
        // What stands beside a sum is added to it, where there is one or nothing.
        let with = |sum: Option<u64>, said: [Said; 3], beside: Option<u64>| match (sum, beside) {
            (Some(sum), Some(more)) => Some(sum + more),
            (None, Some(more)) if said == [Said::Nothing; 3] => Some(more),
            (sum, _) => sum,
        };
        // A prompt that is more than can be is one to add nothing to.
        let is_sum = prompt.is_none_or(|prompt| prompt <= 1 << 40);
        prompt = with(prompt, self.said[0], prompt_beside.filter(|_| is_sum));
        completion = with(completion, self.said[COMPLETION], reasoning_beside);
        for (sum, said) in [
            (&mut prompt, &mut prompt_said),
            (&mut completion, &mut completion_said),
        ] {
            if let Some(all) = sum.filter(|&all| all > 1 << 40) {
                (*sum, *said, doubtful) = (None, Some(all), true);
            }
        }
        let reasoning = reasoning.or(reasoning_beside);
        let mut usage = Usage {
            prompt,
            completion,
            total,
            cached: cached.or(cached_beside).or(read),
            cache_write_5m: five.or(written),
            cache_write_1h: hour,
            reasoning,
            is_reasoning_on_top: false,
            audio_prompt,
            audio_completion,
            prompt_said: prompt_said.filter(|_| prompt.is_none()),
            completion_said: completion_said.filter(|_| completion.is_none()),
            searches: 0,
            doubtful: false,
            is_unread: false,
        };
        if let (Some(prompt), Some(completion), Some(total)) = (prompt, completion, total) {
            let parts = prompt + completion;
            let told = reasoning.filter(|reasoning| *reasoning > 0);
            if total > parts {
                let rest = total - parts;
                usage.is_reasoning_on_top = told == Some(rest);
                // What is within the completion is not what stands beside it.
                if told.is_none_or(|told| told == rest || told > completion) {
                    usage.completion = Some(completion + rest);
                }
            }
            doubtful |= total != parts && !usage.is_reasoning_on_top;
            if total < parts {
                usage.total = None;
            }
        }
        let mut within = |part: &mut Option<u64>, whole: Option<u64>| {
            let (Some(tokens), Some(whole)) = (*part, whole) else {
                return;
            };
            if tokens > whole {
                (*part, doubtful) = (None, true);
            }
        };
        within(&mut usage.cached, prompt);
        let left = prompt.map(|prompt| prompt - usage.cached.unwrap_or(0));
        within(&mut usage.cache_write_1h, left);
        let left = left.map(|left| left - usage.cache_write_1h.unwrap_or(0));
        within(&mut usage.cache_write_5m, left);
        within(&mut usage.audio_prompt, prompt);
        within(&mut usage.reasoning, usage.completion);
        within(&mut usage.audio_completion, usage.completion);
        usage.doubtful = doubtful;
        usage.is_unread = self.is_unread;
        if usage == Usage::default() {
            return Reading::Absent;
        }
        if doubtful && usage.prompt.is_none() && usage.completion.is_none() {
            return Reading::Invalid(Usage {
                prompt_said,
                completion_said,
                is_unread: self.is_unread,
                ..Usage::default()
            });
        }
        Reading::Valid(usage)
    }
}

/// What a list of kinds with their counts says of sound.
fn audio_of(list: &Value) -> Said {
    match list {
        Value::Null => Said::Nothing,
        Value::Array(items) => {
            let mut objects = items.iter().take_while(|item| item.is_object());
            let audio = objects.find(|item| item["modality"] == "AUDIO");
            audio.map_or(Said::Nothing, |item| number(&item["tokenCount"]))
        }
        _ => Said::Bad(None),
    }
}

fn number(value: &Value) -> Said {
    let parsed;
    let value = match value {
        Value::Null => return Said::Nothing,
        Value::String(text) if text.trim() == text => {
            parsed = serde_json::from_str(text).unwrap_or(Value::Null);
            &parsed
        }
        other => other,
    };
    let whole = value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && (0.0..1e16).contains(&number)).then_some(number as u64)
    });
    match whole.filter(|_| value.is_number()) {
        Some(n) if n <= 1 << 40 => Said::Good(n),
        whole => Said::Bad(whole.filter(|&n| i64::try_from(n).is_ok())),
    }
}
