//! Where a call goes.
//!
//! Invariant: the first route in written order that names the workload and takes the model wins.
//! Not here: which endpoint of a backend (`attempt`).

use std::sync::Arc;

use wire::dialect::gemini::Listed;
use wire::head::{RequestHead, percent_decoded};

use crate::caller::Caller;
use crate::id::{RouteId, WorkloadId};
use crate::mcp::McpRoute;
use crate::model::ModelPattern;
use crate::refusal::Refusal;
use crate::snapshot::{Backend, Grant, Route, Snapshot, Workload};
use crate::unread::Place;

/// The rule that takes a call.
#[derive(Debug, Clone, Copy)]
pub struct Chosen<'s> {
    /// Which of its workload's grants.
    pub at: usize,
    /// The grant.
    pub grant: &'s Grant,
    /// Its rule.
    pub route: &'s Route,
}

/// The grant of `workload` that takes `model`; a call without a model goes to the first route.
///
/// A route takes no name that only a backend of it uses ([`Snapshot::is_private_name`]): it would be the model of
/// another name, past what that one is charged and limited by.
///
/// # Errors
/// [`Refusal::ModelNotFound`] when no route of the workload takes it.
pub fn choose<'s>(
    snapshot: &'s Snapshot,
    workload: WorkloadId,
    model: Option<&str>,
) -> Result<Chosen<'s>, Refusal> {
    let takes = |route: &Route| {
        let Some(model) = model else { return true };
        // Where the route says which model is sent, the name goes no further.
        let is_public = || route.model.is_some() || !snapshot.is_private_name(route, model);
        let by_pattern = |pattern: &ModelPattern| {
            pattern.takes(model) && (matches!(pattern, ModelPattern::Exact(_)) || is_public())
        };
        match route.models.as_slice() {
            [] => is_public(),
            patterns => patterns.iter().any(by_pattern),
        }
    };
    first(snapshot, workload, takes).ok_or_else(|| Refusal::ModelNotFound {
        model: model.unwrap_or_default().to_owned(),
    })
}

/// Why no route takes a model whose name one would, for the log.
#[cold]
pub(crate) fn why_private(
    snapshot: &Snapshot,
    workload: WorkloadId,
    model: &str,
) -> Option<Box<str>> {
    let grants = snapshot.grants(workload).iter();
    let mut routes = grants.filter_map(|grant| snapshot.route(grant.route));
    let route = routes.find(|route| takes(route, model))?;
    let mut backends = route.backends.iter().filter_map(|id| snapshot.backend(*id));
    let named = backends.find_map(|backend| {
        let mut names = backend.model_names.iter();
        let (gate, _) = names.find(|(gate, own)| ***own == *model && ***gate != *model)?;
        let name = &backend.name;
        Some(format!(
            "{model:?} is what the backend {name} calls {gate} (`model_names`); a route serves it by that name where it has it under `match`"
        ))
    });
    let says = named.unwrap_or_else(|| {
        format!(
            "{model:?} is another spelling of a model in the API of a backend; a route serves it as it is spelt where it has it under `match`"
        )
    });
    Some(says.into())
}

/// Whether a route lets its calls name this model besides their own: one that it takes as it is written, since nobody puts another name
/// in its place; where the route says the model, that one.
#[must_use]
pub(crate) fn lets_name(snapshot: &Snapshot, route: &Route, model: &str) -> bool {
    if route.model.as_deref() == Some(model) {
        return true;
    }
    let by_name = |pattern: &ModelPattern| pattern.exact().is_some_and(|name| **name == *model);
    match route.models.as_slice() {
        [] if route.model.is_some() => false,
        patterns if patterns.iter().any(by_name) => true,
        _ => takes(route, model) && !snapshot.is_private_name(route, model),
    }
}

/// Whether any route of a workload goes by the names of models, or a budget counts some alone.
pub(crate) fn minds_models(snapshot: &Snapshot, workload: &Workload) -> bool {
    let mut grants = workload.grants.iter();
    let minds = |route: &Route| {
        let mut backends = route.backends.iter().filter_map(|id| snapshot.backend(*id));
        route.model.is_some()
            || !route.models.is_empty()
            || backends.any(|backend| !backend.model_names.is_empty())
    };
    let mut budgets = snapshot.budgets.list.iter();
    grants.any(|grant| snapshot.route(grant.route).is_some_and(minds))
        || budgets.any(|budget| !budget.models.is_empty())
}

/// The first grant of `workload` that takes any model: for a call that could name one and does not.
/// A route that goes by model must not be entered by leaving the model out.
///
/// # Errors
/// [`Refusal::ModelRequired`] when all routes of the workload go by model.
pub fn unrestricted(snapshot: &Snapshot, workload: WorkloadId) -> Result<Chosen<'_>, Refusal> {
    let takes = |route: &Route| route.models.is_empty();
    first(snapshot, workload, takes).ok_or(Refusal::ModelRequired)
}

