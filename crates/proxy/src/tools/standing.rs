//! A client's standing stream (`GET`): what its servers say outside calls, and the rest of a stream that broke off.
//!
//! Each server has a lane of its own that opens its stream, reads it, and opens it again where it ended; the lanes meet in the one
//! stream of the client. Where a stream of a call is taken up again, there is one lane, and it is not opened a second time.
//! Invariant: what a server says is shown as on the stream of a call; no server waits for another one.
//! Not here: what is said (`mcp::events`), where a stream is taken up (`mcp::place`).

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use mcp::discover::{own_params, own_params_of_tasks};
use mcp::events::{said, told, write_place};
use mcp::handshake::Abilities;
use mcp::listen::{ACKNOWLEDGED, Filter, method_of};
use mcp::place::{Of, Place};
use mcp::session::{OpenServer, Session};
use policy::attempt::Failure;
use policy::mcp::Server;
use policy::refusal::Refusal;
use wire::head::{Known, Method};
use wire::sse::{DataReader, Whole};

use super::again::Again;
use super::ask::{Asker, Began, Failed, Form, Request, Says, form};
use super::read::{Held, next, request};
use super::rule::rule;
use super::still::Still;
use super::stream::{QUIET, QUIET_EVERY, begin, pass_on, speaker};
use super::{Arrived, admitted, answer, asker, of_client, session_id, session_of, unix_s, within};
use crate::call::{Call, OUT_OF_ORDER, Stop, while_there};
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::timers::Timers;

/// What a request that no such stream is for is told.
const NO_STREAM: &str = "POST, DELETE";

/// Serves one.
pub(super) async fn serve<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let session = session_of(call, arrived.head)?;
    let session_id = session_id(arrived.head);
    admitted(call, arrived, "GET", None, false, client).await?;
    let view = Rc::clone(&call.view);
    let (Some((config, tools)), Some(record)) = (Call::config(&view), call.record()) else {
        return Err(call.refuse(OUT_OF_ORDER));
    };
    let Ok((_, rule, _)) = rule(record, &view) else {
        return Err(call.refuse(Refusal::McpRouteNotFound));
    };
    let place = match arrived.head.fields.only(Known::LastEventId) {
        Ok(None) => Some(Place::new(Of::Session)),
        Ok(Some(id)) => Place::read(id, &tools.sealer, session_id),
        Err(_) => None,
    };
    let Some(place) = place else {
        return Err(call.refuse(Refusal::McpMessage {
            says: "`last-event-id` is of no stream of this session".into(),
            number: mcp::reply::REFUSED,
        }));
    };
    let (worker, call_id) = (call.worker.clone(), call.id.clone());
    let asker = asker(&worker, &view, &call_id);
    let servers: Vec<&Server> = config.servers_of(rule).collect();
    let is_call = place.request().is_some();
    let of = of_client(call, arrived.head, &session);
    // One without sessions may be listened to later.
    let may_come = !is_call
        && session
            .servers
            .iter()
            .any(|open| open.version.is_modern() && open.abilities.has(Abilities::SUBSCRIPTIONS));
    let mut changes = may_come.then(|| config.held.changes(of));
    let wanted = |open: &OpenServer| {
        if !open.version.is_modern() {
            // The rest of a call is one server's.
            let is_its = !is_call || place.of_server(&open.name).is_some();
            return is_its.then_some(Wanted::Standing);
        }
        let heard = config.held.resources(&of.mark, &open.name);
        let filter = Filter::of_lists(open.abilities).with(heard);
        (!is_call && !filter.is_empty()).then(|| Wanted::listening(asker, &filter))
    };
    let place_of_none = Place::new(Of::Session);
    let mut lanes = Lanes::new(asker, &session, &servers, &place, &wanted);
    let first = lanes.first(&worker.timers, within(call));
    while_there(first, &worker, client).await?;
    if lanes.are_over() && !may_come {
        let refusal = match lanes.failed.take() {
            Some(Failed::SessionGone) => Refusal::McpSessionNotFound,
            _ => Refusal::Method { allow: NO_STREAM },
        };
        return Err(call.refuse(refusal));
    }
    begin(call, client).await?;
    let until = Duration::from_secs(session.until_unix_s.saturating_sub(unix_s(call)));
    let mut stream = Standing {
        place: place.clone(),
        session_id,
        out: Vec::new(),
    };
    let mut over = pin!(worker.timers.sleep(until));
    let mut drained = pin!(worker.drained.notified());
    let mut quiet = Deadline::new(&worker.clock.wheel);
    let mut told: u64 = 0;
    let mut still = Still::new(call);
    quiet.set(QUIET_EVERY);
    loop {
        let turn = poll_fn(|cx| {
            if over.as_mut().poll(cx).is_ready()
                || drained.as_mut().poll(cx).is_ready()
                || worker.is_draining()
            {
                return Poll::Ready(Turn::Over);
            }
            if let Some(changes) = &mut changes
                && changes.poll(cx).is_ready()
            {
                return Poll::Ready(Turn::Changed);
            }
            if let Poll::Ready(said) = lanes.poll(cx) {
                return Poll::Ready(Turn::Said(said));
            }
            quiet.poll(cx).map(|()| Turn::Quiet)
        });
        stream.out.clear();
        let turn = match while_there(turn, &worker, client).await {
            Ok(turn) => turn,
            Err(gone) => {
                // A client that leaves ends it as it is meant to end.
                call.completed();
                return Err(gone);
            }
        };
        let is_let_in = match turn {
            Turn::Over => true,
            _ => {
                still
                    .is_let_in(call, (arrived, "GET"), &servers, client)
                    .await?
            }
        };
        let is_over = match turn {
            Turn::Over => true,
            _ if !is_let_in => true,
            Turn::Quiet => {
                stream.out.extend_from_slice(QUIET);
                false
            }
            Turn::Changed => {
                lanes.listen_anew(asker, &session, &servers, &place_of_none, &wanted);
                false
            }
            Turn::Said(said) => {
                let may_hear =
                    |own: &str| still.may_hear((call, arrived), rule, (said.server, own));
                for event in said.events {
                    stream.take(asker, (said.server, &may_hear), event);
                }
                lanes.are_over() && !may_come
            }
        };
        told += stream.out.len() as u64;
        if is_over || !stream.out.is_empty() {
            answer::sent(call, client, &stream.out, is_over).await?;
            // Only what was sent shows that the stream is there.
            quiet.set(QUIET_EVERY);
        }
        if is_over {
            tracing::debug!(told, "a standing stream of tools is over");
            return Ok(());
        }
    }
}

