//! Tasks of servers without sessions: calls that are answered later, about which their clients ask (`tasks/get`, `tasks/update`,
//! `tasks/cancel`).
//!
//! Invariant: a task is its caller's on its route, and whoever asks about it is asked anew whether he may use the tool that made it.
//! Not here: ids as they are sealed (`mcp::session`, `mcp::task`), the way to the server (`forward`).

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use mcp::bridge::{TaskId, state_in};
use mcp::catalog::Kind;
use mcp::envelope::Message;
use mcp::reply::{edited, string};
use mcp::session::StateOf;
use mcp::target::Target;
use mcp::task::Task;
use policy::front;
use policy::operation::Operation;
use policy::refusal::Refusal;

use super::ask::{Asker, Says};
use super::filters::{Does, may_see};
use super::forward::{Asked, send};
use super::listed::as_listed;
use super::requests::{Meant, rule_of};
use super::rule::{principal, rule};
use super::stream::{Answering, takes_events};
use super::{Arrived, counted, modern, unix_s};
use crate::call::{Call, OUT_OF_ORDER, Stop};
use crate::client::Downstream;
use crate::worker_snapshot::WorkerSnapshot;

/// How the id of a task in an answer is shown.
pub(super) enum ShownAs {
    /// The request makes and names no task.
    None,
    /// A call of this tool may make one.
    Made { of: StateOf, tool: String },
    /// The request names it so.
    Named(String),
}

/// Of a call of a tool by a client that knows tasks.
pub(super) fn made_by(call: &Call, view: &WorkerSnapshot, tool: &str) -> ShownAs {
    let tool = tool.to_owned();
    of_caller(call, view).map_or(ShownAs::None, |of| ShownAs::Made { of, tool })
}

/// What the ids of a caller's tasks are bound to. They are good as long as a session is.
fn of_caller(call: &Call, view: &WorkerSnapshot) -> Option<StateOf> {
    let (record, (config, tools)) = (call.record()?, Call::config(view)?);
    let (nth, ..) = rule(record, view).ok()?;
    let who = principal(record, view);
    let place = tools.places.get(nth)?;
    Some(StateOf::of_tasks(place, &who, config.session.as_secs()))
}

impl Answering<'_> {
    /// Has an answer told with the id of a task as its client is shown it.
    pub(super) fn with_task<T>(&self, asker: Asker<'_>, tell: impl FnOnce(TaskId<'_>) -> T) -> T {
        match &self.task {
            ShownAs::None => tell(TaskId::None),
            ShownAs::Named(id) => tell(TaskId::Shown(id)),
            ShownAs::Made { of, tool } => tell(TaskId::Sealed(&|id| {
                self.sealed(asker, &Task::write(&self.server.name, tool, id)?, of)
            })),
        }
    }
}

/// Asks the server of a task about it: `shown` is its id as its client has it, which stands at `at`.
pub(super) async fn serve<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    asked: (&str, Option<mcp::modern::Level>, &[u8]),
    (shown, at): (&str, Range<usize>),
    client: &mut D,
) -> Result<(), Stop> {
    let (method, log_level, id) = asked;
    counted(call, arrived, client).await?;
    let view = Rc::clone(&call.view);
    let rule = rule_of(call, &view)?;
    let Some((config, tools)) = Call::config(&view) else {
        return Err(call.refuse(OUT_OF_ORDER));
    };
    let of = of_caller(call, &view);
    let task = of.and_then(|of| tools.sealer.open_state(shown, &of, unix_s(call)));
    let task = task.and_then(|task| Task::read(&task));
    let found = task.and_then(|task| {
        let mut places = rule.servers.iter().copied();
        let place = places.find(|at| {
            let server = config.servers.get(*at);
            server.is_some_and(|server| *server.name == *task.server)
        })?;
        Some((config.servers.get(place)?, place, task))
    });
    let Some((server, place, task)) = found else {
        return Err(call.refuse(not_found(shown)));
    };
    let named = Kind::Tools.whole(&server.name, &task.tool);
    call.facts.named = Some(named.as_str().into());
    let kind = Kind::Tools;
    let own = (kind, &*task.tool);
    if !may_see((call, arrived), rule, server, own, Does::Sees) {
        return Err(call.refuse(not_found(shown)));
    }
    allowed(call, arrived, &view, &named)?;
    let params = Message::read(&arrived.text).ok().and_then(|of| of.params);
    match state_in(&arrived.text, params.as_ref()) {
        Ok(None) => {}
        // No answer about a task gives one.
        Ok(Some(_)) => return Err(call.refuse(Refusal::McpState)),
        Err(fault) => return Err(call.refuse(modern::bad_params(&fault))),
    }
    let session = modern::opened(call, Some(place), client).await?;
    // One that has sessions by now knows of no such task.
    let mut open = session.servers.iter();
    let Some(open) = open.find(|open| open.version.is_modern()) else {
        return Err(call.refuse(not_found(shown)));
    };
    let own = task.tool.clone();
    let meant = Meant { server, own };
    let target = Target {
        kind,
        name: Cow::Borrowed(&named),
        at: 0..0,
    };
    as_listed(call, &view, (rule, &session), (&meant, &target), client).await?;
    let body = edited(&arrived.text, vec![(at, string(&task.id))]);
    let answering = Answering {
        server,
        rule,
        arrived,
        id,
        sent_id: id.to_vec(),
        takes_events: takes_events(arrived.head),
        has_session: open.id.is_some(),
        open: open.clone(),
        can: session.can,
        is_modern: true,
        log_level,
        is_read: false,
        is_for_all: false,
        state: None,
        task: ShownAs::Named(shown.to_owned()),
    };
    let says = Says {
        method,
        named: Some(&task.id),
        params: &[],
    };
    send(call, &view, (says, body), answering, client).await
}

/// The rules let its caller use the tool that made it.
fn allowed(
    call: &mut Call,
    arrived: &Arrived<'_>,
    view: &WorkerSnapshot,
    named: &str,
) -> Result<(), Stop> {
    let chosen = call.record().and_then(|record| rule(record, view).ok());
    let Some((.., chosen)) = chosen else {
        return Err(call.refuse(Refusal::McpRouteNotFound));
    };
    let clients = &view.snapshot().clients;
    call.admit_as(&front::Call {
        method: Kind::Tools.used_by(),
        path: named,
        operation: Operation::Mcp.as_str(),
        source: clients.address(arrived.who.peer.address, arrived.head),
        route: Some(chosen.route),
        model: None,
    })
}

fn not_found(shown: &str) -> Refusal {
    Refusal::McpNotFound {
        what: "task",
        name: shown.chars().take(64).collect::<String>().into(),
    }
}

/// Whether a request may make a task.
pub(super) fn may_make(asked: &Asked<'_>, is_modern: bool) -> bool {
    is_modern && asked.knows_tasks && asked.method == "tools/call"
}
