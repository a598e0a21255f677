//! Instruction counts of the gate: what a change costs, exactly, on a machine however noisy.
//!
//! The release binary runs under callgrind with one worker; this process plays client and upstream
//! in lock-step, so every run makes the same reads and writes. Two runs that differ only in how many
//! exchanges they serve cancel what starting and stopping cost.
//! Two builds are counted: what the tests run (`tests`, with each `cargo xtask test`), and what is shipped (`dist`).
//! Invariant: a scenario whose worker runs more than [`TOLERANCE_PERCENT`] more instructions in either fails, unless a decision page has a
//! row that lets it (`decided`), and so does one of which all threads together run [`OF_ALL_PERCENT`] more (a metered one
//! [`METERED_PERCENT`]); one that shrank is shown, to be written down with `cargo xtask instructions --write`.
//! Not here: what a call costs in time, and beside others (`prove race`).

mod counts;
mod decided;
mod gate;
mod scene;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use self::counts::Counts;
use self::decided::Decided;
use self::gate::Instructions;
use self::scene::{SCENES, Scene};

/// Growth of the worker's that is let pass. Counts of one binary lie 0.9 % apart in some scenarios, in two groups, by what a process draws at
/// its start.
const TOLERANCE_PERCENT: f64 = 2.0;
/// The same of all threads together: how many lines of the log a write takes is the clock's doing.
const OF_ALL_PERCENT: f64 = 4.0;
/// The same with another C library than that of the kept counts, whose copies of `memcpy` are other ones.
const OTHER_LIBC_PERCENT: f64 = 3.0;
/// The same of all threads where calls are metered: how many rows a transaction takes, and counts a turn, is the clock's doing.
const METERED_PERCENT: f64 = 15.0;
/// How often a scenario that has grown is counted: the gate's ticks come by the clock, more of them where it waits for a core, so that the
/// least count is the truest.
const TRIES: u32 = 3;
/// Exchanges of the two runs.
const FEW: u32 = 100;
const MANY: u32 = 600;

/// Has a gate serve every scenario so many times, for a profile of what it does.
pub(crate) fn train(binary: &Path, dir: &Path, exchanges: u32) -> Result<(), String> {
    SCENES
        .iter()
        .try_for_each(|scene| gate::run(Command::new(binary), dir, scene, exchanges))
}

/// A build whose instructions are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Build {
    /// What `cargo xtask test` builds and runs.
    Tests,
    /// What is shipped and raced.
    Dist,
}

impl Build {
    pub(crate) const ALL: [Self; 2] = [Self::Tests, Self::Dist];

    /// The profile of cargo.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tests => "tests",
            Self::Dist => "dist",
        }
    }

    /// The one of this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|build| build.name() == name)
    }
}

/// Instructions of an exchange.
fn each(binary: &Path, scene: &Scene) -> Result<Instructions, String> {
    let few = gate::instructions(binary, scene, FEW)?;
    let many = gate::instructions(binary, scene, MANY)?;
    let each = |few: u64, many: u64| many.saturating_sub(few) / u64::from(MANY - FEW);
    Ok(Instructions {
        all: each(few.all, many.all),
        worker: each(few.worker, many.worker),
    })
}

/// The same, and again where it has grown, or is to be written down: the least.
fn least(binary: &Path, scene: &Scene, table: &Table) -> Result<Instructions, String> {
    let mut least = each(binary, scene)?;
    for _ in 1..TRIES {
        if !table.is_to_be_written && !table.has_grown(scene, least) {
            break;
        }
        let again = each(binary, scene)?;
        least = Instructions {
            all: least.all.min(again.all),
            worker: least.worker.min(again.worker),
        };
    }
    Ok(least)
}

/// Likewise of each scenario, in their order, as many at once as there are cores.
fn each_of(binary: &Path, scenes: &[Scene], table: &Table) -> Vec<Result<Instructions, String>> {
    let next = AtomicUsize::new(0);
    let counted = Mutex::new(BTreeMap::new());
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(scene) = scenes.get(at) else { return };
                    let least = least(binary, scene, table);
                    let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
                    counted.insert(at, least);
                }
            });
        }
    });
    let counted = counted.into_inner().unwrap_or_else(PoisonError::into_inner);
    counted.into_values().collect()
}

