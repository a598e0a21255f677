//! Tokens and rights of Kubernetes, of a real API server.
//!
//! Runs where `TOLLGATE_E2E_KUBERNETES` names a directory with the commands `etcd` and `apiserver`, as
//! `cargo xtask kubernetes` makes it, and says so where it does not.
//! Not here: an API server that is ill (`kubernetes`).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use testing::Began;

use super::{assert_invalid, bearer, config, echo, told};
use crate::harness::cluster::{self, Cluster, figure};
use crate::harness::{Gate, Response, Upstream, chat, post};

/// How long a gate of these tests keeps a good token.
const CACHE: Duration = Duration::from_secs(2);
/// How long an API server keeps one (kubernetes#50258).
const CACHE_OF_SERVER: Duration = Duration::from_secs(10);

const WEB: &str = "system:serviceaccount:chat:web";

fn call(gate: &Gate, token: &str, model: &str) -> Response {
    gate.call(&post(
        "/v1/chat/completions",
        &[&bearer(token)],
        &chat(model, false),
    ))
}

/// A gate whose own token is `own`, and that recognises callers so.
fn gate(upstream: &Upstream, cluster: &Cluster, own: &str, source: &str, more: &str) -> Gate {
    let fields = cluster.fields();
    let text = config(upstream, &source.replace("SERVER", &fields))
        + &format!(
            "authority: {{ subject_access_review: {{ {fields}, resource: models, group: gate.test, \
             namespace: \"{{workload}}\", verb: use, name: \"{{model}}\", cache: 1s, cache_denied: 1s{more} }} }}\n"
        );
    let files: [(&str, &[u8]); 3] = [
        ("own", own.as_bytes()),
        ("ca.pem", cluster.ca().as_bytes()),
        ("jwks.json", cluster.keys.as_bytes()),
    ];
    Gate::start(&text, &files)
}

const REVIEWED: &str =
    "[ { token_review: { SERVER, audiences: gate, cache: 2s, workload_claim: namespace } } ]";

/// Waits until it is so, and says how long that took.
fn until(what: &str, done: impl FnMut() -> bool) {
    let began = Began::now();
    testing::eventually(what, done);
    figure(what, &began.shown());
}

#[test]
fn a_real_api_server_says_who_calls_and_what_they_may() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let upstream = echo();
    let own = cluster.account(
        "gate",
        "tollgate",
        "https://kubernetes.default.svc.cluster.local",
    );
    cluster.binds_delegator("gate", "tollgate");
    let web = cluster.account("chat", "web", "gate");
    let gate = gate(&upstream, &cluster, &own, REVIEWED, "");
    let status = |token: &str, model: &str| call(&gate, token, model).status;

    assert_invalid(&call(&gate, "invented", "m"), "an invented token");
    let of_server = cluster.token(
        "chat",
        "web",
        "https://kubernetes.default.svc.cluster.local",
    );
    assert_invalid(&call(&gate, &of_server, "m"), "another audience's token");
    let (head, _) = web.rsplit_once('.').expect("three parts");
    assert_invalid(&call(&gate, &format!("{head}.AAAA"), "m"), "a forged one");
    let denied = call(&gate, &web, "m");
    assert_eq!(told(&denied), (403, "not_authorized".to_owned()));

    cluster.allows(
        "chat",
        "m",
        &json!({ "kind": "ServiceAccount", "name": "web", "namespace": "chat" }),
    );
    until("a new right counts after", || status(&web, "m") == 200);
    assert_eq!(status(&web, "other"), 403, "another model");
    let group = json!({ "kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:serviceaccounts:chat" });
    let batch = cluster.account("chat", "batch", "gate");
    assert_eq!(status(&batch, "g"), 403);
    cluster.allows("chat", "g", &group);
    until("a group's right counts after", || {
        status(&batch, "g") == 200
    });
    let stranger = cluster.account("other", "web", "gate");
    assert_eq!(
        told(&call(&gate, &stranger, "m")),
        (403, "workload_not_registered".to_owned())
    );

    cluster.delete("/apis/rbac.authorization.k8s.io/v1/namespaces/chat/rolebindings/m");
    until("a right that is taken away ends after", || {
        status(&web, "m") == 403
    });
    cluster.delete("/api/v1/namespaces/chat/serviceaccounts/batch");
    until("a deleted account's token ends after", || {
        status(&batch, "g") == 401
    });

    let records = gate.records(10);
    let reasons: Vec<_> = records
        .iter()
        .filter_map(|r| r["reason"].as_str())
        .collect();
    for reason in [
        "it is for another audience",
        "the API server does not know it",
        &format!("Kubernetes does not let {WEB} use models.gate.test m in chat"),
    ] {
        assert!(
            reasons.iter().any(|said| said.starts_with(reason)),
            "{reason}: {reasons:?}"
        );
    }
    let good = records
        .iter()
        .find(|record| record["status"] == 200)
        .expect("a good call");
    assert_eq!(
        (&good["user"], &good["identity"]),
        (&json!(WEB), &json!("token_review"))
    );
}

