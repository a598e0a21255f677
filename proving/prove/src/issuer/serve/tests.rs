//! What is answered about which token.

use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::Value;

use super::{Book, KEYS, TOKENS};

fn book() -> Book {
    let dir = tempfile::tempdir().expect("a directory");
    let tokens = "good inference\nother visitors\n";
    std::fs::write(dir.path().join(TOKENS), tokens).expect("a file");
    std::fs::write(dir.path().join(KEYS), "{}").expect("a file");
    Book::read(dir.path()).expect("files")
}

fn introspected(book: &Book, asker: &str, form: &str) -> (StatusCode, Value) {
    let answer = book.introspect(asker, form.as_bytes());
    let status = answer.status();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let body = runtime
        .expect("a runtime")
        .block_on(answer.into_body().collect());
    let body = body.expect("a body").to_bytes();
    (status, serde_json::from_slice(&body).expect("JSON"))
}

#[test]
fn whoever_proves_who_it_is_learns_what_stands_behind_a_token() {
    let book = book();
    // RFC 7617 of tollgate:s3cret.
    let asker = "Basic dG9sbGdhdGU6czNjcmV0";
    let (status, good) = introspected(&book, asker, "token=good&token_type_hint=access_token");
    assert_eq!((status, &good["active"]), (StatusCode::OK, &true.into()));
    assert_eq!(
        (&good["groups"][0], &good["client_id"]),
        (&"inference".into(), &"race".into())
    );
    let (_, other) = introspected(&book, asker, "a=b&token=other");
    assert_eq!(
        (&other["active"], &other["groups"][0]),
        (&true.into(), &"visitors".into())
    );
    for form in ["token=goo", "token=", "", "xtoken=good"] {
        assert_eq!(
            introspected(&book, asker, form).1,
            serde_json::json!({ "active": false })
        );
    }
    let (status, _) = introspected(&book, "Basic eA==", "token=good");
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert_eq!(book.asked().introspections, 7);
}

/// A review's status, and what stands in it.
fn reviewed(answer: http::Response<http_body_util::Full<bytes::Bytes>>) -> (StatusCode, Value) {
    let status = answer.status();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let body = runtime
        .expect("a runtime")
        .block_on(answer.into_body().collect());
    let body = body.expect("a body").to_bytes();
    (status, serde_json::from_slice(&body).expect("JSON"))
}

#[test]
fn reviews_are_those_of_an_api_server_for_whoever_brings_the_gates_token() {
    let book = book();
    let gate = "Bearer s3cret";
    let token = |token: &str| serde_json::json!({ "kind": "TokenReview", "spec": { "token": token, "audiences": ["tollgate"] } });
    let (status, good) = reviewed(book.token_review(gate, token("good")));
    assert_eq!(
        (status, &good["kind"]),
        (StatusCode::CREATED, &"TokenReview".into())
    );
    assert_eq!(
        good["status"]["user"]["groups"],
        serde_json::json!(["inference"])
    );
    assert_eq!(good["status"]["audiences"], serde_json::json!(["tollgate"]));
    let (_, bad) = reviewed(book.token_review(gate, token("none")));
    assert_eq!(bad["status"]["authenticated"], false);
    let (status, _) = reviewed(book.token_review("Bearer x", token("good")));
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    for (group, may) in [("inference", true), ("visitors", false)] {
        let review = serde_json::json!({ "spec": { "user": "ada", "groups": [group] } });
        let (status, said) = reviewed(book.access_review(gate, review));
        assert_eq!(
            (status, &said["status"]["allowed"]),
            (StatusCode::CREATED, &may.into())
        );
    }
    let asked = book.asked();
    assert_eq!((asked.introspections, asked.authorizations), (3, 2));
}

#[test]
fn a_call_may_be_made_by_whoever_is_known_and_in_the_right_group() {
    let book = book();
    assert_eq!(book.authorize("Bearer good"), StatusCode::OK);
    assert_eq!(book.authorize("Bearer other"), StatusCode::FORBIDDEN);
    assert_eq!(book.authorize("Bearer none"), StatusCode::UNAUTHORIZED);
    assert_eq!(book.authorize(""), StatusCode::UNAUTHORIZED);
    assert_eq!(book.asked().authorizations, 4);
}
