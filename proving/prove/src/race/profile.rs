//! Where a subject's CPU time goes: `perf` looks at its stacks under load, a flame graph shows them. Of an interpreter `perf` sees the
//! interpreter; the functions of Python are `py-spy`'s to see, where it is on `PATH`.
//!
//! Invariant: profiles are taken after everything is measured, so that looking costs no figure.
//! Not here: reading stacks (`fold`), drawing them (`flame`).

mod flame;
mod fold;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Instant;

use load::run::{Plan, start};

use crate::host::program;
use crate::host::usage::Process;

/// Looks a second; not a divisor of the timers of what is looked at.
const HERTZ: u32 = 997;
/// Bytes of stack that are kept with each look.
const STACK_BYTES: u32 = 8_192;
/// Fewer looks show chance, not the program.
const LEAST_SAMPLES: u64 = 20;

/// Looks a second of `py-spy`, which stops its process for each.
const PYTHON_HERTZ: u32 = 100;
const PY_SPY: &str = "py-spy";

/// Profiles `processes` while `plan` runs, into `svg`; the error is for a reader.
pub(super) fn profile(
    title: &str,
    plan: Plan,
    processes: &dyn Fn() -> Vec<Process>,
    home: &Path,
    svg: &Path,
) -> Result<(), String> {
    let data = home.join("perf.data");
    let seconds = plan.measure.as_secs_f64();
    let running = start(plan).map_err(|error| error.to_string())?;
    thread::sleep(running.begin.saturating_duration_since(Instant::now()));
    let all = processes();
    let python: Vec<&Process> = all.iter().filter(|process| is_python(process)).collect();
    let py_spy = program::on_path(PY_SPY).filter(|_| !python.is_empty());
    let stacks = match py_spy {
        Some(py_spy) => {
            let recorded = record_python(&py_spy, &python, seconds, home);
            running.finish().map_err(|error| error.to_string())?;
            recorded?
        }
        None => {
            let recorded = record(&all, seconds, &data);
            let finished = running.finish().map_err(|error| error.to_string());
            recorded?;
            finished?;
            of_perf(&data)?
        }
    };
    let samples: u64 = stacks.values().sum();
    if samples < LEAST_SAMPLES {
        return Err(format!("the subject was seen to run {samples} times only"));
    }
    fs::write(svg, flame::draw(title, &stacks))
        .map_err(|error| format!("{}: {error}", svg.display()))
}

/// Whether a process is Python's interpreter.
fn is_python(process: &Process) -> bool {
    let program = fs::read_link(format!("/proc/{}/exe", process.pid));
    let name = program
        .ok()
        .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    name.is_some_and(|name| name.starts_with("python"))
}

/// Each process has a `py-spy` of its own, all at once.
fn record_python(
    py_spy: &Path,
    processes: &[&Process],
    seconds: f64,
    home: &Path,
) -> Result<fold::Stacks, String> {
    let said = |error: std::io::Error| format!("{PY_SPY} cannot be run: {error}");
    let mut under_way = Vec::new();
    for process in processes {
        let out = home.join(format!("py-spy-{}.txt", process.pid));
        let child = Command::new(py_spy)
            .args(["record", "--format", "raw", "--gil", "--nonblocking"])
            .args(["--pid", &process.pid.to_string()])
            .args(["--rate", &PYTHON_HERTZ.to_string()])
            .args(["--duration", &format!("{:.0}", seconds.ceil())])
            .arg("--output")
            .arg(&out)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        under_way.push((child.map_err(said)?, out));
    }
    let (mut stacks, mut says) = (fold::Stacks::new(), None);
    for (child, out) in under_way {
        let ended = child.wait_with_output().map_err(said)?;
        match fs::read_to_string(&out) {
            Ok(text) if ended.status.success() => fold::add_raw(&text, &mut stacks),
            Ok(_) | Err(_) => {
                let text = String::from_utf8_lossy(&ended.stderr);
                let last = text.lines().rfind(|line| !line.trim().is_empty());
                says = Some(format!(
                    "{PY_SPY} failed: {}",
                    last.unwrap_or("without a word").trim()
                ));
            }
        }
    }
    // One of several that ended meanwhile takes nothing from what was seen of the others.
    match says {
        Some(says) if stacks.is_empty() => Err(says),
        Some(_) | None => Ok(stacks),
    }
}

/// What `perf` recorded.
fn of_perf(data: &Path) -> Result<fold::Stacks, String> {
    let output = perf(
        Command::new("perf")
            .arg("script")
            .args(["--no-inline", "-F", "comm,ip,sym", "-i"])
            .arg(data),
    )?;
    let stacks = fold::fold(&String::from_utf8_lossy(&output.stdout));
    // Stacks are large and of no use once they are drawn.
    let _ = fs::remove_file(data);
    Ok(stacks)
}

fn record(processes: &[Process], seconds: f64, data: &Path) -> Result<(), String> {
    let pids: Vec<String> = processes
        .iter()
        .map(|process| process.pid.to_string())
        .collect();
    let mut command = Command::new("perf");
    command
        .args([
            "record",
            "-q",
            "-e",
            "cpu-clock",
            "-F",
            &HERTZ.to_string(),
            "--call-graph",
        ])
        .arg(format!("dwarf,{STACK_BYTES}"))
        .args(["-p", &pids.join(","), "-o"])
        .arg(data)
        .args(["--", "sleep", &format!("{seconds}")]);
    perf(&mut command).map(drop)
}

fn perf(command: &mut Command) -> Result<Output, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| {
        format!("perf cannot be run ({error}); on Debian: apt-get install linux-perf")
    })?;
    if output.status.success() {
        return Ok(output);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    Err(format!(
        "perf failed: {}",
        last.unwrap_or("without a word").trim()
    ))
}
