//! A process: how it is started, and how it ends.
//!
//! Invariant: what was started is waited for, and none is waited for in a way that holds up others; what stays in its group ends with it.
//! Not here: what it says and is told (`session`), how many there may be (`sessions`).

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use config::Program;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep};

use super::share::Held;

/// How long a process may take to end by itself once its input has ended.
pub(super) const END_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The same of one that was killed and is still there.
const LOOK_RARELY: Duration = Duration::from_secs(1);
/// After so long people are told of one that was killed and is still there.
const DEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long one that was killed may take to be gone, where the gate ends.
const GONE_WITHIN: Duration = Duration::from_millis(500);
/// Variables that every program has.
const INHERITED: [&str; 7] = [
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "LOGNAME",
];

thread_local! {
    /// Those that were started and not waited for yet; all are of one thread.
    static RUNNING: RefCell<BTreeSet<u32>> = const { RefCell::new(BTreeSet::new()) };
}

/// Sees all end whose input ends now. One that nobody has ended by then is killed, with its group.
pub(super) async fn all_end() {
    let are_running = || RUNNING.with_borrow(|running| !running.is_empty());
    let began = Instant::now();
    while are_running() && began.elapsed() < END_WITHIN + GONE_WITHIN {
        sleep(LOOK_EVERY).await;
    }
    for pid in RUNNING.take() {
        if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
            let _gone = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// A process that runs.
pub(super) struct Process {
    child: Child,
    /// It counts until it was waited for.
    place: Option<Held>,
}

/// The ends of its pipes that are the gate's.
pub(super) struct Pipes {
    pub(super) input: pipe::Sender,
    pub(super) output: pipe::Receiver,
    pub(super) errors: pipe::Receiver,
}

/// How a process ended.
pub(super) struct Ended {
    pub(super) status: Option<ExitStatus>,
    /// Nobody killed it.
    pub(super) is_by_itself: bool,
}

impl Process {
    /// Starts it.
    pub(super) fn start(program: &Program, place: Option<Held>) -> std::io::Result<(Self, Pipes)> {
        let mut command = Command::new(&program.command);
        command
            .args(&program.args)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A signal that ends the gate is not for it: it ends with its input.
            .process_group(0);
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        for (name, value) in &program.environment {
            command.env(name, String::from_utf8_lossy(value.expose()).as_ref());
        }
        if let Some(directory) = &program.directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn()?;
        RUNNING.with_borrow_mut(|running| running.insert(child.id()));
        let pipes = pipes(&mut child);
        let process = Self { child, place };
        match pipes {
            Ok(pipes) => Ok((process, pipes)),
            Err(error) => {
                tokio::task::spawn_local(process.end(String::new()));
                Err(error)
            }
        }
    }

    /// Sees it end, and what it started. Not awaited as tokio has it: with that every worker would look for ended processes at each turn.
    pub(super) async fn end(self, server: String) -> Ended {
        let Self { mut child, place } = self;
        // It is looked at and left as it is, so that its number is nobody else's until its group is ended.
        let pid = Pid::from_raw(child.id().cast_signed());
        let began = Instant::now();
        while !pid.is_none_or(has_ended) && began.elapsed() < END_WITHIN {
            sleep(LOOK_EVERY).await;
        }
        let is_by_itself = pid.is_none_or(has_ended);
        // What it started ends with it, also where it ended by itself; and it may have left its group.
        if let Some(pid) = pid {
            let _gone = kill_process_group(pid, Signal::KILL);
            let _gone = kill_process(pid, Signal::KILL);
        }
        // One that waits for a disk does not end before that does, and nobody else waits for it.
        let (mut every, mut is_told) = (LOOK_EVERY, false);
        let status = loop {
            match child.try_wait() {
                Ok(None) => {}
                status => break status.ok().flatten(),
            }
            if !is_told && began.elapsed() > END_WITHIN + DEAD_WITHIN {
                is_told = true;
                let pid = child.id();
                tracing::warn!(
                    server,
                    pid,
                    "the process of a server of tools was killed and is still there: it counts for those that may be"
                );
            }
            sleep(every).await;
            every = (every * 2).min(LOOK_RARELY);
        };
        RUNNING.with_borrow_mut(|running| running.remove(&child.id()));
        drop(place);
        Ended {
            status,
            is_by_itself,
        }
    }
}

fn pipes(child: &mut Child) -> std::io::Result<Pipes> {
    let missing = || std::io::Error::other("a pipe is missing");
    let input = child.stdin.take().map(OwnedFd::from).ok_or_else(missing)?;
    let output = child.stdout.take().map(OwnedFd::from).ok_or_else(missing)?;
    let errors = child.stderr.take().map(OwnedFd::from).ok_or_else(missing)?;
    Ok(Pipes {
        input: pipe::Sender::from_owned_fd(input)?,
        output: pipe::Receiver::from_owned_fd(output)?,
        errors: pipe::Receiver::from_owned_fd(errors)?,
    })
}

/// Whether a process of ours has ended; it stays to be waited for.
fn has_ended(pid: Pid) -> bool {
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(pid), how), Ok(None))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, BufReader};

    use super::*;

    /// Into the group of a child of its own, which ends with it.
    const LEAVES: &str = "import os
r, w = os.pipe()
child = os.fork()
if child == 0:
    os.close(w); os.setpgid(0, 0); os.read(r, 1); os._exit(0)
try: os.setpgid(child, child)
except OSError: pass
os.setpgid(0, child)
print('left', flush=True)
os.read(os.pipe()[0], 1)
";

    #[test]
    fn a_process_that_left_its_group_ends_all_the_same() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let local = tokio::task::LocalSet::new();
        runtime.block_on(local.run_until(async {
            let program = Program {
                command: "python3".into(),
                args: vec!["-c".into(), LEAVES.into()],
                environment: Vec::new(),
                directory: None,
            };
            let (process, pipes) = Process::start(&program, None).expect("a process");
            let mut line = String::new();
            let mut output = BufReader::new(pipes.output);
            output.read_line(&mut line).await.expect("a line");
            assert_eq!(line, "left\n");
            let ended = process.end("left".to_owned()).await;
            assert!(!ended.is_by_itself);
            let status = ended.status.expect("it was waited for").to_string();
            assert!(status.starts_with("signal: 9"), "{status}");
        }));
    }
}
