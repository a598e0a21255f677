//! `tollgate demo`: two simulated engines and the gate, with nothing to install.
//!
//! Not here: the engines themselves (`engine`), the live line and the summary (`screen`).

mod screen;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::Sources;
use engine::{EngineConfig, EngineHandle};

use crate::running::Origin;
use crate::world::World;
use crate::{cli, complain, serve, told};

/// The simulated engines' keys, and the world behind them. The keys exist for one run.
struct DemoWorld {
    on_prem: String,
    frontier: String,
}

impl Sources for DemoWorld {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        World.read(path)
    }

    fn var(&self, name: &str) -> Option<String> {
        match name {
            "ON_PREM_KEY" => Some(self.on_prem.clone()),
            "FRONTIER_KEY" => Some(self.frontier.clone()),
            _ => None,
        }
    }
}

/// Runs the demo until told to stop.
pub(crate) fn run(options: &cli::Demo) -> ExitCode {
    if options.print_config {
        return told(printed(options).trim_end());
    }
    match start(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            complain(&format!("tollgate: {fault}"));
            ExitCode::FAILURE
        }
    }
}

fn start(options: &cli::Demo) -> Result<(), String> {
    let began = Instant::now();
    let world = DemoWorld {
        on_prem: key("on-prem"),
        frontier: key("frontier"),
    };
    let on_prem = engine(
        options,
        "on-prem",
        options.on_prem,
        "gpt-oss-120b",
        &world.on_prem,
    )?;
    let frontier = engine(
        options,
        "frontier",
        options.frontier,
        "gemini-2.5-flash",
        &world.frontier,
    )?;
    let at = |listen, key: &str| {
        let credential = format!("credential: {{ inline: \"${{{key}}}\" }}");
        Engine { listen, credential }
    };
    let text = document(
        options,
        &at(on_prem.addr(), "ON_PREM_KEY"),
        &at(frontier.addr(), "FRONTIER_KEY"),
    );
    let file = Path::new("demo.yaml");
    let loaded = config::parse_document(file, text.as_bytes(), &world)
        .map_err(|faults| faults.to_string())?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let origin = Origin::none(&loaded);
    let ready = serve::start(loaded, &world, origin)?;
    let admin = ready.admin.local_addr().unwrap_or(options.admin);
    screen::introduce(
        ready.running.gate.address(),
        admin,
        on_prem.addr(),
        frontier.addr(),
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(async {
        let live = screen::live(Arc::clone(&ready.running));
        serve::until_stopped(&ready, live).await;
    });
    // With it go the tasks that hold on to the gate.
    drop(runtime);
    let counted = serve::end(ready).ok_or("the gate did not end, so there is no summary")?;
    screen::summary(&counted.by_workload(), began.elapsed());
    on_prem.stop();
    frontier.stop();
    Ok(())
}

fn engine(
    options: &cli::Demo,
    name: &str,
    listen: SocketAddr,
    model: &str,
    key: &str,
) -> Result<EngineHandle, String> {
    engine::spawn_thread(EngineConfig {
        listen,
        models: vec![model.to_owned()],
        api_key: Some(key.to_owned()),
        ttft: Duration::from_millis(options.ttft_ms),
        inter_token: Duration::from_millis(options.inter_token_ms),
        inspect: true,
        ..EngineConfig::default()
    })
    .map_err(|error| {
        format!("cannot start the simulated engine {name} on {listen}: {error}; choose another address with --{name}")
    })
}

/// An engine, as a backend of the configuration.
struct Engine {
    listen: SocketAddr,
    /// A field, or a comment in its place.
    credential: String,
}

/// A start for a configuration of one's own, which is good as it stands: the keys of the simulated
/// engines exist for one run only.
fn printed(options: &cli::Demo) -> String {
    let at = |listen, name: &str| Engine {
        listen,
        credential: format!("# credential: {{ file: secrets/{name} }}  # its key"),
    };
    document(
        options,
        &at(options.on_prem, "on-prem"),
        &at(options.frontier, "frontier"),
    )
}

/// The white paper's set-up as a configuration file.
fn document(options: &cli::Demo, on_prem: &Engine, frontier: &Engine) -> String {
    let log = options.access_log.as_ref().map_or_else(
        || "off".into(),
        |path| {
            // A name alone could be taken for a word, and a `$` for a variable.
            let path = Path::new(".").join(path).display().to_string();
            // A JSON string is a YAML string.
            serde_json::Value::from(path.replace('$', "$$")).to_string()
        },
    );
    format!(
        "listen: {{ data: \"{data}\", admin: \"{admin}\" }}
access_log: {log}
identity: {{ header: x-workload-app }}
backends:
  on-prem:
    url: http://{}/v1
    {}
    models: [gpt-oss-120b]
  frontier:
    url: http://{}/v1
    {}
    models: [gemini-2.5-flash]
routes:
  - {{ workload: toolbench-agent, backend: frontier, model: gemini-2.5-flash }}
  - workload: [swe-rebench-ide, terminal-bench-ci]
    backend: on-prem
    limits: [ {{ requests: 2, per: 1m }}, {{ tokens: 100000, per: 1m }} ]
prices:
  gpt-oss-120b: {{ input: 0.10, output: 0.40, per: 1M }}
  gemini-2.5-flash: {{ input: 0.30, output: 2.50, per: 1M }}
",
        on_prem.listen,
        on_prem.credential,
        frontier.listen,
        frontier.credential,
        data = options.listen,
        admin = options.admin,
    )
}

/// A key for one run, from the randomness that seeds hash maps.
fn key(name: &str) -> String {
    let word = || RandomState::new().build_hasher().finish();
    format!("sk-demo-{name}-{:016x}{:016x}", word(), word())
}

#[cfg(test)]
mod tests;
