//! Lists of a session's servers: kept ones, or asked for at once.
//!
//! Not here: how they are merged (`mcp::catalog`), who may see what of them (`requests`).

use std::rc::Rc;

use mcp::catalog::{Catalog, Kind, Source};
use mcp::session::{OpenServer, Session};
use policy::mcp::{McpRoute, Server};

use super::ask::Asker;
use super::call::{Call, Stop};
use super::join::{Boxed, all, while_there};
use crate::client::Downstream;

/// What one server has, where it could be told.
pub(super) struct Listed<'v> {
    pub(super) server: &'v Server,
    catalog: Option<Rc<Catalog>>,
}

impl<'v> Listed<'v> {
    pub(super) fn source<'s>(&'s self) -> Source<'s>
    where
        'v: 's,
    {
        Source {
            server: &self.server.name,
            catalog: self.catalog.as_deref(),
        }
    }
}

/// What the servers of a rule have of a kind; of those that a session has not open, or that do not answer, nothing.
pub(super) async fn of<'v, D: Downstream>(
    asker: Asker<'v>,
    rule: &McpRoute,
    session: &Session,
    kind: Kind,
    only: Option<usize>,
    client: &mut D,
) -> Result<Vec<Listed<'v>>, Stop> {
    let Some((config, tools)) = Call::config(asker.view) else {
        return Ok(Vec::new());
    };
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
            let catalog = match open {
                Some(open) => one(asker, config, tools, (place, server), open, kind).await,
                None => None,
            };
            Listed { server, catalog }
        });
        Some(wait)
    });
    while_there(all(waits.collect()), asker.worker, client).await
}

async fn one(
    asker: Asker<'_>,
    config: &policy::mcp::Mcp,
    tools: &crate::tool_memory::Tools,
    (place, server): (usize, &Server),
    open: &OpenServer,
    kind: Kind,
) -> Option<Rc<Catalog>> {
    let key = (place, kind, open.version);
    if let Some(kept) = tools.list(key, asker.worker.now(), config) {
        return Some(kept);
    }
    let changes = server.changes.count();
    let list = asker.list(server, open, kind, config.within).await.ok()?;
    let list = Rc::new(list);
    tools.keep(key, asker.worker.now(), changes, &list);
    Some(list)
}
