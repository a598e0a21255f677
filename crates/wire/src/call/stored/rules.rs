//! Under which names calls of each API name what the provider keeps, and which of their members are the caller's own text.
//!
//! Invariant: one list for OpenAI's and Anthropic's calls, whose names do not contradict each other, and one for Google's.
//! Not here: how a body is gone through (`walk`).

use crate::dialect::Operation;

/// What is looked for in the calls of an API.
pub(super) struct Rules {
    /// Without the bytes of one of these, in whatever letters, a call names nothing; in lower case.
    pub(super) hints: &'static [&'static str],
    /// A text or a list of texts under one of these is an id.
    pub(super) ids: &'static [&'static str],
    /// The same of `id` in an object under one of these, with what a refusal calls it.
    pub(super) holders: &'static [(&'static str, &'static str)],
    /// Addresses, of which those of the account are ids.
    pub(super) addresses: &'static [&'static str],
    /// What stands under one of these is the caller's own.
    pub(super) free: &'static [&'static str],
    /// The same below the body's own members.
    pub(super) free_below: &'static [&'static str],
}

const IDS: &[&str] = &[
    "file_id",
    "file_ids",
    "vector_store_id",
    "vector_store_ids",
    "container",
    "container_id",
    "skill_id",
];

const FREE: &[&str] = &[
    "arguments",
    "env",
    "headers",
    "input_schema",
    "logit_bias",
    "metadata",
    "parameters",
    "schema",
];

const CHAT: Rules = Rules {
    hints: &["file_id", "\"audio\"", "\"voice\""],
    ids: IDS,
    holders: &[("audio", "audio.id"), ("voice", "voice.id")],
    addresses: &[],
    free: FREE,
    free_below: &["input"],
};

const MESSAGES: Rules = Rules {
    hints: &["file_id"],
    ..CHAT
};

/// Items of a conversation have ids, and one may say no more than its own.
const RESPONSES: Rules = Rules {
    hints: &["id\"", "_ids\"", "\"container\"", "\"voice\""],
    ..CHAT
};

const SPEECH: Rules = Rules {
    hints: &["\"voice\""],
    ..CHAT
};

/// Pictures are edited by their ids (`images[].file_id`, `mask.file_id`).
const PICTURES: Rules = Rules {
    hints: &["file_id"],
    ..CHAT
};

/// Google takes each name in two forms.
const GOOGLE: Rules = Rules {
    hints: &[
        "ileuri",
        "ile_uri",
        "torenames",
        "tore_names",
        "agcorpus",
        "ag_corpus",
        "agfileids",
        "ag_file_ids",
        "datastore",
        "data_store",
        "achedcontent",
        "ached_content",
    ],
    ids: &[
        "cachedContent",
        "cached_content",
        "fileSearchStoreNames",
        "file_search_store_names",
        "ragCorpus",
        "rag_corpus",
        "ragFileIds",
        "rag_file_ids",
        "dataStore",
        "data_store",
    ],
    holders: &[],
    addresses: &["fileUri", "file_uri"],
    free: &[
        "args",
        "labels",
        "parameters",
        "parametersJsonSchema",
        "parameters_json_schema",
        "response",
        "responseJsonSchema",
        "responseSchema",
        "response_json_schema",
        "response_schema",
    ],
    free_below: &[],
};

/// What is looked for in a call; `None` where it can name nothing.
pub(super) fn of(operation: Operation) -> Option<&'static Rules> {
    match operation {
        Operation::Chat => Some(&CHAT),
        Operation::Messages | Operation::CountTokens => Some(&MESSAGES),
        Operation::Responses | Operation::InputTokens => Some(&RESPONSES),
        Operation::Speech => Some(&SPEECH),
        Operation::GenerateContent | Operation::CountContent | Operation::EmbedContent => {
            Some(&GOOGLE)
        }
        Operation::Images | Operation::ImageEdits => Some(&PICTURES),
        Operation::Completions
        | Operation::Embeddings
        | Operation::Models
        | Operation::Moderations
        | Operation::Rerank
        | Operation::Transcriptions
        | Operation::Converse
        | Operation::CohereChat
        | Operation::CohereEmbed
        | Operation::GeminiModels
        | Operation::Unread
        | Operation::Http
        | Operation::KeptResponse
        | Operation::ResponsesSocket
        | Operation::Mcp => None,
    }
}

/// Whether an address is of the account: a bucket, Google's own files, or no address at all. What anybody can fetch is not.
pub(super) fn is_of_account(address: &str) -> bool {
    let address = address.trim().to_ascii_lowercase();
    let rest = address
        .strip_prefix("https://")
        .or_else(|| address.strip_prefix("http://"));
    let is_public = rest.is_some_and(|rest| {
        let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        !authority.contains("googleapis.com")
    });
    !address.is_empty() && !is_public
}
