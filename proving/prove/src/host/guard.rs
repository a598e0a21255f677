//! The parent of a subject: ends the subject's process group when `prove` is gone, however it went.
//!
//! `prove` keeps the write end of this process's standard input. When `prove` ends, even by
//! SIGKILL, the kernel closes it; the read below returns and every descendant is ended.
//! Invariant: signals go to this process's descendants and its own group: only what it started.
//! Not here: the orderly stop (`process`).

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;

use rustix::process::{
    Pid, Signal, getpid, kill_current_process_group, kill_process, set_child_subreaper,
};

use super::quota;
use super::usage::family;

/// Runs `program` in this process's group until it ends or standard input closes.
pub(crate) fn guard(program: &str, args: &[String], cgroup: Option<&Path>) -> ExitCode {
    if let Some(Err(error)) = cgroup.map(quota::join) {
        eprintln!("the cgroup could not be joined: {error}");
        return ExitCode::from(126);
    }
    // A process whose parent ends becomes ours, so that it is still known as the subject's.
    let _ = set_child_subreaper(Some(getpid()));
    let mut child = match Command::new(program)
        .args(args)
        .stdin(std::process::Stdio::null())
        .spawn()
    {
        Ok(child) => child,
        Err(error) => {
            eprintln!("{program}: {error}");
            return ExitCode::from(127);
        }
    };
    thread::spawn(end_group_when_orphaned);
    match child.wait() {
        Ok(status) => {
            eprintln!("{program} ended: {status}");
            let code = status
                .code()
                .or(status.signal().map(|signal| 128 + signal))
                .unwrap_or(1);
            ExitCode::from(u8::try_from(code).unwrap_or(1))
        }
        Err(_) => ExitCode::FAILURE,
    }
}

fn end_group_when_orphaned() {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    let own = getpid().as_raw_nonzero().get();
    for process in family(own).iter().filter(|process| process.pid != own) {
        if let Some(pid) = Pid::from_raw(process.pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    // This process is in the group too: it ends last, with whatever was started meanwhile.
    let _ = kill_current_process_group(Signal::KILL);
}
