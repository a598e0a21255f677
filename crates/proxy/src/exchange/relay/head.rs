//! The head of a response as its client is sent it: which fields pass, and what the gate adds.
//!
//! Invariant: a field passes by a list of its route or of its kind of call; there is one date, and the exchange's id.
//! Not here: the lists (`policy::credential`, `policy::plain::fields`), the bytes that follow (`relay`).

use policy::credential;
use policy::exchange::Relay;
use policy::operation::Operation;
use policy::plain::fields;
use wire::head::{Known, ResponseHead};

use crate::client::{BodyLength, Downstream};
use crate::exchange::active::ActiveExchange;
use crate::upstream::Response;

/// Tells the client the head of a response.
pub(in crate::exchange) fn begin<D: Downstream>(
    active: &ActiveExchange,
    response: &Response,
    relay: &Relay,
    client: &mut D,
) {
    let Some(head) = &response.head else { return };
    let extent = match response.body.length(head) {
        Some(length) if !relay.withholds() && relay.pipe.is_empty() => BodyLength::Length(length),
        Some(_) | None => BodyLength::Open,
    };
    let shape = relay.pipe.shape();
    let record = active.exchange.record();
    let rule = record
        .route
        .and_then(|id| active.view().snapshot().route(id));
    let returned = rule.map_or(&[][..], |rule| &rule.return_headers);
    if head.status != 101 || !client.switch() {
        client.begin(head.status, extent);
    }
    let mut is_dated = false;
    if record.operation == Some(Operation::Http) {
        is_dated = begin_plain(active, head, client);
    } else {
        for field in head.fields.of_any(credential::MAY_RETURN) {
            if shape.is_some_and(|shape| shape.replaces(field.name)) {
                continue;
            }
            if credential::returns(&field, &head.fields, returned)
                && !(field.known == Known::Date && std::mem::replace(&mut is_dated, true))
            {
                client.field(field.name, field.value);
            }
        }
    }
    if !is_dated {
        client.date();
    }
    if let Some(shape) = shape {
        client.field(b"content-type", shape.content_type.as_bytes());
        for (name, value) in &shape.headers {
            client.field(name.as_bytes(), value);
        }
    }
    if relay.is_stream {
        if head.fields.count(Known::CacheControl) == 0 {
            client.field(b"cache-control", b"no-cache");
        }
        client.field(b"x-accel-buffering", b"no");
    }
    client.field(b"x-request-id", record.id.as_bytes());
    let is_messages = record.operation == Some(Operation::Messages);
    if is_messages && head.fields.by_name(b"request-id").next().is_none() {
        // Where Anthropic's SDKs look for it.
        client.field(b"request-id", record.id.as_bytes());
    }
    if let Some(theirs) = &record.upstream_id {
        let name = policy::request_id::UPSTREAM_HEADER;
        client.field(name.as_bytes(), theirs.as_bytes());
    }
    active.rate_limits().write(client);
    active.cors().write(client);
    client.begun();
}

/// The fields of an answer of plain HTTP that go to its client. Whether its date is one of them.
#[cold]
#[inline(never)]
fn begin_plain<D: Downstream>(
    active: &ActiveExchange,
    head: &ResponseHead,
    client: &mut D,
) -> bool {
    let login = active.view().snapshot().login.as_ref();
    let cookies = login.map(|site| site.login.cookies());
    let has_cors = active.exchange.page().is_some();
    let route = active.exchange.record().route;
    let route = route.and_then(|id| active.view().snapshot().route(id));
    let actions = route.and_then(|route| route.actions.as_ref());
    let edits = actions.map(|of| &of.response);
    let mut is_dated = false;
    for field in head.fields.iter() {
        if edits.is_none_or(|edits| edits.keeps(field.name))
            && fields::returns(&field, &head.fields, cookies, has_cors)
            && !(field.known == Known::Date && std::mem::replace(&mut is_dated, true))
        {
            client.field(field.name, field.value);
        }
    }
    if let Some(edits) = edits {
        edits.put(|name, value| client.field(name, value));
    }
    let cors = actions.and_then(|of| of.cors.as_ref());
    if let Some((cors, page)) = cors.zip(active.exchange.page()) {
        cors.answer(page, |name, value| client.field(name, value));
    }
    is_dated
}
