//! One exchange, driven: head, body, decision, attempts, relay, record.
//!
//! Invariant: an [`Open`] ends in exactly one record and settles its hold, also when its task is
//! dropped half-way.
//! Not here: what is decided (`policy`), how either side frames its bytes (`downstream`,
//! `upstream`).

mod attempt;
mod entry;
mod leave;
mod open;
mod relay;

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use policy::credential;
use policy::exchange::{Admitted, Decision, Opened};
use policy::record::Outcome;
use policy::refusal::{Refusal, Shape};
use policy::snapshot::Bounds;
use wire::call::{CallHead, CallScanner, apply, spliced_len};
use wire::head::RequestHead;
use wire::http1::write_field;

use self::open::Open;
use crate::deadline::Deadline;
use crate::downstream::{BodyFault, Downstream};
use crate::reply;
use crate::upstream::{Body, Outgoing};
use crate::view::View;
use crate::worker::Worker;

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

/// Below this rate, after its first half minute, a body is taken for an attack.
const SLOWEST_BYTES_A_SECOND: u64 = 256;

/// Serves one request whose head was read.
pub(crate) async fn serve<D: Downstream>(
    worker: &Rc<Worker>,
    view: Rc<View>,
    head: &RequestHead,
    length: Option<u64>,
    client: &mut D,
    deadline: &mut Deadline,
) {
    let mut open = Open::begin(worker, view, head);
    let stopped = forward(&mut open, head, length, client, deadline).await;
    deadline.clear();
    match stopped {
        Ok(()) => open.end(Outcome::Completed),
        Err(Stop::Gone) => {
            client.abandon();
            open.end(Outcome::Aborted);
        }
        Err(Stop::Left(body)) => {
            client.abandon();
            leave::read_on(open, body);
        }
        Err(Stop::Cut) => {
            client.cut();
            open.record.code = "upstream_cut";
            open.end(Outcome::Failed);
        }
        Err(Stop::Refused(refusal)) => {
            answer(open, &refusal, Shape::of(head.path()), client).await;
        }
    }
}

/// Answers a request that could not even be read.
pub(crate) async fn refuse<D: Downstream>(worker: &Rc<Worker>, refusal: Refusal, client: &mut D) {
    let view = worker.view();
    let open = Open::begin(worker, view, &RequestHead::new());
    answer(open, &refusal, Shape::default(), client).await;
}

async fn answer<D: Downstream>(mut open: Open, refusal: &Refusal, shape: Shape, client: &mut D) {
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
        &open.worker.timers,
    ))
    .await;
    open.record.bytes_out = sent.unwrap_or(0);
    open.end(if refusal.is_failure() {
        Outcome::Failed
    } else {
        Outcome::Refused
    });
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
    let opened = policy::exchange::open(head, length, snapshot)?;
    open.record.workload = Some(opened.workload);
    open.record.operation = Some(opened.operation);
    let (rope, call) = read_body(open, opened, client, deadline, &snapshot.bounds).await?;
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
                &open.worker.timers,
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
        let response = attempt::attempts(open, &mut outgoing, client, deadline).await?;
        (response, std::mem::take(&mut outgoing.body))
    };
    relay::relay(open, response, request, client, deadline).await
}

/// Reads the request body to its end, within its bounds, looking at it as it comes.
async fn read_body<D: Downstream>(
    open: &mut Open,
    opened: Opened,
    client: &mut D,
    deadline: &mut Deadline,
    bounds: &Bounds,
) -> Result<(Vec<Bytes>, Option<CallHead>), Stop> {
    let mut scanner = opened.operation.reads_body().then(CallScanner::new);
    let mut rope = Vec::new();
    let mut has_waited = false;
    let worker = Rc::clone(&open.worker);
    deadline.set(bounds.body_idle);
    loop {
        let piece = poll_fn(|cx| match client.poll_body(&worker, cx) {
            Poll::Ready(Ok(piece)) => Poll::Ready(Ok(piece)),
            Poll::Ready(Err(BodyFault::Gone)) => Poll::Ready(Err(Stop::Gone)),
            Poll::Ready(Err(BodyFault::Framing(fault))) => {
                Poll::Ready(Err(Refusal::BodyFraming(fault).into()))
            }
            Poll::Pending => {
                has_waited = true;
                deadline.poll(cx).map(|()| Err(Refusal::Slow.into()))
            }
        })
        .await?;
        let Some(piece) = piece else { break };
        open.record.bytes_in += piece.len() as u64;
        if open.record.bytes_in > bounds.body_bytes {
            return Err(Refusal::BodyTooLarge {
                limit: bounds.body_bytes,
            }
            .into());
        }
        if let Some(scanner) = &mut scanner {
            scanner.push(&piece).map_err(Refusal::Call)?;
        }
        rope.push(piece);
        let earned = Duration::from_secs(open.record.bytes_in / SLOWEST_BYTES_A_SECOND);
        if rope.len() > 1 && worker.now().since(open.began) > bounds.body_idle + earned {
            return Err(Refusal::Slow.into());
        }
        deadline.set(bounds.body_idle);
    }
    open.request_read(has_waited);
    let call = scanner
        .as_mut()
        .map(CallScanner::finish)
        .transpose()
        .map_err(Refusal::Call)?;
    Ok((rope, call))
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
