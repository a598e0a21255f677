//! What a call says of itself: model, streaming, output caps, how many answers to how many prompts.
//!
//! Not here: how a body is gone through (`scan`, `whole`), edits of it (`splice`).

use std::ops::Range;

use super::besides::{self, Besides};
use super::fault::{CallFault, CallFaultKind};
use super::inner_models::InnerModels;
use crate::dialect::{Name, model_name, name, names};
use crate::json::{Elements, Found, Interest, Interests, Kind, Member, Repeat, Want};

const MODEL: usize = Name::Model as usize;
const STREAM: usize = Name::Stream as usize;
pub(super) const STREAM_OPTIONS: usize = Name::StreamOptions as usize;
const INCLUDE_USAGE: usize = Name::IncludeUsage as usize;
const MAX_TOKENS: usize = Name::MaxTokens as usize;
const MAX_COMPLETION_TOKENS: usize = Name::MaxCompletionTokens as usize;
const MAX_OUTPUT_TOKENS: usize = Name::MaxOutputTokens as usize;
const N: usize = Name::N as usize;
const BACKGROUND: usize = Name::Background as usize;
const BEST_OF: usize = Name::BestOf as usize;
const PROMPT: usize = Name::Prompt as usize;
const N_PREDICT: usize = Name::NPredict as usize;
const MIN_TOKENS: usize = Name::MinTokens as usize;
const BEAM_WIDTH: usize = Name::BeamWidth as usize;
const DEFERRED: usize = Name::Deferred as usize;

/// Members that name what the provider keeps of earlier calls, with their place among the interests.
pub(super) const KEPT: [(usize, &str); 3] = [
    kept(Name::PreviousResponse),
    kept(Name::Conversation),
    kept(Name::Container),
];

const fn kept(member: Name) -> (usize, &'static str) {
    (member as usize, name(member))
}

const fn asked(member: Name, want: Want) -> Interest {
    Interest::new(name(member), want, Repeat::Refuse)
}

/// In the order of `Name`.
const ASKED_FOR: &[Interest] = &[
    asked(Name::Model, Want::Scalar),
    asked(Name::Stream, Want::Place),
    asked(Name::StreamOptions, Want::Place),
    asked(Name::IncludeUsage, Want::Place),
    asked(Name::MaxTokens, Want::Scalar),
    asked(Name::MaxCompletionTokens, Want::Scalar),
    asked(Name::MaxOutputTokens, Want::Scalar),
    asked(Name::N, Want::Scalar),
    asked(Name::Background, Want::Place),
    asked(Name::PreviousResponse, Want::Place),
    asked(Name::Conversation, Want::Place),
    asked(Name::Container, Want::Place),
    asked(Name::BestOf, Want::Scalar),
    asked(Name::Prompt, Want::Elements),
    asked(Name::NPredict, Want::Scalar),
    asked(Name::MinTokens, Want::Scalar),
    asked(Name::BeamWidth, Want::Scalar),
    asked(Name::Deferred, Want::Place),
];

/// Names that the gate's own count of a prompt goes by. Policy reads none of them; what an engine would read
/// beside them would be generated and not be counted.
const COUNTED: &[&str] = &names::<6>(Name::Counted);

pub(super) static ASKED: Interests =
    Interests::with_others(ASKED_FOR, COUNTED).watching(besides::MEMBERS);

/// What policy reads of a request body. Offsets are in bytes of the whole body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallHead {
    /// The model's name, of `[A-Za-z0-9._:/@-]{1,256}`. `None` where the member is absent or null.
    pub model: Option<Box<str>>,
    /// Whether the answer shall be a stream.
    pub stream: bool,
    /// The options of the stream.
    pub stream_options: StreamOptions,
    /// The cap of the older API.
    pub max_tokens: Option<u32>,
    /// The cap of the chat API.
    pub max_completion_tokens: Option<u32>,
    /// The cap of the Responses API.
    pub max_output_tokens: Option<u32>,
    /// The cap that llama.cpp's server has besides; [`u32::MAX`] where it is negative, which says that there is none.
    pub n_predict: Option<u32>,
    /// The least tokens of an answer, which vLLM and others obey.
    pub min_tokens: Option<u32>,
    /// How many answers TensorRT-LLM follows at once.
    pub beam_width: Option<u32>,
    /// How many answers.
    pub n: Option<u32>,
    /// Whether a response shall be made while nobody waits for it: the member is neither null nor false.
    pub background: bool,
    /// Whether its answer shall be fetched later: the same of xAI's `deferred`.
    pub deferred: bool,
    /// The member that names what the provider keeps of earlier calls, where one is neither null nor
    /// false.
    pub keeps: Option<&'static str>,
    /// The models that it names besides its own, where they were looked for ([`Self::inside`]).
    pub besides: Vec<Besides>,
    /// It has members in which it may name models besides its own.
    pub(super) may_name_more: bool,
    /// Of how many answers the best are given, by the older API.
    pub best_of: Option<u32>,
    /// What the member `prompt` of the older API holds.
    pub prompts: Prompts,
    /// Who is behind the call, as it says itself, where that was asked for ([`super::CallScanner::with_user`]).
    pub user: Option<Box<str>>,
    /// Length of the body in bytes.
    pub length: usize,
    /// Where the body names the model within, of a call whose path names it.
    pub(super) by_path: Option<Box<InnerModels>>,
    /// It is a form, whose fields these are.
    pub is_form: bool,
    pub(super) model_at: Option<Range<usize>>,
    pub(super) open: usize,
    pub(super) empty: bool,
}

