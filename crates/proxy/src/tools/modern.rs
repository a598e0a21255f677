//! Messages of clients without sessions: each says what it needs, and is checked and served by itself.
//!
//! Invariant: what is listed, called, read and heard of is decided as for clients with sessions: by the same filters, rules and limits.
//! Not here: what is open at servers meanwhile (`open`), requests on their way (`requests`), streams (`listen`).

use std::rc::Rc;

use mcp::catalog::Kind;
use mcp::discover::{self, Fresh, told};
use mcp::envelope::{Fault, Message, Says};
use mcp::handshake::Answered;
use mcp::header::Header;
use mcp::header::PARAM;
use mcp::modern::{self, Headers, Meta, Unfit, check, is_named};
use mcp::name;
use mcp::reply::{INVALID_PARAMS, result};
use mcp::session::Session;
use mcp::target::{Target, of as target_of};
use mcp::task;
use policy::attempt::Failure;
use policy::mcp::{McpRoute, Prefix};
use policy::refusal::Refusal;
use wire::head::{Known, RequestHead};

use super::ask::Failed;
use super::forward::{Asked, forward};
use super::session::as_told;
use super::{Arrived, admitted, answer, counted, invalid, listen, open, requests, search, tasks};
use crate::call::{Call, Stop};
use crate::client::Downstream;
use crate::worker_snapshot::WorkerSnapshot;

/// What the head of a message says of it.
pub(super) fn headers(head: &RequestHead) -> Headers<'_> {
    Headers {
        version: Header::of(head.fields.of(Known::McpProtocolVersion)),
        method: Header::of(head.fields.by_name(b"mcp-method")),
        name: Header::of(head.fields.by_name(b"mcp-name")),
        agent: head.fields.get(Known::UserAgent),
    }
}

/// Whether there are headers of arguments.
fn has_params(head: &RequestHead) -> bool {
    let mut others = head.fields.of_kind(Known::Other);
    others.any(|field| field.name.starts_with(PARAM.as_bytes()))
}

/// Serves one message.
pub(super) async fn serve<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    message: &Message<'_>,
    meta: &Meta<'_>,
    id: &[u8],
    client: &mut D,
) -> Result<(), Stop> {
    let method = match &message.says {
        Says::Request { method, .. } => method,
        Says::Notification { method } => {
            // A client that leaves the stream of its request has cancelled it, and nothing else is told so.
            admitted(call, arrived, method, None, false, client).await?;
            return answer::taken(call, client, 202).await;
        }
        Says::Response { .. } => {
            return Err(call.refuse(invalid(Fault::NotRpc(
                "answers are sent in `inputResponses` of the request that they are for",
            ))));
        }
    };
    let target = target_of(method, &arrived.text, message.params.as_ref());
    let target = if has_target(method) { target } else { Ok(None) };
    let named = target.as_ref().ok().and_then(Option::as_ref);
    let named = named
        .map(|target| &*target.name)
        .filter(|_| is_named(method));
    let task = task::is_of(method).then(|| task::named(&arrived.text, message.params.as_ref()));
    let task_id = task.as_ref().and_then(|task| task.as_ref().ok());
    let named = named.or(task_id.map(|(id, _)| &**id));
    if let Err(unfit) = check(method, named, meta, &headers(arrived.head)) {
        return Err(call.refuse(unfit_refusal(unfit)));
    }
    let target = match target {
        Ok(target) => target,
        Err(fault) => return Err(call.refuse(bad_params(&fault))),
    };
    let has_arguments = &**method == "tools/call";
    let is_known = has_target(method) || task.is_some() || modern::names_nothing(method);
    if is_known && !has_arguments && has_params(arrived.head) {
        let says = format!(
            "Header mismatch: headers {PARAM}… are sent with {method}, which has no arguments"
        );
        return Err(call.refuse(Refusal::McpHeader { says: says.into() }));
    }
    if let Some(task) = task {
        let (shown, at) = task.map_err(|fault| call.refuse(bad_params(&fault)))?;
        let asked = (&**method, meta.log_level, id);
        return tasks::serve(call, arrived, asked, (&shown, at), client).await;
    }
    if let Some(kind) = Kind::listed_by(method) {
        counted(call, arrived, client).await?;
        let session = opened(call, None, client).await?;
        return requests::list(call, arrived, &session, kind, id, client).await;
    }
    match (&**method, target) {
        (discover::METHOD, _) => discovered(call, arrived, id, client).await,
        (mcp::listen::METHOD, _) => listen::serve(call, arrived, message, id, client).await,
        (_, Some(target)) => {
            let view = Rc::clone(&call.view);
            let own = search::own(requests::rule_of(call, &view)?, method, &target);
            let asked = Asked {
                message,
                method,
                target: &target,
                log_level: meta.log_level,
                knows_tasks: meta.capabilities.is_some_and(task::is_in),
                is_found: false,
                id,
            };
            if let Some(own) = own {
                return search::serve(call, arrived, (own, None), &asked, client).await;
            }
            requests::named(call, &target);
            counted(call, arrived, client).await?;
            let only = place_of(call, &target);
            let session = opened(call, only, client).await?;
            forward(call, arrived, &session, &asked, client).await
        }
        (_, None) => {
            let method = method.chars().take(64).collect::<String>().into();
            Err(call.refuse(Refusal::McpMethod { method }))
        }
    }
}

