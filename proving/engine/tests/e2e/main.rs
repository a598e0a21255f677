//! Real clients directly at the engine: the OpenAI SDKs, LangChain's client, promtool.
//!
//! Invariant: a tool that is not installed fails the test and is named; `cargo xtask setup` installs all of them.
//! Not here: the same clients behind the gate (`tollgate`'s tests of this name).

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is not as it should be"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use engine::{EngineConfig, EngineHandle, Hardware, spawn_thread};
use simulator::preset::Preset;

fn start(old_metric_names: bool) -> EngineHandle {
    spawn_thread(EngineConfig {
        hardware: Some(Hardware::from(&Preset::named("instant").unwrap())),
        api_key: Some("sk-engine".to_owned()),
        old_metric_names,
        ..EngineConfig::default()
    })
    .unwrap()
}

fn installed(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run `cargo xtask e2e`"))
}

/// Runs a script beside this file against a new engine; it exits with 0 when all its assertions hold.
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
fn the_python_sdk_works_unmodified() {
    script("TOLLGATE_E2E_PYTHON", "openai_sdk.py");
}

#[test]
fn the_node_sdk_works_unmodified() {
    script("TOLLGATE_E2E_NODE", "openai_sdk.mjs");
}

#[test]
fn langchain_works_unmodified() {
    script("TOLLGATE_E2E_PYTHON", "langchain_client.py");
}

/// What promtool reports for a page, without the listed style warnings that names of vLLM and of NVIDIA's
/// exporter cause.
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
    let their_own = [
        "metric names should not contain ':'",
        "iteration_tokens_total non-counter metrics should not have",
        "label names should be written in 'snake_case'",
        "TOTAL_ENERGY_CONSUMPTION counter metrics should have",
    ];
    said.lines()
        .filter(|line| !their_own.iter().any(|own| line.contains(own)))
        .map(str::to_owned)
        .collect()
}

fn metrics(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: e\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut whole = String::new();
    stream.read_to_string(&mut whole).unwrap();
    whole.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn promtool_finds_only_faults_that_vllm_has_too() {
    for old_names in [false, true] {
        let page = metrics(start(old_names).addr());
        assert_eq!(promtool(&page), Vec::<String>::new());
    }
    let broken = "# TYPE a counter\na{b=\"c} 1\n";
    assert_ne!(
        promtool(broken),
        Vec::<String>::new(),
        "promtool itself says nothing"
    );
}

#[test]
fn gpus_are_scraped_while_they_work_and_promtool_finds_no_fault() {
    let preset = Preset::named("gpt-oss-120b.h100x4").unwrap();
    let engine = spawn_thread(EngineConfig {
        hardware: Some(Hardware::from(&preset)),
        dcgm: Some("127.0.0.1:0".parse().unwrap()),
        ..EngineConfig::default()
    })
    .unwrap();
    // It goes on for minutes, unless it is left.
    let body = r#"{"model":"gpt-oss-120b","prompt":"a","max_tokens":60000,"ignore_eos":true,"stream":true}"#;
    let mut call = TcpStream::connect(engine.addr()).unwrap();
    let length = body.len();
    write!(
        call,
        "POST /v1/completions HTTP/1.1\r\nhost: e\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    call.read_exact(&mut [0; 500]).unwrap();
    let exporter = engine.dcgm_addr().unwrap();
    // The first page covers the time before the call too, the next the second or more behind it.
    let before = metrics(exporter);
    let page = testing::found("a page of another second", || {
        Some(metrics(exporter)).filter(|page| *page != before)
    });
    assert_eq!(promtool(&page), Vec::<String>::new());
    for (name, least) in [
        ("GPU_UTIL{", 0.0),
        ("NVLINK_TX_BYTES{", 0.0),
        ("NVLINK_RX_BYTES{", 0.0),
    ] {
        let values: Vec<f64> = page
            .lines()
            .filter(|line| line.contains(name))
            .map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
            .collect();
        assert_eq!(values.len(), 4, "{name} of four GPUs");
        assert!(
            values.iter().all(|value| *value > least),
            "{name} {values:?}"
        );
    }
}
