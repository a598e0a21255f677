//! People who log in to the admin endpoint with a browser: what they see and may change, and what nobody may have their
//! browser do.
//!
//! Not here: the flow with all that may go wrong in it (`identity_sources::login`), a real provider and a real browser.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::changes::ask;
use crate::fixture::answer;
use crate::harness::{Connection, Gate, Response, Step, Upstream};
use crate::identity_sources::provider::{Provider, REDIRECT};

const OWN: &str = "origin: https://ai.example\r\n";
const SESSION: &str = "__Host-tollgate-admin";
/// What a browser says of a page that a person opens by a link of another site.
const PAGE: &str = "accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nsec-fetch-site: cross-site\r\n\
     sec-fetch-mode: navigate\r\nsec-fetch-dest: document\r\n";

fn config(provider: &Provider, upstream: &Upstream, roles: &str) -> String {
    let (issuer, address) = (provider.issuer(), upstream.address);
    format!(
        "workers: 1\nidentity: [ {{ keys: {{ file: keys.jsonl }} }} ]\n\
         admin:\n  bearers: {{ ops: {{ inline: canary-operate, roles: operate }} }}\n  \
         login: {{ issuer: \"{issuer}\", client_id: gate, client_secret: {{ inline: hidden }}, scopes: email, \
         redirect_url: {REDIRECT}, session: 1h, user_claim: email, roles_claim: dept, roles: {roles} }}\n\
         backends: {{ up: {{ url: http://{address}/v1, credential: {{ inline: gate-key }} }} }}\n\
         routes: [ {{ workload: chat, backend: up }} ]\n"
    )
}

fn gate(provider: &Provider, upstream: &Upstream) -> Gate {
    let config = config(provider, upstream, "{ search: [read, keys], ops: operate }");
    Gate::start_with_private(&config, &[("keys.jsonl", b"")])
}

fn echo() -> Upstream {
    Upstream::start(|_, _| vec![Step::Send(answer())])
}

/// A browser that keeps cookies, and follows nothing by itself.
struct Browser<'g> {
    gate: &'g Gate,
    cookies: BTreeMap<String, String>,
}

impl<'g> Browser<'g> {
    fn new(gate: &'g Gate) -> Self {
        let cookies = BTreeMap::new();
        Self { gate, cookies }
    }

    /// Ada's, who is logged in.
    fn of_ada(gate: &'g Gate, provider: &Provider) -> Self {
        let mut browser = Self::new(gate);
        let begun = browser.opens("/login");
        let back = provider.logs_in(location(&begun));
        let done = browser.opens(&back);
        assert_eq!(
            (done.status, location(&done)),
            (302, "/"),
            "{}",
            done.text()
        );
        browser
    }

    fn opens(&mut self, target: &str) -> Response {
        self.sends(&format!("GET {target}"), PAGE, "")
    }

