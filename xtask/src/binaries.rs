//! Test binaries: built by one call of cargo, and run as many at once as there are cores.
//!
//! `cargo test` runs them one after another, though most wait: for time, for processes, for a disk.
//! Invariant: lines appear as they are printed, but for what a binary says of its failures: that stands together.
//! Not here: what their results come to (`lane`).

use std::io::{BufRead, BufReader};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::Value;

use crate::cargo::root;
use crate::tally::{Ran, flush};

/// What libtest prints before it says what failed, and why.
const FAILURES: &str = "failures:";

/// One that cargo has built.
#[derive(Debug, PartialEq, Eq)]
struct Binary {
    /// `test`, `lib` or `bin`.
    kind: String,
    /// What the kind's target is called.
    name: String,
    /// Where its source begins.
    source: String,
    path: PathBuf,
    /// Its package's, in which it runs, as under cargo.
    dir: PathBuf,
}

/// Builds what this `cargo test` would run, and runs each binary, prepared by `each`.
pub(crate) fn run(build: Command, each: impl Fn(&mut Command) + Sync) -> Ran {
    let mut ran = Ran::default();
    let binaries = match built(build) {
        Ok(binaries) => binaries,
        Err(says) => {
            eprintln!("error: {says}");
            return ran;
        }
    };
    ran.success = true;
    let ran = Mutex::new(ran);
    let left = Mutex::new(binaries.into_iter());
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let next = lock(&left).next();
                    let Some(binary) = next else { return };
                    if let Err(says) = one(&binary, &each, &ran) {
                        lock(&ran).success = false;
                        eprintln!("error: {says}; again: {}", binary.again());
                    }
                }
            });
        }
    });
    ran.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one to its end.
fn one(binary: &Binary, each: impl Fn(&mut Command), ran: &Mutex<Ran>) -> Result<(), String> {
    let mut command = Command::new(&binary.path);
    command
        .current_dir(&binary.dir)
        .env("CARGO_MANIFEST_DIR", &binary.dir)
        .stdout(Stdio::piped());
    each(&mut command);
    let fault = |cause| format!("{}: {cause}", binary.path.display());
    let mut child = command.spawn().map_err(fault)?;
    let mut failures = None;
    let mut line = Vec::new();
    let mut reader = BufReader::new(child.stdout.take().ok_or_else(|| "no output".to_owned())?);
    while reader.read_until(b'\n', &mut line).map_err(fault)? > 0 {
        let text = String::from_utf8_lossy(&line);
        let mut ran = lock(ran);
        ran.tally.read_line(&text);
        if failures.is_none() && text.trim_end() == FAILURES {
            failures = Some(format!("\nin {}:\n", binary.source));
        }
        match &mut failures {
            Some(failures) => failures.push_str(&text),
            None => print!("{text}"),
        }
        flush();
        line.clear();
    }
    let status = child.wait().map_err(fault)?;
    let _alone = lock(ran);
    print!("{}", failures.unwrap_or_default());
    println!("     ended: {}", binary.source);
    flush();
    if status.success() {
        return Ok(());
    }
    Err(format!("{}: {status}", binary.source))
}

/// The test binaries that this `cargo test` would run: first those of a package's `tests`, which wait longest.
fn built(mut build: Command) -> Result<Vec<Binary>, String> {
    build
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .stdout(Stdio::piped());
    let output = build
        .spawn()
        .and_then(std::process::Child::wait_with_output)
        .map_err(|cause| format!("{build:?} did not start: {cause}"))?;
    if !output.status.success() {
        return Err(format!("{build:?}: {}", output.status));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let mut binaries: Vec<Binary> = said.lines().filter_map(Binary::of).collect();
    binaries.sort_by_key(|binary| (binary.kind != "test", binary.path.clone()));
    Ok(binaries)
}

impl Binary {
    /// What a line of cargo's JSON names, where that is a test binary.
    fn of(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        let text = |pointer: &str| message.pointer(pointer)?.as_str().map(str::to_owned);
        let is_test = message.pointer("/profile/test").and_then(Value::as_bool);
        if !is_test? {
            return None;
        }
        let dir = Path::new(&text("/manifest_path")?).parent()?.to_owned();
        let source = text("/target/src_path")?;
        let source = Path::new(&source)
            .strip_prefix(root())
            .map_or(source.clone(), |relative| relative.display().to_string());
        Some(Self {
            kind: text("/target/kind/0")?,
            name: text("/target/name")?,
            source,
            path: text("/executable")?.into(),
            dir,
        })
    }

    /// What runs it once more.
    fn again(&self) -> String {
        let dir = self.dir.file_name().unwrap_or_default().to_string_lossy();
        match self.kind.as_str() {
            kind @ ("test" | "bin") => format!("cargo test -p {dir} --{kind} {}", self.name),
            _ => format!("cargo test -p {dir} --lib"),
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
