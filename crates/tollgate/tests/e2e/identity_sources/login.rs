//! Login in a browser: from a page without a session to one with, and whatever somebody else might do with its parts.
//!
//! Not here: a real provider and a real browser; the parts alone (`identity::login`, `identity::session`).

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use identity::sealed::{Purpose, Sealer};
use identity::session::Session;
use policy::secret::Secret;
use serde_json::{Value, json};

use super::issuer::now;
use super::provider::{Provider, REDIRECT, USER, nobody};
use super::{config, echo, told};
use crate::harness::{Gate, Response, Upstream, chat, h2};

const OWN: (&str, &str) = ("origin", "https://ai.example");
const KEY: &str = "0123456789abcdef0123456789abcdef";
const SESSION: &str = "__Host-tollgate";
const STATE: &str = "__Host-tollgate-login";
/// What a browser says of a page that a person opens.
const PAGE: [(&str, &str); 4] = [
    ("accept", "text/html,application/xhtml+xml,*/*;q=0.8"),
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
];

fn source(issuer: &str) -> String {
    format!(
        "[ {{ login: {{ issuer: \"{issuer}\", client_id: gate, client_secret: {{ inline: hidden }}, \
         scopes: email, redirect_url: {REDIRECT}, session: 1h, session_key: {{ inline: {KEY} }}, \
         workload: chat, user_claim: email, tags: {{ team: dept }} }} }} ]"
    )
}

fn gate(provider: &Provider, upstream: &Upstream) -> Gate {
    let cors = "cors: { origins: https://app.example }\n";
    let config = config(upstream, &source(&provider.issuer())) + cors;
    Gate::start(&config, &[])
}

/// How a browser speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Http {
    One,
    Two,
}

/// A browser: it keeps cookies, and follows nothing by itself.
#[derive(Clone)]
struct Browser<'g> {
    gate: &'g Gate,
    http: Http,
    cookies: BTreeMap<String, String>,
}

impl<'g> Browser<'g> {
    fn new(gate: &'g Gate, http: Http) -> Self {
        Self {
            gate,
            http,
            cookies: BTreeMap::new(),
        }
    }

    /// A person opens a page.
    fn opens(&mut self, target: &str) -> Response {
        self.sends("GET", target, &PAGE, "")
    }

    /// A page asks for something.
    fn asks(&mut self, headers: &[(&str, &str)]) -> Response {
        let body = chat("m", false);
        self.sends("POST", "/v1/chat/completions", headers, &body)
    }

    fn sends(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(n, v)| format!("{n}={v}"))
            .collect();
        let cookies = cookies.join("; ");
        let mut all = headers.to_vec();
        if !cookies.is_empty() {
            all.push(("cookie", &cookies));
        }
        if method == "POST" {
            all.push(("content-type", "application/json"));
        }
        let response = match self.http {
            Http::One => {
                let lines: String = all.iter().map(|(n, v)| format!("{n}: {v}\r\n")).collect();
                let length = match method {
                    "POST" => format!("content-length: {}\r\n", body.len()),
                    _ => String::new(),
                };
                let request = format!(
                    "{method} {target} HTTP/1.1\r\nhost: ai.example\r\n{lines}{length}\r\n{body}"
                );
                self.gate.call(request.as_bytes())
            }
            Http::Two => {
                let mut request = Request::builder()
                    .method(method)
                    .uri(format!("http://ai.example{target}"));
                for (name, value) in all {
                    request = request.header(name, value);
                }
                let request = request.body(Full::new(Bytes::from(body.to_owned())));
                let request = request.expect("a request");
                h2::run(async {
                    let mut client = h2::connect(self.gate.data).await;
                    let response = client.send_request(request).await;
                    let response = h2::whole(response.expect("an answer")).await;
                    response.expect("a whole answer")
                })
            }
        };
        self.keeps(&response);
        response
    }

    fn keeps(&mut self, response: &Response) {
        for set in all(response, "set-cookie") {
            let (pair, attributes) = set.split_once("; ").expect("attributes");
            let (name, value) = pair.split_once('=').expect("a value");
            let life = attributes
                .split("; ")
                .find_map(|a| a.strip_prefix("Max-Age="));
            if life == Some("0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    /// Begins to log in; where the provider sends the browser back to.
    fn begins(&mut self, provider: &Provider, target: &str) -> String {
        let begun = self.opens(target);
        assert_eq!(begun.status, 302, "{}", begun.text());
        provider.logs_in(location(&begun))
    }

    /// Logs in.
    fn logs_in(&mut self, provider: &Provider) {
        let back = self.begins(provider, "/login");
        let done = self.opens(&back);
        assert_eq!(done.status, 302, "{}", done.text());
        assert!(self.cookies.contains_key(SESSION), "{:?}", done.headers);
    }
}

fn all<'r>(response: &'r Response, name: &str) -> Vec<&'r str> {
    let named = response.headers.iter().filter(|(n, _)| n == name);
    named.map(|(_, value)| value.as_str()).collect()
}

