//! A campaign's report in a headless Chromium: phone and desk, light and dark, with the script and without.
//!
//! Not here: what a report says (unit tests of `report`).

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// As the binary names it.
pub(crate) use crate::document;
use crate::document::Document;
use crate::{PROVE, sample};

/// A path that `cargo xtask test` provides in the environment.
fn installed(name: &str) -> PathBuf {
    std::env::var_os(name).map_or_else(
        || panic!("{name} is not set: run these tests with `cargo xtask test`, which installs it"),
        PathBuf::from,
    )
}

/// A run's directory with nothing in it but its document.
fn run_of(dir: &Path, name: &str, document: &Document) -> PathBuf {
    let run = dir.join(name);
    fs::create_dir(&run).expect("a directory");
    let json = serde_json::to_string(document).expect("JSON");
    fs::write(run.join("report.json"), json).expect("a file");
    run
}

/// `prove report`; what it printed.
fn report(arguments: &[&Path]) -> String {
    let output = Command::new(PROVE)
        .arg("report")
        .args(arguments)
        .output()
        .expect("prove runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What the browser saw of a page in each size and scheme.
fn seen(page: &Path) -> Vec<Value> {
    let home = tempfile::tempdir().expect("a directory");
    let name = page
        .file_stem()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    // For people to look at, who say where: nothing is asserted of them, and they are most of the work.
    let pictures = std::env::var_os("REPORT_PICTURES");
    let pictures = pictures.map(|dir| Path::new(&dir).join(name));
    if let Some(dir) = &pictures {
        fs::create_dir_all(dir).expect("a directory");
    }
    let input =
        json!({"chromium": installed("TOLLGATE_E2E_CHROMIUM"), "page": page, "pictures": pictures});
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/report/look.mjs");
    let modules = "TOLLGATE_E2E_NODE_MODULES";
    let mut node = Command::new(installed("TOLLGATE_E2E_NODE"));
    node.arg(script)
        .env_clear()
        .env(modules, installed(modules));
    // The distribution's Chromium is a shell script, and browsers keep things where they are at home.
    node.env("PATH", "/usr/bin:/bin")
        .env("HOME", home.path())
        .env("TMPDIR", home.path());
    let mut node = node
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("node");
    let mut stdin = node.stdin.take().expect("it is piped");
    stdin
        .write_all(input.to_string().as_bytes())
        .expect("it reads");
    drop(stdin);
    let ended = node.wait_with_output().expect("an end");
    let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{errors}");
    serde_json::from_slice(&ended.stdout).expect("JSON")
}

#[test]
fn a_report_is_whole_on_a_phone_and_on_a_desk_light_and_dark() {
    let dir = tempfile::tempdir().expect("a directory");
    let full = run_of(dir.path(), "full", &sample::full());
    let empty = run_of(dir.path(), "empty", &sample::empty());
    assert!(report(&[&full]).starts_with("PASS"));
    assert!(report(&[&empty]).starts_with("FAIL"));
    let both = dir.path().join("both.html");
    report(&[&full, &empty, Path::new("--out"), &both]);
    let named = |run: &Path, name: &str| {
        let page = dir.path().join(name);
        let made = ["report.html", "report.simulated-engine.html"].map(|name| run.join(name));
        let made = made.iter().find(|made| made.is_file());
        fs::copy(made.expect("a page"), &page).expect("a copy");
        page
    };
    for (page, charts) in [
        (named(&full, "full.html"), 9),
        (named(&empty, "empty.html"), 0),
        (both, 3),
    ] {
        let looks = seen(&page);
        assert_eq!(
            looks.len(),
            8,
            "two widths, two schemes, with and without script"
        );
        for look in looks {
            let told = format!("{}: {look:#}", page.display());
            assert_eq!(look["console"], json!([]), "{told}");
            assert_eq!(look["requests"], json!([]), "{told}");
            assert_eq!(look["violations"], json!([]), "{told}");
            assert_eq!(look["scrolls"], false, "{told}");
            assert_eq!(look["words"], json!([]), "{told}");
            if look["width"] == 1440 {
                assert_eq!(look["cut"], json!([]), "tables that are cut: {told}");
            }
            assert_eq!(look["charts"], charts, "{told}");
            assert_eq!(look["text"], look["text_without_script"], "{told}");
            let values = look["values"].as_str().expect("text");
            assert_eq!(
                !values.is_empty(),
                charts > 0 && look["script"] == true,
                "{told}"
            );
        }
    }
}
