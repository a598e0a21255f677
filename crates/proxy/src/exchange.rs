//! One exchange, driven: head, body, decision, attempts, relay, record.
//!
//! Invariant: an [`Open`] ends in exactly one record and settles its hold, also when its task is
//! dropped half-way.
//! Not here: what is decided (`policy`), how either side frames its bytes (`downstream`,
//! `upstream`).

mod attempt;
mod body;
mod entry;
mod leave;
mod open;
mod relay;

use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use policy::credential;
use policy::exchange::{Admitted, Decision, Ending};
use policy::record::{Closed, Outcome};
use policy::refusal::{Refusal, Shape};
use policy::web::Sender;
use wire::call::{apply, spliced_len};
use wire::head::RequestHead;
use wire::http1::write_field;

use self::open::Open;
use crate::deadline::Deadline;
use crate::downstream::Downstream;
use crate::upstream::{Body, Outgoing};
use crate::view::View;
use crate::worker::Worker;
use crate::{cors, reply};

/// Why an exchange stopped before its end.
pub(crate) enum Stop {
    /// The gate answers itself; nothing was sent to the client yet.
    Refused(Refusal),
    /// The client left.
    Gone,
    /// The client left, and the rest of its answer is read.
    Left(Box<Body>),
    /// The upstream broke off in the middle of its response.
    Cut,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Serves one request whose head was read.
pub(crate) async fn serve<D: Downstream>(
    worker: &Rc<Worker>,
    view: Rc<View>,
    head: &RequestHead,
    length: Option<u64>,
    client: &mut D,
    deadline: &mut Deadline,
) {
    let mut open = Open::begin(worker, view, head, client.peer());
    let stopped = forward(&mut open, head, length, client, deadline).await;
    deadline.clear();
    match stopped {
        Ok(()) => {
            let told_error = open.meter.told_error();
            open.ended(Ending::Whole { told_error });
        }
        Err(Stop::Gone) => {
            client.abandon();
            open.ended(Ending::Left);
        }
        Err(Stop::Left(body)) => {
            client.abandon();
            leave::read_on(open, body);
        }
        Err(Stop::Cut) => {
            client.cut();
            open.ended(Ending::Cut);
        }
        Err(Stop::Refused(refusal)) => {
            answer(open, &refusal, Shape::of(head.path()), client).await;
        }
    }
}

/// Answers a request that could not even be read.
pub(crate) async fn refuse<D: Downstream>(worker: &Rc<Worker>, refusal: Refusal, client: &mut D) {
    let view = worker.view();
    let open = Open::begin(worker, view, &RequestHead::new(), client.peer());
    answer(open, &refusal, Shape::default(), client).await;
}

async fn answer<D: Downstream>(mut open: Open, refusal: &Refusal, shape: Shape, client: &mut D) {
    open.body_gone();
    let reply = refusal.reply();
    open.record.code = reply.code;
    open.record.status = reply.status;
    open.record.limited = refusal.limited();
    let standing = open.standing();
    // Boxed: rare, and its state would make every exchange larger.
    let sent = Box::pin(reply::refuse(
        client,
        &reply,
        shape,
        &open.record.id,
        &standing,
        &open.cors(),
        patience(&open),
    ))
    .await;
    if let Err(error) = &sent {
        // Nothing more is answered to a client that does not take this.
        client.abandon();
        if error.kind() == std::io::ErrorKind::TimedOut {
            open.worker.closed(Closed::WriteStall);
        }
    }
    open.record.bytes_out = sent.unwrap_or(0);
    open.end(if refusal.is_failure() {
        Outcome::Failed
    } else {
        Outcome::Refused
    });
}

/// How long a client may take for an answer of the gate's own.
fn patience(open: &Open) -> reply::Patience<'_> {
    reply::Patience {
        worker: &open.worker,
        stall: open.view.snapshot.bounds.write_stall,
    }
}

