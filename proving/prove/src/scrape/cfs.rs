//! What the kernel's scheduler does to a cgroup: the target `cgroup` among those that are scraped.
//!
//! The quota that binds may stand at any ancestor: the nearest group that has one is the one that is read, and where none
//! has, the process's own. Versions 1 and 2.
//! Invariant: nothing is written; a group that is gone gives no figures.
//! Not here: making a group with a quota (`host::quota`).

use std::fs;
use std::path::{Path, PathBuf};

use experiment::telemetry::Value;

use crate::host::quota::{Throttling, parents};

#[cfg(test)]
mod tests;

/// What queries call it.
pub(crate) const TARGET: &str = "cgroup";

/// A cgroup that is read.
#[derive(Debug, Clone)]
pub(crate) struct Cfs {
    dir: PathBuf,
}

impl Cfs {
    /// That of a process.
    ///
    /// # Errors
    /// There is no such process, or no group of it that says anything of CPU time.
    pub(crate) fn of_process(pid: u32) -> Result<Self, String> {
        let path = format!("/proc/{pid}/cgroup");
        let own = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let found = parents(&own, &mounts).into_iter().find_map(|dir| {
            let stat = dir.join("cpu.stat");
            stat.exists().then(|| Self::at(&dir))
        });
        found.unwrap_or_else(|| {
            Err(format!(
                "process {pid} is in no cgroup with a cpu.stat: is a cpu controller mounted?"
            ))
        })
    }

    /// The group at a path, or the nearest above it that has a quota.
    ///
    /// # Errors
    /// It says nothing of CPU time.
    pub(crate) fn at(dir: &Path) -> Result<Self, String> {
        if !dir.join("cpu.stat").exists() {
            return Err(format!(
                "{}: no cpu.stat there: name a cgroup of the cpu controller",
                dir.display()
            ));
        }
        let with_quota = dir.ancestors().find(|dir| quota_cores(dir).is_some());
        Ok(Self {
            dir: with_quota.unwrap_or(dir).to_owned(),
        })
    }

    /// Which group it is.
    #[cfg(test)]
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Cores that it may use; `None`: all of them.
    pub(crate) fn quota_cores(&self) -> Option<f64> {
        quota_cores(&self.dir)
    }

    /// What was done to it until now; `None` where it is gone.
    pub(crate) fn throttling(&self) -> Option<Throttling> {
        let stat = fs::read_to_string(self.dir.join("cpu.stat")).ok()?;
        Some(Throttling::parse(&stat))
    }

    /// The same as a target says it.
    pub(super) fn read(&mut self) -> Option<Vec<Value>> {
        let now = self.throttling()?;
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts below 2^53 are exact, more there are not in a campaign"
        )]
        let (periods, throttled, seconds) = (
            now.periods as f64,
            now.throttled as f64,
            now.throttled_us as f64 / 1e6,
        );
        let figures = [
            ("periods_total", Some(periods)),
            ("throttled_periods_total", Some(throttled)),
            ("throttled_seconds_total", Some(seconds)),
            ("quota_cores", self.quota_cores()),
        ];
        let values = figures.into_iter().filter_map(|(metric, value)| {
            Some(Value {
                metric: metric.to_owned(),
                labels: Vec::new(),
                value: value?,
            })
        });
        Some(values.collect())
    }
}

/// Version 2 has `cpu.max`, `max 100000` without a quota; version 1 two files, and -1.
fn quota_cores(dir: &Path) -> Option<f64> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| *value > 0.0);
    if let Ok(max) = fs::read_to_string(dir.join("cpu.max")) {
        let (quota, period) = max.trim().split_once(' ')?;
        return Some(number(quota)? / number(period)?);
    }
    let read = |name: &str| fs::read_to_string(dir.join(name)).ok();
    let (quota, period) = (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?);
    Some(number(&quota)? / number(&period)?)
}
