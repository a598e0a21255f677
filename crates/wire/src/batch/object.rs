//! What a provider says of one file or batch.
//!
//! Invariant: an answer that says a member twice is none.
//! Not here: what a batch used, call by call (`result`).

use std::ops::Range;

use super::Api;
use crate::json::{Found, Interest, Interests, Kind, Repeat, Scanner, Want};
use crate::usage::{self, Reading, USAGE_LIMIT_BYTES};

/// Longest that is read.
pub const OBJECT_BYTES_MAX: usize = 256 << 10;

static ASKED: Interests = Interests::new(&[
    Interest::new("id", Want::Scalar, Repeat::Refuse),
    Interest::new("status", Want::Scalar, Repeat::LastWins),
    Interest::new("processing_status", Want::Scalar, Repeat::LastWins),
    Interest::new("input_file_id", Want::Scalar, Repeat::Refuse),
    Interest::new("output_file_id", Want::Scalar, Repeat::Refuse),
    Interest::new("error_file_id", Want::Scalar, Repeat::Refuse),
    Interest::new("results_url", Want::Place, Repeat::Refuse),
    Interest::new("usage", Want::Raw(USAGE_LIMIT_BYTES), Repeat::Refuse),
    Interest::new("request_counts", Want::Place, Repeat::Refuse),
    Interest::new("request_counts.completed", Want::Scalar, Repeat::Refuse),
    Interest::new("request_counts.succeeded", Want::Scalar, Repeat::Refuse),
]);

/// A file or a batch, as far as it matters here.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Its id.
    pub id: Box<str>,
    /// It is a batch that runs no more.
    pub is_over: bool,
    /// It came to its end, and was not broken off.
    is_whole: bool,
    /// How many of its calls were answered, where it says that.
    pub answered: Option<u64>,
    /// The file of calls that it is of.
    pub input_file: Option<Box<str>>,
    /// The file of what those came to.
    pub output_file: Option<Box<str>>,
    /// The file of those that failed.
    pub error_file: Option<Box<str>>,
    /// What all of its calls used, where it says that.
    pub usage: Reading,
    results_url: Option<Range<usize>>,
}

impl Object {
    /// Reads one. `None` where it is none.
    #[must_use]
    pub fn read(api: Api, body: &[u8]) -> Option<Self> {
        if body.len() > OBJECT_BYTES_MAX {
            return None;
        }
        let mut scanner = Scanner::new(&ASKED);
        scanner.push(body).ok()?;
        let found = scanner.finish().ok()?;
        found.open?;
        let text = |nth: usize| -> Option<Box<str>> {
            let member = found.member(nth).filter(|m| m.kind == Kind::String)?;
            Some(found.text(member)?.into_owned().into())
        };
        let status = text(match api {
            Api::OpenAi => 1,
            Api::Anthropic => 2,
        });
        let is_over = matches!(
            (api, status.as_deref()),
            (
                Api::OpenAi,
                Some("completed" | "failed" | "expired" | "cancelled")
            ) | (Api::Anthropic, Some("ended"))
        );
        Some(Self {
            id: text(0)?,
            is_over,
            is_whole: matches!(status.as_deref(), Some("completed" | "ended")),
            answered: count(
                found,
                match api {
                    Api::OpenAi => 9,
                    Api::Anthropic => 10,
                },
            ),
            input_file: text(3),
            output_file: text(4),
            error_file: text(5),
            usage: usage(found),
            results_url: url(found),
        })
    }

    /// What all of its calls used, where it says that: zeros stand there until it is known.
    #[must_use]
    pub const fn sum(&self) -> Option<&Reading> {
        match &self.usage {
            Reading::Valid(usage)
                if matches!(
                    (usage.prompt, usage.completion),
                    (Some(1..), _) | (_, Some(1..))
                ) =>
            {
                Some(&self.usage)
            }
            _ => None,
        }
    }

    /// The files of its result.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        [&self.output_file, &self.error_file]
            .into_iter()
            .filter_map(Option::as_deref)
    }

    /// Whether calls of it were answered, or may have been, though it names no result.
    #[must_use]
    pub fn lacks_result(&self) -> bool {
        match self.answered {
            Some(answered) => answered > 0,
            None => self.is_whole && self.error_file.is_none(),
        }
    }

    /// Whether it says where its results are.
    #[must_use]
    pub const fn has_results(&self) -> bool {
        self.results_url.is_some()
    }

    /// The same document with the results of a batch at this path, in place of the address where they are.
    #[must_use]
    pub fn with_results_at(&self, body: &[u8], path: &str) -> Vec<u8> {
        let Some(at) = self.results_url.clone() else {
            return body.to_vec();
        };
        let before = body.get(..at.start).unwrap_or_default();
        let after = body.get(at.end..).unwrap_or_default();
        [before, b"\"", path.as_bytes(), b"\"", after].concat()
    }
}

fn usage(found: &Found) -> Reading {
    match found.member(7).filter(|member| member.kind == Kind::Object) {
        Some(member) if !member.cut => usage::read(found.raw(member)),
        _ => Reading::Absent,
    }
}

fn count(found: &Found, nth: usize) -> Option<u64> {
    let member = found.member(nth).filter(|m| m.kind == Kind::Number)?;
    std::str::from_utf8(found.raw(member)).ok()?.parse().ok()
}

fn url(found: &Found) -> Option<Range<usize>> {
    let member = found.member(6).filter(|m| m.kind == Kind::String)?;
    Some(member.value.clone())
}
