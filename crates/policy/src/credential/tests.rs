//! Every form in which a client may carry a credential, and every field that stays on its side.
//!
//! Not here: what an upstream really saw (the end-to-end tests).

use wire::head::{Head, ResponseHead};

use super::{
    Given, Known, KnownSet, OF_APIS, check, forwards, given, may_be_listed, returns,
    target_without_keys,
};
use crate::fixture::{IDENTITY, request};
use crate::refusal::Refusal;

const CANARY: &str = "sk-canary-51e0";

/// What a route may add to the lists.
fn listed() -> [Box<[u8]>; 2] {
    [b"x-mine"[..].into(), b"anthropic-version"[..].into()]
}

/// What of these request fields goes upstream.
fn forwarded(fields: &[(&str, &str)]) -> Vec<String> {
    forwarded_to(
        ("/chat/completions", KnownSet::default()),
        &listed(),
        fields,
    )
}

fn forwarded_to(
    api: (&str, KnownSet),
    listed: &[Box<[u8]>],
    fields: &[(&str, &str)],
) -> Vec<String> {
    let head = request("POST", "/v1/chat/completions", fields);
    names(&head.fields, |f| {
        forwards(f, &head.fields, IDENTITY.as_bytes(), listed, api)
    })
}

#[test]
fn the_headers_of_an_api_go_to_its_calls_unless_the_backend_withholds_them() {
    let fields = ["openai-beta", "anthropic-version", "anthropic-beta"].map(|name| (name, "v"));
    let all = KnownSet::default();
    let anthropic = ["openai-beta", "anthropic-version", "anthropic-beta"];
    for (path, passed) in [
        ("/messages", &anthropic[..]),
        ("/messages/count_tokens", &anthropic),
        ("/messages/batches/b1", &anthropic),
        ("/models", &anthropic),
        ("/models/claude", &anthropic),
        ("/chat/completions", &["openai-beta"]),
        ("/responses", &["openai-beta"]),
        ("/messagesx", &["openai-beta"]),
        ("/modelsx", &["openai-beta"]),
    ] {
        assert_eq!(forwarded_to((path, all), &[], &fields), passed, "{path}");
    }
    let withheld = OF_APIS.without(Known::AnthropicVersion);
    assert_eq!(
        forwarded_to(("/messages", withheld), &[], &fields),
        ["anthropic-version"]
    );
    let withheld = OF_APIS;
    assert!(forwarded_to(("/messages", withheld), &[], &fields).is_empty());
    assert_eq!(
        forwarded_to(("/messages", withheld), &listed(), &fields),
        ["anthropic-version"]
    );
}

/// What of these response fields goes back.
fn returned(fields: &[(&str, &str)]) -> Vec<String> {
    let mut head = ResponseHead::new();
    for (name, value) in fields {
        head.fields
            .push(name.as_bytes(), value.as_bytes())
            .expect("a field");
    }
    names(&head.fields, |f| returns(f, &head.fields, &listed()))
}

