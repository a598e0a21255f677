//! Google Cloud and Microsoft Entra: what each endpoint is shown.

use jose::{KeySet, Rules, Token};

use super::*;
use crate::identity_sources::issuer::now;

const RSA: &str = include_str!("../../../../../vectors/jose/keys/rsa.pem");
const RSA_PUBLIC: &str = include_str!("../../../../../vectors/jose/keys/rsa.public.pem");
const CERTIFICATE: &str = include_str!("../../../../../vectors/jose/keys/rsa.certificate.pem");

/// A gate with this credential and these files, and an engine behind it.
fn gate(credential: &str, files: &[(&str, &[u8])]) -> (Gate, Upstream) {
    let engine = engine();
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1, credential: {credential} }} }}\nroutes: [ {{ workload: w, backend: up }} ]\n",
        engine.address
    );
    (Gate::start(&config, files), engine)
}

/// Makes a call, which takes the first token.
fn assert_called(gate: &Gate, engine: &Upstream) {
    let response = call(gate);
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(last(engine), format!("Bearer {CANARY}-token-0"));
    assert_silent(gate);
}

/// The header and claims of a token that the key here signed, which its signature proves.
fn proven(token: &str, issuer: &str, audience: &str) -> (serde_json::Value, serde_json::Value) {
    let keys = KeySet::from_pem(RSA_PUBLIC.as_bytes()).expect("a key");
    let rules = Rules {
        issuer: issuer.into(),
        audiences: vec![audience.into()],
        types: Vec::new(),
        algorithms: Vec::new(),
        leeway_s: 5,
        requires_expiry: true,
    };
    let read = Token::read(token.as_bytes()).expect("a token");
    jose::verify(&read, &rules, &keys, now()).expect("a good signature");
    let part = |index: usize| {
        let part = token.split('.').nth(index).expect("a part");
        serde_json::from_slice(&base64(part)).expect("JSON")
    };
    (part(0), part(1))
}

/// Base64 with the alphabet for addresses.
fn base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'-' => 62,
        _ => 63,
    };
    let bits = text
        .bytes()
        .flat_map(|byte| (0..6).rev().map(move |bit| value(byte) >> bit & 1));
    let bits: Vec<u8> = bits.collect();
    bits.chunks_exact(8)
        .map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | bit))
        .collect()
}

#[test]
fn a_service_accounts_key_signs_for_its_token() {
    let google = endpoint(3600);
    let token_uri = format!("http://{}/token", google.address);
    let account = serde_json::json!({
        "type": "service_account", "client_email": "gate@project.example", "private_key": RSA,
        "private_key_id": "k1", "token_uri": token_uri,
    });
    let files: [(&str, &[u8]); 1] = [("account.json", &account.to_string().into_bytes())];
    let (gate, engine) = gate("{ google: { key_file: account.json } }", &files);
    assert_called(&gate, &engine);
    let asked = form(&google.seen()[0]);
    assert_eq!(
        asked["grant_type"],
        "urn:ietf:params:oauth:grant-type:jwt-bearer"
    );
    let (header, claims) = proven(&asked["assertion"], "gate@project.example", &token_uri);
    assert_eq!(
        (&header["alg"], &header["kid"]),
        (&"RS256".into(), &"k1".into())
    );
    assert_eq!(
        claims["scope"],
        "https://www.googleapis.com/auth/cloud-platform"
    );
    let life = claims["exp"].as_u64().zip(claims["iat"].as_u64());
    assert!(life.is_some_and(|(exp, iat)| exp - iat == 3600), "{claims}");
}

#[test]
fn googles_metadata_server_gives_the_machines_token() {
    let metadata = endpoint(3600);
    let credential = format!(
        "{{ google: {{ metadata: true, endpoint: http://{} }} }}",
        metadata.address
    );
    let (gate, engine) = gate(&credential, &[]);
    assert_called(&gate, &engine);
    let asked = &metadata.seen()[0];
    assert!(
        asked.head.starts_with(
            "GET /computeMetadata/v1/instance/service-accounts/default/token?scopes=https%3A"
        ),
        "{}",
        asked.head
    );
    assert_eq!(asked.header("metadata-flavor"), ["Google"]);
}

