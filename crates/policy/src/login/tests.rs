//! Which requests are of a login, whose pages a session counts for, and what each leaves behind.

use std::net::IpAddr;

use super::*;
use crate::caller::{Caller, Peer, Proven};
use crate::clock::Mono;
use crate::exchange::{Answer, Ask, Env, Exchange, Question, Verdict};
use crate::fixture::{ONE, RoutePlan, request, snapshot};
use crate::identity::{Proof, Source, Unproven, UserRule, Verifier};
use crate::record::{Outcome, Record};
use crate::revision::Revision;
use crate::shard::Shard;
use crate::snapshot::Snapshot;
use crate::web::{Origins, may_bring_session};

const GATE: &str = "https://ai.example";
const APP: &str = "https://app.example";

/// Nobody runs logins in policy's own tests: what is asked of it is looked at, and answered by the test.
#[derive(Debug)]
struct Unrun(CookieNames);

impl Login for Unrun {
    fn cookies(&self) -> &CookieNames {
        &self.0
    }

    fn begin(&self, _: &[u8]) -> Later<LoginReply> {
        Box::pin(std::future::pending())
    }

    fn finish(&self, _: &[u8], _: Option<&[u8]>, _: IpAddr) -> Later<LoginReply> {
        Box::pin(std::future::pending())
    }

    fn end(&self) -> Later<LoginReply> {
        Box::pin(std::future::pending())
    }
}

/// Takes one value, until second 100.
#[derive(Debug)]
struct TakesGood;

impl Verifier for TakesGood {
    fn takes(&self, _: &[u8]) -> bool {
        true
    }

    fn fingerprint(&self, credential: &[u8]) -> [u8; 32] {
        let mut print = [0; 32];
        for (place, byte) in print.iter_mut().zip(credential) {
            *place = *byte;
        }
        print
    }

    fn verify(&self, credential: &[u8], unix_s: u64) -> Result<Proof, Unproven> {
        if credential != b"good" || unix_s >= 100 {
            return Err(Unproven::Invalid("it has ended".into()));
        }
        let caller = Caller {
            workload: "chat".into(),
            by: Proven::Session,
            ..Caller::default()
        };
        Ok(Proof {
            caller: Arc::new(caller),
            until_unix_s: 100,
        })
    }
}

fn site() -> LoginSite {
    LoginSite {
        login: Arc::new(Unrun(CookieNames::new("tollgate", true))),
        callback: "/login/callback".into(),
        origin: GATE.into(),
    }
}

fn gate() -> Snapshot {
    let mut s = snapshot(&[RoutePlan {
        workloads: &["chat"],
        backends: &[ONE],
        ..RoutePlan::default()
    }]);
    s.identity.sources = vec![Source::Session(Arc::new(TakesGood))];
    s.web.origins = Origins::Only(vec![APP.into()]);
    s.login = Some(site());
    s
}

/// What becomes of a request at this second, and what it leaves so far.
fn asked_at(
    unix_s: u64,
    (method, target): (&str, &str),
    fields: &[(&str, &str)],
) -> (Exchange, Verdict) {
    let head = request(method, target, fields);
    let revision = Revision::first(gate());
    let mut shard = Shard::new(&revision.snapshot, None, 1);
    let env = &mut Env {
        snapshot: &revision.snapshot,
        levels: &revision.levels,
        shard: &mut shard,
        now: Mono(1),
    };
    let address = IpAddr::from([192, 0, 2, 1]);
    let mut exchange = Exchange::begin(&head, address, unix_s * 1000, env);
    let verdict = exchange.read_head(&head, &Peer::from(address), None, false, env);
    (exchange, verdict)
}

fn asked(request: (&str, &str), fields: &[(&str, &str)]) -> (Record, Verdict) {
    let (exchange, verdict) = asked_at(1, request, fields);
    (exchange.record().clone(), verdict)
}

/// In a word.
fn outcome(request: (&str, &str), fields: &[(&str, &str)]) -> String {
    match asked(request, fields) {
        (_, Verdict::Refuse(refusal)) => refusal.reply().code.to_owned(),
        (
            _,
            Verdict::Ask(Ask {
                question: Question::LogIn(_, step),
                ..
            }),
        ) => format!("{step:?}"),
        (_, Verdict::Login(reply)) => format!("to {}", reply.location.unwrap_or_default()),
        (record, Verdict::Read { .. }) => match &record.caller {
            Some(caller) => format!("as {}", caller.workload),
            None => "as nobody".to_owned(),
        },
        (_, other) => format!("{other:?}"),
    }
}

const NAVIGATION: [(&str, &str); 3] = [
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "document"),
];

