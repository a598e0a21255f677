//! The configuration as a core reads it: immutable, resolved, swapped whole.
//!
//! Invariant: nothing optional is left to guess and no string is compared that could have been
//! resolved when the snapshot was made. Nothing in it changes.
//! Not here: what a person writes and how it becomes this (`config`), what limits and budgets hold ([`crate::levels`]).

use std::any::Any;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

pub use wire::filter::Chain;

use crate::authority::Rules;
use crate::authorizer::Authorizer;
use crate::balancing::Balancer;
use crate::billing::{BilledBy, Billing};
use crate::budget::Budgets;
use crate::caller::Caller;
use crate::client::Clients;
use crate::credential::{KnownSet, UpstreamAuth};
use crate::disconnect::OnDisconnect;
use crate::id::{BackendId, EndpointId, LimitId, RouteId, WorkloadId};
use crate::identity::{Identity, Registered};
use crate::limit::{Kind, Rate, Window};
use crate::listener::Listeners;
use crate::login::LoginSite;
use crate::mcp::Mcp;
use crate::model::ModelPattern;
use crate::picker::Picker;
use crate::plain::{
    self,
    actions::{Actions, FieldEdits},
};
use crate::price::Prices;
use crate::prompt_counter::PromptCounter;
use crate::responses::ResponseStore;
use crate::retry::{Ejection, Retries};
use crate::secret::Secret;
use crate::subject::Who;
use crate::unread::Listed;
use crate::web::Web;
use crate::whose::Whose;

/// Everything policy knows.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Short content hash of what this was made from, and its number; in logs, `/config` and metrics.
    pub version: String,
    /// A digest of what the files and the secrets hold that it was made from: it tells a change of one, and is never shown.
    pub contents: Option<Secret>,
    /// How a caller is recognised.
    pub identity: Identity,
    /// Registered workloads.
    pub workloads: Vec<Workload>,
    /// Name to workload.
    pub by_name: Registered,
    /// Routes, in the order written.
    pub routes: Vec<Route>,
    /// Backends, ordered by name.
    pub backends: Vec<Backend>,
    /// All endpoints of all backends.
    pub endpoints: Vec<Endpoint>,
    /// All limits, each of one workload on one route.
    pub limits: Vec<Limit>,
    /// Price catalogue.
    pub prices: Prices,
    /// Amounts over calendar periods.
    pub budgets: Budgets,
    /// Which models are counted, the most specific pattern first.
    pub tokenizers: Vec<Tokenizer>,
    /// Who counts prompts for callers that ask, where anybody does.
    pub prompt_counter: Option<Arc<dyn PromptCounter>>,
    /// Who keeps responses of clients whose backends keep none, where anybody does.
    pub responses: Option<Arc<dyn ResponseStore>>,
    /// What the host runs for it, which ends with the last exchange that goes by it.
    pub runs: Vec<Arc<dyn Any + Send + Sync>>,
    /// Bounds on what a client may send.
    pub bounds: Bounds,
    /// The hosts and the origins that are answered.
    pub web: Web,
    /// Where people log in, where they do.
    pub login: Option<LoginSite>,
    /// How clients are known by address.
    pub clients: Clients,
    /// Who may make which call, beside routes and limits; where there are no rules, everybody.
    pub authority: Option<Arc<dyn Rules>>,
    /// Where the gate is reached, where that tells calls apart.
    pub listeners: Listeners,
    /// Which calls of plain HTTP its routes take.
    pub plain: plain::Table,
    /// Servers of tools, where there are any.
    pub mcp: Option<Box<Mcp>>,
    /// Some backend has a [`Backend::balancer`] or a [`Backend::picker`], or some route has [`Route::weights`].
    pub is_balanced: bool,
}

impl Workload {
    /// A grant by its place: those of plain HTTP stand behind those to models.
    #[must_use]
    pub fn grant(&self, at: usize) -> Option<&Grant> {
        match self.grants.get(at) {
            Some(grant) => Some(grant),
            None => self.plain_grant(at),
        }
    }

