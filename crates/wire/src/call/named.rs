//! A call whose path names its model and how it answers, as Google's do: what policy reads of its body.
//!
//! A scan of its own, so that other calls pay nothing for it.
//! Invariant: as for every member that is read, it says one thing or the call is refused. Google takes each name in two forms, and
//! where both stand nobody knows which one counts.
//! Not here: the path (`dialect::gemini`).

use super::fault::{CallFault, CallFaultKind};
use super::head::{CallHead, Prompts, StreamOptions, count_of, is_set, wrong_type_of};
use super::inner_models::InnerModelScanner;
use crate::dialect::Operation;
use crate::dialect::gemini::Named;
use crate::json::{Found, Interest, Interests, Kind, Repeat, Scanner, Want};

const fn asked(path: &'static str, want: Want) -> Interest {
    Interest::new(path, want, Repeat::Refuse)
}

static ASKED: Interests = Interests::new(ASKED_FOR);
const ASKED_FOR: &[Interest] = &[
    asked("model", Want::Place),
    asked("generationConfig", Want::Place),
    asked("generation_config", Want::Place),
    asked("generationConfig.maxOutputTokens", Want::Scalar),
    asked("generationConfig.max_output_tokens", Want::Scalar),
    asked("generation_config.maxOutputTokens", Want::Scalar),
    asked("generation_config.max_output_tokens", Want::Scalar),
    asked("generationConfig.candidateCount", Want::Scalar),
    asked("generationConfig.candidate_count", Want::Scalar),
    asked("generation_config.candidateCount", Want::Scalar),
    asked("generation_config.candidate_count", Want::Scalar),
    asked("cachedContent", Want::Place),
    asked("cached_content", Want::Place),
];
const MODEL: usize = 0;
const CONFIGS: [usize; 2] = [1, 2];
const CAPS: [usize; 4] = [3, 4, 5, 6];
const COUNTS: [usize; 4] = [7, 8, 9, 10];
const CACHED: [usize; 2] = [11, 12];

/// A scan of such a body.
#[derive(Debug)]
pub(super) struct NamedScanner {
    scanner: Scanner,
    model: Box<str>,
    streams: bool,
    /// Of an operation whose body holds requests.
    inner: Option<InnerModelScanner>,
}

impl NamedScanner {
    pub(super) fn of(named: &Named<'_>) -> Self {
        Self {
            scanner: Scanner::new(&ASKED).of_request(),
            model: (*named.model).into(),
            streams: named.streams(),
            inner: match named.operation {
                Operation::CountContent | Operation::EmbedContent => {
                    Some(InnerModelScanner::default())
                }
                _ => None,
            },
        }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), CallFault> {
        self.scanner.push(chunk)?;
        match &mut self.inner {
            Some(inner) => inner.push(chunk, &self.model),
            None => Ok(()),
        }
    }

    pub(super) fn finish(mut self) -> Result<CallHead, CallFault> {
        let found = self.scanner.finish()?;
        let Some(open) = found.open else {
            return Err(CallFault {
                member: None,
                offset: 0,
                kind: CallFaultKind::NotAnObject,
            });
        };
        if let Some(member) = found.member(MODEL).filter(|member| is_set(member.kind)) {
            let at = member.value.start;
            return Err(CallFault::at("model", at, CallFaultKind::ModelIsInPath));
        }
        if let Some((at, config)) = only(found, &CONFIGS)?
            && let Some(member) = found.member(at)
            && !matches!(member.kind, Kind::Object | Kind::Null)
        {
            return Err(wrong_type_of(config, member, "an object"));
        }
        let count = |among: &[usize]| match only(found, among)? {
            Some((at, path)) => count_of(found, at, path),
            None => Ok(None),
        };
        let cached = only(found, &CACHED)?;
        let is_cached = |(at, _): &(usize, &str)| found.member(*at).is_some_and(|m| is_set(m.kind));
        Ok(CallHead {
            model: Some(self.model),
            stream: self.streams,
            stream_options: StreamOptions::Absent,
            max_output_tokens: count(&CAPS)?,
            n: count(&COUNTS)?,
            keeps: cached.filter(is_cached).map(|(_, path)| path),
            may_name_more: true,
            prompts: Prompts::ONE,
            length: found.length,
            open,
            empty: found.empty,
            by_path: Some(Box::new(
                self.inner
                    .map_or_else(Default::default, InnerModelScanner::finish),
            )),
            ..CallHead::default()
        })
    }
}

