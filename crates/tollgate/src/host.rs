//! What this host cannot do that a gate will want, said at the start with what to do about it.
//!
//! Invariant: nothing here keeps a gate from starting, and nothing is changed: a file is neither made nor opened, and the
//! sockets of the probe are closed again.
//! Not here: what does keep it from starting (`writable`, `serve`), how many workers a quota carries (`proxy::quota`).

mod disk;
mod spread;

use std::env;
use std::path::{Path, PathBuf};

use policy::snapshot::Bounds;
use proxy::quota::Quota;

use disk::{Disk, Kind};

/// Descriptors below which a gate is a toy: some two thousand connections.
const DESCRIPTORS: u64 = 4096;
/// Workers of a container that nobody chose, beyond which it is worth a word.
const WORKERS: usize = 8;
/// Room that a file wants where nothing says how large it may become, bytes.
const ROOM_BYTES: u64 = 1 << 30;

/// What was found.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    /// Files that may be open, after the limit was raised.
    descriptors: u64,
    /// Bytes beyond which no file may grow.
    file_bytes: u64,
    /// Connections that clients may have by those descriptors.
    room: usize,
    /// Connections that all workers together may have by the configuration, where it says how many one may.
    connections: Option<usize>,
    workers: usize,
    /// Whether the configuration says how many.
    is_chosen: bool,
    has_quota: bool,
    is_container: bool,
    /// Whether the kernel gives each of several listeners a part of the connections; none where it could not be tried.
    is_spread: Option<bool>,
    files: Vec<File>,
}

/// A file that grows, and what it lies on.
#[derive(Debug, Clone)]
struct File {
    /// The setting that names it.
    setting: &'static str,
    dir: PathBuf,
    /// As long as it is.
    has_bytes: u64,
    /// What it may grow by.
    wants_bytes: u64,
    /// Whether it has to outlive this machine.
    is_kept: bool,
    disk: Disk,
}

impl Host {
    /// Looks at the host, for a gate of so many workers and so much room.
    pub(crate) fn find(
        host: &config::Host,
        bounds: &Bounds,
        quota: &Quota,
        workers: usize,
        room: usize,
    ) -> Self {
        // A bound that equals the default counts as not set.
        let is_limited = bounds.connections != Bounds::default().connections;
        Self {
            descriptors: rlimit::Resource::NOFILE.get_soft().unwrap_or(u64::MAX),
            file_bytes: rlimit::Resource::FSIZE.get_soft().unwrap_or(u64::MAX),
            room,
            connections: is_limited.then(|| bounds.connections.saturating_mul(workers)),
            workers,
            is_chosen: host.workers.is_some(),
            has_quota: quota.quota.is_some(),
            is_container: is_container(),
            is_spread: (workers > 1).then(spread::is_spread).flatten(),
            files: files(host),
        }
    }

    /// What there is to say, a sentence each.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        remarks.extend(self.of_descriptors());
        if self.is_spread == Some(false) {
            remarks.push(format!(
                "the kernel gives all connections to one of {} workers, as it does not spread them over listeners of one \
                 port (SO_REUSEPORT): set `workers: 1`, and run a gate for each CPU behind a balancer",
                self.workers
            ));
        }
        if self.is_container && !self.has_quota && !self.is_chosen && self.workers > WORKERS {
            remarks.push(format!(
                "{} workers, one for each CPU of the host, as this container has no CPU limit: give it one \
                 (`resources.limits.cpu`, `docker run --cpus`), or set `workers`",
                self.workers
            ));
        }
        for file in &self.files {
            remarks.extend(file.grows_beyond(self.file_bytes));
            remarks.extend(file.remarks(self.is_container));
        }
        remarks
    }

    fn of_descriptors(&self) -> Option<String> {
        let wanted = self.connections.filter(|wanted| *wanted > self.room);
        if self.descriptors >= DESCRIPTORS && wanted.is_none() {
            return None;
        }
        let beside = wanted.map_or_else(String::new, |wanted| {
            format!(", not {wanted} as `bounds.connections` of all workers says")
        });
        Some(format!(
            "{} files may be open, so clients may have {} connections{beside}: raise the hard limit (`ulimit -Hn`, \
             LimitNOFILE= of systemd, `docker run --ulimit nofile=1048576`)",
            self.descriptors, self.room
        ))
    }
}

impl File {
    fn grows_beyond(&self, most: u64) -> Option<String> {
        let wanted = self.has_bytes.saturating_add(self.wants_bytes);
        (wanted > most).then(|| {
            format!(
                "no file may grow beyond {} KiB, and {} may want {} KiB: raise that limit (`ulimit -f`, LimitFSIZE= of systemd)",
                most >> 10,
                self.setting,
                wanted >> 10
            )
        })
    }

    fn remarks(&self, is_container: bool) -> Vec<String> {
        let (setting, dir) = (self.setting, self.dir.display());
        let mut remarks = Vec::new();
        if self.disk.free_bytes < self.wants_bytes {
            remarks.push(format!(
                "{setting} has {} MiB left in {dir} and may want {}: make room, or {}",
                self.disk.free_bytes >> 20,
                self.wants_bytes >> 20,
                if self.is_kept {
                    "set `ledger.size` to what there is"
                } else {
                    "rotate it (SIGHUP reopens it)"
                }
            ));
        }
        let lies = match self.disk.kind {
            Kind::Memory => Some(
                "in memory (tmpfs), and is gone with the next start of this machine or container",
            ),
            Kind::Layer if is_container => {
                Some("in the container's own layer, and is gone with the container")
            }
            Kind::Layer | Kind::Disk => None,
        };
        if let Some(lies) = lies.filter(|_| self.is_kept) {
            remarks.push(format!("{setting} lies {lies}: put it on a volume ({dir})"));
        }
        remarks
    }
}

/// Whether this is a container, as the runtimes that are met most often say it.
fn is_container() -> bool {
    let marks = ["/.dockerenv", "/run/.containerenv"];
    marks.iter().any(|mark| Path::new(mark).exists())
        || env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

/// The files of a configuration that grow.
fn files(host: &config::Host) -> Vec<File> {
    let length = |path: &PathBuf| std::fs::metadata(path).map_or(0, |found| found.len());
    let ledger = host.ledger.as_ref().map(|ledger| {
        let has = length(&ledger.path);
        let wants = ledger
            .bytes_max
            .map_or(ROOM_BYTES, |most| most.saturating_sub(has));
        ("ledger.path", &ledger.path, (has, wants), true)
    });
    let log = match &host.access_log {
        config::AccessLog::File(path) => {
            Some(("access_log", path, (length(path), ROOM_BYTES), false))
        }
        config::AccessLog::Off | config::AccessLog::Stdout => None,
    };
    type Found<'a> = (&'static str, &'a PathBuf, (u64, u64), bool);
    let file = |(setting, path, (has_bytes, wants_bytes), is_kept): Found<'_>| {
        let dir = match path.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
            _ => PathBuf::from("."),
        };
        let disk = Disk::of(&dir)?;
        Some(File {
            setting,
            dir,
            has_bytes,
            wants_bytes,
            is_kept,
            disk,
        })
    };
    ledger.into_iter().chain(log).filter_map(file).collect()
}

#[cfg(test)]
mod tests;
