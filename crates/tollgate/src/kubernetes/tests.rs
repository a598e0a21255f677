//! Users of Kubernetes, out of what is proven of callers.

use std::sync::Arc;

use identity::claims::{Mapping, Workload};

use super::*;

fn caller(claims: Value, by: Proven) -> Caller {
    let mapping = Mapping {
        workload: Workload::Fixed("chat".into()),
        user: "sub".to_owned(),
        tags: Vec::new(),
    };
    let Value::Object(claims) = claims else {
        panic!("no claims: {claims}");
    };
    mapping.caller(&claims, by).expect("a caller")
}

#[test]
fn what_the_api_server_said_of_a_user_is_asked_about_again_unchanged() {
    let said = User {
        username: "system:serviceaccount:models:web".to_owned(),
        uid: Some("u-1".to_owned()),
        groups: vec!["system:serviceaccounts".to_owned(), "b".to_owned()],
        extra: BTreeMap::from([("k.io/pod".to_owned(), vec!["web-0".to_owned()])]),
    };
    let claims = Value::Object(claims(&said));
    assert_eq!(claims["namespace"], "models");
    let caller = caller(claims, Proven::TokenReview);
    assert_eq!(user(Some(&caller), false), Ok(said));
    let person = super::claims(&User {
        username: "ada".to_owned(),
        ..User::default()
    });
    assert!(!person.contains_key("namespace") && !person.contains_key("uid"));
}

#[test]
fn names_of_the_clusters_own_are_believed_of_its_api_server_alone() {
    let of = |claims: Value| caller(claims, Proven::Token);
    let plain = of(json!({ "sub": "ada", "groups": ["dev", "system:masters", 7] }));
    let expected = User {
        username: "ada".to_owned(),
        groups: vec!["dev".to_owned()],
        ..User::default()
    };
    assert_eq!(user(Some(&plain), false), Ok(expected));
    let all = user(Some(&plain), true).expect("a user");
    assert_eq!(all.groups, ["dev", "system:masters"]);
    let admin = of(json!({ "sub": "system:admin", "groups": "dev" }));
    assert!(user(Some(&admin), false).is_err());
    assert_eq!(user(Some(&admin), true).expect("a user").groups, ["dev"]);
    // A claim of that name in another's token is no answer of the API server.
    let named = of(json!({ "sub": "ada", "username": "system:admin" }));
    assert_eq!(user(Some(&named), false).expect("a user").username, "ada");
}

#[test]
fn whom_nobody_proved_is_no_user() {
    let unnamed = caller(json!({ "azp": "x" }), Proven::Token);
    let by_header = Caller {
        user: Some(Arc::from("ada")),
        ..Caller::default()
    };
    let said = Caller {
        by: Proven::Token,
        is_user_said: true,
        ..by_header.clone()
    };
    for nobody in [None, Some(&unnamed), Some(&by_header), Some(&said)] {
        assert!(user(nobody, true).is_err(), "{nobody:?}");
    }
}
