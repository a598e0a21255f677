//! Requests within a session: lists of all servers as one, and what goes to the one server that has what is named.
//!
//! Invariant: what a name stands for is decided once, and the server is sent the very name of which it was asked whether it may be used.
//! Not here: the session itself (`session`), answers as they pass (`stream`).

use std::rc::Rc;

use bytes::Bytes;
use mcp::catalog::{Found, Kind, Source, found, merged};
use mcp::envelope::Message;
use mcp::handshake::Abilities;
use mcp::name;
use mcp::reply::{result, spliced, string};
use mcp::session::{OpenServer, Session};
use mcp::target::{Target, of as target_of};
use policy::mcp::{McpRoute, Prefix, Selection, Server, Shows, plain_uri};
use policy::operation::Operation;
use policy::refusal::Refusal;
use wire::head::Method;

use super::ask::Request;
use super::call::{Call, OUT_OF_ORDER, Stop, rule};
use super::join::{Boxed, all, while_there};
use super::stream::{Answering, relay, takes_events};
use super::{
    Arrived, admitted, answer, asker, invalid, lists, session, session_id, session_of, within,
};
use crate::client::Downstream;
use crate::worker_snapshot::WorkerSnapshot;

/// Serves a request.
pub(super) async fn serve<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    message: &Message<'_>,
    method: &str,
    id: &[u8],
    client: &mut D,
) -> Result<(), Stop> {
    if method == "initialize" {
        return session::begin(call, arrived, message, id, client).await;
    }
    if method == "server/discover" {
        // Of a later version, in which there are no sessions.
        let method = method.into();
        return Err(call.refuse(Refusal::McpMethod { method }));
    }
    let open = session_of(call, arrived.head)?;
    if method == "ping" {
        admitted(call, arrived, method, None, false, client).await?;
        return answer::message(call, client, &result(id, b"{}"), None).await;
    }
    if let Some(kind) = Kind::listed_by(method) {
        return list(call, arrived, &open, kind, id, client).await;
    }
    if method == "logging/setLevel" {
        return set_level(call, arrived, &open, id, client).await;
    }
    let target = match target_of(method, &arrived.text, message.params.as_ref()) {
        Ok(target) => target,
        Err(fault) => return Err(call.refuse(invalid(fault))),
    };
    match target {
        Some(target) => forward(call, arrived, &open, &target, id, client).await,
        _ => {
            let method = method.chars().take(64).collect::<String>().into();
            Err(call.refuse(Refusal::McpMethod { method }))
        }
    }
}

/// The rule of a message's caller.
fn rule_of<'v>(call: &mut Call, view: &'v WorkerSnapshot) -> Result<&'v McpRoute, Stop> {
    let rule = call.record().map(|record| rule(record, view));
    match rule {
        Some(Ok((_, rule, _))) => Ok(rule),
        Some(Err(refusal)) => Err(call.refuse(refusal)),
        None => Err(call.refuse(OUT_OF_ORDER)),
    }
}

const fn selection(shows: &Shows, kind: Kind) -> &Selection {
    match kind {
        Kind::Tools => &shows.tools,
        Kind::Prompts => &shows.prompts,
        Kind::Resources | Kind::Templates => &shows.resources,
    }
}

/// Whether a rule's workloads may see, and use, a server's own thing of this name.
pub(super) fn may_see(rule: &McpRoute, server: &Server, kind: Kind, own: &str) -> bool {
    let sees = |own: &str| {
        selection(&server.shows, kind).has(own)
            && selection(&rule.shows, kind).has(&kind.whole(&server.name, own))
    };
    // A server may take a URI for another way to write the one that is meant.
    sees(own) && (!kind.has_uri() || plain_uri(own).is_none_or(|plain| sees(&plain)))
}

/// One list of what all servers have, as far as its caller may see it.
async fn list<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    open: &Session,
    kind: Kind,
    id: &[u8],
    client: &mut D,
) -> Result<(), Stop> {
    admitted(call, arrived, kind.method(), None, true, client).await?;
    let (worker, view, call_id) = (call.worker.clone(), Rc::clone(&call.view), call.id.clone());
    let rule = rule_of(call, &view)?;
    let asker = asker(&worker, &view, &call_id);
    let listed = lists::of(asker, rule, open, kind, None, client).await?;
    let sources: Vec<Source<'_>> = listed.iter().map(lists::Listed::source).collect();
    let prefix = Call::config(&view).map_or(Prefix::Always, |(config, _)| config.prefix);
    let merged = merged(kind, &sources, prefix, |server, own| {
        let server = listed.iter().find(|of| *of.server.name == *server);
        server.is_some_and(|of| {
            may_see(rule, of.server, kind, own)
                && may_use(call, &view, arrived, kind, of.server, own)
        })
    });
    answer::message(call, client, &result(id, &merged), None).await
}

