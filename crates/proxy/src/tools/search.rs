//! Routes whose callers are shown two tools in place of all: one finds tools, the other calls one.
//!
//! Invariant: nothing is found that would not be listed, and a call of what was found is asked about, counted and recorded as a call of that
//! tool. What a model writes wrong is told to the model, as a result: an error ends its turn.
//! Not here: what is found, and what such a call becomes (`mcp::search`).

use std::rc::Rc;

use mcp::catalog::Kind;
use mcp::discover::Fresh;
use mcp::envelope::Message;
use mcp::reply::{result, with_members};
use mcp::search::{CALL, FIND, Looked, Query, Wrong, listed, misused, unwrapped};
use mcp::session::Session;
use mcp::target::{Target, of as target_of};
use policy::mcp::McpRoute;
use policy::refusal::Refusal;

use super::forward::{Asked, forward};
use super::{Arrived, admitted, answer, counted, modern, requests};
use crate::call::{Call, OUT_OF_ORDER, Stop, while_there};
use crate::client::Downstream;
use crate::stint::STINT_BYTES;
use crate::worker_snapshot::WorkerSnapshot;

/// The tool of the gate's own that a request calls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    Find,
    Call,
}

/// Whether a request calls one.
pub(super) fn own(rule: &McpRoute, method: &str, target: &Target<'_>) -> Option<Own> {
    if !rule.is_searched || method != Kind::Tools.used_by() {
        return None;
    }
    match &*target.name {
        FIND => Some(Own::Find),
        CALL => Some(Own::Call),
        _ => None,
    }
}

/// The list of such a route, which asks no server.
pub(super) async fn list<D: Downstream>(
    call: &mut Call,
    view: &WorkerSnapshot,
    rule: &McpRoute,
    id: &[u8],
    client: &mut D,
) -> Result<(), Stop> {
    let mut told = listed();
    if call.facts.is_modern {
        let kept = Call::config(view).map_or(0, |(config, _)| config.lists.as_millis());
        let fresh = Fresh {
            ttl_ms: u64::try_from(kept).unwrap_or(u64::MAX),
            is_public: modern::is_for_all(view, rule),
        };
        told = with_members(&told, fresh.members().as_bytes());
    }
    answer::message(call, client, &result(id, &told), None).await
}

/// What its caller has open.
async fn opened<D: Downstream>(
    call: &mut Call,
    session: Option<&Session>,
    only: Option<usize>,
    client: &mut D,
) -> Result<Session, Stop> {
    match session {
        Some(session) => Ok(session.clone()),
        None => modern::opened(call, only, client).await,
    }
}

/// Serves a call of one, in its caller's session where that has one.
pub(super) async fn serve<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    (own, session): (Own, Option<&Session>),
    asked: &Asked<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let params = asked.message.params.as_ref();
    if own == Own::Find {
        // It is a list, of a part of what is there.
        call.facts.method = Kind::Tools.method();
        call.facts.named = Some(FIND.into());
        let query = match Query::read(&arrived.text, params) {
            Ok(query) => query,
            Err(Wrong::Message(fault)) => return Err(call.refuse(modern::bad_params(&fault))),
            Err(Wrong::Arguments(says)) => {
                admitted(call, arrived, Kind::Tools.method(), None, true, client).await?;
                return wrong(call, asked, &says, client).await;
            }
        };
        admitted(call, arrived, Kind::Tools.method(), None, true, client).await?;
        let session = opened(call, session, None, client).await?;
        let looked = requests::looked(call, arrived, &session, client).await?;
        let found = found(call, query, looked, client).await?;
        return told(call, asked, found, client).await;
    }
    let text = match unwrapped(&arrived.text, params) {
        Ok(text) => text,
        Err(Wrong::Message(fault)) => return Err(call.refuse(modern::bad_params(&fault))),
        Err(Wrong::Arguments(says)) => {
            requests::named(call, asked.target);
            counted(call, arrived, client).await?;
            return wrong(call, asked, &says, client).await;
        }
    };
    let arrived = Arrived { text, ..*arrived };
    let message = Message::read(&arrived.text);
    let message = message.map_err(|fault| call.refuse(modern::bad_params(&fault)))?;
    let target = target_of(asked.method, &arrived.text, message.params.as_ref());
    let target = target.map_err(|fault| call.refuse(modern::bad_params(&fault)))?;
    let Some(target) = target else {
        return Err(call.refuse(OUT_OF_ORDER));
    };
    requests::named(call, &target);
    counted(call, &arrived, client).await?;
    let only = modern::place_of(call, &target);
    let session = opened(call, session, only, client).await?;
    let asked = Asked {
        message: &message,
        target: &target,
        is_found: true,
        ..*asked
    };
    match forward(call, &arrived, &session, &asked, client).await {
        Err(Stop::Refused) => unknown(call, &arrived, &session, &asked, client).await,
        served => served,
    }
}

/// What is found of lists. Words of long ones may have to be cut, beside the worker, which has others to serve.
async fn found<D: Downstream>(
    call: &mut Call,
    query: Query,
    looked: Looked,
    client: &mut D,
) -> Result<Vec<u8>, Stop> {
    if looked.bytes() <= STINT_BYTES {
        return Ok(query.answer(&looked));
    }
    let worker = Rc::clone(&call.worker);
    let answering = worker.beside.run(move || query.answer(&looked));
    let answer = while_there(answering, &worker, client).await?;
    answer.ok_or_else(|| call.refuse(OUT_OF_ORDER))
}

/// The result of a call of one of the two.
async fn told<D: Downstream>(
    call: &mut Call,
    asked: &Asked<'_>,
    found: Vec<u8>,
    client: &mut D,
) -> Result<(), Stop> {
    let found = match call.facts.is_modern {
        true => with_members(&found, br#""resultType":"complete""#),
        false => found,
    };
    answer::message(call, client, &result(asked.id, &found), None).await
}

/// A call whose arguments are not what the tool takes.
async fn wrong<D: Downstream>(
    call: &mut Call,
    asked: &Asked<'_>,
    says: &str,
    client: &mut D,
) -> Result<(), Stop> {
    call.facts.reason = Some(says.into());
    told(call, asked, misused(says), client).await
}

/// A call that was refused; of a name that stands for nothing its model is told which it may have meant.
async fn unknown<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    session: &Session,
    asked: &Asked<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let says = match call.refused_as() {
        Some(refusal @ (Refusal::McpNotFound { .. } | Refusal::McpAmbiguous { .. })) => {
            refusal.to_string()
        }
        _ => return Err(Stop::Refused),
    };
    let alike = requests::alike(call, arrived, session, &asked.target.name, client).await?;
    let says = match &*alike {
        [] => format!("{says}; {FIND} finds tools by words"),
        alike => format!("{says}; did you mean {}?", alike.join(", or ")),
    };
    told(call, asked, misused(&says), client).await
}
