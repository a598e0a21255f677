//! API servers on loopback, and in memory where time is virtual.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use policy::secret::Secret;
use tokio::time::sleep;

use super::*;
use crate::client::Bounds;
use crate::fixture::{Does, Seen, Server, client, json, response, status};
use crate::introspection::since_1970;
use crate::service::Handle;

const LONG: Duration = Duration::from_secs(60);
const USER: &str = r#""user":{"username":"system:serviceaccount:a:b","uid":"u","groups":["g","h"],"extra":{"k":["v"]}}"#;

fn secret(text: &str) -> Secret {
    Secret::new(text.as_bytes().to_vec())
}

/// The gate's own token, which is another one each time.
fn rotating() -> SecretSource {
    let count = AtomicUsize::new(0);
    SecretSource::with(move || {
        Some(secret(&format!(
            "own-{}",
            count.fetch_add(1, Ordering::Relaxed)
        )))
    })
}

fn at(server: &Server, path: &str) -> ApiServer {
    ApiServer {
        url: server.url(path),
        token: rotating(),
    }
}

fn created(status: &str) -> Does {
    let body = format!(r#"{{"kind":"x","apiVersion":"y","metadata":{{}},"status":{status}}}"#);
    Does::Answer(response(201, "application/json", body))
}

fn user() -> User {
    User {
        username: "system:serviceaccount:a:b".to_owned(),
        uid: Some("u".to_owned()),
        groups: vec!["g".to_owned(), "h".to_owned()],
        extra: BTreeMap::from([("k".to_owned(), vec!["v".to_owned()])]),
    }
}

fn reviews(server: &Server, audiences: &[&str]) -> TokenReview {
    let audiences = audiences.iter().map(|audience| (*audience).to_owned());
    let settings = TokenReviewSettings::new(at(server, "/"), audiences.collect());
    TokenReview::new(&Handle::here(), client(), settings)
}

#[tokio::test(start_paused = true)]
async fn a_token_is_reviewed_with_the_token_that_the_gate_has_now() {
    let server = Server::start(|_| {
        created(&format!(
            r#"{{"authenticated":true,"audiences":["gate"],{USER}}}"#
        ))
    })
    .await;
    let settings = TokenReviewSettings::new(at(&server, "/k8s/"), vec!["gate".to_owned()]);
    let reviews = TokenReview::new(&Handle::here(), client(), settings);
    for token in ["t-1", "t-2"] {
        let found = reviews.ask(&secret(token), LONG).await;
        let Ok(Reviewed::Authenticated { user: whose, .. }) = found else {
            panic!("{found:?}");
        };
        assert_eq!(*whose, user());
    }
    let seen = server.seen();
    let path = "/k8s/apis/authentication.k8s.io/v1/tokenreviews";
    assert_eq!((&*seen[0].method, &*seen[0].target), ("POST", path));
    assert_eq!(
        seen[0].text(),
        r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"t-1","audiences":["gate"]}}"#
    );
    assert_eq!(seen[0].header("content-type"), "application/json");
    assert_eq!(seen[0].header("authorization"), "Bearer own-0");
    assert_eq!(seen[1].header("authorization"), "Bearer own-1");
}