fn location(response: &Response) -> &str {
    response.header("location").expect("a location")
}

/// The page says that nobody was logged in, and no session began.
fn assert_refused(response: &Response, status: u16, code: &str) {
    assert_eq!(response.status, status, "{}", response.text());
    let page = response.text();
    assert!(page.contains(&format!("<code>{code}</code>")), "{page}");
    assert_eq!(
        response.header("content-security-policy"),
        Some("default-src 'none'; frame-ancestors 'none'")
    );
    let sets = all(response, "set-cookie");
    let begins = sets
        .iter()
        .any(|set| set.starts_with(&format!("{SESSION}=")));
    assert!(!begins, "{sets:?}");
}

#[test]
fn a_person_logs_in_on_the_way_to_a_page_and_out_again() {
    for http in [Http::One, Http::Two] {
        let (provider, upstream) = (Provider::start(), echo());
        let gate = gate(&provider, &upstream);
        let mut browser = Browser::new(&gate, http);
        let away = browser.opens("/v1/models?a=b");
        assert_eq!(away.status, 302, "{http:?} {}", away.text());
        assert_eq!(location(&away), "/login?return=/v1/models%3Fa%3Db");
        let begun = browser.opens("/login?return=/v1/models%3Fa%3Db");
        assert_eq!((begun.status, begun.body.len()), (302, 0));
        assert_eq!(begun.header("cache-control"), Some("no-store"));
        let [state] = all(&begun, "set-cookie")[..] else {
            panic!("{:?}", begun.headers);
        };
        assert!(state.starts_with("__Host-tollgate-login="), "{state}");
        let attributes = "; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure";
        assert!(state.ends_with(attributes), "{state}");

        let back = provider.logs_in(location(&begun));
        let done = browser.opens(&back);
        assert_eq!((done.status, location(&done)), (302, "/v1/models?a=b"));
        let sets = all(&done, "set-cookie");
        let attributes = "; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure";
        assert!(sets[0].starts_with("__Host-tollgate=") && sets[0].ends_with(attributes));
        assert!(sets[1].starts_with("__Host-tollgate-login=; Path=/; Max-Age=0"));
        assert_eq!(browser.cookies.len(), 1);

        assert_eq!(browser.opens("/v1/models?a=b").status, 200);
        let answer = browser.asks(&[OWN]);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let seen = upstream.seen();
        assert_eq!(seen[0].header("cookie"), [""; 0], "{}", seen[0].head);
        assert_eq!(seen[0].header("authorization"), ["Bearer gate-key"]);

        let out = browser.sends("POST", "/logout", &[OWN], "");
        let end = format!("{}/end?client_id=gate", provider.issuer());
        assert_eq!((out.status, location(&out)), (303, &*end));
        assert!(browser.cookies.is_empty());
        assert_eq!(
            told(&browser.asks(&[OWN])),
            (401, "credential_missing".to_owned())
        );

        let records = gate.records(7);
        let codes: Vec<&str> = records
            .iter()
            .map(|r| r["code"].as_str().unwrap_or(""))
            .collect();
        let expected = [
            "credential_missing",
            "login_begun",
            "login_done",
            "",
            "",
            "logout_done",
            "credential_missing",
        ];
        assert_eq!(codes, expected, "{records:?}");
        let (done, call) = (&records[2], &records[4]);
        assert_eq!(
            (&done["outcome"], &done["status"]),
            (&json!("completed"), &json!(302))
        );
        assert_eq!(call["user"], "ada@example.com", "{call}");
        assert_eq!(
            (&call["workload"], &call["identity"]),
            (&json!("chat"), &json!("session"))
        );
        assert!(!gate.log().contains("code_verifier"));
        let failures = gate.metric("tollgate_failures_total", &["code=\"login"]);
        assert_eq!(failures, 0.0, "a login that went well is no failure");
    }
}

