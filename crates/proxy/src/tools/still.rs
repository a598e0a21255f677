//! Whether the caller of a stream would be let in by now, and what of it he may hear.
//!
//! A stream lasts for hours, and keys, tokens, rules and filters end meanwhile. So it is asked again where something is said, and where nothing
//! is for a while.
//! Invariant: nothing is told on a stream later than [`AGAIN`] after its caller would be refused, or by filters that are no more.
//! Whoever is asked outside (`ext_authz`) is asked about messages, and not again about streams.
//! Not here: who calls (`policy::front`), what is filtered (`filters`), clients that are told why (they begin anew, and are told then).

use std::rc::Rc;
use std::time::Duration;

use policy::clock::Mono;
use policy::exchange::ANSWER_WITHIN;
use policy::front::{self, Begun, Identification, Known};
use policy::identity::Unproven;
use policy::mcp::{McpRoute, Server};
use policy::operation::Operation;
use wire::head::Known as Name;

use super::Arrived;
use super::filters::{Who, hears, may_hear};
use super::rule::{is_for_another_path, principal, rule};
use crate::call::{Call, Stop, while_there};
use crate::client::Downstream;
use crate::worker_snapshot::WorkerSnapshot;

/// It is asked no more often, as long as the configuration is the same.
const AGAIN: Duration = Duration::from_secs(1);

/// What was found the last time.
pub(super) struct Still {
    at: Mono,
    /// Who it is, by which configuration; none as long as that is the one of its call.
    by: Option<(Rc<WorkerSnapshot>, Known)>,
}

impl Still {
    /// Of a stream that begins.
    pub(super) fn new(call: &Call) -> Self {
        Self {
            at: call.worker.now(),
            by: None,
        }
    }

    /// Whether its caller would be let in, for this method, and to each of these servers. Where nobody can say who he is, it is as it was, unless
    /// the configuration is another one: nobody knows what he may hear by that.
    pub(super) async fn is_let_in<D: Downstream>(
        &mut self,
        call: &Call,
        (arrived, method): (&Arrived<'_>, &str),
        servers: &[&Server],
        client: &mut D,
    ) -> Result<bool, Stop> {
        let (now, view) = (call.worker.now(), call.worker.view());
        let seen = self.by.as_ref().map_or(&call.view, |(view, _)| view);
        let is_as_seen = Rc::ptr_eq(seen, &view);
        if is_as_seen && now.since(self.at) < AGAIN {
            return Ok(true);
        }
        self.at = now;
        let Some(path) = Call::config(&view).and_then(|(mcp, _)| mcp.path(arrived.head.path()))
        else {
            return Ok(false);
        };
        let parents = arrived.head.fields.of(Name::Traceparent);
        let unix_ms = call.worker.clock.wall_ms(now);
        let who = &arrived.who;
        let begun = view.env(now, |env| Begun::new(None, parents, who, unix_ms, env));
        let begun = begun.at_mcp_path(path);
        let known = match view.env(now, |env| begun.identify(who, env)) {
            Identification::Known(known) => known,
            Identification::Refused(_) => return Ok(false),
            Identification::Asks(asking) => {
                let (verifier, credential) = asking.question();
                let asked = verifier.ask(credential.clone());
                let asked = call.worker.timers.timeout(ANSWER_WITHIN, asked);
                let answer = match while_there(asked, &call.worker, client).await? {
                    Ok(Err(Unproven::Unavailable(_))) | Err(_) => return Ok(is_as_seen),
                    Ok(answer) => answer,
                };
                match view.env(call.worker.now(), |env| asking.answered(answer, who, env)) {
                    Ok(known) => known,
                    Err(_) => return Ok(false),
                }
            }
        };
        let before = call.record().map(|record| principal(record, &call.view));
        if before != Some(principal(known.record(), &view)) {
            return Ok(false);
        }
        let is_let_in = is_let_in(&known, &view, (arrived, method), servers);
        self.by = Some((view, known));
        Ok(is_let_in)
    }

    /// Whether he may hear of a server's own resource; `rule` is that of the call.
    pub(super) fn may_hear(
        &self,
        (call, arrived): (&Call, &Arrived<'_>),
        ruled: &McpRoute,
        (server, own): (&Server, &str),
    ) -> bool {
        let Some((view, known)) = &self.by else {
            return may_hear(call, arrived, ruled, (server, own));
        };
        let record = known.record();
        let (Some((config, _)), Ok((_, rule, _))) = (Call::config(view), rule(record, view)) else {
            return false;
        };
        let who = Who {
            record,
            view,
            arrived,
        };
        let mut servers = config.servers_of(rule);
        servers
            .find(|of| of.name == server.name)
            .is_some_and(|server| hears(who, rule, (server, own)))
    }
}

/// Whether rules let a caller in, and whether all of these servers are among those of his rule.
fn is_let_in(
    known: &Known,
    view: &WorkerSnapshot,
    (arrived, method): (&Arrived<'_>, &str),
    servers: &[&Server],
) -> bool {
    let (record, snapshot) = (known.record(), view.snapshot());
    let (Some((config, _)), Ok((_, rule, chosen))) = (Call::config(view), rule(record, view))
    else {
        return false;
    };
    let has = |server: &&Server| config.servers_of(rule).any(|of| of.name == server.name);
    let asked = front::Call {
        method,
        path: config.path_at(record.mcp_path),
        operation: Operation::Mcp.as_str(),
        source: snapshot
            .clients
            .address(arrived.who.peer.address, arrived.head),
        route: Some(chosen.route),
        model: None,
    };
    let rules = snapshot.authority.as_deref();
    servers.iter().all(has)
        && !is_for_another_path(record, view)
        && rules.is_none_or(|rules| {
            front::authorize(rules, &asked, record, snapshot, &mut None).is_ok()
        })
}
