//! A real kube-apiserver, a real endpoint picker, Helm, `prove`, and the tests that need them: a lane of its own, since its first build takes ten minutes.
//!
//! Invariant: the servers are built of what `xtask/kubernetes/go.sum` and `xtask/picker/go.sum` pin, and of nothing else.
//! Not here: starting them, and what is tested (`kube_apiserver` of the end-to-end tests).

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::cargo::{build_release, cargo, metadata, target_dir};
use crate::charts;
use crate::go::build;
use crate::lane::Lane;
use crate::parts::KUBERNETES_VERSION;
use crate::stages::release_build;

/// The tests of the lane, and how many they are.
const TESTS: [&str; 2] = ["kube_apiserver", "endpoint_picker"];
const TESTS_LEAST: u64 = 22;

/// Builds the servers and runs the tests against a release build, or against this binary.
pub(crate) fn lane(binary: Option<&Path>) -> ExitCode {
    let mut lane = Lane::new();
    let built = || {
        let dir = servers(&["./etcd", "./apiserver"])?;
        pickers(&dir)?;
        Ok(dir)
    };
    let servers = lane.step(
        "etcd, kube-apiserver and pickers",
        "cargo xtask kubernetes",
        built,
    );
    // Without it, what it renders is not tested, and that is said.
    let helm = lane.step("Helm", "cargo xtask kubernetes", charts::helm);
    let binary = match binary {
        Some(binary) => Some(binary.to_owned()),
        None => {
            // Without it, the white paper's suite is not run against a cluster, and that is said.
            lane.command("prove", build_release(&["prove"]));
            release_build(&mut lane)
        }
    };
    let name = "against a real kube-apiserver";
    match (servers, binary) {
        (Some(servers), Some(binary)) => {
            let mut tests = tests(&servers, &binary);
            tests.envs(helm.map(|helm| ("TOLLGATE_E2E_HELM", helm)));
            lane.tests(name, TESTS_LEAST, tests);
        }
        (None, _) => lane.cannot_run(name, "there is no kube-apiserver"),
        (_, None) => lane.cannot_run(name, "the release build failed"),
    }
    lane.finish()
}

/// Builds these commands of Kubernetes; gives the directory that they are in. What is built already, Go builds no second time.
pub(crate) fn servers(commands: &[&str]) -> Result<PathBuf, String> {
    let dir = target_dir(&metadata()?)?.join("kubernetes");
    std::fs::create_dir_all(&dir).map_err(|cause| format!("{}: {cause}", dir.display()))?;
    let (major, minor) = release(KUBERNETES_VERSION);
    let flags = format!(
        "-s -w -X k8s.io/component-base/version.gitVersion=v{KUBERNETES_VERSION} \
         -X k8s.io/component-base/version.gitMajor={major} -X k8s.io/component-base/version.gitMinor={minor}"
    );
    build("xtask/kubernetes", &flags, commands, &dir)?;
    Ok(dir)
}

/// Builds the endpoint picker of the tests, and the Inference Extension's light one, which `prove` compares with ours, into this directory.
fn pickers(into: &Path) -> Result<(), String> {
    build("xtask/picker", "-s -w", &[".", "./light-picker"], into)
}

/// Major and minor of a version.
fn release(version: &str) -> (&str, &str) {
    let mut parts = version.split('.');
    let mut next = || parts.next().unwrap_or_default();
    (next(), next())
}

fn tests(servers: &Path, binary: &Path) -> Command {
    let mut command = cargo(&["test", "-p", "tollgate", "--test", "e2e", "--"]);
    command.args(TESTS);
    // Each has a cluster of its own: one at a time, for small machines.
    command.args(["--test-threads", "1"]);
    command.env("TOLLGATE_BIN", binary);
    command.env("TOLLGATE_E2E_KUBERNETES", servers);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_pins_is_the_version_that_the_servers_say() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("kubernetes/go.mod");
        let pins = std::fs::read_to_string(path).expect("go.mod");
        let server = format!("\tk8s.io/kubernetes v{KUBERNETES_VERSION}\n");
        assert!(pins.contains(&server), "{pins}");
        let (major, minor) = release(KUBERNETES_VERSION);
        assert_eq!(format!("{major}.{minor}"), "1.36");
        // Its parts have the same minor and patch, with a major of 0.
        let part = format!("v0{}", &KUBERNETES_VERSION[major.len()..]);
        let parts = pins.lines().filter(|line| line.contains(" => "));
        let parts: Vec<&str> = parts.collect();
        assert!(parts.len() > 30, "{parts:?}");
        assert!(parts.iter().all(|line| line.ends_with(&part)), "{parts:?}");
    }
}