fn names(fields: &Head, keep: impl Fn(&wire::head::FieldRef<'_>) -> bool) -> Vec<String> {
    let name = |f: wire::head::FieldRef<'_>| String::from_utf8_lossy(f.name).into_owned();
    fields.iter().filter(|f| keep(f)).map(name).collect()
}

#[test]
fn a_token_is_visible_ascii_at_every_place() {
    let token = "abcdefgh".repeat(13);
    let given_of = |token: &[u8]| {
        let mut head = request("POST", "/v1/chat/completions", &[]);
        head.fields.push(b"x-api-key", token).expect("a field");
        matches!(given(&head), Given::Token(found) if found == token)
    };
    assert!(given_of(token.as_bytes()));
    for at in 0..token.len() {
        // A blank at an end is none of the value.
        for odd in [b'\t', 0x80, 0xff] {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = odd;
            let is_end = at == 0 || at == token.len() - 1;
            assert!(!given_of(&bytes) || is_end, "{at} {odd}");
        }
    }
    for graphic in b'!'..=b'~' {
        assert!(
            given_of(&[b"a", &[graphic][..], b"b"].concat()),
            "{graphic}"
        );
    }
    let longest = "a".repeat(super::TOKEN_BYTES_MAX);
    assert!(given_of(longest.as_bytes()));
    assert!(!given_of(format!("{longest}a").as_bytes()));
}

#[test]
fn a_key_in_a_query_counts_where_google_has_it_and_nowhere_else() {
    let path = "/v1beta/models/m:generateContent";
    let of = |target: &str, fields: &[(&str, &str)]| {
        let head = request("POST", target, fields);
        let found = match given(&head) {
            Given::Token(token) => String::from_utf8_lossy(token).into_owned(),
            Given::Nothing => "nothing".to_owned(),
            Given::Unusable => "unusable".to_owned(),
        };
        (found, check(&head).is_ok())
    };
    let own = |text: &str, is_good| (text.to_owned(), is_good);
    assert_eq!(
        of(&format!("{path}?alt=sse&key=abc"), &[]),
        own("abc", true)
    );
    assert_eq!(of(&format!("{path}?key="), &[]), own("unusable", true));
    assert_eq!(of(&format!("{path}?%6bey=abc"), &[]), own("nothing", true));
    assert!(!of(&format!("{path}?key=a&key=b"), &[]).1);
    let other = "/v1/models/m:generateContent?key=abc";
    assert_eq!(of(other, &[]), own("abc", true));
    let in_header = [("x-goog-api-key", "abc")];
    assert_eq!(of(path, &in_header), own("abc", true));
    assert_eq!(
        of(&format!("{path}?key=abc"), &in_header),
        own("abc", false)
    );
    for listing in ["/v1beta/models", "/v1beta1/publishers/google/models/m"] {
        assert_eq!(of(&format!("{listing}?key=abc"), &[]), own("abc", true));
    }
    for elsewhere in ["/v1/models?key=abc", "/v1beta/files?key=abc", "/x?key=abc"] {
        assert_eq!(of(elsewhere, &[]), own("nothing", true), "{elsewhere}");
    }
}

fn conflicts(target: &str, fields: &[(&str, &str)]) -> bool {
    match check(&request("POST", target, fields)) {
        Ok(()) => false,
        Err(Refusal::ConflictingCredentials) => true,
        Err(other) => panic!("{other}"),
    }
}

const CARRIERS: &[&str] = &[
    "Authorization",
    "Proxy-Authorization",
    "X-Api-Key",
    "Api-Key",
    "X-Goog-Api-Key",
    "X-Goog-User-Project",
    "Cookie",
    "Sec-WebSocket-Protocol",
    "OpenAI-Organization",
    "OpenAI-Project",
    "Anthropic-Beta",
    "Anthropic-Dangerous-Direct-Browser-Access",
    "X-Amz-Security-Token",
    "X-Amz-Date",
    "X-Amz-Content-Sha256",
    // An address, with whatever its query holds.
    "Referer",
    // Conventions that the gate does not know by name.
    "X-Auth",
    "X-Auth-Key",
    "X-Authentication",
    "X-Access-Token",
    "X-AccessToken",
    "X-ApiKey",
    "Private-Token",
    "Ocp-Apim-Subscription-Key",
    "X-Functions-Key",
    "HF-Token",
    "CF-Access-Client-Secret",
    "CF-Access-Jwt-Assertion",
    "X-Goog-IAM-Authorization-Token",
    "X-Signature",
    "X-Stainless-Api-Key",
    "X-Litellm-Key",
    // The same names in a spelling that some servers fold.
    "X_Api_Key",
    "Api_Key",
    "X-Api_Key",
    "Proxy_Authorization",
    "X-Workload_App",
];

#[test]
fn no_form_of_a_clients_credential_goes_upstream() {
    for name in CARRIERS {
        assert!(forwarded(&[(name, CANARY)]).is_empty(), "{name}");
        let twice = [("accept", "*/*"), (name, CANARY), (name, CANARY)];
        assert_eq!(forwarded(&twice), ["accept"], "{name}");
    }
}

#[test]
fn identity_and_what_poses_as_a_proxys_word_stay_here() {
    let names = [
        "X-Workload-App",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "X-Forwarded-Client-Cert",
        "X-Forwarded-Anything",
        "Forwarded",
        "X-Real-IP",
        "Via",
        "Host",
    ];
    for name in names {
        assert!(forwarded(&[(name, "v")]).is_empty(), "{name}");
    }
}

#[test]
fn hop_by_hop_and_framing_fields_are_not_forwarded() {
    let names = [
        "Connection",
        "Keep-Alive",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
        "HTTP2-Settings",
        "Content-Length",
        "Expect",
        "Accept-Encoding",
    ];
    for name in names {
        assert!(forwarded(&[(name, "v")]).is_empty(), "{name}");
    }
}

#[test]
fn what_an_engine_needs_of_a_request_goes_upstream() {
    let names = [
        "accept",
        "content-type",
        "user-agent",
        "traceparent",
        "tracestate",
        "idempotency-key",
        "openai-beta",
        "x-stainless-lang",
        "x-stainless-retry-count",
        "x-mine",
        "anthropic-version",
    ];
    let fields = names.map(|name| (name, "v"));
    assert_eq!(forwarded(&fields), names);
}

#[test]
fn what_is_on_no_list_stays_where_it_came_from() {
    let names = [
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-HTTP-Method-Override",
        "X-Method-Override",
        "True-Client-IP",
        "X-Client-Cert",
        "SSL-Client-Cert",
        "X-Passwd",
        "X-Remote-User",
        "X-Accel-Redirect",
        "X-Accel-Expires",
        "X-Sendfile",
        "X-Reproxy-URL",
        "Access-Control-Allow-Origin",
        "Refresh",
        "X-Anything",
        "X-Stainless-Anything",
        "X-Minec",
    ];
    for name in names {
        assert!(forwarded(&[(name, "v")]).is_empty(), "{name}");
        assert!(returned(&[(name, "v")]).is_empty(), "{name}");
    }
}

#[test]
fn what_steers_or_identifies_cannot_be_listed() {
    let identity = ["x-workload-user", "x-remote-user", "x-user-id", "x-real-ip"];
    let steering = [
        "x-original-url",
        "x-rewrite-url",
        "x-http-method-override",
        "x-forwarded-anything",
        "x-accel-redirect",
        "x-sendfile",
        "location",
        "access-control-allow-origin",
        "strict-transport-security",
        "x-ratelimit-limit-tokens",
    ];
    let credentials = [
        "x-api-key",
        "authorization",
        "x-auth",
        "hf-token",
        "x-amz-date",
        "cookie",
    ];
    let connection = [
        "connection",
        "te",
        "upgrade",
        "host",
        "content-length",
        "x-request-id",
    ];
    let spelling = ["", "X-Mine", "x_mine", "x mine", "x-mine:"];
    let all = [
        &identity[..],
        &steering,
        &credentials,
        &connection,
        &spelling,
    ];
    let of_gateways = [
        "x-amzn-oidc-data",
        "x-amzn-mtls-clientcert",
        "x-endpoint-api-userinfo",
        "x-authenticated-userid",
        "x-account-id",
        "dpop",
    ];
    for name in all.concat().into_iter().chain(of_gateways) {
        assert!(!may_be_listed(name), "{name}");
    }
    for name in [
        "x-title",
        "http-referer",
        "anthropic-beta",
        "x-priority",
        "accept-language",
    ] {
        assert!(may_be_listed(name), "{name}");
    }
}

#[test]
fn connection_removes_what_is_the_clients_and_nothing_the_gate_relies_on() {
    let fields = [
        (
            "connection",
            "x-workload-app, Authorization, content-type, X-Mine",
        ),
        ("authorization", CANARY),
        ("x-workload-app", "ide"),
        ("content-type", "application/json"),
        ("x-mine", "1"),
        ("user-agent", "2"),
    ];
    assert_eq!(forwarded(&fields), ["content-type", "user-agent"]);
}

#[test]
fn one_credential_in_one_place_is_welcome_in_every_form() {
    for name in ["authorization", "x-api-key", "api-key", "x-goog-api-key"] {
        assert!(!conflicts("/v1/models", &[(name, CANARY)]), "{name}");
    }
    for value in [
        "Bearer x",
        "bearer x",
        "Basic dTpw",
        "Bearer",
        "Bearer\tx",
        "x' OR 1=1 --",
    ] {
        assert!(
            !conflicts("/v1/models", &[("authorization", value)]),
            "{value}"
        );
    }
    assert!(!conflicts("/v1/models?key=x", &[]));
    assert!(!conflicts("/v1/models", &[]));
    assert!(!conflicts(
        "/v1/models",
        &[("authorization", &"x".repeat(65_536))]
    ));
}

#[test]
fn two_credentials_are_an_error_even_where_they_agree() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        (
            "/v1/models",
            &[("authorization", "Bearer a"), ("authorization", "Bearer a")],
        ),
        ("/v1/models", &[("authorization", "Bearer a, Bearer b")]),
        ("/v1/models", &[("x-api-key", "a,b")]),
        (
            "/v1/models",
            &[("authorization", "Bearer a"), ("x-api-key", "a")],
        ),
        ("/v1/models", &[("api-key", "a"), ("x-goog-api-key", "a")]),
        ("/v1/models?key=a", &[("authorization", "Bearer a")]),
        ("/v1/models?key=a&api-key=b", &[]),
        ("/v1/models?key=a&key=a", &[]),
        ("/v1/models?%6b%65%79=a", &[("x-api-key", "a")]),
    ];
    for (target, fields) in cases {
        assert!(conflicts(target, fields), "{target} {fields:?}");
    }
}

