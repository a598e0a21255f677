//! The OpenAI SDKs: scripts in `sdk/`, run by the interpreters that `cargo xtask setup` installed.
//!
//! Invariant: a script that fails, hangs or prints no JSON fails the test, with all that it said.
//! Not here: what the scripts do; each says so itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::eventually;

const PATIENCE: Duration = Duration::from_secs(90);

/// Whose SDK.
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
        let (interpreter, ending) = match self {
            Self::Python => ("TOLLGATE_E2E_PYTHON", "py"),
            Self::Node => ("TOLLGATE_E2E_NODE", "mjs"),
        };
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/e2e/sdk")
            .join(format!("{script}.{ending}"));
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = |name| dir.path().join(name);
        std::fs::write(at("in"), input.to_string()).expect("a file");
        let create = |name| std::fs::File::create(at(name)).expect("a file");
        let mut child = Command::new(installed(interpreter))
            .arg(&file)
            .env_clear()
            .env(
                "TOLLGATE_E2E_NODE_MODULES",
                installed("TOLLGATE_E2E_NODE_MODULES"),
            )
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::from(std::fs::File::open(at("in")).expect("a file")))
            .stdout(create("out"))
            .stderr(create("err"))
            .spawn()
            .unwrap_or_else(|e| panic!("{interpreter} does not start: {e}"));
        let mut ended = None;
        let mut patience = PATIENCE;
        while ended.is_none() && !patience.is_zero() {
            ended = child.try_wait().expect("the child can be asked");
            let step = Duration::from_millis(20).min(patience);
            std::thread::sleep(step);
            patience -= step;
        }
        if ended.is_none() {
            drop(child.kill());
            eventually("the script is gone", Duration::from_secs(5), || {
                child.try_wait().is_ok_and(|s| s.is_some())
            });
        }
        let read = |name| std::fs::read_to_string(at(name)).unwrap_or_default();
        let (out, err) = (read("out"), read("err"));
        let good = ended.is_some_and(|status| status.success());
        assert!(
            good,
            "{script} ({self:?}) ended with {ended:?}:\n{out}\n{err}"
        );
        serde_json::from_str(&out)
            .unwrap_or_else(|e| panic!("{script} ({self:?}) printed no JSON ({e}):\n{out}\n{err}"))
    }
}

/// A path that `cargo xtask test` gives.
fn installed(name: &str) -> PathBuf {
    std::env::var_os(name).map_or_else(
        || panic!("{name} is not set: run these tests with `cargo xtask test`, which installs the SDKs"),
        PathBuf::from,
    )
}
