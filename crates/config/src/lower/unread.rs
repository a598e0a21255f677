//! `routes[].unread`: calls that are let through unread, for whom, and what each is charged; and which
//! routes have their accounts to themselves.
//!
//! Invariant: an operation that the gate reads is never listed; what touches that which an upstream keeps
//! is listed only where one workload alone uses the account, or where it is said to be shared; where
//! tokens or money count, every listed call says what it is charged.
//! Not here: what a template takes, refusals while calls come (`policy::unread`, `policy::exchange`).

use std::collections::HashMap;
use std::sync::Arc;

use policy::budget::Unit;
use policy::credential::UpstreamAuth;
use policy::id::{RouteId, WorkloadId};
use policy::operation::Operation;
use policy::price::{Pico, Price, Prices, Rates};
use policy::snapshot::{Endpoint, Grant, Snapshot};
use policy::unread::{Listed, MAX_LISTED};
use policy::wire::head::Method;

use super::backend::{is_here, number};
use super::price;
use crate::decode::{At, ListOf, Place};
use crate::scalar::Call;
use crate::schema::{Route, Unread};

/// What tells an account from another one.
#[derive(PartialEq, Eq, Hash)]
enum Account {
    /// A secret, wherever it is sent.
    Secret(Vec<u8>),
    /// One whose credentials are made while the gate runs.
    Made(String),
    /// An address that somebody calls without one: all of its callers are the same to it.
    Open(String, u16),
}

/// Who uses an account.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Users {
    One(WorkloadId),
    Several,
}

/// Who uses which account.
struct Accounts {
    open: Vec<(String, u16)>,
    users: HashMap<Account, Users>,
}

/// What counts the calls of a route.
pub(super) struct Counted {
    /// The least that a limit of tokens can hold.
    burst: Option<u64>,
    tokens: bool,
    /// Currencies.
    pub(super) money: Vec<Arc<str>>,
}

