//! The counts that are kept: `xtask/instructions.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::cargo::root;

/// Instructions an exchange, by scenario.
#[derive(Debug, Default)]
pub(super) struct Counts(BTreeMap<String, u64>);

impl Counts {
    /// The counts as they are in the repository.
    pub(super) fn read() -> Result<Self, String> {
        let file = file();
        let text = std::fs::read_to_string(&file)
            .map_err(|cause| format!("{}: {cause}", file.display()))?;
        let counts: BTreeMap<String, Value> =
            serde_json::from_str(&text).map_err(|cause| format!("{}: {cause}", file.display()))?;
        let count = |(name, value): (String, Value)| {
            let count = value.as_u64().filter(|count| *count > 0);
            count
                .map(|count| (name.clone(), count))
                .ok_or_else(|| format!("{}: {name} is no count", file.display()))
        };
        counts
            .into_iter()
            .map(count)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn write(&self) -> Result<(), String> {
        let file = file();
        let text = serde_json::to_string_pretty(&self.0).map_err(|cause| cause.to_string())?;
        std::fs::write(&file, text + "\n").map_err(|cause| format!("{}: {cause}", file.display()))
    }

    pub(super) fn get(&self, scenario: &str) -> Option<u64> {
        self.0.get(scenario).copied()
    }

    pub(super) fn set(&mut self, scenario: &str, count: u64) {
        self.0.insert(scenario.to_owned(), count);
    }
}

fn file() -> PathBuf {
    root().join("xtask").join("instructions.json")
}
