//! Presets: what an engine is like, as data.
//!
//! A preset is a TOML file; those that come with the program are named, any other is given by its path.
//! Invariant: a preset that was read is complete and makes sense; a fault is told with its place.
//! Not here: what the figures mean (`cost`, `scheduler`).

mod file;

use std::path::Path;

use crate::cost::{FrontendCost, StepCost};
use crate::dcgm::Gpus;
use crate::scheduler::SchedulerConfig;

/// An engine as data.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// By which it is called.
    pub name: String,
    /// The model it serves.
    pub model: String,
    /// Where its figures come from.
    pub source: String,
    /// Limits and KV cache.
    pub scheduler: SchedulerConfig,
    /// What the server in front costs.
    pub frontend: FrontendCost,
    /// What steps cost.
    pub step: StepCost,
    /// The GPUs it pretends to run on.
    pub gpus: Gpus,
}

/// Why a preset cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    /// No preset of that name, and no such file.
    #[error("no preset is called {name} and no file is there of that name; the presets are {}", names().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The file cannot be read.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
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
    /// The preset of that name, or the one in that file.
    ///
    /// # Errors
    /// When there is neither, or the file has a fault: then the place in it.
    pub fn load(name_or_path: &str) -> Result<Self, PresetError> {
        if let Some(&(name, text)) = EMBEDDED.iter().find(|&&(name, _)| name == name_or_path) {
            return Self::parse(text, name);
        }
        match std::fs::read_to_string(Path::new(name_or_path)) {
            Ok(text) => Self::parse(&text, name_or_path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(PresetError::Unknown {
                    name: name_or_path.to_owned(),
                })
            }
            Err(source) => Err(PresetError::File {
                path: name_or_path.to_owned(),
                source,
            }),
        }
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

    /// The preset as a file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        file::write(self)
    }
}

#[cfg(test)]
mod tests;