/// Whether the rules of the configuration let the caller use it.
fn may_use(
    call: &Call,
    view: &WorkerSnapshot,
    arrived: &Arrived<'_>,
    kind: Kind,
    server: &Server,
    own: &str,
) -> bool {
    let snapshot = view.snapshot();
    let (Some(rules), Some(record)) = (snapshot.authority.as_deref(), call.record()) else {
        return snapshot.authority.is_none();
    };
    let route = record.route.and_then(|id| snapshot.route(id));
    let asked = policy::front::Call {
        method: kind.used_by(),
        path: &kind.whole(&server.name, own),
        operation: Operation::Mcp.as_str(),
        source: snapshot
            .clients
            .address(arrived.who.peer.address, arrived.head),
        route,
        model: None,
    };
    policy::front::authorize(rules, &asked, record, snapshot, &mut None).is_ok()
}

/// A server's own thing.
struct Meant<'v> {
    server: &'v Server,
    own: String,
}

/// Sends a request to the server that has what it names.
async fn forward<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    session: &Session,
    target: &Target<'_>,
    id: &[u8],
    client: &mut D,
) -> Result<(), Stop> {
    let view = Rc::clone(&call.view);
    let rule = rule_of(call, &view)?;
    let meant = meant(call, &view, rule, session, target, client).await?;
    let Meant { server, own } = &meant;
    let named = target.kind.whole(&server.name, own);
    call.facts.named = Some(named.as_str().into());
    let open = session
        .servers
        .iter()
        .find(|open| *open.name == *server.name);
    let (true, Some(open)) = (may_see(rule, server, target.kind, own), open) else {
        return Err(call.refuse(not_found(target)));
    };
    let plain = plain_uri(own).filter(|_| target.kind.has_uri());
    if plain.is_some_and(|plain| !may_use(call, &view, arrived, target.kind, server, &plain)) {
        return Err(call.refuse(Refusal::NotAuthorized));
    }
    // Whoever may not use a thing may not ask how it is completed either.
    let used_by = target.kind.used_by();
    admitted(call, arrived, used_by, Some(&named), true, client).await?;
    let body = spliced(&arrived.text, target.at.clone(), &string(own));
    let answering = Answering {
        server,
        rule,
        session: session_id(arrived.head),
        id,
        takes_events: takes_events(arrived.head),
        has_session: open.id.is_some(),
    };
    send(call, &view, open, body, &answering, client).await
}

async fn send<D: Downstream>(
    call: &mut Call,
    view: &WorkerSnapshot,
    open: &OpenServer,
    body: Vec<u8>,
    of: &Answering<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let (worker, call_id) = (call.worker.clone(), call.id.clone());
    let request = Request {
        method: Method::Post,
        open: Some(open),
        body: Bytes::from(body),
        last_event: None,
        within: None,
    };
    let backend = view.snapshot().backend(of.server.backend);
    call.facts.endpoint = backend.and_then(|backend| backend.endpoints.first().copied());
    call.facts.attempts = 1;
    let sent = worker.now();
    let sending = asker(&worker, view, &call_id).send(of.server, request);
    let began = while_there(sending, &worker, client).await?;
    call.facts.upstream = Some(worker.now().since(sent));
    match began {
        Ok(began) => relay(call, of, began, client).await,
        Err(failed) => Err(call.failed(&failed)),
    }
}

fn not_found(target: &Target<'_>) -> Refusal {
    let what = match target.kind {
        Kind::Tools => "tool",
        Kind::Prompts => "prompt",
        Kind::Resources => "resource",
        Kind::Templates => "template",
    };
    Refusal::McpNotFound {
        what,
        name: target.name.chars().take(256).collect::<String>().into(),
    }
}