    #[cold]
    fn plain_grant(&self, at: usize) -> Option<&Grant> {
        self.plain.get(at.checked_sub(self.grants.len())?)
    }

    /// The grant of a route, and its place.
    #[must_use]
    pub fn grant_of(&self, route: RouteId) -> Option<(usize, &Grant)> {
        let mut grants = self.grants.iter().enumerate();
        let found = grants.find(|(_, grant)| grant.route == route);
        found.or_else(|| self.plain_grant_of(route))
    }

    #[cold]
    fn plain_grant_of(&self, route: RouteId) -> Option<(usize, &Grant)> {
        let mut grants = (self.grants.len()..).zip(&self.plain);
        grants.find(|(_, grant)| grant.route == route)
    }
}

/// A calling application.
#[derive(Debug)]
pub struct Workload {
    /// As written, and as sent by the client.
    pub name: Arc<str>,
    /// Where its calls to models may go, in the order of the routes.
    pub grants: Vec<Grant>,
    /// Where its calls of plain HTTP and to servers of tools may go, which no call to a model can take.
    pub plain: Vec<Grant>,
    /// Whether others use an account that calls of one of its grants may be sent with.
    pub shares_account: bool,
    /// Who is asked whether it may make a call, where somebody is: as soon as the head is read.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// Who is asked once the body is read and the call has its route, where somebody is.
    pub call_authorizer: Option<Arc<dyn Authorizer>>,
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
    /// It takes calls of plain HTTP ([`Snapshot::plain`]) or to servers of tools ([`Snapshot::mcp`]), and none to models.
    pub is_plain: bool,
    /// Models it takes; empty takes any.
    pub models: Vec<ModelPattern>,
    /// Backends in order of preference; at least one.
    pub backends: Vec<BackendId>,
    /// One for each backend, where each call goes to one of them alone, drawn by these; else empty ([`Snapshot::is_balanced`]).
    pub weights: Vec<u32>,
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
    pub abandon: OnDisconnect,
    /// Whether one workload alone uses it, and no other one uses an account that it sends calls with.
    pub is_exclusive: bool,
    /// Calls that it lets through unread, in the order written.
    pub unread: Vec<Listed>,
    /// Request headers that go upstream besides those that always do, in lower case.
    pub forward_headers: Vec<Box<[u8]>>,
    /// Response headers that go to clients besides those that always do, in lower case.
    pub return_headers: Vec<Box<[u8]>>,
    /// What its calls pass: guards, say.
    pub filters: Chain,
    /// The most bytes of a response that its filters may hold back.
    pub hold_back_bytes: usize,
    /// What becomes of calls of plain HTTP on their way, where something does.
    pub actions: Option<Box<Actions>>,
}

/// A named upstream target.
#[derive(Debug, Default)]
pub struct Backend {
    /// For logs and labels.
    pub name: Arc<str>,
    /// It serves plain HTTP or tools, and no model.
    pub is_plain: bool,
    /// Its addresses; none where it is closed.
    pub endpoints: Vec<EndpointId>,
    /// Models it is known to serve, for `/v1/models`; may be empty.
    pub models: Vec<Arc<str>>,
    /// Names that it has for models of which the gate uses another name, by that name. Prices, limits, budgets and
    /// records go by the gate's name.
    pub model_names: BTreeMap<Arc<str>, Box<str>>,
    /// What calls to it pass, behind those of their route: a translation, where it speaks another dialect than its clients.
    pub filters: Chain,
    /// How long each phase may take.
    pub timeouts: Timeouts,
    /// When an endpoint of it is left alone.
    pub ejection: Ejection,
    /// How many connections there may be to each of its addresses.
    pub pool: PoolBounds,
    /// Some credential of it is given for the caller's own token.
    pub exchanges_tokens: bool,
    /// Headers of every request to it; they replace what the client sent by these names.
    pub headers: Vec<AddedHeader>,
    /// Headers of an API that do not go to it, of those that would ([`crate::credential::OF_APIS`]).
    pub withheld_headers: KnownSet,
    /// Whether its streams are asked for their usage where the client does not ask.
    pub ask_usage: AskUsage,
    /// Members of the query of every request to it; they replace the client's of these names.
    pub query: Vec<AddedMember>,
    /// How its endpoints share its calls, where that is not by weight alone ([`Snapshot::is_balanced`]).
    pub balancer: Option<Balancer>,
    /// Who picks one of its endpoints for each call, where somebody does ([`Snapshot::is_balanced`]).
    pub picker: Option<Arc<dyn Picker>>,
}

