//! A gate in a process that has other things to do: the demo's.
//!
//! Its configuration is in no file, so there is nothing to read again.
//! Invariant: what it does with calls is what `tollgate run` does.
//! Not here: how a gate starts and ends (`serve`).

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use admin::{Budget, Gateway, Limit};
use config::Sources;
use telemetry::{AccessLog, Merged};

use crate::metrics::merged;
use crate::running::Origin;
use crate::serve::{self, Listening, Ready};

/// A gate that takes calls.
pub struct EmbeddedGate(Ready);

impl EmbeddedGate {
    /// Starts one by a document, which is called `name`, with this access log in place of the document's.
    ///
    /// # Errors
    /// What is wrong with the document, or keeps the gate from starting.
    pub fn start(
        name: &str,
        document: &str,
        sources: &dyn Sources,
        log: AccessLog,
    ) -> Result<Self, String> {
        let loaded = config::parse_document(Path::new(name), document.as_bytes(), sources)
            .map_err(|faults| faults.to_string())?;
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        let origin = Origin::none(&loaded);
        serve::start_with(Some(log), loaded, sources, origin, Listening::DEMO).map(Self)
    }

    /// Where clients connect.
    pub fn data(&self) -> SocketAddr {
        self.0.running.gate.address()
    }

    /// Where the admin endpoint is.
    ///
    /// # Errors
    /// The system cannot say it.
    pub fn admin(&self) -> io::Result<SocketAddr> {
        self.0.admin.local_addr()
    }

    /// Calls that are open.
    pub async fn open_calls(&self) -> i64 {
        merged(&self.0.running).await.gauges().exchanges
    }

    /// Limits, and what is left of them.
    pub fn limits(&self) -> Vec<Limit> {
        self.0.running.limits()
    }

    /// Budgets, and what is left of them.
    pub fn budgets(&self) -> Vec<Budget> {
        self.0.running.budgets()
    }

    /// Serves until a signal or `also`; then drains, which a further signal cuts short.
    pub async fn serve_until(&self, also: impl Future<Output = ()>) {
        serve::until_stopped(&self.0, None, also).await;
    }

    /// Ends it and gives what was counted, to the last exchange; `None` where something still holds on to it.
    pub fn end(self) -> Option<Merged> {
        serve::end(self.0)
    }
}
