//! What `tollgate explain` is asked, as its help reads.
//!
//! Not here: the answer (`explain`).

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::Args;

/// Options of `explain`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    TOLLGATE_CREDENTIAL=$KEY tollgate explain --model gpt-4o\n  \
    tollgate explain --header 'x-workload-app: chat' --model gpt-4o --from 10.1.2.3\n\n\
    Exit codes: 0 the call would go upstream, 1 it would be refused, or nobody can tell.")]
pub(crate) struct Explain {
    /// Configuration file [default: tollgate.yaml of the current directory, else the environment].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The model that the call asks for.
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The call's path.
    #[arg(long, default_value = "/v1/chat/completions", value_name = "PATH")]
    pub(crate) path: String,
    /// The call's method.
    #[arg(long, default_value = "POST", value_name = "METHOD")]
    pub(crate) method: String,
    /// A header of the call; may be repeated. A credential stands better in the variable TOLLGATE_CREDENTIAL.
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) header: Vec<String>,
    /// A file with the call's body [default: a body with the model alone].
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) body: Option<PathBuf>,
    /// The address that it comes from.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_name = "ADDRESS")]
    pub(crate) from: IpAddr,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn header(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some((name, _)) if !name.is_empty() && !text.contains(['\r', '\n']) => Ok(text.to_owned()),
        _ => Err("write NAME: VALUE".to_owned()),
    }
}
