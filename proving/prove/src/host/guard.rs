//! The parent of a subject: ends the subject's process group when `prove` is gone, however it went.
//!
//! `prove` keeps the write end of this process's standard input. When `prove` ends, even by
//! SIGKILL, the kernel closes it; the read below returns and the whole group is ended.
//! Invariant: signals go to this process's own group, which holds only what it started.
//! Not here: the orderly stop (`process`).

use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, kill_current_process_group};

/// Runs `program` in this process's group until it ends or standard input closes.
pub(crate) fn guard(program: &str, args: &[String]) -> ExitCode {
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
    let _ = io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink());
    // This process is in the group too: ending it by SIGKILL ends all at once.
    thread::sleep(Duration::from_millis(10));
    let _ = kill_current_process_group(Signal::KILL);
}
