//! A command run to its end.
//!
//! Invariant: the command has only the environment that the test gives it, and ends within the patience of tests or the
//! test fails and shows what it said.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use testing::found;

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
    run(&mut command, "")
}

/// Runs a command with `input` on its standard input.
pub(crate) fn run(command: &mut Command, input: &str) -> Ended {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = |name| dir.path().join(name);
    std::fs::write(at("in"), input).expect("a file");
    let create = |name| std::fs::File::create(at(name)).expect("a file");
    let child = command
        .stdin(Stdio::from(std::fs::File::open(at("in")).expect("a file")))
        .stdout(create("out"))
        .stderr(create("err"))
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?} does not start: {e}"));
    let mut running = Running { dir, child };
    let status = found(&format!("{command:?} ends"), || {
        running.child.try_wait().expect("the child can be asked")
    });
    Ended {
        code: status.code(),
        out: running.said("out"),
        err: running.said("err"),
    }
}

/// Ended when dropped, as it is where it does not end by itself.
struct Running {
    dir: TempDir,
    child: Child,
}

impl Running {
    fn said(&self, name: &str) -> String {
        let said = std::fs::read(self.dir.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&said).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            println!("{}\n{}", self.said("out"), self.said("err"));
        }
    }
}
