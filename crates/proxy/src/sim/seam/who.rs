//! Whose a credential is, and whether the call may be made.
//!
//! Not here: rules of the gate's own (`policy::exchange`).

use std::sync::Arc;
use std::time::Duration;

use policy::authorizer::{Asked, Authorization, Authorizer};
use policy::caller::{Caller, Later, Proven};
use policy::identity::{HeaderSource, Proof, Source, Unproven, UserRule, Verifier};
use policy::record::{Count, Record};
use policy::secret::Secret;
use tokio::time::sleep;

use super::{CHAT, Seen, call, json, two_backends};

/// Answers after a while.
#[derive(Debug)]
struct After(Duration, Authorization);

impl Authorizer for After {
    fn ask(&self, call: &Asked<'_>) -> Later<Authorization> {
        assert_eq!(call.workload, "app");
        let Self(after, answer) = self;
        let (after, answer) = (*after, answer.clone());
        Box::pin(async move {
            sleep(after).await;
            answer
        })
    }
}

fn authorized(after: Duration, answer: Authorization) -> Seen {
    let mut s = two_backends();
    s.workloads[0].authorizer = Some(Arc::new(After(after, answer)));
    call(s, r#"{"model":"m"}"#, vec![json(200, CHAT)])
}

#[test]
fn an_authorizer_that_answers_after_five_milliseconds_is_waited_for() {
    let five = Duration::from_millis(5);
    let seen = authorized(five, Authorization::Allowed);
    assert_eq!(seen.record.status, 200, "{}", seen.response);
    assert!(seen.arrived[0].at >= five, "{:?}", seen.arrived);
    // The wait is not the gate's own time.
    assert!(seen.record.own < Some(five), "{:?}", seen.record);
    assert_eq!(seen.record.tokens.prompt, Count::Reported(3));
}

#[test]
fn a_denied_call_and_one_without_an_answer_reach_no_upstream() {
    let five = Duration::from_millis(5);
    let denied = authorized(five, Authorization::Denied("not on weekends".into()));
    assert_eq!(
        (denied.record.status, denied.record.code),
        (403, "not_authorized")
    );
    assert_eq!(denied.record.reason.as_deref(), Some("not on weekends"));
    assert!(!denied.response.contains("weekends"));
    let away = authorized(five, Authorization::Unavailable("no answer".into()));
    let late = authorized(Duration::from_secs(60), Authorization::Allowed);
    for seen in [&away, &late] {
        assert_eq!(
            (seen.record.status, seen.record.code),
            (503, "authorizer_unavailable")
        );
    }
    assert!(
        [denied, away, late]
            .iter()
            .all(|seen| seen.arrived.is_empty())
    );
}

/// Asks for what a body says, too, and says what it was told.
#[derive(Debug)]
struct ByModel(Duration);

impl Authorizer for ByModel {
    fn needs_body(&self) -> bool {
        true
    }

    fn ask(&self, call: &Asked<'_>) -> Later<Authorization> {
        let backends = &call.backends;
        let route = call.route;
        let said = format!("{:?} {route:?} {backends:?}", call.model);
        let (after, is_good) = (self.0, call.model != Some("secret"));
        Box::pin(async move {
            sleep(after).await;
            if is_good {
                Authorization::Allowed
            } else {
                Authorization::Denied(said.into())
            }
        })
    }
}

fn by_model(after: Duration, body: &str) -> Seen {
    let mut s = two_backends();
    s.workloads[0].call_authorizer = Some(Arc::new(ByModel(after)));
    call(s, body, vec![json(200, CHAT)])
}

#[test]
fn an_authorizer_of_models_is_asked_when_the_body_is_read_and_before_anything_leaves() {
    let five = Duration::from_millis(5);
    let seen = by_model(five, r#"{"model":"m"}"#);
    assert_eq!(seen.record.status, 200, "{}", seen.response);
    assert!(seen.arrived[0].at >= five, "{:?}", seen.arrived);
    assert!(seen.record.own < Some(five), "{:?}", seen.record);
    assert_eq!(seen.record.model_asked.as_deref(), Some("m"));
    assert_eq!(seen.record.tokens.prompt, Count::Reported(3));

    let denied = by_model(five, r#"{"model":"secret"}"#);
    assert_eq!(
        (denied.record.status, denied.record.code),
        (403, "not_authorized")
    );
    let reason = denied.record.reason.as_deref().unwrap_or_default();
    assert!(reason.starts_with(r#"Some("secret") Some("#), "{reason}");
    assert!(reason.contains(r#"["near", "far"]"#), "{reason}");
    let late = by_model(Duration::from_secs(60), r#"{"model":"m"}"#);
    assert_eq!(
        (late.record.status, late.record.code),
        (503, "authorizer_unavailable")
    );
    assert!(denied.arrived.is_empty() && late.arrived.is_empty());
}

/// Knows whose a token is after a while.
#[derive(Debug)]
struct Knows(Duration);

impl Verifier for Knows {
    fn takes(&self, credential: &[u8]) -> bool {
        credential.starts_with(b"client-")
    }

    fn fingerprint(&self, credential: &[u8]) -> [u8; 32] {
        let mut print = [0; 32];
        print[..credential.len()].copy_from_slice(credential);
        print
    }

    fn verify(&self, _: &[u8], _: u64) -> Result<Proof, Unproven> {
        Err(Unproven::Ask)
    }

    fn ask(&self, credential: Secret) -> Later<Result<Proof, Unproven>> {
        assert_eq!(credential.expose(), b"client-key");
        let after = self.0;
        Box::pin(async move {
            sleep(after).await;
            Ok(Proof {
                caller: Arc::new(Caller {
                    workload: "app".into(),
                    user: Some("ada".into()),
                    ..Caller::default()
                }),
                until_unix_s: u64::MAX,
            })
        })
    }
}

#[test]
fn whose_a_token_is_may_be_asked_and_nothing_goes_upstream_without_an_answer() {
    let asked = |after| {
        let mut s = two_backends();
        s.identity.sources = vec![Source::Credential(Arc::new(Knows(after)))];
        call(s, r#"{"model":"m"}"#, vec![json(200, CHAT)])
    };
    let seen = asked(Duration::from_millis(5));
    assert_eq!(seen.record.status, 200, "{}", seen.response);
    let caller = seen.record.caller.expect("a caller");
    assert_eq!(caller.user.as_deref(), Some("ada"));
    let late = asked(Duration::from_secs(60));
    assert_eq!(
        (late.record.status, late.record.code),
        (503, "identity_unavailable")
    );
    assert!(late.arrived.is_empty());
}

#[test]
fn a_call_says_its_user_where_its_source_believes_it_and_nothing_else_names_one() {
    let called = |source: Source, users: UserRule, body: &str| {
        let mut s = two_backends();
        s.identity.sources = vec![source];
        s.identity.users = vec![users];
        call(s, body, vec![json(200, CHAT)]).record
    };
    let header = || Source::Header(HeaderSource::default());
    let knows = || Source::Credential(Arc::new(Knows(Duration::ZERO)));
    let believed = UserRule {
        from_call: true,
        is_hidden: false,
    };
    let user = |record: &Record| record.user().map(String::from);
    let body = r#"{"model":"m","user":"eve"}"#;

    let record = called(header(), believed, body);
    assert_eq!(user(&record).as_deref(), Some("eve"));
    let caller = record.caller.expect("a caller");
    assert_eq!((&*caller.workload, caller.by), ("app", Proven::Header));

    // Whom the credential names is not for the body to say, nor is the body read for it.
    let record = called(knows(), believed, r#"{"model":"m","user":7}"#);
    assert_eq!(record.status, 200);
    assert_eq!(user(&record).as_deref(), Some("ada"));

    let record = called(header(), UserRule::default(), body);
    assert_eq!((record.status, record.caller), (200, None));

    let record = called(header(), believed, r#"{"model":"m","user":7}"#);
    assert_eq!((record.status, record.code), (400, "wrong_type"));

    let hidden = UserRule {
        from_call: true,
        is_hidden: true,
    };
    let record = called(header(), hidden, body);
    assert_eq!(user(&record), None);
    // Decisions have it all the same.
    assert_eq!(
        record.caller.expect("a caller").user.as_deref(),
        Some("eve")
    );
}
