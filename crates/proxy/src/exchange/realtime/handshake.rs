//! How a session opens: what a server's consent has to say, and what each answer has from the request.
//!
//! Invariant: a connection becomes a WebSocket only where the server agreed to this very request, without extensions and by a
//! protocol that the client offered.
//! Not here: who may open one (`policy::exchange`), what passes on it (`messages`).

use std::rc::Rc;

use policy::credential::protocols;
use wire::head::{Known, RequestHead, ResponseHead};

use super::answer::Opening;
use crate::client::Downstream;
use crate::exchange::active::ActiveExchange;
use crate::exchange::websocket;

/// What each answer has from the request that opened the session.
pub(super) fn opening<'h, D: Downstream>(
    active: &ActiveExchange,
    head: &'h RequestHead,
    client: &D,
) -> Option<Opening<'h>> {
    let (record, s) = (active.exchange.record(), active.view().snapshot());
    let endpoint = s.endpoint(record.endpoint?)?;
    Some(Opening {
        worker: Rc::clone(active.worker()),
        head,
        peer: client.peer(),
        workload: (&*s.workload(record.workload?)?.name).into(),
        backend: (&*s.backend(endpoint.backend)?.name).into(),
        authority: endpoint.authority.as_str().into(),
    })
}

/// The fields by which a client is told that its connection is a WebSocket now. `None` where the server did not agree to what was asked.
pub(super) fn handshake(
    asked: &RequestHead,
    answered: &ResponseHead,
) -> Option<Vec<(&'static [u8], Vec<u8>)>> {
    let key = asked.fields.by_name(b"sec-websocket-key").next()?;
    let accept = websocket::accept(key).into_bytes();
    let mut theirs = answered.fields.by_name(b"sec-websocket-accept");
    let has_extension = answered
        .fields
        .by_name(b"sec-websocket-extensions")
        .next()
        .is_some();
    if theirs.next() != Some(&accept[..]) || has_extension {
        return None;
    }
    let mut fields = vec![(&b"sec-websocket-accept"[..], accept)];
    if let Some(chosen) = answered.fields.of(Known::SecWebsocketProtocol).next() {
        let offered = protocols::offered(asked);
        let mut offered = offered.split(|b| *b == b',').map(<[u8]>::trim_ascii);
        if !offered.any(|one| one == chosen) {
            return None;
        }
        fields.push((&b"sec-websocket-protocol"[..], chosen.to_vec()));
    }
    Some(fields)
}