#[test]
fn three_paths_are_of_a_login_and_no_others() {
    let own = ("sec-fetch-site", "same-origin");
    assert_eq!(outcome(("GET", "/login"), &[]), "Begin");
    assert_eq!(outcome(("GET", "/login?return=/x"), &NAVIGATION), "Begin");
    assert_eq!(
        outcome(("GET", "/login/callback?code=c"), &NAVIGATION),
        "Finish(None, 192.0.2.1)"
    );
    let kept = ("cookie", "a=b; __Host-tollgate-login=s");
    let finish = asked(("GET", "/login/callback"), &[kept]).1;
    let Verdict::Ask(Ask {
        question: Question::LogIn(_, step),
        ..
    }) = finish
    else {
        panic!("{finish:?}");
    };
    let state = Some(Secret::new(b"s".to_vec()));
    let from = IpAddr::from([192, 0, 2, 1]);
    assert_eq!(step, LoginStep::Finish(state, from));
    assert_eq!(outcome(("POST", "/logout"), &[own]), "End");
    for (method, path) in [
        ("POST", "/login"),
        ("HEAD", "/login"),
        ("GET", "/logout"),
        ("POST", "/login/callback"),
    ] {
        assert_eq!(
            outcome((method, path), &[own]),
            "method_not_allowed",
            "{method} {path}"
        );
    }
    for path in ["/login/", "/Login", "/login/x", "/logout/x", "/"] {
        assert_eq!(outcome(("GET", path), &[]), "unknown_url", "{path}");
    }
    let twice = ("cookie", "__Host-tollgate-login=s; __Host-tollgate-login=t");
    let conflict = outcome(("GET", "/login/callback"), &[twice]);
    assert_eq!(conflict, "conflicting_credentials");
}

#[test]
fn other_pages_neither_log_in_nor_out() {
    let image = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "no-cors"),
    ];
    let frame = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "iframe"),
    ];
    for fields in [&image[..], &frame, &[("origin", "https://evil.example")]] {
        for path in ["/login", "/login/callback?code=c", "/v1/models"] {
            assert_eq!(
                outcome(("GET", path), fields),
                "origin_not_allowed",
                "{path}"
            );
        }
    }
    for fields in [
        &[][..],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &NAVIGATION,
    ] {
        let out = outcome(("POST", "/logout"), fields);
        assert_eq!(out, "origin_not_allowed", "{fields:?}");
    }
    for fields in [[("origin", GATE)], [("origin", APP)]] {
        assert_eq!(outcome(("POST", "/logout"), &fields), "End");
    }
}

#[test]
fn a_session_counts_for_the_gates_own_pages_and_those_that_are_named() {
    let good = ("cookie", "__Host-tollgate=good");
    for more in [
        ("origin", GATE),
        ("origin", APP),
        ("sec-fetch-site", "same-origin"),
        ("sec-fetch-site", "none"),
    ] {
        assert_eq!(
            outcome(("GET", "/v1/models"), &[good, more]),
            "as chat",
            "{more:?}"
        );
    }
    let [site, mode, dest] = NAVIGATION;
    assert_eq!(
        outcome(("GET", "/v1/models"), &[good, site, mode, dest]),
        "as chat"
    );
    for more in [
        ("x-y", "z"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "https://ai.example:8443"),
        ("origin", "http://ai.example"),
        ("origin", "null"),
    ] {
        for request in [("GET", "/v1/models"), ("POST", "/v1/chat/completions")] {
            assert_eq!(
                outcome(request, &[good, more]),
                "origin_not_allowed",
                "{more:?}"
            );
        }
    }
    let posted = outcome(("POST", "/v1/chat/completions"), &[good, site, mode, dest]);
    assert_eq!(posted, "origin_not_allowed");
    let twice = [
        good,
        ("sec-fetch-site", "none"),
        ("sec-fetch-site", "cross-site"),
    ];
    assert_eq!(
        outcome(("POST", "/v1/chat/completions"), &twice),
        "origin_not_allowed"
    );
}

#[test]
fn where_every_page_may_ask_no_page_brings_a_session() {
    let mut s = gate();
    s.web.origins = Origins::Any;
    let web = &s.web;
    let may = |origin: &str| {
        let head = request("POST", "/v1/chat/completions", &[("origin", origin)]);
        may_bring_session(&head, web, GATE)
    };
    assert!(!may(APP) && !may("https://evil.example") && may(GATE));
}

#[test]
fn a_session_is_the_one_credential_of_its_request() {
    let own = ("sec-fetch-site", "same-origin");
    let good = ("cookie", "__Host-tollgate=good");
    let request = ("POST", "/v1/chat/completions");
    for more in [
        ("authorization", "Bearer t"),
        ("x-api-key", "k"),
        ("cookie", "__Host-tollgate=good"),
    ] {
        let both = outcome(request, &[good, own, more]);
        assert_eq!(both, "conflicting_credentials", "{more:?}");
    }
    let in_query = ("POST", "/v1/chat/completions?api-key=k");
    assert_eq!(outcome(in_query, &[good, own]), "conflicting_credentials");
    for other in [
        "tollgate=good",
        "__Host-tollgate2=good",
        "__host-tollgate=good",
    ] {
        let nobody = outcome(request, &[("cookie", other), own]);
        assert_eq!(nobody, "credential_missing", "{other}");
    }
    let bearer = [("authorization", "Bearer good"), own];
    assert_eq!(
        outcome(request, &bearer),
        "invalid_api_key",
        "a session is no token"
    );
}

