//! Requests within a session: lists of all servers as one, and what goes to the one server that has what is named.
//!
//! Invariant: what a name stands for is decided once, and the server is sent the very name of which it was asked whether it may be used.
//! Not here: the session itself (`session`), answers as they pass (`stream`).

use std::rc::Rc;

use bytes::Bytes;
use mcp::bridge;
use mcp::catalog::{Found, Kind, Source, found, fresh, merged};
use mcp::discover::Fresh;
use mcp::envelope::Message;
use mcp::handshake::Abilities;
use mcp::header;
use mcp::modern::{Level, is_named};
use mcp::name;
use mcp::reply::{edited, result, string, with_members};
use mcp::session::{OpenServer, Session, StateOf};
use mcp::target::{Target, of as target_of};
use policy::mcp::{McpRoute, Prefix, Selection, Server, Shows, plain_uri};
use policy::operation::Operation;
use policy::refusal::Refusal;
use wire::head::{Known, Method, RequestHead};

use super::ask::{Failed, Request, Says, form};
use super::call::{Call, OUT_OF_ORDER, Stop, principal, rule};
use super::join::{Boxed, all, while_there};
use super::stream::{self, Answering, relay, takes_events};
use super::{
    Arrived, admitted, answer, asker, counted, inputs, invalid, lists, modern, open, session,
    session_id, session_of, within,
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
        // It says of itself neither that it has a session nor that it needs none.
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
        let level = Level::asked(&arrived.text, message.params.as_ref());
        return set_level(call, arrived, &open, (id, level), client).await;
    }
    let target = match target_of(method, &arrived.text, message.params.as_ref()) {
        Ok(target) => target,
        Err(fault) => return Err(call.refuse(invalid(fault))),
    };
    match target {
        Some(target) => {
            let asked = Asked {
                message,
                method,
                target: &target,
                log_level: None,
                id,
            };
            named(call, &target);
            counted(call, arrived, client).await?;
            forward(call, arrived, &open, &asked, client).await
        }
        _ => {
            let method = method.chars().take(64).collect::<String>().into();
            Err(call.refuse(Refusal::McpMethod { method }))
        }
    }
}

/// A request that names something.
pub(super) struct Asked<'a> {
    pub(super) message: &'a Message<'a>,
    pub(super) method: &'a str,
    pub(super) target: &'a Target<'a>,
    /// Which log messages it wants, where it says so itself.
    pub(super) log_level: Option<Level>,
    /// Its id, as written.
    pub(super) id: &'a [u8],
}

/// The record says what its client named, until it is known what that is.
pub(super) fn named(call: &mut Call, target: &Target<'_>) {
    call.facts.named = Some(shortened(target));
}

/// The rule of a message's caller.
pub(super) fn rule_of<'v>(call: &mut Call, view: &'v WorkerSnapshot) -> Result<&'v McpRoute, Stop> {
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
pub(super) async fn list<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    open: &Session,
    kind: Kind,
    id: &[u8],
    client: &mut D,
) -> Result<(), Stop> {
    let view = Rc::clone(&call.view);
    let rule = rule_of(call, &view)?;
    if call.facts.is_modern
        && !open
            .servers
            .iter()
            .any(|of| of.abilities.has(kind.ability()))
    {
        // What no server offers is not there.
        let method = kind.method().into();
        return Err(call.refuse(Refusal::McpMethod { method }));
    }
    admitted(call, arrived, kind.method(), None, true, client).await?;
    let listed = lists::of(call, &view, rule, open, kind, None, client).await?;
    let sources: Vec<Source<'_>> = listed.iter().map(lists::Listed::source).collect();
    let prefix = Call::config(&view).map_or(Prefix::Always, |(config, _)| config.prefix);
    let mut merged = merged(kind, &sources, prefix, |server, own| {
        let server = listed.iter().find(|of| *of.server.name == *server);
        server.is_some_and(|of| {
            may_see(rule, of.server, kind, own)
                && may_use(call, &view, arrived, kind, of.server, own)
        })
    });
    if call.facts.is_modern {
        let left = listed.iter().map(|of| of.left.as_millis()).min();
        let unless_said = Fresh {
            ttl_ms: left.and_then(|left| u64::try_from(left).ok()).unwrap_or(0),
            is_public: false,
        };
        let is_for_all = modern::is_for_all(&view, rule);
        let fresh = fresh(&sources, unless_said, is_for_all);
        merged = with_members(&merged, fresh.members().as_bytes());
    }
    answer::message(call, client, &result(id, &merged), None).await
}

