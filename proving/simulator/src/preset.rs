//! Presets: what an engine is like, as data.
//!
//! A preset is a TOML file; those that come with the program are known by their names.
//! Invariant: a preset that was parsed is complete and makes sense; an error names its place.
//! Not here: reading the files of others (`prove`), what the figures mean (`cost`, `scheduler`).

mod file;

use crate::bounds::Bounds;
use crate::cost::{FrontendCost, StepCost};
use crate::gpus::Gpus;
use crate::scheduler::SchedulerConfig;
use crate::virtual_time::Parallelism;

/// An engine as data.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// By which it is called.
    pub name: String,
    /// The model it serves.
    pub model: String,
    /// Where its figures come from.
    pub source: String,
    /// Limits and KV cache of each engine.
    pub scheduler: SchedulerConfig,
    /// How many engines there are.
    pub parallelism: Parallelism,
    /// What the server in front costs.
    pub frontend: FrontendCost,
    /// What steps cost.
    pub step: StepCost,
    /// Within which lengths and batches the costs were measured; unknown where they are not from a recording.
    pub bounds: Option<Bounds>,
    /// The GPUs it pretends to run on.
    pub gpus: Gpus,
}

/// Why a preset cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    /// No preset of that name; its caller has looked for such a file.
    #[error("no preset is called {name} and no file is there of that name; the presets are {}", names().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The file has a fault.
    #[error("{place}: {says}")]
    Fault {
        /// The file, and the line or the member.
        place: String,
        /// What is wrong.
        says: String,
    },
}

const EMBEDDED: &[(&str, &str)] = &[
    (
        "gpt-oss-120b.h100x4",
        include_str!("../presets/gpt-oss-120b.h100x4.toml"),
    ),
    (
        "gpt-oss-120b.h100x4-paper",
        include_str!("../presets/gpt-oss-120b.h100x4-paper.toml"),
    ),
    (
        "rtx4090.llama-3.1-8b",
        include_str!("../presets/rtx4090.llama-3.1-8b.toml"),
    ),
    (
        "rtxpro6000x2.qwen3-32b",
        include_str!("../presets/rtxpro6000x2.qwen3-32b.toml"),
    ),
    ("instant", include_str!("../presets/instant.toml")),
];

/// The presets that come with the program.
#[must_use]
pub fn names() -> Vec<&'static str> {
    EMBEDDED.iter().map(|&(name, _)| name).collect()
}

impl Preset {
    /// The preset of that name.
    ///
    /// # Errors
    /// When none that comes with the program has it.
    pub fn named(name: &str) -> Result<Self, PresetError> {
        let found = EMBEDDED.iter().find(|&&(known, _)| known == name);
        let (_, text) = found.ok_or_else(|| PresetError::Unknown {
            name: name.to_owned(),
        })?;
        Self::parse(text, name)
    }

    /// Reads a preset; `origin` is what errors call the file.
    ///
    /// # Errors
    /// Says which line or member has a fault.
    pub fn parse(text: &str, origin: &str) -> Result<Self, PresetError> {
        let file: file::File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| {
                1 + text[..span.start.min(text.len())].matches('\n').count()
            });
            PresetError::Fault {
                place: format!("{origin}:{line}"),
                says: error.message().to_owned(),
            }
        })?;
        file.lower().map_err(|(member, says)| PresetError::Fault {
            place: format!("{origin}: {member}"),
            says,
        })
    }

    /// The same with so many KV blocks in each engine, and the memory that they take.
    ///
    /// # Errors
    /// There cannot be so many.
    pub fn with_kv_blocks(mut self, blocks: u32) -> Result<Self, PresetError> {
        let before = f64::from(self.scheduler.kv.blocks.max(1));
        let kv_mib = self.gpus.kv_mib as f64 * f64::from(blocks) / before;
        let room = self.gpus.memory_mib.saturating_sub(self.gpus.weights_mib);
        self.gpus.kv_mib = (kv_mib as u64).min(room); // a what-if may have more than there is
        self.scheduler.kv.blocks = blocks;
        self.checked()
    }

    /// The same with so many requests in a step at most.
    ///
    /// # Errors
    /// There cannot be so many.
    pub fn with_max_num_seqs(mut self, most: usize) -> Result<Self, PresetError> {
        self.scheduler.max_num_seqs = most;
        self.checked()
    }

    fn checked(self) -> Result<Self, PresetError> {
        let checked = file::check_limits(&self.scheduler, self.parallelism);
        checked.map_err(|(member, says)| PresetError::Fault {
            place: format!("{}: {member}", self.name),
            says,
        })?;
        Ok(self)
    }

    /// The preset as a file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        file::write(self)
    }
}

#[cfg(test)]
mod tests;