/// What happens next.
enum Turn<'v> {
    /// The session or the gate ends.
    Over,
    /// Nothing for a while.
    Quiet,
    /// The client listens to other resources.
    Changed,
    /// A server said something.
    Said(Said<'v>),
}

/// What its client is sent.
struct Standing<'a> {
    place: Place,
    session_id: &'a [u8],
    out: Vec<u8>,
}

impl Standing<'_> {
    fn take(
        &mut self,
        asker: Asker<'_>,
        (server, may_hear): (&Server, &dyn Fn(&str) -> bool),
        event: Event,
    ) {
        let is_place = event
            .id
            .is_some_and(|id| self.place.move_to(&server.name, &id));
        let config = Call::config(asker.view).filter(|_| is_place);
        let id = config.and_then(|(_, tools)| self.place.write(&tools.sealer, self.session_id));
        let Some(data) = event.data.filter(|data| !data.is_empty()) else {
            let retry = event.retry_ms.filter(|_| self.place.request().is_some());
            if id.is_some() || retry.is_some() {
                write_place(id.as_deref(), retry, &mut self.out);
            }
            return;
        };
        // What is no message is for nobody, and what follows it may be one; that a server listens is for the gate.
        let is_own = method_of(&data).as_deref() == Some(ACKNOWLEDGED);
        let heard = match self.place.request() {
            Some(asked) => said(&data, speaker(asker, server), asked),
            None => told(&data, speaker(asker, server)),
        };
        if let Ok(said) = heard
            && !is_own
        {
            pass_on(said, (server, may_hear), id.as_deref(), &mut self.out);
        }
    }
}

/// How a server is heard of.
pub(super) enum Wanted {
    /// By its standing stream.
    Standing,
    /// By the answer to this request, which says what is to be heard of: of servers without sessions.
    Listening(Vec<u8>),
}

impl Wanted {
    pub(super) fn listening(asker: Asker<'_>, filter: &Filter) -> Self {
        let id = format!("\"{}#listen\"", asker.id);
        let written = String::from_utf8_lossy(&filter.write()).into_owned();
        let further = format!(",\"notifications\":{written}");
        let params = match filter.tasks.is_empty() {
            true => own_params(&further),
            false => own_params_of_tasks(&further),
        };
        Self::Listening(request(
            id.as_bytes(),
            mcp::listen::METHOD,
            params.as_bytes(),
        ))
    }
}

