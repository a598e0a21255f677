//! Tokenizer files: at start, in `tollgate check`, and on reload.

use engine::EngineConfig;
use serde_json::json;

use super::{CountingGate, TOKENIZER, engine};
use crate::harness::tollgate;

#[test]
fn check_reports_an_invalid_tokenizer_with_its_location() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = "backends: { up: { url: http://127.0.0.1:1/v1 } }\n\
                  routes: [ { workload: w, backend: up } ]\n\
                  tokenizers: { m: { file: tokenizer.json, template: t.jinja } }\n";
    for (name, content) in [
        ("tollgate.yaml", config),
        ("tokenizer.json", "{}"),
        ("t.jinja", ""),
    ] {
        std::fs::write(dir.path().join(name), content).expect("a file");
    }
    let ended = tollgate(dir.path(), &["check", "-c", "tollgate.yaml"], &[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let says = "tokenizers.m: the tokenizer cannot be read";
    assert!(ended.err.contains(says), "{ended:?}");
    std::fs::write(dir.path().join("tokenizer.json"), TOKENIZER).expect("a file");
    let ended = tollgate(dir.path(), &["check", "-c", "tollgate.yaml"], &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_changed_template_is_reloaded_and_an_invalid_one_refused() {
    let engine = engine(EngineConfig {
        models: vec!["own".into()],
        ..EngineConfig::default()
    });
    let counting = "tokenizers: { own: { file: m/tokenizer.json, template: m/template.jinja } }";
    let files = [
        ("m/tokenizer.json", TOKENIZER),
        ("m/template.jinja", &b"{{ messages[0]['content'] }}"[..]),
    ];
    let mut counted = CountingGate::start(engine.addr(), counting, &files);
    let body = json!({"model": "own", "max_tokens": 1,
        "messages": [{"role": "user", "content": "Hello"}]});
    let taken = |counted: &CountingGate, result: &str, n: f64| {
        let label = format!("result=\"{result}\"");
        testing::eventually("the change is seen", || {
            counted
                .gate
                .metric("tollgate_config_reloads_total", &[&label])
                >= n
        });
    };
    counted.chat("before", &[], &body);
    counted.gate.replace("m/template.jinja", b"{% if %}");
    taken(&counted, "refused", 1.0);
    let log = counted.gate.log();
    assert!(
        log.contains("tokenizers.own: the chat template cannot be read"),
        "{log}"
    );
    counted.chat("refused", &[], &body);
    counted
        .gate
        .replace("m/template.jinja", b"{{ messages[0]['content'] }} and more");
    taken(&counted, "taken", 1.0);
    // A scrape is queued to every worker behind the message with the new configuration.
    counted.gate.metrics();
    counted.chat("after", &[], &body);
    let rows = counted.end();
    let own = |id: &str| rows[id]["prompt_counted"].as_u64();
    assert!(own("before").is_some(), "{}", rows["before"]);
    assert_eq!(own("before"), own("refused"));
    assert!(own("after") > own("before"), "{}", rows["after"]);
    engine.stop();
}
