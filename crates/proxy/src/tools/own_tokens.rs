//! Tokens of their own that callers bring for servers, in place of the gate's credential, where their route takes such.
//!
//! Invariant: a token goes to the one server that it was brought for, and nothing that was heard with it is kept for anybody else: no list, no
//! first description, and neither a session nor what the server speaks but under a mark that has the token in it.
//! Not here: which headers are taken (`policy::mcp`), how a request carries it (`ask`).

use std::rc::Rc;

use policy::credential::UpstreamAuth;
use policy::id::BackendId;
use policy::refusal::Refusal;
use policy::secret::Secret;
use wire::head::RequestHead;

use super::ask::Asker;
use super::rule::rule;
use crate::call::{Call, OnBehalf, OwnToken, Stop};

/// Longest token.
const TOKEN_BYTES_MAX: usize = 16 << 10;
/// The header that carries it where the server's credential has no other.
const AUTHORIZATION: &str = "authorization";

impl Asker<'_> {
    /// Whether a server is asked as its caller alone: what that lists and says is his.
    pub(super) fn is_as_caller(self, backend: BackendId) -> bool {
        self.own.iter().any(|own| own.backend == backend)
    }
}

/// Takes those that a caller brings for servers of its route.
pub(super) fn brought(call: &mut Call, head: &RequestHead) -> Result<(), Stop> {
    let view = Rc::clone(&call.view);
    let found = call.record().and_then(|record| rule(record, &view).ok());
    let (Some((_, rule, _)), Some((config, _))) = (found, Call::config(&view)) else {
        return Ok(());
    };
    let mut own = Vec::new();
    for taken in &rule.own_tokens {
        let mut said = head.fields.by_name(taken.header.as_bytes());
        let (Some(value), further) = (said.next(), said.next()) else {
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
        let Some(server) = config.servers.get(taken.server) else {
            continue;
        };
        let backend = view.snapshot().backend(server.backend);
        let endpoint = backend.and_then(|of| view.snapshot().endpoint(*of.endpoints.first()?));
        let header = match endpoint.map(|endpoint| &endpoint.auth) {
            Some(UpstreamAuth::Header { name, .. }) => name.as_str(),
            _ => AUTHORIZATION,
        };
        let value = match header {
            AUTHORIZATION => [b"Bearer ", value].concat(),
            _ => value.to_vec(),
        };
        own.push(OwnToken {
            backend: server.backend,
            header: header.into(),
            value: Secret::new(value),
        });
    }
    if !own.is_empty() {
        let id = call.id.id.clone();
        call.id = Rc::new(OnBehalf { id, own });
    }
    Ok(())
}

/// Whether it is what a header `authorization` would have.
fn is_behind_scheme(value: &[u8]) -> bool {
    let scheme = value.split(|byte| *byte == b' ').next();
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer"))
}
