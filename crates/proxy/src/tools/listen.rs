//! What a client without a session listens to (`subscriptions/listen`): changes of lists, resources and tasks, of all servers on one stream.
//!
//! Servers without sessions are asked the same; of those with sessions the standing stream is heard, and resources are subscribed in the
//! session that the gate keeps, or in one of the stream's own where another stream of its caller hears that.
//! Invariant: nothing is told that was not asked for and acknowledged, of nothing that a filter or a rule hides.
//! Not here: lanes of servers (`standing`), what is asked for (`mcp::listen`).

use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use mcp::catalog::Kind;
use mcp::envelope::Message;
use mcp::events::{Said as Told, told, write_event};
use mcp::handshake::Abilities;
use mcp::listen::{ACKNOWLEDGED, Filter, METHOD, OF_TASK, acknowledged, ended, method_of, tagged};
use mcp::place::{Of, Place};
use mcp::reply::string;
use mcp::session::{OpenServer, Session};
use mcp::target::{Target, has_one_reading};
use policy::mcp::{McpRoute, Server};
use policy::refusal::Refusal;

use super::ask::Asker;
use super::filters::may_hear;
use super::modern::{bad_params, opened};
use super::read::request;
use super::requests::{rule_of, sought};
use super::standing::{Event, Lanes, Said, Wanted};
use super::still::Still;
use super::stream::{QUIET, QUIET_EVERY, begin, speaker};
use super::tasks::{self, Heard};
use super::{Arrived, admitted, answer, asker, counted, open, within};
use crate::call::{Call, OUT_OF_ORDER, Stop, while_there};
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::worker_snapshot::WorkerSnapshot;

/// A resource that is listened to: its server, and that server's own URI.
type Resource = (Box<str>, String);

/// Serves one stream.
pub(super) async fn serve<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    (message, knows_tasks): (&Message<'_>, bool),
    id: &[u8],
    client: &mut D,
) -> Result<(), Stop> {
    let filter = match Filter::read(&arrived.text, message.params.as_ref()) {
        Ok(filter) => filter,
        Err(fault) => return Err(call.refuse(bad_params(&fault))),
    };
    if !filter.tasks.is_empty() && !knows_tasks {
        return Err(call.refuse(Refusal::McpCapability));
    }
    counted(call, arrived, client).await?;
    let mut session = opened(call, None, client).await?;
    let abilities = session.servers.iter().map(|open| open.abilities);
    let abilities = abilities.fold(Abilities::default(), Abilities::and);
    let tells = Filter::of_lists(abilities);
    let has_names = abilities.has(Abilities::SUBSCRIPTIONS) || abilities.has(Abilities::TASKS);
    if tells.is_empty() && !has_names {
        let method = METHOD.into();
        return Err(call.refuse(Refusal::McpMethod { method }));
    }
    admitted(call, arrived, METHOD, None, true, client).await?;
    let view = Rc::clone(&call.view);
    let rule = rule_of(call, &view)?;
    let mut resources = Vec::new();
    for shown in &filter.uris {
        let resource = resource(call, &view, arrived, rule, &session, shown, client).await?;
        if let Some(resource) = resource {
            resources.push((resource, shown.clone()));
        }
    }
    let own_of = |open: &OpenServer| {
        let own = resources
            .iter()
            .filter(|((server, _), _)| *server == open.name);
        own.map(|((_, own), _)| own.clone()).collect()
    };
    let is_wanted = |open: &OpenServer| {
        let has_stream = !open.version.is_modern();
        has_stream && !filter.within(open.abilities, own_of(open)).is_empty()
    };
    let heard = open::heard(call, &view, &mut session, is_wanted, client).await?;
    let tasks = Heard::of((call, arrived), &view, rule, &filter.tasks);
    let of = (filter, resources, tasks);
    let done = hear(call, arrived, (id, rule), of, (&session, &heard), client).await;
    heard.end(call);
    done
}

