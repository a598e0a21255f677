//! A process group that we started and that we end.
//!
//! Invariant: a `Group` that is dropped has no process left: TERM first, KILL after a grace, then
//! whatever escaped from the group, known by pid and start time. On SIGINT, SIGTERM and SIGHUP
//! every group is ended before we are; on SIGKILL each group's `guard` does it.
//! Not here: which program (`subject`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::program;
use super::usage::{Process, family};

/// This very program, even when its file has been replaced since it started.
pub(crate) const OWN: &str = "/proc/self/exe";
const GATE: &str = "tollgate";
/// Time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(10);

static STARTED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Has this very program do something and waits for it: why it did not.
pub(crate) fn run_own(words: impl FnOnce(&mut Command)) -> Result<(), String> {
    let mut command = Command::new(OWN);
    words(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let done = command.stderr(Stdio::piped()).output();
    let done = done.map_err(|error| error.to_string())?;
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
    }
}

/// The gate's program: the one that is named, or `tollgate` beside this one, or on `PATH`.
pub(crate) fn gate(named: Option<&Path>) -> Result<PathBuf, String> {
    let found = || program::beside(GATE).or_else(|| program::on_path(GATE));
    let path = named.map(Path::to_owned).or_else(found).ok_or_else(|| {
        format!("not found: {GATE}: neither beside this program nor on PATH; build the gate, or name it with --gate")
    })?;
    path.canonicalize().map_err(|error| {
        let path = path.display();
        format!("{path}: {error}; build the gate, or name it with --gate")
    })
}

/// A program under a guard, in a process group of its own.
pub(crate) struct Group {
    guard: Child,
    /// Kept open: closing it tells the guard to end the group.
    _leash: Option<ChildStdin>,
}

/// What is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) program: &'a Path,
    pub(crate) args: &'a [String],
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) dir: &'a Path,
    /// Where its output goes.
    pub(crate) log: &'a Path,
    /// The cgroup that it runs in, when not ours.
    pub(crate) cgroup: Option<&'a Path>,
}

impl<'a> Start<'a> {
    /// This very program, with these words.
    pub(crate) fn own(args: &'a [String], dir: &'a Path, log: &'a Path) -> Self {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        Self {
            program: Path::new(OWN),
            args,
            env: &NONE,
            dir,
            log,
            cgroup: None,
        }
    }
}

impl Group {
    /// Starts a program under a guard.
    pub(crate) fn start(start: Start<'_>) -> io::Result<Self> {
        let out = File::create(start.log)?;
        let mut command = Command::new(OWN);
        command.arg("guard");
        if let Some(dir) = start.cgroup {
            command.arg("--cgroup").arg(dir);
        }
        let mut guard = command
            .arg(start.program)
            .arg("--")
            .args(start.args)
            .envs(start.env)
            .current_dir(start.dir)
            .stdin(Stdio::piped())
            .stdout(out.try_clone()?)
            .stderr(out)
            .process_group(0)
            .spawn()?;
        started().insert(guard.id().cast_signed());
        let leash = guard.stdin.take();
        Ok(Self {
            guard,
            _leash: leash,
        })
    }

    /// The guard's pid, which is the group's id.
    pub(crate) fn id(&self) -> i32 {
        self.guard.id().cast_signed()
    }

    /// All processes of the program, without the guard.
    pub(crate) fn processes(&self) -> Vec<Process> {
        family(self.id())
            .into_iter()
            .filter(|process| process.pid != self.id())
            .collect()
    }

    /// The exit status, when the program has ended.
    pub(crate) fn ended(&mut self) -> Option<String> {
        match self.guard.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Sends a signal to the program, and not to its guard.
    pub(crate) fn tell(&self, with: Signal) {
        self.processes()
            .iter()
            .for_each(|process| signal(process.pid, with));
    }

    /// Stops the program where it is, so that it takes nothing from another that is measured.
    pub(crate) fn pause(&self) {
        self.tell(Signal::STOP);
    }

    pub(crate) fn resume(&self) {
        self.tell(Signal::CONT);
    }

    /// Ends every process; those that outlived TERM and KILL of their group are returned.
    pub(crate) fn stop(&mut self) -> Vec<Process> {
        let known = self.processes();
        for process in &known {
            signal(process.pid, Signal::TERM);
            // A program that is paused ends when it goes on.
            signal(process.pid, Signal::CONT);
        }
        let patience = Instant::now() + GRACE;
        // The guard ends when it has reaped the program: killed before that, it would leave a zombie.
        while (known.iter().any(Process::is_alive) || self.ended().is_none())
            && Instant::now() < patience
        {
            thread::sleep(POLL);
        }
        if let Some(group) = Pid::from_raw(self.id()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.guard.wait();
        started().remove(&self.id());
        thread::sleep(POLL);
        let leaked: Vec<_> = known.into_iter().filter(Process::is_alive).collect();
        for process in &leaked {
            signal(process.pid, Signal::KILL);
        }
        leaked
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if started().contains(&self.id()) {
            self.stop();
        }
    }
}

/// Ends every group and then this process when a signal asks us to end.
pub(crate) fn end_all_on_signal() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = crate::runtime::make()?;
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            runtime.block_on(async {
                let listen = |kind| signal(kind).expect("a signal that may be caught");
                let (mut int, mut term, mut hup) = (
                    listen(SignalKind::interrupt()),
                    listen(SignalKind::terminate()),
                    listen(SignalKind::hangup()),
                );
                tokio::select! { _ = int.recv() => {}, _ = term.recv() => {}, _ = hup.recv() => {} }
            });
            for group in started().iter().filter_map(|&id| Pid::from_raw(id)) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            eprintln!("interrupted: everything that was started is ended, nothing was written");
            std::process::exit(130);
        })?;
    Ok(())
}

fn started() -> std::sync::MutexGuard<'static, BTreeSet<i32>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}
