//! The white paper's three policies as objects of a real API server, and its own suite (`prove verify`) against the gate that lives by them.
//!
//! Runs where the program `prove` lies beside the gate's, as `cargo xtask kubernetes` builds it.
//! Not here: the same objects from files (`prove`'s tests).

use std::process::Command;

use super::kube_apiserver::{cluster, deployed, spawn};
use crate::harness::cluster::figure;
use crate::harness::{Gate, free_address};

const OBJECTS: &str = include_str!("../../../../../examples/manifests/white-paper.yaml");

/// The text with one part of it replaced; asserts that it is there.
fn replaced(text: &str, part: &str, by: &str) -> String {
    assert!(text.contains(part), "{part} is not in\n{text}");
    text.replace(part, by)
}

#[test]
fn the_white_papers_suite_passes_by_its_policies_from_a_real_api_server() {
    let prove = Gate::binary().with_file_name("prove");
    if !prove.exists() {
        testing::skip("there is no program `prove` beside the gate's (cargo xtask kubernetes)");
        return;
    }
    let Some((cluster, token)) = cluster() else {
        return;
    };
    let [on_prem, frontier] = [free_address(), free_address()];
    // The three policies as they stand; where the suite's upstreams are, and their keys, in place of the paper's.
    let mut objects = OBJECTS.to_owned();
    for (part, by) in [
        (
            "        port: 8000",
            &*format!("        port: {}", on_prem.port()),
        ),
        (
            "    - fqdn:\n        hostname: generativelanguage.googleapis.com\n        port: 443",
            &format!(
                "    - ip:\n        address: 127.0.0.1\n        port: {}",
                frontier.port()
            ),
        ),
        ("${GEMINI_API_KEY}", "gemini-api-key"),
        ("${VLLM_API_KEY}", "on-prem-api-key"),
        // The suite compares bodies byte for byte.
        ("          modelNameOverride: gemini-2.5-flash\n", ""),
    ] {
        objects = replaced(&objects, part, by);
    }
    // The suite's upstreams speak no TLS.
    let mut objects: Vec<&str> = objects.split("---\n").collect();
    objects.retain(|object| !object.contains("kind: BackendTLSPolicy"));
    cluster.apply(&objects.join("---\n"));
    let rights = deployed("secrets.yaml");
    let keys = "gemini-api-key, on-prem-api-key";
    cluster.apply(&replaced(&rights, "provider-key", keys));
    let controller = "--controller gateway.envoyproxy.io/gatewayclass-controller";
    let mut gate = spawn(&cluster, &token, controller);
    gate.comes_up();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = format!("http://{}/stats/prometheus", gate.admin);
    let limited =
        r#"http_local_rate_limit_rate_limited{workload="swe-rebench-ide", kind="requests"}"#;
    let output = Command::new(prove)
        .args(["verify", "--suite"])
        .arg(root.join("scenarios/white-paper/verify.toml"))
        .args(["--target", &format!("http://{}", gate.data)])
        .args(["--upstream", &format!("on-prem={on_prem}")])
        .args(["--upstream", &format!("frontier={frontier}")])
        .args(["--metrics", &format!("limited={page}#{limited}")])
        .args([
            "--metrics",
            &format!("tokens={page}#gen_ai_client_token_usage_token_sum"),
        ])
        .output()
        .expect("prove runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let passed = said
        .lines()
        .filter(|line| line.starts_with("pass "))
        .count();
    figure(
        "cases of the white paper's suite that pass by its policies",
        &passed.to_string(),
    );
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{err}\n{}", gate.log());
    assert!(passed >= 13, "{said}");
}
