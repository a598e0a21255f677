//! The demo's configuration: the white paper's set-up with a meter.
//!
//! Not here: the keys of the simulated engines (`demo`).

use std::net::SocketAddr;
use std::path::Path;

use tollgate::demo::Demo;

/// An engine, as a backend of the configuration.
pub(crate) struct Engine {
    pub(crate) listen: SocketAddr,
    /// A field, or a comment in its place.
    pub(crate) credential: String,
}

/// A start for a configuration of one's own, which is good as it stands: the keys of the simulated
/// engines exist for one run only.
pub(crate) fn printed(options: &Demo) -> String {
    let at = |listen, name: &str| Engine {
        listen,
        credential: format!("# credential: {{ file: secrets/{name} }}  # its key"),
    };
    document(
        options,
        &at(options.on_prem, "on-prem"),
        &at(options.frontier, "frontier"),
        Path::new("usage.db"),
    )
}

/// A path as a scalar: a name alone could be taken for a word, and a `$` for a variable.
fn scalar(path: &Path) -> String {
    let path = Path::new(".").join(path).display().to_string();
    // A JSON string is a YAML string.
    serde_json::Value::from(path.replace('$', "$$")).to_string()
}

/// The part of it with the server of tools, which is the demo's own program.
pub(crate) fn tools(program: &Path, secret: &str) -> String {
    let program = serde_json::Value::from(program.display().to_string().replace('$', "$$"));
    format!(
        "mcp:
  secret: {{ inline: {secret} }}
  servers: {{ demo: {{ command: {program}, args: [demo, --serve-tools] }} }}
  routes: [ {{ workload: [toolbench-agent, swe-rebench-ide, terminal-bench-ci] }} ]
"
    )
}

/// The configuration file.
pub(crate) fn document(
    options: &Demo,
    on_prem: &Engine,
    frontier: &Engine,
    ledger: &Path,
) -> String {
    let log = options.access_log.as_deref();
    let log = log.map_or_else(|| "off".into(), scalar);
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
  - workload: toolbench-agent
    backend: frontier
    model: gemini-2.5-flash
    limits: [ {{ tokens: 30000, per: 1m, burst: 120000 }} ]
  - workload: [swe-rebench-ide, terminal-bench-ci]
    match: {{ model: gpt-oss-120b }}
    backend: on-prem
    limits: [ {{ requests: 2, per: 1m, window: rolling }}, {{ tokens: 100000, per: 1m }} ]
prices:
  gpt-oss-120b: {{ input: 0.10, output: 0.40, per: 1M }}
  gemini-2.5-flash: {{ input: 0.30, output: 2.50, per: 1M }}
budgets:
  everybody: {{ money: 0.05, per: day }}
# The gate's own count beside the engines': a second witness.
tokenizers: {{ gpt-oss-120b: harmony, gemini-2.5-flash: cl100k }}
counting: {{ calibration: off }}
ledger: {{ path: {ledger} }}
",
        on_prem.listen,
        on_prem.credential,
        frontier.listen,
        frontier.credential,
        data = options.listen,
        admin = options.admin,
        ledger = scalar(ledger),
    )
}
