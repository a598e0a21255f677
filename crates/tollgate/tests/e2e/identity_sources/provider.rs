//! An OpenID provider that the test is: it checks what a provider has to, and misbehaves where it is told to. Beside it, OpenShift's
//! OAuth server and the API server that knows its tokens.
//!
//! Not here: a real provider, a real browser.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::issuer::{jwks, now, signed};
use crate::harness::answer::{json as answer, whole};
use crate::harness::{Connection, Seen, Step, Upstream};

pub(crate) const REDIRECT: &str = "https://ai.example/login/callback";

/// What is known of a code until it is used.
struct Grant {
    challenge: String,
    /// None of a server that gives no ID tokens.
    nonce: Option<String>,
}

/// What an ID token says otherwise than it should.
type Twist = Option<(&'static str, Value)>;

#[derive(Default)]
struct State {
    codes: HashMap<String, Grant>,
    issued: usize,
    twist: Twist,
}

/// The provider.
pub(crate) struct Provider {
    pub(crate) server: Upstream,
    state: Arc<Mutex<State>>,
}

impl Provider {
    pub(crate) fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let of = Arc::clone(&state);
        let server = Upstream::start(move |_, seen| {
            let mut state = of.lock().unwrap_or_else(PoisonError::into_inner);
            vec![Step::Send(answered(seen, &mut state))]
        });
        Self { server, state }
    }

    pub(crate) fn issuer(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// From now on ID tokens say this.
    pub(crate) fn says(&self, claim: &'static str, value: Value) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.twist = Some((claim, value));
    }

    /// How often codes were brought.
    pub(crate) fn exchanges(&self) -> usize {
        let seen = self.server.seen();
        seen.iter()
            .filter(|s| {
                s.head.starts_with("POST /token") || s.head.starts_with("POST /oauth/token")
            })
            .count()
    }

    /// Ada logs in at the page to which a browser was sent; the path and query of the gate to which she is sent back.
    pub(crate) fn logs_in(&self, location: &str) -> String {
        let issuer = self.issuer();
        let path = location.strip_prefix(&issuer).expect("the provider's page");
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n",
            self.server.address
        );
        let response = Connection::open(self.server.address).call(request.as_bytes());
        assert_eq!(response.status, 302, "{}", response.text());
        let back = response.header("location").expect("a way back");
        let path = back.strip_prefix("https://ai.example");
        path.expect("the gate's page").to_owned()
    }
}

fn answered(seen: &Seen, state: &mut State) -> Vec<u8> {
    let base = format!("http://{}", seen.header("host")[0]);
    let target = seen.head.split(' ').nth(1).expect("a target");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match path {
        "/.well-known/openid-configuration" => {
            let document = json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize?tenant=a"),
                "token_endpoint": format!("{base}/token"),
                "jwks_uri": format!("{base}/jwks"),
                "end_session_endpoint": format!("{base}/end"),
                "authorization_response_iss_parameter_supported": true,
            });
            answer(200, &document.to_string())
        }
        "/jwks" => answer(200, &jwks(&["p256"])),
        "/authorize" | "/oauth/authorize" => authorized(path, &members(query), state, &base),
        USER => user(seen, state),
        "/token" | "/oauth/token" => {
            let form = String::from_utf8(seen.body.clone()).expect("a form");
            token(&members(&form), state, seen, &base)
        }
        _ => answer(404, "{}"),
    }
}