/// The first grant of `workload` whose route is so.
pub(crate) fn first<'s>(
    snapshot: &'s Snapshot,
    workload: WorkloadId,
    takes: impl Fn(&'s Route) -> bool,
) -> Option<Chosen<'s>> {
    let mut grants = snapshot.grants(workload).iter().enumerate();
    grants.find_map(|(at, grant)| {
        let route = snapshot.route(grant.route).filter(|route| takes(route))?;
        Some(Chosen { at, grant, route })
    })
}

/// The rule that takes a workload's messages to servers of tools at one of their paths: its place, and the grant.
#[must_use]
pub fn tools(
    s: &Snapshot,
    workload: WorkloadId,
    path: u16,
) -> Option<(usize, &McpRoute, Chosen<'_>)> {
    let (config, workload) = (s.mcp.as_deref()?, s.workload(workload)?);
    let routes = config.routes.iter().enumerate();
    let mut routes = routes.filter(|(_, of)| of.path == path);
    routes.find_map(|(nth, of)| {
        let (at, grant) = workload.grant_of(of.route)?;
        let route = s.route(of.route)?;
        Some((nth, of, Chosen { at, grant, route }))
    })
}

/// The grant of a call of this tool, by its whole name, under a rule that takes it.
#[must_use]
pub fn of_tool<'s>(
    s: &'s Snapshot,
    workload: WorkloadId,
    (rule, chosen): (&McpRoute, Chosen<'s>),
    tool: &str,
) -> Chosen<'s> {
    let nth = rule.limits_of(tool);
    let own = nth.and_then(|nth| {
        let at = chosen.at + 1 + nth;
        let grant = s.workload(workload)?.grant(at)?;
        (grant.route == rule.route).then_some(Chosen {
            at,
            grant,
            ..chosen
        })
    });
    own.unwrap_or(chosen)
}

/// The grant of a workload that takes its request of plain HTTP, as the place of a listed call.
///
/// # Errors
/// [`Refusal::RouteNotFound`].
pub(crate) fn plain(
    snapshot: &Snapshot,
    workload: WorkloadId,
    head: &RequestHead,
) -> Result<Place, Refusal> {
    let granted = snapshot.workload(workload).map_or(&[][..], |of| &of.plain);
    let is_granted = |route| granted.iter().any(|grant| grant.route == route);
    snapshot.plain.take(head, &snapshot.listeners, is_granted)
}

/// The grant of a workload on a route of plain HTTP.
pub(crate) fn granted(
    snapshot: &Snapshot,
    workload: WorkloadId,
    route: RouteId,
) -> Option<Chosen<'_>> {
    let (at, grant) = snapshot.workload(workload)?.grant_of(route)?;
    let route = snapshot.route(route)?;
    Some(Chosen { at, grant, route })
}

/// Names of models that a workload can ask for.
#[derive(Debug, Default)]
struct Names {
    known: Vec<Arc<str>>,
    /// Whether there are no others: each route of the workload says its models, or its backends' are declared or given names.
    is_whole: bool,
}

fn names(snapshot: &Snapshot, workload: WorkloadId) -> Names {
    let mut names = Names {
        known: Vec::new(),
        is_whole: true,
    };
    for grant in snapshot.grants(workload) {
        let Some(route) = snapshot.route(grant.route) else {
            continue;
        };
        let of_route = names_of(snapshot, route);
        names.is_whole &= !of_route.is_empty();
        names.known.extend(of_route);
        if route.model.is_none() && !route.models.is_empty() {
            names.known.extend(priced(snapshot, route));
        }
    }
    names.known.sort();
    names.known.dedup();
    names
}

/// The names that a route and what is declared of its backends say.
fn names_of(snapshot: &Snapshot, route: &Route) -> Vec<Arc<str>> {
    let exact = route.models.iter().filter_map(|m| match m {
        ModelPattern::Exact(name) => Some(Arc::clone(name)),
        ModelPattern::Prefix(_) => None,
    });
    let mut names: Vec<Arc<str>> = exact.collect();
    match &route.model {
        Some(model) if route.models.is_empty() => names.push(Arc::clone(model)),
        Some(_) => {}
        None => {
            let served = route.backends.iter().filter_map(|b| snapshot.backend(*b));
            let known = served.flat_map(Backend::known_models);
            let is_offered =
                |name: &&Arc<str>| takes(route, name) && !snapshot.is_private_name(route, name);
            names.extend(known.filter(is_offered).cloned());
        }
    }
    names
}

/// The names that its patterns take and that have a price at one of its backends.
fn priced<'s>(snapshot: &'s Snapshot, route: &'s Route) -> impl Iterator<Item = Arc<str>> {
    let has_price = |model: &str| {
        let mut backends = route.backends.iter();
        backends.any(|backend| snapshot.prices.of_any(model, *backend).next().is_some())
    };
    let models = snapshot.prices.models();
    let taken = models.filter(move |model| takes(route, model) && has_price(model));
    taken
        .filter(|model| !snapshot.is_private_name(route, model))
        .cloned()
}

