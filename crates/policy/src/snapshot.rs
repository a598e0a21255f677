//! The configuration as a core reads it: immutable, resolved, swapped whole.
//!
//! Invariant: nothing optional is left to guess and no string is compared that could have been
//! resolved when the snapshot was made. Buckets and budgets' sums are the only interior
//! that changes.
//! Not here: what a person writes and how it becomes this (`config`).

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use crate::abandon::Abandon;
use crate::book::Billing;
use crate::budget::Budgets;
use crate::client::Clients;
use crate::counting::{BilledBy, Tokenizer};
use crate::credential::UpstreamAuth;
use crate::fast_hash::Mix;
use crate::id::{AuthorizerId, BackendId, EndpointId, LimitId, RouteId, WorkloadId};
use crate::identity::Identity;
use crate::limit::{Bucket, Kind};
use crate::price::Prices;
use crate::retry::{Ejection, Retries};
use crate::route::ModelPattern;
use crate::secret::Secret;
use crate::unread::Listed;
use crate::web::Web;

/// Everything policy knows.
#[derive(Debug)]
pub struct Snapshot {
    /// Short content hash of what this was made from; in logs, `/config` and metrics.
    pub version: String,
    /// How a caller is recognised.
    pub identity: Identity,
    /// Registered workloads.
    pub workloads: Vec<Workload>,
    /// Name to workload.
    pub by_name: HashMap<Box<[u8]>, WorkloadId, Mix>,
    /// Routes, in the order written.
    pub routes: Vec<Route>,
    /// Backends, ordered by name.
    pub backends: Vec<Backend>,
    /// All endpoints of all backends.
    pub endpoints: Vec<Endpoint>,
    /// All shared buckets.
    pub limits: Vec<Limit>,
    /// Price catalogue.
    pub prices: Prices,
    /// Amounts over calendar periods.
    pub budgets: Budgets,
    /// Which models are counted, the most specific pattern first.
    pub tokenizers: Vec<Tokenizer>,
    /// Bounds on what a client may send.
    pub bounds: Bounds,
    /// The hosts and the origins that are answered.
    pub web: Web,
    /// How clients are known by address.
    pub clients: Clients,
}

/// A calling application.
#[derive(Debug)]
pub struct Workload {
    /// As written, and as sent by the client.
    pub name: Arc<str>,
    /// Where it may go, in the order of the routes.
    pub grants: Vec<Grant>,
    /// Who is asked whether it may make a call, where somebody is.
    pub authorizer: Option<AuthorizerId>,
}

/// A workload's right to use a route, with its own buckets.
#[derive(Debug)]
pub struct Grant {
    /// The route.
    pub route: RouteId,
    /// This workload's buckets on that route.
    pub limits: Vec<LimitId>,
}

/// A rule from workload and model to backends.
#[derive(Debug)]
pub struct Route {
    /// For logs and labels.
    pub name: Arc<str>,
    /// Models it takes; empty takes any.
    pub models: Vec<ModelPattern>,
    /// Backends in order of preference; at least one.
    pub backends: Vec<BackendId>,
    /// The model sent upstream in place of the client's.
    pub model: Option<Arc<str>>,
    /// The most tokens that one answer can have, held for a call without a cap of its own.
    pub output_max: Option<u64>,
    /// How much care it takes of its rows in the ledger.
    pub billing: Billing,
    /// Whose count limits, budgets and costs go by.
    pub billed_by: BilledBy,
    /// When its exchanges are tried again.
    pub retries: Retries,
    /// What it does when a client leaves.
    pub abandon: Abandon,
    /// Whether one workload alone uses it, and no other one uses an account that it sends calls with.
    pub is_exclusive: bool,
    /// Calls that it lets through unread, in the order written.
    pub unread: Vec<Listed>,
    /// Request headers that go upstream besides those that always do, in lower case.
    pub forward_headers: Vec<Box<[u8]>>,
    /// Response headers that go to clients besides those that always do, in lower case.
    pub return_headers: Vec<Box<[u8]>>,
}

/// A named upstream target.
#[derive(Debug)]
pub struct Backend {
    /// For logs and labels.
    pub name: Arc<str>,
    /// Its addresses; at least one.
    pub endpoints: Vec<EndpointId>,
    /// Models it is known to serve, for `/v1/models`; may be empty.
    pub models: Vec<Arc<str>>,
    /// How long each phase may take.
    pub timeouts: Timeouts,
    /// When an endpoint of it is left alone.
    pub ejection: Ejection,
    /// How many connections there may be to each of its addresses.
    pub pool: PoolBounds,
}

/// Protocol spoken to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP/1.1; over TLS too.
    Http1,
    /// HTTP/2: prior knowledge in clear, ALPN `h2` required over TLS.
    Http2,
    /// Over TLS whichever ALPN chooses; in clear HTTP/1.1.
    Auto,
}

/// Where to connect. Endpoints with equal origins share a pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Whether to speak TLS.
    pub tls: bool,
    /// Host name or address literal, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// HTTP version.
    pub protocol: Protocol,
    /// PEM file of extra roots, empty for the system's.
    pub ca_file: String,
    /// The proxy on the way there.
    pub proxy: Option<Arc<Proxy>>,
}

impl Origin {
    /// Whether its proxy reads the requests: HTTP/1.1 in clear, with targets in absolute form. All else goes through
    /// a tunnel.
    #[must_use]
    pub fn is_relayed(&self) -> bool {
        self.proxy.is_some() && !self.tls && self.protocol != Protocol::Http2
    }
}

/// An HTTP proxy, spoken to in clear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Host name or address literal, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Value of `proxy-authorization`.
    pub authorization: Option<Secret>,
}

