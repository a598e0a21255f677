//! Tries endpoints until one answers or policy says enough.
//!
//! Invariant: a retry happens only before the first response byte went downstream; a reused
//! connection that turns out to be closed is replaced once without counting as a try, if its peer took
//! nothing of the request. Of every other try the exchange knows whether it may have run.
//! Not here: which endpoint, and whether again (`policy::attempt`).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use policy::attempt::{Attempts, Failure, Sent, Upstreams, asked, is_retryable, may_repeat};
use policy::id::EndpointId;
use policy::record::{AttemptRecord, Trouble};
use policy::refusal::Refusal;
use policy::trace::AttemptSpan;

use super::open::Open;
use super::{Stop, leave, watch};
use crate::deadline::Deadline;
use crate::downstream::Downstream;
use crate::timers::Timers;
use crate::upstream::connect::{Connected, connect};
use crate::upstream::h1::Broken;
use crate::upstream::pool::{Connection, Pool};
use crate::upstream::{Outgoing, Response, Trip, h1, h2};
use crate::view::View;
use crate::why;
use crate::worker::Worker;

/// A usable connection.
enum Line {
    H1 {
        connection: Connection,
        reused: bool,
    },
    H2 {
        handle: h2::Handle,
        reused: bool,
    },
}

/// A try that brought no answer.
struct Lost {
    failure: Failure,
    /// Its connection had served others before.
    was_kept: bool,
}

impl From<Failure> for Lost {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            was_kept: false,
        }
    }
}

/// The first response that policy accepts.
pub(super) async fn attempts<D: Downstream>(
    open: &mut Open,
    request: &mut Outgoing<'_>,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<Response, Stop> {
    let view = Rc::clone(&open.view);
    let snapshot = &*view.snapshot;
    let Some(route) = open.record.route else {
        return Err(Refusal::Bug("an admitted call without a route").into());
    };
    let mut attempts = view.upstreams.borrow_mut().begin(route);
    let mut last = Failure::Exhausted;
    loop {
        let now = open.mark;
        let may_reuse = !attempts.needs_new_connection();
        let model = open.record.model_sent.as_deref();
        let next = view
            .upstreams
            .borrow_mut()
            .next(&mut attempts, model, snapshot, now);
        let Some(endpoint) = next else {
            return Err(nowhere(open, &view, &attempts, last).into());
        };
        open.record.attempts = attempts.made();
        open.record.endpoint = Some(endpoint);
        open.record.backend = snapshot.endpoint(endpoint).map(|e| e.backend);
        begin(open, endpoint, request);
        open.sent = Sent::Nothing;
        let result = attempt(open, endpoint, may_reuse, request, client, deadline).await?;
        let now = open.mark;
        let observed = match &result {
            Ok(response) => Ok(response.head.status),
            Err(lost) => Err(lost.failure),
        };
        let mut upstreams = view.upstreams.borrow_mut();
        upstreams.observe(endpoint, observed, now);
        let wants = observed.map_or(true, is_retryable);
        let has_left = open.leaving.is_some();
        let retried = wants && {
            let repeats = open.record.operation;
            let repeats = repeats.is_some_and(|what| may_repeat(what, request.method));
            again(open, &mut upstreams, &mut attempts, &result, repeats)
        };
        drop(upstreams);
        if observed.map_or(true, |status| status >= 500 || matches!(status, 401 | 403)) {
            troubled(open, endpoint, observed);
        }
        let told = AttemptRecord {
            endpoint,
            result: observed,
            retried,
        };
        open.worker.sink(|sink| sink.attempt(snapshot, &told));
        if let Some(span) = &mut open.attempt {
            span.result = Some(observed);
            if retried && let Some(span) = open.attempt.take() {
                over(&open.worker, &view, span, now.since(open.began));
            }
        }
        match result {
            Ok(response) if !retried => return Ok(response),
            Err(_) if has_left => return Err(Stop::Gone),
            Ok(response) => last = Failure::Status(response.head.status),
            Err(lost) if !retried => return Err(Refusal::Upstream(lost.failure).into()),
            Err(lost) => {
                last = lost.failure;
                open.tried_in_vain(last);
                open.sent = Sent::Nothing;
            }
        }
    }
}

