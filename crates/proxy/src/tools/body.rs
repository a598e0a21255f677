//! The message of a request, read whole.
//!
//! Invariant: no more is kept of it than has come, within what the worker may keep of all, and [`MESSAGE_BYTES_MAX`] of what it
//! decodes to.
//! Not here: what it says (`mcp::envelope`).

use std::future::poll_fn;
use std::task::Poll;

use policy::exchange::is_json;
use policy::refusal::Refusal;
use wire::encoding::{Coding, Decoder};
use wire::head::{Known, RequestHead};

use super::call::{Call, Stop};
use crate::client::{BodyFault, Downstream};
use crate::deadline::Deadline;

/// Most bytes of a message: it is scanned in one go.
pub(super) const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Reads it.
pub(super) async fn read<D: Downstream>(
    call: &mut Call,
    head: &RequestHead,
    length: Option<u64>,
    client: &mut D,
    deadline: &mut Deadline,
) -> Result<Vec<u8>, Stop> {
    let coding = match coding(head) {
        Ok(coding) => coding,
        Err(refusal) => return Err(call.refuse(refusal)),
    };
    let bounds = call.view.snapshot().bounds;
    let most = usize::try_from(bounds.body_bytes).unwrap_or(usize::MAX);
    let most = most.min(MESSAGE_BYTES_MAX);
    let too_large = || Refusal::BodyTooLarge { limit: most as u64 };
    if length.is_some_and(|length| length > most as u64) {
        return Err(call.refuse(too_large()));
    }
    let worker = call.worker.clone();
    let until = worker.now().after(bounds.body_time);
    let mut body = Vec::new();
    loop {
        deadline.set(bounds.body_idle);
        let piece = poll_fn(|cx| match client.poll_body(&worker.buffers, cx) {
            Poll::Ready(Ok(piece)) => Poll::Ready(Ok(piece)),
            Poll::Ready(Err(BodyFault::Gone)) => Poll::Ready(Err(None)),
            Poll::Ready(Err(BodyFault::Head(fault))) => {
                Poll::Ready(Err(Some(Refusal::Head(fault))))
            }
            Poll::Ready(Err(BodyFault::Framing(fault))) => {
                Poll::Ready(Err(Some(Refusal::BodyFraming(fault))))
            }
            Poll::Pending => deadline.poll(cx).map(|()| Err(Some(Refusal::Slow))),
        });
        let piece = match piece.await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(Some(refusal)) => return Err(call.refuse(refusal)),
            Err(None) => return Err(Stop::Gone),
        };
        if body.len() + piece.len() > most {
            return Err(call.refuse(too_large()));
        }
        if !call.keep(piece.len()) {
            return Err(call.refuse(Refusal::Overloaded));
        }
        body.extend_from_slice(&piece);
        if worker.now() > until {
            return Err(call.refuse(Refusal::Slow));
        }
    }
    deadline.clear();
    let Some(coding) = coding else {
        return Ok(body);
    };
    match decoded(coding, &body, most) {
        Ok(Some(decoded)) => Ok(decoded),
        Ok(None) => Err(call.refuse(too_large())),
        Err(refusal) => Err(call.refuse(refusal)),
    }
}

/// How it is coded, where it is; why it cannot be read.
fn coding(head: &RequestHead) -> Result<Option<Coding>, Refusal> {
    let kind = head.fields.only(Known::ContentType);
    if !kind.is_ok_and(|kind| kind.is_some_and(is_json)) {
        return Err(Refusal::ContentType);
    }
    let coding = head.fields.only(Known::ContentEncoding);
    match coding.map_err(|_| Refusal::ContentEncoding)? {
        None => Ok(None),
        Some(value) if value.eq_ignore_ascii_case(b"identity") => Ok(None),
        Some(value) => Coding::of(value).map(Some).ok_or(Refusal::ContentEncoding),
    }
}

/// What it decodes to; `None` where that is too much.
fn decoded(coding: Coding, body: &[u8], most: usize) -> Result<Option<Vec<u8>>, Refusal> {
    let (mut decoder, mut out) = (Decoder::new(coding), Vec::new());
    let fault = |_| Refusal::McpMessage {
        says: "the compressed message cannot be decoded".into(),
        number: mcp::envelope::Fault::NotJson.code(),
    };
    for step in body.chunks(64 << 10) {
        decoder
            .push(step, |piece| out.extend_from_slice(piece))
            .map_err(fault)?;
        if out.len() > most {
            return Ok(None);
        }
    }
    decoder.finish().map_err(fault)?;
    Ok((out.len() <= most).then_some(out))
}
