//! `prove engine`: a simulated inference engine in the foreground.
//!
//! Invariant: the API key comes from a file, never from the command line, where others could read it.
//! Not here: the engine (`engine`).

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use engine::{Engine, EngineConfig};

/// Serves a simulated engine until it is interrupted.
#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// Address to listen on.
    #[arg(long, default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// A model to serve; may be given more than once.
    #[arg(long = "model", default_value = "gpt-oss-120b")]
    models: Vec<String>,
    /// File that holds the key which clients must present.
    #[arg(long)]
    api_key_file: Option<PathBuf>,
    /// Time to the first token, in milliseconds.
    #[arg(long, default_value_t = 20)]
    ttft_ms: u64,
    /// Time between two tokens, in milliseconds.
    #[arg(long, default_value_t = 5)]
    itl_ms: u64,
}

/// Serves until SIGINT or SIGTERM.
pub(crate) fn simulate(options: &Simulate) -> io::Result<()> {
    let config = EngineConfig {
        listen: options.listen,
        models: options.models.clone(),
        api_key: options.api_key_file.as_ref().map(read_key).transpose()?,
        ttft: Duration::from_millis(options.ttft_ms),
        inter_token: Duration::from_millis(options.itl_ms),
        ..EngineConfig::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let engine = Engine::bind(config)?;
        eprintln!("engine: listening on http://{}/v1", engine.local_addr());
        let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        engine
            .serve(async move {
                tokio::select! { _ = tokio::signal::ctrl_c() => {}, _ = term.recv() => {} }
            })
            .await
    })
}

fn read_key(path: &PathBuf) -> io::Result<String> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let key = fs::read_to_string(path).map_err(named)?.trim().to_owned();
    if key.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{}: empty", path.display()),
        ));
    }
    Ok(key)
}
