//! Names of tools, prompts and resources that nothing can have, in what routes show, in limits and in budgets; and paths of plain HTTP that no
//! call comes to: warnings, for they are slips most often, and servers may come from an editor's list when the gate runs.
//!
//! Invariant: whatever some server could have is warned of nowhere: which things servers have is not known here.
//! Not here: which names are meant ([`policy::mcp::Glob`]).

use policy::mcp::METADATA_PATH;
use policy::plain::PathPattern;

use super::paths;
use crate::decode::{At, Field, OneOrList, ShortOrFull, nearest};
use crate::lower::route::some_of;
use crate::scalar::{NameGlob, ServerName};
use crate::schema::{Document, mcp as schema};

/// What stands between a server and its thing's own name, and what such a name is called.
type Manner = (&'static str, &'static str);
const NAMES: Manner = ("__", "SERVER__NAME");
const URIS: Manner = ("+", "SERVER+URI");

impl crate::lower::Lowering<'_> {
    /// Says which names nothing can have.
    pub(in crate::lower) fn names_at_tools(&mut self, document: &Document) {
        let faults = self.findings.faults.iter();
        let mut faults = faults.filter(|of| of.path.is_empty() || of.path.starts_with("mcp"));
        let Some(mcp) = document.mcp.get().filter(|_| faults.next().is_none()) else {
            return;
        };
        let servers = mcp.servers.items().iter();
        let all: Vec<&str> = servers.map(|(name, _)| name.value.0.as_str()).collect();
        for (name, server) in mcp.servers.items() {
            let Some(server) = server else { continue };
            for (selection, (between, _)) in
                selections([&server.tools, &server.prompts], &server.resources)
            {
                self.names_without_server(name, between, selection);
            }
        }
        for (_, route) in mcp.routes.items() {
            let Some(route) = route else { continue };
            let own = route.servers.items().iter();
            let own: Vec<&str> = own.map(|at| at.value.0.as_str()).collect();
            let known: (&[&str], &[&str]) = (if own.is_empty() { &all } else { &own }, &all);
            for (selection, manner) in selections([&route.tools, &route.prompts], &route.resources)
            {
                for name in selection {
                    self.is_of_a_server(name, known, manner);
                }
            }
            let limits = route.tool_limits.items().iter();
            for name in limits
                .filter_map(|(_, of)| of.as_ref())
                .flat_map(|of| of.tools.items())
            {
                self.is_of_a_server(name, known, NAMES);
            }
        }
        for (_, budget) in document.budgets.items() {
            for name in budget.iter().flat_map(|budget| budget.tool.items()) {
                self.is_of_a_server(name, (&all, &all), NAMES);
            }
        }
        self.paths_of_tools(document, mcp);
    }

    /// Names of a server's own things, which nothing stands before.
    fn names_without_server<'n>(
        &mut self,
        server: &At<ServerName>,
        between: &str,
        names: impl IntoIterator<Item = &'n At<NameGlob>>,
    ) {
        let before = format!("{}{between}", server.value.0);
        for name in names {
            let Some(own) = name.value.0.strip_prefix(&before) else {
                continue;
            };
            let says = format!(
                "{} is compared with the server's own names, before which no {before} stands",
                name.shown
            );
            self.warn(&name.place, says, format!("did you mean {own}?"));
        }
    }

    /// A whole name, by the servers of its route and all that there are.
    fn is_of_a_server(
        &mut self,
        name: &At<NameGlob>,
        (own, all): (&[&str], &[&str]),
        (between, form): Manner,
    ) {
        let glob = name.value.0.as_str();
        let is_of = |server: &&str| meets(glob, &format!("{server}{between}"));
        if own.iter().any(is_of) {
            return;
        }
        let said = glob.split_once(between);
        let (says, hint) = match said {
            _ if all.iter().any(is_of) => (
                format!("{} is of a server that this route has not", name.shown),
                format!("its servers are {}", some_of(own)),
            ),
            Some((server, _)) if own.contains(&server) => (
                format!(
                    "nothing has the name {}: it is a server's alone",
                    name.shown
                ),
                format!("did you mean {server}{between}*?"),
            ),
            Some((server, rest)) => {
                let hint = match nearest(server, own) {
                    Some(near) => format!("did you mean {near}{between}{rest}?"),
                    None => format!("the servers are {}", some_of(own)),
                };
                (
                    format!(
                        "nothing can have the name {}: there is no such server",
                        name.shown
                    ),
                    hint,
                )
            }
            None => {
                let behind = |server: &&str| {
                    let rest = glob.strip_prefix(*server)?;
                    let own = rest.strip_prefix(['_', '-', '.', ':', '/', '+'])?;
                    Some(format!("{server}{between}{own}"))
                };
                let hint = match (own.iter().find_map(behind), own) {
                    (Some(near), _) => format!("did you mean {near}?"),
                    (None, [one]) => format!("did you mean {one}{between}{glob}?"),
                    _ => format!("write {form}; the servers are {}", some_of(own)),
                };
                (
                    format!(
                        "nothing can have the name {}, which says no server",
                        name.shown
                    ),
                    hint,
                )
            }
        };
        self.warn(&name.place, says, hint);
    }

    /// Routes of plain HTTP at paths where servers of tools are, or what clients learn of tokens for them.
    fn paths_of_tools(&mut self, document: &Document, mcp: &schema::Mcp) {
        let mut taken: Vec<String> = paths(mcp).iter().map(ToString::to_string).collect();
        if !mcp.oauth.is_absent() {
            let told = taken.iter().map(|path| format!("{METADATA_PATH}{path}"));
            let told: Vec<String> = told.collect();
            taken.extend(told);
            taken.push(METADATA_PATH.to_owned());
        }
        for (_, route) in document.routes.items() {
            let matched = route.as_ref().and_then(|route| route.r#match.get());
            for at in matched.map_or(&[][..], |of| of.path.items()) {
                let named = match &at.value.0 {
                    PathPattern::Exact(path) | PathPattern::Below(path) => path,
                    PathPattern::Template(_) => continue,
                };
                if taken.iter().any(|path| **path == **named) {
                    let says = format!(
                        "no call to {named} comes here: `mcp` has that path, whoever calls"
                    );
                    self.warn(&at.place, says, "give one of the two another path");
                }
            }
        }
    }
}

/// Whether some name that begins so, and goes on, fits.
fn meets(glob: &str, start: &str) -> bool {
    match glob.split_once('*') {
        Some((head, _)) => head.starts_with(start) || start.starts_with(head),
        None => glob.len() > start.len() && glob.starts_with(start),
    }
}

type Written = Field<schema::Selection>;

/// The names in what is shown of each kind of thing.
fn selections<'w>(
    names: [&'w Written; 2],
    uris: &'w Written,
) -> impl Iterator<Item = (Vec<&'w At<NameGlob>>, Manner)> {
    let of_names = names.into_iter().map(|of| (of, NAMES));
    let all = of_names.chain([(uris, URIS)]);
    all.filter_map(|(of, manner)| {
        let of = of.get()?;
        let entries = [&of.allow, &of.deny].into_iter().filter_map(Field::get);
        Some((entries.flat_map(listed).collect(), manner))
    })
}

fn listed(
    of: &OneOrList<ShortOrFull<NameGlob, schema::NamesWhen>>,
) -> impl Iterator<Item = &At<NameGlob>> {
    let items = of.0.iter().filter_map(|(_, item)| item.as_ref());
    items.flat_map(|item| match item {
        ShortOrFull::Short(at) => std::slice::from_ref(at),
        ShortOrFull::Full(full) => full.name.items(),
    })
}
