//! Each kind on a real API server, and the charts: what is said of them, and the event of one that is refused.
//!
//! The charts need Helm too: `TOLLGATE_E2E_HELM` names it, as `cargo xtask kubernetes` makes it.
//! Not here: what objects come to (`control`), which rights each takes (`kube_apiserver_rights`).

use std::process::Command;

use serde_json::{Value, json};
use testing::{eventually, found};

use super::kube_apiserver::{AI, OF_SERVER, all_served, cluster, deployed, spawn};
use super::{FIRST, call, completions, secret};
use crate::harness::cluster::{Cluster, objects, path_of};
use crate::harness::tls::Authority;
use crate::harness::{Gate, Upstream};

const EVERYTHING: &str = include_str!("everything.yaml");

/// One object of each kind, with this engine and this port of the gate, and the Secret and the ConfigMap that they name.
pub(super) fn everything(engine: &Upstream, door: u16) -> String {
    let at = format!(
        "address: {}, port: {}",
        engine.address.ip(),
        engine.address.port()
    );
    let all = EVERYTHING.replace("address: IP, port: PORT", &at);
    let all = all.replace("port: DOOR", &format!("port: {door}"));
    let root = Authority::named("backends")
        .certificate
        .replace('\n', "\\n");
    format!(
        "{all}---\n{}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: key, namespace: default }}\ndata: {{ ca.crt: \"{root}\" }}\n",
        secret(FIRST)
    )
}

/// Applies them, for a gate that waits for its Gateway: it has several listeners, so that its own file says none.
pub(super) fn comes_up_with_everything(
    cluster: &Cluster,
    gate: &mut Gate,
    engine: &Upstream,
) -> String {
    let text = everything(engine, gate.data.port());
    cluster.apply(&text);
    let own = format!("listen: {{ admin: \"{}\" }}\n", gate.admin);
    gate.replace("tollgate.yaml", own.as_bytes());
    gate.comes_up();
    text
}

/// The conditions that are said of an object, those of listeners aside.
pub(super) fn conditions(object: &Value) -> Vec<Value> {
    let status = &object["status"];
    let within = [&status["parents"][0], &status["ancestors"][0], status];
    let mut said = within.iter().filter_map(|of| of["conditions"].as_array());
    said.next().cloned().unwrap_or_default()
}

fn is_accepted(object: &Value) -> bool {
    let said = conditions(object);
    said.iter()
        .any(|of| of["type"] == "Accepted" && of["status"] == "True")
}

/// Waits until each object of which something is said is said to be accepted.
fn all_accepted(cluster: &Cluster, text: &str) {
    let silent = ["Service", "EndpointSlice", "Secret", "ConfigMap"];
    for object in objects(text) {
        let kind = object["kind"].as_str().expect("a kind").to_owned();
        if silent.contains(&&*kind) {
            continue;
        }
        let path = path_of(&object);
        eventually(&format!("{kind} is accepted"), || {
            let now = cluster.get(&path);
            is_accepted(&now)
        });
    }
}

#[test]
fn each_kind_is_accepted_by_a_real_api_server_and_a_refused_one_has_its_event() {
    let Some((cluster, token)) = cluster() else {
        return;
    };
    cluster.apply(&deployed("pods.yaml"));
    let upstream = completions();
    let mut gate = spawn(&cluster, &token, "--gateway default/door");
    let text = comes_up_with_everything(&cluster, &mut gate, &upstream);
    assert_eq!(call(&gate, "one"), 200);
    all_accepted(&cluster, &text);
    let sets = "/apis/gateway.networking.k8s.io/v1/namespaces/default/listenersets/team";
    let of_listener = cluster.get(sets)["status"]["listeners"][0].clone();
    assert_eq!(of_listener["name"], "team", "{of_listener}");
    // A server of tools that is not there: the route says so, and an event does.
    let missing = || {
        let all = cluster.get("/api/v1/namespaces/default/events");
        let mut all = all["items"].as_array().expect("a list").iter();
        let is_it = |event: &&Value| {
            let message = event["message"].as_str().unwrap_or_default();
            event["involvedObject"]["kind"] == "MCPRoute" && message.contains("nothing")
        };
        all.find(is_it).cloned()
    };
    assert!(missing().is_none());
    let reference =
        json!({ "name": "nothing", "kind": "Backend", "group": "gateway.envoyproxy.io" });
    let path = format!("{AI}/mcproutes/tools");
    cluster.patch_all(&[(
        path.clone(),
        json!({ "spec": { "backendRefs": [reference] } }),
    )]);
    let event = found("an event says so", missing);
    let route = cluster.get(&path);
    assert_eq!(event["reason"], conditions(&route)[0]["reason"]);
    assert_eq!(event["involvedObject"]["uid"], route["metadata"]["uid"]);
    assert_eq!(call(&gate, "one"), 200);
    let log = gate.log();
    assert!(!log.contains("forbids") && !log.contains("cannot"), "{log}");
}

