//! A session's life: `initialize` at all servers of a rule, notifications, answers to servers, and its end.
//!
//! Invariant: a server that is dead, slow or speaks nonsense costs the others no more than the time that one may take; a client is told
//! which did not answer. A session that its client never comes to know of is ended at the servers.
//! Not here: what a session's id holds (`mcp::session`), requests within it (`requests`).

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use mcp::client::Can;
use mcp::events::{answer_to, progress_to};
use mcp::handshake::{Answered, answered as read_answer, asked, told};
use mcp::session::{NONCE_BYTES, OpenServer, Session};
use policy::attempt::Failure;
use policy::mcp::Server;
use policy::refusal::Refusal;
use wire::head::Method;

use mcp::envelope::{INVALID_REQUEST, Message, Says};

use super::ask::{self, Asker, Failed, Request};
use super::join::{Boxed, all};
use super::read::{request, result};
use super::rule::{rule, sealed_for};
use super::{Arrived, admitted, answer, api, asker, invalid, open, session_id, session_of, within};
use crate::call::{Call, Stop, while_there};
use crate::client::Downstream;
use crate::worker_snapshot::WorkerSnapshot;

/// Notifications that go to every server of a session: each knows by their ids whether they are its.
const TO_ALL: [&str; 3] = [
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/roots/list_changed",
];

/// What a server answered, and what it calls the session.
type Opened = Result<(Answered, Option<Box<str>>), Failed>;

/// Opens a session with every server of the caller's rule.
pub(super) async fn begin<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    message: &Message<'_>,
    id: &[u8],
    client: &mut D,
) -> Result<(), Stop> {
    let asked = match asked(&arrived.text, message.params.as_ref()) {
        Ok(asked) => asked,
        Err(fault) => return Err(call.refuse(invalid(fault))),
    };
    admitted(call, arrived, "initialize", None, true, client).await?;
    let (worker, view, call_id) = (call.worker.clone(), Rc::clone(&call.view), call.id.clone());
    let caller = open::caller(call, &view);
    let asker = Asker {
        caller: caller.as_deref(),
        ..asker(&worker, &view, &call_id)
    };
    let (servers, params) = (servers_of(call, &view), &asked.params);
    let open = RefCell::new(Vec::new());
    let opening = servers.iter().map(|server| {
        let open = &open;
        let wait: Boxed<'_, _> = Box::pin(async move {
            let opened = opened(asker, server, params).await;
            if let Ok((answered, id)) = &opened {
                open.borrow_mut()
                    .push(open_server(server, answered, id.as_deref()));
            }
            opened
        });
        wait
    });
    let opened: Vec<Opened> = match while_there(all(opening.collect()), &worker, client).await {
        Ok(opened) => opened,
        Err(gone) => {
            give_back(call, open.take());
            return Err(gone);
        }
    };
    call.facts.attempts = u32::try_from(opened.len()).unwrap_or(u32::MAX);
    let mut session = Session {
        until_unix_s: 0,
        version: asked.version,
        can: Can::of_initialize(&arrived.text, message.params.as_ref()),
        servers: Vec::new(),
    };
    let (mut known, mut failed) = (Vec::new(), None);
    let config = Call::config(&view).map(|(config, _)| config);
    for (server, opened) in servers.iter().zip(opened) {
        match opened {
            Ok((answered, id)) => {
                if let Some(config) = config.filter(|_| !asker.is_as_caller(server.backend)) {
                    let unix_ms = worker.clock.wall_ms(worker.now());
                    config.known.asked(&server.at, unix_ms, None);
                }
                session
                    .servers
                    .push(open_server(server, &answered, id.as_deref()));
                known.push((&*server.name, Some(as_told(server, answered))));
            }
            Err(why) => {
                if let Some(config) = config {
                    super::silent(asker, config, server, &why);
                }
                failed = Some(why);
                known.push((&*server.name, None));
            }
        }
    }
    if session.servers.is_empty() {
        let failed = failed.unwrap_or(Failed::Upstream(Failure::Exhausted));
        return Err(call.failed(&failed));
    }
    let sealed = match sealed(call, session) {
        Ok(sealed) => sealed,
        Err(failed) => {
            give_back(call, open.take());
            return Err(call.failed(&failed));
        }
    };
    let told = mcp::reply::result(id, &told(asked.version, &known));
    let sent = answer::message(call, client, &told, Some(&sealed)).await;
    if sent.is_err() {
        give_back(call, open.take());
    }
    sent
}