/// The one of these that stands there: its place, and what faults call it.
fn only(found: &Found, among: &[usize]) -> Result<Option<(usize, &'static str)>, CallFault> {
    let path = |at: usize| ASKED_FOR.get(at).map_or("", |asked| asked.path);
    let mut there = among
        .iter()
        .filter_map(|at| Some((*at, found.member(*at)?)));
    let (first, second) = (there.next(), there.next());
    if let (Some((first, _)), Some((_, member))) = (first, second) {
        let kind = CallFaultKind::DuplicateMember(path(first));
        return Err(CallFault::at(path(first), member.value.start, kind));
    }
    Ok(first.map(|(at, _)| (at, path(at))))
}

#[cfg(test)]
mod tests {
    //! Bodies of Google's calls, whole and cut at every byte.

    use super::*;
    use bytes::Bytes;

    use crate::call::{CallScanner, apply, splices};

    fn read(body: &str, cut: usize) -> Result<CallHead, CallFault> {
        read_of("streamGenerateContent", body, cut)
    }

    fn read_of(verb: &str, body: &str, cut: usize) -> Result<CallHead, CallFault> {
        let path = format!("/v1beta/models/gemini-3-flash:{verb}");
        let named = Named::of(&path).expect("a call");
        let mut scanner = CallScanner::of_named(&named);
        let (first, second) = body.as_bytes().split_at(cut);
        scanner.push(first)?;
        scanner.push(second)?;
        scanner.finish().map(std::mem::take)
    }

