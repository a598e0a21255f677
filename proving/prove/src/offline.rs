//! `prove engine fit`, `replay` and `soak`: the simulated engine in virtual time, without a socket.
//!
//! Invariant: with `--json` the output is one JSON document and nothing else.
//! Not here: the simulation (`simulator`), the engine behind HTTP (`simulate`).

mod fit;
mod plot;
mod replay;
mod soak;

use clap::Subcommand;

/// What can be done without a socket.
#[derive(Debug, Subcommand)]
pub(crate) enum Offline {
    #[command(before_help = "Example:\n  prove engine fit recording --out mine.toml")]
    Fit(fit::Fit),
    #[command(before_help = "Example:\n  prove engine replay recording --preset mine.toml")]
    Replay(replay::Replay),
    #[command(
        before_help = "Example:\n  prove engine soak --preset gpt-oss-120b.h100x4 --users 190 --hours 3"
    )]
    Soak(soak::Soak),
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Does it. False where it was done and is not good enough to be used.
pub(crate) fn offline(what: &Offline) -> Result<bool, Box<dyn std::error::Error>> {
    match what {
        Offline::Fit(options) => fit::fit(options),
        Offline::Replay(options) => replay::replay(options).map(|()| true),
        Offline::Soak(options) => soak::soak(options).map(|()| true),
    }
}

#[cfg(test)]
mod tests;
