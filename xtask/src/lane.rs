//! A lane: stages run one after another, each shown as it runs and counted at the end.
//!
//! Invariant: a failing stage never stops the ones after it, so one run shows every failure;
//! `finish` prints the skipped tests, and the total as the last line, and fails if anything did.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crate::binaries::{self, Binary, Built};
use crate::command::run_shown;
use crate::cpu_time;
use crate::tally::{Failed, Ran, Tally, flush};

pub(crate) struct Lane {
    total: Tally,
    failed_stages: Vec<String>,
    /// What tests said that could not run here (`testing::skip`), in the order of the stages.
    skipped: Vec<String>,
    began: Instant,
}

impl Lane {
    pub(crate) fn new() -> Self {
        Self {
            total: Tally::default(),
            failed_stages: Vec::new(),
            skipped: Vec::new(),
            began: Instant::now(),
        }
    }

    /// A command that passes or fails as a whole; says whether it passed.
    pub(crate) fn command(&mut self, name: &str, mut command: Command) -> bool {
        let again = shown(&command);
        self.step(name, &again, || run_shown(&mut command))
            .is_some()
    }

    /// A step of our own that passes or fails as a whole, and the command that takes it once more; gives what it made.
    pub(crate) fn step<T>(
        &mut self,
        name: &str,
        again: &str,
        step: impl FnOnce() -> Result<T, String>,
    ) -> Option<T> {
        let mut made = None;
        self.stage(name, || {
            match step() {
                Ok(value) => made = Some(value),
                Err(says) => eprintln!("error: {says}"),
            }
            let again = made.is_none().then(|| again.to_owned());
            (Tally::one(made.is_some()), again)
        });
        made
    }

    /// Builds what this `cargo test` would run, and lints it. What could be built is given, whatever is wrong.
    pub(crate) fn build(&mut self, name: &str, test: Command) -> Built {
        let mut all = Built::default();
        self.step(name, "cargo xtask check", || {
            all = binaries::build(test);
            all.fault.clone().map_or(Ok(()), Err)
        });
        all
    }

    /// A `cargo test` whose own results are counted; fewer than `least` are a failure.
    pub(crate) fn tests(&mut self, name: &str, least: u64, mut command: Command) {
        let again = shown(&command);
        self.counted(name, &again, least, |skipped| {
            command.env(SKIPPED, skipped);
            run_tests(command)
        });
    }

    /// Likewise of test binaries that are built, so many at once, each prepared by `each`. `again` is what runs them once more,
    /// or a test of them that is named behind it.
    pub(crate) fn binaries(
        &mut self,
        name: &str,
        again: &str,
        least: u64,
        built: Vec<Binary>,
        at_once: usize,
        each: impl Fn(&mut Command) + Sync,
    ) {
        self.counted(name, again, least, |skipped| {
            binaries::run(built, at_once, |command| {
                each(command);
                command.env(SKIPPED, skipped);
            })
        });
    }

    /// Tests whose results are counted, and who name in a file which of them were skipped.
    fn counted(&mut self, name: &str, again: &str, least: u64, run: impl FnOnce(&Path) -> Ran) {
        let file = skipped_file(name);
        let mut skipped = Vec::new();
        self.stage(name, || {
            let mut ran = run(&file);
            skipped = skipped_in(&file);
            ran.tally.of_these_skipped(skipped.len() as u64);
            let tally = ran.tally.ended(ran.success, least);
            let again = (tally.failed > 0).then(|| repeated(again, &ran.failed));
            (tally, again)
        });
        self.skipped.extend(skipped);
    }

    /// A stage that cannot run because an earlier one failed: counted, never passed over.
    pub(crate) fn cannot_run(&mut self, name: &str, says: &str) {
        self.stage(name, || {
            eprintln!("error: not run: {says}");
            (Tally::one(false), None)
        });
    }

    /// Prints the skipped tests, the failed stages and, as the last line, the total.
    pub(crate) fn finish(self) -> ExitCode {
        println!();
        for line in &self.skipped {
            println!("{line}");
        }
        for name in &self.failed_stages {
            println!("failed stage: {name}");
        }
        println!("total: {}", self.total);
        if self.total.failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    /// Runs it; it gives what it counted and, where it failed, what repeats that.
    fn stage(&mut self, name: &str, run: impl FnOnce() -> (Tally, Option<String>)) {
        println!("\n── {name}");
        flush();
        let began = Instant::now();
        let cpu_before_s = cpu_time::of_children();
        let (tally, again) = run();
        self.total += tally;
        if tally.failed > 0 {
            self.failed_stages.push(name.to_owned());
        }
        let (stage_s, lane_s) = (
            began.elapsed().as_secs_f64(),
            self.began.elapsed().as_secs_f64(),
        );
        let cpu = cpu_time::of_children()
            .zip(cpu_before_s)
            .map_or_else(String::new, |(now, before)| {
                format!(", {:.1} s of CPU", now - before)
            });
        println!("── {name}: {tally} ({stage_s:.1} s{cpu}; {lane_s:.0} s since the start)");
        if let Some(again) = again {
            println!("   again: {again}");
        }
        flush();
    }
}

/// Names the file for skipped tests (`testing::skip`).
const SKIPPED: &str = "TOLLGATE_SKIPPED";

/// A command as a person types it.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or_default();
    let words = [program].into_iter().chain(command.get_args());
    let words: Vec<_> = words.map(std::ffi::OsStr::to_string_lossy).collect();
    words.join(" ")
}

/// What runs the first of the tests that failed once more, and how many others there are; or all, where none is named.
fn repeated(again: &str, failed: &[Failed]) -> String {
    let Some((first, others)) = failed.split_first() else {
        return again.to_owned();
    };
    let seed = first.seed.as_deref().map(|seed| format!("{seed} "));
    let test = format!("{}{again} {}", seed.unwrap_or_default(), first.test);
    match others.len() {
        0 => test,
        others => format!("{test}   # and {others} more failed: {again}"),
    }
}

fn run_tests(mut command: Command) -> Ran {
    let mut tally = Tally::default();
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(cause) => {
            eprintln!("error: {command:?} did not start: {cause}");
            return Ran::default();
        }
    };
    if let Some(stdout) = child.stdout.take() {
        let mut reader = BufReader::new(stdout);
        let mut line = Vec::new();
        while reader
            .read_until(b'\n', &mut line)
            .is_ok_and(|read| read > 0)
        {
            let text = String::from_utf8_lossy(&line);
            tally.read_line(&text);
            print!("{text}");
            flush();
            line.clear();
        }
    }
    Ran {
        tally,
        success: child.wait().is_ok_and(|status| status.success()),
        failed: Vec::new(),
    }
}

/// A file of this process and stage that is not there yet.
fn skipped_file(stage: &str) -> PathBuf {
    let name = format!(
        "tollgate-skipped-{}-{}",
        std::process::id(),
        stage.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
    );
    let file = std::env::temp_dir().join(name);
    drop(std::fs::remove_file(&file));
    file
}

/// The lines that tests left, sorted; the file is removed.
fn skipped_in(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    drop(std::fs::remove_file(file));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[cfg(test)]
mod tests;