    #[test]
    fn the_path_names_the_model_and_the_body_says_what_it_may_cost() {
        let table = [
            (r#"{"contents":[]}"#, None, None, None),
            (
                r#"{"generationConfig":{"maxOutputTokens":100,"candidateCount":2}}"#,
                Some(100),
                Some(2),
                None,
            ),
            (
                r#"{"generation_config":{"max_output_tokens":100,"candidateCount":2},"cached_content":"cachedContents/1"}"#,
                Some(100),
                Some(2),
                Some("cached_content"),
            ),
            (
                r#"{"generationConfig":null,"cachedContent":null,"model":null}"#,
                None,
                None,
                None,
            ),
        ];
        for (body, cap, answers, keeps) in table {
            for cut in 0..body.len() {
                let head = read(body, cut).expect("a call");
                assert_eq!(head.model.as_deref(), Some("gemini-3-flash"));
                assert!(head.stream && head.by_path.is_some());
                assert_eq!(
                    (head.max_output_tokens, head.n, head.keeps),
                    (cap, answers, keeps)
                );
                assert_eq!(head.length, body.len());
                assert_eq!(splices(&head, Some("other"), true), []);
            }
        }
    }

    #[test]
    fn a_body_that_says_two_things_is_refused() {
        let table = [
            (r#"{"model":"models/other"}"#, "ambiguous_member"),
            (
                r#"{"generationConfig":{},"generation_config":{}}"#,
                "duplicate_member",
            ),
            (
                r#"{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":2}}"#,
                "duplicate_member",
            ),
            (
                r#"{"generationConfig":{"maxOutputTokens":1,"maxOutputTokens":2}}"#,
                "duplicate_member",
            ),
            (
                r#"{"generationConfig":{"maxOutputTokens":"1"}}"#,
                "wrong_type",
            ),
            (
                r#"{"generationConfig":{"maxOutputTokens":-1}}"#,
                "out_of_range",
            ),
            (r#"{"generationConfig":[]}"#, "wrong_type"),
            (r#"[]"#, "invalid_json"),
            (r#"{"contents":["#, "invalid_json"),
        ];
        for (body, code) in table {
            for cut in 0..body.len() {
                let fault = read(body, cut).expect_err("refused");
                assert_eq!(fault.code(), code, "{body}");
            }
        }
    }

    #[test]
    fn a_request_within_names_the_model_of_the_path_or_none() {
        let table = [
            (
                "batchEmbedContents",
                r#"{"requests":[{"model":"models/gemini-3-flash","content":{}},{"model":"gemini-3-flash"}]}"#,
                r#"{"requests":[{"model":"models/other","content":{}},{"model":"other"}]}"#,
            ),
            (
                "countTokens",
                r#"{"generateContentRequest":{"contents":[{"model":"x"}, "model"],"model":"models/gemini\u002d3-flash"}}"#,
                r#"{"generateContentRequest":{"contents":[{"model":"x"}, "model"],"model":"models/other"}}"#,
            ),
            (
                "countTokens",
                r#"{"contents":[{"parts":[{"text":"a","model":"b"}]}],"generateContentRequest":{"model":null}}"#,
                r#"{"contents":[{"parts":[{"text":"a","model":"b"}]}],"generateContentRequest":{"model":null}}"#,
            ),
            (
                "embedContent",
                r#"{"content":{"parts":[{"text":"\"model\":\"x\""}]}}"#,
                r#"{"content":{"parts":[{"text":"\"model\":\"x\""}]}}"#,
            ),
        ];
        for (verb, body, renamed) in table {
            for cut in 0..body.len() {
                let head = read_of(verb, body, cut).expect("a call");
                assert_eq!(splices(&head, None, true), []);
                let edits = splices(&head, Some("other"), true);
                let edited = apply(&[Bytes::copy_from_slice(body.as_bytes())], &edits).concat();
                assert_eq!(String::from_utf8(edited).expect("text"), renamed, "{cut}");
            }
        }
    }

    #[test]
    fn a_request_within_that_names_another_model_is_refused() {
        let table = [
            (
                "batchEmbedContents",
                r#"{"requests":[{"model":"models/gemini-3-flash"},{"content":{},"model":"models/other"}]}"#,
                "ambiguous_member",
            ),
            (
                "batchEmbedContents",
                r#"{"requests":[{"mod\u0065l":"models/other"}]}"#,
                "ambiguous_member",
            ),
            (
                "batchEmbedContents",
                r#"{"requests":[{"Model":"models/gemini-3-flash"}]}"#,
                "ambiguous_member",
            ),
            (
                "batchEmbedContents",
                r#"{"requests":[{"content":{"parts":[{}, 1, "a"]}, "model" : ["models/gemini-3-flash"]}]}"#,
                "wrong_type",
            ),
            (
                "batchEmbedContents",
                r#"{"requests":[{"model":7}]}"#,
                "wrong_type",
            ),
            (
                "countTokens",
                r#"{"generateContentRequest":{"model":"models/other"}}"#,
                "ambiguous_member",
            ),
            (
                "countTokens",
                r#"{"generate_content_request":{"contents":[],"model":"other"}}"#,
                "ambiguous_member",
            ),
            (
                "countTokens",
                r#"{"generateContentRequest":{"model":"models/gemini-3-flash","model":"models/other"}}"#,
                "ambiguous_member",
            ),
            (
                "countTokens",
                r#"{"generateContentRequest":{"model":"models/models/gemini-3-flash"}}"#,
                "ambiguous_member",
            ),
        ];
        for (verb, body, code) in table {
            for cut in 0..body.len() {
                let fault = read_of(verb, body, cut).expect_err(body);
                assert_eq!(fault.code(), code, "{body}");
            }
        }
    }
}
