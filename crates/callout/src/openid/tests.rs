//! Providers in memory: which documents are of use, and what a code is given for.

use super::*;
use crate::client::Bounds;
use crate::fixture::{Does, Seen, Server, json, response, status};
use crate::json as strict;

const LONG: Duration = Duration::from_secs(60);
const ISSUER: &str = "http://server.test/realm";

fn nobody() -> ClientAuth {
    let id = Some("gate".to_owned());
    ClientAuth::Nothing { id }
}

fn secret(text: &str) -> Secret {
    Secret::new(text.into())
}

fn code() -> Code {
    code_of("v-1", 1)
}

/// Of the login with this verifier, from an address that ends so.
fn code_of(verifier: &str, host: u8) -> Code {
    Code {
        code: secret("c&1"),
        verifier: secret(verifier),
        redirect_url: "https://ai.example/login/callback".to_owned(),
        from: IpAddr::from([192, 0, 2, host]),
    }
}

fn openid(answering: impl Fn(&Seen) -> Does + Send + Sync + 'static) -> (Server, OpenId) {
    let (server, client) = Server::in_memory(Bounds::default(), answering);
    let openid = OpenId::new(&Handle::here(), client, ISSUER, nobody());
    (server, openid.expect("a provider"))
}

fn document(issuer: &str, base: &str, more: &str) -> String {
    format!(
        r#"{{"issuer":"{issuer}","authorization_endpoint":"{base}/authorize?p=1","token_endpoint":"{base}/token",
            "jwks_uri":"{base}/jwks"{more}}}"#
    )
}

