//! Requests that are signed for AWS: what was signed is what arrived.

use sigv4::{Keys, Request, Scope};

use super::recorder::{Got, Recorder};
use super::*;
use crate::identity_sources::issuer::now;

const ID: &str = "AKIAIOSFODNN7EXAMPLE";

fn keys(id: &str, secret: &str, token: Option<&str>) -> Keys {
    Keys {
        access_key_id: id.to_owned(),
        secret_access_key: secret.as_bytes().to_vec().into(),
        session_token: token.map(|token| token.as_bytes().to_vec().into()),
    }
}

/// Signs what arrived again, with the headers that its signature names, at the moment that it says.
fn assert_signed(got: &Got, keys: &Keys, region: &str) {
    let header = |name: &str| {
        let all: Vec<_> = got.headers.get_all(name).iter().collect();
        assert_eq!(all.len(), 1, "{name} in {got:?}");
        all[0].to_str().expect("text").to_owned()
    };
    let authorization = header("authorization");
    let names = authorization
        .split("SignedHeaders=")
        .nth(1)
        .and_then(|of| of.split(',').next());
    let own = [
        "host",
        "x-amz-date",
        "x-amz-content-sha256",
        "x-amz-security-token",
    ];
    let further = names
        .expect("names")
        .split(';')
        .filter(|name| !own.contains(name));
    let headers: Vec<_> = further
        .map(|name| (name.as_bytes().to_vec(), header(name).into_bytes()))
        .collect();
    let (date, now) = (header("x-amz-date"), now());
    let request = Request {
        method: &got.method,
        authority: &got.authority,
        path: &got.path,
        query: &got.query,
        headers: &headers,
        body: &[&got.body],
    };
    let scope = Scope {
        region: region.to_owned(),
        service: "bedrock".to_owned(),
    };
    let is_same = (now - testing::PATIENCE.as_secs()..=now).rev().any(|at| {
        let lines = sigv4::sign(keys, &scope, &request, at);
        lines
            .iter()
            .all(|(name, value)| header(name).as_bytes() == &***value)
    });
    assert!(is_same, "signed at {date}: {authorization}");
}

