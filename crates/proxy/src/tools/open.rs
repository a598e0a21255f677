//! What servers have open for a caller that brings no session: nothing where they need none, and otherwise a session that the gate keeps.
//!
//! Invariant: what is kept is of one caller on one route at one server; it is opened anew where it is gone, and nobody else has it.
//! Not here: sessions that clients bring (`session`), what is kept (`policy::mcp`).

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use mcp::discover::{self, Found, found, own_params};
use mcp::handshake::{Answered, answered as read_answer, own_params as handshake_params};
use mcp::session::{OpenServer, Session};
use mcp::version::Version;
use policy::attempt::Failure;
use policy::mcp::{Hearing, Mark, Mcp, McpRoute, Server};
use policy::secret::Secret;
use wire::head::Method;

use super::api;
use super::ask::{Asker, Failed, Request, Says};
use super::join::{Boxed, all};
use super::read::{request, result};
use super::rule::{principal, rule};
use super::session::give_back;
use crate::call::{Call, Stop, while_there};
use crate::client::Downstream;
use crate::tool_memory::{Speaks, Spoken, Tools};
use crate::worker_snapshot::WorkerSnapshot;

/// What a server has open, and what it said of itself.
pub(super) struct Open<'v> {
    pub(super) server: &'v Server,
    pub(super) opened: Result<(OpenServer, Answered), Failed>,
}

/// What the servers of a rule have open for the caller of a message.
pub(super) async fn of<'v, D: Downstream>(
    call: &Call,
    view: &'v WorkerSnapshot,
    rule: &McpRoute,
    only: Option<usize>,
    client: &mut D,
) -> Result<Vec<Open<'v>>, Stop> {
    let Some((config, tools)) = Call::config(view) else {
        return Ok(Vec::new());
    };
    let (worker, call_id) = (call.worker.clone(), call.id.clone());
    let caller = caller(call, view);
    let asker = Asker {
        caller: caller.as_deref(),
        ..super::asker(&worker, view, &call_id)
    };
    let places = rule.servers.iter().copied();
    let places = places.filter(|place| only.is_none_or(|only| only == *place));
    let servers = places.filter_map(|place| Some((place, config.servers.get(place)?)));
    let waits = servers.map(|(place, server)| {
        let mark = mark(call, view, &server.name);
        let wait: Boxed<'_, _> = Box::pin(async move {
            let opened = match mark {
                Some(mark) => one(asker, config, tools, (place, server), mark).await,
                None => Err(Failed::Bug),
            };
            if let Err(failed) = &opened {
                super::silent(asker, config, server, failed);
            }
            Open { server, opened }
        });
        wait
    });
    while_there(all(waits.collect()), &worker, client).await
}

/// The same as the session that a client might have brought; and why one is missing that is.
pub(super) fn as_session(opened: Vec<Open<'_>>) -> (Session, Option<Failed>) {
    let mut session = Session {
        until_unix_s: u64::MAX,
        version: Version::V20260728,
        can: mcp::client::Can::default(),
        servers: Vec::new(),
    };
    let mut failed = None;
    for open in opened {
        match open.opened {
            Ok((server, _)) => session.servers.push(server),
            Err(why) => failed = Some(why),
        }
    }
    (session, failed)
}

/// What one stream hears of servers with sessions.
#[derive(Default)]
pub(super) struct Heard<'v> {
    /// In sessions that the gate keeps.
    kept: Vec<Hearing<'v>>,
    /// In sessions of the stream's own, which end with it.
    pub(super) own: Vec<OpenServer>,
}

impl Heard<'_> {
    /// The stream is over.
    pub(super) fn end(self, call: &Call) {
        if !self.own.is_empty() {
            give_back(call, self.own);
        }
    }

    pub(super) fn is_own(&self, server: &str) -> bool {
        self.own.iter().any(|open| *open.name == *server)
    }
}

/// Has a stream hear servers with sessions: each in the session that is kept or, where another stream of this caller hears that, in one
/// of its own. A server that begins none is left out of what is open.
pub(super) async fn heard<'v, D: Downstream>(
    call: &Call,
    view: &'v WorkerSnapshot,
    session: &mut Session,
    is_wanted: impl Fn(&OpenServer) -> bool,
    client: &mut D,
) -> Result<Heard<'v>, Stop> {
    let mut heard = Heard::default();
    let Some((config, _)) = Call::config(view) else {
        return Ok(heard);
    };
    let mut further: Vec<&Server> = Vec::new();
    for open in session.servers.iter().filter(|open| is_wanted(open)) {
        // Without a session there is nothing that two streams could share.
        let mark = mark(call, view, &open.name).filter(|_| open.id.is_some());
        let Some(mark) = mark else { continue };
        match config.kept.hear(mark) {
            Some(hearing) => heard.kept.push(hearing),
            None => further.extend(config.servers.iter().find(|of| *of.name == *open.name)),
        }
    }
    if further.is_empty() {
        return Ok(heard);
    }
    let (worker, call_id) = (call.worker.clone(), call.id.clone());
    let caller = caller(call, view);
    let asker = Asker {
        caller: caller.as_deref(),
        ..super::asker(&worker, view, &call_id)
    };
    let own = RefCell::new(Vec::new());
    let waits = further.iter().map(|server| {
        let (own, server) = (&own, *server);
        let wait: Boxed<'_, ()> = Box::pin(async move {
            match begun(asker, config, server).await {
                Ok((open, _)) => own.borrow_mut().push(open),
                Err(failed) => super::silent(asker, config, server, &failed),
            }
        });
        wait
    });
    let waited = while_there(all(waits.collect()), &worker, client).await;
    heard.own = own.take();
    if let Err(gone) = waited {
        heard.end(call);
        return Err(gone);
    }
    let is_further = |open: &OpenServer| further.iter().any(|of| *of.name == *open.name);
    session.servers.retain(|open| !is_further(open));
    session.servers.extend(heard.own.iter().cloned());
    Ok(heard)
}

