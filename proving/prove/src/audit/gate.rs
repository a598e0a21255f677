//! The gate under audit: started, killed, started again on one ledger, asked through its own faces.
//!
//! Invariant: only what was started here is signalled.
//! Not here: what is asked of it (`calls`), what its rows say (`rows`).

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use load::client::fetch;
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use super::AuditError;
use crate::host::ports;
use crate::host::process::{Group, Start};
use crate::host::ready::{get, last_lines, start_ready};
use crate::scrape::exposition::Page;

/// How long a gate may take to be ready: recovery of a large ledger included.
const READY: Duration = Duration::from_secs(30);
/// How long it may take to end well, with every row written.
const END: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(2);

/// The ledger's file, in the audit's directory.
const LEDGER: &str = "usage.db";

pub(super) struct Gate {
    program: PathBuf,
    home: PathBuf,
    data: u16,
    admin: u16,
    /// Writes past a limit on files fail instead of ending it.
    limitable: bool,
    group: Option<Group>,
    starts: u32,
}

impl Gate {
    /// Writes its configuration: `listen` and `ledger` come before what is given.
    pub(super) fn new(
        program: PathBuf,
        home: &Path,
        limitable: bool,
        config: &str,
    ) -> Result<Self, AuditError> {
        let [data, admin] = ports::two_free()?;
        let text = format!(
            "listen: {{ data: \"127.0.0.1:{data}\", admin: \"127.0.0.1:{admin}\" }}\n\
             access_log: off\nledger: {{ path: {LEDGER} }}\n{config}"
        );
        fs::write(home.join("tollgate.yaml"), text)?;
        Ok(Self {
            program,
            home: home.to_owned(),
            data,
            admin,
            limitable,
            group: None,
            starts: 0,
        })
    }

    pub(super) fn data(&self) -> SocketAddr {
        ports::loopback(self.data)
    }

    /// Starts it and waits until it is ready; how long that took.
    pub(super) fn start(&mut self) -> Result<Duration, AuditError> {
        let began = Instant::now();
        self.starts += 1;
        let log = self.log();
        let own: [String; 3] = ["run".into(), "-c".into(), "tollgate.yaml".into()];
        let mut args = own.to_vec();
        let mut program = self.program.clone();
        if self.limitable {
            args.insert(0, program.display().to_string());
            args.insert(0, "--ignore-signal=XFSZ".into());
            program = "env".into();
        }
        let start = Start {
            program: &program,
            ..Start::own(&args, &self.home, &log)
        };
        let asks = (ports::loopback(self.admin), &get("/readyz"));
        let group = start_ready("the gate", start, asks, READY).map_err(AuditError::Gate)?;
        self.group = Some(group);
        Ok(began.elapsed())
    }

    /// Ends it at once, by SIGKILL; when that was.
    pub(super) fn kill(&mut self) -> Result<Instant, AuditError> {
        self.end(Signal::KILL)
    }

    /// Ends it well: it drains and writes every row.
    pub(super) fn stop(&mut self) -> Result<(), AuditError> {
        self.end(Signal::TERM).map(drop)
    }

    /// Gives when it was told.
    fn end(&mut self, signal: Signal) -> Result<Instant, AuditError> {
        let Some(mut group) = self.group.take() else {
            return Ok(Instant::now());
        };
        group.tell(signal);
        let told = Instant::now();
        while group.ended().is_none() {
            if told.elapsed() > END {
                let log = last_lines(&self.log());
                return Err(AuditError::Gate(format!("the gate did not end{log}")));
            }
            thread::sleep(POLL);
        }
        Ok(told)
    }

    /// Lets no file of its grow beyond so many bytes; `None` lifts that again.
    pub(super) fn limit_files(&self, bytes: Option<u64>) -> Result<(), AuditError> {
        let processes = self
            .group
            .as_ref()
            .map(Group::processes)
            .unwrap_or_default();
        for pid in processes.iter().filter_map(|p| Pid::from_raw(p.pid)) {
            let limit = Rlimit {
                current: bytes,
                maximum: None,
            };
            prlimit(Some(pid), Resource::Fsize, limit).map_err(std::io::Error::from)?;
        }
        Ok(())
    }

    /// The sum of a metric's samples.
    pub(super) fn metric(&self, name: &str) -> Result<f64, AuditError> {
        let page = fetch(ports::loopback(self.admin), &get("/metrics"), READY)
            .map_err(|error| AuditError::Gate(format!("the gate's metrics: {error}")))?;
        let page = Page::read(&page.body);
        let this = page.values.iter().filter(|value| value.metric == name);
        Ok(this.map(|value| value.value).sum())
    }

    /// `tollgate usage` on the ledger.
    pub(super) fn usage(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.home)
            .args(["usage", "--ledger", LEDGER])
            .args(args);
        command
    }

    fn log(&self) -> PathBuf {
        self.home.join(format!("gate-{}.log", self.starts))
    }
}