/// Whether streams of a backend are asked to report their usage where the client does not ask: those that do so only on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AskUsage {
    /// Unless it refuses calls that ask.
    #[default]
    Auto,
    /// Whatever it answers.
    Always,
    /// The gate counts for itself what it reports.
    Never,
}

/// A header of every request to a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedHeader {
    /// Its name, in lower case.
    pub name: Box<[u8]>,
    /// Its value.
    pub value: Box<[u8]>,
}

/// A member of the query of every request to a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedMember {
    /// Its name, which needs no encoding.
    pub name: Box<str>,
    /// Its value, encoded.
    pub value: Box<str>,
}

impl Backend {
    /// What it calls a model.
    #[must_use]
    #[inline]
    pub fn model_name<'a>(&'a self, model: &'a str) -> &'a str {
        if self.model_names.is_empty() {
            return model;
        }
        self.model_names.get(model).map_or(model, |name| name)
    }

    /// Names of models, as the gate uses them, that the configuration says it has.
    pub fn known_models(&self) -> impl Iterator<Item = &Arc<str>> {
        self.models.iter().chain(self.model_names.keys())
    }

    /// Whether it alone uses this name, for a model that the gate names otherwise.
    fn is_private_name(&self, name: &str) -> bool {
        self.model_names.values().any(|own| **own == *name) && !self.model_names.contains_key(name)
    }
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
    /// The name by which its certificate is asked for and checked; that of the host unless said.
    pub tls_name: Option<Arc<str>>,
    /// PEM file of extra roots, empty for the system's.
    pub ca_file: String,
    /// SHA-256 of the certificate that the gate shows there, in hex; empty for none. Two that differ never share a
    /// connection.
    pub certificate: String,
    /// The proxy on the way there.
    pub proxy: Option<Arc<Proxy>>,
    /// No metadata service and no neighbour of the link is connected to under its name ([`crate::address`]).
    pub is_kept_off_the_link: bool,
    /// Nor is the gate's own machine.
    pub is_kept_off_the_machine: bool,
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
    /// Path put in place of `/v1`, such as `/v1` or `/v1beta/openai`, or before that of plain HTTP; no trailing slash.
    pub base_path: String,
    /// Share of traffic among its siblings; at least 1.
    pub weight: u32,
    /// The one credential that goes upstream.
    pub auth: UpstreamAuth,
    /// What becomes of fields of calls of plain HTTP to it, where something does.
    pub edits: Option<Box<FieldEdits>>,
}

/// A rate, and whose it is.
#[derive(Debug)]
pub struct Limit {
    /// Whose it is.
    pub workload: WorkloadId,
    /// On which route.
    pub route: RouteId,
    /// What it counts.
    pub kind: Kind,
    /// How much.
    pub rate: Rate,
    /// How it counts over its window.
    pub window: Window,
    /// Whether all callers of the workload share it, or each key or user has one of its own.
    pub whose: Whose,
    /// What tells it, with its window, from any other, in every snapshot.
    pub key: String,
}

