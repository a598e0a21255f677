//! Lists of a session's servers: kept ones, or asked for at once.
//!
//! Not here: how they are merged (`mcp::catalog`), who may see what of them (`requests`).

use std::sync::Arc;
use std::time::Duration;

use mcp::catalog::{Catalog, Kind, Source};
use mcp::session::{OpenServer, Session};
use policy::attempt::Failure;
use policy::mcp::{Listed as Told, Mcp, McpRoute, OnChange, Pins, Seen, Server};

use super::ask::{Asker, Failed};
use super::join::{Boxed, all};
use super::open;
use crate::call::{Call, Stop, while_there};
use crate::catalogue;
use crate::client::Downstream;
use crate::tool_memory::{Key, Tools};
use crate::worker_snapshot::WorkerSnapshot;

/// What one server has, where it could be told.
pub(super) struct Listed<'v> {
    pub(super) server: &'v Server,
    catalog: Option<Arc<Catalog>>,
    /// What it had when it said that last, to whichever worker, where it could not be told.
    last: Option<Arc<Catalog>>,
    /// How much longer that is kept here.
    pub(super) left: Duration,
    /// It has no such session any more.
    is_gone: bool,
}

impl<'v> Listed<'v> {
    /// Whether a tool is refused, since it is not as it is pinned.
    pub(super) fn is_refused(&self, own: &str) -> bool {
        let catalog = self.catalog.as_deref();
        catalog.is_some_and(|catalog| catalog.is_refused(own))
    }

    /// What it has, where it said.
    pub(super) const fn list(&self) -> Option<&Arc<Catalog>> {
        self.catalog.as_ref()
    }

    pub(super) fn source<'s>(&'s self) -> Source<'s>
    where
        'v: 's,
    {
        Source {
            server: &self.server.name,
            catalog: self.catalog.as_deref(),
            last: self.last.as_deref(),
        }
    }
}

/// What the servers of a rule have of a kind; of those that a session has not open, or that do not answer, nothing. What the gate keeps
/// for a caller without a session is opened anew where it is gone.
pub(super) async fn of<'v, D: Downstream>(
    call: &Call,
    view: &'v WorkerSnapshot,
    rule: &McpRoute,
    session: &Session,
    kind: Kind,
    only: Option<usize>,
    client: &mut D,
) -> Result<Vec<Listed<'v>>, Stop> {
    let listed = once(call, view, rule, session, kind, only, client).await?;
    if !call.facts.is_modern || !listed.iter().any(|of| of.is_gone) {
        return Ok(listed);
    }
    let is_gone = |open: &&OpenServer| {
        let mut gone = listed.iter().filter(|of| of.is_gone);
        gone.any(|of| *of.server.name == *open.name)
    };
    open::forget(call, view, session.servers.iter().filter(is_gone));
    let opened = open::of(call, view, rule, only, client).await?;
    let (session, _) = open::as_session(opened);
    once(call, view, rule, &session, kind, only, client).await
}

async fn once<'v, D: Downstream>(
    call: &Call,
    view: &'v WorkerSnapshot,
    rule: &McpRoute,
    session: &Session,
    kind: Kind,
    only: Option<usize>,
    client: &mut D,
) -> Result<Vec<Listed<'v>>, Stop> {
    let Some((config, tools)) = Call::config(view) else {
        return Ok(Vec::new());
    };
    let (worker, call_id) = (call.worker.clone(), call.id.clone());
    let asker = super::asker(&worker, view, &call_id);
    let places = rule.servers.iter().copied();
    let places = places.filter(|place| only.is_none_or(|only| only == *place));
    let servers = places.filter_map(|place| Some((place, config.servers.get(place)?)));
    let waits = servers.filter_map(|(place, server)| {
        let open = session
            .servers
            .iter()
            .find(|open| *open.name == *server.name);
        if open.is_some_and(|open| !open.abilities.has(kind.ability())) {
            return None;
        }
        let wait: Boxed<'_, _> = Box::pin(async move {
            let listed = match open {
                Some(open) => one(asker, config, tools, (place, server), open, kind).await,
                None => Err(Failed::Bug),
            };
            let is_gone = matches!(listed, Err(Failed::SessionGone));
            let (catalog, left) =
                listed.map_or((None, Duration::ZERO), |(list, left)| (Some(list), left));
            let last = match &catalog {
                Some(_) => None,
                None => catalogue::listed(config, server, kind),
            };
            Listed {
                server,
                catalog,
                last,
                left,
                is_gone,
            }
        });
        Some(wait)
    });
    while_there(all(waits.collect()), &worker, client).await
}