#[test]
fn what_reviews_of_a_real_api_server_take() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let upstream = echo();
    let own = cluster.account(
        "gate",
        "tollgate",
        "https://kubernetes.default.svc.cluster.local",
    );
    cluster.binds_delegator("gate", "tollgate");
    let first = cluster.account("chat", "web", "gate");
    cluster.allows(
        "chat",
        "m",
        &json!({ "kind": "ServiceAccount", "name": "web", "namespace": "chat" }),
    );
    let gate = gate(&upstream, &cluster, &own, REVIEWED, "");
    testing::eventually("the right counts", || {
        call(&gate, &first, "m").status == 200
    });
    let tokens: Vec<_> = (0..40)
        .map(|_| cluster.token("chat", "web", "gate"))
        .collect();
    let began = Began::now();
    for token in &tokens {
        assert_eq!(call(&gate, token, "m").status, 200);
    }
    figure("forty calls with new tokens take", &began.shown());
    let asked = || {
        let labels = ["service=\"token_review\"", "result=\"answered\""];
        gate.metric("tollgate_callout_questions_total", &labels)
    };
    let before = asked();
    assert!(before >= 40.0, "{before}");
    let began = Began::now();
    for _ in 0..200 {
        assert_eq!(call(&gate, &first, "m").status, 200);
    }
    figure("two hundred with a known token take", &began.shown());
    let again = asked() - before;
    assert!(again < 200.0, "{again} questions about a known token");
}

#[test]
fn a_flood_of_invented_tokens_asks_a_real_api_server_once_about_each_and_starves_nobody() {
    const TOKENS: usize = 400;
    const TIMES: usize = 5;
    const CLIENTS: usize = 16;
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let upstream = echo();
    let own = cluster.account("gate", "tollgate", cluster::ISSUER);
    cluster.binds_delegator("gate", "tollgate");
    let web = cluster.account("chat", "web", "gate");
    let account = json!({ "kind": "ServiceAccount", "name": "web", "namespace": "chat" });
    cluster.allows("chat", "m", &account);
    let gate = gate(&upstream, &cluster, &own, REVIEWED, "");
    testing::eventually("the right counts", || call(&gate, &web, "m").status == 200);
    let asked = || {
        let labels = ["resource=\"tokenreviews\"", "verb=\"POST\""];
        cluster.metric("apiserver_request_total", &labels) as usize
    };
    let before = asked();
    let began = Began::now();
    let told_them = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| {
                let (gate, web) = (&gate, &web);
                scope.spawn(move || {
                    let mut all = BTreeMap::<_, usize>::new();
                    for turn in (n..TOKENS * TIMES).step_by(CLIENTS) {
                        let invented = format!("invented-{}", turn % TOKENS);
                        *all.entry(told(&call(gate, &invented, "m"))).or_default() += 1;
                        if turn % 10 == 0 {
                            assert_eq!(call(gate, web, "m").status, 200, "a real caller");
                        }
                    }
                    all
                })
            })
            .collect();
        let mut all = BTreeMap::<_, usize>::new();
        for client in clients {
            for (what, times) in client.join().expect("it ends") {
                *all.entry(what).or_default() += times;
            }
        }
        all
    });
    // Who shows many bad ones is asked about no more for a while; good ones of the same address are.
    let many = (429, "too_many_bad_credentials".to_owned());
    let refused = (401, "invalid_api_key".to_owned());
    assert_eq!(told_them.values().sum::<usize>(), TOKENS * TIMES);
    assert!(
        told_them
            .keys()
            .all(|what| *what == many || *what == refused),
        "{told_them:?}"
    );
    let reviews = asked() - before;
    let says = format!("{reviews} reviews in {}", began.shown());
    figure(
        "2000 calls with 400 invented tokens, and 200 of a real caller",
        &says,
    );
    assert!(reviews < TOKENS, "{reviews} reviews");
}

#[test]
fn the_clusters_keys_prove_its_tokens_without_a_review_and_without_revocation() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let upstream = echo();
    let own = cluster.account(
        "gate",
        "tollgate",
        "https://kubernetes.default.svc.cluster.local",
    );
    let web = cluster.account("chat", "web", "gate");
    let by_keys = format!(
        "[ {{ jwt: {{ issuer: \"{}\", audience: gate, jwks: {{ file: jwks.json }}, workload_claim: sub, \
         workloads: {{ \"{WEB}\": chat }} }} }} ]",
        cluster::ISSUER
    );
    cluster.allows(
        "chat",
        "m",
        &json!({ "kind": "ServiceAccount", "name": "web", "namespace": "chat" }),
    );
    let gate = |more: &str| self::gate(&upstream, &cluster, &own, &by_keys, more);
    let refused = gate("");
    assert_eq!(
        call(&refused, &web, "m").status,
        403,
        "a name of the cluster's own"
    );
    let trusted = gate(", system_names: trusted");
    // A gate that may not ask is neither a yes nor a no.
    let unavailable = (503, "authorizer_unavailable".to_owned());
    assert_eq!(told(&call(&trusted, &web, "m")), unavailable);
    cluster.binds_delegator("gate", "tollgate");
    testing::eventually("the gate may ask", || {
        call(&trusted, &web, "m").status == 200
    });
    cluster.delete("/api/v1/namespaces/chat/serviceaccounts/web");
    testing::nothing_happens_for(CACHE + CACHE_OF_SERVER);
    assert_eq!(
        call(&trusted, &web, "m").status,
        200,
        "nobody is asked whether it is revoked"
    );
}
