//! What a call waits for: who makes it, whether it may, its body, a client that takes its answer.
//!
//! Invariant: a client that leaves ends the wait.
//! Not here: what becomes of what was waited for (`super`).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use policy::authorizer::{Asked, Authorization, Authorizer};
use policy::exchange::ANSWER_WITHIN;
use policy::front::Http;
use policy::identity::Unproven;
use policy::record::Closed;
use policy::refusal::Refusal;
use policy::route::Chosen;

use super::{Call, Stop};
use crate::client::{BodyFault, Downstream};
use crate::deadline::Deadline;
use crate::reply::part;
use crate::worker::Worker;

/// What a wait gives, unless the client leaves before.
pub(crate) async fn while_there<T>(
    wait: impl Future<Output = T>,
    worker: &Worker,
    client: &mut impl Downstream,
) -> Result<T, Stop> {
    let mut wait = pin!(wait);
    poll_fn(|cx| {
        if let Poll::Ready(value) = wait.as_mut().poll(cx) {
            return Poll::Ready(Ok(value));
        }
        client
            .poll_gone(&worker.buffers, cx)
            .map(|()| Err(Stop::Gone))
    })
    .await
}

/// Who calls.
pub(crate) async fn identify<D: Downstream>(
    call: &mut Call,
    who: &Http<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let Some((verifier, credential)) = call.identify(who)? else {
        return Ok(());
    };
    let worker = Rc::clone(&call.worker);
    let asked = verifier.ask(credential);
    let answer = while_there(worker.timers.timeout(ANSWER_WITHIN, asked), &worker, client).await?;
    let answer = answer.unwrap_or(Err(Unproven::Unavailable("no answer in time".into())));
    call.identified(answer, who)
}

/// Whoever is asked outside allows it, of this rule: as soon as who calls is known, and once more where it is known what is asked for, which
/// is `model` then, and may be none.
pub(crate) async fn authorized_outside<D: Downstream>(
    call: &mut Call,
    who: &Http<'_>,
    chosen: Option<Chosen<'_>>,
    model: Option<Option<&str>>,
    client: &mut D,
) -> Result<(), Stop> {
    let (worker, view) = (Rc::clone(&call.worker), Rc::clone(&call.view));
    let s = view.snapshot();
    let asking = call.record().zip(chosen).and_then(|(record, chosen)| {
        let workload = s.workload(record.workload?)?;
        let authorizer: &dyn Authorizer = match model {
            Some(_) => &**workload.call_authorizer.as_ref()?,
            None => &**workload.authorizer.as_ref()?,
        };
        let backends = chosen.route.backends.iter();
        let backends = backends.filter_map(|id| s.backend(*id));
        Some(authorizer.ask(&Asked {
            id: &record.id,
            head: who.head,
            source: s.clients.address(who.peer.address, who.head),
            workload: &workload.name,
            caller: record.caller.as_deref(),
            model: model.flatten(),
            route: model.map(|_| &*chosen.route.name),
            backends: match model {
                Some(_) => backends.map(|backend| &*backend.name).collect(),
                None => Vec::new(),
            },
        }))
    });
    let Some(asking) = asking else {
        return Ok(());
    };
    let asking = worker.timers.timeout(ANSWER_WITHIN, asking);
    let (refusal, why) = match while_there(asking, &worker, client).await? {
        Ok(Authorization::Allowed) => return Ok(()),
        Ok(Authorization::Denied(why)) => (Refusal::NotAuthorized, Some(why)),
        Ok(Authorization::Unavailable(why)) => (Refusal::AuthorizerUnavailable, Some(why)),
        Err(_) => (Refusal::AuthorizerUnavailable, None),
    };
    call.facts.reason = why.or(call.facts.reason.take());
    Err(call.refuse(refusal))
}

/// The next piece of its body; nothing at its end.
pub(crate) async fn piece<D: Downstream>(
    call: &mut Call,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<Option<Bytes>, Stop> {
    deadline.set(call.view.snapshot().bounds.body_idle);
    let worker = Rc::clone(&call.worker);
    let piece = poll_fn(|cx| match client.poll_body(&worker.buffers, cx) {
        Poll::Ready(Ok(piece)) => Poll::Ready(Ok(piece)),
        Poll::Ready(Err(BodyFault::Gone)) => Poll::Ready(Err(None)),
        Poll::Ready(Err(BodyFault::Head(fault))) => Poll::Ready(Err(Some(Refusal::Head(fault)))),
        Poll::Ready(Err(BodyFault::Framing(fault))) => {
            Poll::Ready(Err(Some(Refusal::BodyFraming(fault))))
        }
        Poll::Pending => deadline.poll(cx).map(|()| Err(Some(Refusal::Slow))),
    });
    match piece.await {
        Ok(piece) => {
            let came = piece.as_ref().map_or(0, Bytes::len);
            call.facts.bytes_in += came as u64;
            Ok(piece)
        }
        Err(Some(refusal)) => Err(call.refuse(refusal)),
        Err(None) => Err(Stop::Gone),
    }
}

/// Sends part of its answer.
pub(crate) async fn sent<D: Downstream>(
    call: &mut Call,
    client: &mut D,
    body: &[u8],
    end: bool,
) -> Result<(), Stop> {
    let worker = Rc::clone(&call.worker);
    let patience = call.patience(&worker);
    match part(client, body, end, patience).await {
        Ok(bytes) => {
            call.facts.bytes_out += bytes;
            Ok(())
        }
        Err(error) => {
            if error.kind() == std::io::ErrorKind::TimedOut {
                worker.closed(Closed::WriteStall);
            }
            Err(Stop::Gone)
        }
    }
}