async fn one(
    asker: Asker<'_>,
    config: &Mcp,
    tools: &Tools,
    (place, server): (usize, &Server),
    open: &OpenServer,
    kind: Kind,
) -> Result<(Arc<Catalog>, Duration), Failed> {
    let key = (place, kind, open.version);
    let now = || asker.worker.now();
    // A description is the same for all.
    if asker.is_as_caller(server.backend) && server.described.is_none() {
        return of_caller(asker, config, tools, server, open, key).await;
    }
    if let Some(kept) = tools.list(key, None, now(), config) {
        return Ok(kept);
    }
    let session = open.id.as_deref();
    if tools.failures.has(key, now(), session) {
        return Err(Failed::Upstream(Failure::Exhausted));
    }
    let changes = server.changes.count();
    let list = match asker.list(server, open, kind, config.within).await {
        Ok(mut list) => {
            if let (Kind::Tools, Some(pins)) = (kind, &server.pins) {
                compared(server, pins, &config.seen, &mut list);
            }
            let list = Arc::new(list);
            let unix_ms = asker.worker.clock.wall_ms(now());
            let told = Told {
                unix_ms,
                list: Arc::clone(&list) as _,
            };
            config.known.listed(&server.at, kind.place(), told);
            list
        }
        Err(failed) => {
            super::silent(asker, config, server, &failed);
            // A session that is gone is begun anew; room of the gate's own comes back by itself.
            if !matches!(failed, Failed::SessionGone | Failed::NoRoom) {
                tools.failures.keep(key, now(), session);
            }
            return Err(failed);
        }
    };
    let left = tools.keep(key, None, (now(), changes), &list, config);
    Ok((list, left))
}

/// The same of a server that is asked as its caller alone. It may be his alone: what he is told first is nothing that others' tools are held
/// to, nor theirs what his are.
async fn of_caller(
    asker: Asker<'_>,
    config: &Mcp,
    tools: &Tools,
    server: &Server,
    open: &OpenServer,
    key: Key,
) -> Result<(Arc<Catalog>, Duration), Failed> {
    let now = || asker.worker.now();
    // Without a token nothing is sent, and nothing is listed.
    let token = asker.own_token(server.backend);
    let kept = token.and_then(|token| tools.list(key, Some(token), now(), config));
    if let Some(kept) = kept {
        return Ok(kept);
    }
    let (kind, changes) = (key.1, server.changes.count());
    let mut list = asker.list(server, open, kind, config.within).await?;
    let written = server.pins.as_ref().filter(|pins| pins.written.is_some());
    if let (Kind::Tools, Some(pins)) = (kind, written) {
        compared(server, pins, &config.seen, &mut list);
    }
    let list = Arc::new(list);
    let left = match token {
        Some(_) => tools.keep(key, token, (now(), changes), &list, config),
        None => Duration::ZERO,
    };
    Ok((list, left))
}

/// Compares a list with what is pinned, and tells what is not so.
fn compared(server: &Server, pins: &Pins, seen: &Seen, list: &mut Catalog) {
    let is_refused = pins.on_change == OnChange::Refuse;
    let becomes = if is_refused {
        "it is refused until its pin is changed"
    } else {
        "it is served all the same"
    };
    for (tool, odd) in list.compare(pins, seen) {
        let (server, tool) = (&*server.name, &*tool);
        if odd.is_unpinned {
            tracing::warn!(server, tool, "a tool has no pin: {becomes}");
        } else {
            tracing::warn!(
                server,
                tool,
                "the description of a tool differs from its pin: {becomes}"
            );
        }
    }
}
