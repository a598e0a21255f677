//! A login from its beginning to the ID token, and what breaks it off.

use jose::sign::{SigningKey, SystemRandom};
use jose::{KeySet, Rules};
use serde_json::{Value, json};

use super::*;
use crate::sealed::Purpose;

const NOW: u64 = 1_700_000_000;
const ISSUER: &str = "https://issuer.example";

fn sealer() -> Sealer {
    Sealer::new(Purpose::LoginState, "", &Secret::new(vec![1; 32]), None).expect("a sealer")
}

fn registration() -> Registration {
    Registration {
        issuer: ISSUER.to_owned(),
        client_id: "gate & co".to_owned(),
        redirect_url: "https://ai.example/login/callback".to_owned(),
        scopes: vec!["profile".to_owned(), "email".to_owned()],
        has_id_tokens: true,
    }
}

fn chance(seed: u8) -> Chance {
    Chance {
        state: [seed; 32],
        nonce: [seed + 1; 32],
        verifier: [seed + 2; 32],
        seal: [seed + 3; NONCE_BYTES],
    }
}

fn begun(seed: u8, endpoint: &str, path: &str) -> Begun {
    let path = ReturnPath::read(path.as_bytes()).expect("a path");
    begin(
        &registration(),
        endpoint,
        &path,
        &chance(seed),
        (&sealer(), NOW),
    )
}

fn usual() -> Begun {
    begun(1, "https://issuer.example/authorize", "/chat?a=b")
}

fn state(seed: u8) -> String {
    URL_SAFE_NO_PAD.encode([seed; 32])
}

fn back(query: &str, kept: Option<&Secret>, at: u64) -> Result<Returned, LoginFault> {
    let kept = kept.map(Secret::expose);
    callback(
        query.as_bytes(),
        kept,
        &registration(),
        false,
        (&sealer(), at),
    )
}

#[test]
fn the_browser_is_sent_to_the_provider_with_a_challenge() {
    let begun = usual();
    let state = state(1);
    let nonce = URL_SAFE_NO_PAD.encode([2; 32]);
    let verifier = URL_SAFE_NO_PAD.encode([3; 32]);
    let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    let challenge = URL_SAFE_NO_PAD.encode(digest.as_ref());
    assert_eq!(
        begun.location,
        format!(
            "https://issuer.example/authorize?response_type=code&client_id=gate%20%26%20co\
             &redirect_uri=https%3A%2F%2Fai.example%2Flogin%2Fcallback&scope=openid%20profile%20email\
             &state={state}&nonce={nonce}&code_challenge={challenge}&code_challenge_method=S256"
        )
    );
    assert!(!begun.location.contains(&verifier));
    let kept = begun.state.expose();
    assert!(kept.len() < 1000 && !kept.windows(43).any(|part| part == state.as_bytes()));
    for (endpoint, between) in [
        ("https://issuer.example/a?p=b2c", "?p=b2c&response_type"),
        ("https://issuer.example/a?", "/a?response_type"),
        ("https://issuer.example/a?p=b2c&", "?p=b2c&response_type"),
    ] {
        let begun = self::begun(1, endpoint, "/");
        assert!(begun.location.contains(between), "{}", begun.location);
    }
}

/// A nonce comes back in an ID token alone, and `openid` asks for one.
#[test]
fn of_a_server_without_id_tokens_none_is_asked_for() {
    let sent = |scopes: &[&str]| {
        let registration = Registration {
            has_id_tokens: false,
            scopes: scopes.iter().map(|&scope| scope.to_owned()).collect(),
            ..registration()
        };
        let at = (&sealer(), NOW);
        begin(
            &registration,
            "https://i.test/a",
            &ReturnPath::default(),
            &chance(1),
            at,
        )
        .location
    };
    let with = sent(&["user:info"]);
    assert!(with.contains("&scope=user%3Ainfo&state="), "{with}");
    assert!(
        !with.contains("nonce") && with.contains("code_challenge_method=S256"),
        "{with}"
    );
    let without = sent(&[]);
    assert!(!without.contains("scope"), "{without}");
}