/// What clients are told of a server's answer.
pub(super) fn as_told(server: &Server, mut answered: Answered) -> Answered {
    if !server.tells_instructions() {
        answered.instructions = None;
    }
    answered
}

fn open_server(server: &Server, answered: &Answered, id: Option<&str>) -> OpenServer {
    OpenServer {
        name: (&*server.name).into(),
        version: answered.version,
        abilities: answered.abilities,
        id: id.map(Into::into),
    }
}

/// Ends at their servers sessions that no client has. Nobody waits for that.
pub(super) fn give_back(call: &Call, open: Vec<OpenServer>) {
    let (worker, view, id) = (call.worker.clone(), Rc::clone(&call.view), call.id.clone());
    let within = within(call);
    tokio::task::spawn_local(async move {
        let asker = asker(&worker, &view, &id);
        let Some((config, _)) = Call::config(&view) else {
            return;
        };
        let servers: Vec<&Server> = config.servers.iter().collect();
        let ends = sending(
            asker,
            (&servers, &open),
            Method::Delete,
            &Bytes::new(),
            within,
        );
        all(ends).await;
    });
}

/// Opens a session with a server; one that has none is asked what it offers.
async fn opened(asker: Asker<'_>, server: &Server, params: &[u8]) -> Opened {
    if let Some(described) = server.described.as_deref() {
        return Ok((api::answered(described)?, None));
    }
    let Some((config, _)) = Call::config(asker.view) else {
        return Err(Failed::Bug);
    };
    let message = ("initialize", request(b"0", "initialize", params));
    let heard = asker.ask(server, None, message, b"0", config.within).await;
    let why = match heard {
        Ok(heard) => match result(&heard.message).and_then(read_answer) {
            Some(answered) => return Ok((answered, heard.session)),
            None => Failed::Unusable(mcp::events::Unusable::NoMessage),
        },
        Err(why @ (Failed::Upstream(Failure::Status(_)) | Failed::Unusable(_))) => why,
        Err(why) => return Err(why),
    };
    match open::modern(asker, config, server).await {
        Ok(Some(answered)) => Ok((answered, None)),
        Ok(None) | Err(_) => Err(why),
    }
}

fn servers_of<'v>(call: &Call, view: &'v WorkerSnapshot) -> Vec<&'v Server> {
    let (Some(record), Some((config, _))) = (call.record(), Call::config(view)) else {
        return Vec::new();
    };
    rule(record, view).map_or_else(
        |_| Vec::new(),
        |(_, rule, _)| config.servers_of(rule).collect(),
    )
}

/// The session's id.
fn sealed(call: &Call, session: Session) -> Result<String, Failed> {
    let (Some(record), Some((config, tools))) = (call.record(), Call::config(&call.view)) else {
        return Err(Failed::Bug);
    };
    let nth = rule(record, &call.view).map(|(nth, ..)| nth);
    let place = nth.ok().and_then(|nth| tools.places.get(nth));
    let place = place.ok_or(Failed::Bug)?;
    let unix_s = call.worker.clock.wall_ms(call.worker.now()) / 1000;
    let session = Session {
        until_unix_s: unix_s.saturating_add(config.session.as_secs()),
        ..session
    };
    let mut nonce = [0; NONCE_BYTES];
    let chance = rustls::crypto::ring::default_provider().secure_random;
    chance.fill(&mut nonce).map_err(|_| Failed::Bug)?;
    let who = sealed_for(call, record, &call.view, None);
    let sealed = tools.sealer.seal(&session, place, &who, nonce);
    sealed.ok_or(Failed::IdTooLong)
}

/// A client tells what nobody answers.
pub(super) async fn notified<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    method: &str,
    client: &mut D,
) -> Result<(), Stop> {
    let mut session = session_of(call, arrived.head)?;
    admitted(call, arrived, method, None, false, client).await?;
    if let Some((server, body)) = progress_of(method, &arrived.text) {
        session.servers.retain(|open| *open.name == *server);
        to_all(call, &session, Method::Post, &Bytes::from(body), client).await?;
    } else if TO_ALL.contains(&method) {
        let body = Bytes::from(arrived.text.clone());
        to_all(call, &session, Method::Post, &body, client).await?;
    }
    answer::taken(call, client, 202).await
}