/// Whether the rules of the configuration let the caller use it.
pub(super) fn may_use(
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

/// Whether the caller may hear of a server's own resource: filters and rules let it be read, however its URI is written.
pub(super) fn may_hear(
    call: &Call,
    arrived: &Arrived<'_>,
    rule: &McpRoute,
    (server, own): (&Server, &str),
) -> bool {
    let kind = Kind::Resources;
    let view = &call.view;
    let may_use = |own: &str| may_use(call, view, arrived, kind, server, own);
    may_see(rule, server, kind, own)
        && may_use(own)
        && plain_uri(own).is_none_or(|plain| may_use(&plain))
}

/// A server's own thing.
pub(super) struct Meant<'v> {
    pub(super) server: &'v Server,
    pub(super) own: String,
}

/// Sends a request, which is counted, to the server that has what it names.
pub(super) async fn forward<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    session: &Session,
    asked: &Asked<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let target = asked.target;
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
    if !call.facts.is_modern && open.version.is_modern() && is_held(asked.method) {
        return hold(call, arrived, session, asked, &meant, client).await;
    }
    let state = state_of(call, &view, asked.method, &named);
    let sent_id = id_for(call, open, asked.id);
    let body = body_for(
        call,
        arrived,
        (session, open),
        asked,
        &meant,
        (state.as_ref(), &sent_id),
    )?;
    let params = headers_for(
        call,
        arrived,
        (session, open),
        asked,
        (&view, rule, &meant),
        client,
    )
    .await?;
    let answering = Answering {
        server,
        rule,
        arrived,
        id: asked.id,
        sent_id,
        takes_events: takes_events(arrived.head),
        has_session: open.id.is_some(),
        open: open.clone(),
        can: session.can,
        is_modern: call.facts.is_modern,
        log_level: asked.log_level,
        is_read: asked.method == "resources/read",
        is_for_all: modern::is_for_all(&view, rule),
        state,
    };
    let says = Says {
        method: asked.method,
        named: is_named(asked.method).then_some(own),
        params: &params,
    };
    send(call, &view, (says, body), answering, client).await
}

/// Whether a request changes what a session holds.
fn is_held(method: &str) -> bool {
    matches!(method, "resources/subscribe" | "resources/unsubscribe")
}

/// Holds for a client with a session what it listens to at a server without: its standing stream hears it.
async fn hold<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    session: &Session,
    asked: &Asked<'_>,
    meant: &Meant<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let view = Rc::clone(&call.view);
    let Some((config, _)) = Call::config(&view) else {
        return Err(call.refuse(OUT_OF_ORDER));
    };
    let mark = mcp::session::mark_of_session(session_id(arrived.head));
    let (until, name) = (session.until_unix_s, &meant.server.name);
    if asked.method == "resources/unsubscribe" {
        config.held.unsubscribe(mark, until, name, &meant.own);
    } else if !config.held.subscribe(mark, until, name, &meant.own) {
        let says = format!("the session listens to as many resources of {name} as it may");
        return Err(call.refuse(Refusal::McpNotBridged { says: says.into() }));
    }
    answer::message(call, client, &result(asked.id, b"{}"), None).await
}

/// What a server's `requestState` is bound to.
fn state_of(call: &Call, view: &WorkerSnapshot, method: &str, named: &str) -> Option<StateOf> {
    let (record, (_, tools)) = (call.record()?, Call::config(view)?);
    let (nth, ..) = rule(record, view).ok()?;
    let who = principal(record, view);
    Some(StateOf::new(method, named, tools.places.get(nth)?, &who))
}

