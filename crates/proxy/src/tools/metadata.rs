//! Who gives clients their tokens (RFC 9728): told to whoever asks, before anybody knows who that is.
//!
//! Not here: what is told (config), the challenge that leads there (`answer`).

use std::rc::Rc;

use policy::refusal::Refusal;
use wire::head::{Method, RequestHead};

use super::answer;
use crate::call::{Call, Stop};
use crate::client::{BodyLength, Downstream};

/// What it is told for.
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// Tells it. Any page may read it.
pub(super) async fn serve<D: Downstream>(
    call: &mut Call,
    head: &RequestHead,
    client: &mut D,
) -> Result<(), Stop> {
    let view = Rc::clone(&call.view);
    let config = Call::config(&view).and_then(|(config, _)| config.resource(head.path()));
    let body = match (head.method, config) {
        (Method::Get | Method::Head, Some(resource)) => resource.metadata.as_bytes(),
        (Method::Options, Some(_)) => b"",
        _ => return Err(call.refuse(Refusal::Method { allow: ALLOW })),
    };
    client.begin(200, BodyLength::Length(body.len() as u64));
    client.date();
    client.field(b"content-type", b"application/json");
    client.field(b"access-control-allow-origin", b"*");
    client.field(b"access-control-allow-headers", b"*");
    client.field(b"cache-control", b"max-age=3600");
    call.head_ends_for_all(client, 200);
    let body = if head.method == Method::Head {
        b""
    } else {
        body
    };
    answer::sent(call, client, body, true).await
}
