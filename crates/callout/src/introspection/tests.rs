//! Endpoints on loopback, and in memory where time is virtual.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::sleep;

use super::*;
use crate::about_token::TOKEN_BYTES_MAX;
use crate::client::Bounds;
use crate::fixture::{Does, Seen, Server, client, json, response, status};
use crate::secret_source::SecretSource;

const LONG: Duration = Duration::from_secs(60);
const GOOD: &str = r#"{"active":true,"sub":"app","scope":"a b"}"#;

fn secret(text: &str) -> Secret {
    Secret::new(text.as_bytes().to_vec())
}

fn basic() -> ClientAuth {
    ClientAuth::Basic {
        id: "gate".to_owned(),
        secret: SecretSource::fixed(secret("p w")),
    }
}

fn in_memory(answering: impl Fn(&Seen) -> Does + Send + Sync + 'static) -> (Server, Introspection) {
    let (server, client) = Server::in_memory(Bounds::default(), answering);
    let settings = IntrospectionSettings::new(server.url("/introspect"), basic());
    let asked = Introspection::new(&Handle::here(), client, settings);
    (server, asked)
}

fn is_active(found: &Result<Introspected, Fault>) -> bool {
    matches!(found, Ok(Introspected::Active(_)))
}

#[tokio::test(start_paused = true)]
async fn a_token_is_asked_for_as_the_rfc_says() {
    let server = Server::start(|_| json(GOOD)).await;
    let settings = IntrospectionSettings::new(server.url("/introspect?tenant=1"), basic());
    let asked = Introspection::new(&Handle::here(), client(), settings);
    let found = asked.ask(&secret("a/b+c="), LONG).await;
    let Ok(Introspected::Active(token)) = found else {
        panic!("{found:?}");
    };
    assert_eq!(
        (&token.claims["sub"], token.exp),
        (&Value::from("app"), None)
    );
    let seen = &server.seen()[0];
    assert_eq!(
        (&*seen.method, &*seen.target),
        ("POST", "/introspect?tenant=1")
    );
    assert_eq!(
        seen.text(),
        "token=a%2Fb%2Bc%3D&token_type_hint=access_token"
    );
    assert_eq!(
        seen.header("content-type"),
        "application/x-www-form-urlencoded"
    );
    assert_eq!(seen.header("accept"), "application/json");
    // base64("gate:p+w")
    assert_eq!(seen.header("authorization"), "Basic Z2F0ZTpwK3c=");
}

