//! Usage in a response that is one JSON document.
//!
//! Invariant: memory is bounded; a body that is no JSON gives `Absent`, never an error.

use super::{Reading, USAGE_LIMIT_BYTES, read};
use crate::json::{Interest, Interests, Kind, Repeat, Scanner, Want};

static ASKED: Interests = Interests::new(&[Interest::new(
    "usage",
    Want::Raw(USAGE_LIMIT_BYTES),
    Repeat::LastWins,
)]);

/// Reads the usage out of a response body as it passes.
///
/// ```
/// let mut usage = wire::usage::UnaryUsage::new();
/// usage.push(br#"{"choices":[],"usage":{"prompt_tok"#);
/// usage.push(br#"ens":3,"completion_tokens":0}}"#);
/// let wire::usage::Reading::Valid(usage) = usage.finish() else { panic!() };
/// assert_eq!((usage.prompt, usage.completion), (Some(3), Some(0)));
/// ```
#[derive(Debug)]
pub struct UnaryUsage(Option<Scanner>);

impl Default for UnaryUsage {
    fn default() -> Self {
        Self::new()
    }
}

impl UnaryUsage {
    /// A reader for one response body.
    pub fn new() -> Self {
        Self(Some(Scanner::new(&ASKED)))
    }

    /// Looks at the next bytes.
    pub fn push(&mut self, chunk: &[u8]) {
        if self
            .0
            .as_mut()
            .is_some_and(|scanner| scanner.push(chunk).is_err())
        {
            self.0 = None;
        }
    }

    /// Ends the body.
    pub fn finish(&mut self) -> Reading {
        let Some(Ok(found)) = self.0.as_mut().map(Scanner::finish) else {
            return Reading::Absent;
        };
        match found.member(0) {
            None => Reading::Absent,
            Some(member) if member.kind == Kind::Null => Reading::Absent,
            Some(member) if member.cut => Reading::Invalid,
            Some(member) => read(found.raw(member)),
        }
    }
}