/// Of OpenShift: no document, no ID token, and what the API server says of whoever has the token.
fn openshift(issuer: &str) -> String {
    format!(
        "[ {{ login: {{ issuer: \"{issuer}\", client_id: gate, client_secret: {{ inline: hidden }}, \
         oauth: {{ authorization_endpoint: \"{issuer}/oauth/authorize\", token_endpoint: \"{issuer}/oauth/token\", \
         user_endpoint: \"{issuer}{USER}\", subject_claim: metadata.uid }}, \
         scopes: \"user:info\", redirect_url: {REDIRECT}, session_key: {{ inline: {KEY} }}, \
         workload_claim: groups, workloads: {{ search: chat }}, user_claim: metadata.name }} }} ]"
    )
}

#[test]
fn a_person_logs_in_at_openshift_without_an_id_token() {
    let (provider, upstream) = (Provider::start(), echo());
    let config = config(&upstream, &openshift(&provider.issuer()));
    let gate = Gate::start(&config, &[]);
    let mut ada = Browser::new(&gate, Http::One);
    let back = ada.begins(&provider, "/login?return=/v1/models");
    let mut thief = Browser::new(&gate, Http::One);
    assert_refused(&thief.opens(&back), 400, "login_not_begun");
    assert_eq!(provider.exchanges(), 0);
    let done = ada.opens(&back);
    assert_eq!(
        (done.status, location(&done)),
        (302, "/v1/models"),
        "{}",
        done.text()
    );
    let answer = ada.asks(&[OWN]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(upstream.seen()[0].header("cookie"), [""; 0]);
    let records = gate.records(4);
    let call = records.last().expect("the call");
    assert_eq!(
        (&call["workload"], &call["user"], &call["identity"]),
        (&json!("chat"), &json!("ada"), &json!("session"))
    );
    assert!(!gate.log().contains("sha256~"), "{}", gate.log());

    // One who is in no group that has a workload, and an answer that names nobody.
    provider.says("groups", json!(["staff"]));
    let mut bob = Browser::new(&gate, Http::One);
    bob.logs_in(&provider);
    assert_eq!(bob.asks(&[OWN]).status, 403);
    provider.says("metadata", json!({ "name": "ada" }));
    let mut nobody = Browser::new(&gate, Http::One);
    let back = nobody.begins(&provider, "/login");
    assert_refused(&nobody.opens(&back), 400, "login_user_unnamed");
}

#[test]
fn nobody_gets_a_session_by_anothers_login() {
    let (provider, upstream) = (Provider::start(), echo());
    let gate = gate(&provider, &upstream);
    let mut ada = Browser::new(&gate, Http::One);
    let back = ada.begins(&provider, "/login?return=/x");

    // A code that somebody has seen is worth nothing without the browser's state, and is not even spent.
    let mut thief = Browser::new(&gate, Http::One);
    assert_refused(&thief.opens(&back), 400, "login_not_begun");
    let _own = thief.begins(&provider, "/login");
    assert_refused(&thief.opens(&back), 400, "login_state_mismatch");
    assert_eq!(provider.exchanges(), 0);

    let before = ada.clone();
    let done = ada.opens(&back);
    assert_eq!((done.status, location(&done)), (302, "/x"));
    let mut again = before;
    assert_refused(&again.opens(&back), 400, "login_code_refused");
    assert!(!again.cookies.contains_key(STATE), "the state was used");
    assert_refused(&ada.opens(&back), 400, "login_not_begun");
    assert_eq!(ada.asks(&[OWN]).status, 200, "her session goes on");
    // A code of another login, with one's own state.
    let mut mallory = Browser::new(&gate, Http::One);
    let own = mallory.begins(&provider, "/login");
    let others = Browser::new(&gate, Http::One).begins(&provider, "/login");
    let code = |back: &str| {
        let (_, rest) = back.split_once("code=").expect("a code");
        rest.split('&').next().expect("a code").to_owned()
    };
    let injected = own.replace(&code(&own), &code(&others));
    assert_refused(&mallory.opens(&injected), 400, "login_code_refused");
}

/// Each code is a question with the gate's own secret, and anybody can begin a login.
#[test]
fn six_hundred_made_up_codes_of_one_login_are_five_questions() {
    let (provider, upstream) = (Provider::start(), echo());
    let gate = gate(&provider, &upstream);
    let mut mallory = Browser::new(&gate, Http::One);
    let back = mallory.begins(&provider, "/login");
    let made_up = |number: usize| back.replace("code=", &format!("code=made-up-{number}-"));
    for number in 0..600 {
        // The cookie is kept, whatever the gate says of it.
        let answer = mallory.clone().opens(&made_up(number));
        let (status, code) = match number {
            0..5 => (400, "login_code_refused"),
            _ => (429, "login_too_often"),
        };
        assert_refused(&answer, status, code);
    }
    assert_eq!(provider.exchanges(), 5);
    let told = gate.records(1);
    assert!(told.iter().any(|record| record["code"] == "login_too_often"
        && record["reason"] == "it is not asked about: its login has brought others"));
    // One who begins anew at the same address is let in meanwhile.
    Browser::new(&gate, Http::One).logs_in(&provider);
}

#[test]
fn a_providers_word_that_is_not_for_this_login_is_not_taken() {
    for (claim, value) in [
        ("nonce", json!("another")),
        ("nonce", Value::Null),
        ("aud", json!("other")),
        ("azp", json!("other")),
        ("iss", json!("https://other.test")),
        ("exp", json!(now() - 120)),
        ("sub", json!("")),
    ] {
        let (provider, upstream) = (Provider::start(), echo());
        let gate = gate(&provider, &upstream);
        let mut browser = Browser::new(&gate, Http::One);
        let back = browser.begins(&provider, "/login");
        provider.says(claim, value);
        assert_refused(&browser.opens(&back), 400, "login_token_invalid");
    }
}

#[test]
fn an_answer_that_is_not_the_providers_or_says_no_ends_the_login() {
    let (provider, upstream) = (Provider::start(), echo());
    let gate = gate(&provider, &upstream);
    provider.says("iss parameter", Value::Null);
    let mut browser = Browser::new(&gate, Http::One);
    let back = browser.begins(&provider, "/login");
    assert_refused(&browser.opens(&back), 400, "login_issuer_mismatch");
    let (without, _) = back.rsplit_once("&iss=").expect("an issuer");
    assert_refused(&browser.opens(without), 400, "login_issuer_mismatch");
    let twice = format!("{without}&code=x");
    assert_refused(&browser.opens(&twice), 400, "login_query_invalid");
    let (query, _) = back.split_once("code=").expect("a code");
    let state = back
        .split('&')
        .find(|m| m.starts_with("state="))
        .expect("a state");
    let issuer = provider.issuer();
    let said = format!(
        "{query}error=access_denied&error_description=%3Cscript%3Ealert(1)%3C/script%3E&{state}&iss={issuer}"
    );
    let refused = browser.opens(&said);
    assert_refused(&refused, 400, "login_refused");
    let page = refused.text();
    assert!(
        page.contains("access_denied (&lt;script&gt;") && !page.contains("<script"),
        "{page}"
    );
    assert_eq!(provider.exchanges(), 0);
}

#[test]
fn a_login_leads_to_no_other_place() {
    let (provider, upstream) = (Provider::start(), echo());
    let gate = gate(&provider, &upstream);
    for to in [
        "https://evil.example",
        "//evil.example",
        "/%5Cevil.example",
        "/%09/evil.example",
        "%2F%2Fevil.example",
        "/a%0D%0Aset-cookie:a=b",
    ] {
        let refused = Browser::new(&gate, Http::One).opens(&format!("/login?return={to}"));
        assert_refused(&refused, 400, "login_return_invalid");
    }
    let seen = provider.server.seen();
    assert!(!seen.iter().any(|seen| seen.head.contains("/authorize")));
}

/// A session as the gate would seal it.
fn session(issuer: &str, began: u64, life: u64) -> String {
    let scope = format!("tollgate\0{issuer}\0gate");
    let key = Secret::new(KEY.as_bytes().to_vec());
    let sealer = Sealer::new(Purpose::Session, &scope, &key, None).expect("a key");
    let claims = json!({ "iss": issuer, "sub": "ada" });
    let claims = claims.as_object().expect("claims");
    let session = Session::begin(claims, &[], began, life);
    session.seal(&sealer, [1; 12]).expect("it fits")
}

#[test]
fn a_session_that_is_not_good_is_refused_as_any_credential() {
    let (provider, upstream) = (Provider::start(), echo());
    let gate = gate(&provider, &upstream);
    let issuer = provider.issuer();
    let with = |value: &str| {
        let mut browser = Browser::new(&gate, Http::One);
        browser.cookies.insert(SESSION.to_owned(), value.to_owned());
        browser
    };
    let good = session(&issuer, now() - 10, 3600);
    assert_eq!(with(&good).asks(&[OWN]).status, 200);
    let mut changed = good.clone().into_bytes();
    changed[40] ^= 1;
    for (what, value) in [
        ("expired", session(&issuer, now() - 3601, 3600)),
        (
            "longer than is configured",
            session(&issuer, now() - 3601, 86_400),
        ),
        ("of the future", session(&issuer, now() + 3600, 3600)),
        ("changed", String::from_utf8(changed).expect("text")),
        ("empty", String::new()),
        ("long", "A".repeat(4000)),
        (
            "of another issuer",
            session("https://other.test", now(), 3600),
        ),
    ] {
        let mut browser = with(&value);
        let refused = browser.asks(&[OWN]);
        assert_eq!(
            told(&refused),
            (401, "invalid_api_key".to_owned()),
            "{what}"
        );
        let page = browser.opens("/v1/models");
        assert_eq!(
            (page.status, location(&page)),
            (302, "/login?return=/v1/models"),
            "{what}"
        );
    }
    let both = with(&good).asks(&[OWN, ("authorization", "Bearer x")]);
    assert_eq!(told(&both), (400, "conflicting_credentials".to_owned()));
    // A session is the browser's alone.
    let bearer = format!("Bearer {good}");
    let as_token = Browser::new(&gate, Http::One).asks(&[OWN, ("authorization", &bearer)]);
    assert_eq!(told(&as_token), (401, "invalid_api_key".to_owned()));
}

#[test]
fn other_pages_cannot_use_a_session() {
    let (provider, upstream) = (Provider::start(), echo());
    let gate = gate(&provider, &upstream);
    for http in [Http::One, Http::Two] {
        let mut browser = Browser::new(&gate, http);
        browser.logs_in(&provider);
        for headers in [
            &[][..],
            &[("origin", "https://evil.example")],
            &[("origin", "null")],
            &[("sec-fetch-site", "same-site")],
            &[
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "no-cors"),
            ],
        ] {
            let refused = browser.asks(headers);
            let code = (403, "origin_not_allowed".to_owned());
            assert_eq!(told(&refused), code, "{http:?} {headers:?}");
            let out = browser.sends("POST", "/logout", headers, "");
            assert_eq!(told(&out), code, "{headers:?}");
        }
        assert_eq!(upstream.seen().len(), if http == Http::One { 0 } else { 1 });
        let allowed = browser.asks(&[("origin", "https://app.example")]);
        assert_eq!(allowed.status, 200, "{}", allowed.text());
        assert_eq!(
            all(&allowed, "access-control-allow-origin"),
            ["https://app.example"]
        );
        assert_eq!(all(&allowed, "access-control-allow-credentials"), ["true"]);
        let exposed = all(&allowed, "access-control-expose-headers");
        assert!(
            exposed[0].contains("x-request-id") && !exposed[0].contains('*'),
            "{exposed:?}"
        );
    }
    let asks = [
        ("origin", "https://app.example"),
        ("access-control-request-method", "POST"),
        // It has no length, so that its end is that of the connection.
        ("connection", "close"),
    ];
    let preflight =
        Browser::new(&gate, Http::One).sends("OPTIONS", "/v1/chat/completions", &asks, "");
    assert_eq!(preflight.status, 204);
    assert_eq!(
        all(&preflight, "access-control-allow-credentials"),
        ["true"]
    );
}

