//! The formats by their names.
//!
//! Not here: how each is read; one file each.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::agentx::AgentXReader;
use super::omniact::Omniact;
use super::toolllama::ToolLlama;
use super::trace::TraceReader;
use super::{Blocks, Geometry, Place, Reader, Screen, Synthetic};
use super::{atif, coderforge, messages, openhands, swe_agent, terminal_bench, toolbench};

macro_rules! formats {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// A format.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Format {
            $($(#[$doc])* $name,)*
        }

        impl Format {
            /// All formats, in the order of a help text.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name on a command line.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }
        }
    };
}

formats! {
    /// ToolBench's raw answer files.
    ToolBench = "toolbench",
    /// ToolLLaMA's conversations, as JSON or Parquet.
    ToolLlama = "toolllama",
    /// Files of the Agent Trajectory Interchange Format.
    Atif = "atif",
    /// Dumps of Terminal-Bench runs.
    TerminalBench = "terminal-bench",
    /// OmniACT's index and the files that it names.
    Omniact = "omniact",
    /// SWE-rebench's trajectories of OpenHands.
    OpenHands = "openhands",
    /// The older trajectories of SWE-agent.
    SweAgent = "swe-agent",
    /// CoderForge.
    CoderForge = "coderforge",
    /// Lines of JSON with messages.
    Messages = "messages",
    /// Sessions that are made.
    Synthetic = "synthetic",
    /// Published traces of arrivals.
    Trace = "trace",
    /// Traces of agents without text, as AgentX replays them.
    AgentX = "agentx",
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
    /// Synthetic and traces: which sessions of that kind.
    pub seed: u64,
    /// Traces: how their prompts are made.
    pub blocks: Blocks,
    /// Synthetic: how many.
    pub sessions: u64,
}

impl Format {
    /// The names of all, for people.
    #[must_use]
    pub fn names() -> String {
        let all: Vec<&str> = Self::ALL.iter().map(|format| format.as_str()).collect();
        all.join(", ")
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
            Self::Trace => Box::new(TraceReader {
                blocks: settings.blocks,
                seed: settings.seed,
            }),
            Self::AgentX => Box::new(AgentXReader {
                blocks: settings.blocks,
                seed: settings.seed,
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
        let mut all = Self::ALL.iter().copied();
        all.find(|format| format.as_str() == name)
            .ok_or_else(|| format!("no format is called {name:?}; there are {}", Self::names()))
    }
}
