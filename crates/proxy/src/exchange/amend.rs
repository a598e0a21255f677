//! Header fields that come for the head of an answer before it is forwarded, from who picked its endpoint.
//!
//! Invariant: a field that the answer has stays as it is, and what goes to the client of all is said where heads are forwarded.
//! Not here: who says the fields (`callout`).

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use policy::exchange::{Amended, Verdict};

use super::active::ActiveExchange;
use crate::client::Downstream;
use crate::upstream::Response;

/// Waits for what is added to the head of a response, and adds it.
pub(super) async fn wait<D: Downstream>(
    active: &mut ActiveExchange,
    amended: Amended,
    response: Option<&mut Response>,
    client: &mut D,
) -> Verdict {
    let worker = Rc::clone(active.worker());
    let Amended {
        mut fields,
        verdict,
    } = amended;
    active.pause();
    let fields = poll_fn(|cx| {
        if let Poll::Ready(fields) = fields.as_mut().poll(cx) {
            return Poll::Ready(Some(fields));
        }
        client.poll_gone(&worker.buffers, cx).map(|_| None)
    });
    let fields = fields.await;
    active.resume();
    let Some(fields) = fields else {
        return active.disconnected();
    };
    if let Some(head) = response.and_then(|response| response.head.as_mut()) {
        for (name, value) in fields {
            if head.fields.by_name(&name).next().is_none() {
                // One that no head can have is left out.
                let _unfit = head.fields.push(&name, &value);
            }
        }
    }
    verdict
}
