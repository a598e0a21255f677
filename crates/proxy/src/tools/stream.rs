//! A server's answer as it goes to the client: one message, or a stream of events that ends with it.
//!
//! Invariant: a client is told the answer to its own request, and nothing after it; a stream that breaks off before that ends with an
//! error of JSON-RPC, so that nobody waits for an answer that does not come.
//! Not here: what a server's message means (`mcp::events`), answers that the gate itself asked for (`read`).

use mcp::events::{Said, said, write_event};
use mcp::reply;
use policy::attempt::Failure;
use policy::mcp::Server;
use policy::refusal::Refusal;
use wire::head::Known;
use wire::sse::DataReader;

use super::answer;
use super::ask::{Asker, Began, Failed, Form, form};
use super::call::{Call, Stop};
use super::join::while_there;
use super::read::{ANSWER_BYTES_MAX, next, whole};
use crate::client::{BodyLength, Downstream};
use crate::deadline::Deadline;

/// Where an answer comes from, and to which request.
pub(super) struct Answering<'a> {
    pub(super) server: &'a Server,
    /// Its place among all.
    pub(super) at: usize,
    /// The request's id, as written.
    pub(super) id: &'a [u8],
    /// The client takes events.
    pub(super) takes_events: bool,
    pub(super) has_session: bool,
}

/// Passes a server's answer on.
pub(super) async fn relay<D: Downstream>(
    call: &mut Call,
    of: &Answering<'_>,
    mut began: Began,
    client: &mut D,
) -> Result<(), Stop> {
    let (worker, view, id) = (call.worker.clone(), call.view.clone(), call.id.clone());
    let asker = Asker {
        worker: &worker,
        view: &view,
        id: &id,
    };
    let is_stream = match form(&began.response, of.has_session) {
        Ok(Form::Events) => true,
        Ok(Form::Json | Form::Taken) => false,
        Err(failed) => return Err(call.failed(&failed)),
    };
    if is_stream && of.takes_events {
        return events(call, asker, of, &mut began, client).await;
    }
    let status = began.response.head.as_ref().map_or(0, |head| head.status);
    let message = async {
        if is_stream {
            return super::read::answer(asker, of.server, of.id, &mut began, of.has_session).await;
        }
        let text = whole(asker, &mut began.response.body, began.timeouts).await?;
        match said(&text, &of.server.name, of.id) {
            Ok(Said::Answer(answer)) => Ok(answer.into_owned()),
            Ok(Said::Before { .. }) | Err(_) if status != 200 => {
                Err(Failed::Upstream(Failure::Status(status)))
            }
            Ok(Said::Before { .. }) => Err(Failed::Unusable(mcp::events::Unusable::NoMessage)),
            Err(unusable) => Err(Failed::Unusable(unusable)),
        }
    };
    match while_there(message, &worker, client).await? {
        Ok(message) => answer::message(call, client, &message, None).await,
        Err(failed) => Err(call.failed(&failed)),
    }
}

/// Passes events on as they come.
async fn events<D: Downstream>(
    call: &mut Call,
    asker: Asker<'_>,
    of: &Answering<'_>,
    began: &mut Began,
    client: &mut D,
) -> Result<(), Stop> {
    client.begin(200, BodyLength::Open);
    client.date();
    client.field(b"content-type", b"text/event-stream");
    client.field(b"cache-control", b"no-cache");
    client.field(b"x-accel-buffering", b"no");
    answer::finish_head(call, client, 200);
    call.facts.streamed = true;
    // The head leaves before anything comes.
    answer::sent(call, client, b"", false).await?;
    let mut deadline = Deadline::new(&asker.worker.clock.wheel);
    let mut reader = DataReader::new();
    let body = &mut began.response.body;
    loop {
        deadline.set(began.timeouts.idle);
        let (mut out, mut end, mut has_changed) = (Vec::new(), None, false);
        let take = |data: &[u8]| {
            reader.push(data, |event| {
                if end.is_some() || event.is_empty() {
                    return;
                }
                match said(event, &of.server.name, of.id) {
                    Ok(Said::Answer(answer)) => {
                        write_event(&answer, &mut out);
                        end = Some(Ok(()));
                    }
                    Ok(Said::Before {
                        text,
                        is_list_changed,
                    }) => {
                        has_changed |= is_list_changed;
                        write_event(&text, &mut out);
                    }
                    Err(unusable) => end = Some(Err(Failed::Unusable(unusable))),
                }
            });
            if out.is_empty() && end.is_none() {
                // It shows that it is there, and so does what stands between it and its client.
                out.extend_from_slice(b":\n\n");
            }
        };
        let read = next(asker, body, &mut deadline, take);
        let is_over = while_there(read, asker.worker, client).await?;
        if has_changed && let Some((_, tools)) = Call::config(asker.view) {
            tools.forget(of.at);
        }
        let end = end.or(match is_over {
            Ok(true) => Some(Err(Failed::Upstream(Failure::Reset))),
            Err(failure) => Some(Err(Failed::Upstream(failure))),
            Ok(false) if reader.held() > ANSWER_BYTES_MAX => Some(Err(Failed::TooLong)),
            Ok(false) => None,
        });
        match end {
            None => answer::sent(call, client, &out, false).await?,
            Some(Ok(())) => return answer::sent(call, client, &out, true).await,
            Some(Err(failed)) => {
                if out == b":\n\n" {
                    out.clear();
                }
                let refusal = failed.refusal();
                write_event(&error_of(&refusal, of.id), &mut out);
                answer::sent(call, client, &out, true).await?;
                // Its client was told; the record is of a failure.
                let _told = call.failed(&failed);
                return Ok(());
            }
        }
    }
}

/// An error that ends a stream.
fn error_of(refusal: &Refusal, id: &[u8]) -> Vec<u8> {
    let told = refusal.reply();
    reply::error(id, reply::INTERNAL, &told.message, told.code)
}

/// Whether a client takes events: unless it says that it takes other things alone.
pub(super) fn takes_events(head: &wire::head::RequestHead) -> bool {
    let mut said = head.fields.of(Known::Accept).peekable();
    if said.peek().is_none() {
        return true;
    }
    said.any(|line| {
        line.split(|b| *b == b',').any(|range| {
            let kind = range
                .split(|b| *b == b';')
                .next()
                .unwrap_or_default()
                .trim_ascii();
            [&b"text/event-stream"[..], b"text/*", b"*/*"]
                .iter()
                .any(|known| kind.eq_ignore_ascii_case(known))
        })
    })
}