/// Hears what is open, to the end of the stream.
async fn hear<D: Downstream>(
    call: &mut Call,
    arrived: &Arrived<'_>,
    (id, rule): (&[u8], &McpRoute),
    (filter, resources, tasks): (Filter, Vec<(Resource, String)>, Vec<Heard>),
    (session, heard): (&Session, &open::Heard<'_>),
    client: &mut D,
) -> Result<(), Stop> {
    let view = Rc::clone(&call.view);
    let Some((config, _)) = Call::config(&view) else {
        return Err(call.refuse(OUT_OF_ORDER));
    };
    let (worker, call_id) = (call.worker.clone(), call.id.clone());
    let asker = asker(&worker, &view, &call_id);
    let servers: Vec<&Server> = config.servers_of(rule).collect();
    subscribe(asker, session, &servers, &resources, client).await?;
    let of_server = |open: &OpenServer| {
        let own = resources
            .iter()
            .filter(|((server, _), _)| *server == open.name);
        let own = own.map(|((_, own), _)| own.clone()).collect();
        let of_tasks = tasks.iter().filter_map(|task| task.at(&open.name));
        let of_tasks = of_tasks.filter(|_| {
            // Those with sessions tell of none.
            open.version.is_modern() && open.abilities.has(Abilities::TASKS)
        });
        let filter = filter.within(open.abilities, own);
        filter.with_tasks(of_tasks.collect())
    };
    let wanted = |open: &OpenServer| {
        let filter = of_server(open);
        if filter.is_empty() {
            return None;
        }
        Some(if open.version.is_modern() {
            Wanted::listening(asker, &filter)
        } else {
            Wanted::Standing
        })
    };
    let place = Place::new(Of::Session);
    let mut lanes = Lanes::new(asker, session, &servers, &place, &wanted);
    let (ready, early) = first(call, asker, &mut lanes, session, client).await?;
    // What a server did not agree to nobody is promised.
    let agreed = session
        .servers
        .iter()
        .filter(|open| ready.contains(&&*open.name));
    let agreed: Vec<Filter> = agreed.map(of_server).collect();
    let uris = resources.iter().filter(|((server, own), _)| {
        let mut agreed = session
            .servers
            .iter()
            .filter(|open| ready.contains(&&*open.name));
        agreed.any(|open| open.name == *server && of_server(open).uris.contains(own))
    });
    let uris = uris.map(|(_, shown)| shown.clone()).collect();
    let shown = tasks.iter().filter(|task| {
        let mut agreed = session.servers.iter();
        agreed.any(|open| {
            let own = task.at(&open.name);
            ready.contains(&&*open.name)
                && own.is_some_and(|own| of_server(open).tasks.contains(&own))
        })
    });
    let shown = shown.map(|task| task.shown().to_owned()).collect();
    let honoured = filter.of_all(&agreed, uris).with_tasks(shown);
    begin(call, client).await?;
    let mut stream = Listening {
        id,
        arrived,
        rule,
        honoured,
        resources: resources
            .into_iter()
            .map(|(resource, _)| resource)
            .collect(),
        tasks,
        still: Still::new(call),
        out: Vec::new(),
    };
    write_event(&acknowledged(&stream.honoured, id), None, &mut stream.out);
    for said in early {
        stream.hear(call, asker, (session, said), client).await?;
    }
    listen(call, asker, (session, heard, &mut lanes), stream, client).await
}

/// Tells what is heard, until the client leaves or the gate ends it.
async fn listen<D: Downstream>(
    call: &mut Call,
    asker: Asker<'_>,
    (session, heard, lanes): (&Session, &open::Heard<'_>, &mut Lanes<'_>),
    mut stream: Listening<'_>,
    client: &mut D,
) -> Result<(), Stop> {
    let worker = call.worker.clone();
    let longest = Call::config(asker.view).map(|(config, _)| config.session);
    let mut over = pin!(worker.timers.sleep(longest.unwrap_or_default()));
    let mut drained = pin!(worker.drained.notified());
    let mut quiet = Deadline::new(&worker.clock.wheel);
    let servers = Call::config(asker.view).map(|(config, _)| config.servers_of(stream.rule));
    let servers: Vec<&Server> = servers.into_iter().flatten().collect();
    quiet.set(QUIET_EVERY);
    loop {
        if !stream.out.is_empty() {
            answer::sent(call, client, &stream.out, false).await?;
            stream.out.clear();
            // Only what was sent shows that the stream is there.
            quiet.set(QUIET_EVERY);
        }
        let turn = poll_fn(|cx| {
            if over.as_mut().poll(cx).is_ready()
                || drained.as_mut().poll(cx).is_ready()
                || worker.is_draining()
            {
                return Poll::Ready(None);
            }
            if let Poll::Ready(said) = lanes.poll(cx) {
                return Poll::Ready(Some(Some(said)));
            }
            quiet.poll(cx).map(|()| Some(None))
        });
        let turn = match while_there(turn, &worker, client).await {
            Ok(turn) => turn,
            Err(gone) => {
                // A client that leaves ends it as it is meant to end.
                call.completed();
                return Err(gone);
            }
        };
        let turn = match turn {
            Some(said) => {
                let asked = (stream.arrived, METHOD);
                let is_let_in = stream
                    .still
                    .is_let_in(call, asked, &servers, client)
                    .await?;
                is_let_in.then_some(said)
            }
            None => None,
        };
        match turn {
            None => {
                write_event(&ended(stream.id), None, &mut stream.out);
                return answer::sent(call, client, &stream.out, true).await;
            }
            Some(None) => stream.out.extend_from_slice(QUIET),
            Some(Some(said)) => {
                let (is_gone, name) = (said.is_gone, said.server.name.clone());
                stream.hear(call, asker, (session, said), client).await?;
                if is_gone {
                    // Its client listens again, and the session is opened anew.
                    if !heard.is_own(&name) {
                        let mut open = session.servers.iter();
                        let gone = open.find(|open| *open.name == *name);
                        open::forget(call, asker.view, gone.into_iter());
                    }
                    return answer::sent(call, client, &stream.out, true).await;
                }
            }
        }
    }
}

/// The resource that a client means, where it may read it.
async fn resource<D: Downstream>(
    call: &Call,
    view: &WorkerSnapshot,
    arrived: &Arrived<'_>,
    rule: &McpRoute,
    session: &Session,
    shown: &str,
    client: &mut D,
) -> Result<Option<Resource>, Stop> {
    if has_one_reading(shown).is_err() {
        return Ok(None);
    }
    let target = Target {
        kind: Kind::Resources,
        name: Cow::Borrowed(shown),
        at: 0..0,
    };
    let Ok(meant) = sought(call, arrived, view, rule, session, &target, client).await? else {
        return Ok(None);
    };
    let is_seen = may_hear(call, arrived, rule, (meant.server, &meant.own));
    Ok(is_seen.then(|| ((&*meant.server.name).into(), meant.own)))
}

/// Subscribes resources in the sessions that the gate keeps. They stay so: another stream of the same caller may listen to them.
async fn subscribe<D: Downstream>(
    asker: Asker<'_>,
    session: &Session,
    servers: &[&Server],
    resources: &[(Resource, String)],
    client: &mut D,
) -> Result<(), Stop> {
    let Some((config, _)) = Call::config(asker.view) else {
        return Ok(());
    };
    for ((name, own), _) in resources {
        let open = session.servers.iter().find(|open| open.name == *name);
        let server = servers.iter().find(|server| *server.name == **name);
        let (Some(open), Some(server)) = (open, server) else {
            continue;
        };
        if open.version.is_modern() || !open.abilities.has(Abilities::SUBSCRIPTIONS) {
            continue;
        }
        let nth = config.kept.next_request();
        let id = format!("\"{}#subscribe.{nth}\"", asker.id);
        let params = [b"{\"uri\":", &*string(own), b"}"].concat();
        let message = request(id.as_bytes(), "resources/subscribe", &params);
        let message = ("resources/subscribe", message);
        let asking = asker.ask(server, Some(open), message, id.as_bytes(), config.within);
        // A server that does not take it tells of nothing.
        drop(while_there(asking, asker.worker, client).await?);
    }
    Ok(())
}

/// Waits until every server has agreed or will not, as long as one may take and until the gate drains: who did, and what was said meanwhile.
async fn first<'v, D: Downstream>(
    call: &Call,
    asker: Asker<'_>,
    lanes: &mut Lanes<'v>,
    session: &Session,
    client: &mut D,
) -> Result<(Vec<&'v str>, Vec<Said<'v>>), Stop> {
    let (mut ready, mut early): (Vec<&'v str>, Vec<Said<'v>>) = (Vec::new(), Vec::new());
    let mut late = Deadline::new(&asker.worker.clock.wheel);
    let mut drained = pin!(asker.worker.drained.notified());
    late.set(within(call));
    // A lane that is over is waited for no more, whether or not its server had agreed.
    while lanes.are_more_than(&ready) {
        let turn = poll_fn(|cx| {
            if let Poll::Ready(said) = lanes.poll(cx) {
                return Poll::Ready(Some(said));
            }
            if drained.as_mut().poll(cx).is_ready() || asker.worker.is_draining() {
                return Poll::Ready(None);
            }
            late.poll(cx).map(|()| None)
        });
        let Some(said) = while_there(turn, asker.worker, client).await? else {
            break;
        };
        let name = &*said.server.name;
        let mut open = session.servers.iter();
        let is_modern = open.any(|open| *open.name == *name && open.version.is_modern());
        let agrees = |event: &Event| {
            let data = event.data.as_deref();
            data.and_then(method_of).as_deref() == Some(ACKNOWLEDGED)
        };
        // One without sessions has agreed once it says so.
        let has_agreed = said.has_begun && (!is_modern || said.events.iter().any(agrees));
        if has_agreed && !ready.contains(&name) {
            ready.push(name);
        }
        early.push(said);
    }
    Ok((ready, early))
}

