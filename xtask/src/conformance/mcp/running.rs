//! What runs beside the suite: its server, and a gate in front of it.
//!
//! Invariant: both listen on loopback alone, and end with whoever started them.

use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::parts::Parts;
use crate::free_address::free_address;

const WITHIN: Duration = Duration::from_secs(60);

/// A process that listens. Killed when dropped.
struct Listening {
    child: Child,
    address: SocketAddr,
}

impl Listening {
    /// Starts it, what it says in a file, and waits until it listens.
    fn start(mut command: Command, address: SocketAddr, log: &Path) -> Result<Self, String> {
        let cannot = |cause: std::io::Error| format!("{command:?}: {cause}");
        let said = File::create(log).map_err(cannot)?;
        let heard = said.try_clone().map_err(cannot)?;
        let started = command
            .stdin(Stdio::null())
            .stdout(said)
            .stderr(heard)
            .spawn();
        let child = started.map_err(|cause| format!("{command:?}: {cause}"))?;
        let mut listening = Self { child, address };
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            let ended = listening
                .child
                .try_wait()
                .map_err(|cause| cause.to_string())?;
            if ended.is_some() || began.elapsed() > WITHIN {
                let says = std::fs::read_to_string(log).unwrap_or_default();
                return Err(format!("{command:?} does not listen: {says}"));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(listening)
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The conformance server.
pub(super) struct Server(Listening);

impl Server {
    pub(super) fn start(parts: &Parts, has_sessions: bool) -> Result<Self, String> {
        let address = free_address()?;
        let mut command = Command::new(&parts.server);
        command.arg(format!("-http={address}"));
        command.arg(format!("-stateless={}", !has_sessions));
        let log = parts.work.join("server.log");
        Listening::start(command, address, &log).map(Self)
    }

    pub(super) fn url(&self) -> String {
        self.0.url()
    }
}

/// A gate in front of a server, which shows its things by their own names.
pub(super) struct Gate(Listening);

impl Gate {
    pub(super) fn start(binary: &Path, work: &Path, server: &str) -> Result<Self, String> {
        let (data, admin) = (free_address()?, free_address()?);
        let config = work.join("tollgate.yaml");
        let text = format!(
            "listen: {{ data: {data}, admin: {admin} }}\n\
             identity: {{ header: x-workload-app, default: suite }}\n\
             backends: {{ engine: {{ url: \"http://127.0.0.1:9/v1\" }} }}\n\
             routes: [ {{ workload: suite, backend: engine }} ]\n\
             mcp:\n  secret: {{ inline: 0123456789abcdef0123456789abcdef }}\n  prefix: never\n  \
             servers: {{ suite: {{ url: \"{server}\" }} }}\n  routes: [ {{ workload: suite }} ]\n",
        );
        std::fs::write(&config, text).map_err(|cause| format!("{}: {cause}", config.display()))?;
        let mut command = Command::new(binary);
        command.arg("run").arg("--config").arg(&config);
        Listening::start(command, data, &work.join("gate.log")).map(Self)
    }

    pub(super) fn url(&self) -> String {
        self.0.url()
    }
}