/// An event, kept.
pub(super) struct Event {
    pub(super) data: Option<Vec<u8>>,
    id: Option<Vec<u8>>,
    retry_ms: Option<u32>,
}

impl From<Whole<'_>> for Event {
    fn from(event: Whole<'_>) -> Self {
        Self {
            data: event.data.map(std::borrow::Cow::into_owned),
            id: event.id.map(<[u8]>::to_vec),
            retry_ms: event.retry_ms,
        }
    }
}

/// What one server said.
pub(super) struct Said<'v> {
    pub(super) server: &'v Server,
    pub(super) events: Vec<Event>,
    /// Its stream is open.
    pub(super) has_begun: bool,
    /// It will say no more: it has no such session.
    pub(super) is_gone: bool,
}

/// A lane on its way to its next step.
type Stepping<'v> = Pin<Box<dyn Future<Output = (Lane<'v>, Vec<Event>)> + 'v>>;

/// A lane that is under way, with whether it hears a server that is asked to be heard.
struct UnderWay<'v> {
    server: &'v Server,
    stepping: Stepping<'v>,
    is_listening: bool,
}

impl<'v> UnderWay<'v> {
    fn new(lane: Lane<'v>) -> Self {
        Self {
            server: lane.server,
            is_listening: matches!(lane.wanted, Wanted::Listening(_)),
            stepping: Box::pin(lane.step()),
        }
    }
}

/// The streams of several servers.
pub(super) struct Lanes<'v> {
    stepping: Vec<UnderWay<'v>>,
    /// One of them has been open.
    has_begun: bool,
    /// Why one is over that is over.
    failed: Option<Failed>,
}

impl<'v> Lanes<'v> {
    pub(super) fn new(
        asker: Asker<'v>,
        session: &'v Session,
        servers: &[&'v Server],
        place: &Place,
        wanted: &dyn Fn(&OpenServer) -> Option<Wanted>,
    ) -> Self {
        Self {
            stepping: lanes(asker, session, servers, place, wanted)
                .map(UnderWay::new)
                .collect(),
            has_begun: false,
            failed: None,
        }
    }

    /// Asks servers without sessions anew for what is to be heard of them.
    fn listen_anew(
        &mut self,
        asker: Asker<'v>,
        session: &'v Session,
        servers: &[&'v Server],
        place: &Place,
        wanted: &dyn Fn(&OpenServer) -> Option<Wanted>,
    ) {
        self.stepping.retain(|of| !of.is_listening);
        let anew = lanes(asker, session, servers, place, wanted).map(UnderWay::new);
        self.stepping.extend(anew.filter(|of| of.is_listening));
    }

    pub(super) fn are_over(&self) -> bool {
        self.stepping.is_empty()
    }

    /// Whether one of them, or one that may come, is of no server of these.
    pub(super) fn are_more_than(&self, of: &[&str]) -> bool {
        let mut all = self.stepping.iter();
        all.any(|lane| !of.contains(&&*lane.server.name))
    }

    /// Ready when a server has begun a stream, when none will, or when it takes too long: then they may begin later.
    async fn first(&mut self, timers: &Timers, within: Duration) {
        let first = poll_fn(|cx| {
            while !self.has_begun && !self.are_over() {
                // None has begun, so that nothing is said yet.
                let _none = ready!(self.poll(cx));
            }
            Poll::Ready(())
        });
        let _late = timers.timeout(within, first).await;
    }

    /// What a server says next; nothing where a lane merely went on.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Said<'v>> {
        let mut at = 0;
        while let Some(stepping) = self.stepping.get_mut(at) {
            let Poll::Ready((mut lane, events)) = stepping.stepping.as_mut().poll(cx) else {
                at += 1;
                continue;
            };
            let (server, has_begun) = (lane.server, lane.has_begun);
            self.has_begun |= has_begun;
            let is_gone = matches!(lane.over, Some(Over::Failed(Failed::SessionGone)));
            match lane.over.take() {
                Some(over) => {
                    drop(self.stepping.swap_remove(at));
                    if let Over::Failed(failed) = over {
                        self.failed = Some(failed);
                    }
                }
                None => stepping.stepping = Box::pin(lane.step()),
            }
            return Poll::Ready(Said {
                server,
                events,
                has_begun,
                is_gone,
            });
        }
        Poll::Pending
    }
}

/// A lane for each server that is to be heard of.
fn lanes<'v>(
    asker: Asker<'v>,
    session: &'v Session,
    servers: &[&'v Server],
    place: &Place,
    wanted: &dyn Fn(&OpenServer) -> Option<Wanted>,
) -> impl Iterator<Item = Lane<'v>> {
    let is_call = place.request().is_some();
    session.servers.iter().filter_map(move |open| {
        let server = servers.iter().find(|server| *server.name == *open.name)?;
        let last = place.of_server(&open.name);
        wanted(open).map(|wanted| Lane {
            wanted,
            asker,
            server,
            open,
            last: last.map(str::to_owned),
            is_call,
            has_begun: false,
            stream: None,
            held: Held::new(asker),
            after: Duration::ZERO,
            again: Again::default(),
            over: None,
        })
    })
}

