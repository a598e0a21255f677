//! The formats by their names.
//!
//! Not here: how each is read; one file each.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::omniact::Omniact;
use super::toolllama::ToolLlama;
use super::{Geometry, Place, Reader, Screen, Synthetic};
use super::{atif, coderforge, messages, openhands, swe_agent, terminal_bench, toolbench};

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// ToolBench's raw answer files.
    ToolBench,
    /// ToolLLaMA's conversations, as JSON or Parquet.
    ToolLlama,
    /// Files of the Agent Trajectory Interchange Format.
    Atif,
    /// Dumps of Terminal-Bench runs.
    TerminalBench,
    /// OmniACT's index and the files that it names.
    Omniact,
    /// SWE-rebench's trajectories of OpenHands.
    OpenHands,
    /// The older trajectories of SWE-agent.
    SweAgent,
    /// CoderForge.
    CoderForge,
    /// Lines of JSON with messages.
    Messages,
    /// Sessions that are made.
    Synthetic,
}

/// What some formats have to be told.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// OmniACT: how a screen is shown.
    pub screen: Screen,
    /// OmniACT: where it stands.
    pub screen_place: Place,
    /// OmniACT: where the index's paths begin; by default the directory of the index.
    pub root: Option<PathBuf>,
    /// Synthetic: what sessions look like.
    pub geometry: Geometry,
    /// Synthetic: which sessions of that kind.
    pub seed: u64,
    /// Synthetic: how many.
    pub sessions: u64,
}

impl Format {
    /// All formats, in the order of a help text.
    pub const ALL: [Self; 10] = [
        Self::ToolBench,
        Self::ToolLlama,
        Self::Atif,
        Self::TerminalBench,
        Self::Omniact,
        Self::OpenHands,
        Self::SweAgent,
        Self::CoderForge,
        Self::Messages,
        Self::Synthetic,
    ];

    /// Its name on a command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolBench => "toolbench",
            Self::ToolLlama => "toolllama",
            Self::Atif => "atif",
            Self::TerminalBench => "terminal-bench",
            Self::Omniact => "omniact",
            Self::OpenHands => "openhands",
            Self::SweAgent => "swe-agent",
            Self::CoderForge => "coderforge",
            Self::Messages => "messages",
            Self::Synthetic => "synthetic",
        }
    }

    /// Its reader.
    #[must_use]
    pub fn reader(self, settings: &Settings) -> Box<dyn Reader> {
        match self {
            Self::ToolBench => Box::new(toolbench::READER),
            Self::ToolLlama => Box::new(ToolLlama),
            Self::Atif => Box::new(atif::READER),
            Self::TerminalBench => Box::new(terminal_bench::READER),
            Self::Omniact => Box::new(Omniact {
                screen: settings.screen,
                place: settings.screen_place,
                root: settings.root.clone(),
            }),
            Self::OpenHands => Box::new(openhands::READER),
            Self::SweAgent => Box::new(swe_agent::READER),
            Self::CoderForge => Box::new(coderforge::READER),
            Self::Messages => Box::new(messages::READER),
            Self::Synthetic => Box::new(Synthetic {
                geometry: settings.geometry,
                seed: settings.seed,
                sessions: settings.sessions,
            }),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|format| format.as_str() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            format!("no format is called {name:?}; there are {names}")
        })
    }
}
