//! What processes have used, read from `/proc`: CPU time, memory, context switches.
//!
//! CPU time is the scheduler's run time of every thread in nanoseconds (`task/*/schedstat`); it
//! is checked against `utime + stime` (ticks), which also keep threads and children that have
//! ended, and gives way to them where the two disagree.
//! Invariant: reading never stops or slows what is read beyond the read itself.
//! Not here: when to read (`race::cell`).

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

#[cfg(test)]
mod tests;

/// `_SC_CLK_TCK` is 100 on every Linux that we know; `ticks_per_second` reads it where it differs.
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// One process, known for certain: a pid may be used again, with its start time it is one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) name: String,
    state: char,
    parent: i32,
    group: i32,
    /// User and system, with those of children that have ended.
    ticks: u64,
    system_ticks: u64,
    started: u64,
}

/// Sums over processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Scheduler run time of all living threads.
    pub(crate) run_ns: u64,
    /// utime + stime with those of children that have ended.
    pub(crate) ticks_ns: u64,
    /// Of these, in the kernel.
    pub(crate) system_ns: u64,
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    pub(crate) rss_bytes: u64,
    pub(crate) threads: u64,
}

impl Process {
    /// Whether this very process still runs.
    pub(crate) fn is_alive(&self) -> bool {
        read_stat(self.pid)
            .is_some_and(|now| now.started == self.started && !matches!(now.state, 'Z' | 'X'))
    }
}

/// Every process of the group `leader`, and every descendant of `leader` whatever its group.
pub(crate) fn family(leader: i32) -> Vec<Process> {
    let all: BTreeMap<i32, Process> = numbers("/proc")
        .filter_map(read_stat)
        .map(|process| (process.pid, process))
        .collect();
    let belongs = |process: &Process| {
        let mut at = process;
        for _ in 0..64 {
            if at.group == leader || at.pid == leader {
                return true;
            }
            let Some(parent) = all.get(&at.parent) else {
                return false;
            };
            at = parent;
        }
        false
    };
    all.values()
        .filter(|process| belongs(process))
        .cloned()
        .collect()
}

/// What `processes` have used until now.
pub(crate) fn usage(processes: &[Process]) -> Usage {
    let mut sum = Usage::default();
    for process in processes {
        let Some(now) = read_stat(process.pid).filter(|now| now.started == process.started) else {
            continue;
        };
        let tick_ns = NANOS_PER_SECOND / ticks_per_second();
        sum.ticks_ns += now.ticks * tick_ns;
        sum.system_ns += now.system_ticks * tick_ns;
        sum.rss_bytes += rss(process.pid);
        for task in numbers(&format!("/proc/{}/task", process.pid)) {
            sum.threads += 1;
            let dir: PathBuf = format!("/proc/{}/task/{task}", process.pid).into();
            let schedstat = fs::read_to_string(dir.join("schedstat")).unwrap_or_default();
            sum.run_ns += first_number(&schedstat);
            let status = fs::read_to_string(dir.join("status")).unwrap_or_default();
            sum.voluntary += field(&status, "voluntary_ctxt_switches:");
            sum.involuntary += field(&status, "nonvoluntary_ctxt_switches:");
        }
    }
    sum
}

/// Scheduler run time of the living threads of `processes` whose names begin with `start`, nanoseconds.
pub(crate) fn run_ns_of(processes: &[Process], start: &str) -> u64 {
    let mut sum = 0;
    for process in processes {
        let tasks = PathBuf::from(format!("/proc/{}/task", process.pid));
        for task in numbers(&tasks.to_string_lossy()) {
            let dir = tasks.join(task.to_string());
            if fs::read_to_string(dir.join("comm")).is_ok_and(|name| name.starts_with(start)) {
                sum += first_number(&fs::read_to_string(dir.join("schedstat")).unwrap_or_default());
            }
        }
    }
    sum
}

/// Resident bytes of `processes`, the cheapest of the figures: it may be read during a measurement.
pub(crate) fn resident(processes: &[Process]) -> u64 {
    processes.iter().map(|process| rss(process.pid)).sum()
}

/// Resident bytes with shared pages divided among those who share them; dearer than `resident`.
pub(crate) fn proportional(processes: &[Process]) -> Option<u64> {
    let mut sum = 0;
    for process in processes {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.pid)).ok()?;
        sum += field(&rollup, "Pss:") * 1024;
    }
    Some(sum)
}

/// CPU nanoseconds between two readings, and whether the scheduler's count was used.
///
/// A thread that ended in between takes its run time with it, but not its ticks: where ticks are
/// more than their own error ahead, they count.
pub(crate) fn cpu_ns(before: &Usage, after: &Usage) -> (u64, bool) {
    let run = after.run_ns.saturating_sub(before.run_ns);
    let ticks = after.ticks_ns.saturating_sub(before.ticks_ns);
    let error = 2 * (NANOS_PER_SECOND / ticks_per_second()) * after.threads.max(1) + ticks / 20;
    if run == 0 || ticks > run + error {
        (ticks, false)
    } else {
        (run, true)
    }
}

fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second().max(1)
}

/// Resident bytes of one process; 0 when it is gone.
pub(crate) fn rss(pid: i32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages: u64 = statm
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

fn read_stat(pid: i32) -> Option<Process> {
    parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name stands in brackets and may hold brackets and blanks; fields count from after the last.
fn parse_stat(pid: i32, stat: &str) -> Option<Process> {
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = after.split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok());
    Some(Process {
        pid,
        name,
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        ticks: number(11)? + number(12)? + number(13)? + number(14)?,
        system_ticks: number(12)? + number(14)?,
        started: number(19)?,
    })
}

fn numbers(dir: &str) -> impl Iterator<Item = i32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn first_number(text: &str) -> u64 {
    text.split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0)
}

/// The number after `key` at the start of a line.
fn field(status: &str, key: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .map_or(0, first_number)
}
