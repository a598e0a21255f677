//! What `tollgate init` is asked, as its help reads.
//!
//! Not here: what it does (`init`).

use std::path::PathBuf;

use clap::Args;

/// Options of `init`.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Where to write it; a file that is there is left as it is.
    #[arg(short, long, default_value = "tollgate.yaml", value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Print it instead.
    #[arg(long)]
    pub(crate) print: bool,
    /// An engine of yours, such as http://10.0.0.7:8000/v1; may be said again for another.
    #[arg(long, value_name = "URL")]
    pub(crate) engine: Vec<String>,
    /// Do not look for engines on this machine.
    #[arg(long)]
    pub(crate) no_probe: bool,
}
