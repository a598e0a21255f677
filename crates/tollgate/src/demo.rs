//! `tollgate demo`: its options, and the program that is the demo. The gate itself has no engine in it, be it a simulated one.
//!
//! Invariant: the demo takes the place of this process, so that terminal, signals and exit code are its own.
//! Not here: the demo (the crate `demo`).

use std::env;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Args, ValueEnum};

use crate::output::complain;

/// The demo's program, which stands beside this one.
const PROGRAM: &str = "tollgate-demo";

/// What is logged unless something else is asked for: what goes wrong. That its ledger is new is not.
pub(crate) const LOG: &str = "warn,tollgate::ledger_log=error";

/// What the demo asks of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// All callers, mostly short questions, streamed and whole.
    Mixed,
    /// Three agents whose conversations grow turn by turn.
    Agents,
    /// More than the limits let through.
    Limits,
}

impl Workload {
    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Agents => "agents",
            Self::Limits => "limits",
        }
    }
}

/// Options of `demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// Where clients connect.
    #[arg(long, default_value = "127.0.0.1:1975", value_name = "ADDRESS", value_parser = address)]
    pub listen: SocketAddr,
    /// Metrics, health and configuration.
    #[arg(long, default_value = "127.0.0.1:1976", value_name = "ADDRESS", value_parser = address)]
    pub admin: SocketAddr,
    /// The simulated engine of tier 2, which serves gpt-oss-120b.
    #[arg(long, default_value = "127.0.0.1:1977", value_name = "ADDRESS", value_parser = address)]
    pub on_prem: SocketAddr,
    /// The simulated engine of tier 1, which serves gemini-2.5-flash.
    #[arg(long, default_value = "127.0.0.1:1978", value_name = "ADDRESS", value_parser = address)]
    pub frontier: SocketAddr,
    /// Append one JSON line for each exchange to this file.
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<PathBuf>,
    /// Time to the first token of the simulated engines, milliseconds.
    #[arg(long, default_value_t = 80, value_name = "MS")]
    pub ttft_ms: u64,
    /// Time between tokens of the simulated engines, milliseconds.
    #[arg(long, default_value_t = 15, value_name = "MS")]
    pub inter_token_ms: u64,
    /// Make calls as well, for those who only look, and end after the last one.
    #[arg(long, value_name = "NAME", value_enum)]
    pub workload: Option<Workload>,
    /// How many calls it makes, at most 100000.
    #[arg(long, default_value_t = 40, value_name = "N", requires = "workload",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub calls: u32,
    /// Time between two of its calls, milliseconds, at least 5.
    #[arg(long, default_value_t = 250, value_name = "MS", requires = "workload",
        value_parser = clap::value_parser!(u64).range(5..=60_000))]
    pub every_ms: u64,
    /// What its calls are made from: the same seed makes the same calls [default: by chance].
    #[arg(long, value_name = "N", requires = "workload")]
    pub seed: Option<u64>,
    /// One line a call in place of the live view, which needs a terminal.
    #[arg(long)]
    pub plain: bool,
    /// Keep the ledger when the demo ends, and say where it is.
    #[arg(long)]
    pub keep: bool,
    /// Print the demo's configuration file and end: a start for one of your own, without the keys of
    /// the simulated engines.
    #[arg(long)]
    pub print_config: bool,
    /// Be the demo's server of tools, over standard input and output.
    #[arg(long, hide = true)]
    pub serve_tools: bool,
}

/// Becomes the demo's program, with the words of this one. What comes back is what went wrong.
pub(crate) fn run_beside() -> ExitCode {
    complain(&format!("tollgate: {}", exec(&program())));
    ExitCode::FAILURE
}

/// The demo's program. Where there is no `/proc` to say where this one is, it is looked for as this one was named.
fn program() -> PathBuf {
    let named = || env::args_os().next().map(PathBuf::from);
    let this = env::current_exe().ok().or_else(named);
    this.unwrap_or_default().with_file_name(PROGRAM)
}

fn exec(program: &Path) -> String {
    let error = Command::new(program).args(env::args_os().skip(1)).exec();
    let at = program.display();
    if error.kind() == io::ErrorKind::NotFound {
        return format!(
            "the demo is a program of its own, and there is no {at}: packages hold it beside tollgate, and \
             `cargo build --release` makes both"
        );
    }
    format!("cannot start {at}: {error}")
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "write an IP address and a port, such as 127.0.0.1:1975".to_owned())
}
