//! Instruction counts of the gate: what a change costs, exactly, on a machine however noisy.
//!
//! The release binary runs under callgrind with one worker; this process plays client and upstream
//! in lock-step, so every run makes the same reads and writes. Two runs that differ only in how many
//! exchanges they serve cancel what starting and stopping cost.
//! Invariant: a scenario that grew by more than [`TOLERANCE_PERCENT`] (a metered one by more than
//! [`METERED_TOLERANCE_PERCENT`]) fails the stage, and so does a metered one whose worker runs [`TOLERANCE_PERCENT`] more; one that shrank by more is shown, to be written down with `cargo xtask instructions --write`.
//! Not here: what a call costs in time, and beside others (`prove race`).

mod counts;
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
use self::gate::Instructions;
use self::scene::{SCENES, Scene};

/// Growth that is let pass: another C library or another processor picks other copies of `memcpy`.
pub(crate) const TOLERANCE_PERCENT: f64 = 3.0;
/// The same where calls are metered: how many rows a transaction takes, and counts a turn, is the clock's doing.
const METERED_TOLERANCE_PERCENT: f64 = 15.0;
/// Exchanges of the two runs.
const FEW: u32 = 100;
const MANY: u32 = 600;

/// Has a gate serve every scenario so many times, for a profile of what it does.
pub(crate) fn train(binary: &Path, dir: &Path, exchanges: u32) -> Result<(), String> {
    SCENES
        .iter()
        .try_for_each(|scene| gate::run(Command::new(binary), dir, scene, exchanges))
}

impl Scene {
    fn tolerance_percent(&self) -> f64 {
        if self.unmetered.is_some() {
            METERED_TOLERANCE_PERCENT
        } else {
            TOLERANCE_PERCENT
        }
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

/// Likewise of each scenario, in their order, as many at once as there are cores: instructions are the same beside others.
fn each_of(binary: &Path, scenes: &[Scene]) -> Vec<Result<Instructions, String>> {
    let next = AtomicUsize::new(0);
    let counted = Mutex::new(BTreeMap::new());
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(scene) = scenes.get(at) else { return };
                    let each = each(binary, scene);
                    let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
                    counted.insert(at, each);
                }
            });
        }
    });
    let counted = counted.into_inner().unwrap_or_else(PoisonError::into_inner);
    counted.into_values().collect()
}

/// Counts every scenario with this binary and compares, or writes the counts anew.
pub(crate) fn run(binary: &Path, write: bool) -> Result<(), String> {
    let kept = Counts::read()?;
    let mut counted = Counts::default();
    let mut faults = Vec::new();
    let mut shares = Vec::new();
    println!(
        "{:<34} {:>12} {:>12} {:>8}",
        "", "kept", "counted", "change"
    );
    let mut measured = BTreeMap::new();
    let mut tell = |name: &str, count: u64, tolerance: f64| {
        counted.set(name, count);
        let before = kept.get(name);
        let change = before.map(|before| 100.0 * (count as f64 / before as f64 - 1.0));
        println!(
            "{name:<34} {:>12} {count:>12} {:>8}",
            before.map_or_else(|| "-".into(), |before| before.to_string()),
            change.map_or_else(|| "-".into(), |change| format!("{change:+.1} %"))
        );
        if change.is_none_or(|change| change > tolerance) {
            faults.push(name.to_owned());
        }
    };
    for (scene, each) in SCENES.iter().zip(each_of(binary, SCENES)) {
        let each = each?;
        tell(scene.name, each.all, scene.tolerance_percent());
        if let Some(unmetered) = scene.unmetered {
            let name = format!("{}_worker", scene.name);
            tell(&name, each.worker, TOLERANCE_PERCENT);
            shares.push((scene.name, unmetered));
        }
        measured.insert(scene.name, each);
    }
    println!(
        "\n{:<34} {:>12} {:>12} {:>8}",
        "what metering adds", "in all", "on the worker", "share"
    );
    for (metered, unmetered) in shares {
        let (Some(with), Some(without)) = (measured.get(metered), measured.get(unmetered)) else {
            return Err(format!("{metered}: there is no scene `{unmetered}`"));
        };
        let all = with.all.saturating_sub(without.all);
        let worker = with.worker.saturating_sub(without.worker);
        let share = 100.0 * worker as f64 / all.max(1) as f64;
        println!("{metered:<34} {all:>12} {worker:>12} {share:>6.1} %");
    }
    if write {
        return counted.write();
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!(
        "more instructions than were written down (by more than {TOLERANCE_PERCENT} %, metered {METERED_TOLERANCE_PERCENT} %), or none written: {}\n\
         Profiles: {}/<scenario>.out-NN, one for each thread, read with callgrind_annotate.\n\
         A cost that is meant is written down with: cargo xtask instructions --write",
        faults.join(", "),
        gate::dir()?.display()
    ))
}