#[tokio::test(start_paused = true)]
async fn what_an_answer_to_a_review_means() {
    let yes = |rest: &str| format!(r#"{{"authenticated":true,{USER}{rest}}}"#);
    let ours = &["gate", "other"][..];
    // Audiences, the status, whether it is good (none: of no use).
    let table = [
        (&[][..], yes(""), Some(true)),
        (ours, yes(r#","audiences":["other","x"]"#), Some(true)),
        (ours, yes(r#","audiences":["x"]"#), Some(false)),
        (ours, yes(r#","audiences":[]"#), Some(false)),
        (ours, yes(""), Some(false)),
        (ours, yes(r#","audiences":"gate""#), None),
        (
            &[],
            r#"{"error":"invalid bearer token"}"#.to_owned(),
            Some(false),
        ),
        (
            &[],
            format!(r#"{{"authenticated":false,{USER}}}"#),
            Some(false),
        ),
        (&[], "{}".to_owned(), Some(false)),
        (&[], format!(r#"{{"authenticated":"true",{USER}}}"#), None),
        (
            &[],
            format!(r#"{{"authenticated":false,"authenticated":true,{USER}}}"#),
            None,
        ),
        (&[], r#"{"authenticated":true}"#.to_owned(), None),
        (
            &[],
            r#"{"authenticated":true,"user":{"username":""}}"#.to_owned(),
            None,
        ),
        (
            &[],
            r#"{"authenticated":true,"user":{"username":"a","groups":"g"}}"#.to_owned(),
            None,
        ),
        (
            &[],
            r#"{"authenticated":true,"user":{"username":"a","groups":[1]}}"#.to_owned(),
            None,
        ),
        (
            &[],
            r#"{"authenticated":true,"user":{"username":"a","extra":{"k":"v"}}}"#.to_owned(),
            None,
        ),
        (&[], "[]".to_owned(), None),
        (&[], "null".to_owned(), None),
    ];
    for (audiences, status, expected) in table {
        let answer = status.clone();
        let server = Server::start(move |_| created(&answer)).await;
        let found = reviews(&server, audiences).ask(&secret("t"), LONG).await;
        let found = found
            .ok()
            .map(|found| !matches!(found, Reviewed::Refused(_)));
        assert_eq!(found, expected, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_cannot_tell_is_neither() {
    type Answering = fn() -> Does;
    let table: [(&str, Answering); 5] = [
        ("answered 401", || status(401)),
        ("answered 403", || status(403)),
        ("answered 500", || status(500)),
        ("broke off", || Does::Close),
        ("not application/json", || {
            Does::Answer(response(201, "text/html", "{}"))
        }),
    ];
    for (why, answering) in table {
        let server = Server::start(move |_| answering()).await;
        let found = reviews(&server, &[]).ask(&secret("hidden"), LONG).await;
        let fault = found.expect_err(why).to_string();
        assert!(fault.contains(why) && !fault.contains("hidden"), "{fault}");
    }
    let server = Server::start(|_| status(200)).await;
    let settings = TokenReviewSettings::new(
        ApiServer {
            url: server.url("/"),
            token: SecretSource::with(|| None),
        },
        Vec::new(),
    );
    let reviews = TokenReview::new(&Handle::here(), client(), settings);
    let found = reviews.ask(&secret("t"), LONG).await;
    assert!(matches!(found, Err(Fault::Credential(_))), "{found:?}");
    assert_eq!(server.asked(), 0);
}

fn in_memory(answering: impl Fn(&Seen) -> Does + Send + Sync + 'static) -> (Server, TokenReview) {
    let (server, client) = Server::in_memory(Bounds::default(), answering);
    let settings = TokenReviewSettings::new(at(&server, "/"), Vec::new());
    let reviews = TokenReview::new(&Handle::here(), client, settings);
    (server, reviews)
}

#[tokio::test(start_paused = true)]
async fn a_review_is_asked_once_at_a_time_and_kept_for_a_moment() {
    let (server, reviews) = in_memory(|_| {
        let body = format!(r#"{{"status":{{"authenticated":true,{USER}}}}}"#);
        Does::After(
            Duration::from_millis(100),
            response(201, "application/json", body),
        )
    });
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..100 {
        asking.spawn(reviews.ask(&secret("t"), LONG));
    }
    assert!(asking.join_all().await.iter().all(Result::is_ok));
    assert_eq!(server.asked(), 1);
    sleep(Duration::from_millis(9_900)).await;
    assert!(reviews.ask(&secret("t"), LONG).await.is_ok());
    assert_eq!(server.asked(), 1);
    sleep(Duration::from_millis(200)).await;
    assert!(reviews.ask(&secret("t"), LONG).await.is_ok());
    assert_eq!(server.asked(), 2);
    // What can be no token is not asked about.
    for text in ["", "a b", "\u{fc}", &"x".repeat(17_000)] {
        let found = reviews.ask(&secret(text), LONG).await;
        assert_eq!(found, Ok(Reviewed::Refused("it cannot be a token")));
    }
    assert_eq!(server.asked(), 2);
}

/// A token with these claims that nobody signed.
fn unsigned(claims: &str) -> Secret {
    let payload = URL_SAFE_NO_PAD.encode(claims);
    secret(&format!("e30.{payload}.c2ln"))
}

#[tokio::test(start_paused = true)]
async fn a_token_tells_when_it_ends_and_why_it_may_be_refused() {
    let now = since_1970().as_secs();
    let yes = format!(r#"{{"authenticated":true,"audiences":["gate"],{USER}}}"#);
    let server = Server::start(move |_| created(&yes)).await;
    let reviews_here = reviews(&server, &["gate"]);
    for (token, expected) in [
        (
            unsigned(&format!(r#"{{"exp":{}}}"#, now + 60)),
            Some(now + 60),
        ),
        (unsigned(r#"{"exp":"soon"}"#), None),
        (unsigned("[]"), None),
        (secret("opaque"), None),
        (secret("a.!.b"), None),
    ] {
        let found = reviews_here.ask(&token, LONG).await;
        let Ok(Reviewed::Authenticated { exp, asked_s, .. }) = found else {
            panic!("{found:?}");
        };
        assert_eq!(exp, expected);
        assert!(asked_s >= now, "{asked_s}");
    }
    let server = Server::start(|_| created(r#"{"error":"no"}"#)).await;
    let reviews = reviews(&server, &["gate"]);
    let unknown = "the API server does not know it";
    for (token, expected) in [
        (unsigned(r#"{"exp":1,"aud":["gate"]}"#), "it has expired"),
        (unsigned(r#"{"aud":["api"]}"#), "it is for another audience"),
        (unsigned(r#"{"aud":"gate"}"#), unknown),
        (unsigned(r#"{"aud":["api","gate"]}"#), unknown),
        (secret("opaque"), unknown),
    ] {
        let found = reviews.ask(&token, LONG).await;
        assert_eq!(found, Ok(Reviewed::Refused(expected)));
    }
}

#[tokio::test(start_paused = true)]
async fn access_is_kept_and_said_again_without_a_question() {
    let (server, client) = Server::in_memory(Bounds::default(), |seen| {
        let is_allowed = seen.text().contains("/v1/chat");
        json(format!(r#"{{"status":{{"allowed":{is_allowed}}}}}"#))
    });
    let settings = AccessReviewSettings {
        server: at(&server, "/"),
        cache: Duration::from_secs(10),
        cache_denied: Duration::from_secs(2),
        questions: Arc::default(),
    };
    let access = AccessReview::new(&Handle::here(), client, settings);
    let denied = || {
        question(AccessAction::Path {
            path: "/metrics".to_owned(),
            verb: "get".to_owned(),
        })
    };
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..100 {
        asking.spawn(access.ask(question(path()), LONG));
    }
    assert!(
        asking
            .join_all()
            .await
            .iter()
            .all(|f| *f == Ok(Access::Allowed))
    );
    assert_eq!(
        access.ask(denied(), LONG).await,
        Ok(Access::Denied("".into()))
    );
    assert_eq!(server.asked(), 2);
    sleep(Duration::from_millis(1_900)).await;
    assert!(access.ask(denied(), LONG).await.is_ok());
    assert_eq!(server.asked(), 2);
    sleep(Duration::from_millis(200)).await;
    assert!(access.ask(denied(), LONG).await.is_ok());
    assert!(access.ask(question(path()), LONG).await.is_ok());
    assert_eq!(server.asked(), 3, "a no is kept for a shorter time");
    let other = AccessQuestion {
        user: Arc::new(User::default()),
        action: path(),
    };
    assert!(access.ask(Arc::new(other), LONG).await.is_ok());
    assert_eq!(server.asked(), 4, "another's answer is not said");
}

fn resource() -> AccessAction {
    AccessAction::Resource {
        namespace: "models".to_owned(),
        verb: "use".to_owned(),
        group: "gate.test".to_owned(),
        version: String::new(),
        resource: "routes".to_owned(),
        subresource: String::new(),
        name: "chat".to_owned(),
    }
}

fn path() -> AccessAction {
    AccessAction::Path {
        path: "/v1/chat".to_owned(),
        verb: "post".to_owned(),
    }
}

fn question(action: AccessAction) -> Arc<AccessQuestion> {
    Arc::new(AccessQuestion {
        user: Arc::new(user()),
        action,
    })
}

fn accesses(server: &Server) -> AccessReview {
    let settings = AccessReviewSettings {
        server: at(server, "/"),
        cache: Duration::from_secs(10),
        cache_denied: Duration::from_secs(1),
        questions: Arc::default(),
    };
    AccessReview::new(&Handle::here(), client(), settings)
}

#[tokio::test(start_paused = true)]
async fn access_is_asked_for_by_object_and_by_path() {
    let server = Server::start(|_| created(r#"{"allowed":true,"reason":"RBAC"}"#)).await;
    let access = accesses(&server);
    let who =
        r#""user":"system:serviceaccount:a:b","uid":"u","groups":["g","h"],"extra":{"k":["v"]}"#;
    let table = [
        (
            resource(),
            r#""resourceAttributes":{"group":"gate.test","name":"chat","namespace":"models","resource":"routes","verb":"use"}"#,
        ),
        (
            path(),
            r#""nonResourceAttributes":{"path":"/v1/chat","verb":"post"}"#,
        ),
    ];
    for (number, (action, attributes)) in table.into_iter().enumerate() {
        for _ in 0..2 {
            let found = access.ask(question(action.clone()), LONG).await;
            assert_eq!(found, Ok(Access::Allowed));
        }
        let seen = &server.seen()[number];
        assert_eq!(
            seen.target,
            "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        );
        assert_eq!(
            seen.text(),
            format!(
                r#"{{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{{{who},{attributes}}}}}"#
            )
        );
    }
    assert_eq!(server.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_an_answer_to_a_question_of_access_means() {
    let table = [
        // Why, where it is a no.
        (r#"{"allowed":true,"reason":"RBAC"}"#, Some("yes")),
        (r#"{"allowed":true,"denied":false}"#, Some("yes")),
        (r#"{"allowed":false}"#, Some("")),
        (
            r#"{"allowed":true,"denied":true,"reason":"a\nb"}"#,
            Some("ab"),
        ),
        (
            r#"{"allowed":false,"reason":"no rule","evaluationError":"x"}"#,
            Some("no rule; x"),
        ),
        (r#"{"allowed":false,"reason":7}"#, Some("")),
        (r#"{"allowed":"true"}"#, None),
        (r#"{"allowed":true,"denied":"false"}"#, None),
        (r#"{"allowed":false,"allowed":true}"#, None),
        ("{}", None),
    ];
    for (status, expected) in table {
        let server = Server::start(move |_| created(status)).await;
        let found = accesses(&server).ask(question(path()), LONG).await.ok();
        let said = found.map(|found| match found {
            Access::Allowed => "yes".to_owned(),
            Access::Denied(why) => why.to_string(),
        });
        assert_eq!(said.as_deref(), expected, "{status}");
    }
    let server = Server::start(|_| json("{}")).await;
    assert!(accesses(&server).ask(question(path()), LONG).await.is_err());
}
