//! Whether a call may go on: from its head to who asks for what, from its body to a route and a reservation.
//!
//! Invariant: a refusal holds nothing.
//! Not here: the course of the exchange (`exchange`), what is reserved of limits and budgets ([`crate::front`]), which calls are
//! known ([`crate::operation`]) or listed ([`crate::unread`]).

use std::sync::Arc;

use wire::batch;
use wire::call::{Boundary, CallHead};
use wire::encoding::Coding;
use wire::head::{Known, RequestHead};

use super::attempting::upstream_operation;
use super::cost::{at_most, demand};
use super::verdict::Machine;
use crate::budget::Unit;
use crate::budget_reservation::{self, Asked};
use crate::caller::{Caller, OwnBudget, OwnLimit};
use crate::clock::Mono;
use crate::credential::protocols;
use crate::front::{Demand, Most, Reservation, reserve};
use crate::id::{RouteId, WorkloadId};
use crate::levels::Levels;
use crate::mcp::Mcp;
use crate::operation::{Operation, Unknown};
use crate::plain::fields;
use crate::refusal::Refusal;
use crate::route::Chosen;
use crate::shard::Shard;
use crate::snapshot::{Backend, Grant, Route, Snapshot};
use crate::unread::{self, Listed, Place};
use crate::usage_ledger::Estimate;
use crate::{credential, responses, route};

/// Where clients of the Responses API ask for a WebSocket.
const SOCKET: &str = "/v1/responses";

/// A request whose caller and purpose are known and whose body is welcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opened {
    /// Who asks.
    pub workload: WorkloadId,
    /// For what.
    pub operation: Operation,
    /// The route that lists the call, and where, for one that is not read; the route of one of plain HTTP.
    pub listed: Option<Place>,
    /// What the body is to be decoded from, of one that is read.
    pub coding: Option<Coding>,
}

/// What to do with a request that was read whole.
#[derive(Debug)]
pub(super) enum Decision {
    /// Send it upstream.
    Forward(Admitted),
    /// Answer `/v1/models` with these names.
    Models(Vec<Arc<str>>),
}

/// A call that may go upstream, and how it is edited.
#[derive(Debug)]
pub(super) struct Admitted {
    /// The rule that took it.
    pub route: RouteId,
    /// Which of the calls that the rule lists it is, where it is one.
    pub listed: Option<u16>,
    /// An attempt may have to edit the body.
    pub is_edited: bool,
    /// The stream is made to report its usage.
    pub force_usage: bool,
    /// The model sent upstream, when it is known.
    pub model: Option<Arc<str>>,
    /// Whether the usage chunk of the stream is ours alone and is withheld from the client.
    pub withhold_usage: bool,
    /// Whether the client asked for a stream.
    pub stream: bool,
    /// Estimate of prompt tokens, for a response that brings no usage.
    pub prompt_estimate: u64,
    /// The most that is believed of what its answer is billed by.
    pub most: Most,
    /// What it may come to, for the ledger.
    pub estimate: Estimate,
}

/// Head to purpose, before anybody asks who calls.
///
/// # Errors
/// No such call, several credentials, or a call of another protocol.
pub(super) fn purpose(head: &RequestHead, s: &Snapshot) -> Result<Operation, NoExchange> {
    let operation = match Operation::of(head.method, head.path()) {
        Ok(operation) => {
            if !s.listeners.is_empty() {
                s.listeners.admit_model(head)?;
            }
            match operation {
                Operation::Unread => unread_or_other(head, s)?,
                operation => operation,
            }
        }
        Err(unknown) => outside(head, unknown, s)?,
    };
    credential::check(head)?;
    Ok(operation)
}

/// What a request is that is none of the table, where it is no call that is let through unread.
#[cold]
fn unread_or_other(head: &RequestHead, s: &Snapshot) -> Result<Operation, NoExchange> {
    if s.batches.is_some()
        && let Some(named) = batch::asked(head.method, head.path())
    {
        if let Err(allow) = named {
            return Err(Refusal::Method { allow }.into());
        }
        credential::check(head)?;
        return Err(NoExchange::HandedOver(Machine::Batches));
    }
    Ok(socket(head)?)
}