/// What its client is told.
struct Listening<'a> {
    /// The request's id, as written.
    id: &'a [u8],
    arrived: &'a Arrived<'a>,
    rule: &'a McpRoute,
    honoured: Filter,
    resources: Vec<Resource>,
    tasks: Vec<Heard>,
    still: Still,
    out: Vec<u8>,
}

impl Listening<'_> {
    async fn hear<D: Downstream>(
        &mut self,
        call: &Call,
        asker: Asker<'_>,
        (session, said): (&Session, Said<'_>),
        client: &mut D,
    ) -> Result<(), Stop> {
        for event in said.events {
            let Some(data) = event.data.filter(|data| !data.is_empty()) else {
                continue;
            };
            // What is no message is for nobody, and what follows it may be one.
            let Ok(before) = told(&data, speaker(asker, said.server)) else {
                continue;
            };
            let asks = self.take(call, said.server, before);
            let mut open = session.servers.iter();
            let open = open.find(|open| *open.name == *said.server.name);
            if let (Some(asks), Some(open)) = (asks, open.filter(|of| !of.version.is_modern())) {
                super::stream::answer_server(asker, (said.server, open), vec![asks], client)
                    .await?;
            }
        }
        Ok(())
    }

    /// Takes what a server said; what it asks that has to be answered.
    fn take(&mut self, call: &Call, server: &Server, said: Told<'_>) -> Option<mcp::events::Asks> {
        let Told::Before {
            text,
            is_list_changed,
            updated,
            asks,
            ..
        } = said
        else {
            return None;
        };
        if is_list_changed {
            server.changes.tell();
        }
        let method = method_of(&text);
        let is_wanted = method.as_ref().is_some_and(|of| self.honoured.has(of));
        let text = match method.as_deref() {
            Some(OF_TASK) if is_wanted => {
                let caller = (call, self.arrived);
                Cow::Owned(tasks::told(caller, self.rule, server, &self.tasks, &text)?)
            }
            _ => text,
        };
        let is_its = updated.is_none_or(|own| {
            let mut of = self.resources.iter();
            of.any(|(name, uri)| **name == *server.name && **uri == *own)
                && self
                    .still
                    .may_hear((call, self.arrived), self.rule, (server, &own))
        });
        if is_wanted
            && is_its
            && let Some(tagged) = tagged(&text, self.id)
        {
            write_event(&tagged, None, &mut self.out);
        }
        asks
    }
}
