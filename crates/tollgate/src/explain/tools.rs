//! What the gate would make of a message to servers of tools, or of a call of one of their tools.
//!
//! Invariant: it goes by the stages that a message goes by (`policy::front`), and no server is asked for anything.
//! Not here: which tools there are (`tollgate mcp list`, of a running gate), how the answer reads (`said`).

use std::cell::{Cell, RefCell};

use policy::authority::Members;
use policy::authorizer::{Asked, Authorization};
use policy::caller::Peer;
use policy::credential::UpstreamAuth;
use policy::exchange::Env;
use policy::front::{Begun, Call, Ended, Http, Identification, Known};
use policy::id::{BackendId, LimitId};
use policy::mcp::{Holds, McpRoute, Named, Prefix, Selection, When};
use policy::operation::Operation;
use policy::record::Record;
use policy::refusal::{LocalReply, Refusal};
use policy::route::{Chosen, of_tool, tools};
use policy::snapshot::Snapshot;
use proxy::arguments::Unread;
use proxy::tool_search::{CALL, FIND};
use wire::head::RequestHead;

use super::asked::Used;

/// Between a server and its tool.
const BETWEEN: &str = "__";

/// A message, as far as the gate would let it.
pub(super) struct Message<'a> {
    pub(super) head: &'a RequestHead,
    pub(super) peer: &'a Peer,
    pub(super) unix_ms: u64,
    /// The tool that it calls.
    pub(super) tool: Option<&'a Used>,
}

/// Where a call of a tool goes, and what of the configuration is the tool's alone.
#[derive(Debug, Default)]
pub(super) struct ToolOutcome {
    /// Its whole name.
    pub(super) name: String,
    /// Whether it goes upstream hangs on arguments that nobody told.
    pub(super) hangs_on_arguments: bool,
    /// The backend that is its server; none where only the running servers can tell.
    pub(super) server: Option<BackendId>,
    /// The limits that count it, where it has its own.
    pub(super) limits: Option<Vec<LimitId>>,
    /// Why nobody sees it.
    pub(super) hidden: Option<String>,
    /// By what it is seen.
    pub(super) shown: Option<String>,
    /// What it is, where it is one of the gate's own, or goes through one.
    pub(super) own: Option<String>,
    /// What its server is sent as a credential, where that hangs on its caller.
    pub(super) credential: Option<String>,
}

/// The tool that is asked about, on a route that shows two of the gate's own in place of all: what a call of one of these is.
fn meant<'u>(
    rule: &McpRoute,
    tool: Option<&'u Used>,
    outcome: &mut ToolOutcome,
) -> (&'static str, Option<&'u Used>) {
    let uses = "tools/call";
    let Some(of) = tool.filter(|_| rule.is_searched) else {
        return (if tool.is_some() { uses } else { "initialize" }, tool);
    };
    match &*of.name {
        FIND => {
            let says = "the gate's own: it finds tools by words among those that this caller is shown, and counts as their list";
            outcome.own = Some(says.to_owned());
            ("tools/list", None)
        }
        CALL => {
            let found = of.found.as_deref();
            outcome.own = Some(match found {
                Some(found) => format!("the gate's own, and counts as a call of {}", found.name),
                None => {
                    "the gate's own: a call of the tool that its arguments name, which --tool NAME explains"
                        .to_owned()
                }
            });
            outcome.hangs_on_arguments = found.is_none();
            outcome.name = found.unwrap_or(of).name.clone();
            (uses, found)
        }
        _ => {
            let says =
                format!("not listed, as the route has `list_tools: search`: {FIND} finds it");
            outcome.own = Some(says);
            (uses, tool)
        }
    }
}

/// What a server is sent as a credential, where that hangs on its caller.
fn credential(
    (rule, server): (&McpRoute, BackendId),
    (head, record): (&RequestHead, &Record),
    s: &Snapshot,
) -> Option<String> {
    let config = s.mcp.as_deref()?;
    let backend = s.backend(server)?;
    let name = backend.name.strip_prefix("mcp:").unwrap_or(&backend.name);
    let mut taken = rule.own_tokens.iter();
    let taken = taken.find(|of| {
        let of = config.servers.get(of.server);
        of.is_some_and(|of| of.backend == server)
    });
    let brings = taken.is_some_and(|of| head.fields.by_name(of.header.as_bytes()).next().is_some());
    if let Some(of) = taken.filter(|_| brings) {
        return Some(format!(
            "{name} is sent the caller's own token, which the header {} brings",
            of.header
        ));
    }
    if backend.exchanges_tokens {
        let by = record
            .caller
            .as_deref()
            .map_or("header", |caller| caller.by.as_str());
        let is_token = record
            .caller
            .as_deref()
            .is_some_and(|caller| caller.by.is_token());
        return Some(match is_token {
            true => format!("{name} is sent what is given for the caller's token"),
            false => format!(
                "{name} is sent what is given for the caller's token, and this one is known by {by}: 503 upstream_credential_unavailable"
            ),
        });
    }
    let header = &taken?.header;
    let endpoint = backend.endpoints.first().and_then(|id| s.endpoint(*id))?;
    Some(match endpoint.auth {
        UpstreamAuth::None => {
            format!("{name} is sent none: neither the gate has one nor the call a header {header}")
        }
        _ => format!("{name} is sent the gate's, as the call has no header {header}"),
    })
}

