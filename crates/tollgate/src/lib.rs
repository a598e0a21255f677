//! The gate: reads the command line, wires the crates together, and ends with an exit code. A library, so that a program of its
//! own can run a gate beside other things, as the demo does.
//!
//! Exit codes: 0 done; 1 a configuration or the machine says no; 2 wrong usage.
//! Not here: anything that one of the crates below decides or does; the demo, of which only its options are known.

mod again;
mod allocator;
mod authority;
mod balancing;
mod book;
mod budget;
mod calibration;
mod check;
mod cli;
mod cluster;
mod conditions;
mod controller;
mod convert;
mod credential;
pub mod demo;
mod descriptions;
pub mod embedded;
mod explain;
mod fixed;
mod gateway;
mod host;
mod identity;
mod import;
mod init;
mod issuers;
mod keyring;
mod keys;
mod kubernetes;
mod ledger_log;
mod listeners;
mod located;
pub mod logging;
mod login;
mod manifests;
mod marks;
mod mcp_list;
mod mcp_servers;
mod metrics;
mod needs;
pub mod output;
mod pages;
mod pickers;
mod pool;
mod prices;
mod responses;
mod running;
mod seldom;
mod serve;
mod services;
mod source;
mod stdio;
mod tokens;
mod tool_catalogue;
mod traces;
mod trust;
mod usage;
mod version;
mod watch;
mod watched;
pub mod width;
pub mod words;
mod world;
mod writable;

use std::process::ExitCode;
use std::thread::{self, JoinHandle};

use ::authority::STACK_BYTES;
use clap::{CommandFactory, Parser};
use output::{complain, judged, told};
pub use serve::outlive_file_limit;

/// Chosen by measurement: see docs/decisions/0003-allocator.md.
#[global_allocator]
static ALLOCATOR: allocator::Mimalloc = allocator::Mimalloc;

/// Runs the demo.
pub type RunDemo = fn(&demo::Demo) -> ExitCode;

/// The program: does what its command line says, and gives the exit code. Without a demo it becomes the program that has one.
pub fn run(run_demo: Option<RunDemo>) -> ExitCode {
    let command = cli::Cli::try_parse().unwrap_or_else(|fault| cli::advised(fault).exit());
    // That one logs what there is to log.
    if let (cli::Verb::Demo(_), None) = (&command.verb, run_demo) {
        return demo::run_beside();
    }
    let filter = match command.verb {
        cli::Verb::Demo(_) => command.log.as_deref().or(Some(demo::LOG)),
        _ => command.log.as_deref(),
    };
    logging::start(filter, command.log_format);
    leave_no_core();
    // The main thread has what stack `ulimit -s` says, and most verbs read rules.
    let thread = thread::Builder::new().name("tollgate".to_owned());
    let running = thread
        .stack_size(STACK_BYTES)
        .spawn(move || run_verb(command.verb, run_demo));
    match running.map(JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => {
            complain(&format!("tollgate: cannot start a thread: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run_verb(verb: cli::Verb, run_demo: Option<RunDemo>) -> ExitCode {
    match verb {
        cli::Verb::Run(run) => serve::run(&run),
        cli::Verb::Check(check) => check::check(&check),
        cli::Verb::Convert(options) => convert::convert(&options),
        cli::Verb::Completions(asked) => {
            told(pages::completions(cli::Cli::command(), asked.shell).trim_end())
        }
        cli::Verb::Demo(demo) => run_demo.map_or_else(demo::run_beside, |run| run(&demo)),
        cli::Verb::Explain(asked) => match explain::explain(&asked) {
            Ok((text, is_let_in)) => judged(&text, is_let_in),
            Err(fault) => {
                complain(&format!("tollgate: {fault}"));
                ExitCode::FAILURE
            }
        },
        cli::Verb::Import(asked) => import::import(&asked),
        cli::Verb::Init(asked) => match init::init(&asked) {
            Ok(text) => told(text.trim_end()),
            Err(fault) => {
                complain(&format!("tollgate init: {fault}"));
                ExitCode::FAILURE
            }
        },
        cli::Verb::Keys(asked) => match keys::keys(&asked) {
            Ok(text) => told(text.trim_end()),
            Err(fault) => {
                complain(&format!("tollgate: {fault}"));
                ExitCode::FAILURE
            }
        },
        cli::Verb::Man(asked) => match asked.dir {
            None => told(pages::whole(cli::Cli::command()).trim_end()),
            Some(dir) => match pages::write(cli::Cli::command(), &dir) {
                Ok(count) => told(&format!("{count} pages in {}", dir.display())),
                Err(fault) => {
                    complain(&format!("tollgate: {fault}"));
                    ExitCode::FAILURE
                }
            },
        },
        cli::Verb::Prices(options) => prices::prices(&options),
        cli::Verb::Mcp(asked) => match mcp_list::run(&asked) {
            Ok(text) => told(text.trim_end()),
            Err(fault) => {
                complain(&format!("tollgate: {fault}"));
                ExitCode::FAILURE
            }
        },
        cli::Verb::Schema => told(config::json_schema().trim_end()),
        cli::Verb::Tokens(asked) => match tokens::tokens(&asked) {
            Ok((text, is_good)) => judged(&text, is_good),
            Err(tokens::Fault::Asked(says)) => {
                complain(&format!("tollgate tokens: {says}"));
                ExitCode::from(2)
            }
            Err(tokens::Fault::Said(says)) => {
                complain(&format!("tollgate tokens: {says}"));
                ExitCode::FAILURE
            }
        },
        cli::Verb::Usage(usage) => usage::usage(&usage),
        cli::Verb::Version => told(&format!("tollgate {}", version::VERSION)),
    }
}

/// A core file would hold every secret and prompt of the moment. Whoever needs one raises the
/// limit again (`prlimit --core`): the hard limit stays.
fn leave_no_core() {
    let core = rlimit::Resource::CORE;
    if let Err(error) = core.get_hard().and_then(|hard| core.set(0, hard)) {
        tracing::warn!(%error, "cannot forbid core files, which hold secrets");
    }
}