/// RFC 7636, appendix B.
#[test]
fn the_challenge_is_the_rfcs() {
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    let bytes = URL_SAFE_NO_PAD.decode(verifier).expect("base64url");
    let chance = Chance {
        verifier: bytes.try_into().expect("32 bytes"),
        ..chance(1)
    };
    let path = ReturnPath::default();
    let begun = begin(
        &registration(),
        "https://i.test/",
        &path,
        &chance,
        (&sealer(), NOW),
    );
    let challenge = "code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&";
    assert!(begun.location.contains(challenge), "{}", begun.location);
}

#[test]
fn the_browser_comes_back_with_a_code() {
    let begun = usual();
    let query = format!("state={}&code=c%2F1+x&session_state=y", state(1));
    let returned = back(&query, Some(&begun.state), NOW + 599).expect("a code");
    assert_eq!(returned.code.expose(), b"c/1 x");
    assert_eq!(
        returned.verifier.expose(),
        URL_SAFE_NO_PAD.encode([3; 32]).as_bytes()
    );
    assert_eq!(
        returned.nonce.expose(),
        URL_SAFE_NO_PAD.encode([2; 32]).as_bytes()
    );
    assert_eq!(returned.return_path.as_str(), "/chat?a=b");
}

#[test]
fn the_longest_path_fits_into_what_the_browser_keeps() {
    let path = format!("/{}", "a".repeat(RETURN_BYTES_MAX - 1));
    let begun = begun(1, "https://i.test/", &path);
    let query = format!("state={}&code=c", state(1));
    let returned = back(&query, Some(&begun.state), NOW).expect("a code");
    assert_eq!(returned.return_path.as_str(), path);
}

#[test]
fn what_the_browser_does_not_bring_back_whole_ends_the_login() {
    let (ours, others) = (usual().state, begun(9, "https://i.test/", "/").state);
    let (state, other) = (state(1), state(9));
    let good = format!("state={state}&code=c");
    let changed = Secret::new([&b"B"[..], &ours.expose()[1..]].concat());
    let session = Sealer::new(Purpose::Session, "", &Secret::new(vec![1; 32]), None);
    let session = session.expect("a sealer").seal(b"{}", [0; NONCE_BYTES]);
    let session = Secret::new(session.expect("it fits").into_bytes());
    let nothing = Secret::new(Vec::new());
    let late = NOW + LOGIN_WITHIN_S;
    let table: &[(&str, Option<&Secret>, u64, &str)] = &[
        (&good, None, NOW, "login_not_begun"),
        (&good, Some(&nothing), NOW, "login_not_begun"),
        (&good, Some(&changed), NOW, "login_not_begun"),
        (&good, Some(&session), NOW, "login_not_begun"),
        (&good, Some(&ours), late, "login_expired"),
        // Of another browser, or of another window.
        (&good, Some(&others), NOW, "login_state_mismatch"),
        (
            &format!("state={other}&code=c"),
            Some(&ours),
            NOW,
            "login_state_mismatch",
        ),
        ("code=c", Some(&ours), NOW, "login_state_mismatch"),
        ("state=&code=c", Some(&ours), NOW, "login_state_mismatch"),
        (
            &format!("state={state}A&code=c"),
            Some(&ours),
            NOW,
            "login_state_mismatch",
        ),
        (
            &format!("state={}&code=c", &state[1..]),
            Some(&ours),
            NOW,
            "login_state_mismatch",
        ),
        (
            &format!("error=access_denied&state={other}"),
            Some(&ours),
            NOW,
            "login_state_mismatch",
        ),
        ("", Some(&ours), NOW, "login_state_mismatch"),
        (
            &format!("state={state}"),
            Some(&ours),
            NOW,
            "login_code_missing",
        ),
        (
            &format!("state={state}&code="),
            Some(&ours),
            NOW,
            "login_code_missing",
        ),
        (
            &format!("state={state}&code=c%0A"),
            Some(&ours),
            NOW,
            "login_code_missing",
        ),
        (
            &format!("{good}{}", "c".repeat(4096)),
            Some(&ours),
            NOW,
            "login_code_missing",
        ),
        (
            &format!("{good}&error=access_denied"),
            Some(&ours),
            NOW,
            "login_query_invalid",
        ),
        (
            &format!("{good}&code=c"),
            Some(&ours),
            NOW,
            "login_query_invalid",
        ),
        (
            &format!("{good}&c%6Fde=d"),
            Some(&ours),
            NOW,
            "login_query_invalid",
        ),
        (
            &format!("{good}&state={state}"),
            Some(&ours),
            NOW,
            "login_query_invalid",
        ),
        (
            &format!("iss=a&{good}&iss=b"),
            Some(&ours),
            NOW,
            "login_query_invalid",
        ),
        (&format!("{good}&x=%4"), Some(&ours), NOW, "login_ok"),
        (
            &format!("{good}&%4=x"),
            Some(&ours),
            NOW,
            "login_query_invalid",
        ),
        (
            &format!("{good}&iss=%zz"),
            Some(&ours),
            NOW,
            "login_query_invalid",
        ),
        (
            &format!("{good}&x={}", "y".repeat(8192)),
            Some(&ours),
            NOW,
            "login_query_invalid",
        ),
        (
            &format!("{good}&iss=https%3A%2F%2Fissuer.example"),
            Some(&ours),
            NOW,
            "login_ok",
        ),
        (
            &format!("{good}&iss=https%3A%2F%2Fissuer.example%2F"),
            Some(&ours),
            NOW,
            "login_issuer_mismatch",
        ),
        (
            &format!("{good}&iss="),
            Some(&ours),
            NOW,
            "login_issuer_mismatch",
        ),
    ];
    for (query, kept, at, expected) in table {
        let code = back(query, *kept, *at).map_or_else(|fault| fault.code(), |_| "login_ok");
        assert_eq!(code, *expected, "{query}");
    }
}

