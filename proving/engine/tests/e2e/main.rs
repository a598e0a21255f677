//! What real clients find at the engine's face, with nothing between: the OpenAI SDKs, LangChain's client, promtool.
//!
//! Invariant: a part that is not installed fails the test and says so; `cargo xtask setup` installs all of them.
//! Not here: the same clients behind the gate (`tollgate`'s tests of this name).

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use engine::preset::Preset;
use engine::{EngineConfig, EngineHandle, Hardware, spawn_thread};

fn start(old_metric_names: bool) -> EngineHandle {
    spawn_thread(EngineConfig {
        hardware: Some(Hardware::from(&Preset::load("instant").unwrap())),
        api_key: Some("sk-engine".to_owned()),
        old_metric_names,
        ..EngineConfig::default()
    })
    .unwrap()
}

fn installed(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `cargo xtask e2e`"))
}

/// Runs a script beside this file against a fresh engine; it ends with 0 when all was as it should be.
fn script(interpreter: &str, file: &str) {
    let engine = start(false);
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/e2e")
        .join(file);
    let modules = "TOLLGATE_E2E_NODE_MODULES";
    let output = Command::new(installed(interpreter))
        .arg(path)
        .env_clear()
        .env(modules, installed(modules))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("BASE_URL", format!("http://{}/v1", engine.addr()))
        .output()
        .unwrap();
    let said =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{file}:\n{}\n{}", said[0], said[1]);
    assert!(
        said[0].trim_end().ends_with("all well"),
        "{file} did not come to its end:\n{}",
        said[0]
    );
    let stats = engine.stats();
    assert_eq!(
        (stats.running, stats.kv_blocks_used, stats.finished_abort),
        (0, 0, 0),
        "{stats:?}"
    );
}

#[test]
fn the_sdk_for_python_works_unmodified() {
    script("TOLLGATE_E2E_PYTHON", "openai_sdk.py");
}

#[test]
fn the_sdk_for_node_works_unmodified() {
    script("TOLLGATE_E2E_NODE", "openai_sdk.mjs");
}

#[test]
fn langchain_works_unmodified() {
    script("TOLLGATE_E2E_PYTHON", "langchain_client.py");
}

/// What promtool says of a page. It has opinions on style that vLLM's own names go against; those are listed.
fn promtool(page: &str) -> Vec<String> {
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is not installed: run `cargo xtask setup`");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(page.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    let vllms_own = [
        "metric names should not contain ':'",
        "iteration_tokens_total non-counter metrics should not have",
    ];
    said.lines()
        .filter(|line| !vllms_own.iter().any(|own| line.contains(own)))
        .map(str::to_owned)
        .collect()
}

fn metrics(engine: &EngineHandle) -> String {
    let mut stream = TcpStream::connect(engine.addr()).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: e\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut whole = String::new();
    stream.read_to_string(&mut whole).unwrap();
    whole.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn promtool_finds_no_fault_that_vllm_has_not() {
    for old_names in [false, true] {
        let page = metrics(&start(old_names));
        assert_eq!(promtool(&page), Vec::<String>::new());
    }
    let broken = "# TYPE a counter\na{b=\"c} 1\n";
    assert_ne!(
        promtool(broken),
        Vec::<String>::new(),
        "promtool itself says nothing"
    );
}
