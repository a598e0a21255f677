//! The fast path for a call that comes in one piece and is written plainly, as most are.
//!
//! Invariant: what it reads is what the scanner would read; where it is not sure, and at every fault, it
//! reads nothing, and the scanner starts over.
//! Not here: faults and odd ways to write (`head`, over `json::Scanner`).

use super::head::{
    ASKED, CallHead, IncludeUsage, KEPT, Prompts, STREAM_OPTIONS, StreamOptions, is_set,
};
use crate::dialect::{Name, model_name, name};
use crate::json::{Elements, Kind, Reader, split_path};

/// Reads a whole body into `head`, in place because it is large. Where it reads nothing, `head` says nothing.
pub(super) fn read_whole(body: &[u8], head: &mut CallHead) -> Option<()> {
    let mut reader = Reader::new(body);
    let mut more = reader.open()?;
    let open = body.iter().position(|&byte| byte == b'{')? + 1;
    *head = CallHead {
        model: None,
        stream: false,
        stream_options: StreamOptions::Absent,
        max_tokens: None,
        max_completion_tokens: None,
        max_output_tokens: None,
        n_predict: None,
        min_tokens: None,
        beam_width: None,
        n: None,
        background: false,
        deferred: false,
        keeps: None,
        besides: Vec::new(),
        may_name_more: false,
        best_of: None,
        prompts: Prompts::ONE,
        user: None,
        length: body.len(),
        by_path: None,
        is_form: false,
        model_at: None,
        open,
        empty: !more,
    };
    let mut seen = Seen(0);
    while more {
        let found = reader.name()?;
        let is = |member: &str| *found == *member.as_bytes();
        if is(const { name(Name::Model) }) {
            seen.first(0)?;
            read_model(&mut reader, head)?;
        } else if is(const { name(Name::Stream) }) {
            seen.first(1)?;
            head.stream = read_flag(&mut reader)?;
        } else if is(const { name(Name::StreamOptions) }) {
            seen.first(2)?;
            head.stream_options = read_stream_options(&mut reader)?;
        } else if is(const { name(Name::MaxTokens) }) {
            seen.first(3)?;
            head.max_tokens = read_count(&mut reader)?;
        } else if is(const { name(Name::MaxCompletionTokens) }) {
            seen.first(4)?;
            head.max_completion_tokens = read_count(&mut reader)?;
        } else if is(const { name(Name::MaxOutputTokens) }) {
            seen.first(5)?;
            head.max_output_tokens = read_count(&mut reader)?;
        } else if is(const { name(Name::N) }) {
            seen.first(6)?;
            head.n = read_count(&mut reader)?;
        } else if let Some(member) = stateful(&found) {
            read_stateful(&mut reader, head, &mut seen, member)?;
        } else if is(const { name(Name::BestOf) }) {
            seen.first(11)?;
            head.best_of = read_count(&mut reader)?;
        } else if is(const { name(Name::Prompt) }) {
            seen.first(12)?;
            head.prompts = read_prompts(&mut reader)?;
        } else if is(const { name(Name::NPredict) }) {
            seen.first(13)?;
            head.n_predict = read_count(&mut reader)?;
        } else if found.len() == SHAPE_BYTES && is(MIN_TOKENS) {
            seen.first(14)?;
            head.min_tokens = read_count(&mut reader)?;
        } else if found.len() == SHAPE_BYTES && is(BEAM_WIDTH) {
            seen.first(15)?;
            head.beam_width = read_count(&mut reader)?;
        } else if ASKED.spelled(None, &found).is_some() {
            return None;
        } else {
            reader.pass()?;
        }
        more = reader.more()?;
    }
    reader.is_at_end().then_some(())
}

/// Which of the members that make a call lean on its provider this is: 0 for `background`, then in the
/// order of `KEPT`; [`BESIDES`] for one that may name further models, [`SCANNED`] for one that is not read here. Told by its length first, which those of most calls do not have.
#[inline]
fn stateful(name: &[u8]) -> Option<usize> {
    match (name.len(), name) {
        (BACKGROUND_BYTES, BACKGROUND) => Some(0),
        (PREVIOUS_RESPONSE_BYTES, PREVIOUS_RESPONSE) => Some(1),
        (CONVERSATION_BYTES, CONVERSATION) => Some(2),
        (CONTAINER_BYTES, CONTAINER) => Some(3),
        (DEFERRED_BYTES, DEFERRED) => Some(SCANNED),
        (5, b"tools")
        | (6, b"models" | b"preset")
        | (7, b"plugins")
        | (9, b"fallbacks" | b"lora_path")
        | (10, b"extra_body" | b"model_list")
        | (11, b"user_config")
        | (12, b"safety_model" | b"lora_request")
        | (15, b"compound_custom" | b"providerOptions")
        | (16, b"provider_options")
        | (24, b"context_window_fallbacks" | b"content_policy_fallbacks")
        | (28, b"context_window_fallback_dict") => Some(BESIDES),
        _ => None,
    }
}

/// What [`stateful`] says of a member that may name models besides the call's own.
const BESIDES: usize = usize::MAX;
/// And of one that few calls have, which is the scanner's to read.
const SCANNED: usize = usize::MAX - 1;

