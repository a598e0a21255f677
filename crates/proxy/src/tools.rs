//! Servers of tools behind one address: one message of the Model Context Protocol, from its head to its record.
//!
//! Who calls, what is allowed, what is left and what is recorded is `policy::front`'s, in its order. A client's session is sealed into
//! its id, so that this gate keeps nothing of it; each server is spoken to in the session that it opened for that client.
//! Invariant: what a list does not show cannot be used either: each use asks anew, of the name that goes to the server.
//! Not here: messages and names (`mcp`), who may use what (`policy::mcp`).

mod again;
mod answer;
mod api;
mod ask;
mod body;
mod failed;
mod filters;
mod forward;
mod inputs;
mod join;
mod listed;
mod listen;
mod lists;
mod metadata;
mod modern;
mod open;
mod own_tokens;
mod read;
mod requests;
mod rule;
mod search;
mod session;
mod standing;
mod still;
mod stream;
mod tasks;

use std::rc::Rc;
use std::time::Duration;

use mcp::catalog::Kind;
use mcp::envelope::{Fault, Message, Says};
use mcp::modern::{Client, Meta, once};
use mcp::session::{NoSession, Session};
use mcp::version::Version;
use policy::front::Http;
use policy::mcp::{OfClient, PATH, Server};
use policy::operation::Operation;
use policy::refusal::Refusal;
use wire::head::{Known, Method, RequestHead};

pub use self::ask::TOOL_CALLER;
pub(crate) use self::ask::{Asker, Began, Failed, Said};
pub(crate) use self::read::next;
use self::rule::{is_for_another_path, rule, sealed_for};
use crate::call::{Call, OUT_OF_ORDER, OnBehalf, Stop, authorized_outside, identify};
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

/// The methods that records name.
const METHODS: [&str; 22] = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
    "server/discover",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

/// What came with a message.
struct Arrived<'a> {
    head: &'a RequestHead,
    who: Http<'a>,
    /// The whole text of it.
    text: Vec<u8>,
}

/// Serves one request to the path of servers of tools.
pub(crate) async fn serve<D: Downstream>(
    worker: &Rc<Worker>,
    view: Rc<WorkerSnapshot>,
    (head, length): (&RequestHead, Option<u64>),
    page: Option<Box<str>>,
    client: &mut D,
    deadline: &mut Deadline,
) {
    let peer = client.peer();
    let who = Http { head, peer: &peer };
    let mut call = Call::begin(worker, view, page, (head, Operation::Mcp), &who);
    let mut id = b"null".to_vec();
    let served = serve_call(&mut call, (head, length), who, &mut id, client, deadline).await;
    deadline.clear();
    match served {
        Ok(()) | Err(Stop::Told) => call.completed(),
        Err(Stop::Refused) => {
            answer::refused(&mut call, client, &id).await;
            call.completed();
        }
        // Its end is that of what is dropped.
        Err(Stop::Gone) => client.abandon(),
    }
}

