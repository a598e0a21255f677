//! The request body, read whole before anything is decided of the call.
//!
//! Invariant: what is kept of a body grows with what has arrived of it, whatever length was declared, within what
//! the worker may keep of all; scanning lets others run.
//! Not here: framing (`downstream`), how long and how slow a body may be (`policy::exchange`), what the members mean
//! (`wire::call`).

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use policy::exchange::Verdict;
use policy::refusal::Refusal;
use wire::call::{CallFault, CallHead, CallScanner};
use wire::head::RequestHead;

use self::coded::Coded;
use super::active::ActiveExchange;
use super::beside;
use crate::beside::is_long;
use crate::client::{BodyFault, Downstream};
use crate::deadline::Deadline;
use crate::stint::{STINT_BYTES, Stint};

/// Shorter pieces after the first are gathered, as each piece has a cost of its own.
const SHORT_BYTES: usize = 1 << 10;
/// The most that is gathered into one piece.
const GATHERED_BYTES: usize = 64 << 10;

/// Reads the request body to its end, scanning it as it comes, into `body`.
pub(super) async fn read<D: Downstream>(
    active: &mut ActiveExchange,
    head: &RequestHead,
    within: Duration,
    body: &mut Vec<Bytes>,
    client: &mut D,
    deadline: &mut Deadline,
) -> Verdict {
    let mut scanner = active.exchange.scanner(head);
    // Boxed: rare, and its state would make every exchange larger.
    let mut coded = active
        .exchange
        .coding()
        .map(|coding| Box::new(Coded::new(coding)));
    let mut rope = Rope::default();
    let mut stint = Stint::default();
    let mut has_waited = false;
    let worker = Rc::clone(active.worker());
    deadline.set(within);
    loop {
        let piece = poll_fn(|cx| match client.poll_body(&worker.buffers, cx) {
            Poll::Ready(Ok(piece)) => Poll::Ready(Ok(piece)),
            Poll::Ready(Err(fault)) => Poll::Ready(Err(faulty(active, fault))),
            Poll::Pending => {
                if !std::mem::replace(&mut has_waited, true) {
                    let now = worker.now();
                    match active.tell_at(now, |exchange, env| exchange.await_body(env)) {
                        Verdict::Read { .. } => {}
                        refused => return Poll::Ready(Err(refused)),
                    }
                }
                deadline.poll(cx).map(|()| Err(active.stalled()))
            }
        });
        let piece = match piece.await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(verdict) => return verdict,
        };
        if let Some(coded) = &mut coded {
            let taken = coded.take(active, &piece, (&mut scanner, &mut stint, &mut rope));
            match Box::pin(taken).await {
                Verdict::Read { within } => deadline.set(within),
                refused => return refused,
            }
            continue;
        }
        let now = if rope.is_empty() {
            active.exchange.timing.mark
        } else {
            worker.now()
        };
        match active.tell_at(now, |exchange, env| exchange.read_body(piece.len(), env)) {
            Verdict::Read { within } => deadline.set(within),
            refused => return refused,
        }
        if !active.keep_body(piece.len()) {
            return active.refuse_unread(Refusal::Overloaded);
        }
        if let Some(scanner) = &mut scanner {
            let scanned = if stint.takes(piece.len()) {
                scanner.push(&piece)
            } else {
                // Boxed: rare, and its state would make every exchange larger.
                Box::pin(scan(scanner, &piece, &mut stint)).await
            };
            if let Err(fault) = scanned {
                return active.refuse_unread(Refusal::Call(fault));
            }
        }
        rope.push(piece);
    }
    if has_waited {
        active.exchange.timing.resume(worker.clock.arrival());
    }
    if let Some(coded) = coded
        && let Err(refusal) = coded.finish(active)
    {
        return active.refuse_unread(refusal);
    }
    *body = rope.into_pieces();
    let call = scanner.as_mut().map(CallScanner::finish);
    match call.transpose() {
        // Boxed: rare, and its state would make every exchange larger.
        Ok(Some(call)) if call.keeps.is_some() => {
            Box::pin(made_whole(active, head, call, body, client)).await
        }
        Ok(Some(call)) if is_long(body) => Box::pin(ended(active, head, call, body, client)).await,
        Ok(call) => active.tell(|exchange, env| exchange.end_body(head, call, body, env)),
        Err(fault) => active.refuse_unread(Refusal::Call(fault)),
    }
}

