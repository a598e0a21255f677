//! A server's answer as it goes to the client: one message, or a stream of events that ends with it.
//!
//! Invariant: a client is told the answer to its own request, and nothing after it; a stream that breaks off before that ends with an
//! error of JSON-RPC, so that nobody waits for an answer that does not come.
//! Not here: what a server's message means (`mcp::events`), answers that the gate itself asked for (`read`).

use std::borrow::Cow;
use std::time::Duration;

use mcp::bridge::{Legacy, Needs, told_legacy, told_modern, with_id};
use mcp::client::Can;
use mcp::events::{Asks, Said, Speaker, said, write_event, write_place};
use mcp::modern::Level;
use mcp::place::{Of, Place};
use mcp::reply;
use mcp::session::{NONCE_BYTES, OpenServer, StateOf};
use policy::attempt::Failure;
use policy::mcp::{McpRoute, Prefix, Server};
use policy::refusal::Refusal;
use wire::head::Known;
use wire::sse::{DataReader, Whole};

use super::answer;
use super::ask::{Asker, Began, Failed, Form, form};
use super::filters::may_hear;
use super::open;
use super::read::{Held, next, whole};
use super::tasks::ShownAs;
use super::{Arrived, asker, session_id};
use crate::call::{Call, Stop, while_there};
use crate::client::{BodyLength, Downstream};
use crate::deadline::Deadline;

/// Where an answer comes from, and to which request.
pub(super) struct Answering<'a> {
    pub(super) server: &'a Server,
    /// The rule of its client.
    pub(super) rule: &'a McpRoute,
    /// The request, which says its client's session.
    pub(super) arrived: &'a Arrived<'a>,
    /// The request's id, as written.
    pub(super) id: &'a [u8],
    /// The id under which the server was asked.
    pub(super) sent_id: Vec<u8>,
    /// The client takes events.
    pub(super) takes_events: bool,
    pub(super) has_session: bool,
    /// What is open at the server.
    pub(super) open: OpenServer,
    /// What its client can be asked, where that has a session.
    pub(super) can: Can,
    /// Its client has no session.
    pub(super) is_modern: bool,
    /// Which log messages such a client wants.
    pub(super) log_level: Option<Level>,
    /// The answer says how long it may be kept.
    pub(super) is_read: bool,
    /// Every caller is shown the same.
    pub(super) is_for_all: bool,
    /// What a server's state is bound to.
    pub(super) state: Option<StateOf>,
    /// How the id of a task is shown.
    pub(super) task: ShownAs,
}

/// An answer, for its client.
enum ForClient<'a> {
    Answer(Cow<'a, [u8]>),
    /// The client has to be asked before.
    Needs(Needs),
}

impl Answering<'_> {
    /// A server's answer as its client is told it.
    fn told<'t>(&self, asker: Asker<'_>, answer: Cow<'t, [u8]>) -> Result<ForClient<'t>, Failed> {
        let answer = if self.sent_id == self.id {
            answer
        } else {
            Cow::Owned(with_id(&answer, self.id).map_err(Failed::Unusable)?)
        };
        if self.is_modern {
            let seal = |state: &str| self.sealed(asker, state, self.state.as_ref()?);
            let (is_read, is_for_all) = (self.is_read, self.is_for_all);
            let told = self.with_task(asker, |task| {
                told_modern(&answer, is_read, is_for_all, seal, task)
            });
            let told = match told.map_err(Failed::Unusable)? {
                Cow::Borrowed(_) => None,
                Cow::Owned(told) => Some(told),
            };
            return Ok(ForClient::Answer(told.map_or(answer, Cow::Owned)));
        }
        if !self.open.version.is_modern() {
            return Ok(ForClient::Answer(answer));
        }
        match told_legacy(&answer).map_err(Failed::Unusable)? {
            Legacy::Answer => Ok(ForClient::Answer(answer)),
            Legacy::Needs(needs) => Ok(ForClient::Needs(needs)),
            Legacy::Unknown(kind) => Err(Failed::NotBridged(
                format!(
                    "the server {} answered with the result `{kind}`, which clients with a session do not know",
                    self.server.name
                )
                .into(),
            )),
        }
    }

    /// What a server gave, sealed for its caller.
    pub(super) fn sealed(&self, asker: Asker<'_>, state: &str, of: &StateOf) -> Option<String> {
        let (_, tools) = Call::config(asker.view)?;
        let unix_s = asker.worker.clock.wall_ms(asker.worker.now()) / 1000;
        let mut nonce = [0; NONCE_BYTES];
        let chance = rustls::crypto::ring::default_provider().secure_random;
        chance.fill(&mut nonce).ok()?;
        tools.sealer.seal_state(state, of, unix_s, nonce)
    }

    /// Whether its client is told what a server says before it answers.
    fn may_hear(&self, said: &Said<'_>) -> bool {
        let Said::Before {
            asks,
            log,
            is_list_changed,
            updated,
            ..
        } = said
        else {
            return true;
        };
        if asks.is_some() && (self.is_modern || self.open.version.is_modern()) {
            return false;
        }
        if !self.is_modern {
            return true;
        }
        // What is not about its request it hears of where it listens.
        match log {
            Some(level) => self
                .log_level
                .is_some_and(|least| level.is_none_or(|level| level >= least)),
            None => !is_list_changed && updated.is_none(),
        }
    }
}