/// Counts the scenarios whose names contain `filter` with this binary of a build, and compares, or writes the counts anew.
pub(crate) fn run(binary: &Path, build: Build, write: bool, filter: &str) -> Result<(), String> {
    let mut table = Table::begin(build, write)?;
    let scenes = SCENES.iter().filter(|scene| scene.name.contains(filter));
    let scenes: Vec<Scene> = scenes.copied().collect();
    let mut measured = BTreeMap::new();
    let all = each_of(binary, &scenes, &table);
    for (scene, each) in scenes.iter().zip(all) {
        let each = each?;
        for row in table.rows(scene, each) {
            table.show(&row);
        }
        measured.insert(scene.name, each);
    }
    shares(&scenes, &measured);
    if write {
        return table.counts.write();
    }
    if table.grown.is_empty() {
        return Ok(());
    }
    Err(format!(
        "more instructions than were written down, or none written: {}\n\
         Profiles: {}/<scenario>.out-NN, one for each thread, read with callgrind_annotate.\n\
         A rise is a fault, until a page of docs/decisions says why there is no other way and has a row `| instructions | scenario | \
         {} | count |` for it. Then: cargo xtask instructions --write",
        table.grown.join(", "),
        gate::dir()?.display(),
        build.name(),
    ))
}

/// What is counted beside what was kept.
struct Table {
    build: Build,
    is_to_be_written: bool,
    counts: Counts,
    decided: Decided,
    tolerance_percent: f64,
    grown: Vec<String>,
}

impl Table {
    fn begin(build: Build, is_to_be_written: bool) -> Result<Self, String> {
        let counts = Counts::read()?;
        let tolerance_percent = if counts.is_of_this_libc() {
            TOLERANCE_PERCENT
        } else {
            println!(
                "another C library than that of the kept counts: {OTHER_LIBC_PERCENT} % are let pass"
            );
            OTHER_LIBC_PERCENT
        };
        println!(
            "{:<36} {:>10} {:>10} {:>8}",
            format!("instructions, `{}`", build.name()),
            "kept",
            "counted",
            "change"
        );
        Ok(Self {
            build,
            is_to_be_written,
            counts,
            decided: Decided::read()?,
            tolerance_percent,
            grown: Vec::new(),
        })
    }

    /// What is compared of a scenario.
    fn rows(&self, scene: &Scene, counted: Instructions) -> Vec<Row> {
        let row = |name: &str, count, tolerance_percent| Row {
            name: name.to_owned(),
            count,
            tolerance_percent,
        };
        let of_all = match scene.unmetered {
            None => OF_ALL_PERCENT,
            Some(_) => METERED_PERCENT,
        };
        let worker = format!("{}_worker", scene.name);
        vec![
            row(scene.name, counted.all, of_all),
            row(&worker, counted.worker, self.tolerance_percent),
        ]
    }

    fn has_grown(&self, scene: &Scene, counted: Instructions) -> bool {
        let mut rows = self.rows(scene, counted).into_iter();
        rows.any(|row| {
            self.change(&row)
                .is_some_and(|change| change > row.tolerance_percent)
        })
    }

    /// In percent of what is kept, where anything is.
    fn change(&self, row: &Row) -> Option<f64> {
        let kept = self.counts.get(&row.name, self.build)?;
        Some(100.0 * (row.count as f64 / kept as f64 - 1.0))
    }

    fn show(&mut self, row: &Row) {
        let kept = self.counts.get(&row.name, self.build);
        let change = self.change(row);
        println!(
            "{:<36} {:>10} {:>10} {:>8}",
            row.name,
            kept.map_or_else(|| "-".into(), |kept| kept.to_string()),
            row.count,
            change.map_or_else(|| "-".into(), |change| format!("{change:+.1} %"))
        );
        let has_grown = change.is_none_or(|change| change > row.tolerance_percent);
        if has_grown && !self.decided.lets(&row.name, self.build, row.count) {
            self.grown.push(row.name.clone());
        }
        self.counts.set(&row.name, self.build, row.count);
    }
}

/// One line of the table.
struct Row {
    name: String,
    count: u64,
    tolerance_percent: f64,
}

/// Shows how much of what metering adds is the worker's.
fn shares(scenes: &[Scene], measured: &BTreeMap<&str, Instructions>) {
    println!(
        "\n{:<36} {:>10} {:>10} {:>8}",
        "what metering adds", "in all", "on worker", "share"
    );
    for scene in scenes {
        let without = scene.unmetered.and_then(|name| measured.get(name));
        if let (Some(with), Some(without)) = (measured.get(scene.name), without) {
            let all = with.all.saturating_sub(without.all);
            let worker = with.worker.saturating_sub(without.worker);
            let share = 100.0 * worker as f64 / all.max(1) as f64;
            println!("{:<36} {all:>10} {worker:>10} {share:>6.1} %", scene.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_that_is_compared_with_another_names_one_that_there_is() {
        for scene in SCENES {
            let without = scene.unmetered;
            let is_there = |name| SCENES.iter().any(|other| other.name == name);
            assert!(without.is_none_or(is_there), "{}: {without:?}", scene.name);
        }
    }
}
