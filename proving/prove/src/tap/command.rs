//! `prove tap`: the relay as a process, its stamps as lines of JSON.
//!
//! Invariant: it ends when it is told to, with every stamp written.
//! Not here: relaying (`tap`).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use clap::Args;
use load::source::IdHeader;
use serde_json::json;

use super::{LONGEST_DELAY, Tap, TapConfig};
use crate::interrupt;

/// Relays to an upstream, and writes when the bytes of each exchange passed.
#[derive(Debug, Args)]
pub(crate) struct Relay {
    /// Address to listen on.
    #[arg(long)]
    listen: SocketAddr,
    /// Where everything goes, over HTTP/1.1 without TLS.
    #[arg(long)]
    upstream: SocketAddr,
    /// File for one line of JSON for each exchange, times in nanoseconds of the monotonic clock.
    #[arg(long)]
    out: PathBuf,
    /// Header that carries the ids that `prove` gives.
    #[arg(long, default_value = "x-request-id")]
    id_header: String,
    /// How long the first bytes of each request stay, microseconds: to prove what an instrument resolves.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=LONGEST_DELAY.as_micros() as u64))]
    delay_us: u64,
}

/// What kept it from its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TapError {
    #[error("{0}")]
    Start(String),
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Relays until SIGINT or SIGTERM.
pub(crate) fn relay(options: &Relay) -> Result<(), TapError> {
    let of_file = |source| TapError::File {
        path: options.out.clone(),
        source,
    };
    let id =
        IdHeader::new(&options.id_header).map_err(|error| TapError::Start(error.to_string()))?;
    let mut out = BufWriter::new(File::create(&options.out).map_err(of_file)?);
    let (tap, stamps) = Tap::start(TapConfig {
        listen: options.listen,
        upstream: options.upstream,
        id,
    })
    .map_err(TapError::Start)?;
    tap.delay(Duration::from_micros(options.delay_us), 1);
    eprintln!("tap: http://{} to {}", tap.address, options.upstream);
    let (ended, is_ended) = std::sync::mpsc::sync_channel(1);
    let waiting = crate::runtime::make()?;
    std::thread::spawn(move || {
        let heard = waiting.block_on(async {
            interrupt::asked_to_end()?.await;
            Ok(())
        });
        drop(ended.send(heard));
    });
    loop {
        match stamps.recv_timeout(Duration::from_millis(100)) {
            Ok(stamp) => {
                let line = json!({
                    "id": stamp.id.to_string(), "in_ns": stamp.in_ns, "whole_in_ns": stamp.whole_in_ns,
                    "first_out_ns": stamp.first_out_ns, "last_out_ns": stamp.last_out_ns,
                });
                writeln!(out, "{line}").map_err(of_file)?;
            }
            Err(RecvTimeoutError::Timeout) => {
                out.flush().map_err(of_file)?;
                if let Ok(heard) = is_ended.try_recv() {
                    eprintln!("tap: {:?}", tap.unstamped());
                    return heard.map_err(TapError::Io);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(TapError::Start("bug: the tap's thread panicked".into()));
            }
        }
    }
}
