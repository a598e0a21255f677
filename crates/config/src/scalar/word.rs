//! Words of the document: a field that takes one of a few, and what each stands for.
//!
//! Invariant: one line says a word, what it is and its place in the JSON Schema.
//! Not here: fields that take something else beside words (`source`).

use policy::billing::{BilledBy as By, Billing as Bills};
use policy::client::Recorded as Keeps;
use policy::credential::Known;
use policy::limit::Window as Counts;
use policy::mcp::{Method, OnChange, Prefix};
use policy::snapshot::{AskUsage as Asks, Protocol as Http};
use policy::wire::batch::Api;
use policy::{budget, subject};
use translate::Dialect as Spoken;

use crate::host::{self, Vocabulary};

/// Types of fields that take one of a few words: what another text is not, what to write in its place (a list of the
/// words unless said), and what each word stands for.
macro_rules! words {
    ($(
        $(#[doc = $about:literal])*
        $name:ident($of:ty): $is:literal $(, $hint:expr)? => { $($word:literal => $value:expr,)* }
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name(pub(crate) $of);

        impl $crate::decode::Written for $name {
            fn read(text: &str) -> Result<Self, $crate::decode::Problem> {
                match text {
                    $($word => Ok(Self($value)),)*
                    _ => {
                        let hint = [$($hint)?].first().map_or_else(
                            || $crate::scalar::listed(&[$($word),*]),
                            |hint: &&str| (*hint).to_owned(),
                        );
                        Err($crate::decode::Problem::new($is, hint))
                    }
                }
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({ "enum": [$($word),*] })
            }
        }
    )*};
}
pub(crate) use words;

/// «write a, b or c».
pub(crate) fn listed(words: &[&str]) -> String {
    match words {
        [before @ .., last] if !before.is_empty() => {
            format!("write {} or {last}", before.join(", "))
        }
        _ => format!("write {}", words.join("")),
    }
}

words! {
    /// HTTP version towards a backend.
    Protocol(Http): "is not a protocol" => {
        "auto" => Http::Auto,
        "http1" => Http::Http1,
        "http2" => Http::Http2,
    }

    /// Whose files and batches a route lets its workloads have.
    FilesApi(Api): "is no API of files and batches" => {
        "openai" => Api::OpenAi,
        "anthropic" => Api::Anthropic,
    }

    /// When a tool's name begins with its server's.
    McpPrefix(Prefix): "does not say when names have a prefix" => {
        "always" => Prefix::Always,
        "never" => Prefix::Never,
        "on_conflict" => Prefix::OnConflict,
    }

    /// Whether callers are shown a tool that finds tools in place of all of them.
    ListTools(bool): "does not say how tools are listed" => {
        "all" => false,
        "search" => true,
    }

    /// What becomes of a tool that is not as it is pinned.
    OnToolChange(OnChange): "does not say what becomes of a changed tool" => {
        "warn" => OnChange::Warn,
        "refuse" => OnChange::Refuse,
    }

    /// A method whose operations are tools.
    ToolMethod(Method): "is no method whose operations are tools" => {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
    }

    /// A header that belongs to the API of one provider.
    ApiHeader(Option<Known>): "is no header that is part of an API" => {
        "openai-beta" => Some(Known::OpenaiBeta),
        "anthropic-version" => Some(Known::AnthropicVersion),
        "anthropic-beta" => Some(Known::AnthropicBeta),
        "none" => None,
    }

    /// Whether streams are asked for their usage.
    AskUsage(Asks): "does not say whether to ask" => {
        "auto" => Asks::Auto,
        "always" => Asks::Always,
        "never" => Asks::Never,
    }

    /// Whether a backend serves plain HTTP, and no model.
    Serves(bool): "is nothing that a backend serves" => {
        "models" => false,
        "http" => true,
    }

    /// An API that a backend speaks.
    Dialect(Spoken): "is no dialect" => {
        "openai" => Spoken::OpenAi,
        "responses" => Spoken::Responses,
        "anthropic" => Spoken::Anthropic,
        "gemini" => Spoken::Gemini,
        "vertex" => Spoken::Vertex,
        "bedrock" => Spoken::Bedrock,
        "azure" => Spoken::Azure,
        "cohere" => Spoken::Cohere,
        "anthropic-on-vertex" => Spoken::AnthropicOnVertex,
    }

    /// How a collector of spans is spoken to.
    OtlpProtocol(host::OtlpProtocol): "is not a protocol of OTLP" => {
        "http" => host::OtlpProtocol::Http,
        "grpc" => host::OtlpProtocol::Grpc,
    }

    /// How much care a route takes of its rows.
    Billing(Bills): "is not a kind of billing" => {
        "grouped" => Bills::Grouped,
        "strict" => Bills::Strict,
    }

    /// Whose count is billed.
    BilledBy(By): "is not a witness of tokens" => {
        "reported" => By::Reported,
        "counted" => By::Counted,
    }

    /// Whom a limit counts apart.
    Whose(subject::Whose): "is nobody whom a limit counts apart" => {
        "workload" => subject::Whose::Workload,
        "key" => subject::Whose::Key,
        "user" => subject::Whose::User,
    }

    /// How a limit counts over its window.
    Window(Counts): "is not how a limit counts over its window" => {
        "bucket" => Counts::Bucket,
        "rolling" => Counts::Rolling,
    }

    /// Whom a budget gives its amount to, where it is not for all whom it counts together.
    Apart(subject::Whose): "is nobody whom a budget counts apart",
        "write key or user, or leave it out: then all whom it counts share it" => {
        "key" => subject::Whose::Key,
        "user" => subject::Whose::User,
    }

    /// How long a calendar period is.
    Every(budget::Every): "is not a calendar period",
        "write day, week or month; a rate over a window is a route's limit" => {
        "day" => budget::Every::Day,
        "week" => budget::Every::Week,
        "month" => budget::Every::Month,
    }

    /// A vocabulary that is built in.
    BuiltIn(fn() -> Vocabulary): "is not a tokenizer",
        "write harmony, o200k, cl100k, or the model's own files: { file: tokenizer.json, … }" => {
        "harmony" => || Vocabulary::Harmony,
        "o200k" => || Vocabulary::O200k,
        "cl100k" => || Vocabulary::Cl100k,
    }

    /// How a chat template is given content.
    ContentFormat(host::ContentFormat): "is not a format of content" => {
        "auto" => host::ContentFormat::Auto,
        "string" => host::ContentFormat::Text,
        "openai" => host::ContentFormat::Parts,
    }

    /// What of a client's address is recorded.
    Recorded(Keeps): "is not a way to record addresses" => {
        "full" => Keeps::Full,
        "shortened" => Keeps::Shortened,
        "off" => Keeps::Off,
    }

    /// Whether trusted proxies begin a connection with a PROXY protocol header.
    ProxyProtocol(bool): "is not a use of the PROXY protocol" => {
        "off" => false,
        "required" => true,
    }

    /// Whether a call goes on where nobody answers.
    FailsOpen(bool): "is not a way to fail" => {
        "deny" => false,
        "allow" => true,
    }

    /// Whether names of the cluster's own are believed of any source.
    SystemNames(bool): "is no way to take names of the cluster's own" => {
        "trusted" => true,
        "refused" => false,
    }

    /// Whoever reaches the listener is believed.
    Trust(()): "is not a kind of trust", "write anyone, or leave it out and say `from`" => {
        "anyone" => (),
    }

    /// Whether a client's name and secret are sent in the form, and not as HTTP's basic credential.
    ClientAuth(bool): "is not a way to send a client's secret" => {
        "basic" => false,
        "post" => true,
    }

    /// Whether a caller's token is sent to be exchanged as JWT bearer (RFC 7523), and not by RFC 8693.
    JwtBearer(bool): "is not a grant for which a caller's token is given" => {
        "token_exchange" => false,
        "jwt_bearer" => true,
    }

    /// Whether a call is believed who is behind it.
    CallUser(bool): "is no way to take what a call says of its user" => {
        "trusted" => true,
        "ignored" => false,
    }

    /// Whether users are kept in records.
    RecordUser(bool): "is not a way to record users" => {
        "full" => true,
        "off" => false,
    }

    /// Whether a client without a certificate is let in.
    ClientCertificates(bool): "is not a use of client certificates" => {
        "required" => false,
        "optional" => true,
    }
    /// A signature algorithm, by its name in RFC 7518 and 8037.
    Algorithm(&'static str): "is not a signature algorithm that is known here",
        "write RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA" => {
        "RS256" => "RS256",
        "RS384" => "RS384",
        "RS512" => "RS512",
        "PS256" => "PS256",
        "PS384" => "PS384",
        "PS512" => "PS512",
        "ES256" => "ES256",
        "ES384" => "ES384",
        "ES512" => "ES512",
        "EdDSA" => "EdDSA",
    }
}
