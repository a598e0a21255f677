//! `prove upstream`: the fixed-latency upstream of a race, in a process of its own.
//!
//! A process, so that its CPU time, memory and descriptors are its own; its guard ends it.
//! Not here: what it answers (`engine::fixed`).

use std::io::{self, Write as _};
use std::net::TcpListener;
use std::thread;

use clap::Args;
use engine::fixed::{FixedConfig, spawn_thread};

use crate::host::{descriptors, ports};

/// Where it listens.
#[derive(Debug, Args)]
pub(crate) struct Upstream {
    #[arg(long)]
    port: u16,
    /// Whoever connects here is told how many connections there were.
    #[arg(long)]
    count_port: Option<u16>,
}

/// Serves until it is ended from outside.
pub(crate) fn serve(options: &Upstream) -> io::Result<()> {
    descriptors::raise();
    let server = spawn_thread(FixedConfig {
        listen: ports::loopback(options.port),
        ..FixedConfig::default()
    })?;
    let Some(port) = options.count_port else {
        loop {
            thread::park();
        }
    };
    let listener = TcpListener::bind(ports::loopback(port))?;
    tell(&listener, || server.stats().connections)
}

/// Tells whoever connects a count; ends where no connection can be taken.
pub(crate) fn tell(listener: &TcpListener, count: impl Fn() -> u64) -> io::Result<()> {
    loop {
        let (mut stream, _) = listener.accept()?;
        // Whoever is gone is not told.
        let _ = write!(stream, "{}", count());
    }
}
