//! A call whose path names its model and how it answers, as Google's do: what policy reads of its body.
//!
//! A scan of its own, so that other calls pay nothing for it.
//! Invariant: as for every member that is read, it says one thing or the call is refused. Google takes each name in two forms, and
//! where both stand nobody knows which one counts.
//! Not here: the path (`dialect::gemini`).

use super::fault::{CallFault, CallFaultKind};
use super::head::{CallHead, Prompts, StreamOptions, count_of, is_set, wrong_type_of};
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
}

impl NamedScanner {
    pub(super) fn of(named: &Named<'_>) -> Self {
        Self {
            scanner: Scanner::new(&ASKED),
            model: (*named.model).into(),
            streams: named.streams(),
        }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), CallFault> {
        self.scanner.push(chunk).map_err(CallFault::from)
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
            prompts: Prompts::ONE,
            length: found.length,
            open,
            empty: found.empty,
            is_named_by_path: true,
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
    use crate::call::{CallScanner, splices};

    fn read(body: &str, cut: usize) -> Result<CallHead, CallFault> {
        let named =
            Named::of("/v1beta/models/gemini-3-flash:streamGenerateContent").expect("a call");
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
                assert!(head.stream && head.is_named_by_path);
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
}