async fn serve_call<D: Downstream>(
    call: &mut Call,
    (head, length): (&RequestHead, Option<u64>),
    who: Http<'_>,
    id: &mut Vec<u8>,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<(), Stop> {
    let is_metadata =
        Call::config(&call.view).is_some_and(|(config, _)| config.resource(head.path()).is_some());
    if is_metadata {
        return metadata::serve(call, head, client).await;
    }
    identify(call, &who, client).await?;
    let view = Rc::clone(&call.view);
    let is_for_another = |record| is_for_another_path(record, &view);
    if call.record().is_some_and(is_for_another) {
        let says = "its token is for another path of `mcp`, by its `aud`";
        call.facts.reason = Some(says.into());
        return Err(call.refuse(Refusal::CredentialInvalid));
    }
    if let Some(refusal) = call.record().and_then(|record| match rule(record, &view) {
        // A key for some models alone is for nothing else.
        Ok(_) if record.caller.as_ref().is_some_and(|c| !c.models.is_empty()) => {
            Some(Refusal::NotAuthorized)
        }
        Ok(_) => None,
        Err(refusal) => Some(refusal),
    }) {
        return Err(call.refuse(refusal));
    }
    own_tokens::brought(call, head)?;
    let chosen = call.record().and_then(|record| rule(record, &view).ok());
    let chosen = chosen.map(|(.., chosen)| chosen);
    authorized_outside(call, &who, chosen, None, client).await?;
    match head.method {
        Method::Post => {
            let text = body::read(call, head, length, client, deadline).await?;
            let arrived = Arrived { head, who, text };
            posted(call, &arrived, id, client).await
        }
        Method::Delete => {
            let arrived = Arrived {
                head,
                who,
                text: Vec::new(),
            };
            session::end(call, &arrived, client).await
        }
        Method::Get => {
            let arrived = Arrived {
                head,
                who,
                text: Vec::new(),
            };
            standing::serve(call, &arrived, client).await
        }
        _ => {
            let allow = "GET, POST, DELETE";
            Err(call.refuse(Refusal::Method { allow }))
        }
    }
}

/// One message.
async fn posted<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    id: &mut Vec<u8>,
    client: &mut D,
) -> Result<(), Stop> {
    let message = match Message::read(&arrived.text) {
        Ok(message) => message,
        Err(fault) => return Err(call.refuse(invalid(fault))),
    };
    if let Says::Request { id: asked, .. } = &message.says {
        id.clear();
        id.extend_from_slice(asked);
    }
    if let Says::Request { method, .. } | Says::Notification { method } = &message.says {
        call.facts.method = known(method);
    }
    let meta = match Meta::read(&arrived.text, message.params.as_ref()) {
        Ok(meta) => meta,
        Err(fault) => return Err(call.refuse(invalid(fault))),
    };
    if modern::is_of(&meta, arrived.head, &message.says) {
        call.facts.is_modern = true;
        return modern::serve(call, arrived, &message, &meta, id, client).await;
    }
    match &message.says {
        Says::Request { method, .. } => {
            requests::serve(call, arrived, &message, method, id, client).await
        }
        Says::Notification { method } => session::notified(call, arrived, method, client).await,
        Says::Response { .. } => session::answered(call, arrived, client).await,
    }
}

fn known(method: &str) -> &'static str {
    let mut known = METHODS.into_iter();
    known.find(|known| *known == method).unwrap_or_default()
}

fn invalid(fault: Fault) -> Refusal {
    Refusal::McpMessage {
        says: fault.to_string().into(),
        number: fault.code(),
    }
}

/// The id of a session that was opened.
fn session_id(head: &RequestHead) -> &[u8] {
    let id = head.fields.only(Known::McpSessionId);
    id.ok().flatten().unwrap_or_default()
}

/// The client of a session, as far as what it says once is held for it.
fn of_client(call: &Call, head: &RequestHead, session: &Session) -> OfClient {
    OfClient {
        mark: mcp::session::mark_of_session(session_id(head)),
        until_unix_s: session.until_unix_s,
        unix_s: unix_s(call),
    }
}

fn unix_s(call: &Call) -> u64 {
    call.worker.clock.wall_ms(call.worker.now()) / 1000
}

/// Whether a version that is said several times comes of a client that is known to do that.
fn is_mixed(head: &RequestHead) -> bool {
    let client = Client::of(None, head.fields.get(Known::UserAgent));
    let mut said = head.fields.of(Known::McpProtocolVersion);
    let is_known = |said: &[u8]| {
        let said = once(said).and_then(|said| std::str::from_utf8(said).ok());
        said.is_some_and(|said| Version::of_server(said).is_some())
    };
    client.mixes && said.all(is_known)
}

/// The session that a message is of, for its caller and rule; and a version that it may be in.
fn session_of(call: &mut Call, head: &RequestHead) -> Result<Session, Stop> {
    let opened = {
        let version = head.fields.only(Known::McpProtocolVersion);
        let version = version.map(|said| said.map(|said| std::str::from_utf8(said).ok()));
        match version {
            Ok(None) => {}
            Ok(Some(Some(said))) if Version::of_server(said).is_some() => {}
            _ if is_mixed(head) => {}
            _ => return Err(call.refuse(Refusal::McpVersion)),
        }
        let Ok(Some(id)) = head.fields.only(Known::McpSessionId) else {
            return Err(call.refuse(Refusal::McpSessionMissing));
        };
        let now = call.worker.now();
        let unix_s = call.worker.clock.wall_ms(now) / 1000;
        let (Some(record), Some((config, tools))) = (call.record(), Call::config(&call.view))
        else {
            return Err(call.refuse(OUT_OF_ORDER));
        };
        let who = sealed_for(call, record, &call.view, None);
        let place = rule(record, &call.view).ok();
        let place = place.and_then(|(nth, ..)| tools.places.get(nth));
        let opened = place.map(|place| tools.sealer.open(id, place, &who, unix_s));
        let is_ended = |_: &Session| {
            config
                .ended
                .has(unix_s, || mcp::session::mark_of_session(id))
        };
        match opened {
            Some(Ok(session)) if is_ended(&session) => Some(Err(NoSession::Ended)),
            opened => opened,
        }
    };
    match opened {
        Some(Ok(session)) => Ok(session),
        Some(Err(none)) => {
            call.facts.reason = Some(none.reason().into());
            Err(call.refuse(Refusal::McpSessionNotFound))
        }
        None => Err(call.refuse(OUT_OF_ORDER)),
    }
}