    fn sends(&mut self, line: &str, lines: &str, body: &str) -> Response {
        let cookies = self.cookies.iter().map(|(n, v)| format!("{n}={v}"));
        let cookies = match cookies.collect::<Vec<_>>().join("; ") {
            none if none.is_empty() => none,
            some => format!("cookie: {some}\r\n"),
        };
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nhost: ai.example\r\n{cookies}{lines}content-length: {length}\r\n\
             content-type: application/json\r\nconnection: close\r\n\r\n{body}"
        );
        let response = Connection::open(self.gate.admin).call(request.as_bytes());
        let sets = response.headers.iter().filter(|(n, _)| n == "set-cookie");
        for (_, set) in sets {
            let (pair, attributes) = set.split_once("; ").expect("attributes");
            let (name, value) = pair.split_once('=').expect("a value");
            assert!(attributes.contains("Path=/; "), "{set}");
            assert!(
                attributes.contains("HttpOnly; SameSite=Lax; Secure"),
                "{set}"
            );
            match value {
                "" => self.cookies.remove(name),
                value => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        response
    }
}

fn location(response: &Response) -> &str {
    response.header("location").expect("a location")
}

fn told(response: &Response) -> (u16, String) {
    (response.status, response.code())
}

#[test]
fn a_person_logs_in_sees_what_is_open_to_them_and_logs_out() {
    let (provider, upstream) = (Provider::start(), echo());
    let gate = gate(&provider, &upstream);
    let mut ada = Browser::new(&gate);
    let away = ada.opens("/config?a=b");
    let there = "https://ai.example/login?return=/config%3Fa%3Db";
    assert_eq!((away.status, location(&away)), (302, there));
    let begun = ada.opens("/login?return=/config%3Fa%3Db");
    let back = provider.logs_in(location(&begun));
    let done = ada.opens(&back);
    assert_eq!(
        (done.status, location(&done)),
        (302, "/config?a=b"),
        "{}",
        done.text()
    );
    assert_eq!(ada.cookies.keys().collect::<Vec<_>>(), [SESSION]);

    let config = ada.opens("/config?a=b");
    assert_eq!(
        (config.status, config.header("cache-control")),
        (200, Some("no-store"))
    );
    assert!(!config.text().contains("hidden"), "{}", config.text());
    let home = ada.opens("/");
    let page = home.text();
    assert_eq!(home.status, 200, "{page}");
    assert!(
        page.contains("<b>ada@example.com</b>") && page.contains("read, keys"),
        "{page}"
    );
    assert!(page.contains("href=\"/metrics\"") && page.contains("href=\"/api/v1/keys\""));
    let policy = home.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'") && !page.contains("<script"));
    let caller = ada.sends("GET /api/v1/caller", "sec-fetch-site: same-origin\r\n", "");
    let is = json!({ "name": "ada@example.com", "by": "session", "roles": ["read", "keys"] });
    assert_eq!(caller.json(), is);

    let out = ada.sends("POST /logout", OWN, "");
    let end = format!("{}/end?client_id=gate", provider.issuer());
    assert_eq!((out.status, location(&out)), (303, &*end));
    assert!(ada.cookies.is_empty());
    assert_eq!(ada.opens("/").status, 302);
    let log = gate.log();
    assert!(
        log.contains("login_done") && !log.contains("hidden"),
        "{log}"
    );
}

#[test]
fn a_session_changes_what_its_roles_say_for_pages_of_this_endpoint_alone() {
    let (provider, upstream) = (Provider::start(), echo());
    let gate = gate(&provider, &upstream);
    let mut ada = Browser::of_ada(&gate, &provider);
    let wanted = r#"{"workload":"chat"}"#;
    for lines in [
        "",
        "origin: https://app.example\r\n",
        "origin: null\r\n",
        "origin: http://ai.example\r\n",
        "origin: https://ai.example:8443\r\n",
        "origin: https://ai.example\r\norigin: https://ai.example\r\n",
        "origin: https://app.example\r\nsec-fetch-site: same-origin\r\n",
        "sec-fetch-site: cross-site\r\n",
        "sec-fetch-site: same-site\r\n",
        "sec-fetch-site: none\r\n",
        PAGE,
    ] {
        let refused = ada.sends("POST /api/v1/keys", lines, wanted);
        assert_eq!(
            told(&refused),
            (403, "origin_not_allowed".to_owned()),
            "{lines}"
        );
    }
    // Nor does a page of another site see anything, as an image or a script.
    for lines in [
        "",
        "sec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\n",
    ] {
        let refused = ada.sends("GET /config", lines, "");
        assert_eq!(
            told(&refused),
            (403, "origin_not_allowed".to_owned()),
            "{lines}"
        );
    }
    assert_eq!(ada.sends("POST /logout", "", "").status, 403);
    assert_eq!(std::fs::read(gate.path("keys.jsonl")).expect("a file"), b"");

    for lines in [OWN, "sec-fetch-site: same-origin\r\n"] {
        let made = ada.sends("POST /api/v1/keys", lines, wanted);
        assert_eq!(made.status, 201, "{}", made.text());
    }
    let refused = ada.sends("POST /api/v1/reload", OWN, "");
    assert_eq!(told(&refused), (403, "role_required".to_owned()));
    assert!(
        refused.text().contains("admin.login.roles"),
        "{}",
        refused.text()
    );
    assert!(gate.log().contains("by=\"ada@example.com (session)\""));

    // What her roles are, the configuration says now.
    gate.reconfigure(&config(&provider, &upstream, "{ search: operate }"));
    testing::eventually("her roles are others", || {
        ada.sends("GET /api/v1/caller", OWN, "").json()["roles"] == json!(["operate"])
    });
    assert_eq!(ada.sends("POST /api/v1/reload", OWN, "").status, 200);
    let refused = ada.sends("GET /config", OWN, "");
    assert_eq!(told(&refused), (403, "role_required".to_owned()));
}

#[test]
fn somebody_whose_claim_gives_no_role_is_told_so() {
    let (provider, upstream) = (Provider::start(), echo());
    let gate = gate(&provider, &upstream);
    for value in [json!("sales"), Value::Null, json!({ "search": true })] {
        provider.says("dept", value.clone());
        let mut ada = Browser::of_ada(&gate, &provider);
        for path in ["/", "/config", "/api/v1/keys"] {
            let page = ada.opens(path);
            assert_eq!(page.status, 403, "{value} {path}");
            assert!(
                page.text().contains("You have no role here"),
                "{}",
                page.text()
            );
        }
        let refused = ada.sends("GET /config", OWN, "");
        assert_eq!(told(&refused), (403, "role_required".to_owned()));
        assert_eq!(ada.sends("POST /logout", OWN, "").status, 303);
    }
}

#[test]
fn without_a_session_a_browser_is_sent_to_log_in_and_a_program_is_told() {
    let (provider, upstream) = (Provider::start(), echo());
    let gate = gate(&provider, &upstream);
    for path in ["/metrics", "/config", "/api/v1/keys"] {
        let line = format!("GET {path}");
        let program = Browser::new(&gate).sends(&line, "accept: application/json\r\n", "");
        assert_eq!(told(&program), (401, "credential_required".to_owned()));
        // A credential that is not known is no reason to ask its bearer to log in.
        let bad = format!("{PAGE}authorization: Bearer canary-none\r\n");
        assert_eq!(Browser::new(&gate).sends(&line, &bad, "").status, 401);
        for value in ["", "AAAA", &"A".repeat(4000)] {
            let mut browser = Browser::new(&gate);
            browser.cookies.insert(SESSION.to_owned(), value.to_owned());
            assert_eq!(browser.opens(path).status, 302, "{path} {value}");
        }
    }
    let changes = Browser::new(&gate).sends("POST /api/v1/keys", OWN, "{}");
    assert_eq!(told(&changes), (401, "credential_required".to_owned()));
    for path in ["/livez", "/readyz"] {
        assert_eq!(Browser::new(&gate).opens(path).status, 200);
    }
    // A credential is good beside a login, and what it may not do it may not.
    assert_eq!(
        ask(&gate, "POST /api/v1/reload", "canary-operate", "", "").status,
        200
    );
    assert_eq!(
        ask(&gate, "GET /config", "canary-operate", "", "").status,
        403
    );
    // By another name of this host the cookies of a login would be lost.
    let local = ask(&gate, "GET /login?return=/config", "x", "", "");
    assert_eq!(local.status, 421);
    let link = "<a href=\"https://ai.example/login\">";
    assert!(local.text().contains(link), "{}", local.text());
    for (line, allow) in [
        ("POST /login", "GET"),
        ("GET /logout", "POST"),
        ("POST /login/callback", "GET"),
    ] {
        let refused = Browser::new(&gate).sends(line, OWN, "");
        assert_eq!(
            (refused.status, refused.header("allow")),
            (405, Some(allow)),
            "{line}"
        );
    }
}