#[test]
fn what_is_signed_is_what_arrives_over_either_version_of_http() {
    for is_h2 in [false, true] {
        let upstream = Recorder::clear(is_h2);
        let protocol = if is_h2 { "http2" } else { "http1" };
        let config = format!(
            "backends: {{ up: {{ url: http://{}/openai/v1, protocol: {protocol}, query: {{ api-version: \"2 b\" }}, \
             model_names: {{ m: \"amazon.m:0\" }}, credential: {{ aws: {{ region: us-west-2, access_key_id: {ID}, \
             secret_access_key: {{ file: secret }} }} }} }} }}\n\
             routes: [ {{ workload: w, backend: up, forward_headers: x-amzn-bedrock-trace }} ]\n",
            upstream.address
        );
        let secret = format!("{CANARY}/secret");
        let gate = Gate::start(&config, &[("secret", secret.as_bytes())]);
        let headers = [
            "x-workload-app: w",
            "x-amzn-bedrock-trace: ENABLED",
            "x-amz-date: x",
        ];
        let long = format!(
            r#"{{"model":"m","stream":true,"messages":[{{"role":"user","content":"{}"}}]}}"#,
            "long ".repeat(40_000)
        );
        for body in [chat("m", false), chat("m", true), long] {
            let path = "/v1/chat/completions?beta=true";
            let response = gate.call(&post(path, &headers, &body));
            assert_eq!(response.status, 200, "{}", response.text());
            let got = upstream.got().pop().expect("it arrived");
            assert_eq!(got.is_h2, is_h2);
            assert_eq!(got.path, "/openai/v1/chat/completions");
            assert_eq!(got.query, "beta=true&api-version=2%20b");
            let text = String::from_utf8(got.body.to_vec()).expect("text");
            assert!(
                text.contains(r#""model":"amazon.m:0""#),
                "the body is edited"
            );
            assert_signed(&got, &keys(ID, &secret, None), "us-west-2");
            let authorization = got.headers["authorization"].to_str().expect("text");
            let signed = "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amzn-bedrock-trace,";
            assert!(authorization.contains(signed), "{authorization}");
        }
        assert_silent(&gate);
    }
}

/// A token service that gives keys of a role for whatever it is shown.
fn token_service() -> Upstream {
    Upstream::start(|_, _| {
        let body = format!(
            "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
             <AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>{CANARY}/role</SecretAccessKey>\
             <SessionToken>{CANARY}==</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration>\
             </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
        );
        let whole = crate::harness::answer::whole(200, "text/xml", body.as_bytes());
        vec![Step::Send(whole)]
    })
}

#[test]
fn a_role_is_taken_with_a_token_of_a_file_or_of_another_issuer_and_its_keys_sign() {
    let issuer = endpoint(60);
    let issued = format!(
        "token: {{ token_url: http://{}/token, client_id: gate, client_secret: {{ file: secret }} }}",
        issuer.address
    );
    let table = [
        ("token_file: token", format!("{CANARY}.web.identity")),
        (&*issued, format!("{CANARY}-token-0")),
    ];
    for (said, shown) in table {
        let (upstream, sts) = (Recorder::clear(false), token_service());
        let config = format!(
            "backends: {{ up: {{ url: http://{}/openai/v1, credential: {{ aws: {{ region: eu-central-1, endpoint: http://{}, \
             web_identity: {{ role_arn: \"arn:aws:iam::123456789012:role/gate\", {said} }} }} }} }} }}\n\
             routes: [ {{ workload: w, backend: up }} ]\n",
            upstream.address, sts.address
        );
        let (token, secret) = (
            format!("{CANARY}.web.identity\n"),
            format!("{CANARY}-secret"),
        );
        let files: [(&str, &[u8]); 2] =
            [("token", token.as_bytes()), ("secret", secret.as_bytes())];
        let gate = Gate::start(&config, &files);
        let response = call(&gate);
        assert_eq!(response.status, 200, "{}", response.text());
        let asked = form(&sts.seen()[0]);
        assert_eq!(asked["Action"], "AssumeRoleWithWebIdentity");
        assert_eq!(asked["RoleArn"], "arn:aws:iam::123456789012:role/gate");
        assert_eq!(asked["RoleSessionName"], "tollgate");
        assert_eq!(asked["WebIdentityToken"], shown);
        let keys = keys(
            "ASIAROLE",
            &format!("{CANARY}/role"),
            Some(&format!("{CANARY}==")),
        );
        assert_signed(&upstream.got()[0], &keys, "eu-central-1");
        assert_silent(&gate);
    }
}

#[test]
fn the_machines_role_is_asked_of_its_metadata_service() {
    let upstream = Recorder::clear(false);
    let machine = Upstream::start(|_, seen: &Seen| {
        let line = seen.head.lines().next().unwrap_or_default();
        let is_known = seen.header("x-aws-ec2-metadata-token") == [format!("{CANARY}-session")];
        let text = |body: String| {
            vec![Step::Send(crate::harness::answer::whole(
                200,
                "text/plain",
                body.as_bytes(),
            ))]
        };
        match line {
            "PUT /latest/api/token HTTP/1.1" => text(format!("{CANARY}-session")),
            "GET /latest/meta-data/iam/security-credentials/ HTTP/1.1" if is_known => {
                text("gate".to_owned())
            }
            "GET /latest/meta-data/iam/security-credentials/gate HTTP/1.1" if is_known => {
                text(format!(
                    r#"{{"Code":"Success","AccessKeyId":"ASIAMACHINE","SecretAccessKey":"{CANARY}/m","Token":"{CANARY}","Expiration":"2999-01-01T00:00:00Z"}}"#
                ))
            }
            _ => vec![Step::Send(json(401, "{}"))],
        }
    });
    let config = format!(
        "backends: {{ up: {{ url: http://{}/openai/v1, credential: {{ aws: {{ region: us-west-2, imds: true, \
         endpoint: http://{} }} }} }} }}\nroutes: [ {{ workload: w, backend: up }} ]\n",
        upstream.address, machine.address
    );
    let gate = Gate::start(&config, &[]);
    let response = call(&gate);
    assert_eq!(response.status, 200, "{}", response.text());
    let keys = keys("ASIAMACHINE", &format!("{CANARY}/m"), Some(CANARY));
    assert_signed(&upstream.got()[0], &keys, "us-west-2");
    assert_silent(&gate);
}

#[test]
fn a_containers_role_signs_with_keys_that_its_agent_gives() {
    let upstream = Recorder::clear(false);
    let agent = Upstream::start(|_, seen: &Seen| {
        let is_asked = seen.head.starts_with("GET /v1/credentials HTTP/1.1\r\n");
        let is_proven = seen.header("authorization") == [format!("{CANARY}-pod")];
        if !is_asked || !is_proven {
            return vec![Step::Send(json(401, "{}"))];
        }
        vec![Step::Send(json(
            200,
            &format!(
                r#"{{"AccessKeyId":"ASIACONTAINER","SecretAccessKey":"{CANARY}/c","Token":"{CANARY}","Expiration":"2999-01-01T00:00:00Z"}}"#
            ),
        ))]
    });
    let dir = tempfile::tempdir().expect("a directory");
    let proof = dir.path().join("token");
    std::fs::write(&proof, format!("{CANARY}-pod\n")).expect("a file");
    let config = format!(
        "backends: {{ up: {{ url: http://{}/openai/v1, credential: {{ aws: {{ region: us-west-2, container: true }} }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        upstream.address
    );
    let url = format!("http://{}/v1/credentials", agent.address);
    let env = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
        (
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
            proof.to_str().expect("UTF-8"),
        ),
    ];
    let gate = Gate::start_env(&config, &[], &env);
    let response = call(&gate);
    assert_eq!(response.status, 200, "{}", response.text());
    let keys = keys("ASIACONTAINER", &format!("{CANARY}/c"), Some(CANARY));
    assert_signed(&upstream.got()[0], &keys, "us-west-2");
    assert_silent(&gate);
}
