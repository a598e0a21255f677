//! How many workers this machine, or the share of it we were given, can run.
//!
//! A proxy that starts a worker for each CPU that the host shows, under a quota of a few, is
//! throttled by the kernel's scheduler: every thread stops together until the next period. The
//! number of workers therefore follows the cgroup's quota.
//! Not here: reading metrics of throttling over time (`telemetry` is given what [`throttled`] says).

use std::fs;
use std::path::{Path, PathBuf};

/// What was found and what follows.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// CPUs this process may be scheduled on.
    pub cpus: usize,
    /// CPUs' worth of time per period, when a cgroup limits it.
    pub quota: Option<f64>,
    /// Workers to run.
    pub workers: usize,
}

impl Quota {
    /// CPUs' worth of time that this process has: the quota, and never more than the CPUs.
    #[must_use]
    pub fn time(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "few")]
        let cpus = self.cpus as f64;
        self.quota.map_or(cpus, |quota| quota.min(cpus))
    }
}

/// Where the kernel shows cgroups.
const MOUNT: &str = "/sys/fs/cgroup";

/// Reads affinity and the quota of the cgroup, its ancestors' included, in either version.
#[must_use]
pub fn find() -> Quota {
    // Not `available_parallelism`: that has the quota in it already, rounded down.
    let cpus = allowed(&fs::read_to_string("/proc/self/status").unwrap_or_default())
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let quotas = [
        tightest(Path::new(MOUNT), &own_cgroup(""), quota_v2),
        tightest(&Path::new(MOUNT).join("cpu"), &own_cgroup("cpu"), quota_v1),
    ];
    let quota = quotas.into_iter().flatten().reduce(f64::min);
    Quota {
        cpus,
        quota,
        workers: workers(cpus, quota),
    }
}

/// Workers for so many CPUs under such a quota: a core's worth of quota each, at least one; a
/// fraction below the half is not worth a thread that would be throttled.
#[must_use]
pub fn workers(cpus: usize, quota: Option<f64>) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small, positive"
    )]
    let by_quota = quota.map_or(usize::MAX, |q| q.round() as usize);
    cpus.min(by_quota).max(1)
}

/// Periods in which the cgroup was throttled, and microseconds spent so, since it began.
#[must_use]
pub fn throttled() -> Option<(u64, u64)> {
    let mount = Path::new(MOUNT);
    let (v2, v1) = (own_cgroup(""), own_cgroup("cpu"));
    // In a container the group that is ours may be shown as the root.
    [
        mount.join(v2),
        mount.join("cpu").join(v1),
        mount.into(),
        mount.join("cpu"),
    ]
    .iter()
    .filter_map(|dir| fs::read_to_string(dir.join("cpu.stat")).ok())
    .find_map(|text| throttling(&text))
}

/// `cpu.stat`: version 2 tells microseconds, version 1 nanoseconds.
fn throttling(stat: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        stat.lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.parse::<u64>().ok())
    };
    let micros = field("throttled_usec").or_else(|| Some(field("throttled_time")? / 1000))?;
    Some((field("nr_throttled")?, micros))
}

/// This process's cgroup relative to the mount: of a controller in version 1, or, without a name,
/// of version 2.
fn own_cgroup(controller: &str) -> PathBuf {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    cgroup_in(&text, controller)
}

fn cgroup_in(text: &str, controller: &str) -> PathBuf {
    let path = text.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(":/")?;
        controllers
            .split(',')
            .any(|c| c == controller)
            .then_some(path)
    });
    PathBuf::from(path.unwrap_or_default())
}

/// CPUs in `Cpus_allowed_list` of `/proc/self/status`, such as `0-3,8`.
fn allowed(status: &str) -> Option<usize> {
    let list = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
    let mut count = 0;
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        count += last.checked_sub(first)? + 1;
    }
    Some(count)
}

/// The smallest quota of a group and its ancestors.
fn tightest(mount: &Path, own: &Path, read: impl Fn(&Path) -> Option<f64>) -> Option<f64> {
    own.ancestors()
        .filter_map(|group| read(&mount.join(group)))
        .reduce(f64::min)
}

fn quota_v2(group: &Path) -> Option<f64> {
    parse(&fs::read_to_string(group.join("cpu.max")).ok()?)
}

fn quota_v1(group: &Path) -> Option<f64> {
    let read = |name| fs::read_to_string(group.join(name)).ok();
    parse(&format!(
        "{} {}",
        read("cpu.cfs_quota_us")?,
        read("cpu.cfs_period_us")?
    ))
}

/// Quota and period, microseconds: `50000 100000`. No quota is `max` in version 2, -1 in version 1.
fn parse(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests;
