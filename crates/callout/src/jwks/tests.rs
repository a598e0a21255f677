//! Issuers in memory, where hours pass at once, and one on loopback.

use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::*;
use crate::client::Bounds;
use crate::fixture::{Does, Seen, Server, Then, body_then, client, json, response, status};

const SET: &str = r#"{"keys":[{"kid":"a"}]}"#;
const LONG: Duration = Duration::from_secs(60);

/// What a host was told.
#[derive(Clone, Default)]
struct Told {
    sets: Arc<Mutex<Vec<String>>>,
    faults: Arc<Mutex<Vec<String>>>,
}

impl Told {
    /// A host that refuses sets with the word `bad`.
    fn hooks(&self) -> Hooks {
        let (sets, faults) = (Arc::clone(&self.sets), Arc::clone(&self.faults));
        Hooks {
            on_change: Box::new(move |set| {
                let set = String::from_utf8(set.to_vec()).expect("text");
                if set.contains("bad") {
                    return Err("no key of it is usable".to_owned());
                }
                sets.lock().expect("no panic").push(set);
                Ok(())
            }),
            on_fault: Box::new(move |text| faults.lock().expect("no panic").push(text.to_owned())),
        }
    }

    fn sets(&self) -> Vec<String> {
        self.sets.lock().expect("no panic").clone()
    }

    fn faults(&self) -> Vec<String> {
        self.faults.lock().expect("no panic").clone()
    }
}

/// A set whose server is in memory, so that hours pass at once.
fn started(answering: impl Fn(&Seen) -> Does + Send + Sync + 'static) -> (Server, Jwks, Told) {
    let (server, client) = Server::in_memory(Bounds::default(), answering);
    let told = Told::default();
    let settings = JwksSettings::new(KeySource::Url(server.url("/jwks")));
    let jwks = Jwks::start(&Handle::here(), client, settings, told.hooks());
    (server, jwks, told)
}

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

