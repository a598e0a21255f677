//! What a gate is given: a configuration with what its files held, and what each worker hands on to.
//!
//! Not here: what becomes of it (`worker_snapshot`, `worker`).

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use policy::counting::Counting;
use policy::record::Sink;
use policy::revision::Revision;
use policy::snapshot::Origin;
use policy::usage_ledger::UsageLedger;

/// One configuration, complete with what its files held.
#[derive(Clone)]
pub struct RuntimeConfig {
    /// What policy reads, and the levels that belong to it.
    pub revision: Arc<Revision>,
    /// TLS on the data listener, when configured.
    pub acceptor: Option<Arc<rustls::ServerConfig>>,
    /// TLS by the port that it is on, where there are several listeners; the one above is not used then.
    pub acceptors: Vec<(u16, Arc<rustls::ServerConfig>)>,
    /// Trust for upstreams, and who the gate is to them.
    pub connectors: Connectors,
}

/// By what of an origin is believed, and shown there.
pub type Connectors = HashMap<Trusted, Arc<rustls::ClientConfig>>;

/// An origin's `ca_file` (an empty one is the system's roots), `certificate` and `alt_names`.
pub type Trusted = (String, String, Arc<[Box<str>]>);

/// Of which trust an origin is. Sessions are resumed within one alone, so that none goes by what another checked.
#[must_use]
pub fn trusted(origin: &Origin) -> Trusted {
    let (roots, shown) = (origin.ca_file.clone(), origin.certificate.clone());
    (roots, shown, Arc::clone(&origin.alt_names))
}

/// What a worker hands on.
pub struct Ports {
    /// Where its facts go.
    pub sink: Box<dyn Sink + Send>,
    /// Its way to the usage ledger; without one nothing is entered, and a strict route runs no call.
    pub ledger: Option<Box<dyn UsageLedger + Send>>,
    /// Its way to those who count; without one nothing is counted.
    pub counting: Option<Box<dyn Counting + Send>>,
}

/// A copy of what a worker's [`Sink`] holds.
pub type WorkerMetrics = Box<dyn Any + Send>;
