//! Our rendering of chat templates beside Jinja2's, set up as `transformers` sets it up: a lane of its own, since a million
//! renderings take an hour.
//!
//! Invariant: the templates are those of the wheels named here; none of them is kept in the project.
//! Not here: what is made of a body before a template sees it (`vectors/tokens` of vLLM's own functions).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cargo::{cargo, metadata, root, target_dir};

/// Where the templates are from.
const WHEELS: [&str; 2] = ["trl==1.16.0", "transformers==5.19.0"];
const JINJA: &str = "jinja2==3.1.6";

/// Takes the templates out of the wheels in a folder.
const UNPACK: &str = "
import pathlib, sys, zipfile
wheels, out = map(pathlib.Path, sys.argv[1:])
out.mkdir(exist_ok=True)
for wheel in sorted(wheels.glob('*.whl')):
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            if name.endswith('.jinja'):
                (out / (wheel.name.split('-')[0] + '-' + name.replace('/', '-'))).write_bytes(files.read(name))
";

/// How long, and from where.
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
    let python = python(&dir)?;
    let templates = templates(&python, &dir)?;
    ran(&mut cargo(&[
        "build",
        "--release",
        "-p",
        "tokens",
        "--example",
        "renderings",
    ]))?;
    println!("{} cases, --seed {}", plan.cases, plan.seed);
    let binary = dir.with_file_name("release").join("examples/renderings");
    let mut ours = Command::new(binary);
    ours.arg(plan.seed.to_string()).arg(plan.cases.to_string());
    let ours = ours.arg(&templates).stdout(Stdio::piped()).spawn();
    let mut ours = ours.map_err(|cause| format!("the renderer does not start: {cause}"))?;
    let lines = ours.stdout.take().ok_or("the renderer has no output")?;
    let mut compare = Command::new(&python);
    compare.arg(root().join("crates/tokens/tests/renderings/compare.py"));
    let compared = ran(compare.arg(&templates).stdin(lines));
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

/// A Python with Jinja2, made once.
fn python(dir: &Path) -> Result<PathBuf, String> {
    let python = dir.join("venv/bin/python");
    if !python.exists() {
        ran(Command::new("python3")
            .args(["-m", "venv"])
            .arg(dir.join("venv")))?;
        ran(Command::new(&python).args(["-m", "pip", "install", "-q", JINJA]))?;
    }
    Ok(python)
}

/// The templates of the wheels, downloaded once, and our own.
fn templates(python: &Path, dir: &Path) -> Result<PathBuf, String> {
    let (wheels, templates) = (dir.join("wheels"), dir.join("templates"));
    if !templates.exists() {
        let mut pip = Command::new(python);
        pip.args([
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary=:all:",
            "-d",
        ]);
        ran(pip.arg(&wheels).args(WHEELS))?;
        let mut unpack = Command::new(python);
        ran(unpack.args(["-c", UNPACK]).arg(&wheels).arg(&templates))?;
    }
    for name in ["chatml.jinja", "headers.jinja"] {
        let from = root().join("vectors/tokens").join(name);
        let copied = std::fs::copy(from, templates.join(name));
        copied.map_err(|cause| format!("{name}: {cause}"))?;
    }
    Ok(templates)
}

fn ran(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(cause) => Err(format!("{name} does not start: {cause}")),
    }
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
