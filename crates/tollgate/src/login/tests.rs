//! What is kept of logins over a reload, and what is wrong with them as written.

use super::*;

fn written() -> LoginClient {
    LoginClient {
        // Nobody listens there, and nobody is asked.
        issuer: "http://127.0.0.1:9".to_owned(),
        client_id: "gate".to_owned(),
        oauth: None,
        client_secret: None,
        is_posted: false,
        ca_pem: None,
        scopes: Vec::new(),
        redirect_url: "https://ai.example/login/callback".to_owned(),
        session: Duration::from_secs(3600),
        session_key: None,
        previous_session_key: None,
        keep_claims: Vec::new(),
    }
}

fn mapping() -> Mapping {
    Mapping {
        workload: identity::claims::Workload::Fixed("chat".into()),
        user: "sub".to_owned(),
        tags: Vec::new(),
    }
}

fn session(logins: &Logins) -> String {
    let claims = serde_json::json!({ "iss": "http://127.0.0.1:9", "sub": "ada" });
    let claims = claims.as_object().expect("claims");
    let session = Session::begin(claims, &[], now_s(), 3600);
    let sealed = session.seal(&logins.0.sessions, drawn());
    sealed.expect("it fits")
}

#[test]
fn a_reload_ends_no_session() {
    let services = Services::default();
    let logins = |written: &LoginClient| Logins::of(&services, Listener::Data, written);
    let first = logins(&written()).expect("logins");
    let brought = session(&first);
    let again = logins(&written()).expect("logins");
    assert!(again.who(brought.as_bytes()).is_ok(), "nothing changed");
    let mut other = written();
    other.scopes = vec!["email".to_owned()];
    let changed = logins(&other).expect("logins");
    let who = changed.who(brought.as_bytes()).expect("a session");
    assert_eq!(who.subject(), "ada");
    let mut anothers = written();
    anothers.client_id = "other".to_owned();
    let anothers = logins(&anothers).expect("logins");
    assert!(
        anothers.who(brought.as_bytes()).is_err(),
        "another client's"
    );
    let restarted = Services::default();
    let restarted = Logins::of(&restarted, Listener::Data, &written()).expect("logins");
    assert!(restarted.who(brought.as_bytes()).is_err(), "another key");
}

#[test]
fn gates_with_one_key_share_sessions() {
    let mut written = written();
    written.session_key = Some(Secret::new(vec![b'k'; 32]));
    let (one, other) = (Services::default(), Services::default());
    let one = Logins::of(&one, Listener::Data, &written).expect("logins");
    let other = Logins::of(&other, Listener::Data, &written).expect("logins");
    assert!(other.who(session(&one).as_bytes()).is_ok());
}

#[test]
fn what_is_wrong_is_named() {
    let faults = |change: fn(&mut LoginClient)| {
        let mut written = written();
        change(&mut written);
        let checked = checked(Listener::Data, &written, mapping()).expect_err("a fault");
        let made = Logins::of(&Services::default(), Listener::Data, &written);
        assert_eq!(made.err().as_ref(), Some(&checked));
        checked
    };
    assert!(faults(|l| l.issuer = "no url".to_owned()).starts_with("issuer: "));
    assert!(faults(|l| l.ca_pem = Some(b"no pem".to_vec())).starts_with("ca: "));
    let short = faults(|l| l.session_key = Some(Secret::new(vec![1; 31])));
    assert_eq!(
        short,
        "session_key: it has 31 bytes, and needs 32 or more; make one with: openssl rand -hex 32"
    );
    assert!(checked(Listener::Data, &written(), mapping()).is_ok());
}

#[test]
fn cookies_are_of_the_host_where_it_is_reached_over_tls() {
    let secure = names(Listener::Data, &written());
    assert_eq!(
        (&*secure.session, &*secure.state, secure.is_secure),
        ("__Host-tollgate", "__Host-tollgate-login", true)
    );
    let mut clear = written();
    clear.redirect_url = "http://127.0.0.1:8080/login/callback".to_owned();
    let clear = names(Listener::Data, &clear);
    assert_eq!(
        (&*clear.session, &*clear.state, clear.is_secure),
        ("tollgate", "tollgate-login", false)
    );
}