/// The id under which the server is asked: its client's own, but in a session that several clients of one caller share.
fn id_for(call: &Call, open: &OpenServer, id: &[u8]) -> Vec<u8> {
    match Call::config(&call.view) {
        Some((config, _)) if call.facts.is_modern && !open.version.is_modern() => {
            format!("\"tollgate-{}\"", config.kept.next_request()).into_bytes()
        }
        _ => id.to_vec(),
    }
}

/// What the server is sent.
fn body_for(
    call: &mut Call,
    arrived: &Arrived<'_>,
    (session, open): (&Session, &OpenServer),
    asked: &Asked<'_>,
    meant: &Meant<'_>,
    (state, sent_id): (Option<&StateOf>, &[u8]),
) -> Result<Vec<u8>, Stop> {
    let (text, params) = (&arrived.text, asked.message.params.as_ref());
    let mut edits = vec![(asked.target.at.clone(), string(&meant.own))];
    if let mcp::envelope::Says::Request { at, .. } = &asked.message.says
        && sent_id != asked.id
    {
        edits.push((at.clone(), sent_id.to_vec()));
    }
    let eras = (call.facts.is_modern, open.version.is_modern());
    let bridged = match eras {
        (true, true) | (false, false) => Ok(Vec::new()),
        (true, false) => bridge::to_legacy(text, params),
        (false, true) => {
            let level = level_of(call, arrived);
            bridge::to_modern(text, params, session.can, level.as_deref())
        }
    };
    match bridged {
        Ok(bridged) => edits.extend(bridged),
        Err(fault) => return Err(call.refuse(invalid(fault))),
    }
    if eras.0 {
        let found = match bridge::state_in(text, params) {
            Ok(found) => found,
            Err(fault) => return Err(call.refuse(modern::bad_params(&fault))),
        };
        if let Some((sealed, at)) = found {
            let unix_s = call.worker.clock.wall_ms(call.worker.now()) / 1000;
            let sealer = Call::config(&call.view).map(|(_, tools)| &tools.sealer);
            // A server with sessions has given none.
            let opened = sealer.filter(|_| eras.1).zip(state);
            let opened = opened.and_then(|(sealer, of)| sealer.open_state(&sealed, of, unix_s));
            let Some(opened) = opened else {
                return Err(call.refuse(Refusal::McpState));
            };
            edits.push((at, string(&opened)));
        }
    }
    Ok(edited(text, edits))
}

/// Which log messages a client with a session wants.
fn level_of(call: &Call, arrived: &Arrived<'_>) -> Option<Box<str>> {
    let (config, _) = Call::config(&call.view)?;
    let mark = mcp::session::mark_of_session(session_id(arrived.head));
    config.held.level(&mark)
}

/// The headers of arguments: those that a client without a session sends, which its server compares with the body; for one with a session
/// the gate makes them.
async fn headers_for<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    (session, open): (&Session, &OpenServer),
    asked: &Asked<'_>,
    (view, rule, meant): (&WorkerSnapshot, &McpRoute, &Meant<'_>),
    client: &mut D,
) -> Result<Vec<(String, String)>, Stop> {
    if !open.version.is_modern() || asked.method != "tools/call" {
        return Ok(Vec::new());
    }
    if call.facts.is_modern {
        return params_of(call, arrived.head);
    }
    let config = Call::config(view).map(|(config, _)| config);
    let place = config.and_then(|config| {
        let mut servers = config.servers.iter();
        servers.position(|of| *of.name == *meant.server.name)
    });
    let listed = lists::of(call, view, rule, session, Kind::Tools, place, client).await?;
    let sources = listed.iter().map(lists::Listed::source);
    let mut tools = sources.filter_map(|of| of.catalog?.find(&meant.own));
    let tool = tools.next().map(mcp::catalog::Item::raw);
    let arguments = bridge::arguments(&arrived.text, asked.message.params.as_ref());
    Ok(tool.map_or_else(Vec::new, |tool| header::params(tool, arguments)))
}