const MIN_TOKENS: &str = name(Name::MinTokens);
const BEAM_WIDTH: &str = name(Name::BeamWidth);
/// Bytes of both names, which those of most members do not have.
const SHAPE_BYTES: usize = MIN_TOKENS.len();
const _: () = assert!(SHAPE_BYTES == BEAM_WIDTH.len());

const BACKGROUND: &[u8] = name(Name::Background).as_bytes();
const PREVIOUS_RESPONSE: &[u8] = KEPT[0].1.as_bytes();
const CONVERSATION: &[u8] = KEPT[1].1.as_bytes();
const CONTAINER: &[u8] = KEPT[2].1.as_bytes();
const DEFERRED: &[u8] = name(Name::Deferred).as_bytes();
const DEFERRED_BYTES: usize = DEFERRED.len();
const BACKGROUND_BYTES: usize = BACKGROUND.len();
const PREVIOUS_RESPONSE_BYTES: usize = PREVIOUS_RESPONSE.len();
const CONVERSATION_BYTES: usize = CONVERSATION.len();
const CONTAINER_BYTES: usize = CONTAINER.len();

#[cold]
fn read_stateful(
    reader: &mut Reader<'_>,
    head: &mut CallHead,
    seen: &mut Seen,
    member: usize,
) -> Option<()> {
    match member {
        BESIDES => {
            head.may_name_more = true;
            return reader.pass();
        }
        SCANNED => return None,
        _ => {}
    }
    seen.first(7 + u32::try_from(member).ok()?)?;
    let is_set = is_set(reader.kind()?);
    reader.pass()?;
    match member.checked_sub(1) {
        None => head.background = is_set,
        // Two of them are rare: which one is told is the scanner's to say.
        Some(_) if is_set && head.keeps.is_some() => return None,
        Some(kept) if is_set => head.keeps = KEPT.get(kept).map(|(_, name)| *name),
        Some(_) => {}
    }
    Some(())
}

/// The members that have come, a bit for each.
struct Seen(u16);

impl Seen {
    /// `None` where this member has come before.
    #[inline]
    fn first(&mut self, member: u32) -> Option<()> {
        let bit = 1 << member;
        let is_first = self.0 & bit == 0;
        self.0 |= bit;
        is_first.then_some(())
    }
}

fn read_model(reader: &mut Reader<'_>, head: &mut CallHead) -> Option<()> {
    let (kind, raw) = reader.value()?;
    let end = reader.place();
    head.model_at = Some(end - raw.len()..end);
    match kind {
        Kind::Null => Some(()),
        Kind::String => {
            // No such name holds an escape.
            let name = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
            head.model = Some(model_name(name)?.into());
            Some(())
        }
        _ => None,
    }
}

fn read_flag(reader: &mut Reader<'_>) -> Option<bool> {
    match reader.value()? {
        (Kind::True, _) => Some(true),
        (Kind::False | Kind::Null, _) => Some(false),
        _ => None,
    }
}

fn read_count(reader: &mut Reader<'_>) -> Option<Option<u32>> {
    if let Some(count) = reader.short_count() {
        return Some(Some(count));
    }
    match reader.value()? {
        (Kind::Null, _) => Some(None),
        (Kind::Number, digits) => Some(Some(plain_count(digits)?)),
        _ => None,
    }
}

fn plain_count(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0_u32, |count, digit| {
        let value = digit.wrapping_sub(b'0');
        (value <= 9).then_some(())?;
        count.checked_mul(10)?.checked_add(u32::from(value))
    })
}

fn read_prompts(reader: &mut Reader<'_>) -> Option<Prompts> {
    match reader.value()? {
        (Kind::Array, list) => Some(Prompts::of(&Elements::of(list))),
        _ => Some(Prompts::ONE),
    }
}

fn read_stream_options(reader: &mut Reader<'_>) -> Option<StreamOptions> {
    match reader.kind()? {
        Kind::Null => {
            reader.value()?;
            let end = reader.place();
            Some(StreamOptions::Null(end - b"null".len()..end))
        }
        Kind::Object => {
            let open = reader.place() + 1;
            let mut more = reader.open()?;
            let empty = !more;
            let mut include_usage = IncludeUsage::Absent;
            while more {
                let name = reader.name()?;
                if *name == *INCLUDE_USAGE.as_bytes() {
                    if include_usage != IncludeUsage::Absent {
                        return None;
                    }
                    include_usage = read_include_usage(reader)?;
                } else if ASKED.spelled(Some(STREAM_OPTIONS as u8), &name).is_some() {
                    return None;
                } else {
                    reader.pass()?;
                }
                more = reader.more()?;
            }
            Some(StreamOptions::Object {
                open,
                empty,
                include_usage,
            })
        }
        _ => None,
    }
}

/// The name inside of the options.
const INCLUDE_USAGE: &str = split_path(name(Name::IncludeUsage)).1;

fn read_include_usage(reader: &mut Reader<'_>) -> Option<IncludeUsage> {
    let (kind, raw) = reader.value()?;
    let end = reader.place();
    match kind {
        Kind::True => Some(IncludeUsage::Yes),
        Kind::False | Kind::Null => Some(IncludeUsage::No(end - raw.len()..end)),
        _ => None,
    }
}