/// Which tokenizer counts which models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokenizer {
    /// The models sent upstream that it is for.
    pub models: ModelPattern,
    /// What tells it from any other: a hash of all that it is made of.
    pub key: u64,
    /// Tokens of the models' window, where that is said.
    pub window: Option<u64>,
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
    pub reads_to_end: usize,
    /// How long the addresses of an upstream's name are used after they were last found.
    pub address_age: Duration,
    /// Keys and users whose limits are kept apart at one time, and as many of which budgets are; of the process's
    /// first snapshot.
    pub subjects: usize,
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
            reads_to_end: 100,
            address_age: Duration::from_secs(600),
            subjects: 1 << 16,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            // Official SDKs wait ten minutes, and reasoning models may think for as long without a byte.
            first_byte: Duration::from_secs(900),
            idle: Duration::from_secs(900),
        }
    }
}

impl Snapshot {
    /// Every model that it names: in backends, routes, prices and tokenizers.
    pub fn models(&self) -> impl Iterator<Item = &Arc<str>> {
        let served = self.backends.iter().flat_map(Backend::known_models);
        let routed = self.routes.iter().flat_map(|route| {
            let asked = route.models.iter().filter_map(ModelPattern::exact);
            asked.chain(&route.model)
        });
        let counted = self.tokenizers.iter().filter_map(|t| t.models.exact());
        served
            .chain(routed)
            .chain(self.prices.models())
            .chain(counted)
    }

    /// The workload registered under `name`.
    #[must_use]
    pub fn workload_named(&self, name: &[u8]) -> Option<WorkloadId> {
        self.by_name.get(name).copied()
    }

    /// A workload's caller, as limits and budgets see it.
    #[must_use]
    pub fn who<'a>(&'a self, workload: WorkloadId, caller: Option<&'a Arc<Caller>>) -> Who<'a> {
        let workload = self
            .workload(workload)
            .map_or("", |workload| &workload.name);
        Who { workload, caller }
    }

    /// The workload, if the id is of this snapshot.
    #[must_use]
    pub fn workload(&self, id: WorkloadId) -> Option<&Workload> {
        self.workloads.get(id.index())
    }

    /// Where a workload's calls to models may go, in the order of the routes.
    #[must_use]
    pub fn grants(&self, id: WorkloadId) -> &[Grant] {
        self.workload(id).map_or(&[], |workload| &workload.grants)
    }

    /// Whether a name is no model's as the gate names them, but what a backend of this route uses for one.
    #[must_use]
    #[inline]
    pub fn is_private_name(&self, route: &Route, name: &str) -> bool {
        let mut backends = route.backends.iter().filter_map(|id| self.backend(*id));
        backends.any(|b| !b.model_names.is_empty() && b.is_private_name(name))
    }

    /// The calls that each route of a workload lists, in the order of the routes.
    pub fn lists(&self, id: WorkloadId) -> impl Iterator<Item = (RouteId, &[Listed])> {
        let routes = self.grants(id).iter().map(|grant| grant.route);
        routes.filter_map(|id| Some((id, &*self.route(id)?.unread)))
    }

    /// The route, if the id is of this snapshot.
    #[must_use]
    pub fn route(&self, id: RouteId) -> Option<&Route> {
        self.routes.get(id.index())
    }

    /// Whose count a route's calls are billed by.
    #[must_use]
    pub fn billed_by(&self, route: Option<RouteId>) -> BilledBy {
        let route = route.and_then(|id| self.route(id));
        route.map_or(BilledBy::Reported, |route| route.billed_by)
    }

    /// Whether some route's calls are billed by the gate's own count. It looks through all of them.
    #[must_use]
    pub fn bills_by_count(&self) -> bool {
        let by_count = |route: &Route| route.billed_by == BilledBy::Counted;
        self.routes.iter().any(by_count)
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

    /// The backend of an endpoint, if the id is of this snapshot.
    #[must_use]
    pub fn backend_of(&self, id: EndpointId) -> Option<&Backend> {
        self.backend(self.endpoint(id)?.backend)
    }

    /// The limit, if the id is of this snapshot.
    #[must_use]
    pub fn limit(&self, id: LimitId) -> Option<&Limit> {
        self.limits.get(id.index())
    }
}