#[test]
fn a_person_without_a_session_is_sent_to_log_in_and_a_program_is_told_so() {
    let to = "to /login?return=/v1/models%3Fa%3Db%2526%26c";
    let page = ("GET", "/v1/models?a=b%26&c");
    let bad = ("cookie", "__Host-tollgate=bad");
    assert_eq!(outcome(page, &NAVIGATION), to);
    assert_eq!(outcome(page, &[("accept", "text/html,*/*;q=0.8")]), to);
    let [site, mode, dest] = NAVIGATION;
    assert_eq!(outcome(page, &[bad, site, mode, dest]), to);
    for fields in [
        &[("accept", "application/json")][..],
        &[],
        &[
            ("accept", "text/html"),
            ("sec-fetch-mode", "cors"),
            ("sec-fetch-site", "none"),
        ],
    ] {
        assert_eq!(outcome(page, fields), "credential_missing", "{fields:?}");
    }
    let token = [("authorization", "Bearer t"), ("accept", "text/html")];
    assert_eq!(outcome(page, &token), "invalid_api_key");
    let post = outcome(("POST", "/v1/chat/completions"), &[("accept", "text/html")]);
    assert_eq!(post, "credential_missing");
    let own = ("sec-fetch-site", "same-origin");
    assert_eq!(outcome(page, &[bad, own]), "invalid_api_key");
    let long = format!("/v1/models?{}", "a".repeat(2000));
    assert_eq!(outcome(("GET", &long), &NAVIGATION), "to /login");
}

#[test]
fn a_session_is_good_until_its_end() {
    let fields = [
        ("cookie", "__Host-tollgate=good"),
        ("sec-fetch-site", "same-origin"),
    ];
    let at = |unix_s| asked_at(unix_s, ("GET", "/v1/models"), &fields).1;
    assert!(matches!(at(99), Verdict::Read { .. }));
    let Verdict::Refuse(refusal) = at(100) else {
        panic!("it has ended");
    };
    assert_eq!(
        (refusal.reply().status, refusal.reply().code),
        (401, "invalid_api_key")
    );
}

fn reply(status: LoginStatus, code: &'static str) -> Box<LoginReply> {
    Box::new(LoginReply {
        status,
        code,
        location: None,
        cookies: Vec::new(),
        page: String::new(),
        reason: Some("why".into()),
        user: Some("ada".into()),
    })
}

#[test]
fn a_login_is_no_call_and_leaves_a_record() {
    for (status, outcome, number) in [
        (LoginStatus::Found, Outcome::Completed, 302),
        (LoginStatus::BadRequest, Outcome::Refused, 400),
        (LoginStatus::Unavailable, Outcome::Refused, 503),
    ] {
        let mut s = gate();
        s.identity.users = vec![UserRule {
            from_call: false,
            is_hidden: true,
        }];
        let revision = Revision::first(s);
        let mut shard = Shard::new(&revision.snapshot, None, 1);
        let env = &mut Env {
            snapshot: &revision.snapshot,
            levels: &revision.levels,
            shard: &mut shard,
            now: Mono(1),
        };
        let head = request("GET", "/login", &[]);
        let address = IpAddr::from([192, 0, 2, 1]);
        let mut exchange = Exchange::begin(&head, address, 1000, env);
        let peer = Peer::from(address);
        let begun = exchange.read_head(&head, &peer, None, false, env);
        assert!(matches!(begun, Verdict::Ask(_)));
        let answer = Answer::LoggedIn(reply(status, "login_done"));
        let told = exchange.answer(answer, &head, &peer, env);
        assert!(matches!(told, Verdict::Login(_)), "{told:?}");
        let finish = exchange.sent_whole(false);
        assert!(matches!(finish, Verdict::Finish));
        let finished = exchange.finish(&mut wire::meter::Meter::default(), false, env);
        assert!(!finished.awaits_count);
        let record = exchange.record();
        assert_eq!((record.status, record.outcome), (number, outcome));
        assert_eq!(
            (record.code, record.reason.as_deref()),
            ("login_done", Some("why"))
        );
        assert_eq!(
            (record.workload, record.route, record.operation),
            (None, None, None)
        );
        assert_eq!(record.tokens, crate::record::Tokens::default());
        assert_eq!(record.user(), None, "users of this source are not recorded");
        assert!(
            record
                .caller
                .as_ref()
                .is_some_and(|caller| caller.user.is_some())
        );
    }
}

#[test]
fn a_login_that_nobody_answers_is_unavailable() {
    let (mut exchange, verdict) = asked_at(1, ("GET", "/login"), &[]);
    assert!(matches!(verdict, Verdict::Ask(_)));
    let revision = Revision::first(gate());
    let mut shard = Shard::new(&revision.snapshot, None, 1);
    let env = &mut Env {
        snapshot: &revision.snapshot,
        levels: &revision.levels,
        shard: &mut shard,
        now: Mono(2),
    };
    let Verdict::Refuse(refusal) = exchange.stalled(env) else {
        panic!("it goes on");
    };
    assert_eq!(refusal.reply().code, "identity_unavailable");
}