/// What a name stands for.
async fn meant<'v, D: Downstream>(
    call: &mut Call,
    view: &'v WorkerSnapshot,
    rule: &McpRoute,
    session: &Session,
    target: &Target<'_>,
    client: &mut D,
) -> Result<Meant<'v>, Stop> {
    let Some((config, _)) = Call::config(view) else {
        return Err(call.refuse(OUT_OF_ORDER));
    };
    let place_of = |server: &str| {
        let places = rule.servers.iter().copied();
        let mut of = places.filter_map(|at| Some((at, config.servers.get(at)?)));
        of.find(|(_, of)| *of.name == *server)
    };
    let meant = |server: &str, own: &str| {
        let (_, server) = place_of(server)?;
        let own = own.to_owned();
        Some(Meant { server, own })
    };
    let kind = target.kind;
    let is_prefixed = config.prefix == Prefix::Always;
    let prefixed = match kind.has_uri() {
        _ if !is_prefixed => None,
        true => name::split_uri(&target.name),
        false => name::split(&target.name),
    };
    if !is_prefixed || !kind.has_uri() && name::may_be_shortened(&target.name) {
        let only = prefixed.and_then(|(server, _)| place_of(server));
        let only = only.map(|(at, _)| at);
        match looked_up(call, view, rule, session, target, only, client).await? {
            Looked::At(server, own) => {
                return meant(&server, &own).ok_or_else(|| call.refuse(not_found(target)));
            }
            Looked::Two(one, other) => {
                let (one, other) = (one.into(), other.into());
                let name = target.name.chars().take(256).collect::<String>().into();
                return Err(call.refuse(Refusal::McpAmbiguous { name, one, other }));
            }
            Looked::Nowhere => {}
        }
    }
    let meant = prefixed.and_then(|(server, own)| meant(server, own));
    meant.ok_or_else(|| call.refuse(not_found(target)))
}

/// Where a name was found.
enum Looked {
    /// At this server, under its own name.
    At(String, String),
    /// At both of these.
    Two(String, String),
    Nowhere,
}

/// Looks a name up in what its caller may see of all servers. A URI that nobody lists is of the one server whose template makes it, or
/// of the only server that has resources.
async fn looked_up<D: Downstream>(
    call: &mut Call,
    view: &WorkerSnapshot,
    rule: &McpRoute,
    session: &Session,
    target: &Target<'_>,
    only: Option<usize>,
    client: &mut D,
) -> Result<Looked, Stop> {
    let (worker, call_id) = (call.worker.clone(), call.id.clone());
    let asker = asker(&worker, view, &call_id);
    let (kind, uri) = (target.kind, &*target.name);
    let prefix = Call::config(view).map_or(Prefix::Always, |(config, _)| config.prefix);
    let listed = lists::of(asker, rule, session, kind, only, client).await?;
    let sources: Vec<Source<'_>> = listed.iter().map(lists::Listed::source).collect();
    let found = found(kind, &sources, prefix, uri, |server, own| {
        let server = listed.iter().find(|of| *of.server.name == *server);
        server.is_some_and(|of| may_see(rule, of.server, kind, own))
    });
    match found {
        Found::One(server, own) => return Ok(Looked::At(server.to_owned(), own.to_owned())),
        Found::Two(one, other) => return Ok(Looked::Two(one.to_owned(), other.to_owned())),
        Found::Nothing if kind != Kind::Resources => return Ok(Looked::Nowhere),
        Found::Nothing => {}
    }
    let templates = lists::of(asker, rule, session, Kind::Templates, only, client).await?;
    let mut makers = templates.iter().filter(|of| {
        let may_see = |own: &str| may_see(rule, of.server, Kind::Templates, own);
        let source = of.source();
        source
            .catalog
            .is_some_and(|catalog| catalog.makes(uri, may_see))
    });
    let at = |of: &lists::Listed<'_>| Looked::At(of.server.name.to_string(), uri.to_owned());
    Ok(match (makers.next(), makers.next(), &*listed) {
        (Some(one), None, _) | (None, _, [one]) => at(one),
        (Some(one), Some(other), _) => {
            Looked::Two(one.server.name.to_string(), other.server.name.to_string())
        }
        (None, ..) => Looked::Nowhere,
    })
}

/// Tells all servers that log which level is wanted.
async fn set_level<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    open: &Session,
    id: &[u8],
    client: &mut D,
) -> Result<(), Stop> {
    admitted(call, arrived, "logging/setLevel", None, true, client).await?;
    let (worker, view, call_id) = (call.worker.clone(), Rc::clone(&call.view), call.id.clone());
    let rule = rule_of(call, &view)?;
    let Some((config, _)) = Call::config(&view) else {
        return Err(call.refuse(OUT_OF_ORDER));
    };
    let (asker, within) = (asker(&worker, &view, &call_id), within(call));
    let servers = config.servers_of(rule).filter_map(|server| {
        let mut opens = open.servers.iter();
        let open = opens.find(|open| *open.name == *server.name)?;
        open.abilities
            .has(Abilities::LOGGING)
            .then_some((server, open))
    });
    let waits = servers.map(|(server, open)| {
        let text = arrived.text.clone();
        let wait: Boxed<'_, bool> = Box::pin(async move {
            asker
                .ask(server, Some(open), text, id, within)
                .await
                .is_ok()
        });
        wait
    });
    let _told = while_there(all(waits.collect()), &worker, client).await?;
    answer::message(call, client, &result(id, b"{}"), None).await
}
