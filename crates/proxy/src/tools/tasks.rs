//! Tasks of servers without sessions: calls that are answered later, about which their clients ask (`tasks/get`, `tasks/update`,
//! `tasks/cancel`), or hear (`notifications/tasks`).
//!
//! Invariant: a task is its caller's on its route, and whoever asks about it is asked anew whether he may use the tool that made it.
//! Not here: ids as they are sealed (`mcp::session`, `mcp::task`), the way to the server (`forward`).

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use mcp::bridge::{TaskId, state_in};
use mcp::catalog::Kind;
use mcp::envelope::Message;
use mcp::handshake::Abilities;
use mcp::reply::{edited, string};
use mcp::session::StateOf;
use mcp::target::Target;
use mcp::task::{self, Task};
use policy::front;
use policy::mcp::{Mcp, McpRoute, OnChange, Server};
use policy::operation::Operation;
use policy::refusal::Refusal;

use super::ask::{Asker, Says};
use super::filters::{Does, may_see, may_use};
use super::forward::{Asked, send};
use super::listed::as_listed;
use super::requests::{Meant, rule_of};
use super::rule::{rule, sealed_for};
use super::stream::{Answering, takes_events};
use super::{Arrived, counted, modern, unix_s};
use crate::call::{Call, OUT_OF_ORDER, Stop};
use crate::client::Downstream;
use crate::tool_memory::Tools;
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
pub(super) fn made_by(call: &Call, view: &WorkerSnapshot, server: &Server, tool: &str) -> ShownAs {
    let tool = tool.to_owned();
    of_caller(call, view, server).map_or(ShownAs::None, |of| ShownAs::Made { of, tool })
}

/// What the ids of a caller's tasks at a server are bound to. They are good as long as a session is.
fn of_caller(call: &Call, view: &WorkerSnapshot, server: &Server) -> Option<StateOf> {
    let (record, (config, tools)) = (call.record()?, Call::config(view)?);
    let (nth, ..) = rule(record, view).ok()?;
    let who = sealed_for(call, record, view, Some(server.backend));
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
    let found = opened(call, &view, (config, tools, rule), shown);
    let Some((server, place, task)) = found else {
        let session = modern::opened(call, None, client).await?;
        let mut open = session.servers.iter();
        // What no server offers is not there.
        let refusal = match open.any(|open| open.abilities.has(Abilities::TASKS)) {
            true => not_found(shown),
            false => {
                let method = method.into();
                Refusal::McpMethod { method }
            }
        };
        return Err(call.refuse(refusal));
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

/// The task that a caller knows by this id, at which server.
fn opened<'v>(
    call: &Call,
    view: &WorkerSnapshot,
    (config, tools, rule): (&'v Mcp, &Tools, &McpRoute),
    shown: &str,
) -> Option<(&'v Server, usize, Task)> {
    let servers = rule.servers.iter();
    let servers = servers.filter_map(|at| Some((*at, config.servers.get(*at)?)));
    // Whose it is hangs on the server, which is within: all that are asked by the gate's own credential have one answer.
    let mut is_gates_tried = false;
    let mut tried = servers.clone().filter(|(_, server)| {
        call.id.is_as_caller(view, server.backend) || !std::mem::replace(&mut is_gates_tried, true)
    });
    let task = tried.find_map(|(_, server)| {
        let of = of_caller(call, view, server)?;
        let task = tools.sealer.open_state(shown, &of, unix_s(call))?;
        Some((Task::read(&task)?, of))
    });
    let (task, of) = task?;
    let (place, server) = servers.clone().find(|(_, of)| *of.name == *task.server)?;
    // Beside a token for another server it is nobody's.
    (of_caller(call, view, server)? == of).then_some((server, place, task))
}

/// A task that is listened to.
pub(super) struct Heard {
    task: Task,
    /// As its caller knows it.
    shown: String,
}

impl Heard {
    /// The tasks of these that their caller may hear of: tools that are pinned may have changed, and those that made tasks are asked about.
    pub(super) fn of(
        (call, arrived): (&Call, &Arrived<'_>),
        view: &WorkerSnapshot,
        rule: &McpRoute,
        shown: &[String],
    ) -> Vec<Self> {
        let Some((config, tools)) = Call::config(view) else {
            return Vec::new();
        };
        let heard = shown.iter().filter_map(|shown| {
            let (server, _, task) = opened(call, view, (config, tools, rule), shown)?;
            let is_refused = server.pins.as_ref();
            let is_refused = is_refused.is_some_and(|pins| pins.on_change == OnChange::Refuse);
            let heard = Self {
                task,
                shown: shown.clone(),
            };
            (!is_refused && heard.may_be((call, arrived), rule, server)).then_some(heard)
        });
        heard.collect()
    }

    /// Whether its caller may use the tool that made it, as filters and rules are.
    fn may_be(
        &self,
        (call, arrived): (&Call, &Arrived<'_>),
        rule: &McpRoute,
        server: &Server,
    ) -> bool {
        let (kind, tool) = (Kind::Tools, &*self.task.tool);
        may_see((call, arrived), rule, server, (kind, tool), Does::Sees)
            && may_use(call, &call.view, arrived, kind, server, tool)
    }

    /// Its id at a server; none where it is another one's.
    pub(super) fn at(&self, server: &str) -> Option<String> {
        (self.task.server == server).then(|| self.task.id.clone())
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }
}

/// What a server says of a task, with the id by which its caller knows it; none where that is not listened to, or may be no more.
pub(super) fn told(
    (call, arrived): (&Call, &Arrived<'_>),
    rule: &McpRoute,
    server: &Server,
    heard: &[Heard],
    text: &[u8],
) -> Option<Vec<u8>> {
    let message = Message::read(text).ok()?;
    let (id, at) = task::named(text, message.params.as_ref()).ok()?;
    let mut heard = heard.iter();
    let its = heard.find(|of| of.task.server == *server.name && of.task.id == *id)?;
    let may_be = its.may_be((call, arrived), rule, server);
    may_be.then(|| edited(text, vec![(at, string(&its.shown))]))
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
