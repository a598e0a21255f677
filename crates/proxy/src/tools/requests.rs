//! Requests within a session: lists of all servers as one, and what a name stands for.
//!
//! Invariant: what is listed and what may be used is one question, asked anew each time.
//! Not here: the session itself (`session`), requests on their way to a server (`forward`).

use std::rc::Rc;
use std::sync::Arc;

use mcp::catalog::{self, Found, Kind, Naming, Source, found, fresh, merged, seen};
use mcp::discover::Fresh;
use mcp::envelope::Message;
use mcp::handshake::Abilities;
use mcp::modern::Level;
use mcp::name;
use mcp::reply::{result, with_members};
use mcp::search::Looked;
use mcp::session::Session;
use mcp::target::{Target, of as target_of};
use policy::mcp::{McpRoute, Prefix, Server};
use policy::refusal::Refusal;

use super::filters::{Does, may_see, may_use};
use super::forward::{Asked, forward};
use super::join::{Boxed, all};
use super::rule::rule;
use super::{
    Arrived, admitted, answer, asker, counted, invalid, lists, modern, of_client, search, session,
    session_of, within,
};
use crate::call::{Call, OUT_OF_ORDER, Stop, while_there};
use crate::client::Downstream;
use crate::worker_snapshot::WorkerSnapshot;

/// Serves a request.
pub(super) async fn serve<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    message: &Message<'_>,
    method: &str,
    id: &[u8],
    client: &mut D,
) -> Result<(), Stop> {
    if method == "initialize" {
        return session::begin(call, arrived, message, id, client).await;
    }
    if method == "server/discover" {
        // It says of itself neither that it has a session nor that it needs none.
        let method = method.into();
        return Err(call.refuse(Refusal::McpMethod { method }));
    }
    let open = session_of(call, arrived.head)?;
    if method == "ping" {
        admitted(call, arrived, method, None, false, client).await?;
        return answer::message(call, client, &result(id, b"{}"), None).await;
    }
    if let Some(kind) = Kind::listed_by(method) {
        return list(call, arrived, &open, kind, id, client).await;
    }
    if method == "logging/setLevel" {
        let level = Level::asked(&arrived.text, message.params.as_ref());
        return set_level(call, arrived, &open, (id, level), client).await;
    }
    let target = match target_of(method, &arrived.text, message.params.as_ref()) {
        Ok(target) => target,
        Err(fault) => return Err(call.refuse(invalid(fault))),
    };
    match target {
        Some(target) => {
            let asked = Asked {
                message,
                method,
                target: &target,
                log_level: None,
                knows_tasks: false,
                is_found: false,
                id,
            };
            let view = Rc::clone(&call.view);
            if let Some(own) = search::own(rule_of(call, &view)?, method, &target) {
                return search::serve(call, arrived, (own, Some(&open)), &asked, client).await;
            }
            named(call, &target);
            counted(call, arrived, client).await?;
            forward(call, arrived, &open, &asked, client).await
        }
        _ => {
            let method = method.chars().take(64).collect::<String>().into();
            Err(call.refuse(Refusal::McpMethod { method }))
        }
    }
}

/// The record says what its client named, until it is known what that is.
pub(super) fn named(call: &mut Call, target: &Target<'_>) {
    call.facts.named = Some(shortened(target));
}

/// In records in place of the name of a tool or a prompt that no list has: whoever makes names up fills no report with them.
const UNLISTED: &str = "(unlisted)";

/// The record says that nobody lists what its client named; which name that was is told as the reason.
pub(super) fn unlisted(call: &mut Call, server: Option<&Server>, target: &Target<'_>) {
    let server = server.map(|server| target.kind.whole(&server.name, UNLISTED));
    call.facts.named = Some(server.unwrap_or_else(|| UNLISTED.to_owned()).into());
    let says = format!("no list has {}", shortened(target));
    call.facts.reason = Some(says.into());
}

/// The rule of a message's caller.
pub(super) fn rule_of<'v>(call: &mut Call, view: &'v WorkerSnapshot) -> Result<&'v McpRoute, Stop> {
    let rule = call.record().map(|record| rule(record, view));
    match rule {
        Some(Ok((_, rule, _))) => Ok(rule),
        Some(Err(refusal)) => Err(call.refuse(refusal)),
        None => Err(call.refuse(OUT_OF_ORDER)),
    }
}

