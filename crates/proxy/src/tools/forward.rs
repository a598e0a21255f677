//! A request on its way to the one server that has what it names: as its client wrote it, or as a server of the other kind reads it.
//!
//! Invariant: the server is sent the very name of which it was asked whether it may be used.
//! Not here: what a name stands for (`requests`), what is changed for the other kind of versions (`mcp::bridge`), answers as they pass
//! (`stream`).

use std::rc::Rc;

use bytes::Bytes;
use mcp::bridge;
use mcp::catalog::Kind;
use mcp::envelope::{Message, Says as MessageSays};
use mcp::header;
use mcp::modern::{Level, is_named};
use mcp::reply::{edited, result, string};
use mcp::session::{OpenServer, Session, StateOf};
use mcp::target::Target;
use policy::mcp::{McpRoute, NotHeld, Server, URI_BYTES_MAX, plain_uri};
use policy::refusal::Refusal;
use wire::head::{Known, Method, RequestHead};

use super::ask::{Asker, Failed, Request, Says, form};
use super::filters::{Arguments, Does, may_see, may_use};
use super::listed::{as_listed, is_unlisted, place_of};
use super::requests::{self, Meant, meant, not_found, rule_of};
use super::rule::{rule, sealed_for};
use super::stream::{self, Answering, relay, takes_events};
use super::tasks::ShownAs;
use super::{
    Arrived, admitted, answer, api, asker, inputs, invalid, lists, modern, of_client, open,
    session_id, tasks,
};
use crate::call::{Call, OUT_OF_ORDER, Stop, while_there};
use crate::client::Downstream;
use crate::worker_snapshot::WorkerSnapshot;

/// A request that names something.
pub(super) struct Asked<'a> {
    pub(super) message: &'a Message<'a>,
    pub(super) method: &'a str,
    pub(super) target: &'a Target<'a>,
    /// Which log messages it wants, where it says so itself.
    pub(super) log_level: Option<Level>,
    /// Its client says that it knows tasks.
    pub(super) knows_tasks: bool,
    /// It is a call of the gate's own tool that calls what was found: nobody has made headers of the arguments.
    pub(super) is_found: bool,
    /// Its id, as written.
    pub(super) id: &'a [u8],
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
    let meant = meant(call, arrived, &view, rule, session, target, client).await?;
    let Meant { server, own } = &meant;
    let named = target.kind.whole(&server.name, own);
    call.facts.named = Some(named.as_str().into());
    let open = session
        .servers
        .iter()
        .find(|open| *open.name == *server.name);
    let Some(open) = open else {
        return Err(call.refuse(not_found(target)));
    };
    // Which of two the server takes nobody knows.
    let written = bridge::arguments(&arrived.text, asked.message.params.as_ref());
    let written = written.map_err(|fault| call.refuse(invalid(fault)))?;
    let arguments = Arguments::new(written.unwrap_or(b"{}"));
    let has_arguments = matches!(asked.method, "tools/call" | "prompts/get");
    let does = if has_arguments {
        Does::Uses(&arguments)
    } else {
        Does::Sees
    };
    let may_see = |call: &Call, does: Does<'_>| {
        may_see((call, arrived), rule, server, (target.kind, own), does)
    };
    if !may_see(call, does) {
        // What the caller is shown is refused for its arguments, and is there all the same.
        if has_arguments && may_see(call, Does::Sees) {
            call.facts.reason = arguments.why();
            return Err(call.refuse(Refusal::NotAuthorized));
        }
        return Err(call.refuse(not_found(target)));
    }
    if is_unlisted(call, &view, (target.kind, server, own), open) {
        requests::unlisted(call, Some(server), target);
    }
    let plain = plain_uri(own).filter(|_| target.kind.has_uri());
    if plain.is_some_and(|plain| !may_use(call, &view, arrived, target.kind, server, &plain)) {
        return Err(call.refuse(Refusal::NotAuthorized));
    }
    // Whoever may not use a thing may not ask how it is completed either.
    let used_by = target.kind.used_by();
    admitted(call, arrived, used_by, Some(&named), true, client).await?;
    if target.kind == Kind::Tools {
        as_listed(call, &view, (rule, session), (&meant, target), client).await?;
    }
    if let Some(described) = &server.described {
        let of = (*server, described);
        return api::used(call, of, own, (asked, written), client).await;
    }
    if !call.facts.is_modern && open.version.is_modern() && is_held(asked.method) {
        return hold(call, arrived, session, asked, &meant, client).await;
    }
    let state = state_of(call, &view, server, (asked.method, &named));
    let task = if tasks::may_make(asked, call.facts.is_modern) && open.version.is_modern() {
        tasks::made_by(call, &view, server, own)
    } else {
        ShownAs::None
    };
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
        (asked, written),
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
        task,
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
    let (of, name) = (of_client(call, arrived.head, session), &meant.server.name);
    let held = if asked.method == "resources/unsubscribe" {
        config.held.unsubscribe(&of.mark, name, &meant.own);
        Ok(())
    } else {
        config.held.subscribe(of, name, &meant.own)
    };
    if let Err(why) = held {
        let says = match why {
            NotHeld::TooMany => "the session listens to as many resources as it may".to_owned(),
            NotHeld::TooLong => {
                format!("a uri of more than {URI_BYTES_MAX} bytes is not listened to")
            }
        };
        return Err(call.refuse(Refusal::McpNotBridged { says: says.into() }));
    }
    answer::message(call, client, &result(asked.id, b"{}"), None).await
}

