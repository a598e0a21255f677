//! Which paths there are, by which methods, and what each is for.
//!
//! Invariant: a path that is not here is answered 404, and a method that is not listed with its path 405. What
//! `/openapi.json` shows and what the metrics of requests call a handler is this table.
//! Not here: what answers them (the parent, `admin`, `pages`).

use http::Method;

/// One path.
#[derive(Debug)]
pub(super) struct Route {
    /// With the name of its last part in braces where that varies.
    pub(super) path: &'static str,
    pub(super) methods: &'static [Method],
    pub(super) summary: &'static str,
    pub(super) operation: Operation,
    /// Whether it is counted in `http_*`.
    pub(super) is_metered: bool,
}

/// What answers a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// What counts as received, and needs the key under `/v1`.
    Api(Api),
    Page(Page),
    /// Pages that are there only if the engine keeps what arrives.
    Inspection(Inspection),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    Models,
    Work(Work),
    /// What a call would be read as, in tokens: no work for a model.
    Tokens(Tokens),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tokens {
    /// Of a message and its tools, as a number.
    Count,
    /// Of any call, as ids; only where [`enable_scale_out`](crate::EngineConfig::enable_scale_out) says so.
    Render(Work),
}

/// Work for a model; counted in `/load`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Chat,
    Completions,
    Responses,
    Messages,
    Embeddings,
    Score,
    Rerank,
}

/// What the server tells of itself and its tokenizer, and what it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Tokenize,
    Detokenize,
    TokenizerInfo,
    ResetPrefixCache,
    OpenApi,
    Health,
    Version,
    Load,
    ServerInfo,
    Metrics,
    Faults,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inspection {
    Requests,
    Stats,
}

impl Operation {
    /// Members that a body cannot do without.
    pub(super) fn required(self) -> &'static [&'static str] {
        match self {
            Self::Api(Api::Work(work) | Api::Tokens(Tokens::Render(work))) => work.required(),
            Self::Api(Api::Tokens(Tokens::Count)) => &["messages"],
            Self::Page(Page::Detokenize) => &["tokens"],
            Self::Api(Api::Models) | Self::Page(_) | Self::Inspection(_) => &[],
        }
    }
}

impl Work {
    /// What the ids of its answers begin with.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Chat => "chatcmpl-",
            Self::Completions => "cmpl-",
            Self::Responses => "resp_",
            Self::Messages => "msg_",
            Self::Embeddings => "embd-",
            Self::Score => "score-",
            Self::Rerank => "rerank-",
        }
    }

    fn required(self) -> &'static [&'static str] {
        match self {
            Self::Chat => &["messages"],
            Self::Completions => &["prompt"],
            Self::Responses | Self::Embeddings => &["input"],
            Self::Messages => &["messages", "max_tokens"],
            Self::Score => &["text_1", "text_2"],
            Self::Rerank => &["query", "documents"],
        }
    }
}

const GET: &[Method] = &[Method::GET];
const POST: &[Method] = &[Method::POST];

/// One that is counted in `http_*`.
const fn metered(
    path: &'static str,
    methods: &'static [Method],
    operation: Operation,
    summary: &'static str,
) -> Route {
    Route {
        is_metered: true,
        ..route(path, methods, operation, summary)
    }
}

/// One that vLLM's instrumentation leaves out, or that is the engine's own.
const fn route(
    path: &'static str,
    methods: &'static [Method],
    operation: Operation,
    summary: &'static str,
) -> Route {
    Route {
        path,
        methods,
        summary,
        operation,
        is_metered: false,
    }
}

const fn work(work: Work) -> Operation {
    Operation::Api(Api::Work(work))
}

const fn render(work: Work) -> Operation {
    Operation::Api(Api::Tokens(Tokens::Render(work)))
}

const fn page(page: Page) -> Operation {
    Operation::Page(page)
}