/// One list of what all servers have, as far as its caller may see it.
pub(super) async fn list<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    open: &Session,
    kind: Kind,
    id: &[u8],
    client: &mut D,
) -> Result<(), Stop> {
    let view = Rc::clone(&call.view);
    let rule = rule_of(call, &view)?;
    if call.facts.is_modern
        && !open
            .servers
            .iter()
            .any(|of| of.abilities.has(kind.ability()))
    {
        // What no server offers is not there.
        let method = kind.method().into();
        return Err(call.refuse(Refusal::McpMethod { method }));
    }
    admitted(call, arrived, kind.method(), None, true, client).await?;
    if rule.is_searched && kind == Kind::Tools {
        return search::list(call, &view, rule, id, client).await;
    }
    let Visible { mut told, fresh } = visible(call, arrived, open, kind, client).await?;
    if call.facts.is_modern {
        told = with_members(&told, fresh.members().as_bytes());
    }
    answer::message(call, client, &result(id, &told), None).await
}

/// What a caller sees of a kind.
struct Visible {
    /// As it is told.
    told: Vec<u8>,
    /// How long that may be kept, and by whom.
    fresh: Fresh,
}

/// What all servers have, as far as its caller may see it.
async fn visible<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    open: &Session,
    kind: Kind,
    client: &mut D,
) -> Result<Visible, Stop> {
    let view = Rc::clone(&call.view);
    let rule = rule_of(call, &view)?;
    let listed = lists::of(call, &view, rule, open, kind, None, client).await?;
    let sources: Vec<Source<'_>> = listed.iter().map(lists::Listed::source).collect();
    let naming = naming(&view, rule);
    let is_shown = shows((call, arrived), &view, rule, (kind, &listed));
    let told = merged(kind, &sources, &naming, is_shown);
    let left = listed.iter().map(|of| of.left.as_millis()).min();
    let unless_said = Fresh {
        ttl_ms: left.and_then(|left| u64::try_from(left).ok()).unwrap_or(0),
        is_public: false,
    };
    let is_for_all = modern::is_for_all(&view, rule);
    let fresh = fresh(&sources, unless_said, is_for_all);
    Ok(Visible { told, fresh })
}

/// The tools of all servers, as far as its caller may see them, with the lists that they are in.
pub(super) async fn looked<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    open: &Session,
    client: &mut D,
) -> Result<Looked, Stop> {
    let view = Rc::clone(&call.view);
    let (rule, kind) = (rule_of(call, &view)?, Kind::Tools);
    let listed = lists::of(call, &view, rule, open, kind, None, client).await?;
    let sources: Vec<Source<'_>> = listed.iter().map(lists::Listed::source).collect();
    let naming = naming(&view, rule);
    let is_shown = shows((call, arrived), &view, rule, (kind, &listed));
    let tools = seen(kind, &sources, &naming, is_shown);
    let away = listed.iter().filter(|of| of.list().is_none());
    let away = away.map(|of| (&*of.server.name).into()).collect();
    let lists = listed.iter().map(|of| {
        let list = of.list().map(Arc::clone).unwrap_or_default();
        ((&*of.server.name).into(), list)
    });
    Ok(Looked {
        lists: lists.collect(),
        tools,
        away,
    })
}

/// How names of the servers of a rule are shown.
fn naming<'v>(view: &'v WorkerSnapshot, rule: &'v McpRoute) -> Naming<'v> {
    let config = Call::config(view).map(|(config, _)| config);
    let prefix = config.map_or(Prefix::Always, |config| config.prefix);
    let servers = config
        .into_iter()
        .flat_map(|config| config.servers_of(rule));
    Naming::of(prefix, servers.map(|of| &*of.name))
}

/// Whether filters and rules let a caller see things of servers that gave their lists, by server and own name.
fn shows<'a>(
    (call, arrived): (&'a Call, &'a Arrived<'_>),
    view: &'a WorkerSnapshot,
    rule: &'a McpRoute,
    (kind, listed): (Kind, &'a [lists::Listed<'_>]),
) -> impl FnMut(&str, &str) -> bool + 'a {
    move |server, own| {
        let server = listed.iter().find(|of| *of.server.name == *server);
        server.is_some_and(|of| {
            may_see((call, arrived), rule, of.server, (kind, own), Does::Sees)
                && may_use(call, view, arrived, kind, of.server, own)
        })
    }
}

