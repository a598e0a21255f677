//! The upstream of a race, started as a process of its own.
//!
//! Not here: what it answers (`engine::fixed`), the process itself (`crate::upstream`).

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::check;
use crate::host::ports;
use crate::host::process::{Group, Start};
use crate::host::ready::start_ready;
use crate::host::usage::Process;

/// The upstream that every subject stands in front of, a process of its own.
pub(crate) struct Upstream {
    group: Group,
    port: u16,
}

impl Upstream {
    pub(crate) fn start(home: &Path) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("the upstream could not start: {error}");
        let port = ports::free().map_err(said)?;
        let args = ["upstream".to_owned(), "--port".to_owned(), port.to_string()];
        let log = home.join("upstream.log");
        let group = start_ready(
            "the upstream",
            Start::own(&args, home, &log),
            (ports::loopback(port), &check::unary(None, &[])?),
            Duration::from_secs(10),
        )?;
        Ok(Self { group, port })
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ports::loopback(self.port)
    }

    pub(crate) fn processes(&self) -> Vec<Process> {
        self.group.processes()
    }
}
