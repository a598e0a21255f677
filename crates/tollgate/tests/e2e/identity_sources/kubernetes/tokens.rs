//! Whose a token is.

use std::time::Duration;

use super::fake::{Api, Does};
use crate::harness::{Gate, Upstream};
use crate::identity_sources::{assert_invalid, bearer, call, config, echo, told};

fn gate(upstream: &Upstream, source: &str) -> Gate {
    Gate::start(&config(upstream, source), &[("own", b"own-1\n")])
}

const BY_NAMESPACE: &str = "workload_claim: namespace, tags: { team: groups }";

#[test]
fn a_service_accounts_token_says_who_calls_and_others_let_nobody_in() {
    let (upstream, api) = (echo(), Api::start());
    api.knows("of-ops", "system:serviceaccount:ops:web", "gate");
    api.knows(
        "of-api",
        "system:serviceaccount:chat:web",
        "https://kubernetes.default.svc",
    );
    api.knows("person", "ada", "gate");
    let gate = gate(&upstream, &api.source(BY_NAMESPACE));
    let good = call(&gate, &[&bearer("web")]);
    assert_eq!(good.status, 200, "{}", good.text());
    let named = call(&gate, &[&bearer("web"), "x-workload-app: ci"]);
    assert_eq!(told(&named), (403, "identity_contradicted".to_owned()));
    assert_invalid(&call(&gate, &[&bearer("invented")]), "an unknown token");
    assert_invalid(&call(&gate, &[&bearer("of-api")]), "another audience's");
    assert_invalid(&call(&gate, &[&bearer("person")]), "no service account");
    let ops = call(&gate, &[&bearer("of-ops")]);
    assert_eq!(told(&ops), (403, "workload_not_registered".to_owned()));
    assert_eq!(
        told(&call(&gate, &[])),
        (401, "credential_missing".to_owned())
    );

    let records = gate.records(7);
    let first = &records[0];
    assert_eq!(first["identity"], "token_review", "{first}");
    assert_eq!(first["user"], "system:serviceaccount:chat:web", "{first}");
    let text = first.to_string();
    assert!(text.contains("system:serviceaccounts,team-a"), "{first}");
    let reasons: Vec<_> = records
        .iter()
        .filter_map(|r| r["reason"].as_str())
        .collect();
    assert!(
        reasons.contains(&"the API server does not know it"),
        "{reasons:?}"
    );
    // The caller's token goes to the API server alone, and the gate's own nowhere else.
    let seen = upstream.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].header("authorization"), ["Bearer gate-key"]);
    let log = gate.log() + &std::fs::read_to_string(gate.path("access.jsonl")).expect("a log");
    for secret in ["own-1", "invented", "of-api"] {
        assert!(!log.contains(secret), "{secret} is logged");
    }
}

#[test]
fn a_user_and_groups_may_say_the_workload_too() {
    let (upstream, api) = (echo(), Api::start());
    api.knows("person", "ada", "gate");
    // As OpenShift's OAuth server gives them to people.
    let of_openshift = "sha256~Q1w-e2r_T3y4";
    api.knows(of_openshift, "ada", "gate");
    let by_user = "workload_claim: username, workloads: { \"system:serviceaccount:chat:web\": chat, ada: ci }";
    let by_user = gate(&upstream, &api.source(by_user));
    let by_group = gate(
        &upstream,
        &api.source("workload_claim: groups, workloads: { team-a: ci }, user_claim: uid"),
    );
    for (gate, token, workload, user) in [
        (&by_user, "web", "chat", "system:serviceaccount:chat:web"),
        (&by_user, "person", "ci", "ada"),
        (&by_group, "person", "ci", "u-1"),
        (&by_user, of_openshift, "ci", "ada"),
    ] {
        let before = std::fs::read_to_string(gate.path("access.jsonl")).unwrap_or_default();
        assert_eq!(call(gate, &[&bearer(token)]).status, 200);
        let records = gate.records(before.lines().count() + 1);
        let last = records.last().expect("a record");
        assert_eq!(
            (&last["workload"], &last["user"]),
            (&workload.into(), &user.into())
        );
    }
}