/// The server whose request it tells the progress of, and what that server is told.
fn progress_of(method: &str, text: &[u8]) -> Option<(String, Vec<u8>)> {
    (method == "notifications/progress").then(|| progress_to(text))?
}

/// A client answers what a server asked.
pub(super) async fn answered<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let mut session = session_of(call, arrived.head)?;
    let Some((server, body)) = answer_to(&arrived.text) else {
        let says = "it answers no request of a server".into();
        return Err(call.refuse(Refusal::McpMessage {
            says,
            number: INVALID_REQUEST,
        }));
    };
    session.servers.retain(|open| *open.name == *server);
    admitted(call, arrived, "response", None, false, client).await?;
    if session.servers.iter().any(|open| open.version.is_modern()) {
        return heard(call, arrived, &body, client).await;
    }
    to_all(call, &session, Method::Post, &Bytes::from(body), client).await?;
    answer::taken(call, client, 202).await
}

/// A client answers what a server without sessions wants to know before it answers a call: that call waits for it.
async fn heard<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    answer: &[u8],
    client: &mut D,
) -> Result<(), Stop> {
    let view = call.view.clone();
    let number = Message::read(answer)
        .ok()
        .and_then(|message| match message.says {
            Says::Response { id, .. } => std::str::from_utf8(id).ok()?.parse().ok(),
            Says::Request { .. } | Says::Notification { .. } => None,
        });
    let is_waited_for =
        Call::config(&view)
            .zip(number)
            .map_or(Ok(false), |((config, _), number)| {
                let mark = mcp::session::mark_of_session(session_id(arrived.head));
                config.waiting.answer(number, mark, answer.to_vec())
            });
    let is_waited_for = is_waited_for.map_err(|full| {
        let says = full.to_string().into();
        call.refuse(Refusal::McpNoRoom { says })
    })?;
    if !is_waited_for {
        return Err(call.refuse(Refusal::McpMessage {
            says: "no call of this session waits for it at this gateway".into(),
            number: INVALID_REQUEST,
        }));
    }
    answer::taken(call, client, 202).await
}

/// A client ends its session.
pub(super) async fn end<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let session = session_of(call, arrived.head)?;
    admitted(call, arrived, "DELETE", None, false, client).await?;
    if let Some((config, _)) = Call::config(&call.view) {
        let unix_s = call.worker.clock.wall_ms(call.worker.now()) / 1000;
        let mark = mcp::session::mark_of_session(session_id(arrived.head));
        config.ended.end(mark, session.until_unix_s, unix_s);
        config.held.forget(&mark);
    }
    to_all(call, &session, Method::Delete, &Bytes::new(), client).await?;
    answer::taken(call, client, 200).await
}

/// Sends the same to each server of a session, and waits until each has it, as long as one may take: what comes next must not
/// overtake it.
async fn to_all<D: Downstream>(
    call: &mut Call,
    session: &Session,
    method: Method,
    body: &Bytes,
    client: &mut D,
) -> Result<(), Stop> {
    let (worker, view, id) = (call.worker.clone(), Rc::clone(&call.view), call.id.clone());
    let (asker, within) = (asker(&worker, &view, &id), within(call));
    let servers = servers_of(call, &view);
    let waits = sending(asker, (&servers, &session.servers), method, body, within);
    call.facts.attempts = u32::try_from(waits.len()).unwrap_or(u32::MAX);
    while_there(all(waits), &worker, client).await?;
    Ok(())
}

/// What sends the same to each server with a session there.
fn sending<'a>(
    asker: Asker<'a>,
    (servers, open): (&'a [&'a Server], &'a [OpenServer]),
    method: Method,
    body: &Bytes,
    within: Duration,
) -> Vec<Boxed<'a, ()>> {
    let open = open.iter().filter_map(|open| {
        let server = servers.iter().find(|server| *server.name == *open.name)?;
        // Where there is no session there is none to end, and nobody who is told anything outside requests.
        let has_one = method != Method::Delete || open.id.is_some();
        (has_one && !open.version.is_modern()).then_some((*server, open))
    });
    let waits = open.map(|(server, open)| {
        let request = Request {
            method,
            open: Some(open),
            says: ask::Says::default(),
            body: body.clone(),
            last_event: None,
            within: Some(within),
        };
        let wait: Boxed<'a, ()> = Box::pin(async move {
            // What became of it is in the log of attempts.
            drop(asker.send(server, request).await);
        });
        wait
    });
    waits.collect()
}