/// Which API's WebSocket a request asks for that is none of the table; else it is unread.
#[cold]
fn socket(head: &RequestHead) -> Result<Operation, Refusal> {
    if !fields::asks_for_websocket(head) {
        return Ok(Operation::Unread);
    }
    Ok(match head.path() {
        SOCKET => Operation::ResponsesSocket,
        protocols::REALTIME => {
            protocols::check(head)?;
            Operation::RealtimeSocket
        }
        _ => Operation::Unread,
    })
}

/// Why a request is no exchange that goes on.
pub(super) enum NoExchange {
    /// It is refused.
    Refused(Refusal),
    /// It has a machine of its own.
    HandedOver(Machine),
}

impl From<Refusal> for NoExchange {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What a request asks for that no API of the gate's has: plain HTTP, where a route may take it.
#[cold]
fn outside(head: &RequestHead, unknown: Unknown, s: &Snapshot) -> Result<Operation, NoExchange> {
    let is_tools = |is: &dyn Fn(&Mcp) -> bool| s.mcp.as_deref().is_some_and(is);
    match unknown {
        Unknown::Path if is_tools(&|mcp| mcp.path(head.path()).is_some()) => {
            credential::check(head)?;
            if !s.listeners.is_empty() {
                s.listeners.admit_model(head)?;
            }
            Err(NoExchange::HandedOver(Machine::Tools))
        }
        Unknown::Path if is_tools(&|mcp| mcp.resource(head.path()).is_some()) => {
            Err(NoExchange::HandedOver(Machine::Tools))
        }
        Unknown::Path if s.plain.may_take(head) => Ok(Operation::Http),
        Unknown::Path => Err(Refusal::path(head).into()),
        Unknown::Method(allow) => Err(Refusal::Method { allow }.into()),
        Unknown::Operation => Err(Refusal::operation(head).into()),
    }
}

/// Whether the body of an identified caller's request is welcome. Nothing is spent on a request that fails here.
///
/// # Errors
/// Everything else that a head alone can be refused for.
pub(super) fn open(
    head: &RequestHead,
    length: Option<u64>,
    operation: Operation,
    workload: WorkloadId,
    s: &Snapshot,
) -> Result<Opened, Refusal> {
    let is_kept = s.responses.is_some() && responses::asked(head).is_some();
    // A form is read unless a rule lists it.
    let listed = if operation.reads_body() && !operation.is_form() {
        None
    } else if operation == Operation::Http {
        let place = route::plain(s, workload, head)?;
        let actions = s
            .route(place.route)
            .and_then(|route| route.actions.as_ref());
        if let Some(redirect) = actions.and_then(|actions| actions.redirect.as_ref()) {
            return Err(redirect.refusal(head, &s.listeners));
        }
        Some(place)
    } else {
        match unread::listed(head, operation, s.lists(workload)) {
            _ if operation == Operation::RealtimeSocket => None,
            Err(_) if is_kept => None,
            listed => listed?,
        }
    };
    let operation = match listed.is_none() && is_kept {
        true => Operation::KeptResponse,
        false => operation,
    };
    if length.is_some_and(|length| length > s.bounds.body_bytes) {
        return Err(Refusal::BodyTooLarge {
            limit: s.bounds.body_bytes,
        });
    }
    let coding = match operation.reads_body() && listed.is_none() {
        true => body_type(head, operation)?,
        false => None,
    };
    Ok(Opened {
        workload,
        operation,
        listed,
        coding,
    })
}

/// Whole request to decision: chooses the route, reserves from every limit and budget, plans the
/// edits.
///
/// `may` is asked whether rules allow the call; `call` is what the body says, for operations that read it; `bytes` its length; `unix_ms` when
/// it began, milliseconds since the Unix epoch. `chosen` learns the route, also where the call is refused there; `held` gets what must be
/// settled when it ends, which is large to be moved.
///
/// # Errors
/// No route, a limit, or a budget. Nothing is reserved then.
#[expect(
    clippy::too_many_arguments,
    reason = "facts of one call, each from elsewhere"
)]
#[inline(always)]
pub(super) fn admit(
    opened: Opened,
    head: &RequestHead,
    caller: Option<&Arc<Caller>>,
    may: impl FnOnce(Option<&Route>) -> Result<(), Refusal>,
    call: Option<&CallHead>,
    bytes: u64,
    before: impl FnOnce() -> u64,
    chosen: &mut Option<RouteId>,
    held: &mut Option<Reservation>,
    now: Mono,
    unix_ms: u64,
    s: &Snapshot,
    levels: &Levels,
    shard: &mut Shard,
) -> Result<Decision, Refusal> {
    if opened.operation.lists_models()
        && let Some(names) = route::models_of(
            s,
            opened.workload,
            caller.map(|caller| &**caller),
            head.path(),
        )
    {
        may(None)?;
        return Ok(Decision::Models(names));
    }
    let asked = call.and_then(|c| c.model.as_deref());
    let Chosen {
        at,
        grant,
        route: rule,
    } = grant(opened, head, caller, call, s)?;
    *chosen = Some(grant.route);
    may(Some(rule))?;
    let leans = call.filter(|call| call.leans_on_upstream());
    if let Some(call) = leans {
        check_state(opened.operation, call, rule, s)?;
    }
    if let Some(call) = call.filter(|call| !call.besides.is_empty()) {
        check_besides(opened.workload, call, rule, caller, s)?;
    }
    let listed = opened.listed.map(|place| place.nth);
    let charged = listed.and_then(|nth| rule.unread.get(usize::from(nth)));
    if let (Some(charged), Some(caller)) = (charged, caller) {
        check_charge(opened.operation, charged, caller)?;
    }
    if rule.model.is_some() && call.is_some_and(|call| call.is_form && call.model.is_none()) {
        return Err(Refusal::FormModel);
    }
    let estimator = shard.estimator(grant.route);
    let mut tokens = match charged {
        Some(charged) => Demand::charged(charged.tokens),
        None => demand(opened.operation, call, bytes, &estimator, rule.output_max),
    };
    if leans.is_some() && charged.is_none() {
        tokens = tokens.behind(before());
    }
    let (prompt_estimate, completion) = (tokens.prompt_charged, tokens.completion);
    let mut reservation = reserve(opened.workload, caller, (at, grant), tokens, now, s, levels)?;
    // A body that is not read is not rewritten either.
    let model = call.and_then(|_| {
        let replaced = rule.model.clone();
        replaced.or_else(|| asked.map(|name| known_name(s, grant, name, shard)))
    });
    let costs = match charged {
        Some(charged) => !charged.is_free(&s.prices),
        None => opened.operation.is_metered(),
    };
    if costs {
        let asked = Asked {
            workload: opened.workload,
            caller,
            model: model.as_deref(),
            backends: &rule.backends,
            prompt: prompt_estimate,
            completion,
            pieces: tokens.most.pieces(),
            fixed: charged.and_then(|charged| s.prices.get(charged.price?).map(AsRef::as_ref)),
        };
        match budget_reservation::reserve(&asked, unix_ms, s, levels) {
            Ok(for_budgets) => reservation.for_budgets = for_budgets,
            Err(refusal) => {
                reservation.release(now, s, levels);
                return Err(refusal);
            }
        }
    }
    let estimate = Estimate {
        reserved: prompt_estimate.saturating_add(completion),
        at_most: match charged {
            Some(charged) => charged.tokens,
            None => at_most(tokens, bytes, opened.operation),
        },
    };
    let force = call.is_some_and(|c| c.stream && opened.operation.usage_on_request());
    *held = Some(reservation);
    Ok(Decision::Forward(Admitted {
        route: grant.route,
        listed,
        is_edited: force || rule.model.is_some() || backends_rename(rule, s),
        force_usage: force,
        model,
        withhold_usage: force && call.is_some_and(|c| !c.asked_for_usage()),
        stream: call.is_some_and(|c| c.stream),
        prompt_estimate,
        most: tokens.most,
        estimate,
    }))
}

