//! The counts that are kept: `xtask/instructions.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::Build;
use crate::cargo::root;
use crate::command::run_quietly;

/// Instructions an exchange, by scenario and build.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// The C library with which they were counted, as `getconf` says it.
    libc: String,
    counts: BTreeMap<String, BTreeMap<Build, u64>>,
}

impl Counts {
    /// The counts as they are in the repository.
    pub(super) fn read() -> Result<Self, String> {
        let file = file();
        let fault = |says: String| format!("{}: {says}", file.display());
        let text = std::fs::read_to_string(&file).map_err(|cause| fault(cause.to_string()))?;
        let kept: Value = serde_json::from_str(&text).map_err(|cause| fault(cause.to_string()))?;
        let mut counts: BTreeMap<String, BTreeMap<Build, u64>> = BTreeMap::new();
        let scenarios = kept.get("scenarios").and_then(Value::as_object);
        for (scenario, builds) in scenarios.ok_or_else(|| fault("no scenarios".to_owned()))? {
            for build in Build::ALL {
                let Some(count) = builds.get(build.name()) else {
                    continue;
                };
                let count = count.as_u64().filter(|count| *count > 0);
                let count = count.ok_or_else(|| fault(format!("{scenario} has no count")))?;
                let builds = counts.entry(scenario.clone()).or_default();
                builds.insert(build, count);
            }
        }
        let libc = kept.get("libc").and_then(Value::as_str);
        Ok(Self {
            libc: libc.unwrap_or_default().to_owned(),
            counts,
        })
    }

    /// Writes them, as counted with this machine's library.
    pub(super) fn write(mut self) -> Result<(), String> {
        self.libc = libc();
        let scenarios = self.counts.iter().map(|(scenario, builds)| {
            let builds = builds.iter().map(|(build, count)| (build.name(), *count));
            (scenario.clone(), json!(builds.collect::<BTreeMap<_, _>>()))
        });
        let kept = json!({"libc": self.libc, "scenarios": scenarios.collect::<BTreeMap<_, _>>()});
        let text = serde_json::to_string_pretty(&kept).map_err(|cause| cause.to_string())?;
        let file = file();
        std::fs::write(&file, text + "\n").map_err(|cause| format!("{}: {cause}", file.display()))
    }

    /// Whether they were counted with the library of this machine.
    pub(super) fn is_of_this_libc(&self) -> bool {
        self.libc == libc()
    }

    pub(super) fn get(&self, scenario: &str, build: Build) -> Option<u64> {
        self.counts.get(scenario)?.get(&build).copied()
    }

    pub(super) fn set(&mut self, scenario: &str, build: Build, count: u64) {
        let builds = self.counts.entry(scenario.to_owned()).or_default();
        builds.insert(build, count);
    }
}

/// `glibc 2.36`.
fn libc() -> String {
    run_quietly(Command::new("getconf").arg("GNU_LIBC_VERSION")).unwrap_or_default()
}

fn file() -> PathBuf {
    root().join("xtask").join("instructions.json")
}
