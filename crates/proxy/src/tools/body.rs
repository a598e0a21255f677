//! The message of a request, read whole.
//!
//! Invariant: what is kept of it is counted among the bodies of the worker, and is no more than [`MESSAGE_BYTES_MAX`]; what a decoder may
//! keep is counted while it decodes.
//! Not here: what it says (`mcp::envelope`).

use policy::exchange::is_json;
use policy::refusal::Refusal;
use wire::encoding::{Coding, CodingFault};
use wire::head::{Known, RequestHead};

use crate::call::{Call, Stop, piece};
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::decoding::{Decoding, STEP_BYTES};
use crate::stint::Stint;

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
    let mut coded = match coding(head) {
        Ok(coding) => coding.map(Decoding::new),
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
    let (mut body, mut stint) = (Vec::new(), Stint::default());
    let (mut came, mut window) = (0, 0);
    while let Some(piece) = piece(call, client, deadline).await? {
        if let (0, Some(coded)) = (window, &coded) {
            window = coded.window;
            if !call.keep(window) {
                return Err(call.refuse(Refusal::Overloaded));
            }
        }
        came += piece.len();
        if came > most {
            return Err(call.refuse(too_large()));
        }
        let taken = match &mut coded {
            Some(coded) => decode(call, coded, &piece, most, &mut body, &mut stint).await,
            None => take(call, &piece, most, &mut body),
        };
        if let Err(refusal) = taken {
            return Err(call.refuse(refusal));
        }
        if worker.now() > until {
            return Err(call.refuse(Refusal::Slow));
        }
    }
    deadline.clear();
    if let Some(coded) = coded {
        call.keep_no_more(window);
        if let Err(fault) = coded.finish() {
            return Err(call.refuse(undecodable(fault)));
        }
    }
    Ok(body)
}

/// Keeps what is decoded.
fn take(call: &mut Call, piece: &[u8], most: usize, body: &mut Vec<u8>) -> Result<(), Refusal> {
    if body.len() + piece.len() > most {
        return Err(Refusal::BodyTooLarge { limit: most as u64 });
    }
    if !call.keep(piece.len()) {
        return Err(Refusal::Overloaded);
    }
    body.extend_from_slice(piece);
    Ok(())
}

/// Decodes a piece, and keeps what it decodes to.
async fn decode(
    call: &mut Call,
    coded: &mut Decoding,
    piece: &[u8],
    most: usize,
    body: &mut Vec<u8>,
    stint: &mut Stint,
) -> Result<(), Refusal> {
    coded.came += piece.len();
    for step in piece.chunks(STEP_BYTES) {
        let decoded = coded.step(step, stint).await.map_err(undecodable)?;
        take(call, &decoded, most, body)?;
    }
    Ok(())
}

fn undecodable(_: CodingFault) -> Refusal {
    Refusal::McpMessage {
        says: "the compressed message cannot be decoded".into(),
        number: mcp::envelope::Fault::NotJson.code(),
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
