//! What a caller may see and use: filters of servers and routes with their conditions, and the rules of the configuration.
//!
//! Invariant: lists and use ask the same of a name. A condition on arguments, which only a use has, hides nothing from a list; on use it is
//! decided, or refuses.
//! Not here: filters and conditions themselves ([`policy::mcp`]), what a name stands for (`requests`).

use std::cell::{OnceCell, RefCell};

use mcp::arguments;
use mcp::catalog::Kind;
use policy::authority::Members;
use policy::front;
use policy::mcp::{Holds, McpRoute, Selection, Server, Shows, When, plain_uri};
use policy::operation::Operation;
use policy::record::Record;
use policy::snapshot::Route;

use super::Arrived;
use crate::call::Call;
use crate::worker_snapshot::WorkerSnapshot;

/// What a caller does with a thing.
#[derive(Clone, Copy)]
pub(super) enum Does<'a> {
    /// It looks at it: arguments are not known.
    Sees,
    /// It uses it, with these arguments.
    Uses(&'a Arguments<'a>),
}

/// The arguments of a use, read once where a condition looks at them.
pub(super) struct Arguments<'a> {
    text: &'a [u8],
    read: OnceCell<Result<Members, arguments::Unread>>,
    /// What the condition that was asked last came to.
    why: RefCell<Option<Box<str>>>,
}

impl<'a> Arguments<'a> {
    /// As they are written.
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            read: OnceCell::new(),
            why: RefCell::default(),
        }
    }

    fn members(&self) -> Result<&Members, arguments::Unread> {
        let read = self.read.get_or_init(|| arguments::read(self.text));
        read.as_ref().map_err(|unread| *unread)
    }

    /// For the record: the condition that was asked last.
    pub(super) fn why(&self) -> Option<Box<str>> {
        self.why.take()
    }
}

const fn selection(shows: &Shows, kind: Kind) -> &Selection {
    match kind {
        Kind::Tools => &shows.tools,
        Kind::Prompts => &shows.prompts,
        Kind::Resources | Kind::Templates => &shows.resources,
    }
}

/// Who is asked about, by which configuration.
#[derive(Clone, Copy)]
pub(super) struct Who<'a> {
    pub(super) record: &'a Record,
    pub(super) view: &'a WorkerSnapshot,
    pub(super) arrived: &'a Arrived<'a>,
}

impl<'a> Who<'a> {
    fn of(call: &'a Call, arrived: &'a Arrived<'a>) -> Option<Self> {
        let (record, view) = (call.record()?, &call.view);
        Some(Self {
            record,
            view,
            arrived,
        })
    }
}

/// Whether filters let a caller see, or use, a server's own thing of this name.
pub(super) fn may_see(
    (call, arrived): (&Call, &Arrived<'_>),
    rule: &McpRoute,
    server: &Server,
    named: (Kind, &str),
    does: Does<'_>,
) -> bool {
    Who::of(call, arrived).is_some_and(|who| sees(who, rule, server, named, does))
}

fn sees(
    who: Who<'_>,
    rule: &McpRoute,
    server: &Server,
    (kind, own): (Kind, &str),
    does: Does<'_>,
) -> bool {
    let sees = |own: &str| {
        let whole = kind.whole(&server.name, own);
        let held = |when: &When| held(who, rule, (kind, &whole), when, does);
        selection(&server.shows, kind).has(own, held)
            && selection(&rule.shows, kind).has(&whole, held)
    };
    // A server may take a URI for another way to write the one that is meant.
    sees(own) && (!kind.has_uri() || plain_uri(own).is_none_or(|plain| sees(&plain)))
}

/// What a condition comes to for this caller.
fn held(
    Who {
        record,
        view,
        arrived,
    }: Who<'_>,
    rule: &McpRoute,
    (kind, whole): (Kind, &str),
    when: &When,
    does: Does<'_>,
) -> Holds {
    let When::Ready { condition, place } = when else {
        return Holds::Failed("the condition was not compiled".into());
    };
    let snapshot = view.snapshot();
    let reads = condition.reads_arguments();
    let known = match does {
        Does::Uses(arguments) if reads => arguments.members().map(Some),
        Does::Uses(_) | Does::Sees => Ok(None),
    };
    let asked = front::Call {
        method: kind.used_by(),
        path: whole,
        operation: Operation::Mcp.as_str(),
        source: snapshot
            .clients
            .address(arrived.who.peer.address, arrived.head),
        route: snapshot.route(rule.route),
        model: None,
    };
    let holds = match known {
        Ok(known) => match front::asked(&asked, record, snapshot, |facts| {
            condition.holds(facts, known)
        }) {
            Ok(true) => Holds::Yes,
            Ok(false) => Holds::No,
            Err(_) if reads && known.is_none() => Holds::Later,
            Err(why) => Holds::Failed(why),
        },
        Err(unread) => Holds::Failed(unread.to_string().into()),
    };
    if let Does::Uses(arguments) = does {
        let came = match &holds {
            Holds::Yes => "holds",
            Holds::No | Holds::Later => "does not hold",
            Holds::Failed(why) => &**why,
        };
        arguments
            .why
            .replace(Some(format!("{place}: {came}").into()));
    }
    holds
}

/// Whether the rules of the configuration let the caller use it.
pub(super) fn may_use(
    call: &Call,
    view: &WorkerSnapshot,
    arrived: &Arrived<'_>,
    kind: Kind,
    server: &Server,
    own: &str,
) -> bool {
    let Some(record) = call.record() else {
        return view.snapshot().authority.is_none();
    };
    let route = record.route.and_then(|id| view.snapshot().route(id));
    let who = Who {
        record,
        view,
        arrived,
    };
    uses(who, route, (kind, server, own))
}

fn uses(
    Who {
        record,
        view,
        arrived,
    }: Who<'_>,
    route: Option<&Route>,
    (kind, server, own): (Kind, &Server, &str),
) -> bool {
    let snapshot = view.snapshot();
    let Some(rules) = snapshot.authority.as_deref() else {
        return true;
    };
    let asked = front::Call {
        method: kind.used_by(),
        path: &kind.whole(&server.name, own),
        operation: Operation::Mcp.as_str(),
        source: snapshot
            .clients
            .address(arrived.who.peer.address, arrived.head),
        route,
        model: None,
    };
    front::authorize(rules, &asked, record, snapshot, &mut None).is_ok()
}

/// Whether the caller may hear of a server's own resource: filters and rules let it be read, however its URI is written.
pub(super) fn may_hear(
    call: &Call,
    arrived: &Arrived<'_>,
    rule: &McpRoute,
    of: (&Server, &str),
) -> bool {
    Who::of(call, arrived).is_some_and(|who| hears(who, rule, of))
}

/// The same of whoever it is, by whichever configuration.
pub(super) fn hears(who: Who<'_>, rule: &McpRoute, (server, own): (&Server, &str)) -> bool {
    let kind = Kind::Resources;
    let route = who.view.snapshot().route(rule.route);
    let uses = |own: &str| uses(who, route, (kind, server, own));
    sees(who, rule, server, (kind, own), Does::Sees)
        && uses(own)
        && plain_uri(own).is_none_or(|plain| uses(&plain))
}