/// A call that goes on from what is kept of earlier ones: by the gate, then it is made whole and read again, or by its upstream.
async fn made_whole<D: Downstream>(
    active: &mut ActiveExchange,
    head: &RequestHead,
    call: &mut CallHead,
    body: &mut Vec<Bytes>,
    client: &mut D,
) -> Verdict {
    let view = Rc::clone(active.view());
    let whole = match active.exchange.made_whole(call, body, view.snapshot()) {
        Ok(Some(whole)) => whole,
        Ok(None) => return ended(active, head, call, body, client).await,
        Err(refusal) => return active.refuse_unread(refusal),
    };
    let before: usize = body.iter().map(Bytes::len).sum();
    if !active.keep_body(whole.len().saturating_sub(before)) {
        return active.refuse_unread(Refusal::Overloaded);
    }
    let mut scanner = active.exchange.scanner(head).unwrap_or_default();
    let read = scan(&mut scanner, &whole, &mut Stint::default()).await;
    *body = vec![whole];
    match read.and_then(|()| scanner.finish()) {
        Ok(call) => ended(active, head, call, body, client).await,
        Err(fault) => active.refuse_unread(Refusal::Call(fault)),
    }
}

/// A call whose body is whole, and may be long.
async fn ended<D: Downstream>(
    active: &mut ActiveExchange,
    head: &RequestHead,
    call: &mut CallHead,
    body: &[Bytes],
    client: &mut D,
) -> Verdict {
    if is_long(body)
        && let Err(verdict) = beside::look_inside(active, call, body, client).await
    {
        return verdict;
    }
    active.tell(|exchange, env| exchange.end_body(head, Some(call), body, env))
}

#[cold]
fn faulty(active: &mut ActiveExchange, fault: BodyFault) -> Verdict {
    match fault {
        BodyFault::Gone => active.disconnected(),
        BodyFault::Head(fault) => active.refuse_unread(Refusal::Head(fault)),
        BodyFault::Framing(fault) => active.refuse_unread(Refusal::BodyFraming(fault)),
    }
}

/// Scans a piece, a long one with others served in between.
async fn scan(scanner: &mut CallScanner, piece: &[u8], stint: &mut Stint) -> Result<(), CallFault> {
    let mut rest = piece;
    while !rest.is_empty() {
        stint.pass().await;
        let (part, after) = rest.split_at(rest.len().min(STINT_BYTES));
        scanner.push(part)?;
        stint.add(part.len());
        rest = after;
    }
    Ok(())
}

/// The pieces of a body, in order.
#[derive(Default)]
struct Rope {
    pieces: Vec<Bytes>,
    /// Short pieces that came last.
    gathered: Vec<u8>,
}

impl Rope {
    fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn push(&mut self, piece: Bytes) {
        match self.pieces.is_empty() {
            // Most are one piece, for which there is room at once.
            true => self.pieces = vec![piece],
            false => self.push_more(piece),
        }
    }

    fn push_more(&mut self, piece: Bytes) {
        if piece.len() < SHORT_BYTES {
            self.gathered.extend_from_slice(&piece);
            if self.gathered.len() < GATHERED_BYTES {
                return;
            }
            return self.close();
        }
        self.close();
        self.pieces.push(piece);
    }

    fn close(&mut self) {
        if !self.gathered.is_empty() {
            self.pieces
                .push(Bytes::from(std::mem::take(&mut self.gathered)));
        }
    }

    fn into_pieces(mut self) -> Vec<Bytes> {
        self.close();
        self.pieces
    }
}

mod coded;
#[cfg(test)]
mod tests;
