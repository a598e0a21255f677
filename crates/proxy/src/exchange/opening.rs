//! The first bytes of a response, where they say what its head does not.
//!
//! Invariant: what was read is forwarded first; nothing of a response is read before its head is told of unless policy asks.
//! Not here: which responses are looked at and what they are (`policy::exchange`), what a stream begins with (`wire::sse`).

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use policy::exchange::{Look, REFUSAL_BYTES, Verdict, names_credential, names_usage};
use wire::head::Known;
use wire::sse::{OPENING_BYTES, begins_events};

use super::active::ActiveExchange;
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::upstream::{Begun, Body, Response};

/// What a look at a response tells.
pub(super) enum Seen {
    /// Its head may be told of; it says what was found.
    Head(Response),
    /// It refuses, with this status, to be asked for usage.
    RefusedUsage(u16),
}

/// Reads until what is looked for is known. A verdict where it does not come to that.
pub(super) async fn look<D: Downstream>(
    active: &mut ActiveExchange,
    look: Look,
    response: Response,
    idle: Duration,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<Seen, Verdict> {
    let worker = Rc::clone(active.worker());
    let Response { mut head, body } = response;
    let mut begun = Box::new(Begun::of(body));
    active.pause();
    deadline.set(idle);
    let is_found = loop {
        let read = poll_fn(|cx| {
            let read = worker
                .buffers
                .scratch(|scratch| begun.poll_more(cx, scratch));
            if let Poll::Ready(is_over) = read {
                return Poll::Ready(Read::More { is_over });
            }
            if let Some(reading_on) = &mut active.host.reading_on {
                // Nobody has waited for it since before it came.
                if reading_on.deadline.poll(cx).is_ready() {
                    return Poll::Ready(Read::Stalled);
                }
            } else if client.poll_gone(&worker.buffers, cx).is_ready() {
                return Poll::Ready(Read::Gone);
            }
            deadline.poll(cx).map(|()| Read::Stalled)
        });
        match read.await {
            Read::More { is_over } => {
                if let Some(is_found) = found(look, begun.data(), is_over) {
                    break is_found;
                }
            }
            // What follows for a client that left is told where the stream that it asked for is relayed.
            Read::Gone => break look == Look::FirstBytes,
            Read::Stalled => {
                deadline.clear();
                active.resume();
                return Err(active.stalled());
            }
        }
    };
    deadline.clear();
    active.resume();
    match (look, is_found, &mut head) {
        (Look::FirstBytes, true, Some(head)) => {
            // It cannot fail: name and value are what a field may have, and a head has room for one more.
            let _named = head
                .fields
                .replace(Known::ContentType, b"text/event-stream");
        }
        (Look::Refusal, true, Some(head)) => return Ok(Seen::RefusedUsage(head.status)),
        (Look::Credential, true, Some(head)) => head.status = 401,
        _ => {}
    }
    Ok(Seen::Head(Response {
        head,
        body: Body::Begun(begun),
    }))
}

/// Whether it is what is looked for; `None` where more must be read to say.
fn found(look: Look, data: &[u8], is_over: bool) -> Option<bool> {
    match look {
        Look::FirstBytes => {
            let is_end = is_over || data.len() > OPENING_BYTES;
            begins_events(data).or(is_end.then_some(false))
        }
        Look::Refusal => {
            let is_end = is_over || data.len() > REFUSAL_BYTES;
            is_end.then(|| names_usage(data))
        }
        Look::Credential => {
            let is_end = is_over || data.len() > REFUSAL_BYTES;
            is_end.then(|| names_credential(data))
        }
    }
}

enum Read {
    More { is_over: bool },
    Gone,
    Stalled,
}
