//! An answer that is billed by pieces or by seconds: how many it has, beside its usage.
//!
//! Invariant: memory is bounded; what is no JSON, or not the number that it should be, tells nothing.
//! Not here: which answers are read so, and what a piece costs (`policy`).

use super::Measure;
use crate::dialect::{Name, names};
use crate::json::{Found, Interest, Interests, Kind, Member, Repeat, Scanner, Want};
use crate::usage::{self, Beginning, Reading, USAGE_LIMIT_BYTES};

/// Where usage stands in a document.
const USAGE: [&str; 3] = names(Name::Usage);
/// No number of seconds is longer.
const SECONDS_BYTES: usize = 64;
/// More than thirty years of sound are no report.
const SECONDS_MAX: f64 = 1e9;

const fn asked(path: &'static str, want: Want) -> Interest {
    Interest::new(path, want, Repeat::LastWins)
}

static ASKED: Interests = Interests::new(&[
    asked(USAGE[0], Want::Raw(USAGE_LIMIT_BYTES)),
    asked("data", Want::Elements),
    // Of a transcription that says all it knows.
    asked("duration", Want::Raw(SECONDS_BYTES)),
]);

static IN_USAGE: Interests = Interests::new(&[asked("seconds", Want::Raw(SECONDS_BYTES))]);

/// Reads one such answer.
#[derive(Debug)]
pub(super) struct Measured {
    /// None once nothing more is read.
    scanner: Option<Scanner>,
    beginning: Beginning,
    reading: Reading,
    measure: Measure,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            scanner: Some(Scanner::new(&ASKED)),
            beginning: Beginning::default(),
            reading: Reading::Absent,
            measure: Measure::default(),
        }
    }
}

impl Measured {
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.beginning.push(chunk);
        if let Some(scanner) = &mut self.scanner
            && scanner.push(chunk).is_err()
        {
            self.scanner = None;
        }
    }

    /// Whether nothing has come.
    pub(super) const fn is_empty(&self) -> bool {
        self.beginning.is_empty()
    }

    pub(super) fn finish(&mut self) -> &Reading {
        if let Some(mut scanner) = self.scanner.take()
            && let Ok(found) = scanner.finish()
        {
            (self.reading, self.measure) = of_found(found);
            if self.reading == Reading::Absent && self.beginning.is_error() {
                self.reading = Reading::NoAnswer;
            }
        }
        &self.reading
    }

    pub(super) const fn measure(&self) -> Measure {
        self.measure
    }
}

fn of_found(found: &Found) -> (Reading, Measure) {
    let said = |at| found.member(at).filter(|m: &&Member| m.kind != Kind::Null);
    let usage = said(0).map(|member| (found.raw(member), member.cut));
    let reading = match usage {
        None => Reading::Absent,
        Some((_, true)) => Reading::UNREAD,
        Some((raw, false)) => usage::read(raw),
    };
    let pieces = said(1).filter(|member| member.kind == Kind::Array);
    let pieces = pieces.map(|_| u32::try_from(found.elements.others).unwrap_or(u32::MAX));
    let in_usage = usage.and_then(|(raw, _)| {
        let mut scanner = Scanner::new(&IN_USAGE);
        scanner.push(raw).ok()?;
        let found = scanner.finish().ok()?;
        seconds(found.raw(found.member(0)?))
    });
    let seconds = in_usage.or_else(|| seconds(found.raw(said(2)?)));
    (reading, Measure { pieces, seconds })
}

/// A number, or a text that is one.
fn seconds(raw: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(raw).ok()?.trim_matches('"');
    let seconds: f64 = text.parse().ok()?;
    let is_true = (0.0..=SECONDS_MAX).contains(&seconds);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was held to its range"
    )]
    is_true.then(|| seconds.ceil() as u64)
}

#[cfg(test)]
mod tests {
    //! Answers as providers give them, in pieces of any length.

    use super::Measured;
    use crate::meter::Measure;
    use crate::usage::Reading;

    fn told(text: &str, piece: usize) -> (Reading, Measure) {
        let mut measured = Measured::default();
        for piece in text.as_bytes().chunks(piece) {
            measured.push(piece);
        }
        let reading = *measured.finish();
        (reading, measured.measure())
    }

    #[test]
    fn pieces_and_seconds_are_told_beside_usage() {
        for (text, pieces, seconds, prompt) in [
            (
                r#"{"created":1,"data":[{"url":"x"},{"b64_json":"[{"}]}"#,
                Some(2),
                None,
                None,
            ),
            (
                r#"{"data":[{}],"usage":{"input_tokens":5,"output_tokens":7}}"#,
                Some(1),
                None,
                Some(5),
            ),
            (r#"{"data":[]}"#, Some(0), None, None),
            (r#"{"data":{"a":1}}"#, None, None, None),
            (
                r#"{"text":"a","usage":{"type":"duration","seconds":3600}}"#,
                None,
                Some(3600),
                None,
            ),
            (
                r#"{"text":"a","usage":{"type":"duration","seconds":8.2}}"#,
                None,
                Some(9),
                None,
            ),
            (
                r#"{"duration":"8.470000267028809","text":"a"}"#,
                None,
                Some(9),
                None,
            ),
            (
                r#"{"duration":12.5,"usage":{"seconds":13},"text":"a"}"#,
                None,
                Some(13),
                None,
            ),
            (r#"{"duration":-1,"text":"a"}"#, None, None, None),
            (r#"{"duration":"NaN","text":"a"}"#, None, None, None),
            (r#"{"duration":1e300,"text":"a"}"#, None, None, None),
            (r#"{"duration":[1],"text":"a"}"#, None, None, None),
            (r#"{"duration":1"#, None, None, None),
            ("WEBVTT", None, None, None),
        ] {
            for piece in 1..=text.len() {
                let (reading, measure) = told(text, piece);
                assert_eq!(measure, Measure { pieces, seconds }, "{text} {piece}");
                let told = match reading {
                    Reading::Valid(usage) => usage.prompt,
                    _ => None,
                };
                assert_eq!(told, prompt, "{text}");
            }
        }
    }
}
