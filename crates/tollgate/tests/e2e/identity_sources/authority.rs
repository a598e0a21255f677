//! Rules and a service that decide over calls, and `tollgate explain`, which says how.
//!
//! Not here: the languages of rules (`authority`), what a service is asked (`callout`).

use serde_json::{Value, json};

use super::issuer::{claims, jwks, signed};
use super::{bearer, call, config, echo, told};
use crate::harness::answer::json as answer;
use crate::harness::{Gate, Step, Upstream, tollgate};

const JWT: &str = "[ { jwt: { issuer: \"https://issuer.test/\", audience: gate, jwks: { file: jwks.json }, \
                   workload_claim: azp } } ]";

/// A gate with signed tokens and these further lines of configuration.
fn gate(upstream: &Upstream, extra: &str, files: &[(&str, &[u8])]) -> Gate {
    let set = jwks(&["p256"]);
    let all = [files, &[("jwks.json", set.as_bytes())]].concat();
    Gate::start(&(config(upstream, JWT) + extra), &all)
}

/// A token whose claims say so.
fn token(dept: &str) -> String {
    let mut claims = claims();
    claims["dept"] = Value::from(dept);
    signed(&claims, "p256")
}

const NOT_AUTHORIZED: u16 = 403;

/// What becomes of calls of three departments.
fn of_departments(gate: &Gate) -> Vec<u16> {
    let departments = ["search", "interns", "sales"];
    departments
        .iter()
        .map(|dept| call(gate, &[&bearer(&token(dept))]).status)
        .collect()
}

#[test]
fn rules_in_both_languages_decide_alike_and_the_log_says_which_rule() {
    let upstream = echo();
    let cel = "authority:\n  rules:\n    - { name: staff, allow: 'claims.dept in [\"search\", \"interns\"]' }\n\
               \x20   - { name: no-interns, deny: 'claims.dept == \"interns\" && \"up\" in backends' }\n";
    let by_cel = gate(&upstream, cel, &[]);
    assert_eq!(
        of_departments(&by_cel),
        [200, NOT_AUTHORIZED, NOT_AUTHORIZED]
    );
    let records = by_cel.records(3);
    let reasons: Vec<_> = records
        .iter()
        .filter_map(|r| r["reason"].as_str())
        .collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons.contains(&"rule no-interns"), "{reasons:?}");
    assert!(
        reasons
            .iter()
            .any(|reason| reason.starts_with("no rule allows it")),
        "{reasons:?}"
    );

    let rego = b"package tollgate\n\nimport rego.v1\n\ndefault allow := false\n\n\
                 allow if {\n  input.claims.dept in {\"search\", \"interns\"}\n  not bad\n}\n\n\
                 bad if {\n  input.claims.dept == \"interns\"\n  \"up\" in input.backends\n}\n";
    let files: [(&str, &[u8]); 1] = [("policy.rego", rego)];
    let by_rego = gate(
        &upstream,
        "authority: { rego: { files: policy.rego } }\n",
        &files,
    );
    assert_eq!(
        of_departments(&by_rego),
        [200, NOT_AUTHORIZED, NOT_AUTHORIZED]
    );
    assert_eq!(upstream.seen().len(), 2);
}

#[test]
fn a_rule_that_cannot_be_read_is_a_fault_with_its_name_and_line() {
    let upstream = echo();
    let dir = tempfile::tempdir().expect("a directory");
    let text = config(&upstream, "[ { header: x-workload-app } ]")
        + "authority:\n  rules:\n    - { name: typo, allow: 'workloat == \"chat\"' }\n";
    std::fs::write(dir.path().join("tollgate.yaml"), text).expect("a file");
    let ended = tollgate(dir.path(), &["check"], &[]);
    let said = ended.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(ended.code, Some(1), "{said}");
    assert!(
        said.contains("typo (line 7)") && said.contains("workload"),
        "{said}"
    );
}

#[test]
fn a_service_is_asked_and_no_answer_is_neither_yes_nor_no() {
    let upstream = echo();
    let service = Upstream::start(|_, seen| {
        let is_good = seen.header("x-team") == ["search"];
        vec![Step::Send(answer(if is_good { 200 } else { 401 }, "{}"))]
    });
    let asked = |address| {
        format!(
            "authority: {{ ext_authz: {{ url: http://{address}/authz, headers: x-team, timeout: 2s }} }}\n"
        )
    };
    let with_service = gate(&upstream, &asked(service.address), &[]);
    let good = bearer(&token("any"));
    let said = |gate: &Gate, team: &str| told(&call(gate, &[&good, team]));
    assert_eq!(said(&with_service, "x-team: search").0, 200);
    assert_eq!(
        said(&with_service, "x-team: sales"),
        (403, "not_authorized".to_owned())
    );
    let [first, ..] = &service.seen()[..] else {
        panic!("nobody was asked");
    };
    assert!(
        first
            .head
            .starts_with("POST /authz/v1/chat/completions HTTP/1.1"),
        "{}",
        first.head
    );
    assert!(
        first.header("authorization").is_empty(),
        "not listed: {}",
        first.head
    );

    let closed = crate::harness::free_address();
    let alone = gate(&upstream, &asked(closed), &[]);
    assert_eq!(
        said(&alone, "x-team: search"),
        (503, "authorizer_unavailable".to_owned())
    );
    let open = asked(closed).replace("timeout: 2s", "timeout: 2s, on_failure: allow");
    let open = gate(&upstream, &open, &[]);
    assert_eq!(said(&open, "x-team: search").0, 200);
}

#[test]
fn explain_says_who_calls_where_it_goes_and_why_not() {
    let upstream = echo();
    let rules =
        "authority:\n  rules: [ { name: search-only, allow: 'claims.dept == \"search\"' } ]\n";
    let gate = gate(&upstream, rules, &[]);
    let config = gate.path("tollgate.yaml");
    let config = config.to_str().expect("UTF-8");
    let explained = |token: &str| {
        let args = ["explain", "-c", config, "--model", "m", "--json"];
        let ended = tollgate(gate.dir.path(), &args, &[("TOLLGATE_CREDENTIAL", token)]);
        let said: Value = serde_json::from_str(&ended.out).expect("JSON");
        (ended.code, said)
    };
    let (code, said) = explained(&token("search"));
    assert_eq!(code, Some(0), "{said}");
    let known = ["would", "workload", "identity", "user", "route", "model"].map(|name| &said[name]);
    let expected = ["go upstream", "chat", "token", "ada", "up", "m"].map(|text| json!(text));
    assert_eq!(known.map(Clone::clone), expected, "{said}");
    let (code, said) = explained(&token("sales"));
    assert_eq!(code, Some(1));
    assert_eq!(
        (&said["status"], &said["code"]),
        (&json!(403), &json!("not_authorized")),
        "{said}"
    );
    let (code, said) = explained("nonsense");
    assert_eq!((code, &said["status"]), (Some(1), &json!(401)), "{said}");
    assert!(
        said["reason"]
            .as_str()
            .is_some_and(|why| why.contains("no source")),
        "{said}"
    );
    let text = tollgate(gate.dir.path(), &["explain", "-c", config], &[]);
    assert!(text.out.contains("401 credential_missing"), "{}", text.out);
    assert!(
        text.out.contains("not known; registered: chat"),
        "{}",
        text.out
    );
    assert_eq!(upstream.seen().len(), 0, "nothing is sent");
}