/// Whether a try that went wrong is followed by another one. Remembers for how long the endpoint asked to
/// be left alone.
#[cold]
fn again(
    open: &Open,
    upstreams: &mut Upstreams,
    attempts: &mut Attempts,
    result: &Result<Response, Lost>,
    repeats: bool,
) -> bool {
    let (snapshot, now) = (&*open.view.snapshot, open.mark);
    let model = open.record.model_sent.as_deref();
    if let (Ok(Response { head, .. }), Some(endpoint)) = (result, open.record.endpoint)
        && let Some(wait) = asked(head, open.worker.wall_ms(now))
    {
        upstreams.hold(endpoint, model, head.status, wait, now);
    }
    if open.leaving.is_some() || !(repeats || open.sent == Sent::Nothing) {
        return false;
    }
    let broke = |lost: &Lost| lost.was_kept && lost.failure == Failure::Reset;
    upstreams.may_retry(attempts, model, snapshot, now)
        || (result.as_ref().is_err_and(broke) && upstreams.may_retry_there(attempts, now))
}

/// Why there is no endpoint to try.
#[cold]
fn nowhere(open: &Open, view: &View, attempts: &Attempts, last: Failure) -> Refusal {
    let model = open.record.model_sent.as_deref();
    let upstreams = view.upstreams.borrow();
    match upstreams.waits(attempts, model, &view.snapshot, open.mark) {
        Some((status, wait)) => Refusal::UpstreamBusy { status, wait },
        None => Refusal::Upstream(last),
    }
}

/// Has the log tell of an attempt that says something of its endpoint or its credential.
#[cold]
fn troubled(open: &Open, endpoint: EndpointId, observed: Result<u16, Failure>) {
    let (trouble, detail) = match observed {
        Ok(status @ (401 | 403)) => (Trouble::Credential(endpoint), format!("status {status}")),
        Ok(status) => (
            Trouble::Endpoint(endpoint),
            why::of(Failure::Status(status)),
        ),
        Err(failure @ Failure::LocalCapacity) => (Trouble::NoUpstreamConnection, why::of(failure)),
        Err(failure) => (Trouble::Endpoint(endpoint), why::of(failure)),
    };
    open.worker.trouble(trouble, &detail);
}

/// Gives an attempt its span, and tells the upstream of it.
fn begin(open: &mut Open, endpoint: EndpointId, request: &mut Outgoing<'_>) {
    let (Some(trace), Some(at)) = (open.record.trace, request.traceparent_at) else {
        return;
    };
    let id = open.worker.fresh() | 1;
    policy::trace::put_span(&mut request.lines, at, id);
    open.attempt = trace.is_sampled.then(|| AttemptSpan {
        trace,
        id,
        endpoint,
        number: open.record.attempts,
        started_unix_ms: open.record.started_unix_ms,
        after: open.mark.since(open.began),
        took: Duration::ZERO,
        result: None,
    });
}

/// Hands over an attempt's span that ends so long after the exchange began.
pub(super) fn over(worker: &Worker, view: &View, mut span: AttemptSpan, ends: Duration) {
    span.took = ends.saturating_sub(span.after);
    worker.sink(|sink| sink.span(&view.snapshot, &span));
}