impl super::Lowering<'_> {
    pub(super) fn unread(&mut self, written: &ListOf<Route>, s: &mut Snapshot) {
        let accounts = Accounts::of(s);
        let identity = s.identity.header.to_string();
        let sound = written.0.iter().filter_map(|(_, route)| route.as_ref());
        for (index, route) in sound.enumerate() {
            let id = RouteId(number(index));
            let owner = accounts.owner(id, s);
            // Looks at all workloads, of which there may be as many as routes.
            let is_plain = s.route(id).is_some_and(|route| route.is_plain);
            let written = route.unread.get().filter(|_| !is_plain);
            let counted = written.map(|_| Counted::of(id, s));
            let listed = match counted {
                Some(counted) => self.listed(route, owner.is_some(), &counted, &mut s.prices),
                None if is_plain => self.plain_charge(route, &Counted::of(id, s), &mut s.prices),
                None => Vec::new(),
            };
            for header in [&route.forward_headers, &route.return_headers] {
                for at in header.items() {
                    if at.value.0 == identity {
                        self.refuse(at, "names the workload", "it never passes");
                    }
                }
            }
            if let Some(lowered) = s.routes.get_mut(index) {
                lowered.is_exclusive = owner.is_some();
                lowered.unread = listed;
            }
        }
        let routes = &s.routes;
        let is_shared = |grant: &Grant| {
            let route = routes.get(grant.route.index());
            route.is_some_and(|route| !route.is_exclusive)
        };
        for workload in &mut s.workloads {
            workload.shares_account = workload.grants.iter().any(is_shared);
        }
    }

    fn listed(
        &mut self,
        route: &Route,
        is_exclusive: bool,
        counted: &Counted,
        prices: &mut Prices,
    ) -> Vec<Listed> {
        let mut list: Vec<Listed> = Vec::new();
        for (place, entry) in route.unread.items() {
            let Some(entry) = entry else { continue };
            let price = self.price_of(entry).map(|price| prices.add(price));
            let tokens = entry.tokens.get().map(|at| at.value.0);
            self.charged(place, entry, counted);
            let shared = entry.shared.value().is_some_and(|is| is.0);
            for at in entry.call.items() {
                let call = &at.value;
                if self.allowed(at) && !is_exclusive {
                    self.apart(at, shared);
                }
                let is_same = |l: &Listed| l.method == call.method && l.path == call.path;
                if list.iter().any(is_same) {
                    self.twice(at);
                }
                if list.len() == MAX_LISTED {
                    let says = format!("a route lists at most {MAX_LISTED} calls");
                    self.fault(&at.place, says, "");
                }
                list.push(Listed {
                    method: call.method,
                    path: call.path.clone(),
                    tokens,
                    price,
                });
            }
        }
        list
    }

    /// Whether this call may be listed at all.
    fn allowed(&mut self, at: &At<Call>) -> bool {
        let path = at.value.path.example();
        match Operation::of(at.value.method, &path) {
            Ok(Operation::Unread) => return true,
            Ok(known) if known.is_form() => return true,
            Ok(_) => {
                let hint = "leave it out: every route serves it, within its `match`";
                self.refuse(at, "is an operation that the gate reads", hint);
            }
            Err(_) => {
                self.refuse(
                    at,
                    "has the path of an operation that the gate reads",
                    "only GET may be listed for it",
                );
            }
        }
        false
    }

    /// Whether this call may be listed where workloads share an account.
    fn apart(&mut self, at: &At<Call>, shared: bool) {
        let is_form = Operation::of(at.value.method, &at.value.path.example());
        if is_form.is_ok_and(Operation::is_form) {
            return;
        }
        let own = "give the route one workload, and backends with credentials that no other \
                   workload's routes use";
        if hands_out_keys(&at.value) {
            let says = "has the provider hand out a key of its account, which several workloads use, and which leads past the gate";
            self.refuse(at, says, own);
        } else if at.value.path.has_id() {
            self.refuse(
                at,
                "reaches what the upstream keeps for its account, which several workloads use",
                own,
            );
        } else if !shared {
            let says = format!(
                "{} may reach what the upstream keeps for its account, which several workloads use",
                at.shown
            );
            let hint = format!("{own}; or write shared: true where it may be everybody's");
            self.fault(&at.place, says, hint);
        }
    }

    /// Whether an entry says what its calls are charged, where that counts.
    fn charged(&mut self, place: &Place, entry: &Unread, counted: &Counted) {
        if counted.tokens && entry.tokens.is_absent() {
            let says = "says no tokens, and a limit or a budget of this route counts them";
            let hint = "write tokens: N for each call, or tokens: 0 where it uses none";
            self.fault(place, says, hint);
        }
        if let (Some(at), Some(burst)) = (entry.tokens.get(), counted.burst)
            && at.value.0 > burst
        {
            let hint = format!("write {burst} or less, or a larger `burst`");
            self.refuse(at, "is more than a limit of this route ever gives", hint);
        }
        let currency = entry.currency.get().map_or("USD", |at| &at.value.0);
        for budgets in &counted.money {
            if entry.money.is_absent() {
                let says = format!("says no money, and a budget in {budgets} counts it");
                let hint = "write money: N for each call, or money: 0 where it costs none";
                self.fault(place, says, hint);
            } else if **budgets != *currency {
                let says = format!("is charged in {currency}, and a budget counts {budgets}");
                let hint = format!("write currency: {budgets}");
                self.fault(place, says, hint);
            }
        }
    }

    /// The price of a call, whatever is in it.
    fn price_of(&mut self, entry: &Unread) -> Option<Price> {
        if let (Some(at), true) = (entry.currency.get(), entry.money.is_absent()) {
            self.refuse(at, "says the currency of no money", "leave it out");
        }
        let request = self.pico(entry.money.get()?, 0)?;
        let currency = entry.currency.get().map_or("USD", |at| &at.value.0);
        Some(of_a_call(request, currency, "a listed call"))
    }
}

/// The price of a call of this kind, which is no model's name.
pub(super) fn of_a_call(request: Pico, currency: &str, kind: &str) -> Price {
    let mut price = Price {
        id: "".into(),
        whose: "".into(),
        currency: currency.into(),
        request,
        rates: Rates::flat(Pico(0), Pico(0)),
        tiers: Vec::new(),
    };
    price.id = price::id(&price, kind, "").into();
    price
}

