//! What `tollgate explain` is asked, as its help reads.
//!
//! Not here: the answer (`explain`).

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::Args;

use crate::mcp_servers::McpServers;

/// Options of `explain`.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  \
    tollgate explain --header 'x-workload-app: chat' --model gpt-4o\n  \
    TOLLGATE_CREDENTIAL=$KEY tollgate explain --model gpt-4o\n  \
    tollgate explain --model gpt-4o --at 2026-11-23T20:00Z\n  \
    tollgate explain --header 'x-workload-app: ide' --tool github__search\n  \
    tollgate explain --mcp-config .mcp.json --tool github__search",
    after_help = "It goes by the configuration alone, not by what a running gate has counted, and asks whoever a gate would ask.\n\n\
    Exit codes: 0 the call would go upstream, 1 it would be refused, or nobody can tell."
)]
pub(crate) struct Explain {
    /// Configuration file [default: tollgate.yaml of the current directory, else the environment].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tools: McpServers,
    /// The model that the call asks for.
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The call's path [default: /v1/chat/completions; with --tool /mcp, or the one path of `mcp`].
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// The tool that it calls, by its whole name, of the servers of tools at that path.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["model", "body"])]
    pub(crate) tool: Option<String>,
    /// The call's method.
    #[arg(long, default_value = "POST", value_name = "METHOD")]
    pub(crate) method: String,
    /// A header of the call; may be repeated. A credential stands better in the variable TOLLGATE_CREDENTIAL.
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) header: Vec<String>,
    /// A file with the call's body, of a call to /mcp with its message [default: a body with the model and a word].
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub(crate) body: Option<PathBuf>,
    /// When it is made, such as 2026-11-23T20:00Z [default: now].
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(crate) at: Option<u64>,
    /// The address that it comes from.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_name = "ADDRESS")]
    pub(crate) from: IpAddr,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Explain {
    /// The call's path, where it calls no tool.
    pub(super) fn path(&self) -> &str {
        self.path.as_deref().unwrap_or("/v1/chat/completions")
    }
}

/// Milliseconds since the Unix epoch.
fn moment(text: &str) -> Result<u64, String> {
    read_moment(text).ok_or_else(|| "write a time in UTC, such as 2026-11-23T20:00Z".to_owned())
}

fn read_moment(text: &str) -> Option<u64> {
    let (day, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (begins, ends) = ledger::date::parse(day).filter(|_| day.len() == 10)?;
    let mut parts = time.split(':');
    let mut part = |most: u64| {
        let part = parts.next()?;
        let is_two_digits = part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
        let number = is_two_digits.then(|| part.parse::<u64>().ok()).flatten();
        number.filter(|number| *number <= most)
    };
    let (hours, minutes) = (part(23)?, part(59)?);
    let seconds = if time.len() > 5 { part(59)? } else { 0 };
    let moment = begins + ((hours * 60 + minutes) * 60 + seconds) * 1000;
    (parts.next().is_none() && moment < ends).then_some(moment)
}

fn header(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some((name, _)) if !name.is_empty() && !text.contains(['\r', '\n']) => Ok(text.to_owned()),
        _ => Err("write NAME: VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::read_moment;

    #[test]
    fn a_moment_is_read_in_utc_and_nothing_else() {
        let day = 1_795_392_000_000;
        for (text, moment) in [
            ("2026-11-23T00:00Z", Some(day)),
            ("2026-11-23T20:01Z", Some(day + (20 * 60 + 1) * 60_000)),
            ("2026-11-23T23:59:59Z", Some(day + 86_399_000)),
            ("2026-11-23T24:00Z", None),
            ("2026-11-23T20:00", None),
            ("2026-11-23 20:00Z", None),
            ("2026-11T20:00Z", None),
            ("2026-02-30T20:00Z", None),
            ("2026-11-23T2:00Z", None),
            ("2026-11-23T20:00:00:00Z", None),
            ("2026-11-23T20:00:Z", None),
            ("", None),
        ] {
            assert_eq!(read_moment(text), moment, "{text}");
        }
    }
}