/// The headers of arguments that a client sent, each once.
fn params_of(call: &mut Call, head: &RequestHead) -> Result<Vec<(String, String)>, Stop> {
    let mut params: Vec<(String, String)> = Vec::new();
    for field in head.fields.of_kind(Known::Other) {
        let Ok(name) = std::str::from_utf8(field.name) else {
            continue;
        };
        if !name.starts_with(header::PARAM) {
            continue;
        }
        let is_twice = params.iter().any(|(before, _)| before == name);
        let value = std::str::from_utf8(field.value.trim_ascii());
        match value {
            Ok(value) if !is_twice && header::decoded(value.as_bytes()).is_some() => {
                params.push((name.to_owned(), value.to_owned()));
            }
            _ => {
                let says = format!(
                    "Header mismatch: the header {name} stands twice, or has a value that is none"
                );
                return Err(call.refuse(Refusal::McpHeader { says: says.into() }));
            }
        }
    }
    Ok(params)
}

/// How often a server may ask its client before it has answered a call.
const ROUNDS_MAX: usize = 16;

async fn send<D: Downstream>(
    call: &mut Call,
    view: &WorkerSnapshot,
    (says, asked): (Says<'_>, Vec<u8>),
    mut of: Answering<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let (worker, call_id) = (call.worker.clone(), call.id.clone());
    let backend = view.snapshot().backend(of.server.backend);
    call.facts.endpoint = backend.and_then(|backend| backend.endpoints.first().copied());
    let (mut body, mut is_reopened) = (Bytes::from(asked.clone()), false);
    for _ in 0..ROUNDS_MAX {
        let open = of.open.clone();
        let request = Request {
            method: Method::Post,
            open: Some(&open),
            says,
            body: body.clone(),
            last_event: None,
            within: None,
        };
        call.facts.attempts += 1;
        let sent = worker.now();
        let asker = asker(&worker, view, &call_id);
        let sending = asker.send(of.server, request);
        let began = match while_there(sending, &worker, client).await {
            Ok(began) => began,
            Err(stop) => return Err(left(asker, &of, stop).await),
        };
        call.facts.upstream.get_or_insert(worker.now().since(sent));
        let began = match began {
            Ok(began) => began,
            Err(failed) => return Err(stream::broken(call, &of, failed, client).await?),
        };
        let form = form(&began.response, of.has_session);
        let is_gone = matches!(form, Err(Failed::SessionGone));
        let status = began.response.head.as_ref().map_or(0, |head| head.status);
        let is_refused = matches!(status, 400 | 405);
        if of.is_modern && is_refused && (form.is_err() || !open.version.is_modern()) {
            // It may speak otherwise than it did: the next message finds out.
            open::forget(call, view, std::iter::once(&*of.server.name));
        }
        if is_gone && of.is_modern && !is_reopened {
            // The gate keeps it, and its client knows of none: it is begun anew, once, since the server did nothing.
            is_reopened = true;
            reopen(call, view, &mut of, client).await?;
            continue;
        }
        let needs = match relay(call, &of, began, client).await {
            Ok(Some(needs)) => needs,
            Ok(None) => return Ok(()),
            Err(stop) => return Err(left(asker, &of, stop).await),
        };
        let answers = inputs::answers(call, &of, &needs, client).await?;
        let params = Message::read(&asked)
            .ok()
            .and_then(|message| message.params);
        let again = bridge::again(&asked, params.as_ref(), &answers, needs.state.as_deref());
        match again {
            Ok(again) => body = Bytes::from(again),
            Err(fault) => return Err(call.refuse(invalid(fault))),
        }
    }
    let says = format!(
        "the server {} asked its client {ROUNDS_MAX} times and did not answer",
        of.server.name
    );
    let refusal = Refusal::McpNotBridged { says: says.into() };
    Err(stream::refused(call, &of, refusal, client).await?)
}

/// A client without a session cancels a request by leaving; to a server with sessions that means nothing, and it is told.
async fn left(asker: super::ask::Asker<'_>, of: &Answering<'_>, stop: Stop) -> Stop {
    let config = Call::config(asker.view).map(|(config, _)| config);
    if let (Stop::Gone, Some(config)) = (&stop, config)
        && of.is_modern
        && !of.open.version.is_modern()
    {
        let cancelled = bridge::cancelled(&of.sent_id);
        open::tell(asker, config, (of.server, &of.open), cancelled).await;
    }
    stop
}

/// Begins anew what a caller without a session has open at a server.
async fn reopen<D: Downstream>(
    call: &mut Call,
    view: &WorkerSnapshot,
    of: &mut Answering<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let name = std::iter::once(&*of.server.name);
    open::forget(call, view, name);
    let place = Call::config(view).and_then(|(config, _)| {
        let mut servers = config.servers.iter();
        servers.position(|server| *server.name == *of.server.name)
    });
    let opened = open::of(call, view, of.rule, place, client).await?;
    let (session, failed) = open::as_session(opened);
    match (session.servers.into_iter().next(), failed) {
        (Some(open), _) => {
            of.has_session = open.id.is_some();
            of.open = open;
            Ok(())
        }
        (None, failed) => Err(call.failed(&failed.unwrap_or(Failed::Bug))),
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
        name: shortened(target),
    }
}

/// What a client named, as far as it is told and recorded.
fn shortened(target: &Target<'_>) -> Box<str> {
    target.name.chars().take(256).collect::<String>().into()
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
    let meant = sought(call, view, rule, session, target, client).await?;
    meant.map_err(|refusal| call.refuse(refusal))
}

/// The same; why it stands for nothing.
pub(super) async fn sought<'v, D: Downstream>(
    call: &Call,
    view: &'v WorkerSnapshot,
    rule: &McpRoute,
    session: &Session,
    target: &Target<'_>,
    client: &mut D,
) -> Result<Result<Meant<'v>, Refusal>, Stop> {
    let Some((config, _)) = Call::config(view) else {
        return Ok(Err(OUT_OF_ORDER));
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
                return Ok(meant(&server, &own).ok_or_else(|| not_found(target)));
            }
            Looked::Two(one, other) => {
                let (one, other) = (one.into(), other.into());
                let name = shortened(target);
                return Ok(Err(Refusal::McpAmbiguous { name, one, other }));
            }
            Looked::Nowhere => {}
        }
    }
    let meant = prefixed.and_then(|(server, own)| meant(server, own));
    Ok(meant.ok_or_else(|| not_found(target)))
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
    call: &Call,
    view: &WorkerSnapshot,
    rule: &McpRoute,
    session: &Session,
    target: &Target<'_>,
    only: Option<usize>,
    client: &mut D,
) -> Result<Looked, Stop> {
    let (kind, uri) = (target.kind, &*target.name);
    let prefix = Call::config(view).map_or(Prefix::Always, |(config, _)| config.prefix);
    let listed = lists::of(call, view, rule, session, kind, only, client).await?;
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
    let templates = lists::of(call, view, rule, session, Kind::Templates, only, client).await?;
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
    (id, level): (&[u8], Option<Level>),
    client: &mut D,
) -> Result<(), Stop> {
    admitted(call, arrived, "logging/setLevel", None, true, client).await?;
    let (worker, view, call_id) = (call.worker.clone(), Rc::clone(&call.view), call.id.clone());
    let rule = rule_of(call, &view)?;
    let Some((config, _)) = Call::config(&view) else {
        return Err(call.refuse(OUT_OF_ORDER));
    };
    let (asker, within) = (asker(&worker, &view, &call_id), within(call));
    let is_told_each_time = open.servers.iter().any(|of| of.version.is_modern());
    if let (true, Some(level)) = (is_told_each_time, level) {
        let mark = mcp::session::mark_of_session(session_id(arrived.head));
        config.held.set_level(mark, open.until_unix_s, level.name());
    }
    let servers = config.servers_of(rule).filter_map(|server| {
        let mut opens = open.servers.iter();
        let open = opens.find(|open| *open.name == *server.name)?;
        // One without sessions is told with each request.
        (open.abilities.has(Abilities::LOGGING) && !open.version.is_modern())
            .then_some((server, open))
    });
    let waits = servers.map(|(server, open)| {
        let text = arrived.text.clone();
        let wait: Boxed<'_, bool> = Box::pin(async move {
            asker
                .ask(server, Some(open), ("logging/setLevel", text), id, within)
                .await
                .is_ok()
        });
        wait
    });
    let _told = while_there(all(waits.collect()), &worker, client).await?;
    answer::message(call, client, &result(id, b"{}"), None).await
}