pub(super) const ROUTES: &[Route] = &[
    metered(
        "/v1/models",
        GET,
        Operation::Api(Api::Models),
        "List models",
    ),
    metered(
        "/v1/models/{model}",
        GET,
        Operation::Api(Api::Models),
        "One model",
    ),
    metered("/v1/chat/completions", POST, work(Work::Chat), "Chat"),
    metered(
        "/v1/completions",
        POST,
        work(Work::Completions),
        "Plain completion",
    ),
    metered("/v1/responses", POST, work(Work::Responses), "Response"),
    metered(
        "/v1/messages",
        POST,
        work(Work::Messages),
        "Anthropic's messages",
    ),
    metered(
        "/v1/messages/count_tokens",
        POST,
        Operation::Api(Api::Tokens(Tokens::Count)),
        "Tokens of Anthropic's messages",
    ),
    metered(
        "/v1/chat/completions/render",
        POST,
        render(Work::Chat),
        "Prompt of a chat",
    ),
    metered(
        "/v1/completions/render",
        POST,
        render(Work::Completions),
        "Prompts of a plain completion",
    ),
    metered(
        "/v1/responses/render",
        POST,
        render(Work::Responses),
        "Prompt of a response",
    ),
    metered(
        "/v1/messages/render",
        POST,
        render(Work::Messages),
        "Prompt of Anthropic's messages",
    ),
    metered("/v1/embeddings", POST, work(Work::Embeddings), "Embeddings"),
    metered("/score", POST, work(Work::Score), "Scores of pairs"),
    metered("/v1/score", POST, work(Work::Score), "Scores of pairs"),
    metered(
        "/rerank",
        POST,
        work(Work::Rerank),
        "Documents by their scores",
    ),
    metered(
        "/v1/rerank",
        POST,
        work(Work::Rerank),
        "Documents by their scores",
    ),
    metered(
        "/v2/rerank",
        POST,
        work(Work::Rerank),
        "Documents by their scores",
    ),
    metered(
        "/tokenize",
        POST,
        page(Page::Tokenize),
        "Tokens of a prompt",
    ),
    metered(
        "/detokenize",
        POST,
        page(Page::Detokenize),
        "Text of tokens",
    ),
    metered(
        "/tokenizer_info",
        GET,
        page(Page::TokenizerInfo),
        "The tokenizer",
    ),
    metered(
        "/reset_prefix_cache",
        POST,
        page(Page::ResetPrefixCache),
        "Empty the prefix cache",
    ),
    metered("/openapi.json", GET, page(Page::OpenApi), "This document"),
    route("/health", GET, page(Page::Health), "Whether it serves"),
    route(
        "/ping",
        &[Method::GET, Method::POST],
        page(Page::Health),
        "Whether it serves",
    ),
    route(
        "/version",
        GET,
        page(Page::Version),
        "Version of the vLLM that is imitated",
    ),
    route(
        "/load",
        GET,
        page(Page::Load),
        "Calls for a model that are in flight",
    ),
    route(
        "/server_info",
        GET,
        page(Page::ServerInfo),
        "What it was started with",
    ),
    route(
        "/metrics",
        GET,
        page(Page::Metrics),
        "Metrics for Prometheus",
    ),
    route(
        "/_engine/faults",
        &[Method::GET, Method::POST, Method::DELETE],
        page(Page::Faults),
        "Faults for a share of all calls",
    ),
    route(
        "/_engine/requests",
        &[Method::GET, Method::DELETE],
        Operation::Inspection(Inspection::Requests),
        "What arrived",
    ),
    route(
        "/_engine/stats",
        GET,
        Operation::Inspection(Inspection::Stats),
        "Totals",
    ),
];

impl Route {
    /// The route of a path.
    pub(super) fn of(path: &str) -> Option<&'static Self> {
        let matches = |route: &&Self| match route.path.split_once('{') {
            Some((start, _)) => path
                .strip_prefix(start)
                .is_some_and(|name| !name.is_empty()),
            None => route.path == path,
        };
        ROUTES.iter().find(matches)
    }

    pub(super) fn allows(&self, method: &Method) -> bool {
        self.methods.contains(method)
    }

    /// Whether it is work for a model, which counts in `/load`.
    pub(super) fn is_work(&self) -> bool {
        matches!(self.operation, Operation::Api(Api::Work(_)))
    }
}
