//! A tool that is used, as its server listed it.
//!
//! Invariant: where something is written of a tool by its name (a pin, a denial, a limit, a budget), a name that is almost that one does not
//! reach a server that gives its list: it might take the one for the other.
//! Not here: how lists are had and kept (`lists`), filters (`filters`).

use std::sync::Arc;

use mcp::catalog::{Catalog, Kind};
use mcp::session::{OpenServer, Session};
use policy::attempt::Failure;
use policy::mcp::{McpRoute, OnChange, Server};
use policy::refusal::Refusal;

use super::lists;
use super::requests::{self, Meant, not_found};
use crate::call::{Call, Stop};
use crate::client::Downstream;
use crate::tool_memory::Key;
use crate::worker_snapshot::WorkerSnapshot;
use mcp::target::Target;

/// A tool of which something is written is as the server listed it last: it is there, and no other than it is pinned.
pub(super) async fn as_listed<D: Downstream>(
    call: &mut Call,
    view: &WorkerSnapshot,
    (rule, session): (&McpRoute, &Session),
    (meant, target): (&Meant<'_>, &Target<'_>),
    client: &mut D,
) -> Result<(), Stop> {
    let pins = meant.server.pins.as_ref();
    let is_pinned = pins.is_some_and(|pins| pins.on_change == OnChange::Refuse);
    if !is_pinned && !is_named(call, view, rule, meant.server) {
        return Ok(());
    }
    let place = place_of(view, meant.server);
    if !is_pinned && is_at_hand(call, view, place, session, meant) {
        return Ok(());
    }
    let listed = lists::of(call, view, rule, session, Kind::Tools, place, client).await?;
    let of = listed.first();
    let Some((of, list)) = of.and_then(|of| Some((of, of.source().catalog?))) else {
        if !is_pinned {
            return Ok(());
        }
        call.facts.reason = Some("the server gives no list, and its tools are pinned".into());
        return Err(call.refuse(Refusal::Upstream(Failure::Exhausted)));
    };
    if is_pinned && of.is_refused(&meant.own) {
        let name = Kind::Tools.whole(&meant.server.name, &meant.own).into();
        return Err(call.refuse(Refusal::McpToolChanged { name }));
    }
    let is_there = match is_pinned {
        true => list.find(&meant.own).is_some(),
        false => list.has(&meant.own),
    };
    if !is_there {
        requests::unlisted(call, Some(meant.server), target);
        return Err(call.refuse(not_found(target)));
    }
    Ok(())
}

/// Whether something is written of tools by their names that a name in another spelling would pass by.
fn is_named(call: &Call, view: &WorkerSnapshot, rule: &McpRoute, server: &Server) -> bool {
    let denies = [&server.shows, &rule.shows].map(|shows| !shows.tools.deny.is_empty());
    let workload = call.record().and_then(|record| record.workload);
    denies.contains(&true)
        || !rule.tool_limits.is_empty()
        || workload.is_some_and(|of| view.snapshot().budgets.name_tools(of))
}

/// Whether the worker has the server's list, and the tool is in it.
fn is_at_hand(
    call: &Call,
    view: &WorkerSnapshot,
    place: Option<usize>,
    session: &Session,
    meant: &Meant<'_>,
) -> bool {
    let mut open = session.servers.iter();
    let open = open.find(|open| *open.name == *meant.server.name);
    let key = open.and_then(|open| Some((place?, Kind::Tools, open.version)));
    let list = key.and_then(|key| at_hand(call, view, meant.server, key));
    list.is_some_and(|list| list.has(&meant.own))
}

/// The list of a server that the worker has for the caller: what others are listed says nothing of what is listed to one who is asked for
/// as himself.
fn at_hand(call: &Call, view: &WorkerSnapshot, server: &Server, key: Key) -> Option<Arc<Catalog>> {
    let (config, tools) = Call::config(view)?;
    let is_his = server.described.is_none() && call.id.is_as_caller(view, server.backend);
    let token = match is_his {
        true => Some(call.id.own_token(view, server.backend)?),
        false => None,
    };
    let list = tools.list(key, token, call.worker.now(), config);
    list.map(|(list, _)| list)
}

/// A server's place in the configuration.
pub(super) fn place_of(view: &WorkerSnapshot, server: &Server) -> Option<usize> {
    let (config, _) = Call::config(view)?;
    let mut servers = config.servers.iter();
    servers.position(|of| *of.name == *server.name)
}

/// Whether the server's list is at hand and does not have this tool or prompt. Resources may be whatever a template makes.
pub(super) fn is_unlisted(
    call: &Call,
    view: &WorkerSnapshot,
    (kind, server, own): (Kind, &Server, &str),
    open: &OpenServer,
) -> bool {
    if kind.has_uri() {
        return false;
    }
    let place = place_of(view, server);
    let list = place.and_then(|place| at_hand(call, view, server, (place, kind, open.version)));
    list.is_some_and(|list| !list.has(own))
}
