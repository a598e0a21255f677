//! The configuration as a core reads it: immutable, resolved, swapped whole.
//!
//! Invariant: nothing optional is left to guess and no string is compared that could have been
//! resolved when the snapshot was made. Nothing in it changes.
//! Not here: what a person writes and how it becomes this (`config`), what limits and budgets hold ([`crate::levels`]).

mod bounds;
mod upstream;

use std::any::Any;
use std::sync::Arc;

pub use wire::filter::Chain;

pub use self::bounds::{Bounds, PoolBounds, Timeouts};
pub use self::upstream::{
    AddedHeader, AddedMember, AddedValue, AskUsage, Backend, Endpoint, Origin, Protocol, Proxy,
    Spellings,
};
use crate::authority::Rules;
use crate::authorizer::Authorizer;
use crate::batch_store::{BatchStore, Batches};
use crate::billing::{BilledBy, Billing};
use crate::budget::Budgets;
use crate::caller::Caller;
use crate::client::Clients;
use crate::disconnect::OnDisconnect;
use crate::id::{BackendId, EndpointId, LimitId, RouteId, WorkloadId};
use crate::identity::{Identity, Registered};
use crate::limit::{Kind, Rate, Window};
use crate::listener::Listeners;
use crate::login::LoginSite;
use crate::mcp::Mcp;
use crate::model::ModelPattern;
use crate::plain::{self, actions::Actions};
use crate::price::Prices;
use crate::prompt_counter::PromptCounter;
use crate::responses::ResponseStore;
use crate::retry::Retries;
use crate::secret::Secret;
use crate::subject::Who;
use crate::unread::Listed;
use crate::web::Web;
use crate::whose::Whose;

/// Everything policy knows.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Short content hash of what this was made from, and its number; in logs, `/config` and metrics.
    pub version: Arc<str>,
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
    /// Who knows whose files and batches are, where some route allows them.
    pub batches: Option<Arc<dyn BatchStore>>,
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
    /// Models that it takes and that lists of models leave out.
    pub unlisted: Vec<ModelPattern>,
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
    /// Whether its workloads may keep files and have batches made, and how.
    pub batches: Option<Box<Batches>>,
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

    /// Whether a name is no model's as the gate names them, but what a backend of this route uses for one, or another spelling of one there.
    #[must_use]
    #[inline]
    pub fn is_private_name(&self, route: &Route, name: &str) -> bool {
        let mut backends = route.backends.iter().filter_map(|id| self.backend(*id));
        backends.any(|b| {
            (!b.model_names.is_empty() && b.is_private_name(name))
                || (b.spellings.is_some() && b.is_other_spelling(name, &route.models))
        })
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