#[test]
fn a_provider_that_says_that_it_names_itself_has_to() {
    let kept = usual().state;
    for (query, is_good) in [
        (format!("state={}&code=c", state(1)), false),
        (
            format!("state={}&code=c&iss=https://issuer.example", state(1)),
            true,
        ),
        (format!("state={}&error=access_denied", state(1)), false),
    ] {
        let at = (&sealer(), NOW);
        let found = callback(
            query.as_bytes(),
            Some(kept.expose()),
            &registration(),
            true,
            at,
        );
        assert_eq!(found.is_ok(), is_good, "{query}");
        if !is_good {
            assert_eq!(found.expect_err("refused"), LoginFault::OtherIssuer);
        }
    }
}

#[test]
fn what_a_provider_says_is_cut_and_plain() {
    let kept = usual().state;
    let long = "x".repeat(3000);
    let query = format!(
        "state={}&error=access%00_denied&error_description=%3Cscript%3E%0A%FF{long}",
        state(1)
    );
    let fault = back(&query, Some(&kept), NOW).expect_err("refused");
    let LoginFault::Provider { error, description } = &fault else {
        panic!("{fault:?}");
    };
    assert_eq!(error, "access_denied");
    let description = description.as_ref().expect("a description");
    assert_eq!(description.chars().count(), 200);
    assert!(
        description.starts_with("<script>\u{fffd}x"),
        "{description}"
    );
}

#[test]
fn paths_to_return_to_lead_nowhere_else() {
    let good = [
        ("", "/"),
        ("return=/", "/"),
        ("return=%2Fchat%3Fa%3Db%26c", "/chat?a=b&c"),
        ("x=y&return=/a%20b", "/a%20b"),
        ("return=/a+b", "/a%20b"),
        ("return=/%C3%A9", "/%C3%A9"),
        ("return=/%25C3", "/%C3"),
        ("return=/a%22%3E%3Cscript%3E", "/a%22%3E%3Cscript%3E"),
        ("return=/a//b", "/a//b"),
        ("return=/:80", "/:80"),
        ("return=/.//evil.example", "/.//evil.example"),
    ];
    for (query, path) in good {
        let read = ReturnPath::of_query(query.as_bytes()).expect(query);
        assert_eq!(read.as_str(), path, "{query}");
    }
    let long = format!("return=/{}", "a".repeat(RETURN_BYTES_MAX));
    let wide = format!("return=/{}", "%C3%A9".repeat(RETURN_BYTES_MAX / 6 + 1));
    let bad = [
        "return=",
        "return",
        "return=chat",
        "return=https://evil.example",
        "return=//evil.example",
        "return=%2F%2Fevil.example",
        "return=/\\evil.example",
        "return=/%5Cevil.example",
        "return=\\/evil.example",
        "return=%09//evil.example",
        "return=/%09/evil.example",
        "return=/%0A/evil.example",
        "return=/%0D%0Aset-cookie:a=b",
        "return=/%00",
        "return=/a%7F",
        "return= /a",
        "return=javascript:alert(1)",
        &long,
        &wide,
    ];
    for query in bad {
        let read = ReturnPath::of_query(query.as_bytes());
        assert_eq!(read, Err(LoginFault::ReturnPath), "{query}");
    }
    for query in [
        "return=/a&return=/a",
        "return=/a&%72eturn=/b",
        "return=/%a",
        "%=1",
    ] {
        let read = ReturnPath::of_query(query.as_bytes());
        assert_eq!(read, Err(LoginFault::Query), "{query}");
    }
}

