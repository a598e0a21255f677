//! The Gateway API's own conformance suite, against this gate in a cluster without containers: a lane of its own, since its first
//! build takes twenty minutes and it needs the rights to make network namespaces.
//!
//! Invariant: the suite and its backends are built of what `xtask/conformance/go.sum` pins, and are run unchanged.
//! Not here: the cluster and the gates in it (`xtask/conformance/cluster`), the suite of the Model Context Protocol (`mcp`).

pub(crate) mod mcp;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::cargo::{metadata, root, target_dir};
use crate::command::{run_quietly, run_shown};
use crate::kubernetes;
use crate::lane::Lane;
use crate::stages::release_build;

/// Where the suite comes from; `go.mod` pins the version.
const SUITE: &str = "sigs.k8s.io/gateway-api/conformance";
/// What it is told of whom it judges.
const ABOUT: [&str; 4] = [
    "-organization=tollgate",
    "-project=tollgate",
    "-url=https://tollgate.example",
    "-contact=https://tollgate.example/contact",
];

/// An address that no gate but the one that is asked for it has, and one that no gate has.
const USABLE: &str = "127.0.250.1";
const UNUSABLE: &str = "192.0.2.1";

/// What is to be run: a binary in place of a release build, one test in place of all, and another suite in place of the Gateway API's, with the
/// kinds and the programs of Pods that it needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    binary: Option<PathBuf>,
    test: Option<String>,
    suite: Option<PathBuf>,
    kinds: Vec<PathBuf>,
    programs: Vec<String>,
}

impl Plan {
    pub(crate) fn of(words: &[&str]) -> Option<Self> {
        let mut plan = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--test" => plan.test = Some((*words.next()?).to_owned()),
                "--suite" => plan.suite = Some((*words.next()?).into()),
                "--crds" => plan.kinds.push((*words.next()?).into()),
                "--program" => plan.programs.push((*words.next()?).to_owned()),
                word if word.starts_with('-') || plan.binary.is_some() => return None,
                binary => plan.binary = Some(binary.into()),
            }
        }
        Some(plan)
    }
}

/// Builds what is needed and runs the suite; its report stands in `target/conformance/report.yaml`.
pub(crate) fn lane(plan: &Plan) -> ExitCode {
    let mut lane = Lane::new();
    let servers = lane.step("a control plane", "cargo xtask conformance", || {
        kubernetes::servers(&["./etcd", "./apiserver", "./controllermanager"])
    });
    let programs = lane.step("the suite", "cargo xtask conformance", programs);
    let binary = match &plan.binary {
        Some(binary) => Some(binary.clone()),
        None => release_build(&mut lane),
    };
    if let (Some(servers), Some(programs), Some(binary)) = (servers, programs, binary) {
        lane.step("Gateway API conformance", "cargo xtask conformance", || {
            let mut command = suite(plan, &servers, &programs, &binary)?;
            command.args(plan.test.iter().map(|test| format!("-run-test={test}")));
            run_shown(&mut command)
        });
    }
    lane.finish()
}

fn directory() -> Result<PathBuf, String> {
    let directory = target_dir(&metadata()?)?.join("conformance");
    let made = std::fs::create_dir_all(&directory);
    made.map_err(|cause| format!("{}: {cause}", directory.display()))?;
    Ok(directory)
}

fn go(words: &[&str]) -> Command {
    let mut go = Command::new("nice");
    go.args(["-n", "15", "go"]).args(words);
    go.current_dir(root().join("xtask/conformance"));
    go.env("CGO_ENABLED", "0").env("GOFLAGS", "-mod=readonly");
    go
}

/// Builds the cluster's program, the suite and its backends; gives where they are.
fn programs() -> Result<PathBuf, String> {
    let directory = directory()?;
    let at = |name: &str| directory.join(name).display().to_string();
    run_shown(&mut go(&["build", "-o", &at("cluster"), "./cluster"]))?;
    let echo = format!("{SUITE}/echo-basic");
    run_shown(&mut go(&["build", "-o", &at("echo-basic"), &echo]))?;
    run_shown(&mut go(&["test", "-c", "-o", &at("suite"), "./suite"]))?;
    Ok(directory)
}

/// A path from the root.
fn whole(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize()
        .map_err(|cause| format!("{}: {cause}", path.display()))
}

/// The suite in its cluster.
fn suite(plan: &Plan, servers: &Path, programs: &Path, binary: &Path) -> Result<Command, String> {
    let module = "sigs.k8s.io/gateway-api";
    let kinds = run_quietly(&mut go(&["list", "-m", "-f", "{{.Dir}}", module]))?;
    let version = run_quietly(Command::new(binary).arg("--version"))?;
    let version = version.split_whitespace().nth(1).unwrap_or_default();
    let binary = whole(binary)?;
    let mut command = Command::new(programs.join("cluster"));
    command.arg("-servers").arg(servers);
    command.arg("-gate").arg(binary);
    command.arg("-echo").arg(programs.join("echo-basic"));
    let own = programs.join("suite");
    let suite = whole(plan.suite.as_deref().unwrap_or(&own))?;
    command.arg("-suite").arg(suite);
    command.arg("-work").arg(programs.join("work"));
    command.args(["-usable", USABLE]);
    let kinds = Path::new(&kinds).join("config/crd/experimental");
    for directory in std::iter::once(&kinds).chain(&plan.kinds) {
        command.arg("-crds").arg(whole(directory)?);
    }
    for program in &plan.programs {
        let (word, path) = program
            .split_once('=')
            .ok_or_else(|| format!("--program {program}: write WORD=PATH"))?;
        let path = whole(Path::new(path))?;
        command.arg(format!("-program={word}={}", path.display()));
    }
    command.args(["--", "-test.v", "-test.timeout=90m"]);
    command.args(ABOUT);
    match plan.suite {
        None => command.args([
            "-conformance-profiles=GATEWAY-HTTP".to_owned(),
            format!("-usable-address={USABLE}"),
            format!("-unusable-address={UNUSABLE}"),
        ]),
        // What it was built with may be another version than the kinds here.
        Some(_) => command.arg("-allow-crds-mismatch"),
    };
    command.args(["-gateway-class=tollgate", &format!("-version={version}")]);
    let report = programs.join("report.yaml");
    command.arg(format!("-report-output={}", report.display()));
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_and_one_test_are_said_in_any_order() {
        let plan = Plan::of(&["--test", "HTTPRouteWeight", "target/release/tollgate"]);
        let plan = plan.expect("a plan");
        assert_eq!(plan.test.as_deref(), Some("HTTPRouteWeight"));
        assert_eq!(plan.binary, Some("target/release/tollgate".into()));
        assert_eq!(Plan::of(&[]), Some(Plan::default()));
        let plan = Plan::of(&[
            "--suite",
            "s",
            "--crds",
            "a",
            "--crds",
            "b",
            "--program",
            "x=y",
        ]);
        let plan = plan.expect("a plan");
        assert_eq!(plan.suite, Some("s".into()));
        assert_eq!(plan.kinds, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(plan.programs, ["x=y"]);
        for words in [&["--suite"][..], &["--test"][..], &["a", "b"], &["--all"]] {
            assert_eq!(Plan::of(words), None, "{words:?}");
        }
    }

    #[test]
    fn the_suite_is_of_the_version_that_the_pages_say() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/go.mod");
        let pins = std::fs::read_to_string(path).expect("go.mod");
        assert!(pins.contains(&format!("\t{SUITE} v1.6.3\n")), "{pins}");
        assert!(pins.contains(" => sigs.k8s.io/gateway-api v1.6.3\n"));
    }
}
