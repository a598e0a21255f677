//! How the keys of a line are made, and the words that are always the same.
//!
//! Not here: which keys there are, in what order they stand, and their values (`line`).

use policy::record::{Count, Outcome};

use super::piece::Piece;

/// A member up to its value.
pub(super) const fn key(key: &str) -> Piece {
    Piece::new([",\"", key, "\":"])
}

/// A member up to the inside of its text.
pub(super) const fn opening(key: &str) -> Piece {
    Piece::new([",\"", key, "\":\""])
}

pub(super) static ID: Piece = Piece::new(["\"", ",\"request_id\":\"", ""]);
pub(super) static STREAMED: Piece = Piece::new([",\"streamed\":true", ",\"attempts\":", ""]);
pub(super) static WHOLE: Piece = Piece::new([",\"streamed\":false", ",\"attempts\":", ""]);
pub(super) static PROMPT_BY: [Piece; 3] = witnesses(",\"prompt_source\":\"");
pub(super) static COMPLETION_BY: [Piece; 3] = witnesses(",\"completion_source\":\"");

/// How an exchange ended, in a member.
pub(super) fn outcome(outcome: Outcome) -> &'static Piece {
    const fn piece(outcome: Outcome) -> Piece {
        Piece::new([",\"outcome\":\"", outcome.as_str(), "\""])
    }
    static COMPLETED: Piece = piece(Outcome::Completed);
    static REFUSED: Piece = piece(Outcome::Refused);
    static FAILED: Piece = piece(Outcome::Failed);
    static ABORTED: Piece = piece(Outcome::Aborted);
    match outcome {
        Outcome::Completed => &COMPLETED,
        Outcome::Refused => &REFUSED,
        Outcome::Failed => &FAILED,
        Outcome::Aborted => &ABORTED,
    }
}

/// Who counted, each in a member.
const fn witnesses(opening: &str) -> [Piece; 3] {
    [
        Piece::new([opening, Count::Reported(0).source(), "\""]),
        Piece::new([opening, Count::Counted(0).source(), "\""]),
        Piece::new([opening, Count::Estimated(0).source(), "\""]),
    ]
}
