//! Test binaries: built by one call of cargo, which lints what it builds, and run as many at once as there are cores.
//!
//! `cargo clippy` would read every crate once more, and `cargo test` would run one binary after another, though most
//! wait: for time, for processes, for a disk.
//! Invariant: lines appear as they are printed, but for what a binary says of its failures: that stands together. One
//! that does not compile keeps no other from being run.
//! Not here: what their results come to (`lane`).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::Value;

use crate::cargo::{PROFILE, cargo, root};
use crate::tally::{Ran, failed, flush};

/// How tests are called that measure time. They are ignored but in a lane of their own.
pub(crate) const TIMING: &str = "timing_";

/// What libtest prints before it says what failed, and why.
const FAILURES: &str = "failures:";

/// Names what compiles crates of the workspace (`compiler`).
const COMPILER: &str = "RUSTC_WORKSPACE_WRAPPER";
/// Kinds of targets whose tests are run: not examples, and no benchmark.
const TESTED: [&str; 3] = ["lib", "bin", "test"];

/// What a build came to.
#[derive(Debug, Default)]
pub(crate) struct Built {
    /// First those of a package's `tests`, which wait longest.
    pub(crate) tests: Vec<Binary>,
    /// Programs, by name.
    programs: BTreeMap<String, PathBuf>,
    /// What is wrong, where anything is.
    pub(crate) fault: Option<String>,
}

impl Built {
    /// The gate, where it could be built.
    pub(crate) fn gate(&self) -> Option<PathBuf> {
        self.programs.get("tollgate").cloned()
    }
}

/// One that cargo has built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binary {
    /// `test`, `lib` or `bin`.
    kind: String,
    /// What the kind's target is called.
    pub(crate) name: String,
    /// Where its source begins.
    source: String,
    path: PathBuf,
    /// Its package's, in which it runs, as under cargo.
    dir: PathBuf,
}

/// As many as there are cores.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs so many binaries at once, each prepared by `each`.
pub(crate) fn run(
    binaries: Vec<Binary>,
    at_once: usize,
    each: impl Fn(&mut Command) + Sync,
) -> Ran {
    let ran = Ran {
        success: true,
        ..Ran::default()
    };
    let ran = Mutex::new(ran);
    let left = Mutex::new(binaries.into_iter());
    thread::scope(|scope| {
        for _ in 0..at_once.max(1) {
            scope.spawn(|| {
                loop {
                    let next = lock(&left).next();
                    let Some(binary) = next else { return };
                    if let Err(says) = one(&binary, &each, &ran) {
                        lock(&ran).success = false;
                        eprintln!("error: {says}");
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
    let mut ran = lock(ran);
    let failures = failures.unwrap_or_default();
    ran.failed.extend(failed(&failures));
    print!("{failures}");
    println!("     ended: {}", binary.source);
    flush();
    if status.success() {
        return Ok(());
    }
    Err(format!("{}: {status}", binary.source))
}

/// A cargo that builds with the profile of the lanes, so that every lane finds what another has built.
pub(crate) fn of_lanes(words: &[&str]) -> Command {
    let mut command = cargo(words);
    command.args(["--profile", PROFILE]);
    if let Ok(this) = std::env::current_exe() {
        command.env(COMPILER, this);
    }
    command
}

/// Builds what this `cargo test` would run. A warning is a fault.
pub(crate) fn build(mut build: Command) -> Built {
    build
        .args(["--no-run", "--no-fail-fast", "--message-format=json"])
        .stdout(Stdio::piped());
    let mut built = Built::default();
    let mut child = match build.spawn() {
        Ok(child) => child,
        Err(cause) => {
            built.fault = Some(format!("{build:?} did not start: {cause}"));
            return built;
        }
    };
    let mut warnings = 0;
    let lines = child.stdout.take().map(BufReader::new);
    for line in lines.into_iter().flat_map(BufRead::lines) {
        let Ok(message) = line.as_deref().unwrap_or_default().parse::<Value>() else {
            continue;
        };
        if let Some(binary) = Binary::of(&message) {
            built.tests.push(binary);
        } else if let Some((name, path)) = program(&message) {
            built.programs.insert(name, path);
        } else if let Some(rendered) = diagnostic(&message) {
            warnings += 1;
            eprint!("{rendered}");
        }
    }
    built
        .tests
        .sort_by_key(|binary| (binary.kind != "test", binary.path.clone()));
    built.fault = match child.wait() {
        Ok(status) if status.success() && warnings == 0 => None,
        Ok(status) if status.success() => Some(format!("{warnings} warnings")),
        Ok(status) => Some(format!("{build:?}: {status}")),
        Err(cause) => Some(format!("{build:?}: {cause}")),
    };
    built
}

/// A program that a message of cargo names, and where it is.
fn program(message: &Value) -> Option<(String, PathBuf)> {
    let is_test = message.pointer("/profile/test")?.as_bool()?;
    let kind = message.pointer("/target/kind/0")?.as_str()?;
    let name = message.pointer("/target/name")?.as_str()?;
    let path = message.pointer("/executable")?.as_str()?;
    (kind == "bin" && !is_test).then(|| (name.to_owned(), path.into()))
}

/// What the compiler complains of in a message of cargo.
fn diagnostic(message: &Value) -> Option<&str> {
    let level = message.pointer("/message/level")?.as_str()?;
    let is_fault = level.starts_with("warning") || level.starts_with("error");
    let rendered = message.pointer("/message/rendered")?.as_str()?;
    is_fault.then_some(rendered)
}

impl Binary {
    /// What a message of cargo names, where that is a test binary.
    fn of(message: &Value) -> Option<Self> {
        let text = |pointer: &str| message.pointer(pointer)?.as_str().map(str::to_owned);
        let is_test = message.pointer("/profile/test").and_then(Value::as_bool);
        if !is_test? {
            return None;
        }
        let kind = text("/target/kind/0")?;
        if !TESTED.contains(&kind.as_str()) {
            return None;
        }
        let dir = Path::new(&text("/manifest_path")?).parent()?.to_owned();
        let source = text("/target/src_path")?;
        let source = Path::new(&source)
            .strip_prefix(root())
            .map_or(source.clone(), |relative| relative.display().to_string());
        Some(Self {
            kind,
            name: text("/target/name")?,
            source,
            path: text("/executable")?.into(),
            dir,
        })
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
