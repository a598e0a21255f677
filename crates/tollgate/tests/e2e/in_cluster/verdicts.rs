//! What an API server says of Envoy AI Gateway's kinds, and what `check` says of the same objects in files.
//!
//! Objects are our own (`vectors/verdicts`), and those that Envoy AI Gateway keeps for that where `TOLLGATE_E2E_AIGATEWAY` names a checkout of it
//! (`tests/crdcel`): its test says which its API server takes.
//! Not here: a real API server (`kube_apiserver_verdicts`).

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::cluster::objects;
use crate::harness::tollgate;

const OURS: &str = include_str!("../../../../../vectors/verdicts/envoy-ai-gateway.txt");
const AI: &str = "aigateway.envoyproxy.io";
const POOLS: &str = "inference.networking.k8s.io";

/// An object, and whether it is taken.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) object: Value,
    pub(super) is_taken: bool,
}

/// Our own.
pub(super) fn ours() -> Vec<Case> {
    let sections = OURS.split("=== ").skip(1);
    let case = |section: &str| {
        let (head, text) = section.split_once('\n').expect("a headline");
        let (verdict, name) = head.split_once(' ').expect("a verdict and a name");
        Case {
            name: name.to_owned(),
            object: objects(text).pop().expect("an object"),
            is_taken: match verdict {
                "taken" => true,
                "refused" => false,
                other => panic!("{other} is no verdict"),
            },
        }
    };
    sections.map(case).collect()
}

/// Those of a checkout; none where there is none.
pub(super) fn theirs() -> Option<Vec<Case>> {
    let Some(root) = std::env::var_os("TOLLGATE_E2E_AIGATEWAY") else {
        testing::skip("TOLLGATE_E2E_AIGATEWAY names no checkout of Envoy AI Gateway");
        return None;
    };
    let root = Path::new(&root).join("tests/crdcel");
    let test = std::fs::read_to_string(root.join("main_test.go")).expect("its test");
    // Each case begins with its name; what its API server refuses has an error.
    let refused: Vec<&str> = test
        .split("name:")
        .filter(|case| case.contains("expErr:"))
        .filter_map(|case| case.split('"').nth(1))
        .collect();
    let mut cases = Vec::new();
    for kind in [
        "aigatewayroutes",
        "aiservicebackends",
        "backendsecuritypolicies",
        "mcpgatewayroutes",
    ] {
        let within = std::fs::read_dir(root.join("testdata").join(kind)).expect("a directory");
        for file in within {
            let file = file.expect("a file").path();
            let name = file
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            let text = std::fs::read_to_string(&file).expect("a file");
            let object = objects(&text).pop().expect("an object");
            let is_taken = !refused.contains(&&*name);
            cases.push(Case {
                name: format!("{kind}/{name}"),
                object,
                is_taken,
            });
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(cases.len() >= 66, "{} objects", cases.len());
    Some(cases)
}

/// What stands in for all that an object names, so that nothing is wrong but what it says itself.
fn stand_ins(object: &Value) -> Vec<Value> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let (mut all, mut walk) = (Vec::new(), vec![(String::new(), &object["spec"])]);
    let mut doors = vec!["door".to_owned()];
    while let Some((at, value)) = walk.pop() {
        match value {
            Value::Array(items) => walk.extend(items.iter().map(|item| (at.clone(), item))),
            Value::Object(members) => {
                let text = |name: &str| members.get(name).and_then(Value::as_str);
                let name = text("name").unwrap_or_default();
                match (at.as_str(), text("kind")) {
                    ("parentRefs", _) => doors = vec![name.to_owned()],
                    ("backendRefs" | "targetRefs", Some("InferencePool")) => all.extend(pool(name)),
                    ("backendRefs", Some("Service")) => all.push(json!({
                        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name }, "spec": { "ports": [{ "port": 80 }] },
                    })),
                    ("backendRefs" | "targetRefs", _) => all.extend(service(name)),
                    ("backendRef", _) => all.push(backend(name)),
                    ("secretRef" | "clientSecretRef" | "clientSecret", _) => all.push(secret(name)),
                    _ => {}
                }
                walk.extend(members.iter().map(|(name, value)| (name.clone(), value)));
            }
            _ => {}
        }
    }
    for door in doors {
        let listeners = json!([{ "name": "http", "protocol": "HTTP", "port": 8080 }]);
        let spec = json!({ "gatewayClassName": "models", "addresses": [{ "value": "127.0.0.1" }], "listeners": listeners });
        all.push(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": { "name": door }, "spec": spec,
        }));
        // Something that is served beside; servers of tools say by themselves who calls.
        if kind != "MCPRoute" {
            let header = json!({ "name": "x-ai-eg-model", "value": "beside" });
            all.push(json!({
                "apiVersion": format!("{AI}/v1beta1"), "kind": "AIGatewayRoute", "metadata": { "name": "beside" },
                "spec": {
                    "parentRefs": [{ "name": door }],
                    "rules": [{ "matches": [{ "headers": [header] }], "backendRefs": [{ "name": "beside" }] }],
                },
            }));
            all.extend(service("beside"));
        }
    }
    let id = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]);
    let mut seen = vec![id(object)];
    all.retain(|object| {
        let id = id(object);
        let is_new = !seen.contains(&id);
        seen.push(id);
        is_new
    });
    all
}