/// The member `prompt`, which may be one prompt or a list of them, each a text or a list of token ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prompts {
    /// How many prompts; 1 where there is no list of them.
    pub count: u64,
    /// How many token ids they hold, where they are nothing else.
    pub token_ids: Option<u64>,
}

impl Default for Prompts {
    fn default() -> Self {
        Self::ONE
    }
}

impl Prompts {
    /// A text, or nothing.
    pub(super) const ONE: Self = Self {
        count: 1,
        token_ids: None,
    };

    /// Numbers directly in the list are one prompt; every other value in it is one of its own.
    pub(super) fn of(list: &Elements) -> Self {
        let ids = list.numbers.saturating_add(list.inner_numbers);
        Self {
            count: list
                .others
                .saturating_add(u64::from(list.numbers > 0))
                .max(1),
            token_ids: (ids > 0 && list.strings == 0).then_some(ids),
        }
    }
}

/// The member `stream_options`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StreamOptions {
    /// Not there.
    #[default]
    Absent,
    /// Null, here.
    Null(Range<usize>),
    /// An object.
    Object {
        /// The offset right after its opening brace.
        open: usize,
        /// Whether it has no members.
        empty: bool,
        /// Its member `include_usage`.
        include_usage: IncludeUsage,
    },
}

/// The member `stream_options.include_usage`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IncludeUsage {
    /// Not there.
    Absent,
    /// False or null, here.
    No(Range<usize>),
    /// True.
    Yes,
}

impl CallHead {
    /// Whether it goes on from an earlier response.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        const PREVIOUS: &str = name(Name::PreviousResponse);
        self.keeps == Some(PREVIOUS)
    }

    /// Whether it runs on after its answer, or goes on from what the provider keeps.
    #[inline]
    pub fn leans_on_upstream(&self) -> bool {
        self.background || self.deferred || self.keeps.is_some()
    }

    /// Whether the client itself asked for the usage of a stream.
    pub fn asked_for_usage(&self) -> bool {
        matches!(
            self.stream_options,
            StreamOptions::Object {
                include_usage: IncludeUsage::Yes,
                ..
            }
        )
    }
}

/// What a body says that has been scanned to its end.
pub(super) fn of_found(found: &Found) -> Result<CallHead, CallFault> {
    let Some(open) = found.open else {
        return Err(CallFault {
            member: None,
            offset: 0,
            kind: CallFaultKind::NotAnObject,
        });
    };
    let is_set = |interest| found.member(interest).is_some_and(|m| is_set(m.kind));
    let keeps = KEPT.iter().find(|(interest, _)| is_set(*interest));
    Ok(CallHead {
        model: model(found)?,
        stream: flag(found, STREAM)?,
        stream_options: stream_options(found)?,
        max_tokens: count(found, MAX_TOKENS)?,
        max_completion_tokens: count(found, MAX_COMPLETION_TOKENS)?,
        max_output_tokens: count(found, MAX_OUTPUT_TOKENS)?,
        n_predict: count_or_endless(found, N_PREDICT)?,
        min_tokens: count(found, MIN_TOKENS)?,
        beam_width: count(found, BEAM_WIDTH)?,
        n: count(found, N)?,
        background: is_set(BACKGROUND),
        deferred: is_set(DEFERRED),
        keeps: keeps.map(|(_, name)| *name),
        besides: Vec::new(),
        may_name_more: found.has_watched,
        best_of: count(found, BEST_OF)?,
        prompts: prompts(found),
        user: None,
        length: found.length,
        by_path: None,
        is_form: false,
        model_at: found.member(MODEL).map(|m| m.value.clone()),
        open,
        empty: found.empty,
    })
}

