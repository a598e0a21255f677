//! A gate by the objects of a cluster, whose API server is a small one in memory.
//!
//! Not here: a real API server (`kube_apiserver`), what objects come to (`control`), how a watch goes on (`kubernetes`).

mod kube_apiserver;
mod kube_apiserver_away;
mod kube_apiserver_kinds;
mod kube_apiserver_many;
mod kube_apiserver_pools;
mod kube_apiserver_rights;
mod kube_apiserver_verdicts;
mod kube_apiserver_white_paper;
mod verdicts;

use std::net::SocketAddr;

use serde_json::{Value, json};
use testing::{ApiServer, eventually};

use crate::harness::cluster::{objects, path_of};
use crate::harness::{Gate, Step, Upstream, answer, chat, post};

/// The class, and the one Gateway.
const DOOR: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: { name: tollgate }
spec: { controllerName: tollgate/gateway }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: door, namespace: default }
spec:
  gatewayClassName: tollgate
  addresses: [ { type: IPAddress, value: 127.0.0.1 } ]
  listeners: [ { name: http, protocol: HTTP, port: 8080 } ]
";

/// A route to a model at an engine of the test's, whose key is in the Secret `key`.
fn route(model: &str, upstream: &Upstream) -> String {
    route_to(model, upstream.address)
}

/// The same, by the engine's address.
fn route_to(model: &str, engine: SocketAddr) -> String {
    let (ip, port) = (engine.ip(), engine.port());
    format!(
        "
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: AIGatewayRoute
metadata: {{ name: {model}, namespace: default }}
spec:
  parentRefs: [ {{ name: door, kind: Gateway, group: gateway.networking.k8s.io }} ]
  rules:
    - matches: [ {{ headers: [ {{ type: Exact, name: x-ai-eg-model, value: {model} }} ] }} ]
      backendRefs: [ {{ name: {model} }} ]
---
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: AIServiceBackend
metadata: {{ name: {model}, namespace: default }}
spec:
  schema: {{ name: OpenAI }}
  backendRef: {{ name: {model}, kind: Backend, group: gateway.envoyproxy.io }}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: Backend
metadata: {{ name: {model}, namespace: default }}
spec: {{ endpoints: [ {{ ip: {{ address: {ip}, port: {port} }} }} ] }}
---
apiVersion: aigateway.envoyproxy.io/v1beta1
kind: BackendSecurityPolicy
metadata: {{ name: {model}, namespace: default }}
spec:
  targetRefs: [ {{ group: aigateway.envoyproxy.io, kind: AIServiceBackend, name: {model} }} ]
  type: APIKey
  apiKey: {{ secretRef: {{ name: key }} }}
"
    )
}

/// A key in base64, as an API server has it.
fn secret(encoded: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{ name: key, namespace: default }}\ndata: {{ apiKey: {encoded} }}\n"
    )
}

const FIRST: &str = "Zmlyc3QtY2FuYXJ5LWtleQ==";
const SECOND: &str = "c2Vjb25kLWNhbmFyeS1rZXk=";

fn completions() -> Upstream {
    Upstream::start(|_, _| vec![Step::Send(answer::json(200, answer::COMPLETION))])
}

fn call(gate: &Gate, model: &str) -> u16 {
    gate.call(&post("/v1/chat/completions", &[], &chat(model, false)))
        .status
}

