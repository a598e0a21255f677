//! Scripts of `openid/` that drive a headless Chromium.
//!
//! Invariant: a script that fails, hangs or prints no JSON fails the test, which then shows its output and says where a
//! picture of the page is.
//! Not here: what the scripts do, which each of them documents.

use std::path::Path;

use serde_json::Value;

use super::command::run;
use super::sdk::{installed, node};

/// Runs `openid/<script>.mjs` with this input; gives what it printed.
pub(crate) fn in_browser(script: &str, mut input: Value) -> Value {
    let home = tempfile::tempdir().expect("a temporary directory");
    let screenshot = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{script}.png"));
    input["chromium"] = text(&installed("TOLLGATE_E2E_CHROMIUM"));
    input["screenshot"] = text(&screenshot);
    let mut command = node(&format!("openid/{script}.mjs"));
    // The distribution's Chromium is a shell script, and browsers keep things where they are at home.
    command.env("PATH", "/usr/bin:/bin");
    command.env("HOME", home.path()).env("TMPDIR", home.path());
    let ended = run(&mut command, &input.to_string());
    let said = format!("{}\n{}", ended.out, ended.err);
    let picture = screenshot.display();
    assert_eq!(ended.code, Some(0), "{script}, see {picture}:\n{said}");
    serde_json::from_str(&ended.out)
        .unwrap_or_else(|e| panic!("{script} printed no JSON ({e}):\n{said}"))
}

fn text(path: &Path) -> Value {
    path.to_str().expect("UTF-8").into()
}
