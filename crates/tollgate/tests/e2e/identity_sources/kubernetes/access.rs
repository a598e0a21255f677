//! What a user may do.

use std::time::Duration;

use serde_json::{Value, json};

use super::fake::{Api, Does};
use crate::harness::answer::json as answer;
use crate::harness::{Gate, Response, Step, Upstream, chat, post, tollgate};
use crate::identity_sources::issuer::{claims, jwks, signed};
use crate::identity_sources::{bearer, config, echo, told};

const WEB: &str = "system:serviceaccount:chat:web";

/// A gate that asks the API server whose a token is, and what these fields say of its owner.
fn gate(upstream: &Upstream, api: &Api, access: &str, more: &str) -> Gate {
    let text = config(upstream, &api.source("workload: chat, cache: 5m"))
        + &format!(
            "authority: {{ subject_access_review: {{ {}, timeout: 2s, {access} }}{more} }}\n",
            api.fields()
        );
    Gate::start(&text, &[("own", b"own-1")])
}

fn call(gate: &Gate, token: &str, model: &str) -> Response {
    gate.call(&post(
        "/v1/chat/completions",
        &[&bearer(token)],
        &chat(model, false),
    ))
}

fn listing(gate: &Gate) -> u16 {
    let head = "GET /v1/models HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer web\r\n\r\n";
    gate.call(head.as_bytes()).status
}

const BY_MODEL: &str =
    "resource: models, group: gate.test, namespace: \"{workload}\", verb: use, name: \"{model}\"";

#[test]
fn rights_to_models_are_roles_of_the_cluster() {
    let (upstream, api) = (echo(), Api::start());
    let start = |denied: &str| {
        let cached = format!("{BY_MODEL}, cache: 5m, cache_denied: {denied}");
        gate(&upstream, &api, &cached, "")
    };
    let gate = start("5m");
    let right = |model: &str| format!("{WEB} use models/gate.test/chat//{model}");
    api.allows(&right("small"));
    for _ in 0..3 {
        assert_eq!(call(&gate, "web", "small").status, 200);
        let denied = call(&gate, "web", "large");
        assert_eq!(told(&denied), (403, "not_authorized".to_owned()));
        assert!(!denied.text().contains("RBAC") && !denied.text().contains(WEB));
    }
    assert_eq!(listing(&gate), 403, "without a name all are meant");
    let asked = api.asked();
    assert_eq!(asked, (1, 3));
    let records = gate.records(7);
    let denied = &records[1];
    assert_eq!(
        denied["reason"],
        format!(
            "Kubernetes does not let {WEB} use models.gate.test large in chat: no rule of RBAC"
        )
    );
    assert_eq!(
        (&denied["route"], &denied["model"]),
        (&json!("up"), &json!("large")),
        "{denied}"
    );

    let gate = start("1s");
    assert_eq!(call(&gate, "web", "large").status, 403);
    assert_eq!(listing(&gate), 403);
    api.allows(&right("large"));
    api.allows(&right(""));
    testing::eventually("the new right counts", || {
        call(&gate, "web", "large").status == 200
    });
    testing::eventually("the list, too", || listing(&gate) == 200);
    assert!(
        upstream
            .seen()
            .iter()
            .all(|seen| seen.header("authorization") == ["Bearer gate-key"])
    );
}

#[test]
fn what_is_asked_names_user_groups_and_whatever_the_token_review_said() {
    let (upstream, api) = (echo(), Api::start());
    let by_path = gate(&upstream, &api, "cache: 1m", "");
    api.allows(&format!("{WEB} post /v1/chat/completions"));
    assert_eq!(call(&by_path, "web", "m").status, 200);
    assert_eq!(listing(&by_path), 403);
    let reviews: Vec<Value> = api
        .server
        .seen()
        .iter()
        .filter(|seen| seen.head.contains("subjectaccessreviews"))
        .map(|seen| serde_json::from_slice(&seen.body).expect("JSON"))
        .collect();
    let spec = json!({
        "user": WEB, "uid": "u-1", "groups": ["system:serviceaccounts", "team-a"],
        "extra": { "authentication.kubernetes.io/pod-name": ["web-0"] },
        "nonResourceAttributes": { "path": "/v1/chat/completions", "verb": "post" },
    });
    assert_eq!(reviews[0]["spec"], spec);
    let listed = json!({ "path": "/v1/models", "verb": "get" });
    assert_eq!(reviews[1]["spec"]["nonResourceAttributes"], listed);

    let by_backend = gate(
        &upstream,
        &api,
        "resource: backends, subresource: calls, name: \"{backend}-of-{route}\"",
        "",
    );
    api.allows(&format!("{WEB} create backends///calls/up-of-up"));
    assert_eq!(call(&by_backend, "web", "m").status, 200);
}

