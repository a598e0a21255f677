//! A gate by the objects of a real API server, with the kinds and the rights that `deploy/kubernetes` gives it.
//!
//! Runs where `TOLLGATE_E2E_KUBERNETES` names a directory with the commands `etcd` and `apiserver`, as `cargo xtask kubernetes` makes it.
//! Not here: pods: nothing runs in this cluster.

use std::path::Path;

use serde_json::json;
use testing::eventually;

use super::{DOOR, FIRST, SECOND, accepted, call, completions, route, secret};
use crate::harness::cluster::Cluster;
use crate::harness::{Gate, Upstream};

pub(super) const OF_SERVER: &str = "https://kubernetes.default.svc.cluster.local";
pub(super) const AI: &str = "/apis/aigateway.envoyproxy.io/v1beta1/namespaces/default";
pub(super) const GATEWAYS: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/default/gateways";

pub(super) fn deployed(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes");
    std::fs::read_to_string(root.join(name)).expect("it is deployed")
}

/// A cluster with the kinds and the gate's rights, and the gate's own token.
pub(super) fn cluster() -> Option<(Cluster, String)> {
    let cluster = Cluster::start()?;
    for kinds in [
        "gateway-api",
        "envoy-ai-gateway",
        "envoy-gateway",
        "inference",
    ] {
        cluster.apply(&deployed(&format!("crds/{kinds}.yaml")));
    }
    cluster.apply(&deployed("rbac.yaml"));
    let key = deployed("secrets.yaml").replace("provider-key", "key");
    cluster.apply(&key);
    all_served(&cluster);
    let token = cluster.token("tollgate", "tollgate", OF_SERVER);
    Some((cluster, token))
}

/// Waits until the last kinds of each group are served.
pub(super) fn all_served(cluster: &Cluster) {
    for path in [
        "gateway.networking.k8s.io/v1/gatewayclasses",
        "gateway.networking.k8s.io/v1/gateways",
        "gateway.networking.k8s.io/v1/httproutes",
        "gateway.networking.k8s.io/v1/listenersets",
        "gateway.networking.k8s.io/v1/backendtlspolicies",
        "aigateway.envoyproxy.io/v1beta1/mcproutes",
        "aigateway.envoyproxy.io/v1beta1/gatewayconfigs",
        "aigateway.envoyproxy.io/v1alpha1/quotapolicies",
        "gateway.envoyproxy.io/v1alpha1/backends",
        "gateway.envoyproxy.io/v1alpha1/securitypolicies",
        "inference.networking.k8s.io/v1/inferencepools",
    ] {
        let path = format!("/apis/{path}");
        eventually("a kind is served", || {
            cluster.get_as("admin-token", &path) == 200
        });
    }
}

pub(super) fn gate(cluster: &Cluster, token: &str, more: &str) -> Gate {
    let mut gate = spawn(cluster, token, more);
    gate.comes_up();
    gate
}

/// The same, without a wait for it to be ready.
pub(super) fn spawn(cluster: &Cluster, token: &str, more: &str) -> Gate {
    let files: [(&str, &[u8]); 1] = [("ca.pem", cluster.ca().as_bytes())];
    Gate::spawn_in_cluster(&cluster.kubeconfig(token), &files, more)
}

pub(super) fn with_objects(cluster: &Cluster, upstream: &Upstream) {
    for text in [DOOR, &route("one", upstream), &secret(FIRST)] {
        cluster.apply(text);
    }
}

#[test]
fn a_gate_lives_by_a_real_api_server_with_the_rights_that_it_is_deployed_with() {
    let Some((mut cluster, token)) = cluster() else {
        return;
    };
    let upstream = completions();
    with_objects(&cluster, &upstream);
    let gate = gate(&cluster, &token, "");
    let sent = || {
        let seen = upstream.seen();
        seen.last().expect("a call").header("authorization")
    };
    assert_eq!(call(&gate, "one"), 200);
    assert_eq!(sent(), ["Bearer first-canary-key"]);
    let of = |name: &str| accepted(&cluster.get(&format!("{AI}/aigatewayroutes/{name}")));
    let yes = ("True".to_owned(), "Accepted".to_owned());
    eventually("the route is said to be accepted", || of("one") == yes);
    let door = || cluster.get(&format!("{GATEWAYS}/door"));
    eventually("the Gateway is said to be programmed", || {
        let conditions = door()["status"]["conditions"].clone();
        conditions
            .as_array()
            .into_iter()
            .flatten()
            .any(|of| of["type"] == "Programmed" && of["status"] == "True")
    });
    for (kind, path) in [
        (
            "gatewayclasses/tollgate",
            "/apis/gateway.networking.k8s.io/v1",
        ),
        ("aiservicebackends/one", AI),
        ("backendsecuritypolicies/one", AI),
        (
            "backends/one",
            "/apis/gateway.envoyproxy.io/v1alpha1/namespaces/default",
        ),
    ] {
        let path = format!("{path}/{kind}");
        eventually(kind, || accepted(&cluster.get(&path)) == yes);
    }
    // It may read that Secret, and neither another nor all.
    let named = "/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3D";
    for (path, status) in [
        (&*format!("{named}key"), 200),
        (&*format!("{named}other"), 403),
        ("/api/v1/namespaces/default/secrets", 403),
        ("/api/v1/secrets", 403),
        ("/api/v1/namespaces/default/pods", 403),
    ] {
        assert_eq!(cluster.get_as(&token, path), status, "{path}");
    }
    cluster.apply(&secret(SECOND));
    eventually("the new key is sent", || {
        assert_eq!(call(&gate, "one"), 200);
        sent() == ["Bearer second-canary-key"]
    });
    // One whose Secret it may not read is closed and says so; the other one goes on.
    cluster.apply(
        &route("two", &upstream).replace("secretRef: { name: key }", "secretRef: { name: other }"),
    );
    eventually("it is closed", || call(&gate, "two") == 500);
    assert_eq!(call(&gate, "one"), 200);
    let policy = format!("{AI}/backendsecuritypolicies/two");
    eventually("it is said why", || {
        let message = cluster.get(&policy)["status"]["conditions"][0]["message"].clone();
        message.as_str().is_some_and(|message| {
            message.contains("Secret default/other, which the gate cannot read")
                && message.contains("403")
        })
    });
    assert_eq!(of("two").0, "False");
    // It has every right that it needs; once the server is away, writing may fail.
    assert!(
        !gate.log().contains("cannot write the status of an object"),
        "{}",
        gate.log()
    );
    // The server begins anew, and knows nothing of what happened: what is deleted then is seen by its absence.
    let before = door()["metadata"]["resourceVersion"].clone();
    cluster.restart_server(|_| assert_eq!(call(&gate, "one"), 200));
    cluster.delete(&format!("{AI}/aigatewayroutes/one"));
    eventually("what is gone is gone", || call(&gate, "one") == 404);
    eventually("the Gateway has one route less", || {
        cluster.get(&format!("{GATEWAYS}/door"))["status"]["listeners"][0]["attachedRoutes"]
            == json!(1)
    });
    assert_ne!(
        cluster.get(&format!("{GATEWAYS}/door"))["metadata"]["resourceVersion"],
        before
    );
    assert!(!gate.log().contains("canary-key"));
}

