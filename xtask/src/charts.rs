//! Helm's charts, linted and rendered by Helm itself: a lane of its own, since its first build takes five minutes.
//!
//! Invariant: Helm is built of what `xtask/helm/go.sum` pins.
//! Not here: the rights that a chart gives, word by word (`kubernetes`), an API server that takes what it renders (`cargo xtask kubernetes`).

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::cargo::{metadata, root, target_dir};
use crate::command::{run_quietly, run_shown};
use crate::go::build;
use crate::lane::Lane;

/// What Helm is, as a package of its module.
const HELM: &str = "helm.sh/helm/v3/cmd/helm";
/// The charts.
const CHARTS: [&str; 2] = ["tollgate", "tollgate-crds"];

/// Values of the gate's chart; what is rendered then, each so often.
type Case = (&'static [&'static str], &'static [(&'static str, usize)]);

const CASES: [Case; 4] = [
    (
        &[],
        &[
            ("kind: ClusterRole\n", 1),
            ("kind: Role\n", 1),
            ("resources: [pods]", 0),
            ("kind: GatewayClass", 1),
            ("image: \"tollgate:", 1),
        ],
    ),
    (
        &["watch.namespaces={a,b}", "image.registry=r.example"],
        &[
            ("kind: ClusterRole\n", 1),
            ("kind: Role\n", 3),
            ("namespace: a\n", 2),
            ("image: \"r.example/tollgate:", 1),
        ],
    ),
    (
        &["inferencePools.enabled=true"],
        &[("kind: ClusterRole\n", 2), ("resources: [pods]", 1)],
    ),
    (
        &[
            "inferencePools.enabled=true",
            "inferencePools.namespaces={a,b}",
        ],
        &[("kind: ClusterRole\n", 1), ("resources: [pods]", 2)],
    ),
];

/// Builds Helm, lints the charts and renders them with several values.
pub(crate) fn lane() -> ExitCode {
    let mut lane = Lane::new();
    let again = "cargo xtask charts";
    if let Some(helm) = lane.step("Helm", again, helm) {
        lane.step("helm lint", again, || {
            let charts = CHARTS.map(chart);
            run_shown(asking(&helm).args(["lint", "--strict"]).args(charts))
        });
        lane.step("helm template", again, || rendered(&helm));
    }
    lane.finish()
}

/// Builds Helm; gives where it is.
pub(crate) fn helm() -> Result<PathBuf, String> {
    let directory = target_dir(&metadata()?)?.join("helm");
    let made = std::fs::create_dir_all(&directory);
    made.map_err(|cause| format!("{}: {cause}", directory.display()))?;
    build("xtask/helm", "-s -w", &[HELM], &directory)?;
    Ok(directory.join("helm"))
}

fn chart(name: &str) -> PathBuf {
    root().join("deploy/helm").join(name)
}

/// Helm with nobody's settings.
fn asking(helm: &Path) -> Command {
    let mut command = Command::new(helm);
    if let Some(own) = helm.parent() {
        command.env("HOME", own);
    }
    command
}

fn rendered(helm: &Path) -> Result<(), String> {
    for (values, expected) in CASES {
        let mut command = asking(helm);
        command.args(["template", "gate"]).arg(chart("tollgate"));
        command.args(["--namespace", "gates"]);
        command.args(values.iter().flat_map(|value| ["--set", value]));
        let text = run_quietly(&mut command)?;
        for (part, times) in expected {
            let seen = text.matches(part).count();
            if seen != *times {
                return Err(format!(
                    "with {values:?} {part:?} stands {seen} times in what is rendered, not {times}"
                ));
            }
        }
    }
    let kinds = run_quietly(
        asking(helm)
            .args(["template", "kinds"])
            .arg(chart("tollgate-crds")),
    )?;
    match kinds.contains("inferencepools.inference.networking.k8s.io") {
        true => Ok(()),
        false => Err("the chart of the kinds lacks InferencePool".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helm_is_of_the_version_that_is_pinned() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("helm/go.mod");
        let pins = std::fs::read_to_string(path).expect("go.mod");
        assert!(pins.contains(&format!("tool {HELM}\n")), "{pins}");
        assert!(
            pins.contains("helm.sh/helm/v3 v3.22.0 // indirect\n"),
            "{pins}"
        );
    }
}
