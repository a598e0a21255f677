//! What the gate would make of a message to servers of tools, or of a call of one of their tools.
//!
//! Invariant: it goes by the stages that a message goes by (`policy::front`), and no server is asked for anything.
//! Not here: which tools there are (`tollgate mcp list`, of a running gate), how the answer reads (`said`).

use policy::authorizer::{Asked, Authorization};
use policy::caller::Peer;
use policy::exchange::Env;
use policy::front::{Begun, Call, Ended, Http, Identification, Known};
use policy::id::{BackendId, LimitId};
use policy::mcp::{Glob, McpRoute, PATH, Prefix, Selection};
use policy::operation::Operation;
use policy::record::Record;
use policy::refusal::{LocalReply, Refusal};
use policy::route::{Chosen, of_tool, tools};
use policy::snapshot::Snapshot;
use wire::head::RequestHead;

/// Between a server and its tool.
const BETWEEN: &str = "__";

/// A message, as far as the gate would let it.
pub(super) struct Message<'a> {
    pub(super) head: &'a RequestHead,
    pub(super) peer: &'a Peer,
    pub(super) unix_ms: u64,
    /// The tool that it calls, by its whole name.
    pub(super) tool: Option<&'a str>,
}

/// Where a call of a tool goes, and what of the configuration is the tool's alone.
#[derive(Debug, Default)]
pub(super) struct ToolOutcome {
    /// The backend that is its server; none where only the running servers can tell.
    pub(super) server: Option<BackendId>,
    /// The limits that count it, where it has its own.
    pub(super) limits: Option<Vec<LimitId>>,
    /// Why nobody sees it.
    pub(super) hidden: Option<String>,
    /// By what it is seen.
    pub(super) shown: Option<String>,
}

/// What is recorded of it, and why it is refused.
pub(super) async fn once(
    message: &Message<'_>,
    env: &mut Env<'_>,
) -> (Record, Option<LocalReply>, ToolOutcome) {
    let mut tool = ToolOutcome::default();
    match judged(message, &mut tool, env).await {
        Ok(record) => (record, None, tool),
        Err(ended) => {
            let Ended {
                record, refusal, ..
            } = *ended;
            let told = refusal.map(|refusal| refusal.reply());
            (record, told, tool)
        }
    }
}

async fn judged(
    message: &Message<'_>,
    found: &mut ToolOutcome,
    env: &mut Env<'_>,
) -> Result<Record, Box<Ended>> {
    let (head, peer) = (message.head, message.peer);
    let who = Http { head, peer };
    let parents = std::iter::empty();
    let begun = Begun::new(None, parents, &who, message.unix_ms, env).of(Operation::Mcp);
    let known = match begun.identify(&who, env) {
        Identification::Known(known) => known,
        Identification::Refused(ended) => return Err(ended),
        Identification::Asks(asking) => {
            let (verifier, credential) = asking.question();
            let answer = verifier.ask(credential.clone()).await;
            asking.answered(answer, &who, env)?
        }
    };
    let (s, now) = (env.snapshot, env.now);
    let refuse = |known: Known, refusal| Err(Box::new(known.refuse(refusal, now)));
    let workload = known.record().workload;
    let Some((workload, (_, rule, chosen))) = workload.and_then(|id| Some((id, tools(s, id)?)))
    else {
        return refuse(known, Refusal::McpRouteNotFound);
    };
    let of_models = known
        .record()
        .caller
        .as_ref()
        .is_some_and(|caller| !caller.models.is_empty());
    if of_models {
        return refuse(known, Refusal::NotAuthorized);
    }
    if let Some(refusal) = outside(message, known.record(), chosen, s).await {
        return refuse(known, refusal);
    }
    if let Some(tool) = message.tool {
        match server_of(tool, (rule, &chosen.route.name), s) {
            Ok((server, shown)) => {
                found.server = server;
                found.shown = Some(shown);
            }
            Err(why) => found.hidden = Some(why),
        }
    }
    if let Some(tool) = message.tool.filter(|_| found.hidden.is_some()) {
        let name = tool.chars().take(256).collect::<String>().into();
        return refuse(known, Refusal::McpNotFound { what: "tool", name });
    }
    let call = Call {
        method: if message.tool.is_some() {
            "tools/call"
        } else {
            "initialize"
        },
        path: message.tool.unwrap_or(PATH),
        operation: Operation::Mcp.as_str(),
        source: s.clients.address(peer.address, head),
        route: Some(chosen.route),
        model: None,
    };
    let allowed = known.authorize(&call, s, now)?;
    let chosen = match message.tool {
        Some(tool) => of_tool(s, workload, (rule, chosen), tool),
        None => chosen,
    };
    if message
        .tool
        .is_some_and(|tool| rule.limits_of(tool).is_some())
    {
        found.limits = Some(chosen.grant.limits.clone());
    }
    let admitted = allowed.admit_free(chosen, env)?;
    Ok(admitted
        .settle(
            policy::record::Outcome::Completed,
            policy::record::Tokens::default(),
            env,
        )
        .record)
}

