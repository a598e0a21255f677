//! `prove`: the proving ground's one binary.
//!
//! Reason to exist: being a process. Commands are modules; this file only chooses between them.
//! Exit codes: 0 all is well, 1 a result is not to be trusted or not what was asked for, 2 nothing could be done, 4 the
//! generator of a load could not keep up, 5 somebody could not be reached.

mod agents;
mod agentx;
mod audit;
mod baseline;
mod campaign;
mod columns;
mod corpus;
#[cfg(test)]
mod examples;
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
mod tool_server;
mod upstream;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "prove",
    version,
    max_term_width = 80,
    about = "Measures gateways, ours and others, with the same hands",
    before_help = "Examples:\n  \
        prove run scenarios/white-paper --virtual --out results/virtual\n  \
        prove race --quick\n  \
        prove verify --suite suite.toml --target http://127.0.0.1:1975",
    disable_help_flag = true,
    disable_version_flag = true
)]
struct Cli {
    #[command(flatten)]
    _general: General,
    #[command(subcommand)]
    command: Command,
}

/// What every verb takes: clap prints it and ends.
#[derive(clap::Args)]
#[command(next_help_heading = "General options")]
struct General {
    /// Print help; -h prints less of it.
    #[arg(short, long, global = true, action = clap::ArgAction::Help)]
    help: Option<bool>,
    /// Print the version.
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

#[derive(Subcommand)]
enum Command {
    #[command(before_help = "Examples:\n  \
        prove run scenarios/white-paper --virtual --out results/virtual\n  \
        prove run scenarios/white-paper-short --out results/short")]
    Run(Box<campaign::Options>),
    #[command(before_help = "Examples:\n  \
        prove race --quick                          what is installed, a minute or two\n  \
        prove race --subjects direct,nginx,tollgate")]
    Race(race::Race),
    #[command(before_help = "Examples:\n  \
        prove oauth-rbac --variants jwt,ext_authz --iterations 1\n  \
        prove oauth-rbac --target https://gateway/echo --tokens tokens.txt")]
    OauthRbac(oauth_rbac::OauthRbac),
    #[command(
        before_help = "Example:\n  prove agents --agents 20 --sessions 200 --out results/agents"
    )]
    Agents(Box<agents::Agents>),
    #[command(
        name = "agentx",
        before_help = "Examples:\n  \
        prove agentx scenarios/agentx/samples.jsonl --virtual --lanes 8\n  \
        prove agentx traces.jsonl --target http://127.0.0.1:8000 --lanes 32 --gpus 8"
    )]
    AgentX(Box<agentx::AgentX>),
    #[command(before_help = "Examples:\n  \
        prove audit kills                            a million calls, a hundred kill -9\n  \
        prove audit aborts --drain")]
    Audit(audit::Audit),
    /// Recorded agent traffic as requests that are ready to be sent.
    #[command(
        subcommand,
        before_help = "Examples:\n  \
            prove corpus build --profile swe --reader openhands swe-rebench.parquet --out corpus\n  \
            prove corpus inspect corpus"
    )]
    Corpus(Box<corpus::Command>),
    #[command(before_help = "Examples:\n  \
        prove load corpus --target http://127.0.0.1:1975 --users 20\n  \
        prove load corpus --target http://127.0.0.1:1975 --rate 10 --duration 60s")]
    Load(Box<load::Options>),
    #[command(before_help = "Examples:\n  \
        prove engine                                 a simulated engine on 127.0.0.1:8000\n  \
        prove engine --preset gpt-oss-120b.h100x4 --dcgm 127.0.0.1:9400")]
    Engine(Box<Engine>),
    #[command(
        before_help = "Example:\n  prove scrape --target engine=http://127.0.0.1:8000/metrics --query 'rate(engine:vllm:generation_tokens_total)'"
    )]
    Scrape(scrape::command::Scrape),
    #[command(before_help = "Examples:\n  \
        prove verify --suite scenarios/white-paper/verify.toml --gateway scenarios/white-paper/gateways/tollgate\n  \
        prove verify --suite suite.toml --target http://127.0.0.1:1975")]
    Verify(Box<verify::Options>),
    #[command(
        before_help = "Example:\n  prove tap --listen 127.0.0.1:8001 --upstream 127.0.0.1:8000 --out exchanges.jsonl"
    )]
    Tap(tap::command::Relay),
    #[command(
        before_help = "Example:\n  prove overhead --target http://127.0.0.1:1975 --direct http://127.0.0.1:8000 --body call.json"
    )]
    Overhead(Box<overhead::command::Isolate>),
    #[command(before_help = "Examples:\n  \
        prove report results/today\n  \
        prove report results/today results/last-week --out comparison.html")]
    Report(report::Report),
    /// The upstream of a race.
    #[command(hide = true)]
    Upstream(upstream::Upstream),
    /// One of the processes that send the load of a race: what, it reads from its standard input.
    #[command(hide = true)]
    LoadWorker,
    /// Servers of tools, the upstream of a race of MCP gateways.
    #[command(hide = true)]
    ToolServer(tool_server::ToolServer),
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
        Command::Agents(options) => match agents::agents(&options) {
            Ok(verdict) => ExitCode::from(verdict.exit_code()),
            Err(error) => refuse(&error),
        },
        Command::AgentX(options) => match agentx::agentx(&options) {
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
        Command::LoadWorker => match race::fleet::worker::work() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => refuse(&error),
        },
        Command::ToolServer(options) => match tool_server::serve(&options) {
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
