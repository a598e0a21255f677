//! `tollgate import`: another gateway's configuration as one of the gate's.
//!
//! Invariant: the document alone goes to standard output, and nothing is written to a file.
//! Not here: the document (`config::import_litellm` and those beside it).

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use config::{Fault, Faults, Located};
use ledger::report::wrapped;

use crate::output::{complain, told};
use crate::width;
use crate::words::counted;
use crate::world::World;

/// Options of `import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    #[command(subcommand)]
    from: From,
}

/// Whose configuration it is.
#[derive(Debug, Subcommand)]
enum From {
    /// Print a tollgate.yaml made of a configuration of LiteLLM's proxy.
    ///
    /// Models, aliases, fallbacks, addresses, limits and prices are taken over. A comment stands where
    /// something differs or has no counterpart, and says what to use instead. No secret is taken over: one
    /// that stands in the file becomes the name of a variable. What has to be seen to is said on standard error.
    /// `tollgate check` then says what is still missing.
    #[command(before_help = "Example:\n  tollgate import litellm config.yaml > tollgate.yaml")]
    Litellm(Litellm),
    /// Print a tollgate.yaml made of a config of Portkey's gateway, in JSON.
    ///
    /// Targets with their providers, addresses and models are taken over, in their order. A comment stands for each setting that
    /// differs or has no counterpart. No secret is taken over.
    #[command(before_help = "Example:\n  tollgate import portkey config.json > tollgate.yaml")]
    Portkey(Portkey),
    /// Print a tollgate.yaml made of the `llm` section of a configuration of agentgateway.
    ///
    /// Models with their providers, addresses and the models behind them are taken over. A comment stands for each setting that
    /// differs or has no counterpart. No secret is taken over.
    #[command(before_help = "Example:\n  tollgate import agentgateway config.yaml > tollgate.yaml")]
    Agentgateway(Agentgateway),
}

/// Options of `import agentgateway`.
#[derive(Debug, Args)]
struct Agentgateway {
    /// The configuration of agentgateway.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Options of `import portkey`.
#[derive(Debug, Args)]
struct Portkey {
    /// The config of Portkey's gateway.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Options of `import litellm`.
#[derive(Debug, Args)]
struct Litellm {
    /// The configuration of LiteLLM's proxy.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Prints the document; 1 where there is none.
pub(crate) fn import(options: &Import) -> ExitCode {
    let (made, file) = match &options.from {
        From::Litellm(Litellm { file }) => (config::import_litellm(file, &World), file),
        From::Portkey(Portkey { file }) => (config::import_portkey(file, &World), file),
        From::Agentgateway(Agentgateway { file }) => {
            (config::import_agentgateway(file, &World), file)
        }
    };
    match made {
        Ok(imported) => {
            warn(&imported.warnings, file);
            if imported.left_out > 0 {
                let left = counted(imported.left_out, "comment");
                say(&format!(
                    "{left} of the file say what differs and what has no counterpart"
                ));
            }
            told(imported.text.trim_end())
        }
        Err(Faults {
            faults, warnings, ..
        }) => {
            for fault in &faults {
                say(&Located { file, fault }.to_string());
            }
            warn(&warnings, file);
            ExitCode::FAILURE
        }
    }
}

fn warn(warnings: &[Fault], file: &Path) {
    for fault in warnings {
        say(&format!("warning: {}", Located { file, fault }));
    }
}

/// A line on standard error, broken to its width.
fn say(line: &str) {
    complain(&wrapped(line, width::of(io::stderr()), 2));
}
