//! One attempt: a connection, the request on it, the head of its response.
//!
//! Not here: which endpoint, which request, and whether again (`policy::exchange`).

use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use policy::clock::Mono;
use policy::exchange::{AttemptRequest, Look, Lost, Plan, Signature, Verdict};
use policy::operation::Operation;
use policy::refusal::Refusal;
use wire::call::{apply, spliced_len};
use wire::filter::Request;
use wire::head::RequestHead;

use super::active::ActiveExchange;
use super::beside;
use super::opening::{self, Seen};
use crate::beside::is_long;
use crate::buffer::Buffers;
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::upstream::line::{Line, dial, dial_to_switch, reuse};
use crate::upstream::pool::Pool;
use crate::upstream::{Answered, Body, Response, Watch, h1, h2};
use crate::worker::Worker;

/// A plan of another snapshot.
const NO_SUCH_ENDPOINT: Refusal = Refusal::Bug("a plan for an endpoint that is not there");

/// Makes an attempt, and tells of it. The response whose head came stands in `response` then.
pub(super) async fn run<D: Downstream>(
    active: &mut ActiveExchange,
    plan: Plan,
    head: &RequestHead,
    body: &[Bytes],
    response: &mut Option<Response>,
    client: &mut D,
    deadline: &mut Deadline,
) -> Verdict {
    *response = None;
    let (view, worker) = (Rc::clone(active.view()), Rc::clone(active.worker()));
    let (pool, backend) = (
        view.pool(plan.endpoint),
        view.snapshot().backend_of(plan.endpoint),
    );
    let (Some(pool), Some(backend)) = (pool, backend) else {
        return active.refuse_unread(NO_SUCH_ENDPOINT);
    };
    let timeouts = &backend.timeouts;
    let edited;
    let (whole, mut body) = (body, body);
    if !plan.edits.is_empty() {
        edited = apply(body, &plan.edits);
        body = &edited;
    }
    let filtered = match active.exchange.is_filtered() {
        // Boxed: rare, and its state would make every exchange larger.
        true => match Box::pin(filter(active, head, body, client)).await {
            Ok(filtered) => filtered,
            Err(verdict) => return verdict,
        },
        false => None,
    };
    if let Some(filtered) = &filtered {
        body = &filtered.body;
    }
    let signature = match plan.minted.is_some() && is_long(body) {
        // Boxed: rare, and its state would make every exchange larger.
        true => match Box::pin(sign(
            active,
            &plan,
            filtered.as_deref(),
            (head, body),
            client,
        ))
        .await
        {
            Ok(signature) => signature,
            Err(verdict) => return verdict,
        },
        false => None,
    };
    let to = pool.names.turn();
    let kept = if plan.may_reuse {
        reuse(pool, to)
    } else {
        None
    };
    let was_kept = kept.is_some();
    let line = match kept {
        Some(line) => line,
        // Boxed: rare, and its state would make every exchange larger.
        None => match Box::pin(dialled(
            active,
            (pool, to),
            plan.may_reuse,
            timeouts.connect,
            client,
            deadline,
        ))
        .await
        {
            Ok(line) => line,
            Err(verdict) => return verdict,
        },
    };
    deadline.set(timeouts.first_byte);
    active.exchange.sent(false);
    active.host.is_body_sent = false;
    let (exchange, snapshot) = (&active.exchange, view.snapshot());
    let request = AttemptRequest::new(&plan, exchange, head, snapshot, filtered.as_deref());
    let Some(mut request) = request else {
        return active.refuse_unread(NO_SUCH_ENDPOINT);
    };
    let bytes = usize::try_from(exchange.record().bytes_in).unwrap_or(usize::MAX);
    let mut length = request
        .has_body()
        .then(|| spliced_len(bytes, &plan.edits) as u64);
    if filtered.is_some() {
        length = length.map(|_| body.iter().map(|piece| piece.len() as u64).sum());
    }
    let leaves_betas_out = request.leaves_betas_out();
    // Whichever version of HTTP writes it.
    if let Some(signature) = signature {
        request.signed(signature);
    } else if let Some(signing) = request.signing(body, exchange.timing.mark) {
        request.signed(signing.run());
    }
    let mut watch;
    let answered = match line {
        Line::H1(connection) => {
            let sending = h1::Sending::new(&worker.buffers, &request, body, length);
            watch = Watching::new(active, client, whole);
            let method = head.method;
            h1::exchange(
                pool, connection, sending, method, response, deadline, &mut watch,
            )
            .await
        }
        Line::H2(handle) => {
            let sending = h2::Sending::new(&request, body, length);
            watch = Watching::new(active, client, whole);
            let exchange = h2::exchange(handle, sending, response, deadline, &mut watch);
            // Boxed: its state would make every HTTP/1.1 exchange larger.
            let exchange: Pin<Box<dyn Future<Output = _>>> = Box::pin(exchange);
            exchange.await
        }
    };
    let Watching {
        sent_at, verdict, ..
    } = watch;
    if leaves_betas_out {
        active.exchange.left_betas_out();
    }
    active
        .exchange
        .timing
        .attempted(sent_at, worker.clock.arrival());
    deadline.clear();
    match answered {
        Answered::Lost(lost) => failed(active, Lost { was_kept, ..lost }),
        Answered::Gone => verdict.unwrap_or(Verdict::Abandon),
        Answered::Head => {
            let Some(Response {
                head: Some(head),
                body,
            }) = response
            else {
                return active.disconnected();
            };
            // Over HTTP/1.1 no more of the request is sent once a response comes.
            active.host.is_body_sent |= matches!(body, Body::H1(_));
            if let Some(look) = active.exchange.look_at(head, view.snapshot()) {
                // Boxed: rare, and its state would make every exchange larger.
                let looked = looked(active, look, response, timeouts.idle, client, deadline);
                return Box::pin(looked).await;
            }
            active.tell(|exchange, env| exchange.response_head(head, env))
        }
    }
}