#[test]
fn a_reload_ends_no_session() {
    let (provider, upstream) = (Provider::start(), echo());
    let identity = source(&provider.issuer());
    let drawn = identity.replace(&format!("session_key: {{ inline: {KEY} }}, "), "");
    assert_ne!(identity, drawn);
    let gate = Gate::start(&config(&upstream, &drawn), &[]);
    let mut browser = Browser::new(&gate, Http::One);
    browser.logs_in(&provider);
    let asked = provider.server.seen().len();
    gate.reconfigure(&config(
        &upstream,
        &drawn.replace("workload: chat", "workload: ci"),
    ));
    testing::eventually("the new configuration counts", || {
        assert_eq!(browser.asks(&[OWN]).status, 200);
        let records = gate.records(1);
        records
            .last()
            .is_some_and(|record| record["workload"] == "ci")
    });
    assert_eq!(provider.server.seen().len(), asked, "nothing is asked anew");
}

#[test]
fn a_provider_that_is_down_says_so() {
    let (down, upstream) = (nobody(), echo());
    let issuer = format!("http://{}", down.address);
    let gate = Gate::start(&config(&upstream, &source(&issuer)), &[]);
    let mut browser = Browser::new(&gate, Http::One);
    assert_refused(&browser.opens("/login"), 503, "login_unavailable");
    // Who is logged in already needs nobody.
    browser
        .cookies
        .insert(SESSION.to_owned(), session(&issuer, now(), 3600));
    assert_eq!(browser.asks(&[OWN]).status, 200);
    let out = browser.sends("POST", "/logout", &[OWN], "");
    assert_eq!(out.status, 200, "{}", out.text());
    assert!(browser.cookies.is_empty());
    let record = &gate.records(1)[0];
    assert_eq!(record["code"], "login_unavailable");
    let reason = record["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("it answered 500"), "{record}");
}