fn service(name: &str) -> [Value; 2] {
    let at = json!({ "name": name, "kind": "Backend", "group": "gateway.envoyproxy.io" });
    let service = json!({
        "apiVersion": format!("{AI}/v1beta1"), "kind": "AIServiceBackend", "metadata": { "name": name },
        "spec": { "schema": { "name": "OpenAI" }, "backendRef": at },
    });
    [service, backend(name)]
}

fn backend(name: &str) -> Value {
    json!({
        "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "Backend", "metadata": { "name": name },
        "spec": { "endpoints": [{ "fqdn": { "hostname": format!("{name}.example"), "port": 443 } }] },
    })
}

fn pool(name: &str) -> [Value; 2] {
    let labels = json!({ "app": name });
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    [
        json!({
            "apiVersion": format!("{POOLS}/v1"), "kind": "InferencePool", "metadata": { "name": name },
            "spec": { "selector": { "matchLabels": labels }, "targetPorts": [{ "number": 8000 }] },
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "labels": labels },
            "status": { "podIP": "10.0.0.1", "conditions": ready },
        }),
    ]
}

fn secret(name: &str) -> Value {
    let aws =
        "[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = made-up\n";
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name },
        "stringData": { "apiKey": "made-up", "client-secret": "made-up", "credentials": aws },
    })
}

/// What no API server looks at, and can be nowhere: an issuer that is a word gets an address, and a Secret a name that one can have.
fn as_could_be(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let is_secret = matches!(&**name, "secretRef" | "clientSecretRef" | "clientSecret");
                match value {
                    Value::String(issuer) if name == "issuer" && !issuer.contains("://") => {
                        *issuer = format!("https://{}.example", issuer.to_lowercase());
                    }
                    named if is_secret && named["name"].is_string() => {
                        let name = named["name"].as_str().unwrap_or_default();
                        named["name"] = name.replace('_', "-").into();
                    }
                    value => as_could_be(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(as_could_be),
        _ => {}
    }
}

/// What `check` says of an object in a file, and of it alone.
fn checked(case: &Case) -> Result<(), String> {
    let mut object = case.object.clone();
    as_could_be(&mut object);
    let all = stand_ins(&object).into_iter().chain([object.clone()]);
    let all: Vec<String> = all.map(|object| object.to_string()).collect();
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("all.yaml"), all.join("\n---\n")).expect("a file");
    let ended = tollgate(
        dir.path(),
        &["check", "-c", "all.yaml"],
        &[("COLUMNS", "1000")],
    );
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let whose = format!(
        "{} default/{}",
        text(&object["kind"]),
        text(&object["metadata"]["name"])
    );
    let own = ended.err.lines().any(|line| line.contains(&whose));
    match (case.is_taken, ended.code) {
        (true, Some(0)) => Ok(()),
        (false, Some(1)) if own => Ok(()),
        (_, code) => Err(format!("{}: {code:?}: {}", case.name, ended.err)),
    }
}

fn all_checked(cases: &[Case]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| checked(case).err())
        .collect();
    let (right, taken) = (
        cases.len() - wrong.len(),
        cases.iter().filter(|case| case.is_taken).count(),
    );
    println!(
        "check: {right} of {} verdicts, {taken} of them that it is taken",
        cases.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn check_takes_what_an_api_server_takes_of_envoy_ai_gateways_kinds() {
    all_checked(&ours());
}

#[test]
fn check_has_envoy_ai_gateways_own_verdicts() {
    if let Some(cases) = theirs() {
        all_checked(&cases);
    }
}