/// The server that a tool's name says, where it says one, and by what it is seen; else why nobody under this rule sees a tool of this
/// name.
fn server_of(
    tool: &str,
    (rule, route): (&McpRoute, &str),
    s: &Snapshot,
) -> Result<(Option<BackendId>, String), String> {
    let Some(config) = &s.mcp else {
        return Ok((None, String::new()));
    };
    let split = tool.split_once(BETWEEN);
    let of = split.and_then(|(server, own)| {
        let mut servers = config.servers_of(rule);
        Some((servers.find(|of| *of.name == *server)?, own))
    });
    let mut shown = Vec::new();
    match of {
        Some((server, own)) => {
            let place = format!("mcp.servers.{}", server.name);
            shown.push(seen(&server.shows.tools, own, &place)?);
        }
        None if config.prefix == Prefix::Always => {
            let names: Vec<&str> = config.servers_of(rule).map(|of| &*of.name).collect();
            return Err(format!(
                "a tool's name is SERVER__TOOL, and the servers of this route are {}",
                names.join(", ")
            ));
        }
        None => {}
    }
    shown.push(seen(
        &rule.shows.tools,
        tool,
        &format!("the route {route}"),
    )?);
    Ok((of.map(|(server, _)| server.backend), shown.join(", and ")))
}

/// By what of a selection a name is seen; else by what it is hidden.
fn seen(selection: &Selection, name: &str, place: &str) -> Result<String, String> {
    let hit = |of: &[Glob]| {
        of.iter()
            .find(|glob| glob.takes(name))
            .map(|glob| glob.0.clone())
    };
    if let Some(glob) = hit(&selection.deny) {
        return Err(format!("hidden by `tools` of {place} (deny: {glob})"));
    }
    match (hit(&selection.allow), selection.allow.is_empty()) {
        (Some(glob), _) => Ok(format!("seen by `tools` of {place} (allow: {glob})")),
        (None, true) => Ok(format!("not hidden by `tools` of {place}")),
        (None, false) => Err(format!(
            "hidden by `tools` of {place} (no `allow` names it)"
        )),
    }
}

/// Whoever is asked outside, as soon as the caller is known and once its rule is.
async fn outside(
    message: &Message<'_>,
    record: &Record,
    chosen: Chosen<'_>,
    s: &Snapshot,
) -> Option<Refusal> {
    let workload = s.workload(record.workload?)?;
    let backends = chosen.route.backends.iter();
    let backends: Vec<&str> = backends
        .filter_map(|id| Some(&*s.backend(*id)?.name))
        .collect();
    for (authorizer, has_route) in [
        (&workload.authorizer, false),
        (&workload.call_authorizer, true),
    ] {
        let Some(authorizer) = authorizer else {
            continue;
        };
        let asked = authorizer.ask(&Asked {
            id: &record.id,
            head: message.head,
            source: s.clients.address(message.peer.address, message.head),
            workload: &workload.name,
            caller: record.caller.as_deref(),
            model: None,
            route: has_route.then_some(&*chosen.route.name),
            backends: if has_route {
                backends.clone()
            } else {
                Vec::new()
            },
        });
        match asked.await {
            Authorization::Allowed => {}
            Authorization::Denied(_) => return Some(Refusal::NotAuthorized),
            Authorization::Unavailable(_) => return Some(Refusal::AuthorizerUnavailable),
        }
    }
    None
}
