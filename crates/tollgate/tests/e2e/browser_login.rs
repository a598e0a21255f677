//! People who log in at a real provider, in a real browser: scripts in `openid/` do it and assert what the browser sees.
//!
//! Not here: what a login must refuse (`identity_sources::login`), tokens of the provider (`identity_sources::openid`).

use serde_json::{Value, json};

use crate::harness::answer::{COMPLETION, json as answer};
use crate::harness::{Gate, OpenId, Step, Upstream, free_address, in_browser};

const PERSON: &str = "ada@example.test";

#[test]
fn a_person_logs_in_with_a_browser_and_pages_call_the_gate() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer(200, COMPLETION))]);
    let [provider, data, admin, app, stranger, elsewhere] = [(); 6].map(|()| free_address());
    let redirect = format!("http://{data}/login/callback");
    let openid = OpenId::start(provider, std::slice::from_ref(&redirect));
    let config = format!(
        "workers: 1\nidentity:\n  - login: {{ issuer: \"{}\", client_id: tollgate, \
         client_secret: {{ inline: tollgate-secret }}, redirect_url: \"{redirect}\", scopes: [email, groups], \
         workload: chat, user_claim: email }}\n\
         cors: {{ origins: [\"http://{app}\", \"http://localhost:{}\"] }}\n\
         backends: {{ up: {{ url: http://{}/v1, models: [m], credential: {{ inline: gate-key }} }} }}\n\
         routes: [ {{ workload: chat, backend: up }} ]\nledger: {{ path: usage.db }}\n",
        openid.issuer(),
        elsewhere.port(),
        upstream.address
    );
    let gate = Gate::start_on(data, admin, &config);
    let input = json!({
        "gate": format!("http://{data}"), "issuer": openid.issuer(), "app": format!("http://{app}"),
        "stranger": format!("http://{stranger}"), "elsewhere": format!("http://localhost:{}", elsewhere.port()),
    });
    let expected = json!([
        "nobody is let in",
        "a page leads to the provider",
        "and back to the page",
        "no script sees the session",
        "pages of both origins call",
        "other pages do not",
        "the session ends",
        "at the provider too"
    ]);
    assert_eq!(in_browser("calls", input), expected);
    the_records_name_the_person(&gate);
    let sent = upstream.seen();
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|call| call.header("cookie").is_empty()));
}

/// The calls that were let in are this person's, and the steps of the login stand in the log.
fn the_records_name_the_person(gate: &Gate) {
    let steps = [
        "login_begun",
        "login_done",
        "logout_done",
        // On the way to the last page.
        "login_begun",
    ];
    let is_step = |code: &str| code.starts_with("login_") || code.starts_with("logout_");
    let mut records = Vec::new();
    testing::eventually("every step has its record", || {
        records = gate.records(1);
        let codes = records.iter().filter_map(|record| record["code"].as_str());
        codes.filter(|code| is_step(code)).eq(steps)
    });
    let calls = records.iter();
    let calls = calls.filter(|record| record["operation"] == "chat" && record["status"] == 200);
    let known = |record: &Value| json!([record["workload"], record["user"], record["identity"]]);
    let calls: Vec<Value> = calls.map(known).collect();
    let expected = json!(["chat", PERSON, "session"]);
    assert_eq!(calls, [expected.clone(), expected]);
}

#[test]
fn people_log_in_to_the_admin_page_and_have_the_roles_of_their_groups() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer(200, COMPLETION))]);
    let [provider, data, admin, stranger] = [(); 4].map(|()| free_address());
    let openid = OpenId::start(provider, &[format!("http://{admin}/login/callback")]);
    let config = format!(
        "workers: 1\nadmin:\n  login: {{ issuer: \"{}\", client_id: tollgate, \
         client_secret: {{ inline: tollgate-secret }}, scopes: [email, groups], user_claim: email, \
         roles_claim: groups, roles: {{ platform: [read, keys] }} }}\n\
         backends: {{ up: {{ url: http://{}/v1, credential: {{ inline: gate-key }} }} }}\n\
         routes: [ {{ workload: chat, backend: up }} ]\n",
        openid.issuer(),
        upstream.address
    );
    let gate = Gate::start_on(data, admin, &config);
    let input = json!({
        "admin": format!("http://{admin}"), "issuer": openid.issuer(), "stranger": format!("http://{stranger}"),
    });
    let expected = json!([
        "the page leads to the provider",
        "and back, with name and roles",
        "what the roles open is open",
        "and not to other pages",
        "nothing is open without a role"
    ]);
    assert_eq!(in_browser("admin_pages", input), expected);
    let log = gate.log();
    assert!(log.contains("login_done"), "{log}");
}
