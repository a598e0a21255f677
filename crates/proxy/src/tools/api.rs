//! A server of tools that is an HTTP API: its tools are those of its description, and a call of one is a request to it.
//!
//! Invariant: it is asked as any other server is: the same filters, rules and limits before, the same connections, credential and bounds.
//! Not here: what a call asks and what an answer means (`policy::mcp::Described`), sending (`ask`).

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp::bridge;
use mcp::catalog::{Catalog, Kind, NoList};
use mcp::events::Unusable;
use mcp::handshake::{Abilities, Answered};
use mcp::reply;
use mcp::version::Version;
use policy::attempt::Failure;
use policy::credential::UpstreamAuth;
use policy::mcp::{Described, HttpAnswer, HttpCall, NoCall, Server};
use wire::head::{Known, Method};

use super::answer::Waiting;
use super::ask::{Asker, Began, Failed, Said};
use super::forward::Asked;
use super::read::{ANSWER_BYTES_MAX, whole};
use super::requests::{not_found, unlisted};
use super::{answer, asker};
use crate::call::{Call, Stop, while_there};
use crate::client::Downstream;
use crate::worker_snapshot::WorkerSnapshot;

/// What it answers to whoever begins: that it has tools, and keeps no session.
///
/// # Errors
/// Nothing is known of it yet.
pub(super) fn answered(described: &dyn Described) -> Result<Answered, Failed> {
    if described.list().is_none() {
        return Err(Failed::Upstream(Failure::Exhausted));
    }
    Ok(Answered {
        version: Version::V20260728,
        abilities: Abilities::TOOLS,
        instructions: None,
    })
}

/// What it has of a kind.
pub(super) fn catalog(described: &dyn Described, kind: Kind) -> Result<Catalog, Failed> {
    let mut catalog = Catalog::default();
    if kind == Kind::Tools {
        let list = described.list();
        let list = list.ok_or(Failed::Upstream(Failure::Exhausted))?;
        let added = catalog.add_page(kind, &list);
        added.map_err(|NoList| Failed::TooLong)?;
    }
    Ok(catalog)
}

/// A request to it on its way.
struct ToApi<'a> {
    call: &'a HttpCall,
    body: Option<Bytes>,
}

impl Said for ToApi<'_> {
    fn method(&self) -> Method {
        self.call.method
    }

    fn path(&self) -> &str {
        &self.call.path
    }

    fn query(&self) -> &str {
        &self.call.query
    }

    fn body(&self) -> Option<&Bytes> {
        self.body.as_ref()
    }

    fn within(&self) -> Option<Duration> {
        None
    }

    fn fields(&self, put: &mut dyn FnMut(&[u8], &[u8])) {
        put(b"accept", b"application/json, text/*;q=0.9, */*;q=0.5");
        if let Some((kind, _)) = &self.call.body {
            put(b"content-type", kind.as_bytes());
        }
        for (name, value) in &self.call.headers {
            put(name.as_bytes(), value.as_bytes());
        }
    }
}

