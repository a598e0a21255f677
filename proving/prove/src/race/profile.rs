//! Where a subject's CPU time goes: `perf` looks at its stacks under load, a flame graph shows them.
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

use crate::host::usage::Process;

/// Looks a second; not a divisor of the timers of what is looked at.
const HERTZ: u32 = 997;
/// Bytes of stack that are kept with each look.
const STACK_BYTES: u32 = 8_192;
/// Fewer looks show chance, not the program.
const LEAST_SAMPLES: u64 = 20;

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
    let recorded = record(&processes(), seconds, &data);
    let finished = running.finish().map_err(|error| error.to_string());
    recorded?;
    finished?;
    let output = perf(
        Command::new("perf")
            .arg("script")
            .args(["--no-inline", "-F", "comm,ip,sym", "-i"])
            .arg(&data),
    )?;
    let stacks = fold::fold(&String::from_utf8_lossy(&output.stdout));
    // Stacks are large and of no use once they are drawn.
    let _ = fs::remove_file(&data);
    let samples: u64 = stacks.values().sum();
    if samples < LEAST_SAMPLES {
        return Err(format!("perf saw the subject run {samples} times only"));
    }
    fs::write(svg, flame::draw(title, &stacks))
        .map_err(|error| format!("{}: {error}", svg.display()))
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