#[test]
fn a_service_rules_and_kubernetes_must_all_allow() {
    let (upstream, api) = (echo(), Api::start());
    let service = Upstream::start(|_, seen| {
        let is_good = seen.header("x-team") != ["sales"];
        vec![Step::Send(answer(if is_good { 200 } else { 403 }, "{}"))]
    });
    api.allows(&format!("{WEB} use models/gate.test/chat//a"));
    api.allows(&format!("{WEB} use models/gate.test/chat//b"));
    api.allows(&format!("{WEB} post /v1/chat/completions"));
    let more = format!(
        ", ext_authz: {{ url: http://{}, headers: x-team, timeout: 2s }}, \
         rules: [ {{ name: not-b, allow: 'model != \"b\" && \"team-a\" in claims.groups' }} ]",
        service.address
    );
    // Asked once the body is read, and with the head.
    for access in [BY_MODEL, "cache: 5m"] {
        let gate = gate(&upstream, &api, access, &more);
        let said = |team: &str, model: &str| {
            let lines = [&*bearer("web"), &format!("x-team: {team}")];
            let response = gate.call(&post("/v1/chat/completions", &lines, &chat(model, false)));
            response.status
        };
        assert_eq!(said("search", "a"), 200);
        assert_eq!(said("sales", "a"), 403, "the service");
        assert_eq!(said("search", "b"), 403, "a rule");
        if access == BY_MODEL {
            assert_eq!(said("search", "c"), 403, "Kubernetes");
        }
    }
    assert_eq!(upstream.seen().len(), 2);
}

#[test]
fn without_an_answer_a_call_is_refused_unless_the_document_lets_it_go_on() {
    let (upstream, api) = (echo(), Api::start());
    let source = api.source("workload: chat");
    let start = |access: &str| {
        let closed = crate::harness::free_address();
        let text = config(&upstream, &source)
            + &format!(
                "authority: {{ subject_access_review: {{ server: http://{closed}, token: {{ file: own }}, {access} }} }}\n"
            );
        Gate::start(&text, &[("own", b"own-1")])
    };
    let refuses = start(BY_MODEL);
    let unavailable = (503, "authorizer_unavailable".to_owned());
    assert_eq!(told(&call(&refuses, "web", "m")), unavailable);
    let records = refuses.records(1);
    let reason = records[0]["reason"].as_str().expect("a reason");
    assert!(
        reason.starts_with("the API server of Kubernetes: cannot reach"),
        "{reason}"
    );
    let goes_on = start(&format!("{BY_MODEL}, on_failure: allow"));
    assert_eq!(call(&goes_on, "web", "m").status, 200);

    let slow = gate(&upstream, &api, "cache: 5m", "");
    assert_eq!(told(&call(&slow, "web", "m")).0, 403);
    api.state().does = Does::Waits(Duration::from_hours(1));
    let path = "GET /v1/models HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer web\r\n\r\n";
    assert_eq!(told(&slow.call(path.as_bytes())), unavailable);
}

#[test]
fn other_sources_prove_users_too_and_never_ones_of_the_cluster() {
    let (upstream, api) = (echo(), Api::start());
    let source = "[ { jwt: { issuer: \"https://issuer.test/\", audience: gate, jwks: { file: jwks.json }, workload: chat } }, { header: x-workload-app } ]";
    let set = jwks(&["p256"]);
    let start = |more: &str| {
        let text = config(&upstream, source)
            + &format!(
                "authority: {{ subject_access_review: {{ {}{more} }} }}\n",
                api.fields()
            );
        Gate::start(&text, &[("own", b"own-1"), ("jwks.json", set.as_bytes())])
    };
    let token = |sub: &str| {
        let mut claims = claims();
        claims["sub"] = json!(sub);
        claims["groups"] = json!(["dev", "system:masters"]);
        signed(&claims, "p256")
    };
    api.allows("ada post /v1/chat/completions");
    api.allows("system:admin post /v1/chat/completions");
    let refused = start("");
    assert_eq!(call(&refused, &token("ada"), "m").status, 200);
    assert_eq!(call(&refused, &token("system:admin"), "m").status, 403);
    let by_header = post(
        "/v1/chat/completions",
        &["x-workload-app: chat"],
        &chat("m", false),
    );
    assert_eq!(
        refused.call(&by_header).status,
        403,
        "a header proves no user"
    );
    let seen = api.server.seen();
    assert_eq!(seen.len(), 1, "nothing is asked about the others");
    let review: Value = serde_json::from_slice(&seen[0].body).expect("JSON");
    assert_eq!(review["spec"]["groups"], json!(["dev"]));
    let trusted = start(", system_names: trusted");
    assert_eq!(call(&trusted, &token("system:admin"), "m").status, 200);
}

#[test]
fn explain_asks_kubernetes_too() {
    let (upstream, api) = (echo(), Api::start());
    let gate = gate(&upstream, &api, BY_MODEL, "");
    api.allows(&format!("{WEB} use models/gate.test/chat//small"));
    let config = gate.path("tollgate.yaml");
    let config = config.to_str().expect("UTF-8");
    let explained = |token: &str, model: &str| {
        let args = ["explain", "-c", config, "--model", model, "--json"];
        let ended = tollgate(gate.dir.path(), &args, &[("TOLLGATE_CREDENTIAL", token)]);
        let said: Value = serde_json::from_str(&ended.out).expect("JSON");
        (ended.code, said)
    };
    let (code, said) = explained("web", "small");
    assert_eq!(code, Some(0), "{said}");
    let known = ["would", "workload", "identity", "user", "route"].map(|name| said[name].clone());
    let expected = ["go upstream", "chat", "token_review", WEB, "up"].map(|text| json!(text));
    assert_eq!(known, expected, "{said}");
    let (code, said) = explained("web", "large");
    assert_eq!((code, &said["status"]), (Some(1), &json!(403)), "{said}");
    let reason = said["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("use models.gate.test large in chat: no rule of RBAC"),
        "{reason}"
    );
    let (code, said) = explained("invented", "small");
    assert_eq!((code, &said["status"]), (Some(1), &json!(401)), "{said}");
    assert_eq!(said["reason"], "the API server does not know it");
    assert_eq!(upstream.seen().len(), 0, "nothing is sent");
}
