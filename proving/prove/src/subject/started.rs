//! A gateway that was started from its directory, and that ends with its [`Started`].
//!
//! Invariant: it has answered something before it is handed out; one that does not is told with its last words.
//! Not here: whether it answers rightly (`verify`, `race::check`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::{Client, Places, Subject};
use crate::host::ports;
use crate::host::process::{Group, Start};
use crate::host::ready::{await_answer, get, last_lines};

/// A gateway that runs.
pub(crate) struct Started {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) places: Places,
    /// How it is to be spoken to.
    pub(crate) client: Client,
    group: Group,
    log: PathBuf,
}

/// Where it is to live, and what stands behind it.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    /// Its templates are rendered there, and its output goes there.
    pub(crate) home: PathBuf,
    /// Of the first upstream.
    pub(crate) upstream_port: u16,
    /// Of upstreams by name.
    pub(crate) further_ports: BTreeMap<String, u16>,
    /// The cgroup that it runs in, when not ours.
    pub(crate) cgroup: Option<&'a Path>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotStarted {
    /// A mistake, or something that has to be built or installed first.
    #[error("{0}")]
    Unusable(String),
    /// It was started, and does not answer.
    #[error("{0}")]
    Unreachable(String),
}

impl Started {
    /// Starts it on free ports, and waits until it answers anything.
    pub(crate) fn start(
        subject: &Subject,
        surroundings: Surroundings<'_>,
    ) -> Result<Self, NotStarted> {
        let program = subject.program();
        let program = program.map_err(|error| NotStarted::Unusable(error.to_string()))?;
        let program = program.ok_or_else(|| {
            NotStarted::Unusable(format!("{}: is no gateway", subject.dir.display()))
        })?;
        if subject.manifest.replicas > 1 {
            return Err(NotStarted::Unusable(format!(
                "{}: `replicas` is for `prove race`; name a subject that is one",
                subject.dir.display()
            )));
        }
        let said = |error: std::io::Error| {
            NotStarted::Unusable(format!("{} could not be started: {error}", subject.name))
        };
        let [port, admin_port] = ports::two_free().map_err(said)?;
        let places = Places {
            port,
            admin_port,
            upstream_port: surroundings.upstream_port,
            further_ports: surroundings.further_ports,
            issuer_port: 0,
            cores: thread::available_parallelism().map_or(1, usize::from),
            dir: surroundings.home,
        };
        let launch = subject.render(&places).map_err(said)?;
        let log = places.dir.join("output.log");
        let group = Group::start(Start {
            program: &program,
            args: &launch.args,
            env: &launch.env,
            dir: &places.dir,
            log: &log,
            cgroup: surroundings.cgroup,
        });
        let mut started = Self {
            name: subject.name.clone(),
            version: subject.version_of(&program),
            places,
            client: launch.client,
            group: group.map_err(said)?,
            log,
        };
        let patience = Duration::from_secs(subject.manifest.ready_seconds);
        let address = ports::loopback(port);
        let answered = await_answer(
            &mut started.group,
            address,
            &get("/"),
            patience,
            &started.log,
        );
        answered.map_err(|says| NotStarted::Unreachable(format!("{} {says}", started.name)))?;
        Ok(started)
    }

    /// Its last words, where it has ended.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.group.ended()?;
        let words = last_lines(&self.log);
        Some(format!("{} ended ({status}){words}", self.name))
    }
}