/// The tools that somebody may have meant who wrote a name that none has: as its caller sees them, the first few.
pub(super) async fn alike<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    open: &Session,
    written: &str,
    client: &mut D,
) -> Result<Vec<String>, Stop> {
    let view = Rc::clone(&call.view);
    let (rule, kind) = (rule_of(call, &view)?, Kind::Tools);
    let listed = lists::of(call, &view, rule, open, kind, None, client).await?;
    let sources: Vec<Source<'_>> = listed.iter().map(lists::Listed::source).collect();
    let naming = naming(&view, rule);
    let is_shown = shows((call, arrived), &view, rule, (kind, &listed));
    let mut alike = catalog::alike(kind, &sources, &naming, written, is_shown);
    alike.truncate(ALIKE_MAX);
    Ok(alike)
}

/// Most names that are told in place of one.
const ALIKE_MAX: usize = 3;

/// A server's own thing.
pub(super) struct Meant<'v> {
    pub(super) server: &'v Server,
    pub(super) own: String,
}

pub(super) fn not_found(target: &Target<'_>) -> Refusal {
    let what = match target.kind {
        Kind::Tools => "tool",
        Kind::Prompts => "prompt",
        Kind::Resources => "resource",
        Kind::Templates => "template",
    };
    Refusal::McpNotFound {
        what,
        name: shortened(target),
    }
}

/// What a client named, as far as it is told and recorded.
fn shortened(target: &Target<'_>) -> Box<str> {
    target.name.chars().take(256).collect::<String>().into()
}

/// What a name stands for.
pub(super) async fn meant<'v, D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    view: &'v WorkerSnapshot,
    rule: &McpRoute,
    session: &Session,
    target: &Target<'_>,
    client: &mut D,
) -> Result<Meant<'v>, Stop> {
    let meant = sought(call, arrived, view, rule, session, target, client).await?;
    meant.map_err(|refusal| {
        if matches!(refusal, Refusal::McpNotFound { .. }) {
            unlisted(call, None, target);
        }
        call.refuse(refusal)
    })
}

/// The same; why it stands for nothing.
pub(super) async fn sought<'v, D: Downstream>(
    call: &Call,
    arrived: &Arrived<'_>,
    view: &'v WorkerSnapshot,
    rule: &McpRoute,
    session: &Session,
    target: &Target<'_>,
    client: &mut D,
) -> Result<Result<Meant<'v>, Refusal>, Stop> {
    let Some((config, _)) = Call::config(view) else {
        return Ok(Err(OUT_OF_ORDER));
    };
    let place_of = |server: &str| {
        let places = rule.servers.iter().copied();
        let mut of = places.filter_map(|at| Some((at, config.servers.get(at)?)));
        of.find(|(_, of)| *of.name == *server)
    };
    let meant = |server: &str, own: &str| {
        let (_, server) = place_of(server)?;
        let own = own.to_owned();
        Some(Meant { server, own })
    };
    let kind = target.kind;
    let is_prefixed = config.prefix == Prefix::Always;
    let prefixed = match kind.has_uri() {
        _ if !is_prefixed => None,
        true => name::split_uri(&target.name),
        false => name::split(&target.name),
    };
    if !is_prefixed || !kind.has_uri() && name::may_be_shortened(&target.name) {
        let only = prefixed.and_then(|(server, _)| place_of(server));
        let only = only.map(|(at, _)| at);
        let caller = (call, arrived);
        match looked_up(caller, view, rule, session, target, only, client).await? {
            LookedUp::At(server, own) => {
                return Ok(meant(&server, &own).ok_or_else(|| not_found(target)));
            }
            LookedUp::Two(one, other) => {
                let (one, other) = (one.into(), other.into());
                let name = shortened(target);
                return Ok(Err(Refusal::McpAmbiguous { name, one, other }));
            }
            LookedUp::Nowhere => {}
        }
    }
    let meant = prefixed.and_then(|(server, own)| meant(server, own));
    Ok(meant.ok_or_else(|| not_found(target)))
}

/// Where a name was found.
enum LookedUp {
    /// At this server, under its own name.
    At(String, String),
    /// At both of these.
    Two(String, String),
    Nowhere,
}