fn authorized(
    path: &str,
    query: &HashMap<String, String>,
    state: &mut State,
    base: &str,
) -> Vec<u8> {
    let is_openid = path == "/authorize";
    let (tenant, scope) = match is_openid {
        true => (Some("a"), "openid email"),
        false => (None, "user:info"),
    };
    let is_good = query["response_type"] == "code"
        && query.get("tenant").map(String::as_str) == tenant
        && query.contains_key("nonce") == is_openid
        && query["client_id"] == "gate"
        && query["redirect_uri"] == REDIRECT
        && query["scope"] == scope
        && query["code_challenge_method"] == "S256"
        && query["code_challenge"].len() == 43;
    if !is_good {
        return answer(400, &json!({ "error": format!("{query:?}") }).to_string());
    }
    state.issued += 1;
    let code = format!("code-{}", state.issued);
    let grant = Grant {
        challenge: query["code_challenge"].clone(),
        nonce: query.get("nonce").cloned(),
    };
    state.codes.insert(code.clone(), grant);
    if !is_openid {
        return redirect(&format!("{REDIRECT}?code={code}&state={}", query["state"]));
    }
    let issuer = state
        .twist
        .as_ref()
        .filter(|(claim, _)| *claim == "iss parameter");
    let issuer = issuer.map_or(base, |_| "http://other.test");
    redirect(&format!(
        "{REDIRECT}?code={code}&state={}&iss={issuer}",
        query["state"]
    ))
}

fn redirect(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

fn token(form: &HashMap<String, String>, state: &mut State, seen: &Seen, base: &str) -> Vec<u8> {
    // base64("gate:hidden")
    if seen.header("authorization") != ["Basic Z2F0ZTpoaWRkZW4="] {
        return answer(401, r#"{"error":"invalid_client"}"#);
    }
    let grant = state.codes.remove(&form["code"]);
    let verifier = identity::fingerprint(form["code_verifier"].as_bytes());
    let grant = grant.filter(|grant| {
        form["grant_type"] == "authorization_code"
            && form["redirect_uri"] == REDIRECT
            && grant.challenge == base64url(&verifier)
    });
    let Some(grant) = grant else {
        return answer(400, r#"{"error":"invalid_grant"}"#);
    };
    let Some(nonce) = grant.nonce else {
        let body = json!({ "access_token": "sha256~ada", "token_type": "Bearer", "expires_in": 86400, "scope": "user:info" });
        return answer(200, &body.to_string());
    };
    let mut claims = json!({
        "iss": base, "aud": "gate", "sub": "ada", "email": "ada@example.com", "dept": "search", "azp": "gate",
        "iat": now(), "exp": now() + 60, "nonce": nonce,
    });
    if let Some((claim, value)) = &state.twist {
        claims[*claim] = value.clone();
    }
    let id_token = signed(&claims, "p256");
    let body = json!({ "access_token": "opaque", "token_type": "Bearer", "id_token": id_token });
    answer(200, &body.to_string())
}

/// Where OpenShift's API server says whose a token is.
pub(crate) const USER: &str = "/apis/user.openshift.io/v1/users/~";

fn user(seen: &Seen, state: &State) -> Vec<u8> {
    if seen.header("authorization") != ["Bearer sha256~ada"] {
        return answer(401, r#"{"kind":"Status","status":"Failure","code":401}"#);
    }
    let mut user = json!({
        "kind": "User", "apiVersion": "user.openshift.io/v1",
        "metadata": { "name": "ada", "uid": "6f5c1d3e-0d0f-4d5c-9d2b-1f1f0f8f9a01", "creationTimestamp": "2026-01-02T03:04:05Z" },
        "fullName": "Ada", "identities": ["ldap:ada"], "groups": ["search", "system:authenticated"],
    });
    if let Some((claim, value)) = &state.twist {
        user[*claim] = value.clone();
    }
    answer(200, &user.to_string())
}

/// Members of a query or a form, decoded.
fn members(text: &str) -> HashMap<String, String> {
    let decoded = |text: &str| {
        let plain = text.replace('+', " ");
        let bytes = wire::head::percent_decoded(&plain);
        String::from_utf8(bytes).expect("text")
    };
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(n, v)| (decoded(n), decoded(v))).collect()
}

fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let mut whole = [0; 4];
        whole[1..=three.len()].copy_from_slice(three);
        let whole = u32::from_be_bytes(whole);
        for digit in 0..=three.len() {
            let six = whole >> (18 - 6 * digit) & 63;
            text.push(char::from(DIGITS[six as usize]));
        }
    }
    text
}

/// A page of another server, for a provider that is none.
pub(crate) fn nobody() -> Upstream {
    Upstream::start(|_, _| vec![Step::Send(whole(500, "text/html", b"<b>down</b>"))])
}
