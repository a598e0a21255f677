//! Which rule takes a message, and whose it is.
//!
//! Not here: what becomes of it (`crate::call`).

use mcp::session::Principal;
use policy::caller::{Caller, Proven};
use policy::id::BackendId;
use policy::mcp::{Mcp, McpRoute};
use policy::record::Record;
use policy::refusal::Refusal;
use policy::route::{self, Chosen};

use super::ask::Failed;
use super::own_tokens;
use crate::call::{Call, Stop};
use crate::tool_memory::Tools;
use crate::worker_snapshot::WorkerSnapshot;

impl Call {
    /// The servers and their rules.
    pub(super) fn config(view: &WorkerSnapshot) -> Option<(&Mcp, &Tools)> {
        let config = view.snapshot().mcp.as_deref()?;
        Some((config, view.tools.as_deref()?))
    }

    /// Whoever it was sent to gave no answer.
    pub(crate) fn failed(&mut self, failed: &Failed) -> Stop {
        self.facts.reason = failed.reason();
        self.fail(failed.refusal())
    }
}

/// Whose sessions are his alone.
pub(super) fn principal<'r>(record: &'r Record, view: &'r WorkerSnapshot) -> Principal<'r> {
    let workload = record.workload.and_then(|id| view.snapshot().workload(id));
    let caller: Option<&Caller> = record.caller.as_deref();
    Principal {
        workload: workload.map_or("", |workload| &workload.name),
        by: caller.map_or(Proven::Header, |caller| caller.by).as_str(),
        issuer: caller.and_then(Caller::issuer),
        key: caller.and_then(|caller| caller.key.as_deref()),
        user: caller.and_then(|caller| caller.user.as_deref()),
        tokens: None,
    }
}

/// Whose what is sealed for him is: `only` where it is one server's. Of callers whom nobody tells apart their tokens do.
pub(super) fn sealed_for<'r>(
    call: &Call,
    record: &'r Record,
    view: &'r WorkerSnapshot,
    only: Option<BackendId>,
) -> Principal<'r> {
    let who = principal(record, view);
    let tokens = own_tokens::with_which(call, view, who.user.is_some(), only);
    Principal { tokens, ..who }
}

/// Whether a caller's token is for servers of tools at another path.
pub(super) fn is_for_another_path(record: &Record, view: &WorkerSnapshot) -> bool {
    let (Some(caller), Some((config, _))) = (&record.caller, Call::config(view)) else {
        return false;
    };
    config.is_token_for_another(record.mcp_path, caller.audience())
}

/// The rule that takes a workload's messages, with its place.
pub(super) fn rule<'v>(
    record: &Record,
    view: &'v WorkerSnapshot,
) -> Result<(usize, &'v McpRoute, Chosen<'v>), Refusal> {
    let snapshot = view.snapshot();
    let rule = record
        .workload
        .and_then(|workload| route::tools(snapshot, workload, record.mcp_path));
    rule.ok_or(Refusal::McpRouteNotFound)
}