async fn moment() {
    pass(Duration::from_millis(500)).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_pending_until_it_was_fetched_and_is_fetched_when_due() {
    let is_up = Arc::new(AtomicBool::new(false));
    let up = Arc::clone(&is_up);
    let (server, jwks, told) = started(move |_| {
        if up.load(Ordering::Relaxed) {
            json(SET)
        } else {
            status(503)
        }
    });
    assert_eq!(jwks.availability(), Availability::Pending);
    moment().await;
    assert_eq!(jwks.availability(), Availability::Pending);
    assert_eq!(told.faults(), ["the key set: it answered 503"]);
    // Failed at 0, 1, 3 s; good at 7 s.
    pass(Duration::from_secs(3)).await;
    assert_eq!((server.asked(), jwks.state().failures), (3, 3));
    is_up.store(true, Ordering::Relaxed);
    pass(Duration::from_secs(4)).await;
    assert_eq!(jwks.availability(), Availability::Available);
    assert_eq!(told.sets(), [SET]);
    let state = jwks.state();
    assert_eq!(
        (state.fetches, state.failures, state.last_error),
        (4, 3, None)
    );
    // Ten minutes, or a little less.
    pass(Duration::from_secs(530)).await;
    assert_eq!(server.asked(), 4);
    pass(Duration::from_secs(70)).await;
    assert_eq!(server.asked(), 5);
    assert_eq!(told.sets(), [SET], "the same set is not told again");
    assert!(jwks.state().age.expect("an age") < Duration::from_secs(71));
}

#[tokio::test(start_paused = true)]
async fn an_answer_says_how_long_it_is_good_within_bounds() {
    // What it says, and the seconds in which it is surely, and surely not, fetched again.
    let table = [
        ("max-age=300", 270, 301),
        ("public, Max-Age=300, must-revalidate", 270, 301),
        ("max-age=\"300\"", 270, 301),
        ("max-age=3600, max-age=300", 270, 301),
        ("max-age=1", 54, 61),
        ("max-age=999999", 3240, 3601),
        ("max-age=-1", 540, 601),
        ("no-store", 540, 601),
        ("s-maxage=60", 540, 601),
    ];
    for (says, not_before, by) in table {
        let (server, _jwks, _) = started(move |_| {
            let mut found = response(200, "application/json", SET);
            let value = HeaderValue::from_static(says);
            found.headers_mut().insert("cache-control", value);
            Does::Answer(found)
        });
        pass(Duration::from_secs(not_before)).await;
        assert_eq!(server.asked(), 1, "{says}");
        pass(Duration::from_secs(by - not_before)).await;
        assert_eq!(server.asked(), 2, "{says}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_good_set_is_used_until_it_is_too_old() {
    let is_up = Arc::new(AtomicBool::new(true));
    let up = Arc::clone(&is_up);
    let (server, jwks, told) = started(move |_| {
        if up.load(Ordering::Relaxed) {
            json(SET)
        } else {
            Does::Close
        }
    });
    moment().await;
    is_up.store(false, Ordering::Relaxed);
    pass(Duration::from_secs(24 * 3600 - 2)).await;
    assert_eq!(jwks.availability(), Availability::Available);
    assert!(jwks.state().last_error.is_some());
    pass(Duration::from_secs(3)).await;
    assert_eq!(jwks.availability(), Availability::Unavailable);
    // Once a minute at most.
    assert!(server.asked() < 24 * 60 + 10, "{}", server.asked());
    is_up.store(true, Ordering::Relaxed);
    pass(Duration::from_secs(61)).await;
    assert_eq!(jwks.availability(), Availability::Available);
    assert_eq!(told.sets(), [SET]);
}

#[tokio::test(start_paused = true)]
async fn garbage_never_replaces_a_good_set() {
    let huge = format!(r#"{{"keys":[],"x":"{}"}}"#, "x".repeat(KEY_SET_BYTES_MAX));
    let redirect = || {
        let mut found = response(302, "application/json", SET);
        let there = HeaderValue::from_static("/elsewhere");
        found.headers_mut().insert("location", there);
        Does::Answer(found)
    };
    type Answering = Box<dyn Fn() -> Does + Send + Sync>;
    let table: Vec<(&str, Answering)> = vec![
        ("not JSON", Box::new(|| json("<html>sign in</html>"))),
        (
            "stands twice",
            Box::new(|| json(r#"{"keys":[{"kid":"a","kid":"b"}]}"#)),
        ),
        ("no list of keys", Box::new(|| json(r#"{"keys":{}}"#))),
        ("no list of keys", Box::new(|| json("{}"))),
        ("not a JSON object", Box::new(|| json("[]"))),
        ("longer than 1048576", Box::new(move || json(huge.clone()))),
        ("answered 302", Box::new(redirect)),
        ("answered 500", Box::new(|| status(500))),
        ("answered 204", Box::new(|| status(204))),
        ("broke off", Box::new(|| Does::Close)),
        (
            "broke off",
            Box::new(|| Does::Answer(body_then(200, "application/json", SET, Then::Break))),
        ),
        ("no answer within 5s", Box::new(|| Does::Hang)),
        (
            "no whole answer within 10s",
            Box::new(|| Does::Answer(body_then(200, "application/json", "{", Then::Hang))),
        ),
        (
            "no key of it is usable",
            Box::new(|| json(r#"{"keys":["bad"]}"#)),
        ),
    ];
    for (why, answering) in table {
        let count = AtomicUsize::new(0);
        let (server, jwks, told) = started(move |_| {
            if count.fetch_add(1, Ordering::Relaxed) == 0 {
                json(SET)
            } else {
                answering()
            }
        });
        pass(Duration::from_secs(600 + 11)).await;
        assert_eq!(told.sets(), [SET], "{why}");
        assert_eq!(jwks.availability(), Availability::Available);
        let error = jwks.state().last_error.expect(why);
        assert!(error.contains(why), "{error}");
        assert_eq!(told.faults().first(), Some(&error), "{why}");
        assert!(server.seen().iter().all(|seen| seen.target == "/jwks"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_unknown_keys_are_one_fetch() {
    let rotated = AtomicUsize::new(0);
    let (server, jwks, told) = started(move |_| {
        let number = rotated.fetch_add(1, Ordering::Relaxed);
        let set = format!(r#"{{"keys":[{{"kid":"{number}"}}]}}"#);
        Does::After(
            Duration::from_millis(200),
            response(200, "application/json", set),
        )
    });
    pass(Duration::from_secs(11)).await;
    assert_eq!(server.asked(), 1);
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..1000 {
        asking.spawn(jwks.refresh_now(LONG));
        pass(Duration::from_millis(1)).await;
    }
    let found = asking.join_all().await;
    assert_eq!(server.asked(), 2);
    // Those of the first 200 ms waited for it; the others came after it.
    let newer = found
        .iter()
        .filter(|found| **found == Ok(Refreshed::Newer))
        .count();
    assert!((150..=250).contains(&newer), "{newer}");
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(told.sets().len(), 2);
    pass(Duration::from_secs(11)).await;
    assert_eq!(jwks.refresh_now(LONG).await, Ok(Refreshed::Newer));
    assert_eq!(server.asked(), 3);
    // The set that was asked for is not due a moment later because it was asked for.
    pass(Duration::from_secs(60)).await;
    assert_eq!(server.asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn who_asks_while_a_fetch_runs_waits_for_it_and_no_longer_than_he_says() {
    let (server, jwks, _) = started(move |_| {
        Does::After(
            Duration::from_secs(2),
            response(200, "application/json", SET),
        )
    });
    let early = jwks.refresh_now(Duration::from_secs(1));
    let patient = jwks.refresh_now(Duration::from_secs(3));
    assert!(matches!(early.await, Err(Fault::Late { .. })));
    assert_eq!(patient.await, Ok(Refreshed::Newer));
    assert_eq!(server.asked(), 1);
    // That a set came a moment ago for other reasons does not keep the next question from being asked.
    for _ in 0..3 {
        let same = jwks.refresh_now(LONG).await;
        assert_eq!(same, Ok(Refreshed::NoNewer), "the same set");
        assert_eq!(server.asked(), 2);
    }
    pass(Duration::from_secs(11)).await;
    assert_eq!(jwks.refresh_now(LONG).await, Ok(Refreshed::NoNewer));
    assert_eq!(server.asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn who_joins_a_fetch_that_began_before_the_keys_changed_asks_once_more() {
    let count = AtomicUsize::new(0);
    let is_down = Arc::new(AtomicBool::new(false));
    let down = Arc::clone(&is_down);
    let (server, jwks, told) = started(move |_| {
        let fetch = count.fetch_add(1, Ordering::Relaxed);
        if down.load(Ordering::Relaxed) {
            return Does::After(Duration::from_secs(2), response(503, "text/plain", ""));
        }
        // The second is due, and reads what is there before the keys change.
        let set = [SET, SET, r#"{"keys":[{"kid":"b"}]}"#][fetch.min(2)];
        Does::After(
            Duration::from_secs(2),
            response(200, "application/json", set),
        )
    });
    let begun = async |times| {
        while server.asked() < times {
            pass(Duration::from_millis(100)).await;
        }
    };
    begun(2).await;
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..100 {
        asking.spawn(jwks.refresh_now(LONG));
    }
    let found = asking.join_all().await;
    assert!(found.iter().all(|found| *found == Ok(Refreshed::Newer)));
    assert_eq!(server.asked(), 3);
    assert_eq!(told.sets().len(), 2);
    // However it ends, that is once.
    is_down.store(true, Ordering::Relaxed);
    begun(4).await;
    assert_eq!(jwks.refresh_now(LONG).await, Ok(Refreshed::NoNewer));
    assert_eq!(server.asked(), 5);
}

#[tokio::test(start_paused = true)]
async fn it_is_fetched_no_more_when_nobody_holds_it() {
    let (server, jwks, _) = started(|_| json(SET));
    moment().await;
    let other = jwks.clone();
    drop(jwks);
    pass(Duration::from_secs(601)).await;
    assert_eq!(server.asked(), 2);
    drop(other);
    pass(Duration::from_secs(6010)).await;
    assert_eq!(server.asked(), 2);
}

#[test]
fn where_an_issuer_keeps_its_document() {
    let table = [
        (
            "https://a.test",
            "/.well-known/openid-configuration",
            "/.well-known/oauth-authorization-server",
        ),
        (
            "https://a.test/",
            "/.well-known/openid-configuration",
            "/.well-known/oauth-authorization-server",
        ),
        (
            "https://a.test/x/y",
            "/x/y/.well-known/openid-configuration",
            "/.well-known/oauth-authorization-server/x/y",
        ),
        (
            "https://a.test/x/",
            "/x/.well-known/openid-configuration",
            "/.well-known/oauth-authorization-server/x",
        ),
    ];
    let target = |source: KeySource| match source {
        KeySource::Issuer { document, .. } => document.target().to_owned(),
        KeySource::Url(_) => String::new(),
    };
    for (issuer, openid, oauth) in table {
        assert_eq!(target(KeySource::openid(issuer).expect(issuer)), openid);
        assert_eq!(target(KeySource::oauth(issuer).expect(issuer)), oauth);
    }
    assert_eq!(
        KeySource::openid("https://a.test/?x").err(),
        Some(IssuerFault::Query)
    );
    assert!(KeySource::oauth("a.test").is_err());
}

#[tokio::test(start_paused = true)]
async fn an_issuer_says_where_its_keys_are() {
    let server = Server::start(|seen| match &*seen.target {
        "/idp/.well-known/openid-configuration" => json(format!(
            r#"{{"issuer":"http://{0}/idp","jwks_uri":"http://{0}/keys"}}"#,
            seen.host
        )),
        "/keys" => json(SET),
        _ => status(404),
    })
    .await;
    let told = Told::default();
    let source = KeySource::openid(&server.text("/idp")).expect("an issuer");
    let settings = JwksSettings::new(source);
    let jwks = Jwks::start(&Handle::here(), client(), settings, told.hooks());
    assert_eq!(jwks.refresh_now(LONG).await, Ok(Refreshed::Newer));
    assert_eq!(told.sets(), [SET]);
    let seen = server.seen();
    assert_eq!(
        (&*seen[0].method, seen[0].header("accept")),
        ("GET", "application/json")
    );
    assert_eq!(server.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_document_that_is_not_the_issuers_is_of_no_use() {
    let keys = r#""jwks_uri":"https://a.test/keys""#;
    let table = [
        (
            format!(r#"{{"issuer":"https://a.test/idp/",{keys}}}"#),
            "another issuer",
        ),
        (
            format!(r#"{{"issuer":"https://A.test/idp",{keys}}}"#),
            "another issuer",
        ),
        (
            format!(r#"{{"issuer":"https://b.test/idp",{keys}}}"#),
            "another issuer",
        ),
        (format!(r#"{{"issuer":7,{keys}}}"#), "is no text"),
        (format!("{{{keys}}}"), "another issuer, or none"),
        (
            r#"{"issuer":"https://a.test/idp"}"#.to_owned(),
            "no jwks_uri",
        ),
        (
            r#"{"issuer":"https://a.test/idp","jwks_uri":[]}"#.to_owned(),
            "is no text",
        ),
        (
            r#"{"issuer":"https://a.test/idp","jwks_uri":"/keys"}"#.to_owned(),
            "not a usable URL",
        ),
        (
            r#"{"issuer":"https://a.test/idp","jwks_uri":"http://a.test/keys"}"#.to_owned(),
            "not https",
        ),
    ];
    for (document, why) in table {
        let (server, client) = Server::in_memory(Bounds::default(), move |seen| {
            if seen.target == "/keys" {
                json(SET)
            } else {
                json(document.clone())
            }
        });
        let told = Told::default();
        let source = KeySource::openid("https://a.test/idp").expect("an issuer");
        let settings = JwksSettings::new(source);
        let jwks = Jwks::start(&Handle::here(), client, settings, told.hooks());
        moment().await;
        let error = jwks.state().last_error.expect(why);
        assert!(error.contains(why), "{error}");
        assert_eq!(
            (jwks.availability(), server.asked()),
            (Availability::Pending, 1)
        );
    }
}
