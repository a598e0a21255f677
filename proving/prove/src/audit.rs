//! `prove audit`: that a gateway's ledger doubles no record and on strict routes loses none, whatever is done to it.
//!
//! A gate with a ledger stands before an engine that keeps its own account by request id; at the end the two are
//! held against each other.
//! Invariant: the ledger is read as a stranger would, through the gate's own command line; one violation makes the
//! exit code 1. Counts are judged; times are told, and judged where that is asked for.
//! Not here: what a gateway costs (`race`).

mod aborts;
mod account;
mod calls;
mod crowd;
mod deaths;
mod disk;
mod filters;
mod gate;
mod kills;
mod rows;
mod sessions;
mod verdict;

use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};

use crate::host::{descriptors, process};

/// Proves that a gate's ledger doubles no record, and on strict routes loses none.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    #[command(before_help = "Example:\n  prove audit kills --billing grouped")]
    Kills(kills::Kills),
    #[command(before_help = "Example:\n  prove audit disk")]
    Disk(disk::Disk),
    #[command(before_help = "Example:\n  prove audit aborts --drain")]
    Aborts(aborts::Aborts),
    #[command(before_help = "Example:\n  prove audit deaths --http2")]
    Deaths(deaths::Deaths),
    #[command(before_help = "Example:\n  prove audit filters --attempts 1000000")]
    Filters(filters::Filters),
    #[command(
        before_help = "Example:\n  prove audit sessions --users 1000      a million calls of tools over three gates"
    )]
    Sessions(sessions::Sessions),
}

/// What every audit is told.
#[derive(Debug, Args)]
struct Common {
    /// The gate's program [default: `tollgate` beside this one].
    #[arg(long, value_name = "FILE")]
    gate: Option<PathBuf>,
    /// Where the ledger and the logs are left; it must be empty [default: a temporary directory].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Seed of everything random [default: from the clock].
    #[arg(long)]
    seed: Option<u64>,
    /// Connections that call at once.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4000))]
    users: u16,
    /// Judge times, too, and not only counts: on a machine that does nothing else.
    #[arg(long)]
    times: bool,
    /// Print the verdict as JSON.
    #[arg(long)]
    json: bool,
}

/// The audit could not be held; nothing was proved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditError {
    #[error("{0}")]
    Gate(String),
    #[error("the rig could not be set up: {0}")]
    Rig(#[from] io::Error),
}

/// Holds the audit; whether everything that it asks for was so.
pub(crate) fn audit(options: &Audit) -> Result<bool, AuditError> {
    descriptors::raise();
    process::end_all_on_signal()?;
    match &options.what {
        What::Kills(kills) => kills::kills(kills),
        What::Disk(disk) => disk::disk(disk),
        What::Aborts(aborts) => aborts::aborts(aborts),
        What::Deaths(deaths) => deaths::deaths(deaths),
        What::Filters(filters) => filters::filters(filters),
        What::Sessions(sessions) => sessions::sessions(sessions),
    }
}

/// A place for one audit, taken away afterwards unless it was named.
enum Home {
    Named(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Home {
    fn path(&self) -> &std::path::Path {
        match self {
            Self::Named(path) => path,
            Self::Temporary(dir) => dir.path(),
        }
    }
}

impl Common {
    fn home(&self) -> Result<Home, AuditError> {
        let Some(dir) = &self.dir else {
            let dir = tempfile::Builder::new().prefix("audit-").tempdir()?;
            return Ok(Home::Temporary(dir));
        };
        std::fs::create_dir_all(dir)?;
        if std::fs::read_dir(dir)?.next().is_some() {
            let says = format!(
                "{} is not empty: an audit needs a ledger of its own",
                dir.display()
            );
            return Err(AuditError::Gate(says));
        }
        Ok(Home::Named(dir.canonicalize()?))
    }

    fn program(&self) -> Result<PathBuf, AuditError> {
        process::gate(self.gate.as_deref()).map_err(AuditError::Gate)
    }

    /// The seed, printed before anything random is done.
    fn seed(&self) -> u64 {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH);
        let seed = self
            .seed
            .unwrap_or_else(|| u64::from(clock.unwrap_or_default().subsec_nanos()));
        eprintln!("seed {seed}");
        seed
    }
}