#[test]
fn no_word_of_the_backends_own_household_goes_back() {
    let names = [
        "Set-Cookie",
        "Cookie",
        "Authorization",
        "Proxy-Authorization",
        "X-Api-Key",
        "Api-Key",
        "X-Goog-Api-Key",
        "X-Goog-User-Project",
        "X-Litellm-Key",
        "X-Auth-Token",
        "WWW-Authenticate",
        "Proxy-Authenticate",
        "OpenAI-Organization",
        "OpenAI-Project",
        "Location",
        "Alt-Svc",
        "Strict-Transport-Security",
        "Server",
        "X-Upstream-Request-Id",
        "Via",
        "X-Request-Id",
        "X-RateLimit-Limit-Requests",
        "X-RateLimit-Remaining-Tokens",
        "X-Amz-Security-Token",
        "Connection",
        "Keep-Alive",
        "Proxy-Connection",
        "Transfer-Encoding",
        "Content-Length",
        "Upgrade",
        "Trailer",
        "TE",
    ];
    for name in names {
        assert!(returned(&[(name, CANARY)]).is_empty(), "{name}");
    }
}

#[test]
fn what_a_client_needs_of_a_response_goes_back() {
    let names = [
        "content-type",
        "content-encoding",
        "cache-control",
        "retry-after",
        "openai-processing-ms",
        "openai-version",
        "date",
        "x-mine",
    ];
    let fields = names.map(|name| (name, "v"));
    assert_eq!(returned(&fields), names);
    let named = [
        ("connection", "x-mine, content-type"),
        ("x-mine", "1"),
        ("content-type", "t"),
    ];
    assert_eq!(returned(&named), ["content-type"]);
}

#[test]
fn a_target_is_shown_without_members_of_its_query_that_hold_a_key() {
    for (target, shown) in [
        ("/v1/models", "/v1/models"),
        ("/v1/models?a=1&b", "/v1/models?a=1&b"),
        ("/v1/models?key=s&a=1", "/v1/models?a=1"),
        ("/v1/models?a=1&api%2Dkey=s&%6bey=s", "/v1/models?a=1"),
        ("/v1/models?key=s", "/v1/models"),
    ] {
        let head = request("GET", target, &[]);
        assert_eq!(target_without_keys(&head), shown, "{target}");
    }
}
