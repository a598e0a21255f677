//! What is asked of AWS, and which answers are taken.

use std::sync::Mutex;

use super::super::TokenEndpoint;
use super::*;
use crate::client::Bounds;
use crate::fixture::{Does, Seen, Server, response};
use crate::service::Handle;

const LONG: Duration = Duration::from_secs(60);

fn source(text: &str) -> SecretSource {
    SecretSource::fixed(Secret::new(text.as_bytes().to_vec()))
}

fn xml(part: &str) -> String {
    format!(
        "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n\
         <AssumeRoleWithWebIdentityResult><Credentials>{part}</Credentials></AssumeRoleWithWebIdentityResult>\n\
         </AssumeRoleWithWebIdentityResponse>"
    )
}

const GOOD: &str = "<AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>hidden+/=</SecretAccessKey>\
                    <SessionToken>tok==</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration>";

async fn asked(
    answering: impl Fn(&Seen) -> Does + Send + Sync + 'static,
    request: impl FnOnce(Url) -> KeysRequest,
) -> (Server, Result<std::sync::Arc<Issued<SessionKeys>>, Fault>) {
    let (server, client) = Server::in_memory(Bounds::default(), answering);
    let request = request(server.url("/"));
    let keys = TokenEndpoint::start_keys(&Handle::here(), client, request, |_| {});
    let found = keys.get(LONG).await;
    assert!(!format!("{keys:?} {found:?}").contains("hidden"));
    (server, found)
}

fn web_identity(url: Url) -> KeysRequest {
    KeysRequest::WebIdentity(WebIdentity {
        url,
        role_arn: "arn:aws:iam::123456789012:role/gate".to_owned(),
        session_name: "tollgate".to_owned(),
        token: source("a.b.c"),
    })
}

#[tokio::test(start_paused = true)]
async fn a_role_is_taken_with_a_token() {
    let answer = |_: &Seen| Does::Answer(response(200, "text/xml", xml(GOOD)));
    let (server, found) = asked(answer, web_identity).await;
    let keys = &found.expect("keys").value;
    assert_eq!(keys.access_key_id, "ASIA1");
    assert!(keys.secret_access_key.is(b"hidden+/=") && keys.session_token.is(b"tok=="));
    let seen = &server.seen()[0];
    assert_eq!((&*seen.method, &*seen.target), ("POST", "/"));
    assert_eq!(
        seen.text(),
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fgate\
         &RoleSessionName=tollgate&WebIdentityToken=a.b.c"
    );
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_not_whole_keys_are_none() {
    let table = [
        (200, "text/xml", xml(&GOOD.replace("2999", "1999")), "ended already"),
        (200, "text/xml", xml(&GOOD.replace("2999-01-01T", "")), "no moment"),
        (200, "text/xml", xml(&GOOD.replace("tok==", "")), "fits no header"),
        (200, "text/xml", xml(&GOOD.replace("tok==", "a b")), "fits no header"),
        (200, "text/xml", xml(&GOOD.replace("tok==", "&amp;")), "once"),
        (200, "text/xml", xml(&GOOD.replace("SessionToken", "Token")), "once"),
        (200, "text/xml", xml(&[GOOD, GOOD].concat()), "once"),
        (200, "application/json", xml(GOOD), "not XML"),
        (
            400,
            "text/xml",
            "<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>hidden</Message></Error></ErrorResponse>"
                .to_owned(),
            "it answered 400 (InvalidIdentityToken)",
        ),
        (403, "text/xml", "<Code>hidden secret</Code>".to_owned(), "it answered 403"),
    ];
    for (status, kind, body, why) in table {
        let answer = move |_: &Seen| Does::Answer(response(status, kind, body.clone()));
        let fault = asked(answer, web_identity).await.1.expect_err(why);
        assert!(fault.to_string().contains(why), "{why}: {fault}");
    }
}

/// A machine's metadata service, version 2.
fn machine(role: &'static str) -> impl Fn(&Seen) -> Does + Send + Sync + 'static {
    let given = Mutex::new(false);
    move |seen: &Seen| {
        let text = |body: &str| Does::Answer(response(200, "text/plain", body.to_owned()));
        if (&*seen.method, &*seen.target) == ("PUT", "/latest/api/token") {
            assert_eq!(seen.header("x-aws-ec2-metadata-token-ttl-seconds"), "300");
            *given.lock().expect("no panic") = true;
            return text("session-hidden");
        }
        assert!(*given.lock().expect("no panic"));
        assert_eq!(seen.header("x-aws-ec2-metadata-token"), "session-hidden");
        match &*seen.target {
            "/latest/meta-data/iam/security-credentials/" => text(role),
            "/latest/meta-data/iam/security-credentials/gate-role" => text(
                r#"{"Code":"Success","AccessKeyId":"ASIA2","SecretAccessKey":"hidden","Token":"t","Expiration":"2999-01-01T00:00:00Z"}"#,
            ),
            _ => Does::Answer(response(404, "text/plain", "")),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_machines_own_role_is_asked_for_in_three_steps() {
    let (server, found) = asked(machine("gate-role\n"), KeysRequest::Instance).await;
    assert_eq!(found.expect("keys").value.access_key_id, "ASIA2");
    assert_eq!(server.asked(), 3);
    for (role, why) in [
        ("../../user-data", "no role"),
        ("", "no role"),
        ("other", "404"),
    ] {
        let fault = asked(machine(role), KeysRequest::Instance)
            .await
            .1
            .expect_err(role);
        assert!(fault.to_string().contains(why), "{role}: {fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_containers_agent_is_shown_what_proves_the_container() {
    let agent = |seen: &Seen| {
        assert_eq!((&*seen.method, &*seen.target), ("GET", "/v1/credentials"));
        let is_proven = seen.header("authorization") == "pod-hidden";
        let body = r#"{"AccessKeyId":"ASIA3","SecretAccessKey":"hidden","Token":"t","Expiration":"2999-01-01T00:00:00Z"}"#;
        match is_proven {
            true => Does::Answer(response(200, "application/json", body)),
            false => Does::Answer(response(401, "application/json", "{}")),
        }
    };
    let container = |proof: &'static str| {
        move |url: Url| KeysRequest::Container {
            url: url.at("/v1/credentials").expect("a path"),
            token: Some(SecretSource::fixed(Secret::new(proof.into()))),
        }
    };
    let (server, found) = asked(agent, container("pod-hidden")).await;
    let keys = found.expect("keys").value.clone();
    assert_eq!(keys.access_key_id, "ASIA3");
    assert_eq!(keys.session_token.expose(), b"t");
    assert_eq!(server.asked(), 1);
    let fault = asked(agent, container("another"))
        .await
        .1
        .expect_err("no keys");
    assert!(fault.to_string().contains("401"), "{fault}");
    assert!(!fault.to_string().contains("another"), "{fault}");
}