/// The request as its filters make it, or what follows where they do not.
async fn filter<D: Downstream>(
    active: &mut ActiveExchange,
    head: &RequestHead,
    body: &[Bytes],
    client: &mut D,
) -> Result<Option<Box<Request>>, Verdict> {
    let view = Rc::clone(active.view());
    let filtering = match is_long(body) {
        true => active.exchange.filtering(head, view.snapshot(), body),
        false => None,
    };
    let filtered = match filtering {
        None => active.exchange.filtered(head, view.snapshot(), body),
        Some(filtering) => {
            let passed = beside::filter(active, filtering, client).await?;
            active.exchange.take_filtered(passed)
        }
    };
    let filtered =
        filtered.map_err(|unfit| active.tell(|exchange, env| exchange.unfit(unfit, env)))?;
    if let Some(made) = &filtered
        && !active.keep_made(&made.body, body)
    {
        return Err(active.refuse_unread(Refusal::Overloaded));
    }
    Ok(filtered)
}

/// What proves who sends a request with a long body, where that depends on the whole of it.
async fn sign<D: Downstream>(
    active: &mut ActiveExchange,
    plan: &Plan,
    filtered: Option<&Request>,
    (head, body): (&RequestHead, &[Bytes]),
    client: &mut D,
) -> Result<Option<Signature>, Verdict> {
    let view = Rc::clone(active.view());
    let (exchange, snapshot) = (&active.exchange, view.snapshot());
    let request = AttemptRequest::new(plan, exchange, head, snapshot, filtered);
    let signing = request.and_then(|request| request.signing(body, exchange.timing.mark));
    match signing {
        Some(signing) => Ok(Some(beside::sign(active, signing, client).await?)),
        None => Ok(None),
    }
}

/// What follows from a response that is looked at before its head is told of.
async fn looked<D: Downstream>(
    active: &mut ActiveExchange,
    look: Look,
    response: &mut Option<Response>,
    idle: Duration,
    client: &mut D,
    deadline: &mut Deadline,
) -> Verdict {
    let Some(unread) = response.take() else {
        return active.disconnected();
    };
    let seen = match opening::look(active, look, unread, idle, client, deadline).await {
        Ok(seen) => seen,
        Err(verdict) => return verdict,
    };
    let read = match seen {
        Seen::Head(read) => read,
        Seen::RefusedUsage(status) => {
            return active.tell(|exchange, env| exchange.refused_usage(status, env));
        }
    };
    match &response.insert(read).head {
        Some(head) => active.tell(|exchange, env| exchange.response_head(head, env)),
        None => active.disconnected(),
    }
}

/// A new connection for an attempt, or what follows where there is none.
async fn dialled<D: Downstream>(
    active: &mut ActiveExchange,
    to: (&Rc<Pool>, Option<IpAddr>),
    may_share: bool,
    limit: Duration,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<Line, Verdict> {
    let worker = Rc::clone(active.worker());
    active.pause();
    deadline.clear();
    let is_to_switch = active.exchange.record().operation == Some(Operation::RealtimeSocket);
    let mut dialling = std::pin::pin!(async {
        match is_to_switch {
            true => dial_to_switch(to, &worker.timers, limit).await,
            false => dial(to, may_share, &worker.timers, limit).await,
        }
    });
    let dialled = poll_fn(|cx| match dialling.as_mut().poll(cx) {
        Poll::Ready(dialled) => Poll::Ready(Some(dialled)),
        Poll::Pending => client.poll_gone(&worker.buffers, cx).map(|()| None),
    });
    let Some(dialled) = dialled.await else {
        return Err(active.disconnected());
    };
    active.resume();
    dialled.map_err(|failure| failed(active, failure.into()))
}

#[cold]
fn failed(active: &mut ActiveExchange, lost: Lost) -> Verdict {
    active.tell(|exchange, env| exchange.attempt_failed(lost, env))
}

/// What the wait for a response tells, and what else it waits for.
struct Watching<'a, D> {
    active: &'a mut ActiveExchange,
    worker: Rc<Worker>,
    client: &'a mut D,
    /// The body of the call, as it came.
    body: &'a [Bytes],
    sent_at: Option<Mono>,
    /// Nobody waits for the response any more: what follows.
    verdict: Option<Verdict>,
}

impl<'a, D: Downstream> Watching<'a, D> {
    fn new(active: &'a mut ActiveExchange, client: &'a mut D, body: &'a [Bytes]) -> Self {
        Self {
            body,
            worker: Rc::clone(active.worker()),
            active,
            client,
            sent_at: None,
            verdict: None,
        }
    }
}

impl<D: Downstream> Watch for Watching<'_, D> {
    fn buffers(&self) -> &Buffers {
        &self.worker.buffers
    }

    fn sent(&mut self, is_whole: bool) {
        self.sent_at.get_or_insert_with(|| self.worker.now());
        if is_whole {
            self.active.host.is_body_sent = true;
            self.active.exchange.sent(true);
        }
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.active.host.reading_on.is_none() {
            ready!(self.client.poll_gone(&self.worker.buffers, cx));
            self.active.look_for_prompt(self.body);
            let verdict = self.active.disconnected();
            if self.active.host.reading_on.is_none() {
                self.verdict = Some(verdict);
                return Poll::Ready(());
            }
        }
        if let Some(reading_on) = &mut self.active.host.reading_on {
            ready!(reading_on.deadline.poll(cx));
        }
        self.verdict = Some(self.active.stalled());
        Poll::Ready(())
    }
}
