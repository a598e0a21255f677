//! `cargo xtask book blocks`: the commands of every page, run as they are printed, in a directory of the page's own.
//!
//! Each page has a network of its own where the system permits, so that its ports are free and nothing outside is asked; where
//! it does not, the ports that pages name have to be free.
//! Invariant: a block that is not run says why; what a page started ends with it; no page takes longer than its blocks may.
//! Not here: YAML and TOML (tests of `config` and `prove` read them), what the words of a block mean (`words`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use super::at;
use super::script::{Step, script};
use crate::cargo::{build_release, metadata, release_dir, root, target_dir};
use crate::lane::Lane;
use crate::markdown::Page;
use crate::markdown::words::{REASONS, Words, is_shell};
use crate::setup;
use crate::tidy::tree::Tree;

/// What pages call. The demo stands beside the gate, which finds it there.
const PROGRAMS: [&str; 2] = ["tollgate", "prove"];

/// Languages whose blocks tests read: those of `config`, of `prove`, and tidy.
const READ: [&str; 3] = ["yaml", "toml", "json"];

/// Stands for cargo: what pages build, the lane has built.
const CARGO: &str = r#"#!/bin/sh
case "$1" in
build) exit 0 ;;
run)
  while [ "$1" != "--" ]; do shift; done
  shift
  exec tollgate "$@"
  ;;
esac
echo "cargo $1 is not run here" >&2
exit 1
"#;

/// What of a clone pages read. It is copied: what they write stays with the page.
const CLONE: [&str; 6] = [
    "Cargo.lock",
    "Cargo.toml",
    "deploy",
    "examples",
    "proving",
    "scenarios",
];

/// What runs them once more.
const AGAIN: &str = "cargo xtask book blocks";

/// How often is looked how far a page is.
const EVERY: Duration = Duration::from_millis(20);

/// Runs the blocks of all pages, or of those whose path contains `filter`, with the programs in `binaries` or a release build.
pub(crate) fn lane(binaries: Option<&Path>, filter: Option<&str>) -> ExitCode {
    let mut lane = Lane::new();
    let binaries = match binaries {
        Some(dir) => Some(dir.to_owned()),
        None => release_build(&mut lane),
    };
    let place = binaries.and_then(|dir| lane.step("programs", AGAIN, || Place::prepare(&dir)));
    let Some(place) = place else {
        lane.cannot_run("blocks", "there are no programs to run");
        return lane.finish();
    };
    let tree = match Tree::read(&root()) {
        Ok(tree) => tree,
        Err(says) => {
            lane.cannot_run("blocks", &says);
            return lane.finish();
        }
    };
    let mut count = Count::default();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        if filter.is_some_and(|filter| !file.path.contains(filter)) {
            continue;
        }
        match steps(&file.text, &mut count) {
            Ok(steps) if steps.iter().any(|step| is_shell(&step.block)) => {
                lane.step(&file.path, &format!("{AGAIN} DIR {}", file.path), || {
                    place.run(&file.path, &steps)
                });
            }
            Ok(_) => {}
            Err(says) => lane.cannot_run(&file.path, &says),
        }
    }
    if count.run == 0 {
        let says = filter.map_or_else(String::new, |filter| {
            format!(" whose path contains {filter}")
        });
        lane.cannot_run(
            "blocks",
            &format!("no block of commands is on a page{says}"),
        );
    }
    println!("\n{count}");
    lane.finish()
}

fn release_build(lane: &mut Lane) -> Option<PathBuf> {
    let built = lane.command(
        "release build",
        build_release(&["tollgate", "demo", "prove"]),
    );
    built.then(release_dir)?.ok()
}

/// What there is of blocks.
#[derive(Default)]
struct Count {
    run: usize,
    /// By language: those that tests read.
    read: BTreeMap<String, usize>,
    unrun: BTreeMap<String, usize>,
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unrun: usize = self.unrun.values().sum();
        write!(f, "blocks of commands: {} run, {unrun} not run", self.run)?;
        for (reason, count) in &self.unrun {
            let says = REASONS.iter().find(|(known, _)| known == reason);
            write!(
                f,
                "\n  {count} {reason}: {}",
                says.map_or("", |(_, says)| says)
            )?;
        }
        let read = self
            .read
            .iter()
            .map(|(language, count)| format!("{count} {language}"));
        let read: Vec<String> = read.collect();
        write!(f, "\nblocks that tests read: {}", read.join(", "))
    }
}

/// What is run of a page, in its order.
fn steps<'a>(text: &'a str, count: &mut Count) -> Result<Vec<Step<'a>>, String> {
    let mut steps = Vec::new();
    for block in Page::of(text).blocks() {
        let language = block.info.split_whitespace().next().unwrap_or_default();
        if READ.contains(&language) {
            *count.read.entry(language.to_owned()).or_default() += 1;
        }
        let words = Words::of(&block).map_err(|says| format!("line {}: {says}", block.line))?;
        match (is_shell(&block), words.unrun, words.file) {
            (true, Some(reason), _) => {
                *count.unrun.entry(reason.to_owned()).or_default() += 1;
            }
            (true, None, _) => {
                count.run += 1;
                steps.push(Step { block, words });
            }
            (false, _, Some(_)) => steps.push(Step { block, words }),
            (false, _, None) => {}
        }
    }
    Ok(steps)
}

