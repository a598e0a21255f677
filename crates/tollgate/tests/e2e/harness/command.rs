//! A command run to its end.
//!
//! Invariant: the command has only the environment that the test gives it, and ends within a bound or the test fails.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Gate;

/// The exit code and output of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code; `None` when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the binary in `dir` with these arguments and this environment.
pub(crate) fn tollgate(dir: &Path, args: &[&str], environment: &[(&str, &str)]) -> Ended {
    let mut command = Command::new(Gate::binary());
    command.args(args).current_dir(dir).env_clear();
    command.envs(environment.iter().copied());
    run(&mut command, "", Duration::from_secs(20))
}

/// Runs a command with `input` on its standard input.
pub(super) fn run(command: &mut Command, input: &str, timeout: Duration) -> Ended {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = |name| dir.path().join(name);
    std::fs::write(at("in"), input).expect("a file");
    let create = |name| std::fs::File::create(at(name)).expect("a file");
    let read = |name| std::fs::read(at(name)).expect("a file");
    let text = |name| String::from_utf8_lossy(&read(name)).into_owned();
    let mut child = command
        .stdin(Stdio::from(std::fs::File::open(at("in")).expect("a file")))
        .stdout(create("out"))
        .stderr(create("err"))
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?} does not start: {e}"));
    let until = Instant::now() + timeout;
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child can be asked") {
            break status;
        }
        if Instant::now() > until {
            drop(child.kill());
            drop(child.wait());
            let (out, err) = (text("out"), text("err"));
            panic!("{command:?} did not end within {timeout:?}:\n{out}\n{err}");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    Ended {
        code: status.code(),
        out: text("out"),
        err: text("err"),
    }
}