#[test]
fn a_token_is_asked_about_once_and_a_deleted_one_ends_within_the_cache() {
    let (upstream, api) = (echo(), Api::start());
    api.state().does = Does::Waits(Duration::from_millis(100));
    let kept = gate(&upstream, &api.source("cache: 5m, workload: chat"));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let one = || call(&kept, &[&bearer("web")]).status;
        let calls: Vec<_> = (0..20).map(|_| scope.spawn(one)).collect();
        calls
            .into_iter()
            .map(|call| call.join().expect("a call"))
            .collect()
    });
    assert_eq!(statuses, [200; 20]);
    assert_eq!(api.asked(), (1, 0), "one question for twenty calls");
    api.state().does = Does::Answers;
    let brief = gate(&upstream, &api.source("cache: 3s, workload: chat"));
    assert_eq!(call(&brief, &[&bearer("web")]).status, 200);
    assert_eq!(api.asked(), (2, 0));
    api.forgets("web");
    let gone = testing::Began::now();
    assert_eq!(call(&kept, &[&bearer("web")]).status, 200, "still kept");
    assert_eq!(api.asked(), (2, 0));
    testing::eventually("it is refused", || {
        testing::pace(Duration::from_millis(50));
        // It was asked about before it was deleted.
        let is_over = gone.is_over(Duration::from_secs(3));
        let is_good = call(&brief, &[&bearer("web")]).status != 401;
        assert!(!is_good || !is_over, "a call after the cache was let in");
        !is_good
    });
    assert_eq!(api.asked(), (3, 0));
}

#[test]
fn an_api_server_that_is_ill_is_neither_yes_nor_no() {
    let (upstream, api) = (echo(), Api::start());
    let gate = gate(&upstream, &api.source("cache: 1s, workload: chat"));
    let unavailable = (503, "identity_unavailable".to_owned());
    let mut ill = 0;
    for does in [
        Does::Says(500),
        Does::Says(403),
        Does::Garbage,
        Does::Huge,
        Does::Closes,
        Does::Waits(Duration::from_hours(1)),
    ] {
        api.state().does = does;
        // Each with a token of its own: one that failed twice is asked about again once a second.
        let token = format!("token-{ill}");
        assert_eq!(told(&call(&gate, &[&bearer(&token)])), unavailable);
        ill += 1;
    }
    api.state().does = Does::Answers;
    testing::eventually("it is well again", || {
        call(&gate, &[&bearer("web")]).status == 200
    });
    let records = gate.records(ill + 1);
    let reasons: Vec<&str> = records[..ill]
        .iter()
        .map(|r| r["reason"].as_str().unwrap_or("none"))
        .collect();
    for (reason, part) in reasons.iter().zip([
        "it answered 500",
        "it answered 403",
        "cannot be used",
        "longer than",
        "broke off",
        "within",
    ]) {
        assert!(
            reason.starts_with("the API server of Kubernetes: ") && reason.contains(part),
            "{part}: {reasons:?}"
        );
    }

    let closed = crate::harness::free_address();
    let source = format!(
        "[ {{ token_review: {{ server: http://{closed}, token: {{ file: own }}, workload: chat }} }} ]"
    );
    let away = self::gate(&upstream, &source);
    assert_eq!(told(&call(&away, &[&bearer("web")])), unavailable);
}

#[test]
fn the_gates_own_token_is_read_anew_when_it_is_replaced() {
    let (upstream, api) = (echo(), Api::start());
    let gate = gate(&upstream, &api.source("cache: 1s, workload: chat"));
    assert_eq!(call(&gate, &[&bearer("web")]).status, 200);
    api.state().own = "own-2";
    testing::eventually("the old one is refused", || {
        testing::pace(Duration::from_millis(50));
        call(&gate, &[&bearer("web")]).status == 503
    });
    gate.replace("own", b"own-2\n");
    testing::eventually("the new one is used", || {
        testing::pace(Duration::from_millis(50));
        call(&gate, &[&bearer("web")]).status == 200
    });
    assert!(
        !gate.log().contains("the configuration changed"),
        "no reload"
    );
}

#[test]
fn invented_tokens_are_asked_about_within_bounds_and_push_out_nobody() {
    let (upstream, api) = (echo(), Api::start());
    let gate = gate(&upstream, &api.source("cache: 1m, workload: chat"));
    assert_eq!(call(&gate, &[&bearer("web")]).status, 200);
    let counts: Vec<(u16, String)> = std::thread::scope(|scope| {
        let flood = |thread: u32| {
            let gate = &gate;
            move || -> Vec<(u16, String)> {
                let one = |n| told(&call(gate, &[&bearer(&format!("invented-{thread}-{n}"))]));
                (0..100).map(one).collect()
            }
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(flood(thread))).collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().expect("calls"));
        ended.flatten().collect()
    });
    let of = |status: u16| counts.iter().filter(|(found, _)| *found == status).count();
    assert_eq!(of(401) + of(429), 400, "{counts:?}");
    // A hundred of one address, and those that were under way meanwhile.
    let (asked, _) = api.asked();
    assert!(
        (100..=110).contains(&asked),
        "{asked} questions for 400 tokens"
    );
    assert_eq!(call(&gate, &[&bearer("web")]).status, 200, "known before");
    assert_eq!(api.asked().0, asked, "and not asked about again");
}