impl Hash for Proxy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.host, self.port).hash(state);
    }
}

/// One address with its credential.
#[derive(Debug)]
pub struct Endpoint {
    /// `backend` or `backend#1` for logs and labels.
    pub name: Arc<str>,
    /// The backend it belongs to.
    pub backend: BackendId,
    /// Where to connect.
    pub origin: Origin,
    /// `host[:port]` as sent in `host` / `:authority`.
    pub authority: String,
    /// Path put in place of `/v1`, such as `/v1` or `/v1beta/openai`; no trailing slash.
    pub base_path: String,
    /// Share of traffic among its siblings; at least 1.
    pub weight: u32,
    /// The one credential that goes upstream.
    pub auth: UpstreamAuth,
}

/// A shared bucket and what it is for.
#[derive(Debug)]
pub struct Limit {
    /// Whose it is.
    pub workload: WorkloadId,
    /// On which route.
    pub route: RouteId,
    /// What it counts.
    pub kind: Kind,
    /// Identity across reloads: same key and rate, same bucket.
    pub key: String,
    /// The bucket, shared by all cores and carried across reloads.
    pub bucket: Arc<Bucket>,
}

/// How long each phase of an attempt may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// To an established connection, TLS included.
    pub connect: Duration,
    /// From the request sent to the response head.
    pub first_byte: Duration,
    /// Silence in the middle of a response.
    pub idle: Duration,
}

/// Bounds of one worker's connections to one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolBounds {
    /// Open at one time, busy or idle.
    pub connections: usize,
    /// Kept without a call.
    pub idle: usize,
    /// How long one is kept so.
    pub idle_time: Duration,
    /// Calls on one HTTP/2 connection at one time.
    pub streams: usize,
}

impl Default for PoolBounds {
    fn default() -> Self {
        Self {
            connections: 20_000,
            idle: 1024,
            idle_time: Duration::from_secs(55),
            // Servers commonly allow as many.
            streams: 100,
        }
    }
}

/// Bounds on what a client may send, and how slowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Request body, bytes.
    pub body_bytes: u64,
    /// Request head, bytes.
    pub head_bytes: usize,
    /// Request header fields.
    pub head_fields: usize,
    /// From the first byte of a head to its end.
    pub head_time: Duration,
    /// Silence in the middle of a request body.
    pub body_idle: Duration,
    /// From the first byte of a request to the end of its body.
    pub body_time: Duration,
    /// Bytes of request bodies that one worker keeps at one time.
    pub bodies_bytes: usize,
    /// A client that takes nothing of a response for so long is gone.
    pub write_stall: Duration,
    /// A kept-alive connection with no request on it.
    pub keep_alive: Duration,
    /// Connections per worker.
    pub connections: usize,
    /// Connections per worker of one address, or of one /64 of IPv6.
    pub source_connections: usize,
    /// Streams of one HTTP/2 connection at one time.
    pub streams: u32,
    /// Answers per worker that are read on without a client.
    pub drains: usize,
    /// How long the addresses of an upstream's name are used after they were last found.
    pub address_age: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            body_bytes: 32 << 20,
            head_bytes: 64 << 10,
            head_fields: 100,
            head_time: Duration::from_secs(10),
            body_idle: Duration::from_secs(30),
            body_time: Duration::from_secs(5 * 60),
            bodies_bytes: 256 << 20,
            write_stall: Duration::from_secs(30),
            keep_alive: Duration::from_secs(75),
            connections: 50_000,
            source_connections: 10_000,
            streams: 100,
            drains: 100,
            address_age: Duration::from_secs(600),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(300),
        }
    }
}

impl Snapshot {
    /// The workload registered under `name`.
    #[must_use]
    pub fn workload_named(&self, name: &[u8]) -> Option<WorkloadId> {
        self.by_name.get(name).copied()
    }

    /// The workload, if the id is of this snapshot.
    #[must_use]
    pub fn workload(&self, id: WorkloadId) -> Option<&Workload> {
        self.workloads.get(id.index())
    }

    /// The route, if the id is of this snapshot.
    #[must_use]
    pub fn route(&self, id: RouteId) -> Option<&Route> {
        self.routes.get(id.index())
    }

    /// Whether no call runs without a row on disk.
    #[must_use]
    pub fn is_strict_throughout(&self) -> bool {
        let strict = |route: &Route| route.billing == Billing::Strict;
        !self.routes.is_empty() && self.routes.iter().all(strict)
    }

    /// The backend, if the id is of this snapshot.
    #[must_use]
    pub fn backend(&self, id: BackendId) -> Option<&Backend> {
        self.backends.get(id.index())
    }

    /// The endpoint, if the id is of this snapshot.
    #[must_use]
    pub fn endpoint(&self, id: EndpointId) -> Option<&Endpoint> {
        self.endpoints.get(id.index())
    }

    /// How long each phase of an attempt at an endpoint may take, if the id is of this snapshot.
    #[must_use]
    pub fn timeouts(&self, id: EndpointId) -> Option<&Timeouts> {
        let endpoint = self.endpoint(id)?;
        self.backend(endpoint.backend)
            .map(|backend| &backend.timeouts)
    }

    /// When an endpoint is left alone, if the id is of this snapshot.
    #[must_use]
    pub fn ejection(&self, id: EndpointId) -> Option<&Ejection> {
        let endpoint = self.endpoint(id)?;
        self.backend(endpoint.backend)
            .map(|backend| &backend.ejection)
    }

    /// The limit, if the id is of this snapshot.
    #[must_use]
    pub fn limit(&self, id: LimitId) -> Option<&Limit> {
        self.limits.get(id.index())
    }
}
