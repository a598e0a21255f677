//! The rest of a response that nobody waits for: read to its end, since its client has left and its usage is still to come.
//!
//! Invariant: it ends at the response's end or at its bounds of bytes and time, and the exchange with it.
//! Not here: how much is read on (`policy::exchange`), a response that is forwarded (`relay`).

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use policy::exchange::Verdict;
use policy::hosted::Hosted;

use crate::exchange::active::ActiveExchange;
use crate::stint::Stint;
use crate::upstream::{Body, Chunk, Response};

/// Reads the rest of a response that nobody waits for, in a task of its own, then ends the exchange.
pub(in crate::exchange) fn read_to_end(mut active: ActiveExchange, response: Option<Response>) {
    tokio::task::spawn_local(async move {
        if let Some(Response { mut body, .. }) = response {
            // It ends at its bounds too: whatever the last verdict is, nobody is left to be told.
            let _over = read_on(&mut active, &mut body).await;
        }
        active.finish();
    });
}

/// Reads until the response ends, breaks off or comes to a bound.
async fn read_on(active: &mut ActiveExchange, body: &mut Body) -> Verdict {
    let worker = Rc::clone(active.worker());
    let mut stint = Stint::default();
    loop {
        stint.pass().await;
        let read = poll_fn(|cx| {
            let Hosted { meter, host, .. } = &mut **active;
            let reading_on = &mut host.reading_on;
            let piece = worker.buffers.scratch(|scratch| {
                body.poll_chunk(cx, scratch).map(|piece| {
                    let Chunk { data, is_over } = piece.ok()?;
                    meter.observe(data);
                    stint.add(data.len());
                    Some((data.len() as u64, is_over))
                })
            });
            match (piece, reading_on) {
                (Poll::Ready(Some((bytes, is_over))), _) => {
                    if is_over {
                        meter.finish();
                    }
                    let events = meter.events();
                    Poll::Ready(Rest::Read {
                        bytes,
                        events,
                        is_over,
                    })
                }
                (Poll::Ready(None), _) => Poll::Ready(Rest::Broke),
                (Poll::Pending, Some(on)) => on.deadline.poll(cx).map(|()| Rest::TooLong),
                (Poll::Pending, None) => Poll::Ready(Rest::TooLong),
            }
        });
        let read = read.await;
        body.taken();
        let now = worker.clock.latest();
        let verdict = active.tell_at(now, |exchange, env| match read {
            Rest::Read {
                bytes,
                events,
                is_over,
            } => exchange.read_on(bytes, events, is_over, env),
            Rest::Broke => exchange.response_broke(false, false),
            Rest::TooLong => exchange.stalled(env),
        });
        match verdict {
            Verdict::ReadToEnd { .. } => {}
            over => return over,
        }
    }
}

/// What came of the rest of a response that nobody waits for.
enum Rest {
    Read {
        bytes: u64,
        events: Option<u64>,
        is_over: bool,
    },
    Broke,
    TooLong,
}