/// Whether a backend of the rule has names of its own for models.
fn backends_rename(rule: &Route, s: &Snapshot) -> bool {
    let mut backends = rule.backends.iter().filter_map(|id| s.backend(*id));
    backends.any(|backend| !backend.model_names.is_empty())
}

/// The route that the call would take; none for one that the gate answers itself.
///
/// # Errors
/// No route is for it.
pub(super) fn route_of(
    opened: Opened,
    head: &RequestHead,
    caller: Option<&Arc<Caller>>,
    call: Option<&CallHead>,
    s: &Snapshot,
) -> Result<Option<RouteId>, Refusal> {
    if opened.operation.is_answered_here() {
        return Ok(None);
    }
    let is_listing = opened.operation.lists_models()
        && route::models_of(
            s,
            opened.workload,
            caller.map(|caller| &**caller),
            head.path(),
        )
        .is_some();
    if is_listing {
        return Ok(None);
    }
    grant(opened, head, caller, call, s).map(|chosen| Some(chosen.grant.route))
}

/// The grant that takes the call.
#[inline(always)]
fn grant<'s>(
    opened: Opened,
    head: &RequestHead,
    caller: Option<&Arc<Caller>>,
    call: Option<&CallHead>,
    s: &'s Snapshot,
) -> Result<Chosen<'s>, Refusal> {
    let asked = call.and_then(|c| c.model.as_deref());
    let has_own_models = |caller: &&Arc<Caller>| !caller.models.is_empty();
    if !opened.operation.lists_models()
        && let Some(caller) = caller.filter(has_own_models)
    {
        check_model(caller, call, asked)?;
    }
    match (call, asked) {
        (Some(_), None) => route::unrestricted(s, opened.workload),
        (None, _) if opened.operation.lists_models() => {
            route::for_listing(s, opened.workload, head.path())
        }
        (None, _) => unread_grant(opened, s),
        (_, asked) => route::choose(s, opened.workload, asked),
    }
}

