//! The binary run to its end.
//!
//! Invariant: it sees no environment but what the test gives, and ends within a bound.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Gate;

const PATIENCE: Duration = Duration::from_secs(20);

/// How a run of the binary ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code; `None` when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the binary in `dir` with these arguments and this environment.
pub(crate) fn tollgate(dir: &Path, args: &[&str], environment: &[(&str, &str)]) -> Ended {
    let said = tempfile::tempdir().expect("a temporary directory");
    let (out, err) = (said.path().join("out"), said.path().join("err"));
    let create = |path| std::fs::File::create(path).expect("a file");
    let mut child = Command::new(Gate::binary())
        .args(args)
        .current_dir(dir)
        .env_clear()
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(create(&out))
        .stderr(create(&err))
        .spawn()
        .expect("the binary starts");
    let until = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child can be asked") {
            break status;
        }
        if Instant::now() > until {
            drop(child.kill());
            drop(child.wait());
            panic!("{args:?} did not end within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let read = |path| std::fs::read_to_string(path).expect("what it said is text");
    Ended {
        code: status.code(),
        out: read(&out),
        err: read(&err),
    }
}
