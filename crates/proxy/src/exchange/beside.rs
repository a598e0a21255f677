//! What of an exchange is done beside its worker, and waited for while its client is there: going through a long body.
//!
//! Not here: the thread that does it ([`crate::beside`]).

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use policy::exchange::{Filtering, Passed, Signature, Signing, Verdict};
use policy::refusal::Refusal;
use wire::call::CallHead;

use super::active::ActiveExchange;
use crate::client::Downstream;

/// Passes a long body through filters.
pub(super) async fn filter<D: Downstream>(
    active: &mut ActiveExchange,
    filtering: Filtering,
    client: &mut D,
) -> Result<Passed, Verdict> {
    wait(active, client, move || filtering.run()).await
}

/// Signs a request with a long body.
pub(super) async fn sign<D: Downstream>(
    active: &mut ActiveExchange,
    signing: Signing,
    client: &mut D,
) -> Result<Signature, Verdict> {
    wait(active, client, move || signing.run()).await
}

/// Looks inside of a long body for what the upstream keeps and for models besides its own, where that matters.
pub(super) async fn look_inside<D: Downstream>(
    active: &mut ActiveExchange,
    call: &mut CallHead,
    body: &[Bytes],
    client: &mut D,
) -> Result<(), Verdict> {
    let view = Rc::clone(active.view());
    if let Some(inside) = active.exchange.look_inside(call, view.snapshot()) {
        let body = body.to_vec();
        call.keep(wait(active, client, move || inside.find(&body)).await?);
    }
    Ok(())
}

async fn wait<D: Downstream, T: Send + 'static>(
    active: &mut ActiveExchange,
    client: &mut D,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Verdict> {
    let worker = Rc::clone(active.worker());
    let mut running = pin!(worker.beside.run(work));
    let done = poll_fn(|cx| match running.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => client.poll_gone(&worker.buffers, cx).map(|()| None),
    });
    match done.await {
        Some(Some(done)) => Ok(done),
        Some(None) => Err(active.refuse_unread(Refusal::Bug("a long body was not gone through"))),
        None => Err(active.disconnected()),
    }
}
