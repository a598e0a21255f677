//! The first bytes of a response, where they say what it is and its head does not.
//!
//! Invariant: what was read is forwarded first; nothing of a response is read before its head is told of unless policy asks.
//! Not here: which responses are looked at (`policy::exchange`), what a stream begins with (`wire::sse`).

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use policy::exchange::Verdict;
use wire::head::Known;
use wire::sse::{OPENING_BYTES, begins_events};

use super::active::ActiveExchange;
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::upstream::{Begun, Body, Response};

/// Reads until it is known whether this is a stream of events, and has its head say so if it is. A verdict where it does not come
/// to that.
pub(super) async fn look<D: Downstream>(
    active: &mut ActiveExchange,
    response: Response,
    idle: Duration,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<Response, Verdict> {
    let worker = Rc::clone(active.worker());
    let Response { mut head, body } = response;
    let mut begun = Box::new(Begun::of(body));
    active.pause();
    deadline.set(idle);
    let is_stream = loop {
        let read = poll_fn(|cx| {
            let read = worker
                .buffers
                .scratch(|scratch| begun.poll_more(cx, scratch));
            if let Poll::Ready(is_over) = read {
                return Poll::Ready(Read::More { is_over });
            }
            // What follows for a client that left is told where the response is relayed.
            if client.poll_gone(&worker.buffers, cx).is_ready() {
                return Poll::Ready(Read::Gone);
            }
            deadline.poll(cx).map(|()| Read::Stalled)
        });
        match read.await {
            Read::More { is_over } => match begins_events(begun.data()) {
                Some(is_stream) => break is_stream,
                None if is_over || begun.data().len() > OPENING_BYTES => break false,
                None => {}
            },
            Read::Gone => break true,
            Read::Stalled => {
                deadline.clear();
                active.resume();
                return Err(active.stalled());
            }
        }
    };
    deadline.clear();
    active.resume();
    if let (true, Some(head)) = (is_stream, &mut head) {
        // It cannot fail: name and value are what a field may have, and a head has room for one more.
        let _named = head
            .fields
            .replace(Known::ContentType, b"text/event-stream");
    }
    Ok(Response {
        head,
        body: Body::Begun(begun),
    })
}

enum Read {
    More { is_over: bool },
    Gone,
    Stalled,
}
