//! `prove engine fit`, `replay` and `soak`: the simulated engine in virtual time, without a socket.
//!
//! Invariant: with `--json` the output is one JSON document and nothing else.
//! Not here: the simulation (`engine`), the engine behind HTTP (`simulate`).

mod fit;
mod plot;
mod replay;
mod soak;

use std::io;
use std::path::Path;

use clap::Subcommand;

/// What can be done without a socket.
#[derive(Debug, Subcommand)]
pub(crate) enum Offline {
    Fit(fit::Fit),
    Replay(replay::Replay),
    Soak(soak::Soak),
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Does it.
pub(crate) fn offline(what: &Offline) -> Outcome {
    match what {
        Offline::Fit(options) => fit::fit(options),
        Offline::Replay(options) => replay::replay(options),
        Offline::Soak(options) => soak::soak(options),
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    std::fs::write(path, text)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}
