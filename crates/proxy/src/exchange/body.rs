//! The request body, read whole before anything is decided of the call.
//!
//! Invariant: what is kept of a body grows with what has arrived of it, whatever length was declared, within what
//! the worker may keep of all; who will be refused anyway is refused when the gate would first wait for the body;
//! scanning lets others run.
//! Not here: framing (`downstream`), what the members mean (`wire::call`, `policy`).

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use policy::exchange::Opened;
use policy::refusal::Refusal;
use policy::snapshot::Bounds;
use wire::call::{CallFault, CallHead, CallScanner};

use super::Stop;
use super::open::Open;
use crate::deadline::Deadline;
use crate::downstream::{BodyFault, Downstream};
use crate::stint::{STINT_BYTES, Stint};

/// Below this rate, after the time that it may be silent, a body is refused.
const SLOWEST_BYTES_A_SECOND: u64 = 1 << 10;
/// Shorter pieces after the first are gathered, as each piece has a cost of its own.
const SHORT_BYTES: usize = 1 << 10;
/// The most that is gathered into one piece.
const GATHERED_BYTES: usize = 64 << 10;

/// Reads the request body to its end, within its bounds, looking at it as it comes.
pub(super) async fn read<D: Downstream>(
    open: &mut Open,
    opened: Opened,
    client: &mut D,
    deadline: &mut Deadline,
    bounds: &Bounds,
) -> Result<(Vec<Bytes>, Option<CallHead>), Stop> {
    let mut scanner = opened.operation.reads_body().then(CallScanner::new);
    let mut rope = Rope::default();
    let mut stint = Stint::default();
    let mut has_waited = false;
    let mut has_looked = client.awaits_continue();
    let worker = Rc::clone(&open.worker);
    if has_looked {
        look(open, opened)?;
    }
    deadline.set(bounds.body_idle.min(bounds.body_time));
    loop {
        let piece = poll_fn(|cx| match client.poll_body(&worker, cx) {
            Poll::Ready(Ok(piece)) => Poll::Ready(Ok(piece)),
            Poll::Ready(Err(BodyFault::Gone)) => Poll::Ready(Err(Stop::Gone)),
            Poll::Ready(Err(BodyFault::Head(fault))) => {
                Poll::Ready(Err(Refusal::Head(fault).into()))
            }
            Poll::Ready(Err(BodyFault::Framing(fault))) => {
                Poll::Ready(Err(Refusal::BodyFraming(fault).into()))
            }
            Poll::Pending => {
                has_waited = true;
                if !std::mem::replace(&mut has_looked, true) {
                    look(open, opened)?;
                }
                deadline.poll(cx).map(|()| Err(Refusal::Slow.into()))
            }
        })
        .await?;
        let Some(piece) = piece else { break };
        open.record.bytes_in += piece.len() as u64;
        if open.record.bytes_in > bounds.body_bytes {
            return Err(Refusal::BodyTooLarge {
                limit: bounds.body_bytes,
            }
            .into());
        }
        if !worker.keep_body(piece.len(), bounds.bodies_bytes) {
            return Err(Refusal::Overloaded.into());
        }
        open.kept += piece.len();
        if let Some(scanner) = &mut scanner {
            let scanned = if stint.takes(piece.len()) {
                scanner.push(&piece)
            } else {
                // Boxed: rare, and its state would make every exchange larger.
                Box::pin(scan(scanner, &piece, &mut stint)).await
            };
            scanned.map_err(Refusal::Call)?;
        }
        let is_first = rope.is_empty();
        rope.push(piece);
        let mut left = bounds.body_time;
        if !is_first {
            if !std::mem::replace(&mut has_looked, true) {
                look(open, opened)?;
            }
            let taken = worker.now().since(open.began);
            let earned = Duration::from_secs(open.record.bytes_in / SLOWEST_BYTES_A_SECOND);
            if taken > (bounds.body_idle + earned).min(bounds.body_time) {
                return Err(Refusal::Slow.into());
            }
            left = left.saturating_sub(taken);
        }
        deadline.set(bounds.body_idle.min(left));
    }
    open.request_read(has_waited);
    let call = scanner
        .as_mut()
        .map(CallScanner::finish)
        .transpose()
        .map_err(Refusal::Call)?;
    Ok((rope.into_pieces(), call))
}

/// Refuses a call that will be refused whatever its body says.
#[cold]
fn look(open: &mut Open, opened: Opened) -> Result<(), Stop> {
    let (now, unix_ms) = (open.worker.now(), open.record.started_unix_ms);
    match policy::exchange::look(opened, now, unix_ms, &open.view.snapshot) {
        None => Ok(()),
        Some((route, refusal)) => {
            open.record.route = Some(route);
            Err(refusal.into())
        }
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
        if self.pieces.is_empty() {
            self.pieces.push(piece);
            return;
        }
        self.push_more(piece);
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

#[cfg(test)]
mod tests;