fn helm(words: &[&str]) -> String {
    let helm = std::env::var_os("TOLLGATE_E2E_HELM").expect("it was looked for");
    let charts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/helm");
    let home = tempfile::tempdir().expect("a directory");
    let said = Command::new(helm)
        .args(words)
        .current_dir(charts)
        .env("HOME", home.path())
        .output();
    let said = said.expect("it runs");
    let (out, err) = (
        String::from_utf8_lossy(&said.stdout),
        String::from_utf8_lossy(&said.stderr),
    );
    assert!(said.status.success(), "{words:?}: {out}{err}");
    out.into_owned()
}

#[test]
fn what_helm_renders_is_taken_by_a_real_kube_apiserver_and_a_gate_lives_by_its_rights() {
    if std::env::var_os("TOLLGATE_E2E_HELM").is_none() {
        testing::skip("TOLLGATE_E2E_HELM names no Helm (cargo xtask kubernetes)");
        return;
    }
    let Some(cluster) = Cluster::start() else {
        return;
    };
    helm(&["lint", "--strict", "tollgate", "tollgate-crds"]);
    // Some of them are JSON, and some YAML.
    let kinds = helm(&["template", "kinds", "tollgate-crds"]);
    kinds.split("---\n").for_each(|kind| cluster.apply(kind));
    cluster.apply("apiVersion: v1\nkind: Namespace\nmetadata: { name: gates }\n");
    let all = [
        "template",
        "gate",
        "tollgate",
        "--namespace",
        "gates",
        "--set-json",
        "secrets={\"default\":[\"key\"]}",
        "--set",
        "inferencePools.enabled=true,horizontalPodAutoscaler.create=true,networkPolicy.create=true,gatewayClass.create=false",
    ];
    let rendered = helm(&all);
    assert!(
        rendered.contains("kind: PodDisruptionBudget")
            && rendered.contains("kind: HorizontalPodAutoscaler")
    );
    cluster.apply(&rendered);
    all_served(&cluster);
    let upstream = completions();
    let token = cluster.token("gates", "gate", OF_SERVER);
    let mut gate = spawn(
        &cluster,
        &token,
        "--gateway default/door --lease gates/gate",
    );
    let text = comes_up_with_everything(&cluster, &mut gate, &upstream);
    assert_eq!(call(&gate, "one"), 200);
    all_accepted(&cluster, &text);
    let log = gate.log();
    assert!(!log.contains("forbids") && !log.contains("cannot"), "{log}");
    // Its rights are those of the manifests, word for word.
    let plain = ["rbac.yaml", "pods.yaml", "secrets.yaml"]
        .map(deployed)
        .join("---\n");
    let plain = plain
        .replace("provider-key", "key")
        .replace("resourceNames: [tollgate]", "resourceNames: [gate]");
    assert_eq!(rights(&rendered), rights(&plain));
}

/// Each right by itself, in order: verb, group, resource and names.
fn rights(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for role in objects(text) {
        for rule in role["rules"].as_array().into_iter().flatten() {
            let list = |name: &str| rule[name].as_array().cloned().unwrap_or_default();
            for group in list("apiGroups") {
                for resource in list("resources") {
                    for verb in list("verbs") {
                        all.push(format!(
                            "{verb} {group} {resource} {}",
                            rule["resourceNames"]
                        ));
                    }
                }
            }
        }
    }
    all.sort();
    all.dedup();
    all
}
