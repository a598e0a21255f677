//! `mcp`: servers of tools, and the rules that say who may use them.
//!
//! A server becomes a backend, and a rule a route, that no call to a model can take; so they have pools, credentials, limits and
//! labels as all others. Their names begin with `mcp:`, which no name in a document can.
//! Invariant: a workload has one such rule at most for each path.
//! Not here: messages (`mcp`, the crate), what a rule shows ([`policy::mcp`]), filters and pins (`filter`), names that nothing has (`named`).

mod filter;
mod named;
mod oauth;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use policy::address::is_allowed;
use policy::exchange::MAX_GRANT_LIMITS;
use policy::id::{BackendId, EndpointId, RouteId};
use policy::mcp::{Glob, McpRoute, Server, TakenToken};
use policy::retry::Retries;
use policy::snapshot::{self, Grant, Snapshot};

use self::filter::{at, pins, shows};
use self::oauth::{path, paths};
use super::backend::{Serves, number};
use super::limit::WrittenRate;
use super::route::{registered, some_of};
use crate::decode::{At, Decode, Field, ListOf, OneOrMany, Place, nearest};
use crate::host::{Program, ToolCommand};
use crate::node::parse;
use crate::scalar::{Name, NameGlob, ServerName, Span};
use crate::schema::{Backend, Limit, mcp as schema};
use crate::target::Target;

const SESSION_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);
const SESSION_LEAST: Duration = Duration::from_secs(60);
const SESSION_MOST: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const LISTS_DEFAULT: Duration = Duration::from_secs(30);
const WITHIN_DEFAULT: Duration = Duration::from_secs(10);
/// As many as the key has that is derived of it.
const SECRET_BYTES_MIN: usize = 32;
/// What a command's bridge is to the gate.
const BRIDGE: &str = "{ url: \"http://127.0.0.1:1/mcp\", proxy: none, protocol: http1 }";
/// What the names of the gate's own tools begin with.
const OWN_NAME: &str = "tollgate";
/// Servers whose sessions fit into one header.
const SERVERS_MAX: usize = 64;