#[test]
fn another_issuers_token_is_given_for_googles_and_that_for_a_service_accounts() {
    let sts = Upstream::start(|_, _| {
        let body = format!(
            r#"{{"access_token":"{CANARY}-federated","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":3600}}"#
        );
        vec![Step::Send(json(200, &body))]
    });
    let iam = Upstream::start(|_, seen: &Seen| {
        assert_eq!(
            seen.header("authorization"),
            [format!("Bearer {CANARY}-federated")]
        );
        let body =
            format!(r#"{{"accessToken":"{CANARY}-token-0","expireTime":"2999-01-01T00:00:00Z"}}"#);
        vec![Step::Send(json(200, &body))]
    });
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("token.json");
    std::fs::write(&file, format!(r#"{{"id_token":"{CANARY}.subject"}}"#)).expect("a file");
    let account = serde_json::json!({
        "type": "external_account", "audience": "//iam.example/pool", "token_url": format!("http://{}/v1/token", sts.address),
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "credential_source": { "file": file, "format": { "type": "json", "subject_token_field_name": "id_token" } },
        "service_account_impersonation_url": format!("http://{}/v1/projects/-/serviceAccounts/sa:generateAccessToken", iam.address),
        "service_account_impersonation": { "token_lifetime_seconds": 600 },
    });
    let files: [(&str, &[u8]); 1] = [("account.json", &account.to_string().into_bytes())];
    let (gate, engine) = gate(
        "{ google: { key_file: account.json, scope: [a, b] } }",
        &files,
    );
    assert_called(&gate, &engine);
    let asked = form(&sts.seen()[0]);
    assert_eq!(
        asked["grant_type"],
        "urn:ietf:params:oauth:grant-type:token-exchange"
    );
    assert_eq!(asked["audience"], "//iam.example/pool");
    assert_eq!(asked["subject_token"], format!("{CANARY}.subject"));
    assert_eq!(
        asked["subject_token_type"],
        "urn:ietf:params:oauth:token-type:jwt"
    );
    assert_eq!(
        asked["requested_token_type"],
        "urn:ietf:params:oauth:token-type:access_token"
    );
    assert_eq!(
        asked["scope"],
        "https://www.googleapis.com/auth/cloud-platform"
    );
    let impersonated = iam.seen()[0].json();
    assert_eq!(
        impersonated,
        serde_json::json!({ "scope": ["a", "b"], "lifetime": "600s" })
    );
}

/// An issuer whose document says where its tokens are given: the nth one is `issued-n`.
fn issuer() -> Upstream {
    Upstream::start(|n, seen: &Seen| {
        if seen
            .head
            .starts_with("GET /realms/main/.well-known/openid-configuration ")
        {
            let host = seen.header("host").concat();
            let document = serde_json::json!({
                "issuer": format!("http://{host}/realms/main"), "token_endpoint": format!("http://{host}/token"),
            });
            return vec![Step::Send(json(200, &document.to_string()))];
        }
        assert!(seen.head.starts_with("POST /token "), "{}", seen.head);
        let token = format!("{CANARY}-issued-{n}");
        let body = format!(r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":60}}"#);
        vec![Step::Send(json(200, &body))]
    })
}

/// What a credential says of it.
fn issued(by: &Upstream) -> String {
    format!(
        "{{ issuer: http://{}/realms/main, client_id: gate, client_secret: {{ file: secret }}, scope: models, audience: cloud }}",
        by.address
    )
}

#[test]
fn another_issuer_is_asked_for_the_token_that_is_given_for_a_clouds_own() {
    let secret = format!("{CANARY}-secret");
    let files: [(&str, &[u8]); 1] = [("secret", secret.as_bytes())];
    let asked_of = |issuer: &Upstream| {
        let seen = issuer.seen();
        assert_eq!(seen.len(), 2, "its document, and a token");
        let basic = seen[1].header("authorization").concat();
        assert!(basic.starts_with("Basic "), "{basic}");
        let asked = form(&seen[1]);
        assert_eq!(asked["grant_type"], "client_credentials");
        assert_eq!((&*asked["scope"], &*asked["audience"]), ("models", "cloud"));
    };
    // Entra is shown it as what proves the application.
    let (by, entra) = (issuer(), endpoint(3600));
    let credential = format!(
        "{{ azure: {{ tenant: contoso.example, client_id: app, authority: http://{}, federated_token: {} }} }}",
        entra.address,
        issued(&by)
    );
    let (of_azure, engine) = gate(&credential, &files);
    assert_called(&of_azure, &engine);
    asked_of(&by);
    let shown = form(&entra.seen()[0]);
    assert_eq!(shown["client_assertion"], format!("{CANARY}-issued-1"));
    // Google gives its own for it, and for that one a service account's.
    let by = issuer();
    let google = Upstream::start(|n, _| {
        let body = match n {
            0 => format!(
                r#"{{"access_token":"{CANARY}-federated","token_type":"Bearer","expires_in":3600}}"#
            ),
            _ => format!(
                r#"{{"accessToken":"{CANARY}-token-0","expireTime":"2999-01-01T00:00:00Z"}}"#
            ),
        };
        vec![Step::Send(json(200, &body))]
    });
    let credential = format!(
        "{{ google: {{ endpoint: http://{}, federation: {{ audience: //iam.example/pool, service_account: gate@p.example, token: {} }} }} }}",
        google.address,
        issued(&by)
    );
    let (of_google, engine) = gate(&credential, &files);
    assert_called(&of_google, &engine);
    asked_of(&by);
    let [given, acted] = &google.seen()[..] else {
        panic!("asked {} times", google.seen().len());
    };
    assert!(given.head.starts_with("POST /v1/token "), "{}", given.head);
    let shown = form(given);
    assert_eq!(shown["audience"], "//iam.example/pool");
    assert_eq!(shown["subject_token"], format!("{CANARY}-issued-1"));
    assert_eq!(
        shown["subject_token_type"],
        "urn:ietf:params:oauth:token-type:jwt"
    );
    let path = "POST /v1/projects/-/serviceAccounts/gate%40p.example:generateAccessToken ";
    assert!(acted.head.starts_with(path), "{}", acted.head);
    assert_eq!(
        acted.header("authorization"),
        [format!("Bearer {CANARY}-federated")]
    );
}

#[test]
fn an_issuer_that_gives_no_token_leaves_the_cloud_unasked_and_the_call_refused() {
    // Its document names another one.
    let by = Upstream::start(|_, _| {
        vec![Step::Send(json(
            200,
            r#"{"issuer":"http://other.example"}"#,
        ))]
    });
    let entra = endpoint(3600);
    let credential = format!(
        "{{ azure: {{ tenant: contoso.example, client_id: app, authority: http://{}, federated_token: {} }} }}",
        entra.address,
        issued(&by)
    );
    let secret = format!("{CANARY}-secret");
    let (gate, engine) = gate(&credential, &[("secret", secret.as_bytes())]);
    let response = call(&gate);
    assert_eq!(response.status, 503, "{}", response.text());
    assert!(entra.seen().is_empty() && engine.seen().is_empty());
    assert!(by.seen().iter().all(|seen| seen.head.starts_with("GET ")));
    assert_silent(&gate);
}

#[test]
fn an_application_of_entra_is_proven_in_three_ways() {
    type Check = fn(&BTreeMap<String, String>, &str);
    let table: [(&str, Check); 3] = [
        ("client_secret: { file: secret }", |asked, _| {
            assert_eq!(asked["client_secret"], format!("{CANARY}-secret"));
        }),
        ("certificate: cert.pem, key: key.pem", |asked, url| {
            let (header, claims) = proven(&asked["client_assertion"], "app", url);
            assert_eq!(header["alg"], "PS256");
            let thumbprint = jose::sign::certificate_thumbprint(CERTIFICATE.as_bytes());
            assert_eq!(header["x5t#S256"], thumbprint.expect("a certificate"));
            assert_eq!(
                (&claims["sub"], claims["jti"].is_string()),
                (&"app".into(), true)
            );
        }),
        ("federated_token_file: token", |asked, _| {
            assert_eq!(asked["client_assertion"], format!("{CANARY}.federated"));
        }),
    ];
    for (proof, check) in table {
        let entra = endpoint(3600);
        let credential = format!(
            "{{ azure: {{ tenant: contoso.example, client_id: app, authority: http://{}, {proof} }} }}",
            entra.address
        );
        let (secret, token) = (format!("{CANARY}-secret"), format!("{CANARY}.federated\n"));
        let files: [(&str, &[u8]); 4] = [
            ("secret", secret.as_bytes()),
            ("token", token.as_bytes()),
            ("cert.pem", CERTIFICATE.as_bytes()),
            ("key.pem", RSA.as_bytes()),
        ];
        let (gate, engine) = gate(&credential, &files);
        assert_called(&gate, &engine);
        let seen = &entra.seen()[0];
        assert!(
            seen.head
                .starts_with("POST /contoso.example/oauth2/v2.0/token HTTP/1.1"),
            "{}",
            seen.head
        );
        assert!(seen.header("authorization").is_empty(), "{proof}");
        let asked = form(seen);
        assert_eq!(asked["grant_type"], "client_credentials", "{proof}");
        assert_eq!(asked["client_id"], "app", "{proof}");
        assert_eq!(
            asked["scope"], "https://cognitiveservices.azure.com/.default",
            "{proof}"
        );
        check(
            &asked,
            &format!("http://{}/contoso.example/oauth2/v2.0/token", entra.address),
        );
    }
}

#[test]
fn azures_metadata_service_gives_the_machines_token() {
    let metadata = endpoint(3600);
    let credential = format!(
        "{{ azure: {{ managed_identity: true, client_id: a b, endpoint: http://{} }} }}",
        metadata.address
    );
    let (gate, engine) = gate(&credential, &[]);
    assert_called(&gate, &engine);
    let asked = &metadata.seen()[0];
    let target = "GET /metadata/identity/oauth2/token?api-version=2018-02-01\
                  &resource=https%3A%2F%2Fcognitiveservices.azure.com&client_id=a%20b HTTP/1.1";
    assert!(asked.head.starts_with(target), "{}", asked.head);
    assert_eq!(asked.header("metadata"), ["true"]);
}