/// Passes a server's answer on; what the server wants to know before, where it does.
pub(super) async fn relay<D: Downstream>(
    call: &mut Call,
    of: &Answering<'_>,
    mut began: Began,
    client: &mut D,
) -> Result<Option<Needs>, Stop> {
    let (worker, view, id) = (call.worker.clone(), call.view.clone(), call.id.clone());
    let asker = asker(&worker, &view, &id);
    let is_stream = match form(&began.response, of.has_session) {
        Ok(Form::Events) => true,
        Ok(Form::Json | Form::Taken) => false,
        Err(failed) => return Err(broken(call, of, failed, client).await?),
    };
    if is_stream && of.takes_events {
        return events(call, asker, of, &mut began, client).await;
    }
    let status = began.response.head.as_ref().map_or(0, |head| head.status);
    let message = async {
        if is_stream {
            return super::read::answer(asker, of.server, &of.sent_id, &mut began, of.has_session)
                .await;
        }
        let text = whole(asker, &mut began.response.body, began.timeouts).await?;
        match said(&text, speaker(asker, of.server), &of.sent_id) {
            Ok(Said::Answer(answer)) => Ok(answer.into_owned()),
            Ok(Said::Before { .. }) | Err(_) if status != 200 => {
                Err(Failed::Upstream(Failure::Status(status)))
            }
            Ok(Said::Before { .. }) => Err(Failed::Unusable(mcp::events::Unusable::NoMessage)),
            Err(unusable) => Err(Failed::Unusable(unusable)),
        }
    };
    let message = while_there(message, &worker, client).await?;
    let told = message.and_then(|message| of.told(asker, Cow::Owned(message)));
    match told {
        Ok(ForClient::Answer(message)) if call.facts.streamed => {
            let mut out = Vec::new();
            write_event(&message, None, &mut out);
            answer::sent(call, client, &out, true).await?;
            Ok(None)
        }
        Ok(ForClient::Answer(message)) => {
            answer::message(call, client, &message, None).await?;
            Ok(None)
        }
        Ok(ForClient::Needs(needs)) => Ok(Some(needs)),
        Err(failed) => Err(broken(call, of, failed, client).await?),
    }
}

/// No answer came: its client is told so, on its stream where that has begun.
pub(super) async fn broken<D: Downstream>(
    call: &mut Call,
    of: &Answering<'_>,
    failed: Failed,
    client: &mut D,
) -> Result<Stop, Stop> {
    if call.facts.streamed {
        end_with(call, of, &failed.refusal(), Vec::new(), client).await?;
        call.failed(&failed);
        return Ok(Stop::Told);
    }
    Ok(call.failed(&failed))
}

/// The same, of the gate's own.
pub(super) async fn refused<D: Downstream>(
    call: &mut Call,
    of: &Answering<'_>,
    refusal: Refusal,
    client: &mut D,
) -> Result<Stop, Stop> {
    if call.facts.streamed {
        end_with(call, of, &refusal, Vec::new(), client).await?;
        call.fail(refusal);
        return Ok(Stop::Told);
    }
    Ok(call.fail(refusal))
}

/// Ends a stream with an error, after what else is still to be sent.
async fn end_with<D: Downstream>(
    call: &mut Call,
    of: &Answering<'_>,
    refusal: &Refusal,
    mut out: Vec<u8>,
    client: &mut D,
) -> Result<(), Stop> {
    write_event(&error_of(refusal, of.id), None, &mut out);
    answer::sent(call, client, &out, true).await
}

/// Begins a stream of events.
pub(super) async fn begin<D: Downstream>(call: &mut Call, client: &mut D) -> Result<(), Stop> {
    if call.facts.streamed {
        return Ok(());
    }
    client.begin(200, BodyLength::Open);
    client.date();
    client.field(b"content-type", b"text/event-stream");
    client.field(b"cache-control", b"no-cache");
    client.field(b"x-accel-buffering", b"no");
    call.head_ends(client, 200);
    call.facts.streamed = true;
    // The head leaves before anything comes.
    answer::sent(call, client, b"", false).await
}

/// How often a stream on which nothing is said shows that it is there.
pub(super) const QUIET_EVERY: Duration = Duration::from_secs(25);
/// What says that a stream is there, and keeps what stands between from ending it.
pub(super) const QUIET: &[u8] = b":\n\n";

