//! Somebody outside who picks the endpoint of a pool for each call, as the Gateway API Inference Extension has it.
//!
//! Invariant: what is picked is of the backend whose picker was asked, and is used for no other one; of a call nothing is told but
//! what its upstream is sent, too, and never a credential.
//! Not here: when it is asked, what it is told and what its answer means for the call (`exchange::placing`), how it is asked (`callout`).

use std::fmt;
use std::net::SocketAddr;

use bytes::Bytes;
use wire::head::ResponseHead;

use crate::caller::Later;

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
    /// The call is not to be served now, with this status (429 or 503) and for this reason, in words that a client may read.
    Shed(u16, Box<str>),
    /// Nobody could say; for the log.
    Unavailable(Box<str>),
}

/// Waits for the endpoint that served a call. Dropped, none did.
pub trait Served: fmt::Debug + Send {
    /// It was this one, whose answer begins so. Gives the header fields that are added to that answer, where somebody says some: they come
    /// within a second, if with nothing.
    fn tell(self: Box<Self>, endpoint: &str, head: &ResponseHead) -> Option<Later<Vec<Field>>>;
}