/// What a document that says this comes to.
async fn read(text: &str) -> Result<Arc<Provider>, String> {
    let text = text.to_owned();
    let (_server, openid) = openid(move |_| json(text.clone()));
    let provider = openid.provider(LONG).await;
    provider.map_err(|fault| fault.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_document_names_where_browsers_and_codes_go() {
    let base = "http://server.test/realm";
    let plain = read(&document(ISSUER, base, "")).await.expect("a provider");
    assert_eq!(
        plain.authorization_endpoint,
        "http://server.test/realm/authorize?p=1"
    );
    assert_eq!(plain.end_session_endpoint, None);
    assert!(!plain.names_itself);
    let more = r#","end_session_endpoint":"http://server.test:8080/end",
        "authorization_response_iss_parameter_supported":true"#;
    let full = read(&document(ISSUER, base, more))
        .await
        .expect("a provider");
    let end = full.end_session_endpoint.as_deref();
    assert_eq!(end, Some("http://server.test:8080/end"));
    assert!(full.names_itself);
}

#[tokio::test(start_paused = true)]
async fn a_document_that_is_not_whole_or_anothers_is_of_no_use() {
    let base = "http://server.test";
    let good = document(ISSUER, base, "");
    for (text, says) in [
        (
            document("http://server.test/realm/", base, ""),
            "another issuer",
        ),
        (
            document("http://SERVER.test/realm", base, ""),
            "another issuer",
        ),
        (good.replace("\"issuer\"", "\"x\""), "another issuer"),
        (
            good.replace("authorization_endpoint", "x"),
            "no authorization_endpoint",
        ),
        (good.replace("token_endpoint", "x"), "no token_endpoint"),
        (
            good.replace("\"http://server.test/token\"", "7"),
            "is no text",
        ),
        (
            good.replace("http://server.test/token", "ftp://a/"),
            "not a usable URL",
        ),
        (
            good.replace("http://server.test/authorize", "javascript:"),
            "not a usable URL",
        ),
        (
            document(ISSUER, base, r#","end_session_endpoint":"/end""#),
            "not a usable URL",
        ),
        (
            document(
                ISSUER,
                base,
                r#","authorization_response_iss_parameter_supported":"yes""#,
            ),
            "not true or false",
        ),
        (
            document(ISSUER, base, r#","token_endpoint":"http://evil.test/""#),
            "twice",
        ),
        ("[]".to_owned(), "not a JSON object"),
        (format!("{good}{}", " ".repeat(300 << 10)), "longer than"),
    ] {
        let fault = read(&text).await.expect_err(&text);
        assert!(fault.contains(says), "{fault}: {text}");
    }
}

#[test]
fn of_an_issuer_over_tls_everything_is_over_tls() {
    let members = |text: &str| strict::object(text.as_bytes()).expect("an object");
    for name in [
        "authorization_endpoint",
        "token_endpoint",
        "end_session_endpoint",
        "jwks_uri",
    ] {
        let text = document("https://i.test", "https://i.test", "");
        let mut members = members(&text);
        members.insert(name.to_owned(), "http://i.test/".into());
        let document = Document::with(members, true);
        let fault = match name {
            "jwks_uri" => document.jwks_uri().map(|_| ()),
            _ => provider(&document).map(|_| ()),
        };
        let says = fault.expect_err(name).to_string();
        assert!(
            says.contains(name) && says.contains("is not https"),
            "{says}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_document_is_fetched_when_it_is_needed_and_once_an_hour() {
    let (server, openid) = openid(|_| json(document(ISSUER, "http://server.test", "")));
    tokio::time::sleep(LONG).await;
    assert_eq!(server.asked(), 0, "nobody needed it");
    for _ in 0..5 {
        let several = [openid.provider(LONG), openid.provider(LONG)];
        for one in several {
            one.await.expect("a provider");
        }
    }
    assert_eq!(server.asked(), 1);
    assert_eq!(
        server.seen()[0].target,
        "/realm/.well-known/openid-configuration"
    );
    tokio::time::sleep(DOCUMENT_KEPT).await;
    openid.provider(LONG).await.expect("a provider");
    assert_eq!(server.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_is_down_is_asked_again() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let asked = AtomicUsize::new(0);
    let (_server, openid) = openid(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => status(503),
        _ => json(document(ISSUER, "http://server.test", "")),
    });
    let fault = openid.provider(LONG).await.expect_err("it is down");
    assert_eq!(fault.to_string(), "it answered 503");
    openid.provider(LONG).await.expect("it is up");
}

/// A provider whose token endpoint answers so.
fn issuing(
    auth: ClientAuth,
    answering: impl Fn() -> Does + Send + Sync + 'static,
) -> (Server, OpenId) {
    let (server, client) = Server::in_memory(Bounds::default(), move |seen| match &*seen.target {
        "/token" => answering(),
        _ => json(document(ISSUER, "http://server.test", "")),
    });
    let openid = OpenId::new(&Handle::here(), client, ISSUER, auth);
    (server, openid.expect("a provider"))
}

#[tokio::test(start_paused = true)]
async fn a_code_is_given_for_an_id_token_with_its_verifier() {
    let hidden = || SecretSource::fixed(secret("hidden"));
    let id = || "gate".to_owned();
    let form = "grant_type=authorization_code&code=c%261&redirect_uri=https%3A%2F%2Fai.example%2Flogin%2Fcallback\
                &code_verifier=v-1";
    let table = [
        (nobody(), "&client_id=gate", "(none)"),
        (
            ClientAuth::Post {
                id: id(),
                secret: hidden(),
            },
            "&client_id=gate&client_secret=hidden",
            "(none)",
        ),
        // base64("gate:hidden")
        (
            ClientAuth::Basic {
                id: id(),
                secret: hidden(),
            },
            "",
            "Basic Z2F0ZTpoaWRkZW4=",
        ),
    ];
    for (auth, more, authorization) in table {
        let answer = r#"{"id_token":"ey.J.x","access_token":"a","token_type":"DPoP"}"#;
        let (server, openid) = issuing(auth, move || json(answer));
        let token = openid.id_token(code(), LONG).await.expect("a token");
        assert_eq!(token.expose(), b"ey.J.x");
        let seen = &server.seen()[1];
        assert_eq!((&*seen.method, &*seen.target), ("POST", "/token"));
        assert_eq!(seen.text(), format!("{form}{more}"));
        assert_eq!(seen.header("authorization"), authorization);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_id_token_is_a_fault_that_repeats_nothing() {
    type Answers = fn() -> Does;
    let answers: [(Answers, &str); 7] = [
        (
            || {
                Does::Answer(response(
                    400,
                    "application/json",
                    r#"{"error":"invalid_grant"}"#,
                ))
            },
            "400 (invalid_grant)",
        ),
        (
            || Does::Answer(response(400, "text/html", "<b>secret c&1</b>")),
            "it answered 400",
        ),
        (
            || Does::Answer(response(302, "text/html", "")),
            "it answered 302",
        ),
        (
            || json(r#"{"access_token":"a","token_type":"bearer"}"#),
            "no id_token",
        ),
        (|| json(r#"{"id_token":7}"#), "no text"),
        (|| json(r#"{"id_token":"a","id_token":"b"}"#), "twice"),
        (|| json(vec![b' '; 65 << 10]), "longer than"),
    ];
    for (answer, says) in answers {
        let (_server, openid) = issuing(nobody(), answer);
        let fault = openid
            .id_token(code(), LONG)
            .await
            .expect_err(says)
            .to_string();
        assert!(fault.contains(says) && !fault.contains("c&1"), "{fault}");
    }
    let (_server, openid) = issuing(nobody(), || Does::Hang);
    let late = openid.id_token(code(), Duration::from_millis(100)).await;
    assert!(matches!(late, Err(Fault::Late { .. })), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn codes_that_anybody_brings_wait_in_a_bounded_room() {
    let (server, openid) = issuing(nobody(), || Does::Hang);
    openid.provider(LONG).await.expect("a provider");
    let mut logins = (0_u8..).map(|login| code_of(&login.to_string(), login));
    let mut fresh = || logins.next().expect("a code");
    let waiting: Vec<_> = (0..CODES_MAX)
        .map(|_| openid.id_token(fresh(), LONG))
        .collect();
    let next = openid.id_token(fresh(), LONG).await;
    assert_eq!(next, Err(Fault::Full));
    drop(waiting);
    let mut is_free = false;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let later = openid.id_token(fresh(), Duration::from_millis(50)).await;
        is_free = matches!(later, Err(Fault::Late { .. }));
        if is_free {
            break;
        }
    }
    assert!(is_free, "the room is free again");
    assert!(server.asked() > 1);
}

/// How many of so many codes, one after the other, the provider is asked about.
async fn asked_about(
    (server, openid): &(Server, OpenId),
    codes: impl Iterator<Item = Code>,
) -> usize {
    openid.provider(LONG).await.expect("a provider");
    let before = server.asked();
    for code in codes {
        let brought = openid.id_token(code, LONG).await;
        let is_turned_away = matches!(brought, Err(Fault::TooMany(_)));
        assert!(is_turned_away || brought != Err(Fault::Full), "{brought:?}");
    }
    server.asked() - before
}

#[tokio::test(start_paused = true)]
async fn six_hundred_made_up_codes_of_one_login_are_five_questions() {
    let provider = issuing(nobody(), || status(400));
    let of_login = |login: &'static str, host| (0..600).map(move |_| code_of(login, host));
    assert_eq!(asked_about(&provider, of_login("a", 1)).await, 5);
    // Nor of other addresses, nor as long as a login lives.
    tokio::time::sleep(Duration::from_secs(590)).await;
    assert_eq!(asked_about(&provider, of_login("a", 2)).await, 0);
    assert_eq!(asked_about(&provider, of_login("b", 2)).await, 5);
}

#[tokio::test(start_paused = true)]
async fn six_hundred_logins_of_one_address_that_come_to_nothing_are_twenty_questions_in_ten_seconds()
 {
    let provider = issuing(nobody(), || status(400));
    let of_host = |host| (0..600).map(move |login| code_of(&format!("{host}-{login}"), host));
    assert_eq!(asked_about(&provider, of_host(1)).await, 20);
    assert_eq!(asked_about(&provider, of_host(2)).await, 20);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(asked_about(&provider, of_host(1).skip(300)).await, 20);
}

#[tokio::test(start_paused = true)]
async fn logins_that_are_good_are_not_counted_against_their_address() {
    let provider = issuing(nobody(), || json(r#"{"id_token":"t"}"#));
    let good = (0..600).map(|login| code_of(&login.to_string(), 1));
    assert_eq!(asked_about(&provider, good).await, 600);
}

#[tokio::test(start_paused = true)]
async fn one_address_takes_half_of_the_room_at_most() {
    let provider = issuing(nobody(), || Does::Hang);
    let (_, openid) = &provider;
    openid.provider(LONG).await.expect("a provider");
    let all = (0..CODES_MAX / 2).map(|login| openid.id_token(code_of(&login.to_string(), 1), LONG));
    let waiting: Vec<_> = all.collect();
    tokio::time::sleep(Duration::from_millis(10)).await;
    let more = openid.id_token(code_of("more", 1), LONG).await;
    assert!(matches!(more, Err(Fault::TooMany(_))), "{more:?}");
    let others = openid.id_token(code_of("others", 2), Duration::from_millis(10));
    assert!(matches!(others.await, Err(Fault::Late { .. })));
    drop(waiting);
}

/// A server of plain OAuth: its token endpoint gives this, and its user endpoint answers so.
fn oauth(
    token: &'static str,
    user: impl Fn(&Seen) -> Does + Send + Sync + 'static,
) -> (Server, OpenId) {
    let (server, client) = Server::in_memory(Bounds::default(), move |seen| match &*seen.target {
        "/token" => json(token),
        _ => user(seen),
    });
    let at = [
        "http://server.test/a",
        "http://server.test/token",
        "http://server.test/users/~",
    ];
    let openid = OpenId::written(&Handle::here(), client, ISSUER, nobody(), at);
    (server, openid.expect("a provider"))
}

const TOKEN: &str = r#"{"access_token":"sha256~t","token_type":"Bearer","expires_in":86400}"#;

#[tokio::test(start_paused = true)]
async fn of_plain_oauth_a_code_is_given_for_what_the_user_endpoint_says() {
    let (server, openid) = oauth(TOKEN, |_| {
        json(r#"{"metadata":{"name":"ada","uid":"u-1"},"groups":["staff"]}"#)
    });
    let provider = openid.provider(LONG).await.expect("it is written");
    assert_eq!(provider.authorization_endpoint, "http://server.test/a");
    assert_eq!(server.asked(), 0, "there is no document");
    let user = openid.user(code(), LONG).await.expect("a user");
    assert_eq!(user["metadata"]["name"], "ada");
    let [token, asked] = &server.seen()[..] else {
        panic!("two questions")
    };
    assert!(
        token.text().contains("&code_verifier=v-1"),
        "{}",
        token.text()
    );
    assert_eq!((&*asked.method, &*asked.target), ("GET", "/users/~"));
    assert_eq!(asked.header("authorization"), "Bearer sha256~t");
    assert_eq!(asked.text(), "");
}

#[tokio::test(start_paused = true)]
async fn what_a_user_endpoint_does_not_say_is_a_fault_that_repeats_nothing() {
    type Answers = fn(&Seen) -> Does;
    let answers: [(&str, Answers, &str); 8] = [
        (TOKEN, |_| status(401), "`scopes` may lack"),
        (TOKEN, |_| status(403), "`scopes` may lack"),
        (TOKEN, |_| status(500), "it answered 500"),
        (TOKEN, |_| json("[]"), "not a JSON object"),
        (TOKEN, |_| json(r#"{"sub":"a","sub":"b"}"#), "twice"),
        (
            TOKEN,
            |_| Does::Answer(response(200, "text/html", "{}")),
            "not application/json",
        ),
        (TOKEN, |_| json(vec![b' '; 257 << 10]), "longer than"),
        (
            r#"{"token_type":"Bearer"}"#,
            |_| json("{}"),
            "no access_token",
        ),
    ];
    for (token, answer, says) in answers {
        let (_server, openid) = oauth(token, answer);
        let fault = openid.user(code(), LONG).await.expect_err(says).to_string();
        assert!(fault.contains(says) && !fault.contains("sha256"), "{fault}");
    }
    let (_server, openid) = issuing(nobody(), || json(TOKEN));
    let fault = openid
        .user(code(), LONG)
        .await
        .expect_err("it has a document");
    assert!(fault.to_string().contains("no user_endpoint"), "{fault}");
}
