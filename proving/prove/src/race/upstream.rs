//! The upstream of a race, started as a process of its own.
//!
//! Not here: what it answers (`engine::fixed`, `tool_server`), the process itself (`crate::upstream`).

use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use load::client::Request;

use super::check;
use crate::host::ports;
use crate::host::process::{Group, Start};
use crate::host::ready::{get, start_ready};
use crate::host::usage::Process;

/// How long it may take to tell what it counted.
const PATIENCE: Duration = Duration::from_secs(1);

/// The upstream that every subject stands in front of, a process of its own.
pub(crate) struct Upstream {
    group: Group,
    port: u16,
    count_port: u16,
}

impl Upstream {
    /// A model that answers at once.
    pub(crate) fn start(home: &Path) -> Result<Self, String> {
        Self::start_as(home, "upstream", &check::unary(None, &[])?)
    }

    /// Servers of tools.
    pub(crate) fn of_tools(home: &Path) -> Result<Self, String> {
        Self::start_as(home, "tool-server", &get("/"))
    }

    fn start_as(home: &Path, verb: &str, ready: &Request) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("the upstream could not start: {error}");
        let [port, count_port] = ports::two_free().map_err(said)?;
        let args = [verb, "--port", &port.to_string()].map(ToOwned::to_owned);
        let counted = ["--count-port", &count_port.to_string()].map(ToOwned::to_owned);
        let args = [&args[..], &counted[..]].concat();
        let log = home.join("upstream.log");
        let group = start_ready(
            "the upstream",
            Start::own(&args, home, &log),
            (ports::loopback(port), ready),
            Duration::from_secs(10),
        )?;
        Ok(Self {
            group,
            port,
            count_port,
        })
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ports::loopback(self.port)
    }

    /// Connections that were made to it so far, where it can be asked.
    pub(crate) fn opened(&self) -> Option<u64> {
        let mut stream = TcpStream::connect(ports::loopback(self.count_port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let mut told = String::new();
        stream.read_to_string(&mut told).ok()?;
        told.parse().ok()
    }

    pub(crate) fn processes(&self) -> Vec<Process> {
        self.group.processes()
    }
}
