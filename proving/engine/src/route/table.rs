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
    pub(super) kind: Kind,
}

/// What a path is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Work for a model; counted in `/load`.
    Model,
    /// Other calls that are counted in `http_*`.
    Api,
    /// What vLLM's instrumentation leaves out, and the engine's own pages.
    Page,
    /// Pages that are there only if the engine keeps what arrives.
    Inspection,
}

const GET: &[Method] = &[Method::GET];
const POST: &[Method] = &[Method::POST];

const fn route(
    path: &'static str,
    methods: &'static [Method],
    kind: Kind,
    summary: &'static str,
) -> Route {
    Route {
        path,
        methods,
        summary,
        kind,
    }
}

pub(super) const ROUTES: &[Route] = &[
    route("/v1/models", GET, Kind::Api, "List models"),
    route("/v1/models/{model}", GET, Kind::Api, "One model"),
    route("/v1/chat/completions", POST, Kind::Model, "Chat"),
    route("/v1/completions", POST, Kind::Model, "Plain completion"),
    route("/v1/responses", POST, Kind::Model, "Response"),
    route("/v1/messages", POST, Kind::Model, "Anthropic's messages"),
    route("/v1/embeddings", POST, Kind::Model, "Embeddings"),
    route("/score", POST, Kind::Model, "Scores of pairs"),
    route("/v1/score", POST, Kind::Model, "Scores of pairs"),
    route("/rerank", POST, Kind::Model, "Documents by their scores"),
    route("/v1/rerank", POST, Kind::Model, "Documents by their scores"),
    route("/v2/rerank", POST, Kind::Model, "Documents by their scores"),
    route("/tokenize", POST, Kind::Api, "Tokens of a prompt"),
    route("/detokenize", POST, Kind::Api, "Text of tokens"),
    route("/tokenizer_info", GET, Kind::Api, "The tokenizer"),
    route(
        "/reset_prefix_cache",
        POST,
        Kind::Api,
        "Empty the prefix cache",
    ),
    route("/openapi.json", GET, Kind::Api, "This document"),
    route("/health", GET, Kind::Page, "Whether it serves"),
    route(
        "/ping",
        &[Method::GET, Method::POST],
        Kind::Page,
        "Whether it serves",
    ),
    route(
        "/version",
        GET,
        Kind::Page,
        "Version of the vLLM that is imitated",
    ),
    route(
        "/load",
        GET,
        Kind::Page,
        "Calls for a model that are in flight",
    ),
    route("/server_info", GET, Kind::Page, "What it was started with"),
    route("/metrics", GET, Kind::Page, "Metrics for Prometheus"),
    route(
        "/_engine/faults",
        &[Method::GET, Method::POST, Method::DELETE],
        Kind::Page,
        "Faults for a share of all calls",
    ),
    route(
        "/_engine/requests",
        &[Method::GET, Method::DELETE],
        Kind::Inspection,
        "What arrived",
    ),
    route("/_engine/stats", GET, Kind::Inspection, "Totals"),
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

    /// Whether it is counted in `http_*`.
    pub(super) fn is_metered(&self) -> bool {
        matches!(self.kind, Kind::Model | Kind::Api)
    }
}
