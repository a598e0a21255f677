//! Many objects of a real API server: routes that change all the time, Secrets of others, and one that is bad.
//!
//! Not here: how many objects a gate keeps (`kubernetes`).

use serde_json::{Value, json};
use testing::{Began, eventually};

use super::kube_apiserver::{AI, cluster, deployed, gate, with_objects};
use super::{FIRST, SECOND, call, completions, route, secret};
use crate::harness::Gate;
use crate::harness::cluster::{figure, objects};

const ROUTES: usize = 1000;
/// Rounds of changes, and routes that change in each.
const ROUNDS: usize = 10;
const CHANGED: usize = 100;
const SECRETS: usize = 5000;
const SECRET_BYTES: usize = 20_000;

/// A route of its own to the backend `one`.
fn numbered(n: usize) -> Value {
    let text = format!(
        "apiVersion: aigateway.envoyproxy.io/v1beta1\nkind: AIGatewayRoute\nmetadata: {{ name: r{n}, namespace: default }}\n\
         spec:\n  parentRefs: [ {{ name: door, kind: Gateway, group: gateway.networking.k8s.io }} ]\n  rules:\n\
         \u{20}   - matches: [ {{ headers: [ {{ type: Exact, name: x-ai-eg-model, value: r{n} }} ] }} ]\n\
         \u{20}     backendRefs: [ {{ name: one }} ]\n"
    );
    objects(&text).remove(0)
}

/// The processor time that it has had, in milliseconds.
fn cpu_ms(gate: &Gate) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", gate.id())).expect("it runs");
    let (_, rest) = stat.rsplit_once(')').expect("a name");
    let of = |n: usize| -> u64 {
        let word = rest.split_whitespace().nth(n).expect("a field");
        word.parse().expect("a number")
    };
    // A hundred ticks a second, as Linux says of every architecture.
    (of(11) + of(12)) * 10
}

#[test]
fn a_thousand_routes_are_all_lowered_and_said_while_they_change_all_the_time() {
    let Some((cluster, token)) = cluster() else {
        return;
    };
    let upstream = completions();
    with_objects(&cluster, &upstream);
    let routes: Vec<Value> = (0..ROUTES).map(numbered).collect();
    cluster.make_all(&routes);
    let began = Began::now();
    let gate = gate(&cluster, &token, "");
    for n in 0..ROUTES {
        assert_eq!(call(&gate, &format!("r{n}")), 200, "r{n}");
    }
    figure(
        "a gate with 1,000 routes is there, and each was called, after",
        &began.shown(),
    );
    // The status of each says what its newest form came to.
    let all_said = || {
        let all = cluster.get(&format!("{AI}/aigatewayroutes"));
        let items = all["items"].as_array().expect("a list").clone();
        items.len() == ROUTES + 1
            && items.iter().all(|route| {
                let said = &route["status"]["conditions"][0];
                said["status"] == "True"
                    && said["observedGeneration"] == route["metadata"]["generation"]
            })
    };
    eventually("all are said to be accepted", all_said);
    figure(
        "their statuses are written, since it began, after",
        &began.shown(),
    );
    let patches = || {
        let labels = [
            "verb=\"PATCH\"",
            "resource=\"aigatewayroutes\"",
            "subresource=\"status\"",
        ];
        cluster.metric("apiserver_request_total", &labels)
    };
    let (before, cpu, memory) = (patches(), cpu_ms(&gate), gate.resident_kib());
    let began = Began::now();
    for round in 0..ROUNDS {
        let changes: Vec<(String, Value)> = (0..CHANGED)
            .map(|n| {
                let n = round * CHANGED + n;
                let to = json!({ "name": "one", "modelNameOverride": format!("r{n}-new") });
                let mut spec = routes[n]["spec"].clone();
                spec["rules"][0]["backendRefs"][0] = to;
                (
                    format!("{AI}/aigatewayroutes/r{n}"),
                    json!({ "spec": spec }),
                )
            })
            .collect();
        cluster.patch_all(&changes);
        // Whoever calls meanwhile is served by the one form or the other.
        for n in [0, ROUTES - 1] {
            assert_eq!(call(&gate, &format!("r{n}")), 200);
        }
    }
    figure("1,000 changes were made in", &began.shown());
    let last = format!("r{}", ROUTES - 1);
    eventually("the last change is in force", || {
        assert_eq!(call(&gate, &last), 200);
        let seen = upstream.seen();
        seen.last().expect("a call").json()["model"] == format!("{last}-new")
    });
    figure(
        "and the last was in force, since the first, after",
        &began.shown(),
    );
    eventually("all are said anew", all_said);
    figure("and the last status was written after", &began.shown());
    let says = format!(
        "{} ms of processor time, {} statuses written, {} KiB more",
        cpu_ms(&gate) - cpu,
        patches() - before,
        gate.resident_kib() - memory
    );
    figure("that took the gate", &says);
    let written = patches() - before;
    // One for each change, and another where a route changed again before it was written.
    assert!(
        written >= ROUTES as f64 && written < 1.2 * ROUTES as f64,
        "{written}"
    );
    for n in 0..ROUTES {
        assert_eq!(call(&gate, &format!("r{n}")), 200, "r{n}");
    }
}

