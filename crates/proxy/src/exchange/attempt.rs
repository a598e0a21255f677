//! Tries endpoints until one answers or policy says enough.
//!
//! Invariant: a retry happens only before the first response byte went downstream; a reused
//! connection that turns out to be closed is replaced once without counting as a try.
//! Not here: which endpoint, and whether again (`policy::attempt`).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use policy::attempt::{Failure, is_retryable};
use policy::id::EndpointId;
use policy::record::AttemptRecord;
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
        let next = view
            .upstreams
            .borrow_mut()
            .next(&mut attempts, snapshot, now);
        let Some(endpoint) = next else {
            return Err(Refusal::Upstream(last).into());
        };
        open.record.attempts = attempts.made();
        open.record.endpoint = Some(endpoint);
        open.record.backend = snapshot.endpoint(endpoint).map(|e| e.backend);
        begin(open, endpoint, request);
        let result = attempt(open, endpoint, request, client, deadline).await?;
        let now = open.mark;
        let observed = match &result {
            Ok(response) => Ok(response.head.status),
            Err(failure) => Err(*failure),
        };
        let mut upstreams = view.upstreams.borrow_mut();
        upstreams.observe(endpoint, observed, now);
        let wants = observed.map_or(true, is_retryable);
        let has_left = open.leaving.is_some();
        let retried = wants && !has_left && upstreams.may_retry(&attempts, snapshot, now);
        drop(upstreams);
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
            Err(failure) if !retried => return Err(Refusal::Upstream(failure).into()),
            Err(failure) => last = failure,
        }
    }
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
    request: &Outgoing<'_>,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<Result<Response, Failure>, Stop> {
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
    let mut may_reuse = true;
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
                    Err(failure) => return Ok(Err(failure)),
                }
            }
        };
        let is_reused = line.is_reused();
        deadline.set(backend.timeouts.first_byte);
        let mut sent_at = open.mark;
        let sent = || sent_at = worker.now();
        let mut gone = leave::watch(client, &worker, open);
        let answered = match line {
            Line::H1 { connection, .. } => {
                let trip = Trip {
                    worker: &worker,
                    pool,
                    request,
                    endpoint: target,
                    credential,
                };
                h1::exchange(&trip, connection, deadline, &mut gone, sent).await
            }
            Line::H2 { handle, .. } => {
                let exchange = h2::exchange(handle, request, target, deadline, &mut gone, sent);
                // Boxed: its state would make every HTTP/1.1 exchange larger.
                let exchange: Pin<Box<dyn Future<Output = _>>> = Box::pin(exchange);
                exchange.await
            }
        };
        drop(gone);
        let now = worker.arrival();
        open.own_ns += (sent_at.0 - open.mark.0).max(0);
        let waited = now.since(sent_at);
        open.record.upstream = Some(open.record.upstream.unwrap_or_default() + waited);
        open.mark = now;
        deadline.clear();
        match answered {
            None => return Err(Stop::Gone),
            Some(Ok(response)) => return Ok(Ok(response)),
            Some(Err(Broken::Failed(failure))) => return Ok(Err(failure)),
            Some(Err(Broken::Untouched)) if is_reused => may_reuse = false,
            Some(Err(Broken::Untouched)) => return Ok(Err(Failure::Reset)),
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
        tracing::warn!(host = pool.origin.host, "upstream pool is full");
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