async fn forward<D: Downstream>(
    open: &mut Open,
    head: &RequestHead,
    length: Option<u64>,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<(), Stop> {
    let view = Rc::clone(&open.view);
    let snapshot = &*view.snapshot;
    match policy::web::sender(head, &snapshot.web)? {
        Sender::Client => {}
        Sender::Page(origin) => open.asked_by(origin),
        Sender::Preflight(origin) => {
            open.asked_by(origin);
            // Boxed: rare, and its state would make every exchange larger.
            return Box::pin(preflight(open, head, client)).await;
        }
    }
    let opened = policy::exchange::open(head, length, snapshot)?;
    open.record.workload = Some(opened.workload);
    open.record.operation = Some(opened.operation);
    let (rope, call) = body::read(open, opened, client, deadline, &snapshot.bounds).await?;
    let bytes = open.record.bytes_in;
    let estimator = |route| view.estimator(route);
    let decided = policy::exchange::admit(
        opened,
        call.as_ref(),
        bytes,
        estimator,
        open.mark,
        open.record.started_unix_ms,
        snapshot,
    );
    open.record.model_asked = call.and_then(|c| c.model);
    let admitted = match decided {
        Ok(Decision::Forward(admitted)) => admitted,
        Ok(Decision::Models(names)) => {
            let one = policy::route::model_named(&names, head.path())?;
            open.record.status = 200;
            let sent = Box::pin(reply::models(
                client,
                &names,
                one,
                &open.record.id,
                &open.cors(),
                patience(open),
            ))
            .await;
            open.record.bytes_out = sent.map_err(|_| Stop::Gone)?;
            return Ok(());
        }
        Err(refusal) => {
            open.record.route = policy::route::choose(
                snapshot,
                opened.workload,
                open.record.model_asked.as_deref(),
            )
            .ok()
            .map(|grant| grant.route);
            return Err(refusal.into());
        }
    };
    let (response, request) = {
        let mut outgoing = outgoing(open, head, &admitted, rope);
        open.admitted(admitted);
        entry::enter(open, client, deadline).await?;
        let response = attempt::attempts(open, &mut outgoing, client, deadline).await;
        let request = std::mem::take(&mut outgoing.body);
        match response {
            Ok(response) => (response, request),
            Err(stop) => {
                open.unanswered(request);
                return Err(stop);
            }
        }
    };
    open.body_gone();
    relay::relay(open, response, request, client, deadline).await
}

/// Tells a browser what a page may send.
async fn preflight<D: Downstream>(
    open: &mut Open,
    head: &RequestHead,
    client: &mut D,
) -> Result<(), Stop> {
    open.record.status = 204;
    let cors = open.cors();
    let told = cors::preflight(client, &cors, head, &open.record.id, patience(open));
    told.await.map_err(|_| Stop::Gone)
}

/// The request as it goes upstream, but for host and credential.
fn outgoing<'h>(
    open: &Open,
    head: &'h RequestHead,
    admitted: &Admitted,
    rope: Vec<Bytes>,
) -> Outgoing<'h> {
    let policy::identity::Identity::Header { name: identity, .. } = &open.view.snapshot.identity;
    let rule = open.view.snapshot.route(admitted.route);
    let listed = rule.map_or(&[][..], |rule| &rule.forward_headers);
    let mut lines = Vec::with_capacity(384);
    let trace = open.record.trace;
    for field in head.fields.iter() {
        if credential::forwards(&field, &head.fields, identity.as_bytes(), listed)
            && trace.is_none_or(|trace| policy::trace::forwards(&trace, field.known))
        {
            write_field(&mut lines, field.name, field.value);
        }
    }
    write_field(&mut lines, b"x-request-id", open.record.id.as_bytes());
    let traceparent_at = trace.map(|trace| {
        let at = lines.len() + b"traceparent: ".len();
        write_field(&mut lines, b"traceparent", &trace.traceparent(trace.span));
        at
    });
    let query = head
        .query()
        .zip(open.record.operation)
        .and_then(|(query, operation)| policy::query::forwarded(operation, query));
    let has_body = !rope.is_empty() || head.method == wire::head::Method::Post;
    let bytes = usize::try_from(open.record.bytes_in).unwrap_or(usize::MAX);
    let length = has_body.then(|| spliced_len(bytes, &admitted.splices) as u64);
    let body = if admitted.splices.is_empty() {
        rope
    } else {
        apply(&rope, &admitted.splices)
    };
    Outgoing {
        method: head.method,
        method_text: head.method_text(),
        path: head.path().strip_prefix("/v1").unwrap_or_default(),
        query: query.map_or_else(String::new, |query| format!("?{query}")),
        lines,
        traceparent_at,
        body,
        length,
    }
}

/// Whether the client has left: what every wait for the upstream also waits for.
fn watch<'a, D: Downstream>(
    client: &'a mut D,
    worker: &'a Worker,
) -> impl FnMut(&mut Context<'_>) -> Poll<()> + 'a {
    move |cx| client.poll_gone(worker, cx)
}
