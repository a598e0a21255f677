//! Servers that are asked as a caller alone, in place of the gate's credential: with a token of its own that it brings for them, where its route
//! takes such, or with one that is given for the token by which it is known.
//!
//! Invariant: a token goes to the one server that it was brought or given for, and nothing that was heard with it is kept for anybody else: no
//! first description, and neither a list, nor a session, nor what the server speaks but under a mark that has the token in it.
//! Not here: which headers are taken (`policy::mcp`), how tokens are exchanged (`policy::credential`), how a request carries one (`ask`).

use std::rc::Rc;

use mcp::session::OwnTokens;
use policy::credential::UpstreamAuth;
use policy::front::token_of;
use policy::id::BackendId;
use policy::refusal::Refusal;
use policy::secret::Secret;
use wire::head::RequestHead;

use super::ask::Asker;
use super::rule::rule;
use crate::call::{Call, OnBehalf, OwnToken, Stop};
use crate::worker_snapshot::WorkerSnapshot;

/// Longest token.
const TOKEN_BYTES_MAX: usize = 16 << 10;
/// The header that carries it where the server's credential has no other.
const AUTHORIZATION: &str = "authorization";

impl OnBehalf {
    /// What tells its caller from others to a server that is asked as him alone.
    pub(super) fn apart(&self, view: &WorkerSnapshot, backend: BackendId) -> Option<&Secret> {
        apart((&self.own, self.token.as_ref()), view, backend)
    }

    /// That, as what a server lists to it is kept.
    pub(super) fn own_token(&self, view: &WorkerSnapshot, backend: BackendId) -> Option<OwnTokens> {
        as_kept(self.apart(view, backend))
    }

    /// Whether a server is asked as its caller alone: what that lists and says is his.
    pub(super) fn is_as_caller(&self, view: &WorkerSnapshot, backend: BackendId) -> bool {
        is_as_caller(&self.own, view, backend)
    }
}

impl Asker<'_> {
    /// The same, of who asks.
    pub(super) fn is_as_caller(self, backend: BackendId) -> bool {
        is_as_caller(self.own, self.view, backend)
    }

    /// The same, of who asks.
    pub(super) fn own_token(self, backend: BackendId) -> Option<OwnTokens> {
        as_kept(apart((self.own, self.token), self.view, backend))
    }

    /// A server refuses the token that it was sent: what it listed to that is nobody's any more.
    pub(super) fn forget_lists(self, backend: BackendId) {
        let Some((config, tools)) = Call::config(self.view) else {
            return;
        };
        let mut servers = config.servers.iter();
        let place = servers.position(|server| server.backend == backend);
        if let (Some(place), Some(token)) = (place, self.own_token(backend)) {
            tools.forget_lists(place, token);
        }
    }
}

fn apart<'t>(
    (own, token): (&'t [OwnToken], Option<&'t Secret>),
    view: &WorkerSnapshot,
    backend: BackendId,
) -> Option<&'t Secret> {
    match own.iter().find(|own| own.backend == backend) {
        Some(own) => Some(&own.value),
        None => token.filter(|_| exchanges(view, backend)),
    }
}

fn as_kept(token: Option<&Secret>) -> Option<OwnTokens> {
    OwnTokens::new(token.map(|token| ("", token)).into_iter())
}

fn is_as_caller(own: &[OwnToken], view: &WorkerSnapshot, backend: BackendId) -> bool {
    own.iter().any(|own| own.backend == backend) || exchanges(view, backend)
}

/// Whether a server is sent tokens that are given for those of callers.
pub(super) fn exchanges(view: &WorkerSnapshot, backend: BackendId) -> bool {
    let backend = view.snapshot().backend(backend);
    backend.is_some_and(|backend| backend.exchanges_tokens)
}

/// With which tokens servers, or one of them, are asked as a caller alone. The one by which a user is known says no more than that, and is
/// another one each hour.
pub(super) fn with_which(
    call: &Call,
    view: &WorkerSnapshot,
    is_user_known: bool,
    only: Option<BackendId>,
) -> Option<OwnTokens> {
    let is_asked = |backend: BackendId| only.is_none_or(|only| only == backend);
    let of = |backend| view.snapshot().backend(backend).map_or("", |of| &*of.name);
    let brought = call.id.own.iter().filter(|own| is_asked(own.backend));
    let brought = brought.map(|own| (of(own.backend), &own.value));
    let given = call.id.token.as_ref().filter(|_| !is_user_known);
    let given = given.filter(|_| only.is_none_or(|only| exchanges(view, only)));
    OwnTokens::new(brought.chain(given.map(|token| ("", token))))
}

/// Takes what a caller brings for servers of its route.
pub(super) fn brought(call: &mut Call, head: &RequestHead) -> Result<(), Stop> {
    let view = Rc::clone(&call.view);
    let record = call.record();
    let found = record.and_then(|record| Some((record, rule(record, &view).ok()?)));
    let (Some((record, (_, rule, chosen))), Some((config, _))) = (found, Call::config(&view))
    else {
        return Ok(());
    };
    let caller = record.caller.as_deref();
    let token = token_of(caller, chosen.route, head, view.snapshot());
    let (mut own, mut missing) = (Vec::new(), Vec::new());
    for taken in &rule.own_tokens {
        let Some(server) = config.servers.get(taken.server) else {
            continue;
        };
        let backend = view.snapshot().backend(server.backend);
        let endpoint = backend.and_then(|of| view.snapshot().endpoint(*of.endpoints.first()?));
        let auth = endpoint.map(|endpoint| &endpoint.auth);
        let mut said = head.fields.by_name(taken.header.as_bytes());
        let (Some(value), further) = (said.next(), said.next()) else {
            if auth == Some(&UpstreamAuth::None) {
                missing.push((server.backend, taken.header.clone()));
            }
            continue;
        };
        let value = value.trim_ascii();
        let is_token =
            (1..=TOKEN_BYTES_MAX).contains(&value.len()) && value.iter().all(u8::is_ascii_graphic);
        if further.is_some() || !is_token {
            let header = &taken.header;
            let says = if further.is_some() {
                format!("the header {header} stands twice")
            } else if is_behind_scheme(value) {
                format!("the header {header} has the token alone, without `Bearer`")
            } else {
                format!("the header {header} is no token: it is empty, too long, or has a blank")
            };
            return Err(call.refuse(Refusal::McpHeader { says: says.into() }));
        }
        let header = match auth {
            Some(UpstreamAuth::Header { name, .. }) => name.as_str(),
            _ => AUTHORIZATION,
        };
        let value = match header {
            AUTHORIZATION => [b"Bearer ", value].concat(),
            _ => value.to_vec(),
        };
        own.push(OwnToken {
            backend: server.backend,
            brought_in: taken.header.clone(),
            header: header.into(),
            value: Secret::new(value),
        });
    }
    if !own.is_empty() || !missing.is_empty() || token.is_some() {
        let id = call.id.id.clone();
        call.id = Rc::new(OnBehalf {
            id,
            own,
            missing,
            token,
        });
    }
    Ok(())
}

/// Whether it is what a header `authorization` would have.
fn is_behind_scheme(value: &[u8]) -> bool {
    let scheme = value.split(|byte| *byte == b' ').next();
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer"))
}