macro_rules! pem {
    ($name:literal) => {
        include_bytes!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../vectors/jose/keys/",
            $name
        ))
    };
}

fn signed(claims: Value) -> String {
    let random = SystemRandom::new();
    let key = SigningKey::from_pem(pem!("p256.pem"), None, &random).expect("a key");
    let Value::Object(claims) = claims else {
        panic!("no claims: {claims}");
    };
    let header = [("kid".to_owned(), "p256".into())].into_iter().collect();
    key.sign(&header, &claims, &random).expect("a token")
}

fn keys() -> KeySet {
    let text = include_str!("../../../../vectors/jose/others.txt");
    let mut sections = text.split("=== ").filter_map(|s| s.split_once('\n'));
    let (_, keys) = sections.find(|(title, _)| *title == "keys").expect("keys");
    KeySet::parse(keys.as_bytes()).expect("a key set")
}

fn checked(claims: Value, keys: &KeySet) -> Result<String, IdTokenFault> {
    let rules = Rules {
        issuer: ISSUER.into(),
        audiences: vec!["gate".into()],
        types: Vec::new(),
        algorithms: Vec::new(),
        leeway_s: 5,
        requires_expiry: true,
    };
    let (token, nonce) = (signed(claims), Secret::new(b"n-1".to_vec()));
    let claims = id_token(token.as_bytes(), &nonce, "gate", (&rules, keys), NOW)?;
    Ok(claims.all()["sub"].as_str().expect("a subject").to_owned())
}

#[test]
fn an_id_token_is_for_the_gate_and_for_this_login() {
    let good =
        json!({ "iss": ISSUER, "aud": "gate", "sub": "ada", "exp": NOW + 60, "nonce": "n-1" });
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    let two = json!(["gate", "other"]);
    let both = |azp: &str| {
        let mut claims = with("aud", two.clone());
        claims["azp"] = json!(azp);
        claims
    };
    for claims in [
        good.clone(),
        with("azp", json!("gate")),
        with("aud", json!(["gate"])),
        both("gate"),
    ] {
        assert_eq!(checked(claims, &keys()).as_deref(), Ok("ada"));
    }
    let token = |refused| IdTokenFault::Token(refused);
    let expired = jose::Refused::Expired { ago_s: 5 };
    for (claims, why) in [
        (with("nonce", json!("n-2")), IdTokenFault::Nonce),
        (with("nonce", json!("")), IdTokenFault::Nonce),
        (with("nonce", json!(null)), IdTokenFault::Nonce),
        (with("nonce", json!(["n-1"])), IdTokenFault::Nonce),
        (with("azp", json!("other")), IdTokenFault::AuthorizedParty),
        (with("azp", json!(null)), IdTokenFault::AuthorizedParty),
        (with("aud", two.clone()), IdTokenFault::AuthorizedParty),
        (both("other"), IdTokenFault::AuthorizedParty),
        (with("aud", json!("other")), token(jose::Refused::Audience)),
        (
            with("iss", json!("https://other.example")),
            token(jose::Refused::Issuer),
        ),
        (with("exp", json!(NOW - 5)), token(expired)),
        (with("sub", json!("")), IdTokenFault::Subject),
        (with("sub", json!(7)), IdTokenFault::Subject),
        (with("sub", json!("a".repeat(256))), IdTokenFault::Subject),
    ] {
        assert_eq!(checked(claims.clone(), &keys()), Err(why), "{claims}");
    }
    let none = KeySet::parse(br#"{"keys":[]}"#).expect("a key set");
    let unknown = checked(good, &none).expect_err("no key");
    assert!(unknown.asks_for_keys(), "{unknown}");
}
