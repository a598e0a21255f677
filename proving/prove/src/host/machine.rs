//! What the figures were measured on.
//!
//! Not here: the subjects' versions (`subject`).

use std::fs;

use serde::Serialize;

/// The machine, for the result file.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_mib: u64,
    pub(crate) kernel: String,
    pub(crate) descriptors: u64,
}

impl Machine {
    pub(crate) fn read(descriptors: u64) -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let value = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory_kib = value(&meminfo, "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        Self {
            cpu: value(&cpuinfo, "model name").unwrap_or_else(|| "unknown".into()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: memory_kib.unwrap_or(0) / 1024,
            kernel: kernel.trim().to_owned(),
            descriptors,
        }
    }
}

/// What all cores have done since boot, in ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CoreTicks {
    busy: u64,
    stolen: u64,
    all: u64,
}

impl CoreTicks {
    pub(crate) fn read() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// user nice system idle iowait irq softirq steal
    fn parse(stat: &str) -> Self {
        let line = stat.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .take(8)
            .filter_map(|word| word.parse().ok())
            .collect();
        let tick = |index: usize| ticks.get(index).copied().unwrap_or(0);
        let (stolen, all) = (tick(7), ticks.iter().sum());
        Self {
            busy: all - tick(3) - tick(4) - stolen,
            stolen,
            all,
        }
    }

    /// Shares of all cores since `before`: busy, and stolen by the hypervisor.
    #[expect(clippy::cast_precision_loss, reason = "ticks below 2^53")]
    pub(crate) fn shares_since(&self, before: &Self) -> (f64, f64) {
        let all = self.all.saturating_sub(before.all).max(1) as f64;
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / all;
        (
            share(self.busy, before.busy),
            share(self.stolen, before.stolen),
        )
    }
}

#[cfg(test)]
mod tests {
    //! Ticks by example.

    use super::CoreTicks;

    #[test]
    fn waiting_is_not_busy_and_neither_is_stolen_time() {
        let before = CoreTicks::parse("cpu  10 0 10 100 10 0 0 5 0 0\n");
        let after = CoreTicks::parse("cpu  30 0 20 150 15 0 5 15 0 0\n");
        assert_eq!(after.shares_since(&before), (0.35, 0.1));
    }
}