/// Whether requests of this method name something that is served without a session.
fn has_target(method: &str) -> bool {
    is_named(method) || method == "completion/complete"
}

fn unfit_refusal(unfit: Unfit) -> Refusal {
    match unfit {
        Unfit::Meta(member) => Refusal::McpMessage {
            says: format!("`params._meta` has no `{member}`, or not as it must be").into(),
            number: INVALID_PARAMS,
        },
        Unfit::Header(says) => Refusal::McpHeader { says: says.into() },
        Unfit::Version(requested) => Refusal::McpVersionUnknown {
            requested: requested.into(),
        },
    }
}

/// Params that are none.
pub(super) fn bad_params(fault: &Fault) -> Refusal {
    Refusal::McpMessage {
        says: fault.to_string().into(),
        number: INVALID_PARAMS,
    }
}

/// The only server that a name can be of, by itself.
pub(super) fn place_of(call: &Call, target: &Target<'_>) -> Option<usize> {
    let (config, _) = Call::config(&call.view)?;
    if config.prefix != Prefix::Always {
        return None;
    }
    let (server, _) = if target.kind.has_uri() {
        name::split_uri(&target.name)?
    } else {
        name::split(&target.name)?
    };
    config.servers.iter().position(|of| *of.name == *server)
}

/// What the caller has open: at one server, or at all of its rule. Where the one that is asked does not answer, or none of several does,
/// that is the answer.
pub(super) async fn opened<D: Downstream>(
    call: &mut Call,
    only: Option<usize>,
    client: &mut D,
) -> Result<Session, Stop> {
    let view = Rc::clone(&call.view);
    let rule = requests::rule_of(call, &view)?;
    let opened = open::of(call, &view, rule, only, client).await?;
    let (session, failed) = open::as_session(opened);
    match failed {
        Some(failed) if session.servers.is_empty() => Err(call.failed(&failed)),
        _ => Ok(session),
    }
}

/// What all servers offer.
async fn discovered<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    id: &[u8],
    client: &mut D,
) -> Result<(), Stop> {
    admitted(call, arrived, discover::METHOD, None, true, client).await?;
    let view = Rc::clone(&call.view);
    let rule = requests::rule_of(call, &view)?;
    let opened = open::of(call, &view, rule, None, client).await?;
    call.facts.attempts = u32::try_from(opened.len()).unwrap_or(u32::MAX);
    let mut known: Vec<(&str, Option<Answered>)> = Vec::new();
    let mut failed = None;
    for open in opened {
        match open.opened {
            Ok((_, answered)) => {
                known.push((&open.server.name, Some(as_told(open.server, answered))));
            }
            Err(why) => {
                failed = Some(why);
                known.push((&open.server.name, None));
            }
        }
    }
    if known.iter().all(|(_, answered)| answered.is_none()) {
        let failed = failed.unwrap_or(Failed::Upstream(Failure::Exhausted));
        return Err(call.failed(&failed));
    }
    let is_whole = failed.is_none();
    let kept = Call::config(&view).map_or(0, |(config, _)| config.lists.as_millis());
    let fresh = Fresh {
        ttl_ms: u64::try_from(kept).unwrap_or(u64::MAX) * u64::from(is_whole),
        is_public: is_whole && is_for_all(&view, rule),
    };
    let told = result(id, &told(&known, fresh));
    answer::message(call, client, &told, None).await
}

/// Whether every caller is shown the same: nobody's rules, routes or filters make a difference.
pub(super) fn is_for_all(view: &WorkerSnapshot, rule: &McpRoute) -> bool {
    let Some((config, _)) = Call::config(view) else {
        return false;
    };
    // What servers show of themselves depends on the caller where they say conditions.
    let mut servers = config.servers_of(rule).map(|server| &server.shows);
    view.snapshot().authority.is_none()
        && config.routes.len() == 1
        && rule.shows.is_all()
        && rule.own_tokens.is_empty()
        && servers.all(|shows| !shows.has_conditions())
}

/// Whether a message is of a client without a session.
pub(super) fn is_of(meta: &Meta<'_>, head: &RequestHead, says: &Says<'_>) -> bool {
    let method = match says {
        Says::Request { method, .. } | Says::Notification { method } => Some(&**method),
        Says::Response { .. } => None,
    };
    modern::is_modern(meta, headers(head).version, method)
}
