//! What a client is answered: a document whole, a file as it comes, or why it was refused.
//!
//! Not here: what is in them (`super`).

use std::rc::Rc;

use policy::attempt::Failure;
use policy::refusal::Refusal;
use wire::head::{Known, RequestHead};

use super::send::whole;
use crate::call::{Call, Stop, sent, while_there};
use crate::client::{BodyLength, Downstream};
use crate::deadline::Deadline;
use crate::reply::{self, RateLimitStatus};
use crate::tools::{Asker, Began, Failed, next};
use crate::worker::Untaken;

/// What a file is of which nothing better is known: no page shows it.
const BYTES: &[u8] = b"application/octet-stream";

/// Answers with a document.
pub(super) async fn told<D: Downstream>(
    call: &mut Call,
    status: u16,
    body: &[u8],
    client: &mut D,
) -> Result<(), Stop> {
    let bytes = Some(body.len()).filter(|bytes| *bytes > reply::PIECE_BYTES);
    let Some(_untaken) = Untaken::new(&call.worker, bytes.unwrap_or_default()) else {
        return Err(call.refuse(Refusal::AnswersUntaken));
    };
    client.begin(status, BodyLength::Length(body.len() as u64));
    client.date();
    client.field(b"content-type", b"application/json");
    call.head_ends(client, status);
    sent(call, client, body, true).await
}

/// Passes a file, or a result, as it comes; an error whole.
pub(super) async fn streamed<D: Downstream>(
    call: &mut Call,
    mut began: Began,
    client: &mut D,
) -> Result<(), Stop> {
    let Some(head) = began.response.head.as_ref() else {
        return Err(call.failed(&Failed::Bug));
    };
    if !(200..300).contains(&head.status) {
        let (status, body) = whole(call, began, client).await?;
        return told(call, status, &body, client).await;
    }
    let length = began.response.body.length(head);
    let kind = head.fields.only(Known::ContentType).ok().flatten();
    let is_text = kind.is_some_and(|kind| {
        let kind = kind.split(|b| *b == b';').next().unwrap_or_default();
        let known: [&[u8]; 3] = [
            b"application/json",
            b"application/x-jsonl",
            b"application/jsonl",
        ];
        known
            .iter()
            .any(|of| kind.trim_ascii().eq_ignore_ascii_case(of))
    });
    let kind = kind.filter(|_| is_text).unwrap_or(BYTES);
    client.begin(
        head.status,
        length.map_or(BodyLength::Open, BodyLength::Length),
    );
    client.date();
    client.field(b"content-type", kind);
    client.field(b"x-content-type-options", b"nosniff");
    let status = head.status;
    call.head_ends(client, status);
    let (worker, view, id) = (
        Rc::clone(&call.worker),
        Rc::clone(&call.view),
        call.id.clone(),
    );
    let asker = Asker {
        worker: &worker,
        view: &view,
        id: &id,
        caller: None,
        own: &[],
    };
    let mut deadline = Deadline::new(&worker.clock.wheel);
    loop {
        deadline.set(began.timeouts.idle);
        let mut piece = Vec::new();
        let take = |data: &[u8]| piece.extend_from_slice(data);
        let reading = next(asker, &mut began.response.body, &mut deadline, take);
        match while_there(reading, &worker, client).await? {
            Ok(true) => return sent(call, client, &piece, true).await,
            Ok(false) => sent(call, client, &piece, false).await?,
            Err(failure) => {
                client.cut();
                let failed = Failed::Upstream(match failure {
                    Failure::FirstByteTimeout => Failure::FirstByteTimeout,
                    _ => Failure::Reset,
                });
                call.failed(&failed);
                // Its client saw it break: nothing more can be said.
                let _said = call.refusal();
                return Ok(());
            }
        }
    }
}

/// Says why it was refused.
pub(super) async fn refused<D: Downstream>(call: &mut Call, head: &RequestHead, client: &mut D) {
    let Some(refusal) = call.refusal() else {
        return;
    };
    let told = refusal.reply();
    let worker = Rc::clone(&call.worker);
    let patience = call.patience(&worker);
    let (limits, id) = (RateLimitStatus::default(), call.id.clone());
    call.facts.status = told.status;
    let sent = {
        let cors = call.cors();
        reply::refuse(client, &told, head, &id, &limits, &cors, patience).await
    };
    // Whoever is gone is told nothing, and the record says why it was refused.
    if let Ok(bytes) = sent {
        call.facts.bytes_out += bytes;
    }
}