/// Passes events on as they come.
async fn events<D: Downstream>(
    call: &mut Call,
    asker: Asker<'_>,
    of: &Answering<'_>,
    began: &mut Began,
    client: &mut D,
) -> Result<Option<Needs>, Stop> {
    begin(call, client).await?;
    let mut deadline = Deadline::new(&asker.worker.clock.wheel);
    let mut passing = Passing {
        of,
        asker,
        place: Place::new(Of::Call(of.id.into())),
        out: Vec::new(),
        asks: Vec::new(),
        needs: None,
        end: None,
    };
    let (mut reader, mut held) = (DataReader::new(), Held::new(asker));
    let body = &mut began.response.body;
    loop {
        deadline.set(began.timeouts.idle);
        passing.out.clear();
        let caller = &*call;
        let may_hear = |own: &str| may_hear(caller, of.arrived, of.rule, (of.server, own));
        let take = |data: &[u8]| reader.push_whole(data, |event| passing.take(event, &may_hear));
        let read = next(asker, body, &mut deadline, take);
        let is_over = while_there(read, asker.worker, client).await?;
        answer_server(
            asker,
            (of.server, &of.open),
            std::mem::take(&mut passing.asks),
            client,
        )
        .await?;
        let can_be_taken_up = !of.is_modern && !passing.place.last.is_empty();
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
            Some(Ok(())) => {
                let needs = passing.needs.take();
                answer::sent(call, client, &out, needs.is_none()).await?;
                return Ok(needs);
            }
            Some(Err(failed)) => {
                end_with(
                    call,
                    of,
                    &failed.refusal(),
                    std::mem::take(&mut out),
                    client,
                )
                .await?;
                // Its client was told; the record is of a failure.
                let _told = call.failed(&failed);
                return Err(Stop::Told);
            }
        }
        passing.out = out;
    }
}

/// Answers what a server asks a caller that nobody can ask: that it is there, or that it does nothing of that.
pub(super) async fn answer_server<D: Downstream>(
    asker: Asker<'_>,
    (server, open): (&Server, &OpenServer),
    asks: Vec<Asks>,
    client: &mut D,
) -> Result<(), Stop> {
    let Some((config, _)) = Call::config(asker.view).filter(|_| !asks.is_empty()) else {
        return Ok(());
    };
    for asked in asks {
        let message = if asked.is_ping {
            reply::result(&asked.id, b"{}")
        } else {
            let says = "a client without a session cannot be asked while its request is served";
            reply::error(&asked.id, reply::METHOD_NOT_FOUND, says, "mcp_not_bridged")
        };
        let telling = open::tell(asker, config, (server, open), message);
        while_there(telling, asker.worker, client).await?;
    }
    Ok(())
}

/// The events of one answer on their way.
struct Passing<'a> {
    of: &'a Answering<'a>,
    asker: Asker<'a>,
    place: Place,
    /// What the client is sent.
    out: Vec<u8>,
    /// What the server asks that nobody else answers.
    asks: Vec<Asks>,
    /// What it wants to know before it answers.
    needs: Option<Needs>,
    end: Option<Result<(), Failed>>,
}

impl Passing<'_> {
    fn take(&mut self, event: Whole<'_>, may_hear: &dyn Fn(&str) -> bool) {
        if self.end.is_some() {
            return;
        }
        let server = self.of.server;
        // Without a session no stream is taken up again, at either end.
        let is_place = !self.of.is_modern
            && !self.of.open.version.is_modern()
            && event
                .id
                .is_some_and(|id| self.place.move_to(&server.name, id));
        let id = if is_place { self.id() } else { None };
        let Some(data) = event.data.filter(|data| !data.is_empty()) else {
            if id.is_some() || event.retry_ms.is_some() && !self.of.is_modern {
                write_place(id.as_deref(), event.retry_ms, &mut self.out);
            }
            return;
        };
        match said(&data, speaker(self.asker, server), &self.of.sent_id) {
            Ok(Said::Answer(answer)) => match self.of.told(self.asker, answer) {
                Ok(ForClient::Answer(answer)) => {
                    write_event(&answer, id.as_deref(), &mut self.out);
                    self.end = Some(Ok(()));
                }
                Ok(ForClient::Needs(needs)) => {
                    self.needs = Some(needs);
                    self.end = Some(Ok(()));
                }
                Err(failed) => self.end = Some(Err(failed)),
            },
            Ok(before) if self.of.may_hear(&before) => {
                pass_on(before, (server, may_hear), id.as_deref(), &mut self.out);
            }
            Ok(Said::Before {
                asks,
                is_list_changed,
                ..
            }) => {
                if is_list_changed {
                    server.changes.tell();
                }
                self.asks
                    .extend(asks.filter(|_| !self.of.open.version.is_modern()));
            }
            Err(unusable) => self.end = Some(Err(Failed::Unusable(unusable))),
        }
    }

    fn id(&self) -> Option<String> {
        let (_, tools) = Call::config(self.asker.view)?;
        self.place
            .write(&tools.sealer, session_id(self.of.arrived.head))
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
    (server, may_hear): (&Server, &dyn Fn(&str) -> bool),
    id: Option<&str>,
    out: &mut Vec<u8>,
) {
    match said {
        Said::Answer(text) => write_event(&text, id, out),
        Said::Before {
            text,
            is_list_changed,
            updated,
            ..
        } => {
            if is_list_changed {
                server.changes.tell();
            }
            if updated.is_none_or(|own| may_hear(&own)) {
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
