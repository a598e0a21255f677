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

/// Reads affinity and the cgroup's `cpu.max`, its ancestors' included.
#[must_use]
pub fn find() -> Quota {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let quota = tightest(Path::new("/sys/fs/cgroup"), &own_cgroup());
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
    let stat = fs::read_to_string(
        Path::new("/sys/fs/cgroup")
            .join(own_cgroup())
            .join("cpu.stat"),
    );
    let stat = stat
        .or_else(|_| fs::read_to_string("/sys/fs/cgroup/cpu.stat"))
        .ok()?;
    let field = |name: &str| {
        stat.lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.parse::<u64>().ok())
    };
    Some((field("nr_throttled")?, field("throttled_usec")?))
}

/// This process's cgroup (version 2), relative to the mount.
fn own_cgroup() -> PathBuf {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = text.lines().find_map(|l| l.strip_prefix("0::/"));
    PathBuf::from(path.unwrap_or_default())
}

fn tightest(mount: &Path, own: &Path) -> Option<f64> {
    let own = own.ancestors().map(|group| mount.join(group));
    let quotas = own.filter_map(|dir| fs::read_to_string(dir.join("cpu.max")).ok());
    quotas.filter_map(|text| parse(&text)).reduce(f64::min)
}

/// `cpu.max`: `max 100000` or `50000 100000` (quota and period, microseconds).
fn parse(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_follow_the_quota_and_not_the_host() {
        assert_eq!(workers(64, Some(8.0)), 8);
        assert_eq!(workers(64, None), 64);
        assert_eq!(workers(2, Some(8.0)), 2);
    }

    #[test]
    fn a_small_quota_still_gets_one_worker() {
        assert_eq!(workers(64, Some(0.25)), 1);
        assert_eq!(workers(64, Some(1.4)), 1);
        assert_eq!(workers(64, Some(1.5)), 2);
    }

    #[test]
    fn cpu_max_is_read_in_both_forms() {
        assert_eq!(parse("max 100000\n"), None);
        assert_eq!(parse("50000 100000\n"), Some(0.5));
        assert_eq!(parse(""), None);
    }

    #[test]
    fn the_tightest_ancestor_counts() {
        let dir = std::env::temp_dir().join(format!("quota-{}", std::process::id()));
        fs::create_dir_all(dir.join("a/b")).expect("make");
        fs::write(dir.join("a/cpu.max"), "100000 100000").expect("write");
        fs::write(dir.join("a/b/cpu.max"), "max 100000").expect("write");
        assert_eq!(tightest(&dir, Path::new("a/b")), Some(1.0));
        fs::remove_dir_all(&dir).expect("clean");
    }
}
