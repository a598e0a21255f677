//! A pool of a real API server: its Pods by their labels, with the right of its own that they need.
//!
//! Not here: endpoint pickers (`endpoint_picker`), what a pool comes to (`control`).

use serde_json::{Value, json};
use testing::eventually;

use super::kube_apiserver::{cluster, deployed, gate};
use super::{DOOR, call, completions};

const POOL: &str = "/apis/inference.networking.k8s.io/v1/namespaces/default/inferencepools/engines";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// A pool with this port, a route of a model to it, and one Pod of two with its labels.
fn objects(port: u16) -> String {
    let pod = |name: &str, app: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{ name: {name}, namespace: default, labels: {{ app: {app} }} }}\n\
             spec: {{ automountServiceAccountToken: false, containers: [ {{ name: engine, image: engine }} ] }}\n"
        )
    };
    format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {{ name: default, namespace: default }}\n{}{}---\n\
         apiVersion: inference.networking.k8s.io/v1\nkind: InferencePool\nmetadata: {{ name: engines, namespace: default }}\n\
         spec: {{ selector: {{ matchLabels: {{ app: engine }} }}, targetPorts: [ {{ number: {port} }} ] }}\n---\n\
         apiVersion: aigateway.envoyproxy.io/v1beta1\nkind: AIGatewayRoute\nmetadata: {{ name: pooled, namespace: default }}\n\
         spec:\n  parentRefs: [ {{ name: door, kind: Gateway, group: gateway.networking.k8s.io }} ]\n  rules:\n\
         \u{20}   - matches: [ {{ headers: [ {{ type: Exact, name: x-ai-eg-model, value: pooled }} ] }} ]\n\
         \u{20}     backendRefs: [ {{ group: inference.networking.k8s.io, kind: InferencePool, name: engines }} ]\n",
        pod("engine-0", "engine"),
        pod("web-0", "web"),
    )
}

fn status(is_ready: bool) -> Value {
    let ready = if is_ready { "True" } else { "False" };
    json!({
        "phase": "Running", "podIP": "127.0.0.1", "podIPs": [{ "ip": "127.0.0.1" }],
        "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": null }],
    })
}

/// The condition of a kind, as the one entry of the pool says it.
fn condition(pool: &Value, kind: &str) -> Value {
    let entry = &pool["status"]["parents"][0];
    let mut all = entry["conditions"].as_array().into_iter().flatten();
    let found = all.find(|of| of["type"] == kind);
    found.cloned().unwrap_or_default()
}

#[test]
fn a_pool_is_the_pods_that_are_ready_once_the_gate_may_read_them() {
    let Some((cluster, token)) = cluster() else {
        return;
    };
    let upstream = completions();
    let all = "/apis/inference.networking.k8s.io/v1/inferencepools";
    eventually("the kind is served", || {
        cluster.get_as("admin-token", all) == 200
    });
    cluster.apply(DOOR);
    cluster.apply(&objects(upstream.address.port()));
    let engine = format!("{PODS}/engine-0");
    cluster.patch_status(&engine, &status(true));
    let gate = gate(&cluster, &token, "");
    let accepted = || condition(&cluster.get(POOL), "Accepted");
    // Without the right it is closed, and says why.
    eventually("it is said what is missing", || {
        let said = accepted();
        let message = said["message"].as_str().unwrap_or_default();
        said["status"] == "False" && message.contains("403")
    });
    assert_eq!(call(&gate, "pooled"), 500);
    cluster.apply(&deployed("pods.yaml"));
    eventually("its calls are served", || call(&gate, "pooled") == 200);
    eventually("it is accepted", || accepted()["status"] == "True");
    let resolved = condition(&cluster.get(POOL), "ResolvedRefs");
    assert_eq!(resolved["status"], "True");
    // One that is not ready is called no more.
    cluster.patch_status(&engine, &status(false));
    eventually("nobody is left", || call(&gate, "pooled") == 503);
    cluster.patch_status(&engine, &status(true));
    eventually("it is called again", || call(&gate, "pooled") == 200);
    cluster
        .delete("/apis/aigateway.envoyproxy.io/v1beta1/namespaces/default/aigatewayroutes/pooled");
    eventually("the entry is taken back", || {
        let pool = cluster.get(POOL);
        pool["status"]["parents"]
            .as_array()
            .is_none_or(Vec::is_empty)
    });
    assert!(
        !gate.log().contains("cannot write the status of an object"),
        "{}",
        gate.log()
    );
}