/// Limits let it pass, before any server is asked for what it names: it counts, whatever becomes of it.
async fn counted<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let view = Rc::clone(&call.view);
    match call.record().map(|record| rule(record, &view)) {
        Some(Ok((.., chosen))) => {
            authorized_outside(call, &arrived.who, Some(chosen), Some(None), client).await?;
            call.count(chosen)
        }
        Some(Err(refusal)) => Err(call.refuse(refusal)),
        None => Err(Stop::Gone),
    }
}

/// Rules and limits let it pass: `named` is the whole name of what it is about.
async fn admitted<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    method: &str,
    named: Option<&str>,
    counts: bool,
    client: &mut D,
) -> Result<(), Stop> {
    let view = Rc::clone(&call.view);
    let snapshot = view.snapshot();
    let chosen = call.record().map(|record| rule(record, &view));
    if !call.is_counted() {
        let of = chosen.as_ref().and_then(|chosen| chosen.as_ref().ok());
        let of = of.map(|(.., chosen)| *chosen);
        authorized_outside(call, &arrived.who, of, Some(None), client).await?;
    }
    let chosen = match chosen {
        Some(Ok((_, rule, chosen))) => {
            let workload = call.record().and_then(|record| record.workload);
            match (workload, named) {
                (Some(workload), Some(tool)) if method == Kind::Tools.used_by() => {
                    policy::route::of_tool(snapshot, workload, (rule, chosen), tool)
                }
                _ => chosen,
            }
        }
        Some(Err(refusal)) => return Err(call.refuse(refusal)),
        None => return Err(Stop::Gone),
    };
    let path = call.record().map_or(0, |record| record.mcp_path);
    let path = Call::config(&view).map_or(PATH, |(config, _)| config.path_at(path));
    let asked = policy::front::Call {
        method,
        path: named.unwrap_or(path),
        operation: Operation::Mcp.as_str(),
        source: snapshot
            .clients
            .address(arrived.who.peer.address, arrived.head),
        route: Some(chosen.route),
        model: None,
    };
    call.admit(&asked, chosen, counts)
}

/// A server gave no answer: whoever looks at the gate is told so. One that has its session no more answers, one that no token was given for was
/// not asked, and what comes of a token of its caller's own says nothing of what the gate's would.
fn silent(asker: Asker<'_>, config: &policy::mcp::Mcp, server: &Server, failed: &Failed) {
    let is_own = asker.own.iter().any(|own| own.backend == server.backend);
    if is_own || failed.is_callers() {
        return;
    }
    if matches!(
        failed,
        Failed::SessionGone | Failed::Exchange | Failed::NoRoom | Failed::Bug
    ) {
        return;
    }
    let says = failed
        .reason()
        .unwrap_or_else(|| failed.refusal().to_string().into());
    let unix_ms = asker.worker.clock.wall_ms(asker.worker.now());
    config.known.asked(&server.at, unix_ms, Some(says));
}

/// How long one server may take where several are asked.
fn within(call: &Call) -> Duration {
    Call::config(&call.view).map_or(Duration::ZERO, |(config, _)| config.within)
}

/// Asks on behalf of a message.
fn asker<'a>(worker: &'a Rc<Worker>, view: &'a WorkerSnapshot, of: &'a OnBehalf) -> Asker<'a> {
    Asker {
        worker,
        view,
        id: of,
        own: &of.own,
        missing: &of.missing,
        token: of.token.as_ref(),
        caller: None,
    }
}