/// Where pages run.
struct Place {
    dir: PathBuf,
    bin: PathBuf,
    /// Whether each page can have a network and processes of its own.
    is_apart: bool,
}

impl Place {
    /// Puts the programs where pages find them, and nothing else of this machine's state.
    fn prepare(binaries: &Path) -> Result<Self, String> {
        setup::prometheus()?;
        let dir = target_dir(&metadata()?)?.join("book").join("blocks");
        drop(fs::remove_dir_all(&dir));
        let bin = dir.join("bin");
        fs::create_dir_all(&bin).map_err(at(&bin))?;
        for name in PROGRAMS {
            let from = binaries.join(name);
            let from = from.canonicalize().map_err(at(&from))?;
            let to = bin.join(name);
            std::os::unix::fs::symlink(&from, &to).map_err(at(&to))?;
        }
        let cargo = bin.join("cargo");
        fs::write(&cargo, CARGO).map_err(at(&cargo))?;
        let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&cargo, may_run).map_err(at(&cargo))?;
        let mut probe = apart();
        let probe = probe.arg("true").stderr(Stdio::null()).status();
        let is_apart = probe.is_ok_and(|status| status.success());
        println!(
            "networks of their own: {}",
            if is_apart {
                "yes"
            } else {
                "no: the ports that pages name have to be free"
            }
        );
        Ok(Self { dir, bin, is_apart })
    }

    fn run(&self, path: &str, steps: &[Step<'_>]) -> Result<(), String> {
        let dir = self.dir.join(path.replace('/', "-").replace(".md", ""));
        let inside = dir.join("here");
        fs::create_dir_all(&inside).map_err(at(&inside))?;
        let (progress, said, file) = (dir.join("progress"), dir.join("said"), dir.join("script"));
        let text = script(steps, &progress.display().to_string(), &clone(&self.bin));
        fs::write(&file, text).map_err(at(&file))?;
        let out = fs::File::create(&said).map_err(at(&said))?;
        let err = out.try_clone().map_err(at(&said))?;
        let mut command = if self.is_apart {
            apart()
        } else {
            Command::new("setsid")
        };
        command
            .args(["bash", "--norc"])
            .arg(&file)
            .current_dir(&inside);
        command
            .env_clear()
            .env("HOME", &inside)
            .env("LANG", "C.UTF-8");
        command
            .env("NO_COLOR", "1")
            .env("TERM", "dumb")
            .env("TMPDIR", &dir);
        let system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        command.env("PATH", format!("{}:{system}", self.bin.display()));
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        let mut child = child.map_err(|cause| format!("{command:?} did not start: {cause}"))?;
        let ended = wait(&mut child, &progress, steps);
        end(&mut child);
        ended.map_err(|says| {
            let said = fs::read_to_string(&said).unwrap_or_default();
            let lines: Vec<&str> = said.lines().collect();
            let last = lines
                .get(lines.len().saturating_sub(30)..)
                .unwrap_or_default();
            format!("{path}, {says}\n{}", last.join("\n"))
        })
    }
}

/// A command in a network and among processes of its own; all of them end with it.
fn apart() -> Command {
    let mut command = Command::new("unshare");
    command.args([
        "--map-root-user",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]);
    command.args(["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
    command
}

/// Waits until the script ends, or a block takes too long.
fn wait(child: &mut Child, progress: &Path, steps: &[Step<'_>]) -> Result<(), String> {
    let mut at = String::new();
    let mut since = Instant::now();
    loop {
        let ended = child.try_wait().map_err(|cause| cause.to_string())?;
        let lines = fs::read_to_string(progress).unwrap_or_default();
        let now = lines.lines().last().unwrap_or_default();
        if now != at {
            now.clone_into(&mut at);
            since = Instant::now();
        }
        match ended {
            Some(status) if status.success() && at == "end" => return Ok(()),
            Some(status) => return Err(format!("the block of line {at}: {status}")),
            None => {}
        }
        let step = steps.iter().find(|step| step.block.line.to_string() == at);
        let bound = step.map_or(5, |step| step.words.bound_s());
        if since.elapsed() > Duration::from_secs(bound) {
            return Err(format!("the block of line {at} takes more than {bound} s"));
        }
        std::thread::sleep(EVERY);
    }
}

/// Ends whatever a page left.
fn end(child: &mut Child) {
    // The group of `setsid`; of `unshare` the kernel ends all processes with the first.
    let group = format!("-{}", child.id());
    drop(
        Command::new("kill")
            .args(["-KILL", "--", &group])
            .stderr(Stdio::null())
            .status(),
    );
    drop(child.kill());
    drop(child.wait());
}

/// Makes the directory look like a clone that is built.
fn clone(bin: &Path) -> String {
    let root = root();
    let root = root.canonicalize().unwrap_or(root);
    let copies = CLONE.map(|name| format!("cp -r '{}' .\n", root.join(name).display()));
    let built = ["release", "dist"].map(|profile| {
        let links =
            PROGRAMS.map(|name| format!("ln -sfn '{}/{name}' target/{profile}/\n", bin.display()));
        format!("mkdir -p target/{profile}\n{}", links.concat())
    });
    copies.concat() + &built.concat()
}
