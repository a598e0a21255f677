//! `spec.tls` of a Gateway: whose certificates clients show, and which one the gate shows.

use serde_json::{Value, json};

use super::gateway_api::{cluster, document, gateway, http_route, listeners_of, to_web};
use super::{GATEWAY_GROUP, Live, lowered, lowered_at, object, said};

fn held(kind: &str, name: &str, data: Value) -> Value {
    let member = if kind == "Secret" {
        "stringData"
    } else {
        "data"
    };
    json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name, "namespace": "a" }, member: data })
}

fn roots_in(kind: &str, name: &str, namespace: &str) -> Value {
    let named = json!([{ "group": "", "kind": kind, "name": name, "namespace": namespace }]);
    json!({ "validation": { "caCertificateRefs": named } })
}

fn roots(name: &str) -> Value {
    roots_in("ConfigMap", name, "a")
}

/// A Gateway with this `tls`, HTTPS at these ports and HTTP at 80, a route, and what they may name.
fn with(tls: Value, ports: &[u16], more: &[Value]) -> Live {
    let https = |port: &u16| json!({ "name": format!("p{port}"), "port": port, "protocol": "HTTPS", "tls": { "certificateRefs": [{ "name": "pair" }] } });
    let mut listeners: Vec<Value> = ports.iter().map(https).collect();
    listeners.push(json!({ "name": "clear", "port": 80, "protocol": "HTTP" }));
    let mut door = gateway(listeners.into());
    door["spec"]["tls"] = tls;
    let rules = json!({ "rules": [{ "backendRefs": to_web() }] });
    let route = http_route("r", json!([{ "name": "door" }]), rules);
    let mut objects = cluster(json!([]), &[route]);
    objects[1] = door;
    let certificate = "-----BEGIN CERTIFICATE-----\n";
    let pair = json!({ "tls.crt": certificate, "tls.key": "-----BEGIN PRIVATE KEY-----\n" });
    objects.push(held("Secret", "pair", pair));
    for name in ["ca", "other"] {
        objects.push(held("ConfigMap", name, json!({ "ca.crt": certificate })));
    }
    objects.extend(more.iter().cloned());
    lowered(&objects, None)
}

/// A condition of the Gateway, where it has it.
fn condition(live: &Live, kind: &str) -> Option<(bool, &'static str)> {
    let mut verdicts = live.report.verdicts.iter();
    let gateway = verdicts
        .find(|of| of.id.kind == "Gateway")
        .expect("a Gateway");
    let mut all = gateway.conditions.iter();
    all.find(|of| of.kind == kind)
        .map(|of| (of.is_true, of.reason))
}

#[test]
fn clients_are_checked_by_the_roots_of_their_port_or_else_by_the_gateways() {
    let frontend = json!({ "default": roots("ca"), "perPort": [
        { "port": 444, "tls": roots("other") },
        { "port": 445, "tls": {} },
        // Nobody shows a certificate there.
        { "port": 80, "tls": roots("ca") },
    ] });
    let live = with(json!({ "frontend": frontend }), &[443, 444, 445], &[]);
    let listeners = document(&live)["listen"]["listeners"]
        .as_array()
        .expect("listeners");
    let asked: Vec<&Value> = listeners.iter().map(|of| &of["tls"]["client_ca"]).collect();
    let file = |name: &str| json!(format!("config-maps/a/{name}/ca.crt"));
    assert_eq!(
        asked,
        [&file("ca"), &file("other"), &Value::Null, &Value::Null]
    );
    assert_eq!(condition(&live, "InsecureFrontendValidationMode"), None);
    assert_eq!(
        condition(&live, "ResolvedRefs"),
        Some((true, "ResolvedRefs"))
    );
}

#[test]
fn a_port_whose_clients_cannot_be_checked_is_not_served_and_others_are() {
    let frontend = json!({ "default": roots("none"), "perPort": [
        { "port": 444, "tls": roots_in("Service", "web", "a") },
        { "port": 445, "tls": roots_in("ConfigMap", "ca", "b") },
        { "port": 446, "tls": roots("ca") },
    ] });
    let live = with(json!({ "frontend": frontend }), &[443, 444, 445, 446], &[]);
    let bad = |reason: &str| {
        format!("1 Accepted=NoValidCACertificate Programmed=Invalid ResolvedRefs={reason}")
    };
    let told = [
        format!("p443 {}", bad("InvalidCACertificateRef")),
        format!("p444 {}", bad("InvalidCACertificateKind")),
        format!("p445 {}", bad("RefNotPermitted")),
        "p446 1".to_owned(),
        "clear 1".to_owned(),
    ];
    assert_eq!(listeners_of(&live, "Gateway", "door"), told);
    let listeners = document(&live)["listen"]["listeners"]
        .as_array()
        .expect("listeners");
    let served: Vec<&Value> = listeners.iter().map(|of| &of["name"]).collect();
    assert_eq!(served, ["p446", "clear"]);
    let says = said(&live, "Gateway", "door");
    let place =
        "spec.tls.frontend.default.validation.caCertificateRefs[0]: there is no ConfigMap a/none";
    assert!(says.contains(place), "{says}");
}