impl Accounts {
    fn of(s: &Snapshot) -> Self {
        let open = s.endpoints.iter().filter(|e| e.auth == UpstreamAuth::None);
        let mut accounts = Self {
            open: open.map(address).collect(),
            users: HashMap::new(),
        };
        for (index, workload) in s.workloads.iter().enumerate() {
            let id = WorkloadId(number(index));
            for grant in workload.grants.iter().chain(&workload.plain) {
                for account in accounts.route(grant.route, s) {
                    let users = accounts.users.entry(account).or_insert(Users::One(id));
                    if *users != Users::One(id) {
                        *users = Users::Several;
                    }
                }
            }
        }
        accounts
    }

    /// The workload that has all accounts of a route to itself.
    fn owner(&self, route: RouteId, s: &Snapshot) -> Option<WorkloadId> {
        let mut owner = None;
        for account in self.route(route, s) {
            match (self.users.get(&account)?, owner) {
                (Users::One(id), None) => owner = Some(*id),
                (Users::One(id), Some(one)) if *id == one => {}
                _ => return None,
            }
        }
        owner
    }

    fn route(&self, route: RouteId, s: &Snapshot) -> Vec<Account> {
        let backends = s.route(route).map_or(&[][..], |route| &route.backends);
        let endpoints = backends
            .iter()
            .filter_map(|id| s.backend(*id))
            .flat_map(|backend| &backend.endpoints)
            .filter_map(|id| s.endpoint(*id));
        endpoints.flat_map(|e| self.endpoint(e)).collect()
    }

    fn endpoint(&self, endpoint: &Endpoint) -> Vec<Account> {
        let mut accounts = Vec::new();
        let address = address(endpoint);
        if self.open.contains(&address) {
            accounts.push(Account::Open(address.0, address.1));
        }
        match &endpoint.auth {
            UpstreamAuth::None => {}
            UpstreamAuth::Minted(minter) => {
                accounts.push(Account::Made(minter.account().to_owned()));
            }
            UpstreamAuth::Header { value, .. } => {
                // Without the word before it, which may differ from header to header.
                let secret = value.expose().rsplit(|b| *b == b' ').next();
                accounts.push(Account::Secret(secret.unwrap_or_default().to_vec()));
            }
        }
        accounts
    }
}

/// Host and port, the ways to call this machine being one.
pub(super) fn address(endpoint: &Endpoint) -> (String, u16) {
    let host = &endpoint.origin.host;
    let host = if is_here(host) { "localhost" } else { host };
    (host.to_owned(), endpoint.origin.port)
}

impl Counted {
    fn of(route: RouteId, s: &Snapshot) -> Self {
        let limits = s
            .limits
            .iter()
            .filter(|l| l.route == route && l.kind.is_settled());
        let burst = limits.map(|limit| limit.rate.burst).min();
        let uses = |w: &policy::snapshot::Workload| w.grant_of(route).is_some();
        let budgets = s
            .workloads
            .iter()
            .zip(&s.budgets.of)
            .filter(|(w, _)| uses(w));
        let mut counted = Self {
            burst,
            tokens: burst.is_some(),
            money: Vec::new(),
        };
        for id in budgets.flat_map(|(_, of)| of) {
            match s.budgets.list.get(id.index()).map(|budget| &budget.unit) {
                Some(Unit::Tokens) => counted.tokens = true,
                Some(Unit::Money(currency)) if !counted.money.contains(currency) => {
                    counted.money.push(Arc::clone(currency));
                }
                Some(Unit::Money(_) | Unit::Calls) | None => {}
            }
        }
        counted
    }
}

/// Whether a call has the provider hand out a key by which its client calls it without the gate, as OpenAI's Realtime API has for pages.
fn hands_out_keys(call: &Call) -> bool {
    let path = call.path.to_string();
    let below = path.strip_prefix("/v1/realtime/");
    call.method == Method::Post && below.is_some()
}
