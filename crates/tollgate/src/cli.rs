//! The command line, as its help reads.
//!
//! Invariant: the help of each verb opens with an example that the command line takes (`pages` has the test).
//! Not here: what the verbs do.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::cluster::ClusterOptions;
use crate::convert::Convert;
use crate::demo::Demo;
use crate::explain::Explain;
use crate::import::Import;
use crate::init::Init;
use crate::keys::Keys;
use crate::logging::LogFormat;
use crate::mcp_list::Mcp;
use crate::mcp_servers::McpServers;
use crate::prices;
use crate::tokens::Tokens;
use crate::usage::Usage;

/// Over the options that every verb takes.
const GENERAL: &str = "General options";

/// An AI gateway: every token passes the gate; every token is counted.
#[derive(Debug, Parser)]
#[command(
    name = "tollgate",
    version = crate::version::VERSION,
    about,
    max_term_width = 80,
    long_about = "An AI gateway: every token passes the gate; every token is counted.\n\n\
        Clients talk to it as if it were OpenAI. It learns which workload is calling, chooses the \
        backend, holds limits, replaces the client's credential by its own, streams the answer, \
        and leaves one record for each exchange.",
    before_help = "Examples:\n  \
        tollgate demo                      two simulated engines and the gate\n  \
        tollgate check                     every fault of tollgate.yaml at once\n  \
        tollgate run -c other.yaml         the gate, by another file\n  \
        OPENAI_API_KEY=… tollgate run      the gate in front of OpenAI, no file needed",
    after_help = "Exit codes: 0 done, 1 refused by configuration or machine, 2 wrong usage.\n\
        Signals: SIGTERM waits drain.delay, then drains and ends; SIGINT drains at once.\n\
        A further one ends the delay, and one during the drain ends what is left of it.\n\
        SIGHUP reloads.",
    disable_help_flag = true,
    disable_version_flag = true
)]
pub(crate) struct Cli {
    /// What to log to standard error: error, warn, info, debug, or a filter such as
    /// `info,proxy=debug`.
    #[arg(
        long,
        global = true,
        env = "TOLLGATE_LOG",
        value_name = "FILTER",
        help_heading = GENERAL
    )]
    pub(crate) log: Option<String>,
    /// How the log is written to standard error.
    #[arg(
        long,
        global = true,
        env = "TOLLGATE_LOG_FORMAT",
        value_name = "FORMAT",
        value_enum,
        default_value_t = LogFormat::Text,
        help_heading = GENERAL
    )]
    pub(crate) log_format: LogFormat,
    /// Print help; -h prints less of it.
    #[arg(short, long, global = true, action = ArgAction::Help, help_heading = GENERAL)]
    help: Option<bool>,
    /// Print the version.
    #[arg(short = 'V', long, action = ArgAction::Version, help_heading = GENERAL)]
    version: Option<bool>,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Write a configuration to start from, by what is found here.
    ///
    /// Found are the variables OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY and the like, and engines of this
    /// machine on the ports that vLLM, SGLang, Ollama, llama.cpp, LM Studio and LiteLLM listen on, which
    /// are asked for their models. No secret is written, and no file is replaced.
    #[command(before_help = "Examples:\n  \
        tollgate init                      writes tollgate.yaml\n  \
        tollgate init --engine http://10.0.0.7:8000/v1 -o gate.yaml\n  \
        tollgate init --print > gate.yaml")]
    Init(Init),
    /// Make a configuration of another gateway's.
    #[command(before_help = "Example:\n  tollgate import litellm config.yaml > tollgate.yaml")]
    Import(Import),
    /// Run the gate.
    ///
    /// The configuration is what -c names, else tollgate.yaml of the current directory: a file of ours, or a
    /// file or directory of Kubernetes' objects. The file and everything it refers to are watched: a change is
    /// taken whole or refused whole, and no exchange in flight is cut. Where there is no file the gate is
    /// made from the environment: OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY,
    /// ANTHROPIC_BASE_URL, GEMINI_API_KEY, GEMINI_BASE_URL; TOLLGATE_DATA and TOLLGATE_ADMIN say
    /// where it listens, and TOLLGATE_TRUST=anyone that whoever reaches it may call.
    #[command(before_help = "Examples:\n  \
        tollgate run                       by tollgate.yaml, else by the environment\n  \
        tollgate run -c gate.yaml          by another file\n  \
        tollgate run --kubernetes          by the objects of the cluster that it runs in\n  \
        tollgate run --mcp-config s.json   with the MCP servers of an editor\n  \
        tollgate --log-format json run     with a log for machines")]
    Run(Run),
    /// Say everything that is wrong with a configuration, and change nothing.
    ///
    /// Faults come first, then warnings; only a fault makes the exit code 1.
    /// The configuration is the file that -c names, else tollgate.yaml of the current directory, else
    /// what `run` would make of the environment. Secrets, certificates, and the directories that the
    /// ledger and the access log are written to are looked at too.
    #[command(before_help = "Example:\n  tollgate check -c gate.yaml")]
    Check(Check),
    /// Print the configuration that Kubernetes' objects come to.
    ///
    /// Objects are those of Gateway API, Envoy Gateway and Envoy AI Gateway (Agent Router): AIGatewayRoute,
    /// AIServiceBackend, BackendSecurityPolicy, BackendTrafficPolicy and the like. What is not honoured is
    /// a fault, what is left out a warning. No secret is printed: -o writes them, each into a file of its own.
    #[command(before_help = "Examples:\n  \
        tollgate convert manifests/        prints tollgate.yaml\n  \
        tollgate convert gateway.yaml -o gate")]
    Convert(Convert),
    /// Say what the gate would make of a call, and why: who calls, which route, which limits.
    ///
    /// Nothing is sent upstream and no limit is used up. The answer goes by the configuration alone, not by
    /// what a running gate has counted.
    Explain(Explain),
    /// Make, list, rotate and revoke keys that clients bring.
    #[command(before_help = "Examples:\n  \
        tollgate keys create --workload chat --expires 90d\n  \
        tollgate keys list")]
    Keys(Keys),
    /// Say what models cost at their providers, by the catalogue that is built in or a file of yours.
    ///
    /// `prices: { catalogue: builtin }` in the configuration makes calls cost that. Each price is a fact with its
    /// source and its day; what has changed since, a file of yours says.
    #[command(before_help = "Examples:\n  \
        tollgate prices --model claude-\n  \
        tollgate prices --print > catalogue.yaml\n  \
        tollgate prices catalogue.yaml --since catalogue.old.yaml")]
    Prices(prices::Options),
    /// Look at the servers of tools (MCP) behind a running gate.
    #[command(before_help = "Example:\n  tollgate mcp list -H 'x-workload-app: ide'")]
    Mcp(Mcp),
    /// Print the JSON Schema of the configuration, for editors.
    #[command(before_help = "Example:\n  tollgate schema > tollgate.schema.json")]
    Schema,
    /// Run two simulated engines and the gate in front of them.
    ///
    /// Nothing is needed: no account, no GPU, no file. The set-up is that of the documentation:
    /// two tiers, three identities, three policies, and a meter: the gate counts every token itself, keeps a
    /// ledger in a directory of its own, and ends with what was spent and by whom.
    #[command(before_help = "Examples:\n  \
        tollgate demo                      waits for calls of yours\n  \
        tollgate demo --workload mixed     makes forty calls itself, and ends\n  \
        tollgate demo --print-config > tollgate.yaml")]
    Demo(Demo),
    /// Compare what the gate counts with what engines count, without a call.
    #[command(before_help = "Example:\n  tollgate tokens check")]
    Tokens(Tokens),
    /// Say what was used, by whom, and what it costs: reports, exports, statements.
    ///
    /// The answers come from the ledger that a gate writes; it may be running.
    #[command(before_help = "Examples:\n  \
        tollgate usage report --by workload,model --period 2026-11\n  \
        tollgate usage --ledger usage.db tail -f")]
    Usage(Usage),
    /// Print the version.
    #[command(before_help = "Example:\n  tollgate version")]
    Version,
    /// Print what a shell needs to complete this command line.
    ///
    /// Where it goes is the shell's: for bash a file tollgate in the directory completions of
    /// bash-completion, for zsh a file _tollgate in a directory of $fpath, for fish
    /// ~/.config/fish/completions/tollgate.fish.
    #[command(before_help = "Examples:\n  \
        tollgate completions bash > /etc/bash_completion.d/tollgate\n  \
        tollgate completions zsh > ~/.zfunc/_tollgate")]
    Completions(Completions),
    /// Print the manual page, or write one for each verb.
    #[command(before_help = "Examples:\n  \
        tollgate man | man -l -            read the page of the whole\n  \
        tollgate man share/man/man1        write a page for each verb")]
    Man(Man),
}

