//! Servers of tools as this process knows them, for whoever looks at the gate: what each listed last, and what callers of each rule see of it.
//!
//! Invariant: it is what lists show, by the same filters and names. What depends on who calls, and how, is shown and said to.
//! Not here: how it is written (`tollgate`), rules of the configuration, which know more of a call than its workload.

use std::sync::Arc;

use mcp::catalog::{Catalog, Kind, Naming, Source, visible};
use mcp::pin;
use policy::mcp::{Holds, Mcp, McpRoute, OnChange, Selection, Server, Shows};
use policy::snapshot::Snapshot;

/// What is listed, in order, as clients name the lists.
pub const LISTS: [&str; 4] = ["tools", "prompts", "resources", "resourceTemplates"];

/// An item of a server.
#[derive(Debug, Clone)]
pub struct Item {
    /// The server's own name or URI of it.
    pub own: String,
    /// It, as the server wrote it.
    pub raw: Vec<u8>,
}

/// What a tool of a server is, beside what its server says.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Its own name.
    pub own: String,
    /// It, as the server wrote it; none where it is refused.
    pub raw: Option<Vec<u8>>,
    /// The digest of its definition, as it is written in `pins`; none where it is refused.
    pub digest: Option<String>,
    /// The digest that it is pinned to.
    pub pinned: Option<String>,
}

/// A server.
#[derive(Debug, Clone)]
pub struct Known {
    /// Its name.
    pub name: String,
    /// What becomes of a tool that is not as pinned, where tools are pinned.
    pub pin: Option<&'static str>,
    /// When it was asked last, in milliseconds since the epoch, and why it gave no answer.
    pub last: Option<(u64, Option<String>)>,
    /// Its tools, where it listed them.
    pub tools: Option<Vec<Tool>>,
    /// Its prompts, resources and templates, where it listed them.
    pub others: [Option<Vec<Item>>; 3],
}

/// An item that callers of a rule see.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The name or URI by which they use it.
    pub name: String,
    /// Its server.
    pub server: String,
    /// It.
    pub item: Item,
    /// Whether a condition decides for each caller, or each use, whether it is there.
    pub is_conditional: bool,
}

/// What callers of a rule see, by kind as [`LISTS`] has them.
#[derive(Debug, Clone)]
pub struct View {
    /// The rule's workloads.
    pub workloads: Vec<String>,
    /// The rule's name.
    pub route: String,
    /// What they see.
    pub lists: [Vec<Seen>; 4],
    /// They are shown two tools, which find and call these.
    pub is_searched: bool,
    /// Servers of which nothing is known.
    pub unknown: Vec<String>,
}

/// The servers of a configuration, as they are known; none where it has none.
#[must_use]
pub fn servers(s: &Snapshot) -> Option<Vec<Known>> {
    let config = s.mcp.as_deref()?;
    Some(
        config
            .servers
            .iter()
            .map(|server| known(config, server))
            .collect(),
    )
}

/// What callers of each rule see.
#[must_use]
pub fn views(s: &Snapshot) -> Vec<View> {
    let Some(config) = s.mcp.as_deref() else {
        return Vec::new();
    };
    config
        .routes
        .iter()
        .map(|rule| view(config, rule, s))
        .collect()
}

/// What a server listed last of a kind.
pub(crate) fn listed(config: &Mcp, server: &Server, kind: Kind) -> Option<Arc<Catalog>> {
    let known = config.known.of(&server.at);
    let listed = known.lists.into_iter().nth(kind.place()).flatten()?;
    listed.list.downcast::<Catalog>().ok()
}

fn known(config: &Mcp, server: &Server) -> Known {
    let last = config.known.of(&server.at).last;
    let others = [Kind::Prompts, Kind::Resources, Kind::Templates];
    Known {
        name: server.name.to_string(),
        pin: server.pins.as_ref().map(|pins| match pins.on_change {
            OnChange::Warn => "warn",
            OnChange::Refuse => "refuse",
        }),
        last: last.map(|last| (last.unix_ms, last.fault.map(String::from))),
        tools: listed(config, server, Kind::Tools).map(|list| tools(config, server, &list)),
        others: others.map(|kind| {
            let list = listed(config, server, kind)?;
            Some(list.items().map(item).collect())
        }),
    }
}

fn item(of: &mcp::catalog::Item) -> Item {
    Item {
        own: of.name.to_string(),
        raw: of.raw().to_vec(),
    }
}

fn tools(config: &Mcp, server: &Server, list: &Catalog) -> Vec<Tool> {
    let pinned = |own: &str| {
        let pins = server.pins.as_ref()?;
        let digest = config.seen.pinned(pins, own)?;
        Some(pin::shown(&digest))
    };
    let shown = list.items().map(|item| Tool {
        own: item.name.to_string(),
        raw: Some(item.raw().to_vec()),
        digest: Some(pin::shown(&pin::of(item.raw()))),
        pinned: pinned(&item.name),
    });
    let mut refused: Vec<&str> = list.refused().collect();
    refused.sort_unstable();
    let refused = refused.into_iter().map(|own| Tool {
        own: own.to_owned(),
        raw: None,
        digest: None,
        pinned: pinned(own),
    });
    shown.chain(refused).collect()
}

fn view(config: &Mcp, rule: &McpRoute, s: &Snapshot) -> View {
    let workloads = s.workloads.iter().filter(|workload| {
        let mut plain = workload.plain.iter();
        plain.any(|grant| grant.route == rule.route)
    });
    let unknown = config.servers_of(rule).filter(|server| {
        let known = config.known.of(&server.at);
        known.lists.iter().all(Option::is_none)
    });
    View {
        workloads: workloads.map(|of| of.name.to_string()).collect(),
        route: s
            .route(rule.route)
            .map_or_else(String::new, |of| of.name.to_string()),
        lists: Kind::ALL.map(|kind| seen(config, rule, kind)),
        is_searched: rule.is_searched,
        unknown: unknown.map(|server| server.name.to_string()).collect(),
    }
}

fn seen(config: &Mcp, rule: &McpRoute, kind: Kind) -> Vec<Seen> {
    let servers: Vec<&Server> = config.servers_of(rule).collect();
    let lists = servers.iter().map(|server| listed(config, server, kind));
    let lists: Vec<Option<Arc<Catalog>>> = lists.collect();
    let sources = servers.iter().zip(&lists).map(|(server, list)| Source {
        server: &server.name,
        catalog: list.as_deref(),
        last: None,
    });
    let sources: Vec<Source<'_>> = sources.collect();
    let may_see = |server: &str, own: &str, held: fn() -> Holds| {
        let mut of = servers.iter();
        let server = of.find(|of| *of.name == *server);
        server.is_some_and(|server| {
            let whole = kind.whole(&server.name, own);
            of_kind(&server.shows, kind).has(own, |_| held())
                && of_kind(&rule.shows, kind).has(&whole, |_| held())
        })
    };
    let naming = Naming::of(config.prefix, servers.iter().map(|of| &*of.name));
    let shown = visible(kind, &sources, &naming, |server, own| {
        may_see(server, own, || Holds::Later)
    });
    let shown = shown.into_iter().map(|of| Seen {
        server: of.server.to_owned(),
        is_conditional: !may_see(of.server, &of.item.name, || Holds::Failed("".into())),
        item: item(of.item),
        name: of.name,
    });
    shown.collect()
}

const fn of_kind(shows: &Shows, kind: Kind) -> &Selection {
    match kind {
        Kind::Tools => &shows.tools,
        Kind::Prompts => &shows.prompts,
        Kind::Resources | Kind::Templates => &shows.resources,
    }
}