impl super::Lowering<'_> {
    pub(super) fn mcp(&mut self, written: &schema::Mcp, snapshot: &mut Snapshot) {
        let place = written.servers.get().and_then(|servers| servers.0.first());
        if let Some((first, _)) = place.filter(|_| written.servers.items().len() > SERVERS_MAX) {
            let says = format!("there are more than {SERVERS_MAX} servers");
            self.fault(&first.place, says, "");
        }
        let mut ordered: Vec<_> = written.servers.items().iter().collect();
        ordered.sort_by(|a, b| a.0.value.cmp(&b.0.value));
        let mut servers = Vec::new();
        for (name, server) in ordered {
            let Some(server) = server else { continue };
            self.check_server(&name.place, &server.target);
            let label = At {
                value: Name(format!("mcp:{}", name.value.0)),
                place: name.place.clone(),
                shown: name.shown.clone(),
            };
            servers.push(Server {
                name: name.value.0.as_str().into(),
                backend: BackendId(number(snapshot.backends.len())),
                shows: shows(&server.tools, &server.prompts, &server.resources),
                is_command: !server.command.is_absent(),
                pins: pins(&name.value.0, server),
                at: at(&name.value.0, server),
                described: None,
                changes: Arc::default(),
            });
            match self.command(name, server, snapshot) {
                Some(command) => {
                    self.made.commands.push(command);
                    self.bridge(&label, snapshot);
                }
                None => {
                    let described = self.described(name, &label, server, snapshot);
                    if let Some(last) = servers.last_mut() {
                        last.described = described;
                    }
                }
            }
        }
        let paths = paths(written);
        let routes = self.mcp_routes(written, (&servers, &paths), snapshot);
        let session = written.session.get();
        let is_odd = |span: &Span| !(SESSION_LEAST..=SESSION_MOST).contains(&span.0);
        if let Some(at) = session.filter(|at| is_odd(&at.value)) {
            self.refuse(at, "is no length of a session", "write 1m to 30d");
        }
        let top = Place::new("mcp", 0);
        let mut secret = |of: &Field<_>, name| {
            let secret = self.secret_below(of, &top, name)??;
            if secret.expose().len() < SECRET_BYTES_MIN {
                let says = format!("has fewer than {SECRET_BYTES_MIN} bytes");
                let hint = "make one with: openssl rand -hex 32";
                self.fault(&top.below(name), says, hint);
            }
            Some(secret)
        };
        let (now, previous) = (
            secret(&written.secret, "secret"),
            secret(&written.previous_secret, "previous_secret"),
        );
        let oauth = written.oauth.get();
        let oauth = oauth.and_then(|of| self.mcp_oauth(of, &paths));
        let Some(now) = now else { return };
        snapshot.mcp = Some(Box::new(policy::mcp::Mcp {
            servers,
            routes,
            paths,
            prefix: written
                .prefix
                .get()
                .map(|at| at.value.0)
                .unwrap_or_default(),
            secret: now,
            previous,
            session: session.map_or(SESSION_DEFAULT, |at| at.value.0),
            lists: written.lists.get().map_or(LISTS_DEFAULT, |at| at.value.0),
            within: written.within.get().map_or(WITHIN_DEFAULT, |at| at.value.0),
            ended: Arc::default(),
            kept: Arc::default(),
            held: Arc::default(),
            waiting: Arc::default(),
            seen: Arc::default(),
            known: Arc::default(),
            oauth,
        }));
    }

    /// An address that a cloud's metadata service or a neighbour of the link has: whoever gets a server to read one for them has the
    /// machine's identity. Names are looked at when they are looked up.
    pub(super) fn not_on_the_link(&mut self, target: &At<Target>) {
        let address = target.value.host.parse::<std::net::IpAddr>();
        if address.is_ok_and(|address| !is_allowed(address, false)) {
            let says = "is an address of the link, of a metadata service, of a group or of nobody, where no server of tools is asked";
            self.refuse(target, says, "write the address of the server");
        }
    }

    /// The command that a server is, where it is one.
    fn command(
        &mut self,
        name: &At<ServerName>,
        written: &schema::McpServer,
        snapshot: &Snapshot,
    ) -> Option<ToolCommand> {
        let of_commands = [
            ("args", !written.args.is_absent()),
            ("environment", !written.environment.is_absent()),
            ("directory", !written.directory.is_absent()),
        ];
        let said = |of: &[(&'static str, bool)]| {
            let said = of.iter().filter(|(_, is_said)| *is_said);
            said.map(|(member, _)| *member)
                .collect::<Vec<_>>()
                .join(", ")
        };
        if written.command.is_absent() {
            let said = said(&of_commands);
            if !said.is_empty() {
                self.fault(
                    &name.place,
                    format!("has no command, and says {said}"),
                    "write its command, or leave that out",
                );
            }
            return None;
        }
        let target = &written.target;
        let of_addresses = [
            ("url", !target.url.is_absent()),
            ("credential", !target.credential.is_absent()),
            ("client_certificate", !target.client_certificate.is_absent()),
            ("headers", !target.headers.is_absent()),
            ("protocol", !target.protocol.is_absent()),
            ("ca", !target.ca.is_absent()),
            ("proxy", !target.proxy.is_absent()),
            ("pool", !target.pool.is_absent()),
            ("timeouts", !target.timeouts.is_absent()),
            ("openapi", !written.openapi.is_absent()),
            ("base", !written.base.is_absent()),
            ("methods", !written.methods.is_absent()),
        ];
        let said = said(&of_addresses);
        if !said.is_empty() {
            let hint = "a command is spoken to over its standard input and output: leave that out";
            self.fault(&name.place, format!("is a command, and says {said}"), hint);
        }
        let environment = written.environment.items().iter();
        let environment = environment.filter_map(|(name, value)| {
            Some((name.value.0.clone(), value.as_ref()?.value.0.clone()))
        });
        Some(ToolCommand {
            server: name.value.0.clone(),
            endpoint: EndpointId(number(snapshot.endpoints.len())),
            program: Program {
                command: written
                    .command
                    .get()
                    .map(|at| at.value.0.clone())
                    .unwrap_or_default(),
                args: written
                    .args
                    .items()
                    .iter()
                    .map(|at| at.value.0.clone())
                    .collect(),
                environment: environment.collect(),
                directory: written.directory.get().map(|at| self.path_of(&at.value)),
            },
        })
    }

    /// The backend of a command: where its bridge listens is known once the gate runs.
    fn bridge(&mut self, label: &At<Name>, snapshot: &mut Snapshot) {
        let written = parse(BRIDGE).ok();
        let written = written.and_then(|node| Backend::decode(&node, "", &mut self.findings));
        if let Some(written) = written {
            self.backend(label, &written, Serves::Tools, snapshot);
        }
    }

    /// What a server says that only another kind of backend can.
    fn check_server(&mut self, place: &Place, written: &Backend) {
        let others = [
            ("serves", !written.serves.is_absent()),
            ("dialect", !written.dialect.is_absent()),
            ("endpoints", !written.endpoints.is_absent()),
            ("api_headers", !written.api_headers.is_absent()),
            ("anthropic_betas", !written.anthropic_betas.is_absent()),
            ("ask_usage", !written.ask_usage.is_absent()),
            ("query", !written.query.is_absent()),
            ("models", !written.models.is_absent()),
            ("model_names", !written.model_names.is_absent()),
            ("ejection", !written.ejection.is_absent()),
            ("balancing", !written.balancing.is_absent()),
            ("at_root", !written.at_root.is_absent()),
            ("tokens", !written.tokens.is_absent()),
        ];
        let said = others.iter().filter(|(_, is_said)| *is_said);
        let said: Vec<&str> = said.map(|(member, _)| *member).collect();
        if !said.is_empty() {
            let says = format!("serves tools, and says {}", said.join(", "));
            let hint = "leave that out: it is of backends that serve models or plain HTTP";
            self.fault(place, says, hint);
        }
    }

    fn mcp_routes(
        &mut self,
        written: &schema::Mcp,
        (servers, paths): (&[Server], &[Box<str>]),
        snapshot: &mut Snapshot,
    ) -> Vec<McpRoute> {
        let mut routes: Vec<McpRoute> = Vec::new();
        let mut names: HashSet<String> = HashSet::new();
        for (place, route) in written.routes.items() {
            let Some(route) = route else { continue };
            let own = route.name.get().map(|at| &at.value.0);
            let first = route.workload.items().first().map(|at| &at.value.0);
            let name = format!("mcp:{}", own.or(first).map_or("", String::as_str));
            if !names.insert(name.clone()) {
                let says = "an earlier route has this name";
                self.fault(place, says, "give it another `name`");
            }
            let places = self.mcp_servers(route, written, servers);
            let is_searched = route.list_tools.get().is_some_and(|at| at.value.0);
            if is_searched {
                self.not_as_the_gates(written, place, &places, servers);
            }
            let own_tokens = self.own_tokens(route, servers, &places);
            let id = RouteId(number(snapshot.routes.len()));
            let nth = paths.iter().position(|of| **of == *path(route));
            let nth = nth.and_then(|nth| u16::try_from(nth).ok()).unwrap_or(0);
            let same = routes.iter().filter(|of| of.path == nth);
            let same: Vec<RouteId> = same.map(|of| of.route).collect();
            self.mcp_grants((id, &same), &name, route, snapshot);
            let backends = places.iter().filter_map(|at| servers.get(*at));
            snapshot.routes.push(snapshot::Route {
                name: name.into(),
                is_plain: true,
                models: Vec::new(),
                unlisted: Vec::new(),
                backends: backends.map(|server| server.backend).collect(),
                model: None,
                output_max: None,
                billing: policy::billing::Billing::Grouped,
                billed_by: policy::billing::BilledBy::Reported,
                retries: Retries::default(),
                abandon: policy::disconnect::OnDisconnect::default(),
                is_exclusive: false,
                unread: Vec::new(),
                batches: None,
                forward_headers: Vec::new(),
                return_headers: Vec::new(),
                filters: Vec::new(),
                hold_back_bytes: 0,
                weights: Vec::new(),
                actions: None,
            });
            routes.push(McpRoute {
                path: nth,
                route: id,
                servers: places,
                shows: shows(&route.tools, &route.prompts, &route.resources),
                tool_limits: route
                    .tool_limits
                    .items()
                    .iter()
                    .filter_map(|(_, of)| Some(globs(&of.as_ref()?.tools)))
                    .collect(),
                own_tokens,
                is_searched,
            });
        }
        routes
    }

    /// A server whose tools would be taken for the two of the gate's own.
    fn not_as_the_gates(
        &mut self,
        written: &schema::Mcp,
        route: &Place,
        places: &[usize],
        servers: &[Server],
    ) {
        let mut of = places.iter().filter_map(|at| servers.get(*at));
        if !of.any(|server| *server.name == *OWN_NAME) {
            return;
        }
        let mut names = written.servers.items().iter().map(|(name, _)| name);
        if let Some(name) = names.find(|name| name.value.0 == OWN_NAME) {
            let says = format!(
                "has the name of the gate's own tools ({OWN_NAME}__find_tools), which {} shows with `list_tools: search`",
                route.path
            );
            let hint = "give it another name, or leave it out of that route's `servers`";
            self.fault(&name.place, says, hint);
        }
    }

    /// The servers of a route that are given callers' own tokens.
    fn own_tokens(
        &mut self,
        route: &schema::McpRoute,
        servers: &[Server],
        places: &[usize],
    ) -> Vec<TakenToken> {
        let mut taken: Vec<TakenToken> = Vec::new();
        for (name, header) in route.own_tokens.items() {
            let Some(header) = header else { continue };
            let server = servers.iter().position(|of| *of.name == *name.value.0);
            let Some(server) = server.filter(|at| places.contains(at)) else {
                let says = format!("the route has no server {}", name.shown);
                self.fault(&name.place, says, "name one of its `servers`");
                continue;
            };
            if servers.get(server).is_some_and(|of| of.is_command) {
                let says = "is a command, which is given no token";
                self.fault(&name.place, says, "leave it out");
                continue;
            }
            let header: Box<str> = header.value.0.as_str().into();
            if header.starts_with("mcp-") || taken.iter().any(|of| of.header == header) {
                let says = "is a header of the protocol, or of another server's token";
                self.fault(&name.place, says, "name another, such as x-github-token");
                continue;
            }
            taken.push(TakenToken { server, header });
        }
        taken
    }

    /// The places of a route's servers.
    fn mcp_servers(
        &mut self,
        route: &schema::McpRoute,
        written: &schema::Mcp,
        servers: &[Server],
    ) -> Vec<usize> {
        if route.servers.is_absent() {
            return (0..servers.len()).collect();
        }
        let known = written.servers.items().iter();
        let known: Vec<&str> = known.map(|(name, _)| name.value.0.as_str()).collect();
        let mut places = Vec::new();
        for at in route.servers.items() {
            let name = at.value.0.as_str();
            if !known.contains(&name) && written.servers.get().is_some() {
                let hint = match nearest(name, &known) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("the servers are {}", some_of(&known)),
                };
                self.fault(&at.place, format!("there is no server {}", at.shown), hint);
            }
            let place = servers.iter().position(|server| *server.name == *name);
            if place.is_some_and(|place| places.contains(&place)) {
                self.twice(at);
            }
            places.extend(place);
        }
        places.sort_unstable();
        places.dedup();
        places
    }

    fn mcp_grants(
        &mut self,
        (id, same): (RouteId, &[RouteId]),
        name: &str,
        route: &schema::McpRoute,
        snapshot: &mut Snapshot,
    ) {
        let rates = self.tool_rates(&route.limits);
        let mut of_tools = Vec::new();
        for (place, of) in route.tool_limits.items() {
            let Some(of) = of else { continue };
            let own = self.tool_rates(&of.limits);
            if rates.len() + own.len() > MAX_GRANT_LIMITS {
                let says = format!(
                    "a tool has at most {MAX_GRANT_LIMITS} limits, those of its route among them"
                );
                self.fault(place, says, "");
                continue;
            }
            let named = of.tools.items().iter().map(|at| at.value.0.as_str());
            of_tools.push((named.collect::<Vec<_>>().join(","), own));
        }
        for at in route.workload.items() {
            let workload = registered(&at.value.0, snapshot);
            let is_tools = |grant: &Grant| grant.route == id || same.contains(&grant.route);
            let of = snapshot.workload(workload);
            if of.is_some_and(|of| of.plain.iter().any(is_tools)) {
                self.refuse(
                    at,
                    "has an MCP route already",
                    "name it in one of them, or give one another `path`",
                );
                continue;
            }
            let key = format!("{}/{name}", at.value.0);
            let limits = super::limit::register(&rates, workload, id, &key, snapshot);
            let mut grants = vec![limits.clone()];
            for (named, own) in &of_tools {
                let key = format!("{key}/[{named}]");
                let own = super::limit::register(own, workload, id, &key, snapshot);
                grants.push([limits.clone(), own].concat());
            }
            if let Some(workload) = snapshot.workloads.get_mut(workload.index()) {
                let grants = grants.into_iter();
                workload
                    .plain
                    .extend(grants.map(|limits| Grant { route: id, limits }));
            }
        }
    }

    /// Rates of what has no tokens.
    fn tool_rates(&mut self, limits: &Field<ListOf<Limit>>) -> Vec<WrittenRate> {
        for (place, limit) in limits.items() {
            let tokens = limit.as_ref().map(|limit| &limit.tokens);
            if tokens.is_some_and(|tokens| !tokens.is_absent()) {
                let says = "counts tokens, and calls of tools have none";
                self.fault(place, says, "write requests: N");
            }
        }
        self.rates(limits)
    }
}

fn globs(of: &Field<OneOrMany<NameGlob>>) -> Vec<Glob> {
    let globs = of.items().iter();
    globs.map(|at| Glob(at.value.0.as_str().into())).collect()
}
