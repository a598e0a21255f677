//! Who is asked about each call, as a SecurityPolicy of a cluster names it: a Service, whose Pods come and go.

use serde_json::{Value, json};

use super::{ENVOY_GROUP, GATEWAY_GROUP, Live, base, lowered, object, said};

/// A Gateway with a policy that has the Service `authz` asked, and what there is of that.
fn asked(ready: &[&str], fails_open: bool, more: &[Value]) -> Live {
    let endpoint = |ip: &&str| json!({ "addresses": [ip], "conditions": { "ready": true } });
    let unready = json!({ "addresses": ["10.0.0.9"], "conditions": { "ready": false } });
    let endpoints: Vec<Value> = ready.iter().map(endpoint).chain([unready]).collect();
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": "authz-1", "namespace": "a", "labels": { "kubernetes.io/service-name": "authz" } },
        "ports": [{ "name": "grpc", "port": 50051 }], "endpoints": endpoints,
    });
    let ports = json!([{ "name": "grpc", "port": 9002, "targetPort": 50051 }]);
    let service = json!({ "ports": ports, "clusterIP": "10.96.0.7" });
    let targets =
        json!([{ "group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "door" }]);
    let to = json!([{ "name": "authz", "port": 9002 }]);
    let mut policy = json!({
        "targetRefs": targets,
        "extAuth": { "headersToExtAuth": ["authorization"], "grpc": { "backendRefs": to } },
    });
    if fails_open {
        policy["extAuth"]["failOpen"] = json!(true);
    }
    let mut objects = base();
    objects.extend([
        object("v1", "Service", "authz", service),
        slice,
        object(ENVOY_GROUP, "SecurityPolicy", "door", policy),
    ]);
    objects.extend(more.iter().cloned());
    lowered(&objects, None)
}

/// What the document says of who is asked.
fn authority(live: &Live) -> &Value {
    let loaded = live.loaded.as_ref();
    let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
    &loaded.document.json()["authority"]["ext_authz"]
}

#[test]
fn who_is_asked_is_asked_also_while_none_of_its_pods_is_ready() {
    for (ready, at) in [
        (&[][..], "http://10.96.0.7:9002"),
        (&["10.0.0.1"], "http://10.0.0.1:50051"),
        (&["10.0.0.2", "10.0.0.1"], "http://10.0.0.1:50051"),
    ] {
        for fails_open in [false, true] {
            let live = asked(ready, fails_open, &[]);
            let said = said(&live, "SecurityPolicy", "door");
            assert!(said.starts_with("Accepted true"), "{ready:?}: {said}");
            assert_eq!(authority(&live)["grpc"], at, "{ready:?}");
        }
    }
}

#[test]
fn who_is_asked_is_asked_by_the_name_of_its_certificate_or_nobody_calls() {
    let policy = |host: &str| {
        let target = json!([{ "group": "", "kind": "Service", "name": "authz" }]);
        let validation = json!({ "hostname": host, "wellKnownCACertificates": "System" });
        let spec = json!({ "targetRefs": target, "validation": validation });
        object(GATEWAY_GROUP, "BackendTLSPolicy", "authz", spec)
    };
    for (host, at) in [
        ("authz.a.svc", "https://authz.a.svc:9002"),
        (
            "authz.a.svc.cluster.local",
            "https://authz.a.svc.cluster.local:9002",
        ),
        ("10.0.0.1", "https://10.0.0.1:50051"),
    ] {
        let live = asked(&["10.0.0.1"], false, &[policy(host)]);
        assert_eq!(authority(&live)["grpc"], at);
    }
    for fails_open in [false, true] {
        let live = asked(&["10.0.0.1"], fails_open, &[policy("authz.example")]);
        let said = said(&live, "SecurityPolicy", "door");
        let why = "has a certificate for authz.example, and is asked at 10.0.0.1";
        assert!(
            said.starts_with("Accepted false") && said.contains(why),
            "{said}"
        );
        assert!(authority(&live).is_null());
        let document = live.loaded.as_ref().map(|loaded| loaded.document.json());
        let document = document.unwrap_or_else(|faults| panic!("{faults}"));
        let routes = document["routes"].as_array().expect("routes");
        assert!(
            routes.iter().all(|route| route["backend"] == "closed"),
            "{routes:?}"
        );
    }
}
