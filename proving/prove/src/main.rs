//! `prove`: the proving ground's one binary.
//!
//! Reason to exist: being a process. Commands are modules; this file only chooses between them.
//! Exit codes: 0 all is well, 1 a result is not to be trusted or not what was asked for, 2 nothing could be done, 4 the
//! generator of a load could not keep up, 5 somebody could not be reached.

mod audit;
mod campaign;
mod columns;
mod corpus;
mod files;
mod host;
mod interrupt;
mod issuer;
mod load;
#[cfg(test)]
mod moment;
mod numbers;
mod oauth_rbac;
mod offline;
mod overhead;
#[cfg(test)]
mod pages;
mod plot;
mod progress;
mod race;
mod report;
mod runtime;
mod scrape;
mod simulate;
mod subject;
mod tap;
mod text;
mod toml_document;
mod upstream;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    version,
    max_term_width = 80,
    about = "Measures gateways, ours and others, with the same hands"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<campaign::Options>),
    Race(race::Race),
    OauthRbac(oauth_rbac::OauthRbac),
    Audit(audit::Audit),
    /// Recorded agent traffic as requests that are ready to be sent.
    #[command(subcommand)]
    Corpus(Box<corpus::Command>),
    Load(Box<load::Options>),
    Engine(Box<Engine>),
    Scrape(scrape::command::Scrape),
    Verify(Box<verify::Options>),
    Tap(tap::command::Relay),
    Overhead(Box<overhead::command::Isolate>),
    Report(report::Report),
    /// The upstream of a race.
    #[command(hide = true)]
    Upstream(upstream::Upstream),
    /// The issuer of the tokens that callers bring.
    #[command(hide = true)]
    Issuer(issuer::serve::Serve),
    /// Runs a program that ends with us.
    #[command(hide = true)]
    Guard {
        #[arg(long)]
        cgroup: Option<PathBuf>,
        program: String,
        #[arg(last = true)]
        args: Vec<String>,
    },
}

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
struct Engine {
    #[command(subcommand)]
    offline: Option<offline::Offline>,
    #[command(flatten)]
    serve: simulate::Simulate,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(options) => match campaign::run(&options) {
            Ok(verdict) => verdict.into(),
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::from(error.exit_code())
            }
        },
        Command::Race(options) => match race::race(&options) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(error) => refuse(&error),
        },
        Command::OauthRbac(options) => match oauth_rbac::oauth_rbac(&options) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(error) => refuse(&error),
        },
        Command::Audit(options) => match audit::audit(&options) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(error) => refuse(&error),
        },
        Command::Corpus(command) => match corpus::corpus(&command) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(error) => refuse(&*error),
        },
        Command::Load(options) => match load::replay(&options) {
            Ok(ended) => ended.into(),
            Err(error) => refuse(&error),
        },
        Command::Engine(engine) => {
            let done = match &engine.offline {
                Some(what) => offline::offline(what),
                None => simulate::simulate(&engine.serve)
                    .map(|()| true)
                    .map_err(Into::into),
            };
            match done {
                Ok(true) => ExitCode::SUCCESS,
                Ok(false) => ExitCode::from(1),
                Err(error) => refuse(&*error),
            }
        }
        Command::Scrape(options) => match scrape::command::scrape(&options) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(error) => refuse(&error),
        },
        Command::Verify(options) => match verify::verify(&options) {
            Ok(code) => ExitCode::from(code),
            Err(error) => refuse(&error),
        },
        Command::Tap(options) => match tap::command::relay(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => refuse(&error),
        },
        Command::Overhead(options) => match overhead::command::isolate(&options) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(error) => refuse(&error),
        },
        Command::Report(options) => match report::report(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => refuse(&error),
        },
        Command::Upstream(options) => match upstream::serve(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => refuse(&error),
        },
        Command::Issuer(options) => match issuer::serve::serve(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => refuse(&error),
        },
        Command::Guard {
            cgroup,
            program,
            args,
        } => host::guard::guard(&program, &args, cgroup.as_deref()),
    }
}

fn refuse(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(2)
}