fn takes(route: &Route, model: &str) -> bool {
    route.models.is_empty() || route.models.iter().any(|pattern| pattern.takes(model))
}

/// The names that a caller is told of where it asks which models there are, or what one of them is (`path`); `None` where an upstream is to
/// be asked, because it alone knows. A caller that is held to models of its own is told of these alone. Where the routes of a workload
/// lead to several backends, none of them is asked for all: it would be told of models of one that go to another.
#[must_use]
pub fn models_of(
    snapshot: &Snapshot,
    workload: WorkloadId,
    caller: Option<&Caller>,
    path: &str,
) -> Option<Vec<Arc<str>>> {
    let Names {
        mut known,
        mut is_whole,
    } = names(snapshot, workload);
    if let Some(caller) = caller.filter(|caller| !caller.models.is_empty()) {
        let own = |m: &ModelPattern| match m {
            ModelPattern::Exact(name) => Some(Arc::clone(name)),
            ModelPattern::Prefix(_) => None,
        };
        // Which names fit a pattern, the backend knows.
        let own: Option<Vec<Arc<str>>> = caller.models.iter().map(own).collect();
        if let (false, Some(own)) = (is_whole, own) {
            known = own;
            is_whole = true;
        }
        known.retain(|name| caller.may_ask(name));
    }
    known.retain(|name| !is_left_out(snapshot, workload, name));
    let asks_upstream = !is_whole
        && match told_of(path) {
            Some(id) => {
                let is_known = known.iter().any(|name| *name.as_bytes() == *id);
                !is_known && !is_left_out(snapshot, workload, &String::from_utf8_lossy(&id))
            }
            None => has_one_upstream(snapshot, workload) && !leaves_out(snapshot, workload),
        };
    (!asks_upstream).then_some(known)
}

/// Whether the route that a workload's calls of this model take leaves it out of lists.
fn is_left_out(snapshot: &Snapshot, workload: WorkloadId, model: &str) -> bool {
    leaves_out(snapshot, workload)
        && choose(snapshot, workload, Some(model)).is_ok_and(|chosen| {
            let mut unlisted = chosen.route.unlisted.iter();
            unlisted.any(|pattern| pattern.takes(model))
        })
}

/// Whether any route of a workload leaves models out: an upstream's whole list would tell of them.
fn leaves_out(snapshot: &Snapshot, workload: WorkloadId) -> bool {
    let mut grants = snapshot.grants(workload).iter();
    grants.any(|grant| {
        let route = snapshot.route(grant.route);
        route.is_some_and(|route| !route.unlisted.is_empty())
    })
}

/// Whether all routes of a workload lead to the same backends.
fn has_one_upstream(snapshot: &Snapshot, workload: WorkloadId) -> bool {
    let grants = snapshot.grants(workload).iter();
    let mut routes = grants.filter_map(|grant| snapshot.route(grant.route));
    let first = routes.next();
    first.is_none_or(|first| routes.all(|route| route.backends == first.backends))
}

/// The grant for a call that asks which models there are, or what one of them is, where an upstream is asked: of the route that takes
/// that one.
///
/// # Errors
/// [`Refusal::ModelNotFound`] when none does.
pub(crate) fn for_listing<'s>(
    snapshot: &'s Snapshot,
    workload: WorkloadId,
    path: &str,
) -> Result<Chosen<'s>, Refusal> {
    let id = told_of(path).map(|id| String::from_utf8_lossy(&id).into_owned());
    choose(snapshot, workload, id.as_deref())
}

/// Refuses to tell of a model that the caller may not ask for.
///
/// # Errors
/// [`Refusal::ModelNotOwn`].
pub fn check_named(caller: Option<&Caller>, path: &str) -> Result<(), Refusal> {
    let Some(model) = told_of(path) else {
        return Ok(());
    };
    let model = String::from_utf8_lossy(&model).into_owned();
    match caller {
        Some(caller) if !caller.models.is_empty() && !caller.may_ask(&model) => {
            Err(Refusal::ModelNotOwn { model })
        }
        _ => Ok(()),
    }
}

/// Which of `names` `/v1/models/{id}` asks for; `None` when the path asks for all of them.
///
/// # Errors
/// [`Refusal::ModelNotFound`] when it is none of them.
pub fn model_named<'a>(names: &'a [Arc<str>], path: &str) -> Result<Option<&'a Arc<str>>, Refusal> {
    let Some(asked) = told_of(path) else {
        return Ok(None);
    };
    names
        .iter()
        .find(|name| name.as_bytes() == asked)
        .map(Some)
        .ok_or_else(|| Refusal::ModelNotFound {
            model: String::from_utf8_lossy(&asked).into_owned(),
        })
}

/// The model that a path asks about, in OpenAI's API or in Google's.
fn told_of(path: &str) -> Option<Vec<u8>> {
    match path.strip_prefix("/v1/models/") {
        Some(id) => Some(percent_decoded(id)),
        None => Some(Listed::of(path)?.model?.into_owned().into_bytes()),
    }
}

#[cfg(test)]
mod tests;