/// Whose it is what a caller has open at a server.
fn mark(call: &Call, view: &WorkerSnapshot, server: &str) -> Option<Mark> {
    let (record, (config, tools)) = (call.record()?, Call::config(view)?);
    let (nth, ..) = rule(record, view).ok()?;
    let who = principal(record, view);
    let place = tools.places.get(nth)?;
    let mut of = config.servers.iter();
    let apart = of.find(|of| *of.name == *server);
    let apart = apart.and_then(|of| call.id.apart(view, of.backend));
    let apart = apart.map_or(&[][..], Secret::expose);
    Some(tools.sealer.mark_of_caller(place, &who, server, apart))
}

/// The caller of a message, as commands tell callers apart; none where no server is a command.
pub(super) fn caller(call: &Call, view: &WorkerSnapshot) -> Option<String> {
    let (config, _) = Call::config(view)?;
    config.servers.iter().find(|server| server.is_command)?;
    let mark = mark(call, view, "")?;
    Some(mark.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What was open at these servers is so no more.
pub(super) fn forget<'s>(
    call: &Call,
    view: &WorkerSnapshot,
    gone: impl Iterator<Item = &'s OpenServer>,
) {
    let Some((config, tools)) = Call::config(view) else {
        return;
    };
    for gone in gone {
        let mark = mark(call, view, &gone.name);
        if let Some(mark) = &mark {
            let is_it =
                |kept: &[u8]| OpenServer::read(kept).is_some_and(|(of, _)| of.id == gone.id);
            config.kept.forget_if(mark, is_it);
        }
        let mut servers = config.servers.iter().enumerate();
        if let Some((place, server)) = servers.find(|(_, of)| *of.name == *gone.name) {
            let is_as_caller = call.id.is_as_caller(view, server.backend);
            tools.ask_again((place, mark.filter(|_| is_as_caller)));
        }
    }
}

impl Asker<'_> {
    /// By what it is kept what a server speaks.
    fn speaks_as(self, place: usize, server: &Server, mark: &Mark) -> Spoken {
        let is_as_caller = self.is_as_caller(server.backend);
        (place, is_as_caller.then_some(*mark))
    }
}

/// How often a server is asked until it is open: what it speaks, to begin, and that it has begun.
const ASKED_TIMES: u32 = 3;

async fn one(
    asker: Asker<'_>,
    config: &Mcp,
    tools: &Tools,
    (place, server): (usize, &Server),
    mark: Mark,
) -> Result<(OpenServer, Answered), Failed> {
    if let Some(described) = server.described.as_deref() {
        let answered = api::answered(described)?;
        return Ok((needs_none(server, &answered), answered));
    }
    let known = || known(asker, config, tools, (place, server), &mark);
    if let Some(known) = known() {
        return Ok(known);
    }
    // Of messages that come at once one opens it, and the others wait for that: what comes of it, comes of it for all.
    let began = asker.worker.now();
    let turn = poll_fn(|cx| match (known(), tools.unopened.since(&mark, began)) {
        (Some(known), _) => Poll::Ready(Err(Ok(known))),
        (None, Some(failed)) => Poll::Ready(Err(Err(failed))),
        (None, None) => config.kept.poll_turn(&mark, cx).map(Ok),
    });
    let turn = asker
        .worker
        .timers
        .timeout(config.within * ASKED_TIMES, turn)
        .await;
    let _turn = match turn {
        Ok(Ok(turn)) => turn,
        Ok(Err(known)) => return known,
        Err(_) => return Err(Failed::Upstream(Failure::FirstByteTimeout)),
    };
    let opened = open(asker, config, tools, (place, server), mark).await;
    if let Err(failed) = &opened {
        tools.unopened.keep(mark, asker.worker.now(), failed);
    }
    opened
}

