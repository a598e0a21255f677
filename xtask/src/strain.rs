//! What a machine may do to tests while they run: other work, one core, stops, a slow disk.
//!
//! A test that fails under any of it is decided by the machine, and is a fault of the suite.
//! Invariant: only processes that this one started are stopped or ended; whatever begins ends with [`Strained`].

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use crate::cargo::{metadata, target_dir};
use crate::command::run_quietly;

/// Busy loops beside the tests, whatever the number of cores.
const LOOPS: usize = 4;
/// How long a process is stopped, and the longest time between two stops.
const STOP: Duration = Duration::from_secs(1);
const BETWEEN_MS: u64 = 2000;

/// How long a sync of a file takes where disks are slow, as a library that the tests' processes load first.
const SLOW_SYNC: &str = "\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
static int slow(const char *name, int fd) {
  usleep(50000);
  return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}
int fsync(int fd) { return slow(\"fsync\", fd); }
int fdatasync(int fd) { return slow(\"fdatasync\", fd); }
";

/// A kind of strain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strain {
    /// Four busy loops.
    Loops,
    /// One core for everything.
    OneCore,
    /// A process of the tests, whichever, stands still for a second, again and again.
    Stops,
    /// Each sync of a file takes 50 ms longer.
    SlowSync,
}

/// Strain while this is kept.
#[derive(Debug, Default)]
pub(crate) struct Strained {
    loops: Vec<Child>,
    /// Loaded first by what is started.
    preloaded: Option<PathBuf>,
    stops: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

impl Strain {
    const ALL: [Self; 4] = [Self::Loops, Self::OneCore, Self::Stops, Self::SlowSync];

    /// As it is called on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Loops => "loops",
            Self::OneCore => "one-core",
            Self::Stops => "stops",
            Self::SlowSync => "slow-sync",
        }
    }

    /// The one of this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strain| strain.name() == name)
    }

    /// Puts what this process starts from now on under it.
    pub(crate) fn begin(self) -> Result<Strained, String> {
        let mut strained = Strained::default();
        match self {
            Self::Loops => {
                for _ in 0..LOOPS {
                    let child = Command::new("sh")
                        .args(["-c", "while :; do :; done"])
                        .spawn();
                    let child = child.map_err(|cause| format!("no busy loop: {cause}"))?;
                    strained.loops.push(child);
                }
            }
            Self::OneCore => {
                let this = std::process::id().to_string();
                run_quietly(Command::new("taskset").args(["-a", "-c", "-p", "0", &this]))?;
            }
            Self::Stops => {
                let is_over = Arc::new(AtomicBool::new(false));
                let stopping = Arc::clone(&is_over);
                let thread = thread::spawn(move || stop_again_and_again(&stopping));
                strained.stops = Some((is_over, thread));
            }
            Self::SlowSync => {
                strained.preloaded = Some(slow_sync()?);
            }
        }
        Ok(strained)
    }
}

impl Strained {
    /// What a command needs for it.
    pub(crate) fn prepare(&self, command: &mut Command) {
        if let Some(preloaded) = &self.preloaded {
            command.env("LD_PRELOAD", preloaded);
        }
    }
}

impl Drop for Strained {
    fn drop(&mut self) {
        for child in &mut self.loops {
            drop(child.kill());
            drop(child.wait());
        }
        if let Some((is_over, thread)) = self.stops.take() {
            is_over.store(true, Ordering::Relaxed);
            drop(thread.join());
        }
    }
}

fn stop_again_and_again(is_over: &AtomicBool) {
    // An order that does not matter: which process is hit is the machine's to choose.
    let mut chance = u64::from(std::process::id());
    let mut draw = |end: u64| {
        chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (chance >> 33) % end.max(1)
    };
    while !is_over.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(draw(BETWEEN_MS)));
        let below = descendants(std::process::id());
        let Some(pid) = below.get(draw(below.len() as u64) as usize) else {
            continue;
        };
        let signal =
            |name: &str| drop(Command::new("kill").args([name, &pid.to_string()]).output());
        signal("-STOP");
        sleep(STOP);
        signal("-CONT");
    }
}

/// The processes below this one, its children and theirs.
fn descendants(of: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![of];
    while let Some(pid) = open.pop() {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten();
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children
                .split_whitespace()
                .filter_map(|pid| pid.parse().ok());
            let children: Vec<u32> = children.collect();
            found.extend(&children);
            open.extend(children);
        }
    }
    found
}

/// Builds the library.
fn slow_sync() -> Result<PathBuf, String> {
    let dir = target_dir(&metadata()?)?.join("strain");
    let fault = |cause| format!("{}: {cause}", dir.display());
    fs::create_dir_all(&dir).map_err(fault)?;
    let (source, library) = (dir.join("slow_sync.c"), dir.join("slow_sync.so"));
    fs::write(&source, SLOW_SYNC).map_err(fault)?;
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library);
    run_quietly(cc.arg(&source).arg("-ldl"))?;
    Ok(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_of_its_own() {
        for strain in Strain::ALL {
            assert_eq!(Strain::of(strain.name()), Some(strain));
        }
        assert_eq!(Strain::of("loop"), None);
    }

    #[test]
    fn a_child_of_a_child_is_found_and_nothing_else() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 1000 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let mut said = std::io::BufReader::new(child.stdout.take().expect("is piped"));
        std::io::BufRead::read_line(&mut said, &mut line).expect("a line");
        let grandchild: u32 = line.trim().parse().expect("a number");
        assert_eq!(descendants(child.id()), [grandchild]);
        assert!(descendants(std::process::id()).contains(&grandchild));
        let ended = Command::new("kill").arg(grandchild.to_string()).status();
        assert!(ended.is_ok_and(|status| status.success()));
        drop(child.wait());
    }
}