/// Options of `run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Configuration: our file, or a file or directory of Kubernetes' objects [default: tollgate.yaml of the
    /// current directory, else the environment].
    #[arg(short, long, value_name = "FILE|DIR")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
    #[command(flatten)]
    pub(crate) tools: McpServers,
}

/// Options of `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Configuration: our file, or a file or directory of Kubernetes' objects [default: tollgate.yaml of the
    /// current directory, else the environment].
    #[arg(short, long, value_name = "FILE|DIR")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tools: McpServers,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Where to write a page for each verb; it is made where it does not exist.
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// The verbs whose configuration is named with `-c`.
const CONFIGURED: [&str; 5] = ["run", "check", "explain", "keys", "tokens"];

/// A fault of the command line, with what was probably meant where a file stands without its `-c`.
pub(crate) fn advised(mut fault: clap::Error) -> clap::Error {
    let takes_file = std::env::args_os()
        .any(|word| word.to_str().is_some_and(|word| CONFIGURED.contains(&word)));
    if let Some(file) = bare_file(&fault).filter(|_| takes_file) {
        let tip = format!("a configuration is named by '-c {file}'");
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        fault.insert(ContextKind::Suggested, tips);
    }
    fault
}

/// The word that was not expected, where it looks like a document.
fn bare_file(fault: &clap::Error) -> Option<String> {
    if !matches!(
        fault.kind(),
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand
    ) {
        return None;
    }
    let context = fault
        .get(ContextKind::InvalidArg)
        .or_else(|| fault.get(ContextKind::InvalidSubcommand));
    let Some(ContextValue::String(word)) = context else {
        return None;
    };
    let is_document = [".yaml", ".yml"].iter().any(|end| word.ends_with(end));
    (is_document && !word.starts_with('-')).then(|| word.clone())
}
