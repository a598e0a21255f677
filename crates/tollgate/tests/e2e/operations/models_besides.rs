//! Models that a call names besides its own: those that a provider asks, too, and bills.

use super::{passed, quiet, refused};
use crate::harness::{Gate, Upstream, post};

fn gate(upstream: &Upstream, more: &str) -> Gate {
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1 }} }}\n\
         routes:\n  - {{ workload: held, match: {{ model: [m, \"small-*\"] }}, backend: up }}\n  \
         - {{ workload: held, match: {{ model: opus }}, backend: up }}\n  \
         - {{ workload: free, backend: up }}\n{more}",
        upstream.address
    );
    Gate::start(&config, &[])
}

fn call(workload: &str, path: &str, members: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"x"}}],{members}}}"#
    );
    post(path, &[&format!("x-workload-app: {workload}")], &body)
}

/// A call to Anthropic's API with an advisor.
fn advised(workload: &str, model: &str, padding: usize) -> Vec<u8> {
    let tools = format!(
        r#""tools":[{{"name":"f","description":"{}","input_schema":{{"properties":{{"model":{{"enum":["opus"]}}}}}}}},{{"type":"advisor_20260301","name":"advisor","model":"{model}"}}]"#,
        "x".repeat(padding)
    );
    call(workload, "/v1/messages", &tools)
}

#[test]
fn a_model_that_a_tool_names_is_held_to_the_rules_of_the_route() {
    let upstream = quiet();
    let gate = gate(&upstream, "");
    // The last one comes in pieces, and is looked into beside its worker.
    for padding in [0, 3000, 300_000] {
        let bytes = advised("held", "opus", padding);
        let message = refused(&gate, &upstream, &bytes, 404, "model_not_found");
        assert!(
            message.contains("`tools` names the model \"opus\""),
            "{message}"
        );
        passed(&gate, &upstream, &advised("held", "small-1", padding));
        passed(&gate, &upstream, &advised("held", "m", padding));
        passed(&gate, &upstream, &advised("free", "opus", padding));
    }
    for (path, members) in [
        (
            "/v1/responses",
            r#""input":"x","tools":[{"type":"image_generation","model":"gpt-image-2"}]"#,
        ),
        (
            "/v1/responses",
            r#""input":[{"type":"tool_search_output","call_id":"c","tools":[{"type":"image_generation","model":"gpt-image-2"}]}]"#,
        ),
        ("/v1/chat/completions", r#""models":["m","opus"]"#),
        ("/v1/chat/completions", r#""fallbacks":["opus"]"#),
        (
            "/v1/chat/completions",
            r#""plugins":[{"id":"fusion","analysis_models":["opus"]}]"#,
        ),
    ] {
        let bytes = call("held", path, members);
        refused(&gate, &upstream, &bytes, 404, "model_not_found");
        passed(&gate, &upstream, &call("free", path, members));
    }
    passed(
        &gate,
        &upstream,
        &call(
            "held",
            "/v1/chat/completions",
            r#""models":["m","small-2"]"#,
        ),
    );
}

#[test]
fn a_rule_that_denies_a_model_denies_it_of_a_tool_too() {
    let upstream = quiet();
    let rules = "authority: { rules: [ { name: no-opus, deny: \"model == 'opus'\" }, { name: rest, allow: \"true\" } ] }\n";
    let gate = gate(&upstream, rules);
    let denied = gate.call(&advised("free", "opus", 0));
    assert_eq!(denied.status, 403, "{}", denied.text());
    assert!(upstream.seen().is_empty());
    passed(&gate, &upstream, &advised("free", "sonnet", 0));
    // Workers write their lines in any order.
    let records = gate.records(2);
    assert!(
        records
            .iter()
            .any(|record| record["reason"] == "rule no-opus")
    );
}