/// What a server's `requestState` is bound to.
fn state_of(
    call: &Call,
    view: &WorkerSnapshot,
    server: &Server,
    (method, named): (&str, &str),
) -> Option<StateOf> {
    let (record, (_, tools)) = (call.record()?, Call::config(view)?);
    let (nth, ..) = rule(record, view).ok()?;
    let who = sealed_for(call, record, view, Some(server.backend));
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
    if let MessageSays::Request { at, .. } = &asked.message.says
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

/// The headers of arguments: those that a client without a session sends, which its server compares with the body, or the gate where that has
/// sessions; for a client with a session the gate makes them.
async fn headers_for<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    (session, open): (&Session, &OpenServer),
    (asked, arguments): (&Asked<'_>, Option<&[u8]>),
    (view, rule, meant): (&WorkerSnapshot, &McpRoute, &Meant<'_>),
    client: &mut D,
) -> Result<Vec<(String, String)>, Stop> {
    let has_made = call.facts.is_modern && !asked.is_found;
    if asked.method != "tools/call" || !has_made && !open.version.is_modern() {
        return Ok(Vec::new());
    }
    let sent = if has_made {
        let sent = params_of(call, arrived.head)?;
        if open.version.is_modern() {
            return Ok(sent);
        }
        sent
    } else {
        Vec::new()
    };
    let place = place_of(view, meant.server);
    let listed = lists::of(call, view, rule, session, Kind::Tools, place, client).await?;
    let sources = listed.iter().map(lists::Listed::source);
    let mut tools = sources.filter_map(|of| of.catalog?.find(&meant.own));
    let tool = tools.next().map(mcp::catalog::Item::raw);
    let arguments = arguments.unwrap_or(b"{}");
    if !has_made {
        return Ok(tool.map_or_else(Vec::new, |tool| header::params(tool, arguments)));
    }
    // A server with sessions knows of no such headers: the gate compares them in its place.
    match tool.and_then(|tool| header::mismatch(tool, arguments, &sent)) {
        Some(says) => {
            let says = format!("Header mismatch: {says}");
            Err(call.refuse(Refusal::McpHeader { says: says.into() }))
        }
        None => Ok(Vec::new()),
    }
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

/// Sends it, and passes the answer on.
pub(super) async fn send<D: Downstream>(
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
        let form = form(&began, of.server, of.has_session);
        let is_gone = matches!(form, Err(Failed::SessionGone));
        let status = began.response.head.as_ref().map_or(0, |head| head.status);
        let is_refused = matches!(status, 400 | 405);
        if of.is_modern && is_refused && (form.is_err() || !open.version.is_modern()) {
            // It may speak otherwise than it did: the next message finds out.
            open::forget(call, view, std::iter::once(&open));
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
async fn left(asker: Asker<'_>, of: &Answering<'_>, stop: Stop) -> Stop {
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
    open::forget(call, view, std::iter::once(&of.open));
    let place = place_of(view, of.server);
    let opened = open::of(call, view, of.rule, place, client).await?;
    let (session, failed) = open::as_session(opened);
    match (session.servers.into_iter().next(), failed) {
        (Some(open), _) if open.version.is_modern() != of.open.version.is_modern() => {
            // What it is sent is written for the version that it spoke. The next request is written for this one.
            let name = &of.server.name;
            let says = format!(
                "the server {name} began anew and speaks another version: send the request again"
            );
            Err(call.refuse(Refusal::McpNotBridged { says: says.into() }))
        }
        (Some(open), _) => {
            of.has_session = open.id.is_some();
            of.open = open;
            Ok(())
        }
        (None, failed) => Err(call.failed(&failed.unwrap_or(Failed::Bug))),
    }
}
