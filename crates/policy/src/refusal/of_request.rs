//! Refusals of a request for what its head asks for: which one it is, by what was probably meant.
//!
//! Not here: which calls there are ([`crate::operation`]).

use wire::head::RequestHead;

use super::{BatchRefusal, Refusal};
use crate::operation::meant;

impl Refusal {
    /// Of a request for an operation that nobody allows.
    #[cold]
    #[must_use]
    pub fn operation(head: &RequestHead) -> Self {
        let call = call_of(head);
        let asked = wire::batch::asked(head.method, head.path());
        match (asked, meant(head.path())) {
            (Some(Ok(named)), _) => {
                let api = named.api;
                BatchRefusal::NoRoute { call, api }.into()
            }
            (_, Some(meant)) => Self::OtherPath {
                call,
                meant,
                is_below_root: true,
            },
            (_, None) => Self::Operation { call },
        }
    }

    /// Of a request for what is served over a WebSocket, and which does not ask for one.
    #[cold]
    pub(crate) fn no_websocket(head: &RequestHead) -> Self {
        let call = call_of(head);
        Self::NoWebSocket { call }
    }

    /// Of a request for a path that is not below the API's root.
    #[cold]
    #[must_use]
    pub(crate) fn path(head: &RequestHead) -> Self {
        match meant(head.path()) {
            Some(meant) => Self::OtherPath {
                call: call_of(head),
                meant,
                is_below_root: false,
            },
            None => Self::NoSuchPath,
        }
    }

    /// Of a request of plain HTTP for which there is no route.
    #[cold]
    #[must_use]
    pub(crate) fn route_not_found(head: &RequestHead) -> Self {
        let call = call_of(head);
        Self::RouteNotFound { call }
    }
}

/// Longest path that a message repeats.
const PATH_SHOWN: usize = 128;

/// Method and path of a request, for a message.
fn call_of(head: &RequestHead) -> String {
    let path = head.path();
    let shown = path.get(..PATH_SHOWN).unwrap_or(path);
    let cut = if shown.len() < path.len() { "…" } else { "" };
    format!("{} {shown}{cut}", head.method_text())
}
