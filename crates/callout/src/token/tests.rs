//! What endpoints are asked, which answers are tokens, and how long one is kept.

use std::sync::atomic::{AtomicBool, AtomicUsize};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio::time::sleep;

use super::*;
use crate::client::Bounds;
use crate::client_auth::ClientAuth;
use crate::fixture::{Does, Seen, Server, client, json, response, status, tls};
use crate::secret_source::SecretSource;
use crate::url::Url;

const LONG: Duration = Duration::from_secs(60);

fn source(text: &str) -> SecretSource {
    SecretSource::fixed(Secret::new(text.as_bytes().to_vec()))
}

fn nobody() -> ClientAuth {
    ClientAuth::Nothing { id: None }
}

fn basic() -> ClientAuth {
    ClientAuth::Basic {
        id: "gate".to_owned(),
        secret: source("hidden"),
    }
}

fn answer(token: &str, life: u64) -> String {
    format!(r#"{{"access_token":"{token}","token_type":"bearer","expires_in":{life}}}"#)
}

fn value(token: &AccessToken) -> &str {
    std::str::from_utf8(token.value.expose()).expect("text")
}

type Faults = Arc<Mutex<Vec<String>>>;

fn started(
    answering: impl Fn(&Seen) -> Does + Send + Sync + 'static,
) -> (Server, TokenEndpoint, Faults) {
    let (server, client) = Server::in_memory(Bounds::default(), answering);
    let request = OAuthRequest::new(server.url("/token"), basic(), Grant::ClientCredentials);
    let faults = Faults::default();
    let told = Arc::clone(&faults);
    let on_fault = move |fault: &Fault| told.lock().expect("no panic").push(fault.to_string());
    let token = TokenEndpoint::start(
        &Handle::here(),
        client,
        TokenRequest::OAuth(Box::new(request)),
        on_fault,
    );
    (server, token, faults)
}

#[tokio::test(start_paused = true)]
async fn each_grant_is_asked_for_as_its_rfc_says() {
    let exchange = Grant::Exchange {
        subject_token: source("s&t"),
        subject_token_type: "urn:ietf:params:oauth:token-type:jwt".to_owned(),
        requested_token_type: Some("urn:y".to_owned()),
    };
    let jwt = Grant::JwtBearer {
        assertion: source("a.b.c"),
    };
    let table = [
        (Grant::ClientCredentials, "grant_type=client_credentials"),
        (
            jwt,
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=a.b.c",
        ),
        (
            exchange,
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=s%26t\
             &subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Ajwt&requested_token_type=urn%3Ay",
        ),
    ];
    for (grant, form) in table {
        let server = Server::start(|_| json(answer("t", 300))).await;
        let mut request = OAuthRequest::new(server.url("/token"), basic(), grant);
        request.scope = Some("a b".to_owned());
        request.audiences = vec!["one".to_owned(), "two".to_owned()];
        request.resources = vec!["https://r.test/".to_owned()];
        request.fields = vec![("x".to_owned(), "y".to_owned())];
        let request = TokenRequest::OAuth(Box::new(request));
        let token = TokenEndpoint::start(&Handle::here(), client(), request, |_| {});
        assert_eq!(value(&token.get(LONG).await.expect("a token")), "t");
        let seen = &server.seen()[0];
        let rest = "&scope=a+b&audience=one&audience=two&resource=https%3A%2F%2Fr.test%2F&x=y";
        assert_eq!(seen.text(), format!("{form}{rest}"));
        assert_eq!((&*seen.method, &*seen.target), ("POST", "/token"));
        // base64("gate:hidden")
        assert_eq!(seen.header("authorization"), "Basic Z2F0ZTpoaWRkZW4=");
        assert_eq!(
            seen.header("content-type"),
            "application/x-www-form-urlencoded"
        );
    }
}

#[test]
fn what_an_answer_must_hold() {
    let url = Url::parse("https://a.test/").expect("a URL");
    let request = OAuthRequest::new(url, nobody(), Grant::ClientCredentials);
    let good = [
        (
            r#"{"access_token":"t","token_type":"Bearer","expires_in":60}"#,
            60,
        ),
        (
            r#"{"access_token":"t","token_type":"bearer","scope":"x"}"#,
            300,
        ),
        (
            r#"{"access_token":"t","token_type":"N_A","expires_in":18446744073709551615}"#,
            604_800,
        ),
        (
            r#"{"access_token":"t","token_type":"bearer","expires_in":"3600"}"#,
            3600,
        ),
        (
            r#"{"access_token":"t","token_type":"bearer","expires_in":60.9}"#,
            60,
        ),
        (
            r#"{"access_token":"t","token_type":"bearer","expires_in":null}"#,
            300,
        ),
    ];
    for (body, life) in good {
        let token = request.read(body.as_bytes()).expect(body);
        assert_eq!((value(&token), token.life.as_secs()), ("t", life), "{body}");
    }
    let bad = [
        (r#"{"token_type":"bearer"}"#, "no access_token"),
        (
            r#"{"access_token":"","token_type":"bearer"}"#,
            "fits no header",
        ),
        (
            r#"{"access_token":"t\r\nx: y","token_type":"bearer"}"#,
            "fits no header",
        ),
        (
            r#"{"access_token":"t t","token_type":"bearer"}"#,
            "fits no header",
        ),
        (r#"{"access_token":7,"token_type":"bearer"}"#, "no text"),
        (r#"{"access_token":"t"}"#, "not Bearer"),
        (r#"{"access_token":"t","token_type":"DPoP"}"#, "not Bearer"),
        (
            r#"{"access_token":"t","token_type":"bearer","expires_in":"an hour"}"#,
            "no number",
        ),
        (
            r#"{"access_token":"t","token_type":"bearer","expires_in":-1}"#,
            "no number",
        ),
        (
            r#"{"access_token":"t","token_type":"bearer","expires_in":0.9}"#,
            "ended already",
        ),
        (
            r#"{"access_token":"t","token_type":"bearer","expires_in":0}"#,
            "ended already",
        ),
        (
            r#"{"access_token":"t","access_token":"u","token_type":"bearer"}"#,
            "stands twice",
        ),
        ("access_token=t&token_type=bearer", "not JSON"),
    ];
    for (body, why) in bad {
        let fault = request.read(body.as_bytes()).expect_err(body).to_string();
        assert!(fault.contains(why), "{body}: {fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_by_its_code_and_without_what_it_repeats() {
    let refused =
        |code: &str| format!(r#"{{"error":{code},"error_description":"bad secret hidden"}}"#);
    let long = format!("\"{}\"", "x".repeat(65));
    let table = [
        (
            400,
            refused(r#""invalid_client""#),
            "it answered 400 (invalid_client)",
        ),
        (401, refused(r#""hidden secret""#), "it answered 401"),
        (401, refused("7"), "it answered 401"),
        (401, refused(&long), "it answered 401"),
        (500, "<html>hidden</html>".to_owned(), "it answered 500"),
        (302, String::new(), "it answered 302"),
    ];
    for (code, body, expected) in table {
        let server =
            Server::start(move |_| Does::Answer(response(code, "application/json", body.clone())))
                .await;
        let request = OAuthRequest::new(server.url("/"), basic(), Grant::ClientCredentials);
        let request = TokenRequest::OAuth(Box::new(request));
        let token = TokenEndpoint::start(&Handle::here(), client(), request, |_| {});
        let fault = token.get(LONG).await.expect_err(expected);
        assert_eq!(fault.to_string(), expected);
        assert!(!format!("{fault:?} {token:?}").contains("hidden"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_comes_as_json_or_not_at_all() {
    let server = Server::start(|_| Does::Answer(response(200, "text/html", answer("t", 60)))).await;
    let request = OAuthRequest::new(server.url("/"), basic(), Grant::ClientCredentials);
    let request = TokenRequest::OAuth(Box::new(request));
    let token = TokenEndpoint::start(&Handle::here(), client(), request, |_| {});
    let found = token.get(LONG).await.map(|_| ());
    assert_eq!(found, Err(Fault::Garbage("it is not application/json")));
}

#[test]
fn a_token_is_fetched_anew_before_it_ends() {
    let table = [
        (3600, 2880),
        (600, 480),
        (300, 240),
        (200, 140),
        (120, 60),
        (119, 95),
        (10, 8),
    ];
    for (life, fresh_for) in table {
        let token = AccessToken::new(Secret::new(Vec::new()), Duration::from_secs(life));
        assert_eq!(token.fresh_for().as_secs(), fresh_for, "{life}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_token_is_there_without_waiting_until_it_ends() {
    let is_up = Arc::new(AtomicBool::new(true));
    let (up, count) = (Arc::clone(&is_up), AtomicUsize::new(0));
    let (server, token, faults) = started(move |_| {
        if !up.load(Ordering::Relaxed) {
            return status(503);
        }
        json(answer(
            &format!("t{}", count.fetch_add(1, Ordering::Relaxed)),
            600,
        ))
    });
    let current = || token.current().map(|token| value(&token).to_owned());
    assert_eq!(current(), None);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(current().as_deref(), Some("t0"));
    sleep(Duration::from_secs(479)).await;
    assert_eq!(server.asked(), 1);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(current().as_deref(), Some("t1"));
    is_up.store(false, Ordering::Relaxed);
    sleep(Duration::from_secs(597)).await;
    assert_eq!(current().as_deref(), Some("t1"), "the last good one lives");
    assert!(token.state().failures_in_row > 3);
    assert_eq!(faults.lock().expect("no panic")[0], "it answered 503");
    sleep(Duration::from_secs(3)).await;
    assert_eq!(current(), None);
    let asked = server.asked();
    let refused = token.get(LONG).await;
    assert!(
        matches!(refused, Err(Fault::Status { status: 503, .. })),
        "{refused:?}"
    );
    assert!(matches!(token.get(LONG).await, Err(Fault::Status { .. })));
    assert_eq!(server.asked(), asked + 1, "once a second at most");
    is_up.store(true, Ordering::Relaxed);
    sleep(Duration::from_millis(1100)).await;
    assert_eq!(value(&token.get(LONG).await.expect("a token")), "t2");
}

/// Gives tokens that live so long, each after a while.
fn giving(life_s: u64, after: Duration) -> impl Fn(&Seen) -> Does {
    move |_| {
        Does::After(
            after,
            response(200, "application/json", answer("t", life_s)),
        )
    }
}

#[tokio::test(start_paused = true)]
async fn no_call_is_without_a_token_that_lives_two_seconds_and_takes_one_to_come() {
    let (server, token, faults) = started(giving(2, Duration::from_secs(1)));
    token.get(LONG).await.expect("a token");
    // Off the whole seconds, at which one ends and the next comes.
    sleep(Duration::from_millis(5)).await;
    for call in 0..6121 {
        assert!(token.current().is_some(), "call {call}");
        sleep(Duration::from_millis(10)).await;
    }
    assert!(server.asked() <= 63, "{} questions", server.asked());
    assert!(faults.lock().expect("no panic").is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_next_token_is_asked_for_as_much_earlier_as_it_takes_to_come() {
    let (server, token, _) = started(giving(600, Duration::from_secs(4)));
    token.get(LONG).await.expect("a token");
    // Asked for at 0 s, it is there at 4 s, and at 480 s the next one is to be.
    sleep(Duration::from_millis(471_900)).await;
    assert_eq!(server.asked(), 1);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(server.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_a_token_that_takes_most_of_its_life_to_come() {
    let (server, token, _) = started(giving(2, Duration::from_millis(1500)));
    for _ in 0..600 {
        let within = Duration::from_millis(1800);
        assert!(token.get(within).await.is_ok());
        sleep(Duration::from_millis(10)).await;
    }
    // Of six seconds of calls each token serves half a one.
    assert!(server.asked() < 15, "{} questions", server.asked());
}

#[tokio::test(start_paused = true)]
async fn a_token_that_has_ended_before_it_comes_is_none_and_not_asked_for_without_end() {
    let (server, token, _) = started(giving(2, Duration::from_millis(2500)));
    let ended = Fault::Garbage("what it gives has ended before it came");
    assert_eq!(token.get(LONG).await.map(|_| ()), Err(ended));
    sleep(Duration::from_secs(60)).await;
    assert!(server.asked() < 8, "{} questions", server.asked());
}

#[tokio::test(start_paused = true)]
async fn what_was_given_for_a_callers_token_is_not_given_past_its_end() {
    let (server, client) = Server::in_memory(Bounds::default(), giving(2, Duration::from_secs(1)));
    let grant = Grant::JwtBearer {
        assertion: SecretSource::with(|| None),
    };
    let request = OAuthRequest::new(server.url("/"), basic(), grant);
    let exchange = CallerExchange::new(&Handle::here(), client, request);
    let caller = Secret::new(b"caller".to_vec());
    for _ in 0..200 {
        let given = exchange.ask(&caller, LONG).await.expect("a token");
        assert!(given.left() > Duration::ZERO);
        sleep(Duration::from_millis(10)).await;
    }
    assert!(server.asked() > 1, "it ended meanwhile");
}

#[tokio::test(start_paused = true)]
async fn who_asks_while_there_is_none_waits_for_one_fetch() {
    let (server, token, _) = started(|_| {
        Does::After(
            Duration::from_secs(1),
            response(200, "application/json", answer("t", 600)),
        )
    });
    let hasty = token.get(Duration::from_millis(500));
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..100 {
        asking.spawn(token.get(LONG));
    }
    assert!(matches!(hasty.await, Err(Fault::Late { .. })));
    assert!(asking.join_all().await.iter().all(Result::is_ok));
    assert_eq!(server.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_an_upstream_refuses_is_replaced_once() {
    let (server, token, _) = started(|_| json(answer("t", 3600)));
    sleep(Duration::from_secs(11)).await;
    for _ in 0..100 {
        token.renew();
        assert!(token.current().is_some());
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(server.asked(), 2);
    let other = token.clone();
    drop((token, other));
    sleep(Duration::from_secs(7200)).await;
    assert_eq!(server.asked(), 2, "nobody holds it");
}

#[tokio::test(start_paused = true)]
async fn each_callers_token_is_given_for_one_of_its_own() {
    let (server, client) = Server::in_memory(Bounds::default(), |seen| {
        let subject = seen
            .text()
            .split("subject_token=")
            .nth(1)
            .expect("a subject");
        let subject = subject.split('&').next().expect("a subject").to_owned();
        let body = answer(&format!("for-{subject}"), 300);
        Does::After(
            Duration::from_millis(100),
            response(200, "application/json", body),
        )
    });
    let grant = Grant::Exchange {
        subject_token: SecretSource::with(|| None),
        subject_token_type: "urn:ietf:params:oauth:token-type:access_token".to_owned(),
        requested_token_type: None,
    };
    let request = OAuthRequest::new(server.url("/token"), basic(), grant);
    let exchange = CallerExchange::new(&Handle::here(), client, request);
    let caller = |name: &str| Secret::new(name.as_bytes().to_vec());
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..20 {
        for name in ["a", "b"] {
            let answered = exchange.ask(&caller(name), LONG);
            asking.spawn(async move { (name, answered.await) });
        }
    }
    for (name, found) in asking.join_all().await {
        assert_eq!(value(&found.expect("a token")), format!("for-{name}"));
    }
    assert_eq!(server.asked(), 2);
    sleep(Duration::from_secs(239)).await;
    assert!(exchange.ask(&caller("a"), LONG).await.is_ok());
    assert_eq!(server.asked(), 2);
    sleep(Duration::from_secs(2)).await;
    assert!(exchange.ask(&caller("a"), LONG).await.is_ok());
    assert_eq!(server.asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_subject_that_an_endpoint_refuses_or_throttles_closes_it_for_nobody_else() {
    for (status, body) in [
        (429, "{}"),
        (400, r#"{"error":"invalid_grant"}"#),
        (503, "{}"),
    ] {
        let (server, client) = Server::in_memory(Bounds::default(), move |seen| {
            if seen.text().contains("assertion=good") {
                return json(answer("t", 600));
            }
            Does::Answer(response(status, "application/json", body.to_owned()))
        });
        let grant = Grant::JwtBearer {
            assertion: SecretSource::with(|| None),
        };
        let request = OAuthRequest::new(server.url("/token"), basic(), grant);
        let exchange = CallerExchange::new(&Handle::here(), client, request);
        // One token after the other of one subject, as its issuer gives them.
        let claims = URL_SAFE_NO_PAD.encode(r#"{"iss":"https://idp","sub":"mallory"}"#);
        for n in 0..20 {
            let token = Secret::new(format!("h.{claims}.signature{n}").into_bytes());
            assert!(exchange.ask(&token, LONG).await.is_err());
        }
        assert_eq!(server.asked(), 20);
        let other = Secret::new(b"good".to_vec());
        assert!(exchange.ask(&other, LONG).await.is_ok(), "{status}");
        // The same token again is not asked about again and again.
        let token = Secret::new(format!("h.{claims}.again").into_bytes());
        for _ in 0..20 {
            let fault = exchange.ask(&token, LONG).await.err();
            let says = fault.map(|fault| fault.to_string()).unwrap_or_default();
            assert!(!says.is_empty());
        }
        assert_eq!(server.asked(), 23, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_given_for_a_callers_token_is_renewed_once_in_a_while() {
    let count = AtomicUsize::new(0);
    let (server, client) = Server::in_memory(Bounds::default(), move |_| {
        json(answer(
            &format!("t{}", count.fetch_add(1, Ordering::Relaxed)),
            600,
        ))
    });
    let grant = Grant::JwtBearer {
        assertion: SecretSource::with(|| None),
    };
    let request = OAuthRequest::new(server.url("/token"), basic(), grant);
    let exchange = CallerExchange::new(&Handle::here(), client, request);
    let (ada, bob) = (Secret::new(b"a".to_vec()), Secret::new(b"b".to_vec()));
    for caller in [&ada, &bob] {
        assert!(exchange.ask(caller, LONG).await.is_ok());
    }
    let next = async |caller: &Secret| {
        let token = exchange.ask(caller, LONG).await.expect("a token");
        value(&token).to_owned()
    };
    sleep(Duration::from_secs(9)).await;
    exchange.renew(&ada);
    assert_eq!(next(&ada).await, "t0");
    sleep(Duration::from_secs(2)).await;
    exchange.renew(&ada);
    assert_eq!(next(&ada).await, "t2");
    // Not a second time, and not for another caller.
    exchange.renew(&ada);
    assert_eq!(next(&ada).await, "t2");
    assert_eq!(next(&bob).await, "t1");
    assert_eq!(server.asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_service_accounts_token_is_given_for_another_one() {
    let good = r#"{"accessToken":"given","expireTime":"2999-01-01T00:00:00Z"}"#;
    let table = [
        (200, good.to_owned(), Ok("given")),
        (200, good.replace("2999", "1999"), Err("ended already")),
        (200, good.replace("given", "a b"), Err("fits no header")),
        (
            200,
            good.replace("expireTime", "expires"),
            Err("no expireTime"),
        ),
        (
            403,
            r#"{"error":{"message":"hidden"}}"#.to_owned(),
            Err("it answered 403"),
        ),
    ];
    for (code, body, expected) in table {
        let (server, client) = Server::in_memory(Bounds::default(), move |seen| {
            if seen.target == "/token" {
                return json(answer("hidden-first", 300));
            }
            assert_eq!(seen.header("authorization"), "Bearer hidden-first");
            Does::Answer(response(code, "application/json", body.clone()))
        });
        let first = OAuthRequest::new(server.url("/token"), nobody(), Grant::ClientCredentials);
        let impersonation = Impersonation {
            url: server.url("/v1/sa:generateAccessToken"),
            scopes: vec!["a".to_owned(), "b".to_owned()],
            life: Duration::from_secs(600),
        };
        let request = TokenRequest::Impersonated(Box::new(first), impersonation);
        let token = TokenEndpoint::start(&Handle::here(), client, request, |_| {});
        let found = token.get(LONG).await;
        assert!(!format!("{found:?} {token:?}").contains("hidden"));
        match (found, expected) {
            (Ok(token), Ok(expected)) => assert_eq!(value(&token), expected),
            (Err(fault), Err(why)) => assert!(fault.to_string().contains(why), "{why}: {fault}"),
            other => panic!("{other:?}"),
        }
        let asked: serde_json::Value =
            serde_json::from_slice(&server.seen()[1].body).expect("JSON");
        assert_eq!(
            asked,
            serde_json::json!({ "scope": ["a", "b"], "lifetime": "600s" })
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_metadata_service_is_asked_with_its_headers() {
    let server = Server::start(|seen| match (&*seen.target, seen.header("metadata")) {
        ("/token", "true") => {
            json(r#"{"access_token":"m","expires_in":"3599","token_type":"Bearer"}"#)
        }
        _ => status(403),
    })
    .await;
    let bounds = Bounds {
        allow_link_local: true,
        ..Bounds::default()
    };
    let client = Client::new(&tls(), bounds);
    let request = |headers| {
        TokenRequest::Metadata(MetadataRequest {
            method: MetadataMethod::Get,
            url: server.url("/token"),
            headers,
        })
    };
    let start =
        |headers| TokenEndpoint::start(&Handle::here(), client.clone(), request(headers), |_| {});
    let token = start(vec![("Metadata".to_owned(), source("true"))]);
    let token = token.get(LONG).await.expect("a token");
    assert_eq!((value(&token), token.life.as_secs()), ("m", 3599));
    let refused = start(Vec::new()).get(LONG).await;
    assert!(matches!(refused, Err(Fault::Status { status: 403, .. })));
}