/// Opens it: finds out what it speaks, and begins a session where it needs one.
async fn open(
    asker: Asker<'_>,
    config: &Mcp,
    tools: &Tools,
    (place, server): (usize, &Server),
    mark: Mark,
) -> Result<(OpenServer, Answered), Failed> {
    let spoken = asker.speaks_as(place, server, &mark);
    let speaks = tools.speaks(spoken, asker.worker.now());
    if speaks.is_none()
        && let Some(answered) = modern(asker, config, server).await?
    {
        let answered = Rc::new(answered);
        let speaks = Speaks::Modern(Rc::clone(&answered));
        tools.has_spoken(spoken, asker.worker.now(), speaks);
        return Ok((needs_none(server, &answered), (*answered).clone()));
    }
    let (open, answered) = begun(asker, config, server).await?;
    // That it did not know what it was asked shows nothing: so does one that starts, or whatever stands before it meanwhile.
    tools.has_spoken(spoken, asker.worker.now(), Speaks::Legacy);
    let mut text = Vec::new();
    if open.write(&mut text).is_some() {
        text.extend(answered.instructions.iter().flat_map(|text| text.bytes()));
        config.kept.keep(mark, text, unix_s(asker));
    }
    Ok((open, answered))
}

fn unix_s(asker: Asker<'_>) -> u64 {
    asker.worker.clock.wall_ms(asker.worker.now()) / 1000
}

/// What is open at a server, as far as nobody has to be asked.
fn known(
    asker: Asker<'_>,
    config: &Mcp,
    tools: &Tools,
    (place, server): (usize, &Server),
    mark: &Mark,
) -> Option<(OpenServer, Answered)> {
    let spoken = asker.speaks_as(place, server, mark);
    let speaks = tools.speaks(spoken, asker.worker.now());
    if let Some(Speaks::Modern(answered)) = &speaks {
        return Some((needs_none(server, answered), (**answered).clone()));
    }
    let kept = config.kept.get(mark, unix_s(asker));
    let (open, instructions) = kept.as_deref().and_then(OpenServer::read)?;
    let instructions = std::str::from_utf8(instructions).ok();
    let instructions = instructions.filter(|text| !text.is_empty());
    let answered = Answered {
        version: open.version,
        abilities: open.abilities,
        instructions: instructions.map(str::to_owned),
    };
    Some((open, answered))
}

/// What is open at a server that keeps no sessions.
pub(super) fn needs_none(server: &Server, answered: &Answered) -> OpenServer {
    OpenServer {
        name: (&*server.name).into(),
        version: Version::V20260728,
        abilities: answered.abilities,
        id: None,
    }
}

/// What a server says of itself without a session; none where it has to have one.
///
/// # Errors
/// It says nothing at all.
pub(super) async fn modern(
    asker: Asker<'_>,
    config: &Mcp,
    server: &Server,
) -> Result<Option<Answered>, Failed> {
    if server.is_command {
        return Ok(None);
    }
    let nothing = OpenServer {
        name: (&*server.name).into(),
        version: Version::V20260728,
        abilities: mcp::handshake::Abilities::default(),
        id: None,
    };
    for _ in 0..DISCOVERED_TIMES {
        match discovered(asker, config, server, &nothing).await? {
            Found::Modern(answered) => return Ok(Some(answered)),
            Found::Refused => {}
            Found::Legacy => break,
        }
    }
    Ok(None)
}

/// How often a server is asked that refuses a version which it speaks.
const DISCOVERED_TIMES: u32 = 2;

async fn discovered(
    asker: Asker<'_>,
    config: &Mcp,
    server: &Server,
    nothing: &OpenServer,
) -> Result<Found, Failed> {
    let id = format!("\"{}#discover\"", asker.id);
    let message = request(id.as_bytes(), discover::METHOD, own_params("").as_bytes());
    let message = (discover::METHOD, message);
    let heard = asker
        .ask(server, Some(nothing), message, id.as_bytes(), config.within)
        .await;
    match heard {
        Ok(heard) => Ok(found(&heard.message)),
        // It does not know what it was asked, in one of many ways.
        Err(
            Failed::Upstream(Failure::Status(_))
            | Failed::Unusable(_)
            | Failed::TooLong
            | Failed::SessionGone,
        ) => Ok(Found::Legacy),
        Err(failed) => Err(failed),
    }
}

/// Begins a session with a server.
async fn begun(
    asker: Asker<'_>,
    config: &Mcp,
    server: &Server,
) -> Result<(OpenServer, Answered), Failed> {
    let message = request(b"0", "initialize", handshake_params().as_bytes());
    let message = ("initialize", message);
    let heard = asker
        .ask(server, None, message, b"0", config.within)
        .await?;
    let answered = result(&heard.message).and_then(read_answer);
    let unusable = Failed::Unusable(mcp::events::Unusable::NoMessage);
    let answered = answered.ok_or(unusable)?;
    let open = OpenServer {
        name: (&*server.name).into(),
        version: answered.version,
        abilities: answered.abilities,
        id: heard.session,
    };
    tell(
        asker,
        config,
        (server, &open),
        br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_vec(),
    )
    .await;
    Ok((open, answered))
}

/// Tells a server something that it does not answer, and waits until it has it, as long as one may take.
pub(super) async fn tell(
    asker: Asker<'_>,
    config: &Mcp,
    (server, open): (&Server, &OpenServer),
    message: Vec<u8>,
) {
    let request = Request {
        method: Method::Post,
        open: Some(open),
        says: Says::default(),
        body: Bytes::from(message),
        last_event: None,
        within: Some(config.within),
    };
    // What became of it is in the log of attempts.
    drop(asker.send(server, request).await);
}