#[test]
fn one_bad_secret_closes_its_own_route_and_no_other() {
    let Some((cluster, token)) = cluster() else {
        return;
    };
    let upstream = completions();
    with_objects(&cluster, &upstream);
    let rights = deployed("secrets.yaml").replace("provider-key", "bad");
    cluster.apply(&rights.replace("tollgate-secrets", "tollgate-bad"));
    let bad = |data: &str| {
        secret(FIRST)
            .replace("name: key", "name: bad")
            .replace(&format!("apiKey: {FIRST}"), data)
    };
    let route =
        route("two", &upstream).replace("secretRef: { name: key }", "secretRef: { name: bad }");
    cluster.apply(&bad(&format!("apiKey: {FIRST}")));
    cluster.apply(&route);
    let gate = gate(&cluster, &token, "");
    assert_eq!((call(&gate, "one"), call(&gate, "two")), (200, 200));
    let policy = format!("{AI}/backendsecuritypolicies/two");
    let said = || {
        let said = cluster.get(&policy)["status"]["conditions"][0].clone();
        (
            said["status"] == "True",
            said["message"].as_str().unwrap_or_default().to_owned(),
        )
    };
    // A member of another name; nothing; a line end within; bytes that are no text.
    for data in [
        "apikey: YQ==",
        "apiKey: \"\"",
        "apiKey: YQpi",
        "apiKey: //79",
    ] {
        cluster.delete("/api/v1/namespaces/default/secrets/bad");
        cluster.apply(&bad(data));
        eventually(data, || call(&gate, "two") == 500);
        assert_eq!(call(&gate, "one"), 200, "{data}");
        eventually("it is said which Secret it is", || {
            let (is_so, message) = said();
            !is_so && message.contains("secretRef")
        });
        // A good one opens it again.
        cluster.apply(&bad(&format!("apiKey: {SECOND}")));
        eventually("it is open", || call(&gate, "two") == 200);
    }
    assert!(!gate.log().contains("canary-key"));
}

#[test]
fn five_thousand_secrets_of_others_cost_a_gate_nothing() {
    const MOST_KIB: i64 = 10 << 10;
    let Some((cluster, token)) = cluster() else {
        return;
    };
    let upstream = completions();
    with_objects(&cluster, &upstream);
    let gate = gate(&cluster, &token, "");
    assert_eq!(call(&gate, "one"), 200);
    eventually("it says what it found", || {
        cluster.get(&format!("{AI}/aigatewayroutes/one"))["status"].is_object()
    });
    let (before, peak) = (gate.resident_kib(), gate.peak_kib());
    let filling = "A".repeat(SECRET_BYTES);
    let foreign: Vec<Value> = (0..SECRETS)
        .map(|n| {
            json!({
                "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
                "metadata": { "name": format!("foreign-{n}"), "namespace": "default" },
                "data": { "release": filling },
            })
        })
        .collect();
    let began = Began::now();
    cluster.make_all(&foreign);
    figure("5,000 Secrets of 20 kB were made in", &began.shown());
    let sent = |key: &str| {
        upstream
            .seen()
            .last()
            .expect("a call")
            .header("authorization")
            == [format!("Bearer {key}-canary-key")]
    };
    // It watches its own all the same.
    cluster.apply(&secret(SECOND));
    eventually("the new key is sent", || {
        call(&gate, "one") == 200 && sent("second")
    });
    // One that begins among them lists none of them.
    let second = super::kube_apiserver::gate(&cluster, &token, "");
    assert_eq!(call(&second, "one"), 200);
    let (more, more_at_most) = (gate.resident_kib() - before, gate.peak_kib() - peak);
    let says = format!(
        "{more} KiB more, {more_at_most} KiB at most; one that begins among them has {} KiB, and the first had {before}",
        second.peak_kib()
    );
    figure("5,000 Secrets of others, 100 MB, cost a gate", &says);
    assert!(more_at_most <= MOST_KIB, "{more_at_most} KiB");
    assert!(
        second.peak_kib() - peak <= MOST_KIB,
        "{} KiB",
        second.peak_kib()
    );
    assert_eq!(
        cluster.get_as(&token, "/api/v1/namespaces/default/secrets?limit=1"),
        403
    );
}