/// What is recorded of it, and why it is refused.
pub(super) async fn once(
    message: &Message<'_>,
    env: &mut Env<'_>,
) -> (Record, Option<LocalReply>, ToolOutcome) {
    let mut tool = ToolOutcome {
        name: message.tool.map(|of| of.name.clone()).unwrap_or_default(),
        ..ToolOutcome::default()
    };
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
    let path = env.snapshot.mcp.as_deref();
    let path = path.and_then(|mcp| mcp.path(head.path())).unwrap_or(0);
    let begun = Begun::new(None, parents, &who, message.unix_ms, env).at_mcp_path(path);
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
    let caller = known.record().caller.as_deref();
    if caller.is_some_and(|caller| {
        s.mcp
            .as_deref()
            .is_some_and(|mcp| mcp.is_token_for_another(path, caller.audience()))
    }) {
        return refuse(known, Refusal::CredentialInvalid);
    }
    let workload = known.record().workload;
    let Some((workload, (_, rule, chosen))) =
        workload.and_then(|id| Some((id, tools(s, id, path)?)))
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
    let (method, tool) = meant(rule, message.tool, found);
    let name = tool.map(|of| of.name.as_str());
    if let Some(tool) = tool {
        let asked = Call {
            method: "tools/call",
            path: &tool.name,
            operation: Operation::Mcp.as_str(),
            source: s.clients.address(peer.address, head),
            route: Some(chosen.route),
            model: None,
        };
        let of = (rule, &*chosen.route.name);
        let later = Cell::new(false);
        let sees = |when: &When| {
            let held = held(when, &asked, known.record(), s, None).0;
            later.set(later.get() | (held == Holds::Later));
            held
        };
        match server_of(&tool.name, of, s, &sees) {
            Ok((server, shown)) => {
                found.server = server;
                found.shown = Some(shown);
            }
            Err(why) => {
                found.hidden = Some(why);
                let name = tool.name.chars().take(256).collect::<String>().into();
                return refuse(known, Refusal::McpNotFound { what: "tool", name });
            }
        }
        found.hangs_on_arguments = later.get() && tool.arguments.is_none();
        found.credential = found
            .server
            .and_then(|server| credential((rule, server), (head, known.record()), s));
        // What the caller is shown is refused for its arguments, and is there all the same.
        let last = RefCell::new(String::new());
        let uses = |when: &When| {
            let arguments = tool.arguments.as_ref();
            let (held, why) = held(when, &asked, known.record(), s, arguments);
            last.replace(why);
            held
        };
        let is_used = tool.arguments.is_some();
        if is_used && server_of(&tool.name, of, s, &uses).is_err() {
            found.hidden = Some(last.take());
            return refuse(known, Refusal::NotAuthorized);
        }
    }
    let call = Call {
        method,
        path: name.unwrap_or(head.path()),
        operation: Operation::Mcp.as_str(),
        source: s.clients.address(peer.address, head),
        route: Some(chosen.route),
        model: None,
    };
    let allowed = known.authorize(&call, s, now)?;
    let chosen = match name {
        Some(tool) => of_tool(s, workload, (rule, chosen), tool),
        None => chosen,
    };
    if name.is_some_and(|tool| rule.limits_of(tool).is_some()) {
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

/// What a condition comes to, of a call with these arguments, where they are known; and that in words.
fn held(
    when: &When,
    asked: &Call<'_>,
    record: &Record,
    s: &Snapshot,
    arguments: Option<&Result<Members, Unread>>,
) -> (Holds, String) {
    let When::Ready { condition, place } = when else {
        let why = "the condition was not compiled";
        return (Holds::Failed(why.into()), why.to_owned());
    };
    let reads = condition.reads_arguments();
    let known = match arguments.filter(|_| reads) {
        Some(Ok(known)) => Ok(Some(known)),
        Some(Err(unread)) => Err(unread.to_string().into()),
        None => Ok(None),
    };
    let holds = known.and_then(|known| {
        policy::front::asked(asked, record, s, |facts| condition.holds(facts, known))
    });
    let holds = match holds {
        Ok(true) => Holds::Yes,
        Ok(false) => Holds::No,
        Err(_) if reads && arguments.is_none() => Holds::Later,
        Err(why) => Holds::Failed(why),
    };
    let came = match &holds {
        Holds::Yes => "holds",
        Holds::No | Holds::Later => "does not hold",
        Holds::Failed(why) => &**why,
    };
    let came = format!("{place}: {came}");
    (holds, came)
}

/// The server that a tool's name says, where it says one, and by what it is seen; else why nobody under this rule sees a tool of this
/// name.
fn server_of(
    tool: &str,
    (rule, route): (&McpRoute, &str),
    s: &Snapshot,
    held: &dyn Fn(&When) -> Holds,
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
            shown.push(seen(&server.shows.tools, own, &place, held)?);
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
    let place = format!("the route {route}");
    shown.push(seen(&rule.shows.tools, tool, &place, held)?);
    Ok((of.map(|(server, _)| server.backend), shown.join(", and ")))
}

/// By what of a selection a name is seen; else by what it is hidden.
fn seen(
    selection: &Selection,
    name: &str,
    place: &str,
    held: &dyn Fn(&When) -> Holds,
) -> Result<String, String> {
    let hit = |of: &[Named], counts: fn(&Holds) -> bool| {
        let takes = |of: &&Named| {
            let is_meant = of.names.takes(name);
            is_meant && of.when.as_ref().is_none_or(|when| counts(&held(when)))
        };
        let found = of.iter().find(takes)?;
        let when = match &found.when {
            Some(when) if held(when) == Holds::Later => ", under a condition on its arguments",
            Some(_) => ", by its condition",
            None => "",
        };
        Some(format!("{}{when}", found.names.0))
    };
    let denies = |held: &Holds| matches!(held, Holds::Yes | Holds::Failed(_));
    if let Some(glob) = hit(&selection.deny, denies) {
        return Err(format!("hidden by `tools` of {place} (deny: {glob})"));
    }
    let allows = |held: &Holds| matches!(held, Holds::Yes | Holds::Later);
    match (hit(&selection.allow, allows), selection.allow.is_empty()) {
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
