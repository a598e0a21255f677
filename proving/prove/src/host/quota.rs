//! A share of the CPU for a subject: a cgroup of its own with a quota.
//!
//! Invariant: only a group that we made is written to, and it is removed when dropped; no
//! controller is switched on anywhere, so that nothing else on the machine changes.
//! Not here: who goes in (`process`, `guard`), what a subject makes of it (`race::cell`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

#[cfg(test)]
mod tests;

const PERIOD_US: f64 = 100_000.0;
/// Before the pid of the maker, in the names of groups.
const PREFIX: &str = "tollgate-race-";
static MADE: AtomicU64 = AtomicU64::new(0);

/// A group with a quota.
#[derive(Debug)]
pub(crate) struct Cgroup {
    dir: PathBuf,
}

/// What the kernel's scheduler did to a group since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Throttling {
    pub(crate) periods: u64,
    pub(crate) throttled: u64,
    pub(crate) throttled_us: u64,
}

impl Cgroup {
    /// Makes a group that may use `cores` cores, below `parent` or where the kernel has us.
    pub(crate) fn make(parent: Option<&Path>, cores: f64) -> Result<Self, String> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let parents = parent.map_or_else(
            || parents(&read("/proc/self/cgroup"), &read("/proc/mounts")),
            |parent| vec![parent.to_owned()],
        );
        let mut says = Vec::new();
        for parent in &parents {
            match Self::make_below(parent, cores) {
                Ok(group) => return Ok(group),
                Err(error) => says.push(format!("{}: {error}", parent.display())),
            }
        }
        if says.is_empty() {
            says.push("no hierarchy with a cpu controller is mounted".into());
        }
        Err(format!(
            "no permission for cgroups: {}; run as root, or name a delegated group with --cgroup",
            says.join("; ")
        ))
    }

    fn make_below(parent: &Path, cores: f64) -> io::Result<Self> {
        sweep(parent);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let dir = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&dir)?;
        let group = Self { dir };
        group.limit(cores)?;
        Ok(group)
    }

    /// Version 2 has `cpu.max`, version 1 two files.
    fn limit(&self, cores: f64) -> io::Result<()> {
        let quota = (cores * PERIOD_US).round();
        let write = |name: &str, text: String| {
            let path = self.dir.join(name);
            let mut options = fs::OpenOptions::new();
            let mut file = options.write(true).open(path)?;
            io::Write::write_all(&mut file, text.as_bytes())
        };
        if self.dir.join("cpu.max").exists() {
            return write("cpu.max", format!("{quota} {PERIOD_US}"));
        }
        if self.dir.join("cpu.cfs_quota_us").exists() {
            write("cpu.cfs_period_us", PERIOD_US.to_string())?;
            return write("cpu.cfs_quota_us", quota.to_string());
        }
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "the cpu controller is not on for its children",
        ))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn throttling(&self) -> Throttling {
        Throttling::parse(&fs::read_to_string(self.dir.join("cpu.stat")).unwrap_or_default())
    }
}

impl Drop for Cgroup {
    /// The kernel lets go of a group a moment after its last process.
    fn drop(&mut self) {
        for _ in 0..50 {
            if fs::remove_dir(&self.dir).is_ok() || !self.dir.exists() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        eprintln!("{} could not be removed", self.dir.display());
    }
}

impl std::iter::Sum for Throttling {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            periods: sum.periods + one.periods,
            throttled: sum.throttled + one.throttled,
            throttled_us: sum.throttled_us + one.throttled_us,
        })
    }
}

impl Throttling {
    /// Version 2 counts microseconds, version 1 nanoseconds.
    pub(crate) fn parse(stat: &str) -> Self {
        let field = |name: &str| {
            stat.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
        };
        let nanos: Option<u64> = field("throttled_time");
        Self {
            periods: field("nr_periods").unwrap_or(0),
            throttled: field("nr_throttled").unwrap_or(0),
            throttled_us: field("throttled_usec").unwrap_or(nanos.unwrap_or(0) / 1_000),
        }
    }

    pub(crate) const fn since(&self, before: &Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(before.periods),
            throttled: self.throttled.saturating_sub(before.throttled),
            throttled_us: self.throttled_us.saturating_sub(before.throttled_us),
        }
    }
}

/// Joins the group at `dir` and, with this process, whatever it starts.
pub(crate) fn join(dir: &Path) -> io::Result<()> {
    let file = fs::OpenOptions::new()
        .write(true)
        .open(dir.join("cgroup.procs"));
    file.and_then(|mut file| io::Write::write_all(&mut file, b"0"))
}

/// Removes groups of makers that were killed; the kernel refuses where a process is left in one.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Groups in which one might be made: our own and the root, of each hierarchy that may limit CPU.
pub(crate) fn parents(own: &str, mounts: &str) -> Vec<PathBuf> {
    let mut parents = Vec::new();
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(1);
        let (Some(at), Some(kind), Some(options)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let has_cpu = options.split(',').any(|option| option == "cpu");
        let controller = match kind {
            "cgroup2" => "",
            "cgroup" if has_cpu => "cpu",
            _ => continue,
        };
        let ours = own.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(":/")?;
            let named = controllers.split(',').any(|name| name == controller);
            named.then_some(path)
        });
        let root = PathBuf::from(at);
        parents.extend(
            ours.filter(|path| !path.is_empty())
                .map(|path| root.join(path)),
        );
        parents.push(root);
    }
    parents
}
