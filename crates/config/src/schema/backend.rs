//! `backends`: where calls go, and how they get there.
//!
//! Not here: what they become (`lower`).

use super::balancing::Balancing;
use super::calibration::Asked;
use super::credential::{Carrier, ClientCertificate, Kept, UpstreamCredential};
use super::plain::FieldEdits;
use super::proxy::Proxy;
use crate::decode::{At, ListOf, MapOf, OneOrMany, record};
use crate::scalar::{
    AltName, ApiHeader, AskUsage, Beta, Brief, Count, Dialect, File, Flag, HeaderValue, Model,
    PassedHeader, Protocol, QueryName, QueryValue, Serves, Span, UpstreamHostName,
};
use crate::target::Target;

record! {
    /// A named upstream target: one `url`, or several `endpoints`.
    Backend {
        /// models, or http: an ordinary service, for routes that match calls of plain HTTP. Default models.
        optional serves: At<Serves>,
        /// The API that it speaks, or a list of those: a call in another is translated to the first. Unless said, each call goes as it came.
        optional dialect: OneOrMany<Dialect>,
        /// It has no address, and a route that goes nowhere else is closed: its calls are refused with 500. Default false.
        optional closed: At<Flag>,
        /// As closed, since none of its addresses is ready: a route that goes nowhere else refuses its calls with 503. Default false.
        optional unready: At<Flag>,
        /// The API root, /v1 included, as in OPENAI_BASE_URL; it replaces the /v1 of the client's path. Of plain HTTP what stands before the path.
        optional url: At<Target>,
        /// Several addresses that share the traffic.
        optional endpoints: ListOf<Endpoint>,
        /// The credential sent upstream; none unless said.
        optional credential: UpstreamCredential,
        /// The certificate that the gate shows upstream; none unless said.
        optional client_certificate: ClientCertificate,
        /// Headers of every request to it, by name; they replace what the client sends by these names.
        optional headers: MapOf<PassedHeader, At<HeaderValue>>,
        /// Of openai-beta, anthropic-version and anthropic-beta those that pass to it, or none. Default all, each to calls of its API.
        optional api_headers: OneOrMany<ApiHeader>,
        /// Of the values of anthropic-beta those that pass to it; a * at the end fits any rest. Default all.
        optional anthropic_betas: OneOrMany<Beta>,
        /// Whether its streams are asked for their usage where the client does not ask: auto (unless it refuses such calls), always or never. Default auto.
        optional ask_usage: At<AskUsage>,
        /// Members of the query of every request to it, by name, such as api-version; they replace the client's.
        optional query: MapOf<QueryName, At<QueryValue>>,
        /// Models it serves, for /v1/models.
        optional models: OneOrMany<Model>,
        /// What it calls models that the gate knows by other names. Prices, limits and budgets go by the gate's.
        optional model_names: MapOf<Model, At<Model>>,
        /// How long each phase of a call may take.
        optional timeouts: Timeouts,
        /// When an address of it that keeps failing is left alone.
        optional ejection: Ejection,
        /// One worker's connections to each of its addresses.
        optional pool: Pool,
        /// auto (over TLS what ALPN chooses, in clear HTTP/1.1), http1 or http2. Default auto.
        optional protocol: At<Protocol>,
        /// PEM file with the roots to trust instead of the system's.
        optional ca: At<File>,
        /// The name that TLS is asked for and certificates are checked by; the host of each address unless said.
        optional tls_name: At<UpstreamHostName>,
        /// Names of which its certificate has to have one, in place of that: of hosts, or URIs such as spiffe://cluster.local/ns/a/sa/b. 16 at most.
        optional alt_names: OneOrMany<AltName>,
        /// Whether its names may lead to the gate's own machine, to its link or to a metadata service. Default true.
        optional local: At<Flag>,
        /// The API is at the root of its addresses, which then need no path such as /v1. Default false.
        optional at_root: At<Flag>,
        /// The HTTP proxy on the way, or none; as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say unless written.
        optional proxy: Proxy,
        /// How its endpoints share its calls: a policy, or one with more to say. Default random, by weight.
        optional balancing: Balancing,
        /// Where it is asked what prompts count: off, or the API root of the engine that answers for it. At its own addresses unless said.
        optional tokens: At<Asked>,
    }
}

record! {
    /// One address of a backend.
    Endpoint {
        /// The API root, as in a backend's `url`.
        required url: At<Target>,
        /// Its share of the traffic. Default 1.
        optional weight: At<Count<1000000>>,
        /// Its own credential, in place of the backend's.
        optional credential: UpstreamCredential,
        /// What becomes of header fields of calls of plain HTTP to it, before what the route says of them.
        optional request_headers: FieldEdits,
    }
}

record! {
    /// A secret, from exactly one of `file`, `env` and `inline`, and the header that carries it.
    Credential of secret: Kept {}
    and carrier: Carrier
}

record! {
    /// How long each phase of a call may take. There is no total: generations may be long.
    Timeouts {
        /// To an established connection, TLS included. Default 5s.
        optional connect: At<Span>,
        /// From the request sent to the response head. Default 15m.
        optional first_byte: At<Span>,
        /// Silence in the middle of a response. Default 15m.
        optional idle: At<Span>,
    }
}

record! {
    /// When an address that keeps failing is left alone, by each worker for itself.
    Ejection {
        /// Failures in a row before it is. Default 5.
        optional failures: At<Count<1000>>,
        /// How long the first time, 1h at most; doubles with each failed trial after it. Default 5s.
        optional time: At<Brief>,
        /// How long at most, 1h at most. Default 5m.
        optional max_time: At<Brief>,
    }
}

record! {
    /// One worker's connections to one address.
    Pool {
        /// Open at one time, busy or idle. Default 20000.
        optional connections: At<Count<1000000>>,
        /// Kept without a call. Default 1024.
        optional idle: At<Count<1000000>>,
        /// How long one is kept so, 1h at most. Default 55s.
        optional idle_time: At<Brief>,
        /// Calls on one HTTP/2 connection at one time. Default 100.
        optional streams: At<Count<10000>>,
    }
}