/// Refuses a call for a model that its caller may not ask for, or that says none.
#[cold]
fn check_model(
    caller: &Caller,
    call: Option<&CallHead>,
    asked: Option<&str>,
) -> Result<(), Refusal> {
    match (call, asked) {
        (Some(_), Some(model)) if caller.may_ask(model) => Ok(()),
        (Some(_), Some(model)) => Err(Refusal::ModelNotOwn {
            model: model.to_owned(),
        }),
        (Some(_), None) => Err(Refusal::OwnModelRequired),
        (None, _) => Err(Refusal::ModelUnread),
    }
}

/// The grant for a call whose body is not read: of the route that lists it, else the first.
fn unread_grant(opened: Opened, s: &Snapshot) -> Result<Chosen<'_>, Refusal> {
    let Opened {
        workload,
        operation,
        listed,
        ..
    } = opened;
    if let (Some(place), Operation::Http) = (listed, operation) {
        let chosen = route::granted(s, workload, place.route);
        return chosen.ok_or(Refusal::Bug("a plain call without grant"));
    }
    if let Some(place) = listed {
        let listing = s.route(place.route);
        let lists = |route: &Route| listing.is_some_and(|listing| std::ptr::eq(listing, route));
        return route::first(s, workload, lists).ok_or(Refusal::Bug("a listed call without grant"));
    }
    route::choose(s, workload, None)
}

/// Refuses a call that a route lets through without a charge that the caller's own limits or budgets could count. Those
/// of the configuration are looked at when it is read.
fn check_charge(operation: Operation, charged: &Listed, caller: &Caller) -> Result<(), Refusal> {
    let is_uncounted = |budget: &OwnBudget| match budget.unit {
        Unit::Tokens => charged.tokens.is_none(),
        // Not of calls to models.
        Unit::Calls => false,
        Unit::Money(_) => charged.price.is_none(),
    };
    let is_unlimited = |limit: &OwnLimit| limit.kind.is_settled() && charged.tokens.is_none();
    if caller.budgets.iter().any(is_uncounted) || caller.limits.iter().any(is_unlimited) {
        let operation = operation.words();
        return Err(Refusal::NoCharge { operation });
    }
    Ok(())
}

/// Refuses a call that would run on unseen, or that names what another workload may have made.
#[cold]
pub(crate) fn check_state(
    operation: Operation,
    call: &CallHead,
    rule: &Route,
    s: &Snapshot,
) -> Result<(), Refusal> {
    let behind = match operation {
        Operation::Responses if call.background => Some("background"),
        Operation::Chat if call.deferred => Some("deferred"),
        _ => None,
    };
    if let Some(member) = behind {
        return Err(Refusal::Background { member });
    }
    match call.keeps {
        // Whoever shares the account, it is not asked: the translation refuses the call, and says what helps.
        Some("previous_response_id" | "conversation")
            if operation == Operation::Responses && is_always_translated(operation, rule, s) =>
        {
            Ok(())
        }
        Some(member) if operation.names_stored() && !rule.is_exclusive => {
            Err(Refusal::SharedAccount { member })
        }
        _ => Ok(()),
    }
}

