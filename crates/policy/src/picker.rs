//! Somebody outside who picks the endpoint of a pool for each call, as the Gateway API Inference Extension has it.
//!
//! Invariant: what is picked is of the backend whose picker was asked, and is used for no other one; of a call nothing is told but
//! what its upstream is sent, too, and never a credential.
//! Not here: when it is asked, and what its answer means for the call (`exchange`), how it is asked (`callout`).

use std::fmt;
use std::net::SocketAddr;

use bytes::Bytes;
use wire::head::{Known, KnownSet, RequestHead, ResponseHead};

use crate::caller::Later;
use crate::credential;
use crate::operation::Operation;
use crate::plain::fields;
use crate::record::Record;
use crate::snapshot::{Endpoint, Snapshot};

/// Who picks.
pub trait Picker: fmt::Debug + Send + Sync {
    /// Asks for a call. The answer comes when it comes; the host waits no longer than the exchange says.
    fn pick(&self, call: PickedCall) -> Later<Picked>;
    /// Whether a call goes on by the gate's own choice where nobody picks.
    fn fails_open(&self) -> bool;
}

/// Name and value of a header.
pub type Field = (Box<[u8]>, Box<[u8]>);

/// A call for which an endpoint is picked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PickedCall {
    /// Its head: pseudo-headers first, names in lower case.
    pub headers: Vec<Field>,
    /// Its body, in pieces.
    pub body: Vec<Bytes>,
}

/// What was picked.
#[derive(Debug)]
pub enum Picked {
    /// These addresses, the best first; and who is told which one served.
    Endpoints(Vec<SocketAddr>, Box<dyn Served>),
    /// The call is not to be served now, with this status (429 or 503).
    Shed(u16),
    /// Nobody could say; for the log.
    Unavailable(Box<str>),
}

/// Waits for the endpoint that served a call. Dropped, none did.
pub trait Served: fmt::Debug + Send {
    /// It was this one, whose answer begins so.
    fn tell(self: Box<Self>, endpoint: &str, head: &ResponseHead);
}

/// Prefix of headers that are written for pickers, and are no part of any API.
const OF_PICKERS: &[u8] = b"x-gateway-inference-";

/// What a picker is told of a call: its method, path and those headers that go upstream, too.
pub(crate) fn headers(record: &Record, head: &RequestHead, s: &Snapshot) -> Vec<Field> {
    let mut told: Vec<Field> = Vec::new();
    let mut put = |name: &[u8], value: &[u8]| told.push((name.into(), value.into()));
    put(b":method", head.method_text().as_bytes());
    put(b":path", head.path().as_bytes());
    put(b":scheme", b"http");
    if let Some(host) = head.fields.only(Known::Host).ok().flatten() {
        put(b":authority", host);
    }
    put(b"x-request-id", record.id.as_bytes());
    let identity = s.identity.header.as_bytes();
    let route = record.route.and_then(|id| s.route(id));
    let listed = route.map_or(&[][..], |route| &route.forward_headers);
    let is_plain = record.operation == Some(Operation::Http);
    for field in head.fields.iter() {
        let goes_upstream = if is_plain {
            field.known != Known::Cookie && fields::forwards(&field, &head.fields, identity)
        } else {
            let api = ("", KnownSet::default());
            credential::forwards(&field, &head.fields, identity, listed, api)
        };
        if goes_upstream || field.name.starts_with(OF_PICKERS) {
            put(field.name, field.value);
        }
    }
    told
}

/// An endpoint's address as pickers know it; `None` for one that is a name.
#[must_use]
pub fn address_of(endpoint: &Endpoint) -> Option<SocketAddr> {
    let ip = endpoint.origin.host.parse().ok()?;
    Some(SocketAddr::new(ip, endpoint.origin.port))
}
