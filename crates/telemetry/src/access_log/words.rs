//! The keys of a line, and the words that are always the same.
//!
//! Not here: in what order they stand, and their values (`line`).

use policy::record::{Count, Outcome};

use super::piece::Piece;

/// A member up to its value.
const fn key(key: &str) -> Piece {
    Piece::new([",\"", key, "\":"])
}

/// A member up to the inside of its text.
const fn opening(key: &str) -> Piece {
    Piece::new([",\"", key, "\":\""])
}

pub(super) static ID: Piece = Piece::new(["\"", ",\"request_id\":\"", ""]);
pub(super) static UPSTREAM_ID: Piece = opening("upstream_request_id");
pub(super) static CLIENT: Piece = opening("client_address");
pub(super) static MODEL: Piece = opening("model");
pub(super) static MODEL_SENT: Piece = opening("model_sent");
pub(super) static STATUS: Piece = key("status");
pub(super) static CODE: Piece = opening("code");
pub(super) static LIMITED: Piece = opening("limited");
pub(super) static STREAMED: Piece = Piece::new([",\"streamed\":true", ",\"attempts\":", ""]);
pub(super) static WHOLE: Piece = Piece::new([",\"streamed\":false", ",\"attempts\":", ""]);
pub(super) static PROMPT: Piece = key("prompt_tokens");
pub(super) static COMPLETION: Piece = key("completion_tokens");
pub(super) static CACHED: Piece = key("cached_tokens");
pub(super) static REASONING: Piece = key("reasoning_tokens");
pub(super) static CACHE_WRITE_5M: Piece = key("cache_write_5m_tokens");
pub(super) static CACHE_WRITE_1H: Piece = key("cache_write_1h_tokens");
pub(super) static AUDIO_PROMPT: Piece = key("audio_prompt_tokens");
pub(super) static AUDIO_COMPLETION: Piece = key("audio_completion_tokens");
pub(super) static REASON: Piece = opening("estimate_reason");
pub(super) static UNCONFIRMED: Piece = key("unconfirmed_attempts");
pub(super) static UNCONFIRMED_TOKENS: Piece = key("unconfirmed_tokens");
pub(super) static BYTES_IN: Piece = key("bytes_in");
pub(super) static BYTES_OUT: Piece = key("bytes_out");
pub(super) static DURATION: Piece = key("duration_us");
pub(super) static FIRST_BYTE: Piece = key("first_byte_us");
pub(super) static OWN: Piece = key("own_us");
pub(super) static UPSTREAM: Piece = key("upstream_us");
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
