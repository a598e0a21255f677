//! Under which names calls of each API name what the provider keeps, and which of their members are the caller's own text.
//!
//! Invariant: one list for OpenAI's and Anthropic's calls, whose names do not contradict each other, and one for Google's.
//! Not here: how a body is gone through (`walk`).

use super::address;
use crate::dialect::Operation;

/// What is looked for in the calls of an API.
#[derive(Debug)]
pub(super) struct Rules {
    /// Without the bytes of one of these, in whatever letters, a call names nothing; in lower case.
    pub(super) hints: &'static [&'static str],
    /// A text or a list of texts under one of these is an id.
    pub(super) ids: &'static [&'static str],
    /// The same of `id` in an object under one of these, with what a refusal calls it.
    pub(super) holders: &'static [(&'static str, &'static str)],
    /// What stands under one of these, whatever it is, has the provider read with the rights of the account.
    pub(super) whole: &'static [&'static str],
    /// The same of what need say nothing: that it is there is enough.
    pub(super) asked: &'static [&'static str],
    /// The same as `whole` among the body's own members.
    pub(super) whole_at_top: &'static [&'static str],
    /// Addresses, of which those of the account are ids.
    pub(super) addresses: &'static [&'static str],
    /// Whether an address is one of the account.
    pub(super) is_of_account: fn(&str) -> bool,
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
    "collection_ids",
    "cached_content",
    "cachedContent",
    "project_connection_id",
    "index_asset_id",
    "memory_store_name",
    "connector_id",
];

/// Sources that Azure reads with a credential of its own, Foundry's tools over them, and servers of tools that a provider is connected to.
const WHOLE: &[&str] = &[
    "data_sources",
    "dataSources",
    "azure_ai_search",
    "agent_reference",
    "mcp_servers",
    "mcpServers",
];

/// Under which names addresses stand in calls of OpenAI's and Anthropic's. Endpoints of Google's that speak OpenAI's read those of
/// their own with the rights of the account.
const ADDRESSES: &[&str] = &["url", "image_url", "video_url", "file_url", "file_data"];

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
    hints: &[
        "file_id",
        "\"audio\"",
        "\"voice\"",
        "\"cached",
        "\"data_source",
        "\"datasource",
        "url\"",
        "file_data",
        "mcp_servers",
        "mcpservers",
    ],
    ids: IDS,
    holders: &[("audio", "audio.id"), ("voice", "voice.id")],
    whole: WHOLE,
    asked: &[],
    whole_at_top: &[],
    addresses: ADDRESSES,
    is_of_account: address::is_of_account,
    free: FREE,
    free_below: &["input"],
};

const MESSAGES: Rules = Rules {
    hints: &["file_id", "url\"", "mcp_servers", "mcpservers"],
    ..CHAT
};

/// Items of a conversation have ids, and one may say no more than its own.
const RESPONSES: Rules = Rules {
    hints: &[
        "id\"",
        "_ids\"",
        "\"container\"",
        "\"voice\"",
        "\"agent",
        "azure_ai_search",
        "memory_store_name",
        "\"cached",
        "\"data_source",
        "\"datasource",
        "url\"",
        "file_data",
        "mcp_servers",
        "mcpservers",
    ],
    whole_at_top: &["agent"],
    ..CHAT
};

/// Of calls to Responses, what of the conversation itself is named by its id alone.
pub(super) const ITEMS: Rules = Rules {
    hints: &["\"id\""],
    ids: &[],
    holders: &[("prompt", "prompt.id")],
    whole: &[],
    whole_at_top: &[],
    addresses: &[],
    ..RESPONSES
};

/// Items of a session have ids of that session alone, and no other one's.
const REALTIME: Rules = Rules {
    hints: &[
        "file_id",
        "\"voice\"",
        "\"container\"",
        "connector_id",
        "vector_store",
        "mcp_servers",
        "mcpservers",
        "url\"",
    ],
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
        "externalapi",
        "external_api",
        "vertexaisearch",
        "vertex_ai_search",
        "agstore",
        "ag_store",
        "erviceaccount",
        "ervice_account",
        "eysecret",
        "ey_secret",
        "odelarmor",
        "odel_armor",
        "websearch",
        "web_search",
        "aisearch",
        "ai_search",
        "mcps",
        "mcp_s",
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
        "serviceAccount",
        "service_account",
        "apiKeySecret",
        "api_key_secret",
        "apiKeySecretVersion",
        "api_key_secret_version",
    ],
    holders: &[],
    // What a tool of retrieval searches, with what the account may read; servers that it is connected to; a project's templates.
    whole: &[
        "mcpServers",
        "mcp_servers",
        "modelArmorConfig",
        "model_armor_config",
        "externalApi",
        "external_api",
        "vertexAiSearch",
        "vertex_ai_search",
        "vertexRagStore",
        "vertex_rag_store",
    ],
    // Searches that the project has subscribed to.
    asked: &[
        "enterpriseWebSearch",
        "enterprise_web_search",
        "parallelAiSearch",
        "parallel_ai_search",
    ],
    whole_at_top: &[],
    addresses: &["fileUri", "file_uri"],
    is_of_account: address::is_of_googles_account,
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
        // Those that take none of it are held to the same.
        Operation::Responses
        | Operation::InputTokens
        | Operation::Embeddings
        | Operation::Moderations => Some(&RESPONSES),
        Operation::Speech => Some(&SPEECH),
        Operation::Realtime => Some(&REALTIME),
        Operation::GenerateContent | Operation::CountContent | Operation::EmbedContent => {
            Some(&GOOGLE)
        }
        Operation::Images | Operation::ImageEdits => Some(&PICTURES),
        Operation::Completions
        | Operation::Models
        | Operation::Rerank
        | Operation::Transcriptions
        | Operation::Converse
        | Operation::CohereChat
        | Operation::CohereEmbed
        | Operation::GeminiModels
        | Operation::Unread
        | Operation::Http
        | Operation::KeptResponse
        | Operation::Files
        | Operation::Batches
        | Operation::BatchUsage
        | Operation::ResponsesSocket
        | Operation::RealtimeSocket
        | Operation::Mcp => None,
    }
}
