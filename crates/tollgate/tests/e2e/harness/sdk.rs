//! The OpenAI SDKs: scripts in `sdk/`, run by the interpreters that `cargo xtask setup` installed.
//!
//! Invariant: a script that fails, hangs or prints no JSON fails the test, which then shows its output.
//! Not here: what the scripts do, which each of them documents.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::command::{Ended, run};

/// The language of an SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sdk {
    Python,
    Node,
}

impl Sdk {
    pub(crate) const BOTH: [Self; 2] = [Self::Python, Self::Node];

    /// Each SDK, without streaming and with.
    pub(crate) fn ways() -> impl Iterator<Item = (Self, bool)> {
        Self::BOTH
            .into_iter()
            .flat_map(|sdk| [(sdk, false), (sdk, true)])
    }

    /// Runs `sdk/<script>` of this language with `input` on standard input; gives what it printed.
    pub(crate) fn run(self, script: &str, input: &Value) -> Value {
        let Ended { code, out, err } = self.end(script, input);
        let what = format!("{script} ({self:?})");
        assert_eq!(code, Some(0), "{what} failed:\n{out}\n{err}");
        serde_json::from_str(&out)
            .unwrap_or_else(|e| panic!("{what} printed no JSON ({e}):\n{out}\n{err}"))
    }

    /// Runs a script to its end and returns how it ended.
    pub(crate) fn end(self, script: &str, input: &Value) -> Ended {
        let (interpreter, ending) = match self {
            Self::Python => ("TOLLGATE_E2E_PYTHON", "py"),
            Self::Node => ("TOLLGATE_E2E_NODE", "mjs"),
        };
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/e2e/sdk")
            .join(format!("{script}.{ending}"));
        let modules = "TOLLGATE_E2E_NODE_MODULES";
        let mut command = Command::new(installed(interpreter));
        command.arg(&file).env_clear();
        command.env(modules, installed(modules));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        run(&mut command, &input.to_string())
    }
}

/// A Node that runs a script of these tests, where it finds the packages that are installed for them.
pub(super) fn node(script: &str) -> Command {
    let modules = "TOLLGATE_E2E_NODE_MODULES";
    let mut command = Command::new(installed("TOLLGATE_E2E_NODE"));
    command.arg(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/e2e")
            .join(script),
    );
    command.env_clear().env(modules, installed(modules));
    command
}

/// A path that `cargo xtask test` provides in the environment.
pub(super) fn installed(name: &str) -> PathBuf {
    std::env::var_os(name).map_or_else(
        || panic!("{name} is not set: run these tests with `cargo xtask test`, which installs it"),
        PathBuf::from,
    )
}
