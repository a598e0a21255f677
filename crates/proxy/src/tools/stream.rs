//! A server's answer as it goes to the client: one message, or a stream of events that ends with it.
//!
//! Invariant: a client is told the answer to its own request, and nothing after it; a stream that breaks off before that ends with an
//! error of JSON-RPC, so that nobody waits for an answer that does not come.
//! Not here: what a server's message means (`mcp::events`), answers that the gate itself asked for (`read`).

use mcp::catalog::Kind;
use mcp::events::{Said, Speaker, said, write_event, write_place};
use mcp::place::{Of, Place};
use mcp::reply;
use policy::attempt::Failure;
use policy::mcp::{McpRoute, Prefix, Server};
use policy::refusal::Refusal;
use wire::head::Known;
use wire::sse::{DataReader, Whole};

use super::answer;
use super::ask::{Asker, Began, Failed, Form, form};
use super::call::{Call, Stop};
use super::join::while_there;
use super::read::{Held, next, whole};
use super::requests::may_see;
use crate::client::{BodyLength, Downstream};
use crate::deadline::Deadline;

/// Where an answer comes from, and to which request.
pub(super) struct Answering<'a> {
    pub(super) server: &'a Server,
    /// The rule of its client.
    pub(super) rule: &'a McpRoute,
    /// The id of its client's session.
    pub(super) session: &'a [u8],
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
        match said(&text, speaker(asker, of.server), of.id) {
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

/// Begins a stream of events.
pub(super) async fn begin<D: Downstream>(call: &mut Call, client: &mut D) -> Result<(), Stop> {
    client.begin(200, BodyLength::Open);
    client.date();
    client.field(b"content-type", b"text/event-stream");
    client.field(b"cache-control", b"no-cache");
    client.field(b"x-accel-buffering", b"no");
    answer::finish_head(call, client, 200);
    call.facts.streamed = true;
    // The head leaves before anything comes.
    answer::sent(call, client, b"", false).await
}

/// What says that a stream is there, and keeps what stands between from ending it.
pub(super) const QUIET: &[u8] = b":\n\n";

/// Passes events on as they come.
async fn events<D: Downstream>(
    call: &mut Call,
    asker: Asker<'_>,
    of: &Answering<'_>,
    began: &mut Began,
    client: &mut D,
) -> Result<(), Stop> {
    begin(call, client).await?;
    let mut deadline = Deadline::new(&asker.worker.clock.wheel);
    let mut passing = Passing {
        of,
        asker,
        place: Place::new(Of::Call),
        out: Vec::new(),
        end: None,
    };
    let (mut reader, mut held) = (DataReader::new(), Held::new(asker));
    let body = &mut began.response.body;
    loop {
        deadline.set(began.timeouts.idle);
        passing.out.clear();
        let take = |data: &[u8]| reader.push_whole(data, |event| passing.take(event));
        let read = next(asker, body, &mut deadline, take);
        let is_over = while_there(read, asker.worker, client).await?;
        let can_be_taken_up = !passing.place.last.is_empty();
        let end = passing.end.take().or(match is_over {
            // It is to be asked for its rest.
            Ok(true) if can_be_taken_up => Some(Ok(())),
            Ok(true) => Some(Err(Failed::Upstream(Failure::Reset))),
            Err(failure) => Some(Err(Failed::Upstream(failure))),
            Ok(false) => held.is_now(reader.held()).err().map(Err),
        });
        let mut out = std::mem::take(&mut passing.out);
        match end {
            None if out.is_empty() => answer::sent(call, client, QUIET, false).await?,
            None => answer::sent(call, client, &out, false).await?,
            Some(Ok(())) => return answer::sent(call, client, &out, true).await,
            Some(Err(failed)) => {
                let refusal = failed.refusal();
                write_event(&error_of(&refusal, of.id), None, &mut out);
                answer::sent(call, client, &out, true).await?;
                // Its client was told; the record is of a failure.
                let _told = call.failed(&failed);
                return Ok(());
            }
        }
        passing.out = out;
    }
}

/// The events of one answer on their way.
struct Passing<'a> {
    of: &'a Answering<'a>,
    asker: Asker<'a>,
    place: Place,
    /// What the client is sent.
    out: Vec<u8>,
    end: Option<Result<(), Failed>>,
}

impl Passing<'_> {
    fn take(&mut self, event: Whole<'_>) {
        if self.end.is_some() {
            return;
        }
        let server = self.of.server;
        let is_place = event
            .id
            .is_some_and(|id| self.place.move_to(&server.name, id));
        let id = if is_place { self.id() } else { None };
        let Some(data) = event.data.filter(|data| !data.is_empty()) else {
            if id.is_some() || event.retry_ms.is_some() {
                write_place(id.as_deref(), event.retry_ms, &mut self.out);
            }
            return;
        };
        match said(&data, speaker(self.asker, server), self.of.id) {
            Ok(Said::Answer(answer)) => {
                write_event(&answer, id.as_deref(), &mut self.out);
                self.end = Some(Ok(()));
            }
            Ok(before) => {
                pass_on(before, (self.of.rule, server), id.as_deref(), &mut self.out);
            }
            Err(unusable) => self.end = Some(Err(Failed::Unusable(unusable))),
        }
    }

    fn id(&self) -> Option<String> {
        let (_, tools) = Call::config(self.asker.view)?;
        self.place.write(&tools.sealer, self.of.session)
    }
}

/// How what a server says of its things is shown.
pub(super) fn speaker<'s>(asker: Asker<'_>, server: &'s Server) -> Speaker<'s> {
    let prefix = Call::config(asker.view).map(|(config, _)| config.prefix);
    Speaker {
        name: &server.name,
        is_prefixed: prefix == Some(Prefix::Always),
    }
}

/// Writes what a server said for a client that may hear of it.
pub(super) fn pass_on(
    said: Said<'_>,
    (rule, server): (&McpRoute, &Server),
    id: Option<&str>,
    out: &mut Vec<u8>,
) {
    match said {
        Said::Answer(text) => write_event(&text, id, out),
        Said::Before {
            text,
            is_list_changed,
            updated,
        } => {
            if is_list_changed {
                server.changes.tell();
            }
            let may_hear = |uri: Box<str>| may_see(rule, server, Kind::Resources, &uri);
            if updated.is_none_or(may_hear) {
                write_event(&text, id, out);
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