/// Looks a name up in what its caller may see of all servers. A URI that nobody lists is of the one server whose template makes it, or
/// of the only server that has resources.
async fn looked_up<D: Downstream>(
    (call, arrived): (&Call, &Arrived<'_>),
    view: &WorkerSnapshot,
    rule: &McpRoute,
    session: &Session,
    target: &Target<'_>,
    only: Option<usize>,
    client: &mut D,
) -> Result<LookedUp, Stop> {
    let (kind, uri) = (target.kind, &*target.name);
    let may_see = |server: &Server, kind: Kind, own: &str| {
        may_see((call, arrived), rule, server, (kind, own), Does::Sees)
    };
    let naming = naming(view, rule);
    let listed = lists::of(call, view, rule, session, kind, only, client).await?;
    let sources: Vec<Source<'_>> = listed.iter().map(lists::Listed::source).collect();
    let found = found(kind, &sources, &naming, uri, |server, own| {
        let server = listed.iter().find(|of| *of.server.name == *server);
        server.is_some_and(|of| may_see(of.server, kind, own))
    });
    match found {
        Found::One(server, own) => return Ok(LookedUp::At(server.to_owned(), own.to_owned())),
        Found::Two(one, other) => return Ok(LookedUp::Two(one.to_owned(), other.to_owned())),
        Found::Nothing if kind != Kind::Resources => {
            // One that is refused is in no list, and is refused by its name.
            let mut of = listed.iter();
            let of = of.find(|of| of.is_refused(uri) && may_see(of.server, kind, uri));
            let at = of.map(|of| LookedUp::At(of.server.name.to_string(), uri.to_owned()));
            return Ok(at.unwrap_or(LookedUp::Nowhere));
        }
        Found::Nothing => {}
    }
    let templates = lists::of(call, view, rule, session, Kind::Templates, only, client).await?;
    let own = |of: &lists::Listed<'_>| naming.own_uri(&of.server.name, uri);
    let mut makers = templates.iter().filter(|of| {
        let may_see = |own: &str| may_see(of.server, Kind::Templates, own);
        let list = of.source().catalog;
        list.zip(own(of))
            .is_some_and(|(list, own)| list.makes(own, may_see))
    });
    let at = |of: &lists::Listed<'_>| match own(of) {
        Some(own) => LookedUp::At(of.server.name.to_string(), own.to_owned()),
        None => LookedUp::Nowhere,
    };
    Ok(match (makers.next(), makers.next(), &*listed) {
        (Some(one), None, _) | (None, _, [one]) => at(one),
        (Some(one), Some(other), _) => {
            LookedUp::Two(one.server.name.to_string(), other.server.name.to_string())
        }
        (None, ..) => LookedUp::Nowhere,
    })
}

/// Tells all servers that log which level is wanted.
async fn set_level<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    open: &Session,
    (id, level): (&[u8], Option<Level>),
    client: &mut D,
) -> Result<(), Stop> {
    admitted(call, arrived, "logging/setLevel", None, true, client).await?;
    let (worker, view, call_id) = (call.worker.clone(), Rc::clone(&call.view), call.id.clone());
    let rule = rule_of(call, &view)?;
    let Some((config, _)) = Call::config(&view) else {
        return Err(call.refuse(OUT_OF_ORDER));
    };
    let (asker, within) = (asker(&worker, &view, &call_id), within(call));
    let is_told_each_time = open.servers.iter().any(|of| of.version.is_modern());
    if let (true, Some(level)) = (is_told_each_time, level) {
        let of = of_client(call, arrived.head, open);
        config.held.set_level(of, level.name());
    }
    let servers = config.servers_of(rule).filter_map(|server| {
        let mut opens = open.servers.iter();
        let open = opens.find(|open| *open.name == *server.name)?;
        // One without sessions is told with each request.
        (open.abilities.has(Abilities::LOGGING) && !open.version.is_modern())
            .then_some((server, open))
    });
    let waits = servers.map(|(server, open)| {
        let text = arrived.text.clone();
        let wait: Boxed<'_, bool> = Box::pin(async move {
            asker
                .ask(server, Some(open), ("logging/setLevel", text), id, within)
                .await
                .is_ok()
        });
        wait
    });
    let _told = while_there(all(waits.collect()), &worker, client).await?;
    answer::message(call, client, &result(id, b"{}"), None).await
}