async fn attempt<D: Downstream>(
    open: &mut Open,
    endpoint: EndpointId,
    mut may_reuse: bool,
    request: &Outgoing<'_>,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<Result<Response, Lost>, Stop> {
    let view = Rc::clone(&open.view);
    let worker = Rc::clone(&open.worker);
    let (Some(pool), Some(credential)) = (view.pool(endpoint), view.credential(endpoint)) else {
        return Err(Refusal::Bug("an endpoint without a pool").into());
    };
    let Some(target) = view.snapshot.endpoint(endpoint) else {
        return Err(Refusal::Bug("an unknown endpoint").into());
    };
    let Some(backend) = view.snapshot.backend(target.backend) else {
        return Err(Refusal::Bug("an endpoint without a backend").into());
    };
    loop {
        let reusable = if may_reuse { reuse(pool) } else { None };
        let line = match reusable {
            Some(line) => line,
            None => {
                open.own_ns += worker.now().0 - open.mark.0;
                deadline.clear();
                let mut dialling = Box::pin(dial(pool, &worker.timers, backend.timeouts.connect));
                let mut gone = watch(client, &worker);
                let dialled = poll_fn(|cx| match dialling.as_mut().poll(cx) {
                    Poll::Ready(dialled) => Poll::Ready(Ok(dialled)),
                    Poll::Pending => gone(cx).map(|()| Err(Stop::Gone)),
                });
                let dialled = dialled.await?;
                open.mark = worker.now();
                match dialled {
                    Ok(line) => line,
                    Err(failure) => return Ok(Err(failure.into())),
                }
            }
        };
        let is_reused = line.is_reused();
        deadline.set(backend.timeouts.first_byte);
        let mut sent_at = None;
        let abandon = leave::policy_of(open);
        open.sent = Sent::Part;
        let so_far = &mut open.sent;
        let mut sent = |is_whole: bool| {
            sent_at.get_or_insert_with(|| worker.now());
            if is_whole {
                *so_far = Sent::Whole;
            }
        };
        let mut gone = leave::watch(client, &worker, abandon, &mut open.leaving);
        let answered = match line {
            Line::H1 { connection, .. } => {
                let trip = Trip {
                    worker: &worker,
                    pool,
                    request,
                    endpoint: target,
                    credential,
                };
                h1::exchange(&trip, connection, deadline, &mut gone, &mut sent).await
            }
            Line::H2 { handle, .. } => {
                let exchange =
                    h2::exchange(handle, request, target, deadline, &mut gone, &mut sent);
                // Boxed: its state would make every HTTP/1.1 exchange larger.
                let exchange: Pin<Box<dyn Future<Output = _>>> = Box::pin(exchange);
                exchange.await
            }
        };
        drop(gone);
        let now = worker.arrival();
        let sent_at = sent_at.unwrap_or(open.mark);
        open.own_ns += (sent_at.0 - open.mark.0).max(0);
        let waited = now.since(sent_at);
        open.record.upstream = Some(open.record.upstream.unwrap_or_default() + waited);
        open.mark = now;
        deadline.clear();
        match answered {
            None => return Err(Stop::Gone),
            Some(Ok(response)) => {
                open.sent = Sent::Answered;
                return Ok(Ok(response));
            }
            Some(Err(Broken::Failed(failure))) => {
                let was_kept = is_reused;
                return Ok(Err(Lost { failure, was_kept }));
            }
            Some(Err(Broken::Untaken)) => {
                open.sent = Sent::Nothing;
                if !is_reused {
                    return Ok(Err(Failure::Reset.into()));
                }
                may_reuse = false;
            }
        }
    }
}

impl Line {
    fn is_reused(&self) -> bool {
        match self {
            Self::H1 { reused, .. } | Self::H2 { reused, .. } => *reused,
        }
    }
}

fn reuse(pool: &Pool) -> Option<Line> {
    if let Some(connection) = pool.take() {
        return Some(Line::H1 {
            connection,
            reused: true,
        });
    }
    h2::take(pool).map(|handle| Line::H2 {
        handle,
        reused: true,
    })
}

async fn dial(pool: &Rc<Pool>, timers: &Timers, limit: Duration) -> Result<Line, Failure> {
    let Some(room) = pool.admit() else {
        why::tell("as many connections to it are open as may be");
        return Err(Failure::LocalCapacity);
    };
    let Connected { stream, is_h2 } = connect(pool, timers, limit).await?;
    if is_h2 {
        let handle = h2::begin(pool, timers, stream, room).await?;
        return Ok(Line::H2 {
            handle,
            reused: false,
        });
    }
    Ok(Line::H1 {
        connection: Connection::new(stream, room),
        reused: false,
    })
}