/// A use of one of its tools, by its own name.
pub(super) async fn used<D: Downstream>(
    call: &mut Call,
    (server, described): (&Server, &Arc<dyn Described>),
    own: &str,
    (asked, arguments): (&Asked<'_>, Option<&[u8]>),
    client: &mut D,
) -> Result<(), Stop> {
    let meant = match asked.target.kind {
        Kind::Tools => described.call(own, arguments),
        Kind::Prompts | Kind::Resources | Kind::Templates => Err(NoCall::NoTool),
    };
    if meant == Err(NoCall::NoTool) {
        unlisted(call, Some(server), asked.target);
    }
    let told = Told {
        id: asked.id.to_vec(),
        is_modern: call.facts.is_modern,
    };
    let message = match meant {
        Ok(meant) => sent(call, (server, described), &meant, told, client).await?,
        Err(NoCall::Arguments(says)) => {
            call.facts.reason = Some(says.as_str().into());
            let message = told.message(&described.misused(&says));
            message.map_err(|failed| call.failed(&failed))?
        }
        Err(NoCall::NoTool) => return Err(call.refuse(not_found(asked.target))),
    };
    answer::message(call, client, &message, None).await
}

/// How a client is told a result.
struct Told {
    /// Its request's id, as written.
    id: Vec<u8>,
    is_modern: bool,
}

impl Told {
    /// The message.
    fn message(self, result: &[u8]) -> Result<Vec<u8>, Failed> {
        let message = reply::result(&self.id, result);
        let told = match self.is_modern {
            true => bridge::told_modern(&message, false, false, |_| None, bridge::TaskId::None),
            false => Ok(Cow::Borrowed(&message[..])),
        };
        let told = match told.map_err(Failed::Unusable)? {
            Cow::Borrowed(_) => message,
            Cow::Owned(told) => told,
        };
        match told.len() <= ANSWER_BYTES_MAX {
            true => Ok(told),
            false => Err(Failed::TooLong),
        }
    }
}

/// Asks, and gives the message of the result.
async fn sent<D: Downstream>(
    call: &mut Call,
    (server, described): (&Server, &Arc<dyn Described>),
    meant: &HttpCall,
    told: Told,
    client: &mut D,
) -> Result<Vec<u8>, Stop> {
    let (worker, view, id) = (call.worker.clone(), Rc::clone(&call.view), call.id.clone());
    let snapshot = view.snapshot();
    let backend = snapshot.backend(server.backend);
    let endpoint = backend.and_then(|backend| backend.endpoints.first().copied());
    call.facts.endpoint = endpoint;
    let endpoint = endpoint.and_then(|id| snapshot.endpoint(id));
    let has_credential = endpoint.is_some_and(|of| of.auth != UpstreamAuth::None);
    let asker = asker(&worker, &view, &id);
    let body = meant.body.as_ref();
    let mut body = body.map(|(_, body)| Bytes::copy_from_slice(body));
    if body.is_none() && !matches!(meant.method, Method::Get | Method::Delete | Method::Head) {
        body = Some(Bytes::new());
    }
    call.facts.attempts += 1;
    let began_at = worker.now();
    let sending = asker.send(server, ToApi { call: meant, body });
    let began = while_there(sending, &worker, client).await?;
    call.facts
        .upstream
        .get_or_insert(worker.now().since(began_at));
    let began = began.map_err(|failed| call.failed(&failed))?;
    let result = answered_with((asker, &view), described, began, has_credential, told);
    let result = while_there(result, &worker, client).await?;
    result.map_err(|failed| call.failed(&failed))
}

/// Up to so many bytes are made a result on the worker; more would hold up others.
const ON_WORKER_BYTES: usize = 64 << 10;

/// What an answer comes to.
async fn answered_with(
    (asker, view): (Asker<'_>, &Rc<WorkerSnapshot>),
    described: &Arc<dyn Described>,
    mut began: Began,
    has_credential: bool,
    told: Told,
) -> Result<Vec<u8>, Failed> {
    let head = began.response.head.as_ref().ok_or(Failed::Bug)?;
    let status = head.status;
    // It is the gate's credential that was refused, which is no matter of the caller's.
    if status == 401 && has_credential {
        return Err(Failed::Credential);
    }
    if head.fields.of(Known::ContentEncoding).next().is_some() {
        return Err(Failed::Unusable(Unusable::NoMessage));
    }
    let kind = head.fields.only(Known::ContentType).ok().flatten();
    let kind = kind.and_then(|kind| std::str::from_utf8(kind).ok());
    let kind = kind.map(str::to_owned);
    let body = whole(asker, &mut began.response.body, began.timeouts).await?;
    let (described, bytes) = (Arc::clone(described), body.len());
    let _waiting = Waiting::new(view, bytes);
    let work = move || {
        let result = described.result(&HttpAnswer {
            status,
            kind: kind.as_deref(),
            body: &body,
        });
        drop(body);
        told.message(&result)
    };
    if bytes <= ON_WORKER_BYTES {
        return work();
    }
    asker.worker.beside.run(work).await.ok_or(Failed::Bug)?
}