#[test]
fn only_the_boolean_true_makes_a_token_good() {
    let url = Url::parse("https://a.test/").expect("a URL");
    let settings = IntrospectionSettings::new(url, basic());
    let now = Duration::from_secs(1_000_000);
    // Answer; whether it is good (none: of no use); for how long it is kept.
    let table = [
        (r#"{"active":true}"#, Some(true), 60),
        (r#"{"active":true,"exp":1000030}"#, Some(true), 30),
        (r#"{"active":true,"exp":1000061}"#, Some(true), 60),
        (
            r#"{"active":true,"exp":18446744073709551615}"#,
            Some(true),
            60,
        ),
        (r#"{"active":true,"exp":999990}"#, Some(true), 0),
        (r#"{"active":true,"exp":999940}"#, Some(false), 5),
        (r#"{"active":true,"exp":0}"#, Some(false), 5),
        (r#"{"active":false}"#, Some(false), 5),
        (r#"{"active":false,"exp":1000030}"#, Some(false), 5),
        (r#"{"active":"true"}"#, None, 0),
        (r#"{"active":1}"#, None, 0),
        (r#"{"active":null}"#, None, 0),
        (r#"{"Active":true}"#, None, 0),
        ("{}", None, 0),
        ("true", None, 0),
        (r#"{"active":false,"active":true}"#, None, 0),
        (r#"{"active":true,"sub":"a","sub":"b"}"#, None, 0),
        (r#"{"active":true,"exp":null}"#, Some(true), 60),
        (r#"{"active":true,"exp":"1000030"}"#, Some(true), 30),
        (r#"{"active":true,"exp":1000030.9}"#, Some(true), 30),
        (r#"{"active":true,"exp":"999940"}"#, Some(false), 5),
        (r#"{"active":true,"exp":999940.9}"#, Some(false), 5),
        (r#"{"active":true,"exp":-1}"#, None, 0),
        (r#"{"active":true,"exp":1e300}"#, None, 0),
        (r#"{"active":true,"exp":18446744073709551616}"#, None, 0),
        (r#"{"active":true,"exp":"soon"}"#, None, 0),
        (r#"{"active":false,"exp":"soon"}"#, Some(false), 5),
        (r#"{"active":true,"nbf":1003600}"#, Some(false), 5),
        (r#"{"active":true,"nbf":"1003600"}"#, Some(false), 5),
        (
            r#"{"active":true,"nbf":18446744073709551615}"#,
            Some(false),
            5,
        ),
        (r#"{"active":true,"nbf":1000061}"#, Some(false), 5),
        (r#"{"active":true,"nbf":1000060.9}"#, Some(true), 60),
        (r#"{"active":true,"nbf":999999}"#, Some(true), 60),
        (r#"{"active":true,"nbf":null}"#, Some(true), 60),
        (r#"{"active":true,"nbf":[]}"#, None, 0),
        (r#"{"active":true"#, None, 0),
    ];
    for (body, expected, seconds) in table {
        let found = settings.read(body.as_bytes(), now);
        let is_yes = found.as_ref().ok().map(|found| found.is_yes);
        assert_eq!(is_yes, expected, "{body}");
        if let Ok(found) = found {
            assert_eq!(found.good_for, Duration::from_secs(seconds), "{body}");
            assert_eq!(is_active(&Ok(found.value)), found.is_yes);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tokens_end_is_one_of_the_clock() {
    let now = since_1970().as_secs();
    for (exp, is_good) in [(now - 61, false), (now - 30, true), (now + 3600, true)] {
        let body = format!(r#"{{"active":true,"exp":{exp}}}"#);
        let server = Server::start(move |_| json(body.clone())).await;
        let settings = IntrospectionSettings::new(server.url("/"), basic());
        let asked = Introspection::new(&Handle::here(), client(), settings);
        for _ in 0..2 {
            assert_eq!(is_active(&asked.ask(&secret("t"), LONG).await), is_good);
        }
        // One that ends now is asked about each time.
        assert_eq!(server.asked(), if exp == now - 30 { 2 } else { 1 });
    }
}

#[tokio::test(start_paused = true)]
async fn who_cannot_tell_says_neither_yes_nor_no() {
    let huge = format!(
        r#"{{"active":true,"x":"{}"}}"#,
        "x".repeat(ANSWER_BYTES_MAX)
    );
    type Answering = Box<dyn Fn() -> Does + Send + Sync>;
    let table: Vec<(&str, Answering)> = vec![
        (
            "not application/json",
            Box::new(|| Does::Answer(response(200, "text/html", GOOD))),
        ),
        (
            "content-type stands twice",
            Box::new(|| {
                let mut found = response(200, "application/json", GOOD);
                let html = HeaderValue::from_static("text/html");
                found.headers_mut().append("content-type", html);
                Does::Answer(found)
            }),
        ),
        ("answered 401", Box::new(|| status(401))),
        (
            "answered 302",
            Box::new(|| Does::Answer(response(302, "application/json", GOOD))),
        ),
        (
            "answered 500",
            Box::new(|| Does::Answer(response(500, "application/json", GOOD))),
        ),
        ("broke off", Box::new(|| Does::Close)),
        ("longer than", Box::new(move || json(huge.clone()))),
        ("not JSON", Box::new(|| json("<html>"))),
    ];
    for (why, answering) in table {
        let server = Server::start(move |_| answering()).await;
        let settings = IntrospectionSettings::new(server.url("/"), basic());
        let asked = Introspection::new(&Handle::here(), client(), settings);
        let fault = asked
            .ask(&secret("hidden"), LONG)
            .await
            .expect_err(why)
            .to_string();
        assert!(fault.contains(why) && !fault.contains("hidden"), "{fault}");
        // Asked again, since nothing was kept.
        assert!(asked.ask(&secret("hidden"), LONG).await.is_err());
        assert_eq!(server.asked(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_passes_no_longer_than_it_is_kept() {
    let is_good = Arc::new(AtomicBool::new(true));
    let good = Arc::clone(&is_good);
    let (server, asked) = in_memory(move |_| {
        if good.load(Ordering::Relaxed) {
            json(GOOD)
        } else {
            json(r#"{"active":false}"#)
        }
    });
    let token = secret("t");
    assert!(is_active(&asked.ask(&token, LONG).await));
    is_good.store(false, Ordering::Relaxed);
    sleep(Duration::from_millis(59_000)).await;
    assert!(is_active(&asked.ask(&token, LONG).await));
    sleep(Duration::from_millis(1_100)).await;
    assert_eq!(asked.ask(&token, LONG).await, Ok(Introspected::Inactive));
    is_good.store(true, Ordering::Relaxed);
    assert_eq!(asked.ask(&token, LONG).await, Ok(Introspected::Inactive));
    assert_eq!(server.asked(), 2);
    sleep(Duration::from_millis(5_100)).await;
    assert!(is_active(&asked.ask(&token, LONG).await));
}

#[tokio::test(start_paused = true)]
async fn tokens_that_begin_alike_are_two_and_those_that_are_the_same_one_question() {
    let (server, asked) = in_memory(|seen| {
        let is_good = seen
            .text()
            .starts_with("token=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx1&");
        Does::After(
            Duration::from_millis(100),
            response(
                200,
                "application/json",
                format!(r#"{{"active":{is_good}}}"#),
            ),
        )
    });
    let good = secret("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx1");
    let bad = secret("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx2");
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..50 {
        asking.spawn(asked.ask(&good, LONG));
        asking.spawn(asked.ask(&bad, LONG));
    }
    let found = asking.join_all().await;
    assert_eq!(found.iter().filter(|found| is_active(found)).count(), 50);
    assert_eq!(server.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn no_token_and_one_without_end_are_not_asked_about() {
    let (server, asked) = in_memory(|_| json(GOOD));
    for token in [secret(""), secret(&"x".repeat(TOKEN_BYTES_MAX + 1))] {
        assert_eq!(asked.ask(&token, LONG).await, Ok(Introspected::Inactive));
    }
    assert_eq!(server.asked(), 0);
    assert!(is_active(
        &asked.ask(&secret(&"x".repeat(TOKEN_BYTES_MAX)), LONG).await
    ));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_down_is_tried_once_a_second_and_others_are_told_at_once() {
    let is_up = Arc::new(AtomicBool::new(false));
    let up = Arc::clone(&is_up);
    let (server, asked) = in_memory(move |_| {
        if up.load(Ordering::Relaxed) {
            json(GOOD)
        } else {
            status(503)
        }
    });
    for number in 0..100 {
        assert!(
            asked
                .ask(&secret(&format!("a{number}")), LONG)
                .await
                .is_err()
        );
    }
    assert_eq!(server.asked(), 5);
    assert_eq!(asked.ask(&secret("b"), LONG).await, Err(Fault::Down));
    for second in 1..=3 {
        sleep(Duration::from_secs(1)).await;
        for number in 0..10 {
            assert!(
                asked
                    .ask(&secret(&format!("c{number}")), LONG)
                    .await
                    .is_err()
            );
        }
        assert_eq!(server.asked(), 5 + second);
    }
    is_up.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(1)).await;
    for number in 0..10 {
        assert!(is_active(
            &asked.ask(&secret(&format!("d{number}")), LONG).await
        ));
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_service_is_waited_for_no_longer_than_the_question_says() {
    let (_server, asked) = in_memory(|_| Does::Hang);
    let began = tokio::time::Instant::now();
    let found = asked.ask(&secret("t"), Duration::from_millis(200)).await;
    assert!(matches!(found, Err(Fault::Late { .. })));
    assert_eq!(began.elapsed(), Duration::from_millis(200));
}
