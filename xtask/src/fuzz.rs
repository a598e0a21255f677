//! The fuzzing lane: each target of `fuzz/`, built with coverage by the pinned toolchain, for so many seconds.
//!
//! LLVM's coverage pass and libFuzzer need no nightly compiler; AddressSanitizer would, and safe code has little use
//! for it.
//! Invariant: what is found is added to nothing that is committed: corpora grow under `target/fuzz`, from the
//! committed ones on. A target that crashes, or executes nothing, does not keep the others from running, and fails the lane.
//! Not here: what must hold (`fuzz/checks`).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{cargo, metadata, of_compiler, root, target_dir};
use crate::command::run_shown;

/// How long each target runs unless said.
const SECONDS: u64 = 600;
/// LLVM's coverage, as libFuzzer reads it.
const COVERAGE: [&str; 6] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];
/// What libFuzzer prints before counts.
const EXECUTIONS: &str = "stat::number_of_executed_units:";
const A_SECOND: &str = "stat::average_exec_per_sec:";
/// Memory beyond which an input counts as a crash.
const MEMORY_MIB: u32 = 2048;

/// One target's run.
struct Run {
    target: String,
    /// As libFuzzer says at its end; one that crashes may not come to it.
    executions: Option<u64>,
    a_second: Option<u64>,
    corpus: usize,
    seconds: u64,
    crashes: usize,
}

/// What the words after `fuzz` ask for.
pub(crate) struct Plan {
    seconds: u64,
    /// Only this target.
    only: Option<String>,
}

impl Plan {
    /// `[--seconds N] [TARGET]`.
    pub(crate) fn of(words: &[&str]) -> Option<Self> {
        let mut plan = Self {
            seconds: SECONDS,
            only: None,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--seconds" => plan.seconds = words.next()?.parse().ok()?,
                target if !target.starts_with('-') && plan.only.is_none() => {
                    plan.only = Some(target.to_owned());
                }
                _ => return None,
            }
        }
        Some(plan)
    }
}

/// Builds, runs one target after the other, and prints what came of it.
pub(crate) fn run(plan: &Plan) -> Result<(), String> {
    let targets = targets(plan)?;
    let dir = target_dir(&metadata()?)?.join("fuzz");
    let host = of_compiler("host")?;
    build(&dir, &host)?;
    let mut runs = Vec::new();
    for target in targets {
        println!("fuzzing {target} for {} s", plan.seconds);
        runs.push(one(&dir, &host, &target, plan.seconds)?);
    }
    println!("{}", table(&runs));
    judged(&runs, &dir)
}

/// Fails where a target crashed, or did nothing.
fn judged(runs: &[Run], dir: &Path) -> Result<(), String> {
    let named = |is_so: fn(&Run) -> bool| {
        let runs = runs.iter().filter(|run| is_so(run));
        runs.map(|run| run.target.as_str()).collect::<Vec<_>>()
    };
    let crashed = named(|run| run.crashes > 0);
    if !crashed.is_empty() {
        return Err(format!(
            "{} crashed; the inputs are in {}",
            crashed.join(", "),
            dir.join("artifacts").display()
        ));
    }
    let idle = named(|run| run.executions.is_none_or(|count| count == 0));
    if !idle.is_empty() {
        return Err(format!(
            "{} executed nothing: libFuzzer printed no `{EXECUTIONS}` above 0",
            idle.join(", ")
        ));
    }
    Ok(())
}

fn targets(plan: &Plan) -> Result<Vec<String>, String> {
    let dir = root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&dir).map_err(|cause| format!("{}: {cause}", dir.display()))?;
    let mut targets: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    targets.sort();
    let Some(only) = &plan.only else {
        return Ok(targets);
    };
    if targets.contains(only) {
        return Ok(vec![only.clone()]);
    }
    Err(format!(
        "no target {only}; there are {}",
        targets.join(", ")
    ))
}