/// Why a lane is over.
enum Over {
    /// Its server has no such stream, or has said all of it.
    Ended,
    Failed(Failed),
}

/// One server's stream.
struct Lane<'v> {
    wanted: Wanted,
    asker: Asker<'v>,
    server: &'v Server,
    open: &'v OpenServer,
    /// The id of its last event.
    last: Option<String>,
    is_call: bool,
    has_begun: bool,
    stream: Option<(Began, DataReader)>,
    held: Held<'v>,
    /// How long it waits before it opens the stream again.
    after: Duration,
    again: Again,
    over: Option<Over>,
}

impl<'v> Lane<'v> {
    /// Opens the stream, or reads some of it.
    async fn step(mut self) -> (Self, Vec<Event>) {
        match self.stream.take() {
            None => {
                self.begin().await;
                (self, Vec::new())
            }
            Some((began, reader)) => self.read(began, reader).await,
        }
    }

    async fn begin(&mut self) {
        if !self.after.is_zero() {
            self.asker.worker.timers.sleep(self.after).await;
        }
        let last = self.last.clone();
        let (method, body) = match &self.wanted {
            Wanted::Standing => (Method::Get, Bytes::new()),
            Wanted::Listening(request) => (Method::Post, Bytes::from(request.clone())),
        };
        let request = Request {
            method,
            open: Some(self.open),
            says: Says {
                method: mcp::listen::METHOD,
                ..Says::default()
            },
            body,
            last_event: last.as_deref(),
            within: None,
        };
        let sent = self.asker.send(self.server, request).await;
        let has_session = self.open.id.is_some();
        match sent.and_then(|began| Ok((form(&began, self.server, has_session)?, began))) {
            Ok((Form::Events, began)) => {
                self.has_begun = true;
                self.again.begun();
                self.stream = Some((began, DataReader::new()));
            }
            // It has none, and will have none.
            Ok(_) => self.over = Some(Over::Ended),
            Err(failed) => self.failed(failed),
        }
    }

    /// It broke off, or did not come: a stream that once was is opened again, later each time.
    fn failed(&mut self, failed: Failed) {
        let is_passing = matches!(&failed, Failed::Upstream(failure) if !is_refused(*failure));
        if !is_passing || self.is_call || !self.has_begun && self.again.silent() > 3 {
            self.over = Some(Over::Failed(failed));
            return;
        }
        self.after = self.again.after();
    }

    async fn read(mut self, mut began: Began, mut reader: DataReader) -> (Self, Vec<Event>) {
        let mut events = Vec::new();
        // A server may have nothing to say for as long as its client is there.
        let mut never = Deadline::new(&self.asker.worker.clock.wheel);
        let take = |data: &[u8]| reader.push_whole(data, |event| events.push(Event::from(event)));
        let read = next(self.asker, &mut began.response.body, &mut never, take).await;
        for event in &events {
            if let Some(id) = event
                .id
                .as_deref()
                .filter(|_| matches!(self.wanted, Wanted::Standing))
                .and_then(|id| std::str::from_utf8(id).ok())
            {
                self.last = Some(id.to_owned());
            }
            if let Some(retry) = event.retry_ms {
                self.again.retry(retry);
            }
            if event.data.as_ref().is_some_and(|data| !data.is_empty()) {
                self.again.said();
            }
        }
        match read {
            Ok(false) => match self.held.is_now(reader.held()) {
                Ok(()) => self.stream = Some((began, reader)),
                Err(failed) => self.over = Some(Over::Failed(failed)),
            },
            Ok(true) if self.is_call => self.over = Some(Over::Ended),
            Ok(true) => self.after = self.again.after(),
            Err(failure) => self.failed(Failed::Upstream(failure)),
        }
        (self, events)
    }
}

/// Whether the server said no, rather than nothing.
const fn is_refused(failure: Failure) -> bool {
    matches!(failure, Failure::Status(400..=499))
}