#[test]
fn one_of_two_gates_writes_beside_a_foreign_controller_and_the_other_takes_over() {
    let Some((cluster, token)) = cluster() else {
        return;
    };
    let upstream = completions();
    with_objects(&cluster, &upstream);
    // A route of two Gateways, of which another controller has one.
    let plain = "
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: plain, namespace: default }
spec:
  parentRefs: [ { name: door }, { name: others } ]
  rules: [ { matches: [ { path: { type: PathPrefix, value: /echo } } ], backendRefs: [ { name: plain, kind: Backend, group: gateway.envoyproxy.io } ] } ]
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: Backend
metadata: { name: plain, namespace: default }
spec: { endpoints: [ { ip: { address: 127.0.0.1, port: 9 } } ] }
";
    cluster.apply(plain);
    let path = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes/plain";
    let foreign = json!({
        "parentRef": { "group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "others" },
        "controllerName": "example.test/other",
        "conditions": [{
            "type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    });
    cluster.patch_status(path, &json!({ "parents": [foreign] }));
    let mut first = gate(&cluster, &token, "");
    let parents = || cluster.get(path)["status"]["parents"].clone();
    let ours = |reason: &str| {
        let all = parents();
        let all = all.as_array().expect("parents").clone();
        let mut ours = all
            .iter()
            .filter(|entry| entry["controllerName"] == "tollgate/gateway");
        let is_so = ours.any(|entry| entry["conditions"][0]["reason"] == reason);
        assert!(all.contains(&foreign), "the other's entry stays: {all:?}");
        is_so && all.len() == 2
    };
    eventually("the first one says it", || ours("Accepted"));
    let second = gate(&cluster, &token, "");
    assert_eq!(call(&second, "one"), 200);
    let version = || cluster.get(path)["metadata"]["resourceVersion"].clone();
    let before = version();
    // What changes is said by the one that holds the lease, once.
    cluster.apply(&plain.replace("value: /echo", "value: /other"));
    eventually("it is said anew", || {
        let entry = parents();
        entry.as_array().into_iter().flatten().any(|entry| {
            entry["controllerName"] == "tollgate/gateway"
                && entry["conditions"][0]["observedGeneration"] == 2
        })
    });
    assert_ne!(version(), before);
    first.signal(libc::SIGTERM);
    assert!(first.ended().success());
    let bad = plain.replace("name: plain, kind: Backend", "name: nothing, kind: Backend");
    cluster.apply(&bad);
    eventually("the second one says what is wrong", || {
        let all = parents();
        all.as_array().into_iter().flatten().any(|entry| {
            entry["controllerName"] == "tollgate/gateway"
                && entry["conditions"][1]["reason"] == "BackendNotFound"
        })
    });
    assert!(parents().as_array().expect("parents").contains(&foreign));
    assert!(
        second
            .log()
            .contains("this gate has the lease and writes the status of objects")
    );
}

#[test]
fn what_is_deployed_is_taken_by_a_real_api_server() {
    let Some((cluster, _)) = cluster() else {
        return;
    };
    for name in ["gatewayclass.yaml", "tollgate.yaml"] {
        cluster.apply(&deployed(name));
    }
    let class = cluster.get("/apis/gateway.networking.k8s.io/v1/gatewayclasses/tollgate");
    assert_eq!(class["spec"]["controllerName"], "tollgate/gateway");
    let deployment = cluster.get("/apis/apps/v1/namespaces/tollgate/deployments/tollgate");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsUser"], 65532);
    assert_eq!(pod["serviceAccountName"], "tollgate");
}