/// With `--target`, so that the flags are for the targets and not for what builds them.
fn build(dir: &Path, host: &str) -> Result<(), String> {
    // The versions that the workspace uses, and libFuzzer besides.
    let lock = root().join("fuzz/Cargo.lock");
    std::fs::copy(root().join("Cargo.lock"), &lock)
        .map_err(|cause| format!("{}: {cause}", lock.display()))?;
    let mut build = cargo(&["build", "--release", "--bins"]);
    build
        .args(["--target", host, "--target-dir"])
        .arg(dir)
        .current_dir(root().join("fuzz"))
        .env("RUSTFLAGS", COVERAGE.join(" "));
    run_shown(&mut build)
}

fn one(dir: &Path, host: &str, target: &str, seconds: u64) -> Result<Run, String> {
    let made = |path: PathBuf| match std::fs::create_dir_all(&path) {
        Ok(()) => Ok(path),
        Err(cause) => Err(format!("{}: {cause}", path.display())),
    };
    let corpus = made(dir.join("corpus").join(target))?;
    let artifacts = made(dir.join("artifacts").join(target))?;
    let before = files(&artifacts);
    let output = Command::new(dir.join(host).join("release").join(target))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .envs(memory().map(|dir| ("TMPDIR", dir)))
        .args(["-timeout=20", "-max_len=8192", "-print_final_stats=1"])
        .arg(&corpus)
        .arg(root().join("fuzz/corpus").join(target))
        .output()
        .map_err(|cause| format!("{target} did not start: {cause}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let new = files(&artifacts).saturating_sub(before);
    let crashes = new.max(usize::from(!output.status.success()));
    if crashes > 0 {
        let lines: Vec<&str> = said.lines().collect();
        let tail = lines.get(lines.len().saturating_sub(60)..);
        println!("{}", tail.unwrap_or_default().join("\n"));
    }
    Ok(Run {
        target: target.to_owned(),
        executions: stat(&said, EXECUTIONS),
        a_second: stat(&said, A_SECOND),
        corpus: files(&corpus),
        seconds,
        crashes,
    })
}

/// A count of what libFuzzer prints at its end.
fn stat(said: &str, name: &str) -> Option<u64> {
    let line = said.lines().rev().find_map(|line| line.strip_prefix(name));
    line?.trim().parse().ok()
}

/// Where files need no disk: the ledger's are written and synced for each input.
fn memory() -> Option<&'static str> {
    Path::new("/dev/shm").is_dir().then_some("/dev/shm")
}

fn files(dir: &Path) -> usize {
    std::fs::read_dir(dir).map_or(0, Iterator::count)
}

fn table(runs: &[Run]) -> String {
    let mut lines = vec![format!(
        "{:<20} {:>12} {:>10} {:>8} {:>8} {:>8}",
        "target", "executions", "a second", "corpus", "seconds", "crashes"
    )];
    let told = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    lines.extend(runs.iter().map(|run| {
        format!(
            "{:<20} {:>12} {:>10} {:>8} {:>8} {:>8}",
            run.target,
            told(run.executions),
            told(run.a_second),
            run.corpus,
            run.seconds,
            run.crashes
        )
    }));
    let hours = runs.iter().map(|run| run.seconds).sum::<u64>() as f64 / 3600.0;
    let executions: u64 = runs.iter().filter_map(|run| run.executions).sum();
    lines.push(format!("{executions} executions in {hours:.2} hours"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_executes_nothing_fails_as_one_that_crashes_does() {
        let run = |said: &str, crashes| Run {
            target: "rows".to_owned(),
            executions: stat(said, EXECUTIONS),
            a_second: stat(said, A_SECOND),
            corpus: 1,
            seconds: 1,
            crashes,
        };
        let judged = |run| judged(&[run], Path::new("fuzz"));
        let said = "INFO: Seed: 7\nstat::number_of_executed_units: 1200\nstat::average_exec_per_sec:     600\n";
        assert_eq!(judged(run(said, 0)), Ok(()));
        assert!(table(&[run(said, 0)]).contains("1200        600"));
        let says = judged(run(said, 1)).expect_err("it crashed");
        assert!(says.starts_with("rows crashed; "), "{says}");
        for idle in [
            "",
            "number of executed units: 7\n",
            "stat::number_of_executed_units: 0\n",
        ] {
            let says = judged(run(idle, 0)).expect_err("it did nothing");
            assert!(says.starts_with("rows executed nothing"), "{says}");
        }
    }
}