/// Whether no backend of the rule speaks the call's own dialect.
fn is_always_translated(operation: Operation, rule: &Route, s: &Snapshot) -> bool {
    rule.backends.iter().all(|id| {
        let backend = s.backend(*id);
        let filters = backend.map(|backend| rule.filters.iter().chain(&backend.filters));
        let asked = filters.and_then(|filters| upstream_operation(operation, filters));
        asked.is_some_and(|asked| asked != operation)
    })
}

/// Refuses a call that names a model besides its own which its route, its caller's key or a budget of models holds apart.
#[cold]
pub(crate) fn check_besides(
    workload: WorkloadId,
    call: &CallHead,
    rule: &Route,
    caller: Option<&Arc<Caller>>,
    s: &Snapshot,
) -> Result<(), Refusal> {
    let own = rule.model.as_deref().or(call.model.as_deref());
    let is_counted_apart = |model: &str| {
        let ids = s.budgets.of.get(workload.index());
        let mut budgets = ids
            .into_iter()
            .flatten()
            .filter_map(|id| s.budgets.get(*id));
        budgets.any(|budget| {
            budget.counts_model(model) && !own.is_some_and(|own| budget.counts_model(own))
        })
    };
    let may = |model: &str| {
        route::lets_name(s, rule, model)
            && caller.is_none_or(|caller| caller.may_ask(model))
            && !is_counted_apart(model)
    };
    match call.besides.iter().find(|other| !may(&other.model)) {
        Some(other) => Err(Refusal::ModelBesides {
            member: other.member,
            model: other.model.clone(),
        }),
        None => Ok(()),
    }
}

/// The shared name of a model, so that none is allocated for one that the configuration knows or that was asked for just before.
pub(super) fn known_name(s: &Snapshot, grant: &Grant, name: &str, shard: &mut Shard) -> Arc<str> {
    let backends = s
        .route(grant.route)
        .map_or(&[][..], |r| r.backends.as_slice());
    let mut known = backends
        .iter()
        .filter_map(|b| s.backend(*b))
        .flat_map(Backend::known_models);
    let known = known.find(|known| ***known == *name);
    known.map_or_else(|| shard.unlisted(name), Arc::clone)
}

/// Looks whether the body is JSON, or the form that the call takes, and gives what it is to be decoded from.
fn body_type(head: &RequestHead, operation: Operation) -> Result<Option<Coding>, Refusal> {
    let mut codings = head.fields.of(Known::ContentEncoding);
    let coding = match (codings.next(), codings.next()) {
        (None, _) => None,
        (Some(one), None) if one.eq_ignore_ascii_case(b"identity") => None,
        (Some(one), None) => Some(Coding::of(one).ok_or(Refusal::ContentEncoding)?),
        (Some(_), Some(_)) => return Err(Refusal::ContentEncoding),
    };
    let Ok(value) = head.fields.only(Known::ContentType) else {
        return Err(Refusal::ContentType);
    };
    let is_json = value.is_some_and(|value| value == b"application/json" || is_json(value));
    if is_json {
        Ok(coding)
    } else if operation.is_form() {
        value
            .and_then(Boundary::of)
            .map(|_| coding)
            .ok_or(Refusal::FormType)
    } else {
        Err(Refusal::ContentType)
    }
}

/// Whether a `content-type` is JSON's, in any case and in the one charset that JSON has.
#[must_use]
pub fn is_json(value: &[u8]) -> bool {
    let mut parts = value.split(|b| *b == b';').map(<[u8]>::trim_ascii);
    parts
        .next()
        .is_some_and(|t| t.eq_ignore_ascii_case(b"application/json"))
        && parts.all(|p| {
            p.to_ascii_lowercase()
                .strip_prefix(b"charset=")
                .is_none_or(|set| matches!(set, b"utf-8" | b"\"utf-8\""))
        })
}
