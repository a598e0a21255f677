//! OpenAI's calls of which only the model is read: moderations, audio and images; and rerank, as Cohere, Jina and vLLM have it.

use super::cohere;
use super::description::{Dialect, Name};

pub(super) const MODERATIONS: Dialect = Dialect {
    name: "moderations",
    paths: &["moderations"],
    ..Dialect::JSON
};

pub(super) const RERANK: Dialect = Dialect {
    name: "rerank",
    paths: &["rerank", "score"],
    reports: cohere::IN_META,
    ..Dialect::JSON
};

pub(super) const SPEECH: Dialect = Dialect {
    name: "speech",
    paths: &["audio/speech"],
    answers_json: false,
    ..Dialect::JSON
};

pub(super) const TRANSCRIPTIONS: Dialect = Dialect {
    name: "transcriptions",
    paths: &["audio/transcriptions", "audio/translations"],
    reports: &[
        (Name::Usage, "usage"),
        (Name::PromptTokens, "input_tokens"),
        (Name::CompletionTokens, "output_tokens"),
        (Name::PromptDetails, "input_token_details"),
        (Name::AudioTokens, "audio_tokens"),
    ],
    ..Dialect::FORM
};

pub(super) const IMAGES: Dialect = Dialect {
    name: "images",
    paths: &["images/generations"],
    ..Dialect::JSON
};

pub(super) const IMAGE_EDITS: Dialect = Dialect {
    name: "image_edits",
    paths: &["images/edits", "images/variations"],
    ..Dialect::FORM
};
