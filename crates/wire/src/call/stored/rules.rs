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

/// What an engine fetches of a prompt from another one: from where, and what, as the caller says (vLLM, SGLang), and the session that it
/// keeps for whom it knows (SGLang).
const OF_ENGINES: [&str; 4] = [
    "kv_transfer_params",
    "ec_transfer_params",
    "bootstrap_host",
    "session_params",
];

/// Sources that Azure reads with a credential of its own, Foundry's tools over them, and servers of tools that a provider is connected to.
const WHOLE: &[&str] = &[
    "data_sources",
    "dataSources",
    "azure_ai_search",
    "agent_reference",
    "mcp_servers",
    "mcpServers",
    OF_ENGINES[0],
    OF_ENGINES[1],
    OF_ENGINES[2],
    OF_ENGINES[3],
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

/// Where no bytes of these stand, no name of OpenAI's or Anthropic's calls does.
const HINTS: &[&str] = &[
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
    "vector_store",
    "\"container",
    "skill_id",
    "collection_ids",
    "connection_id",
    "index_asset_id",
    "memory_store_name",
    "connector_id",
    "azure_ai_search",
    "agent_reference",
    "_transfer_params",
    "bootstrap_host",
    "session_params",
];

const CHAT: Rules = Rules {
    hints: HINTS,
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

/// The older completions have no parts in which something is named.
const COMPLETIONS: Rules = Rules {
    hints: &["_transfer_params", "bootstrap_host", "session_params"],
    ids: &[],
    holders: &[],
    whole: &OF_ENGINES,
    addresses: &[],
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
        "_transfer_params",
        "bootstrap_host",
        "session_params",
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
        Operation::Chat
        | Operation::Messages
        | Operation::CountTokens
        | Operation::Speech
        | Operation::Images
        | Operation::ImageEdits => Some(&CHAT),
        // Items of a session have ids of that session alone, and no other one's.
        Operation::Realtime => Some(&CHAT),
        // Those that take none of it are held to the same.
        Operation::Responses
        | Operation::InputTokens
        | Operation::Embeddings
        | Operation::Moderations => Some(&RESPONSES),
        Operation::GenerateContent | Operation::CountContent | Operation::EmbedContent => {
            Some(&GOOGLE)
        }
        Operation::Completions => Some(&COMPLETIONS),
        Operation::Models
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

#[cfg(test)]
mod tests {
    use super::{CHAT, COMPLETIONS, GOOGLE, RESPONSES};

    #[test]
    fn no_name_is_without_a_hint() {
        for rules in [&CHAT, &COMPLETIONS, &RESPONSES, &GOOGLE] {
            let has_hint = |text: &str| {
                let text = text.to_lowercase();
                rules.hints.iter().any(|hint| text.contains(hint))
            };
            let names = [
                rules.ids,
                rules.whole,
                rules.asked,
                rules.whole_at_top,
                rules.addresses,
            ];
            for name in names.into_iter().flatten() {
                assert!(has_hint(&format!("\"{name}\":")), "{name}");
            }
            for (holder, _) in rules.holders {
                assert!(has_hint(&format!("\"{holder}\":{{\"id\":")), "{holder}");
            }
        }
    }
}