#[test]
fn where_clients_need_not_be_good_none_is_asked_and_the_status_tells() {
    let mut some = roots("ca");
    some["validation"]["mode"] = json!("AllowInsecureFallback");
    let live = with(json!({ "frontend": { "default": some } }), &[443], &[]);
    let listener = &document(&live)["listen"]["listeners"][0];
    assert_eq!(
        (&listener["name"], &listener["tls"]["client_ca"]),
        (&json!("p443"), &Value::Null)
    );
    let insecure = condition(&live, "InsecureFrontendValidationMode");
    assert_eq!(insecure, Some((true, "ConfigurationChanged")));
    some["validation"]["mode"] = json!("Whatever");
    let live = with(json!({ "frontend": { "default": some } }), &[443], &[]);
    let told = listeners_of(&live, "Gateway", "door");
    assert!(
        told[0].starts_with("p443 1 Accepted=NoValidCACertificate"),
        "{told:?}"
    );
}

#[test]
fn upstreams_over_tls_are_shown_the_gateways_certificate_or_get_no_calls() {
    let policy = object(
        GATEWAY_GROUP,
        "BackendTLSPolicy",
        "trust",
        json!({
            "targetRefs": [{ "group": "", "kind": "Service", "name": "web" }],
            "validation": { "hostname": "web.example", "wellKnownCACertificates": "System" },
        }),
    );
    let shown = |name: &str, kind: &str| json!({ "backend": { "clientCertificateRef": { "name": name, "kind": kind } } });
    let live = with(shown("pair", "Secret"), &[], std::slice::from_ref(&policy));
    let certificate = &document(&live)["backends"]["web"]["client_certificate"];
    assert_eq!(certificate["certificate"], "secrets/a/pair/tls.crt");
    assert_eq!(
        condition(&live, "ResolvedRefs"),
        Some((true, "ResolvedRefs"))
    );
    // One in clear is shown none.
    let live = with(shown("pair", "Secret"), &[], &[]);
    assert_eq!(
        document(&live)["backends"]["web"]["client_certificate"],
        Value::Null
    );
    for (name, kind) in [("none", "Secret"), ("ca", "ConfigMap")] {
        let live = with(shown(name, kind), &[], std::slice::from_ref(&policy));
        let resolved = condition(&live, "ResolvedRefs");
        assert_eq!(resolved, Some((false, "InvalidClientCertificateRef")));
        assert_eq!(condition(&live, "Accepted"), Some((true, "Accepted")));
        let backends = document(&live)["backends"].as_object().expect("backends");
        let names: Vec<&String> = backends.keys().collect();
        assert_eq!(names, ["closed-http"]);
        let route = said(&live, "HTTPRoute", "r");
        assert!(route.contains("tls.backend, which is faulty"), "{route}");
        // What is in clear goes on.
        let live = with(shown(name, kind), &[], &[]);
        assert!(document(&live)["backends"]["web"].is_object());
    }
}

#[test]
fn a_gateway_that_asks_for_an_address_has_it_or_says_that_it_has_not() {
    let of = |asked: Value| {
        let mut door = gateway(json!([{ "name": "clear", "port": 80, "protocol": "HTTP" }]));
        door["spec"]["addresses"] = asked;
        let rules = json!({ "rules": [{ "backendRefs": to_web() }] });
        let route = http_route("r", json!([{ "name": "door" }]), rules);
        let mut objects = cluster(json!([]), &[route]);
        objects[1] = door;
        lowered_at(&objects, &["10.0.0.1".to_owned()])
    };
    let both = |live: &Live| ["Accepted", "Programmed"].map(|kind| condition(live, kind));
    let had = of(json!([{ "type": "IPAddress", "value": "10.0.0.1" }]));
    assert_eq!(
        both(&had),
        [Some((true, "Accepted")), Some((true, "Programmed"))]
    );
    let lacks = of(json!([{ "value": "10.0.0.2" }, { "value": "10.0.0.1" }]));
    let not = Some((false, "AddressNotUsable"));
    assert_eq!(both(&lacks), [Some((true, "Accepted")), not]);
    // It goes on where it is.
    assert_eq!(listeners_of(&lacks, "Gateway", "door"), ["clear 1"]);
    let data = &document(&lacks)["listen"]["listeners"][0]["data"];
    assert_eq!(data, "127.0.0.9:80");
    let unknown = of(json!([{ "type": "test/other", "value": "x" }, { "value": "10.0.0.1" }]));
    let bad = Some((false, "UnsupportedAddress"));
    assert_eq!(both(&unknown)[0], bad);
}
