//! The process's own log, on standard error.
//!
//! Invariant: no prompt, credential or header value of a client is ever logged.
//! Not here: the access log (`telemetry`), what keeps the gate from its work (`conditions`).

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

use crate::book::placed;

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people, in colour on a terminal unless NO_COLOR is set.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging; `filter` or `info`.
pub(crate) fn start(filter: Option<&str>, format: LogFormat) {
    let (filter, fault) = match understood(filter.unwrap_or("info")) {
        Ok(filter) => (filter, None),
        Err(fault) => (EnvFilter::new("info"), Some(fault)),
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Lines);
    match format {
        LogFormat::Text => log.with_ansi(wants_colour()).init(),
        LogFormat::Json => log.json().flatten_event(true).with_ansi(false).init(),
    }
    if let Some(fault) = fault {
        tracing::warn!(%fault, "the log filter is not understood; logging at info");
    }
}

/// Who is handed the lines in place of standard error.
static ASIDE: Mutex<Option<SyncSender<String>>> = Mutex::new(None);

/// Hands lines to somebody else, so that they do not tear a picture on the terminal; what finds no room there is
/// lost. `None` has them written again.
pub fn aside(to: Option<SyncSender<String>>) {
    *ASIDE.lock().unwrap_or_else(PoisonError::into_inner) = to;
}

/// Where lines go: each comes in one piece.
struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = String::from_utf8_lossy(bytes);
        let line = placed(&line);
        let aside = ASIDE.lock().unwrap_or_else(PoisonError::into_inner);
        match &*aside {
            None => io::stderr().write_all(line.as_bytes())?,
            Some(to) => drop(to.try_send(line.into_owned())),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// The filter, or what is wrong with it. A word alone that is no level would be taken for the name of a module,
/// and turn off everything else.
fn understood(filter: &str) -> Result<EnvFilter, String> {
    const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
    let is_word = |part: &str| !part.contains(['=', '[']);
    let is_level = |part: &str| LEVELS.iter().any(|level| part.eq_ignore_ascii_case(level));
    let parts = filter.split(',').map(str::trim);
    for part in parts.filter(|part| !part.is_empty() && is_word(part)) {
        if !is_level(part) {
            return Err(format!(
                "{part:?} is no level; write error, warn, info, debug, trace, off, or a module with its level, such as proxy=debug"
            ));
        }
    }
    EnvFilter::try_new(filter).map_err(|fault| fault.to_string())
}

fn wants_colour() -> bool {
    std::io::stderr().is_terminal() && !forbids_colour()
}

/// Whether `NO_COLOR` says something (<https://no-color.org>).
pub fn forbids_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::understood;

    #[test]
    fn a_word_that_is_no_level_is_told_and_never_turns_the_log_off() {
        for good in ["info", "WARN", "off", "info,proxy=debug", "proxy=trace"] {
            assert!(understood(good).is_ok(), "{good}");
        }
        for bad in ["warning", "loud", "info,verbose"] {
            let fault = understood(bad).err().unwrap_or_default();
            assert!(fault.contains("is no level"), "{bad}: {fault}");
        }
    }
}