/// The collection of an object, and its namespace and name.
fn place(object: &Value) -> (String, String, String) {
    let path = path_of(object);
    let (collection, name) = path.rsplit_once('/').expect("a path");
    let text = |name: &str| {
        object["metadata"][name]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let namespace = text("namespace");
    let collection = collection.replace(&format!("namespaces/{namespace}/"), "");
    (collection, namespace, name.to_owned())
}

/// A server of the kinds that objects of these tests have.
fn server() -> ApiServer {
    let gateways = ["gatewayclasses", "gateways", "httproutes"];
    let gateways = gateways.map(|kind| format!("/apis/gateway.networking.k8s.io/v1/{kind}"));
    let ai = [
        "aigatewayroutes",
        "aiservicebackends",
        "backendsecuritypolicies",
    ];
    let ai = ai.map(|kind| format!("/apis/aigateway.envoyproxy.io/v1beta1/{kind}"));
    let others = [
        "/apis/gateway.envoyproxy.io/v1alpha1/backends",
        "/api/v1/secrets",
        "/api/v1/events",
        "/apis/coordination.k8s.io/v1/leases",
    ];
    let all = gateways.iter().chain(&ai).map(String::as_str);
    ApiServer::start(&all.chain(others).collect::<Vec<_>>())
}

fn apply(server: &ApiServer, text: &str) {
    for object in objects(text) {
        let (collection, ..) = place(&object);
        server.put(&collection, object);
    }
}

fn delete(server: &ApiServer, text: &str) {
    for object in objects(text) {
        let (collection, namespace, name) = place(&object);
        server.delete(&collection, &namespace, &name);
    }
}

fn kubeconfig(server: &ApiServer) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: t\n\
         contexts: [ {{ name: t, context: {{ cluster: t, user: t }} }} ]\n\
         clusters: [ {{ name: t, cluster: {{ server: \"http://{}\" }} }} ]\n\
         users: [ {{ name: t, user: {{ token: own }} }} ]\n",
        server.address
    )
}

/// What is said of an object: the first condition's status and reason.
fn accepted(object: &Value) -> (String, String) {
    let status = &object["status"];
    let entry = if status["parents"].is_array() {
        &status["parents"][0]
    } else {
        status
    };
    let text = |name: &str| {
        entry["conditions"][0][name]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    (text("status"), text("reason"))
}

#[test]
fn a_gate_follows_the_objects_of_a_cluster_and_says_what_it_found() {
    let (server, upstream) = (server(), completions());
    apply(&server, DOOR);
    apply(&server, &route("one", &upstream));
    apply(&server, &secret(FIRST));
    let gate = Gate::start_in_cluster(&kubeconfig(&server), &[], "");
    let sent = |nth| upstream.nth(nth).expect("a call").header("authorization");
    assert_eq!(call(&gate, "one"), 200);
    assert_eq!(sent(0), ["Bearer first-canary-key"]);
    assert_eq!(call(&gate, "two"), 404);
    let gateways = "/apis/gateway.networking.k8s.io/v1/gateways";
    let routes = "/apis/aigateway.envoyproxy.io/v1beta1/aigatewayroutes";
    eventually("the Gateway is said to be programmed", || {
        let door = server
            .get(gateways, "default", "door")
            .expect("it is there");
        door["status"]["conditions"][1]["type"] == "Programmed"
            && door["status"]["conditions"][1]["status"] == "True"
            && door["status"]["listeners"][0]["attachedRoutes"] == 1
    });
    // A Secret that is replaced, while the server tells of it by its name alone.
    apply(&server, &secret(SECOND));
    let mut calls = 1;
    eventually("the new key is sent", || {
        assert_eq!(call(&gate, "one"), 200);
        calls += 1;
        sent(calls - 1) == ["Bearer second-canary-key"]
    });
    // A route to what is not there is closed, and no other one.
    let two = route("two", &upstream);
    let (two, rest) = two.split_once("---").expect("several");
    apply(&server, two);
    eventually("it is closed", || call(&gate, "two") == 500);
    assert_eq!(call(&gate, "one"), 200);
    eventually("it is said why", || {
        let two = server.get(routes, "default", "two").expect("it is there");
        accepted(&two) == ("False".to_owned(), "BackendNotFound".to_owned())
    });
    let told = || {
        let all = server.all("/api/v1/events");
        let of = |event: &Value| format!("{} {}", event["involvedObject"]["name"], event["reason"]);
        all.iter().map(of).collect::<Vec<_>>()
    };
    eventually("an event tells it", || {
        told() == [r#""two" "BackendNotFound""#]
    });
    apply(&server, rest);
    eventually("it is open", || call(&gate, "two") == 200);
    eventually("that is said", || {
        let two = server.get(routes, "default", "two").expect("it is there");
        accepted(&two) == ("True".to_owned(), "Accepted".to_owned())
    });
    let policies = "/apis/aigateway.envoyproxy.io/v1beta1/backendsecuritypolicies";
    eventually("the last of its objects is said to be", || {
        let policy = server.get(policies, "default", "two").expect("it is there");
        accepted(&policy) == ("True".to_owned(), "Accepted".to_owned())
    });
    // What is said is said once.
    let written = server.count("PATCH");
    apply(&server, &secret(FIRST));
    eventually("the first key is sent again", || {
        assert_eq!(call(&gate, "one"), 200);
        let seen = upstream.seen();
        seen.last().expect("a call").header("authorization") == ["Bearer first-canary-key"]
    });
    assert_eq!(server.count("PATCH"), written);
    // A server that is away, and has forgotten what happened: the gate goes on, and then sees what is gone.
    server.state().fails = Some(503);
    server.end_watches();
    eventually("it asks in vain", || {
        gate.log().contains("the API server does not answer")
    });
    assert_eq!(call(&gate, "two"), 200);
    delete(&server, two);
    server.forget();
    server.state().fails = None;
    eventually("what is gone is gone", || call(&gate, "two") == 404);
    assert_eq!(call(&gate, "one"), 200);
    // A Secret that is gone closes what it was for.
    delete(&server, &secret(FIRST));
    eventually("nothing is sent without its key", || {
        call(&gate, "one") == 500
    });
    // Without its Gateway the gate refuses all.
    delete(&server, DOOR);
    eventually("all is refused", || {
        let status = gate
            .call(&post("/v1/chat/completions", &[], &chat("other", false)))
            .status;
        status == 500
    });
    let seen = [gate.log(), gate.admin("/config").text(), gate.metrics()].concat();
    assert!(!seen.contains("canary-key"), "a key is shown");
    let asked = server.state().asked.clone();
    let mut of_secrets = asked.iter().filter(|line| line.contains("/secrets"));
    assert!(of_secrets.all(|line| line.contains("fieldSelector=metadata.name%3Dkey")));
}

#[test]
fn a_gate_that_waits_sees_that_its_own_file_was_mended() {
    let (server, upstream) = (server(), completions());
    let mut gate = Gate::spawn_in_cluster(&kubeconfig(&server), &[], "--gateway default/door");
    eventually("it waits", || {
        gate.log().contains("there is no Gateway of a class")
    });
    gate.reconfigure("colour: red\n");
    for text in [DOOR, &secret(FIRST), &route("one", &upstream)] {
        apply(&server, text);
    }
    eventually("it waits for its file", || gate.log().contains("colour"));
    gate.reconfigure("");
    gate.comes_up();
    eventually("it is open", || call(&gate, "one") == 200);
}

#[test]
fn a_gate_waits_for_its_gateway_and_for_what_that_names() {
    let (server, upstream) = (server(), completions());
    apply(&server, &route("one", &upstream));
    // A kind that may not be read may hold what keeps somebody out.
    server.state().forbidden = vec!["/apis/gateway.networking.k8s.io/v1/httproutes".to_owned()];
    let mut gate = Gate::spawn_in_cluster(&kubeconfig(&server), &[], "--gateway default/door");
    eventually("it waits for a right", || {
        gate.log().contains("before all of this kind can be read")
    });
    server.state().forbidden.clear();
    eventually("it waits", || {
        gate.log().contains("there is no Gateway of a class")
    });
    apply(&server, DOOR);
    gate.comes_up();
    // It is there before its Secret, and closed.
    assert_eq!(call(&gate, "one"), 500);
    apply(&server, &secret(FIRST));
    eventually("it is open", || call(&gate, "one") == 200);
    // Told to stop, it ends as any gate does, and gives its lease back.
    gate.signal(libc::SIGTERM);
    assert!(gate.ended().success());
    let lease = server.get("/apis/coordination.k8s.io/v1/leases", "default", "tollgate");
    assert_eq!(lease.expect("a lease")["spec"]["holderIdentity"], json!(""));
}