/// Whether a member of this kind says anything.
pub(super) fn is_set(kind: Kind) -> bool {
    !matches!(kind, Kind::Null | Kind::False)
}

fn model(found: &Found) -> Result<Option<Box<str>>, CallFault> {
    let Some(member) = found.member(MODEL) else {
        return Ok(None);
    };
    match member.kind {
        Kind::Null => Ok(None),
        Kind::String => {
            let text = found.text(member);
            let name = text.as_ref().and_then(|text| model_name(text.as_bytes()));
            let bad = || {
                CallFault::at(
                    path_of(MODEL),
                    member.value.start,
                    CallFaultKind::BadModelName,
                )
            };
            Ok(Some(name.ok_or_else(bad)?.into()))
        }
        _ => Err(wrong_type(MODEL, member, "a string")),
    }
}

fn flag(found: &Found, interest: usize) -> Result<bool, CallFault> {
    match found.member(interest) {
        None => Ok(false),
        Some(member) => match member.kind {
            Kind::True => Ok(true),
            Kind::False | Kind::Null => Ok(false),
            _ => Err(wrong_type(interest, member, "true or false")),
        },
    }
}

fn stream_options(found: &Found) -> Result<StreamOptions, CallFault> {
    let Some(member) = found.member(STREAM_OPTIONS) else {
        return Ok(StreamOptions::Absent);
    };
    match member.kind {
        Kind::Null => Ok(StreamOptions::Null(member.value.clone())),
        Kind::Object => {
            let asked = flag(found, INCLUDE_USAGE)?;
            let include_usage = match found.member(INCLUDE_USAGE) {
                None => IncludeUsage::Absent,
                Some(_) if asked => IncludeUsage::Yes,
                Some(no) => IncludeUsage::No(no.value.clone()),
            };
            Ok(StreamOptions::Object {
                open: member.value.start + 1,
                empty: member.empty,
                include_usage,
            })
        }
        _ => Err(wrong_type(STREAM_OPTIONS, member, "an object")),
    }
}

fn count(found: &Found, interest: usize) -> Result<Option<u32>, CallFault> {
    count_of(found, interest, path_of(interest))
}

/// The number that the member at this place of a list of interests says, which faults call so.
pub(super) fn count_of(
    found: &Found,
    interest: usize,
    name: &'static str,
) -> Result<Option<u32>, CallFault> {
    let Some(member) = found.member(interest) else {
        return Ok(None);
    };
    let digits = match member.kind {
        Kind::Null => return Ok(None),
        Kind::Number => found.raw(member),
        _ => return Err(wrong_type_of(name, member, "an integer")),
    };
    if digits.iter().any(|b| matches!(b, b'.' | b'e' | b'E')) {
        return Err(wrong_type_of(
            name,
            member,
            "an integer written in plain digits",
        ));
    }
    let number = std::str::from_utf8(digits)
        .ok()
        .filter(|d| !d.starts_with('-'))
        .and_then(|d| d.parse().ok());
    number
        .map(Some)
        .ok_or_else(|| CallFault::at(name, member.value.start, CallFaultKind::OutOfRange(name)))
}

/// The same of a member of which a negative number says that there is no end.
fn count_or_endless(found: &Found, interest: usize) -> Result<Option<u32>, CallFault> {
    let negative = found.member(interest).filter(|member| {
        let digits = found.raw(member).strip_prefix(b"-").unwrap_or_default();
        member.kind == Kind::Number && !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    });
    match negative {
        Some(_) => Ok(Some(u32::MAX)),
        None => count(found, interest),
    }
}

fn prompts(found: &Found) -> Prompts {
    match found.member(PROMPT) {
        Some(member) if member.kind == Kind::Array => Prompts::of(&found.elements),
        _ => Prompts::ONE,
    }
}

fn wrong_type(interest: usize, member: &Member, wanted: &'static str) -> CallFault {
    wrong_type_of(path_of(interest), member, wanted)
}

/// The same of a member that faults call so.
pub(super) fn wrong_type_of(
    name: &'static str,
    member: &Member,
    wanted: &'static str,
) -> CallFault {
    let kind = CallFaultKind::WrongType {
        member: name,
        wanted,
    };
    CallFault::at(name, member.value.start, kind)
}

/// How faults call what is asked for at this place.
fn path_of(interest: usize) -> &'static str {
    ASKED_FOR.get(interest).map_or("", |asked| asked.path)
}
