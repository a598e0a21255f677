//! What policy asks of the world while a call waits: whose a credential is, whether the call may be made, which
//! credential an attempt takes; and a feature to come, another dialect on the second attempt of one call.
//!
//! Not here: who answers.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use policy::authorizer::{Asked, Authorization, Authorizer};
use policy::caller::{Caller, Later, Proven};
use policy::credential::{Credential, Minter, Signable, Signer, UpstreamAuth};
use policy::identity::{HeaderSource, Proof, Source, Unproven, UserRule, Verifier};
use policy::record::{Count, Record};
use policy::revision::Revision;
use policy::secret::Secret;
use policy::snapshot::{AddedMember, Snapshot};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, LocalOptions};
use tokio::time::{Instant, sleep};
use wire::dialect::{Operation, Translated, Translation, Translator};
use wire::head::ResponseHead;

use super::fixture::{BackendPlan, ONE, RoutePlan, snapshot};
use super::ports::{Facts, Recorder};
use super::{clocks, connect};
use crate::clock::Clock;
use crate::connections::Connections;
use crate::memory::{self, Pipe};
use crate::runtime_config::{Ports, RuntimeConfig};
use crate::stream::Stream;
use crate::timers::Timers;
use crate::wheel::{self, TICK};
use crate::worker::Worker;

/// A request that an upstream read, as text, and when.
#[derive(Debug, Clone)]
struct Arrived {
    at: Duration,
    text: String,
}

/// What came of one call.
struct Seen {
    /// The whole response, as text.
    response: String,
    arrived: Vec<Arrived>,
    record: Record,
}

impl Seen {
    fn body(&self) -> &str {
        self.response
            .split_once("\r\n\r\n")
            .map_or("", |(_, body)| body)
    }
}

/// One workload, and two backends that are tried in turn.
fn two_backends() -> Snapshot {
    let backend = |name| BackendPlan { name, ..ONE };
    snapshot(&[RoutePlan {
        workloads: &["app"],
        backends: &[backend("near"), backend("far")],
        ..RoutePlan::default()
    }])
}

fn json(status: u16, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

const BUSY: &str = r#"{"error":{"message":"busy"}}"#;
const CHAT: &str =
    r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}"#;

/// Makes one call, and answers each attempt with the next of `responses`.
fn call(snapshot: Snapshot, body: &str, responses: Vec<String>) -> Seen {
    let facts = Arc::new(Mutex::new(Facts::default()));
    let arrived = Rc::new(RefCell::new(Vec::new()));
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_unpark(wheel::woken)
        .build_local(LocalOptions::default())
        .expect("a runtime");
    let response = runtime.block_on(async {
        let began = Instant::now();
        let ports = Ports {
            sink: Box::new(Recorder(Arc::clone(&facts))),
            ledger: None,
            counting: None,
        };
        let publication = RuntimeConfig {
            revision: Arc::new(Revision::first(snapshot)),
            acceptor: None,
            connectors: std::collections::HashMap::new(),
        };
        let clock = Clock::new(clocks());
        let timers = Timers(tokio::runtime::Handle::current());
        let connections = Connections::new(Arc::default());
        let worker = Worker::new(&publication, ports, (clock, timers), connections, None, 1);
        let responses = Rc::new(RefCell::new(responses.into_iter()));
        let seen = Rc::clone(&arrived);
        memory::dial_with(Rc::new(move |_| {
            let (ours, theirs) = memory::pipe();
            let (responses, seen) = (Rc::clone(&responses), Rc::clone(&seen));
            tokio::task::spawn_local(async move {
                let mut ours = ours;
                let text = request(&mut ours).await;
                let at = began.elapsed();
                seen.borrow_mut().push(Arrived { at, text });
                let response = responses.borrow_mut().next().expect("another response");
                ours.write_all(response.as_bytes()).await.expect("a reader");
            });
            Ok(Stream::Memory(theirs))
        }));
        let ticking = Rc::clone(&worker);
        tokio::task::spawn_local(async move {
            loop {
                sleep(TICK).await;
                ticking.tick();
            }
        });
        let mut client = connect(&worker);
        let length = body.len();
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: gate.test\r\nx-workload-app: app\r\n\
             authorization: Bearer client-key\r\naccept-encoding: gzip\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        client.write_all(request.as_bytes()).await.expect("a gate");
        let mut response = Vec::new();
        client.read_to_end(&mut response).await.expect("a response");
        String::from_utf8(response).expect("text")
    });
    drop(runtime);
    let mut facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(facts.records.len(), 1);
    Seen {
        response,
        arrived: arrived.take(),
        record: facts.records.remove(0),
    }
}

/// One whole request.
async fn request(pipe: &mut Pipe) -> String {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    loop {
        let read = pipe.read(&mut buffer).await.expect("a request");
        assert!(read > 0, "it ended early: {text}");
        text.push_str(std::str::from_utf8(&buffer[..read]).expect("text"));
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let length = line.strip_prefix("content-length: ")?;
                length.parse::<usize>().ok()
            });
            if body.len() >= length.expect("a length") {
                return text;
            }
        }
    }
}

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

/// Knows whose a token is after a while.
#[derive(Debug)]
struct Knows(Duration);

impl Verifier for Knows {
    fn takes(&self, credential: &[u8]) -> bool {
        credential.starts_with(b"client-")
    }

    fn fingerprint(&self, credential: &[u8]) -> Option<[u8; 32]> {
        let mut print = [0; 32];
        print[..credential.len()].copy_from_slice(credential);
        Some(print)
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

/// Makes a credential each time, after a while.
#[derive(Debug)]
struct Mints(AtomicU64);

impl Minter for Mints {
    fn account(&self) -> &str {
        "test"
    }

    fn ready(&self, caller: Option<&Secret>) -> Option<Arc<Credential>> {
        assert!(caller.is_none(), "it asks for no caller's token");
        None
    }

    fn refused(&self, _: u16, _: Option<&Secret>) {}

    fn mint(&self, _: Option<&Secret>) -> Later<Option<Arc<Credential>>> {
        let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        Box::pin(async move {
            sleep(Duration::from_millis(1)).await;
            Some(Arc::new(Credential::Header {
                name: "authorization".to_owned(),
                value: Secret::new(format!("Bearer {count}").into_bytes()),
            }))
        })
    }
}

#[test]
fn each_attempt_has_a_credential_minted_for_it() {
    let mut s = two_backends();
    let minter: Arc<dyn Minter> = Arc::new(Mints(AtomicU64::new(0)));
    for endpoint in &mut s.endpoints {
        endpoint.auth = UpstreamAuth::Minted(Arc::clone(&minter));
    }
    let responses = vec![json(503, BUSY), json(200, CHAT)];
    let seen = call(s, r#"{"model":"m"}"#, responses);
    assert_eq!((seen.record.status, seen.record.attempts), (200, 2));
    let credentials: Vec<_> = seen
        .arrived
        .iter()
        .map(|arrived| {
            let mut lines = arrived.text.lines();
            lines
                .find_map(|line| line.strip_prefix("authorization: "))
                .unwrap_or("none")
        })
        .collect();
    assert_eq!(credentials, ["Bearer 1", "Bearer 2"]);
}

/// Signs with what it sees of a request.
#[derive(Debug)]
struct Shows;

impl Signer for Shows {
    fn covers(&self, name: &[u8]) -> bool {
        name == b"content-type"
    }

    fn sign(&self, request: &Signable<'_>, unix_s: u64) -> Vec<(&'static str, Secret)> {
        let Signable {
            method,
            authority,
            path,
            query,
            headers,
            body,
        } = request;
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| [name.as_slice(), value].concat())
            .collect();
        let text = String::from_utf8([headers.concat(), body.concat()].concat()).expect("text");
        let seen = format!("{method} {authority} {path} {query} {text}");
        let is_now = unix_s > 0;
        vec![
            ("x-seen", Secret::new(seen.into_bytes())),
            ("x-now", Secret::new(is_now.to_string().into_bytes())),
        ]
    }
}

/// Gives the caller's token back, or a signer, and counts refusals.
#[derive(Debug)]
struct Gives {
    for_caller: bool,
    refusals: AtomicU64,
}

impl Minter for Gives {
    fn account(&self) -> &str {
        "test"
    }

    fn is_for_caller(&self) -> bool {
        self.for_caller
    }

    fn ready(&self, caller: Option<&Secret>) -> Option<Arc<Credential>> {
        if !self.for_caller {
            assert!(caller.is_none(), "it asks for no caller's token");
            return Some(Arc::new(Credential::Signer(Box::new(Shows))));
        }
        let token = caller?.expose().to_ascii_uppercase();
        Some(Arc::new(Credential::Header {
            name: "authorization".to_owned(),
            value: Secret::new([b"Bearer ".as_slice(), &token].concat()),
        }))
    }

    fn mint(&self, _: Option<&Secret>) -> Later<Option<Arc<Credential>>> {
        Box::pin(std::future::ready(None))
    }

    fn refused(&self, status: u16, caller: Option<&Secret>) {
        assert_eq!(status, 401);
        assert_eq!(caller.is_some(), self.for_caller);
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }
}

fn gives(for_caller: bool) -> Arc<Gives> {
    Arc::new(Gives {
        for_caller,
        refusals: AtomicU64::new(0),
    })
}

fn line<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn a_signer_sees_each_attempt_as_it_leaves() {
    let mut s = two_backends();
    let minter = gives(false);
    for endpoint in &mut s.endpoints {
        endpoint.auth = UpstreamAuth::Minted(Arc::clone(&minter) as _);
    }
    s.backends[1].model_names.insert("m".into(), "other".into());
    s.backends[1].query = vec![AddedMember {
        name: "a".into(),
        value: "b".into(),
    }];
    let responses = vec![json(503, BUSY), json(200, CHAT)];
    let seen = call(s, r#"{"model":"m"}"#, responses);
    assert_eq!((seen.record.status, seen.record.attempts), (200, 2));
    let expected = [(r#"{"model":"m"}"#, ""), (r#"{"model":"other"}"#, "a=b")];
    for (arrived, (body, query)) in seen.arrived.iter().zip(expected) {
        let text = &arrived.text;
        let host = line(text, "host").expect("a host");
        let signed =
            format!("POST {host} /v1/chat/completions {query} content-typeapplication/json{body}");
        assert!(text.ends_with(body), "{text}");
        assert_eq!(line(text, "x-seen"), Some(&*signed));
        assert_eq!(line(text, "x-now"), Some("true"));
    }
    assert_eq!(minter.refusals.load(Ordering::Relaxed), 0);
}

/// The caller of `client-key`, proven so.
#[derive(Debug)]
struct ProvenBy(Proven);

impl Verifier for ProvenBy {
    fn takes(&self, _: &[u8]) -> bool {
        true
    }

    fn fingerprint(&self, _: &[u8]) -> Option<[u8; 32]> {
        None
    }

    fn verify(&self, _: &[u8], _: u64) -> Result<Proof, Unproven> {
        Ok(Proof {
            caller: Arc::new(Caller {
                workload: "app".into(),
                by: self.0,
                ..Caller::default()
            }),
            until_unix_s: u64::MAX,
        })
    }
}

#[test]
fn a_callers_own_token_is_given_for_a_credential_where_it_was_proven() {
    let asked = |by, exchanges| {
        let (mut s, minter) = (two_backends(), gives(true));
        s.identity.sources = vec![Source::Credential(Arc::new(ProvenBy(by)))];
        s.endpoints[0].auth = UpstreamAuth::Minted(Arc::clone(&minter) as _);
        s.backends[0].exchanges_tokens = exchanges;
        let seen = call(s, r#"{"model":"m"}"#, vec![json(200, CHAT)]);
        assert_eq!(seen.record.status, 200, "{}", seen.response);
        let given = line(&seen.arrived[0].text, "authorization").map(str::to_owned);
        (given, seen.record.attempts)
    };
    let given = (Some("Bearer CLIENT-KEY".to_owned()), 1);
    assert_eq!(asked(Proven::Token, true), given);
    assert_eq!(asked(Proven::Introspection, true), given);
    // Without one the next backend is tried, which has no credential.
    for (by, exchanges) in [(Proven::Key, true), (Proven::Token, false)] {
        assert_eq!(asked(by, exchanges), (None, 2), "{by:?}");
    }
}

#[test]
fn whoever_makes_a_credential_is_told_that_it_was_refused() {
    let (mut s, minter) = (two_backends(), gives(true));
    s.identity.sources = vec![Source::Credential(Arc::new(ProvenBy(Proven::Token)))];
    s.endpoints[0].auth = UpstreamAuth::Minted(Arc::clone(&minter) as _);
    s.backends[0].exchanges_tokens = true;
    let seen = call(s, r#"{"model":"m"}"#, vec![json(401, "{}")]);
    assert_eq!(seen.record.code, "upstream_credential_refused");
    assert_eq!(minter.refusals.load(Ordering::Relaxed), 1);
}

/// A sketch of Anthropic's dialect: one text in, one text out.
#[derive(Debug)]
struct ToMessages;

impl Translator for ToMessages {
    fn operation(&self) -> Operation {
        Operation::Messages
    }

    fn request(&self, asked: Operation, body: &[Bytes]) -> Option<Translated> {
        let text = String::from_utf8(body.concat()).ok()?;
        // Images are what this sketch cannot say.
        if asked != Operation::Chat || text.contains("image_url") {
            return None;
        }
        let body = text.replacen('{', r#"{"max_tokens":64,"#, 1);
        Some(Translated {
            path: "/messages".to_owned(),
            body: vec![Bytes::from(body)],
        })
    }

    fn response(&self, _: Operation, head: &ResponseHead) -> Box<dyn Translation> {
        assert_eq!(head.status, 200);
        Box::new(FromMessages(String::new()))
    }
}

/// Gathers a response, and tells its text as a chat completion does.
#[derive(Debug)]
struct FromMessages(String);

impl Translation for FromMessages {
    fn translate(&mut self, piece: &[u8], is_over: bool, out: &mut Vec<Bytes>) {
        self.0.push_str(std::str::from_utf8(piece).expect("text"));
        if is_over {
            let text = self.0.split(r#""text":""#).nth(1);
            let text = text.and_then(|text| text.split('"').next()).unwrap_or("");
            let message = format!(r#"{{"choices":[{{"message":{{"content":"{text}"}}}}]}}"#);
            out.push(Bytes::from(message));
        }
    }
}

fn in_two_dialects(body: &str) -> Seen {
    let mut s = two_backends();
    s.routes[0].forward_headers = vec![(*b"accept-encoding").into()];
    s.backends[1].translator = Some(Arc::new(ToMessages));
    s.backends[1]
        .model_names
        .insert("m".into(), "claude".into());
    let answer = r#"{"type":"message","content":[{"type":"text","text":"hello"}],"usage":{"input_tokens":7,"output_tokens":4}}"#;
    call(s, body, vec![json(503, BUSY), json(200, answer)])
}

#[test]
fn the_second_attempt_of_a_call_speaks_another_dialect() {
    let seen = in_two_dialects(r#"{"model":"m","messages":[]}"#);
    let [first, second] = &seen.arrived[..] else {
        panic!("{:?}", seen.arrived);
    };
    assert!(
        first
            .text
            .starts_with("POST /v1/chat/completions HTTP/1.1\r\n")
    );
    assert!(first.text.ends_with(r#"{"model":"m","messages":[]}"#));
    assert!(first.text.contains("accept-encoding"));
    assert!(second.text.starts_with("POST /v1/messages HTTP/1.1\r\n"));
    assert!(
        second
            .text
            .ends_with(r#"{"max_tokens":64,"model":"claude","messages":[]}"#)
    );
    assert!(!second.text.contains("accept-encoding"));
    assert!(
        seen.response.starts_with("HTTP/1.1 200 "),
        "{}",
        seen.response
    );
    assert!(
        seen.body()
            .contains(r#"{"choices":[{"message":{"content":"hello"}}]}"#)
    );
    assert!(!seen.body().contains("input_tokens"));
    // Metered as its upstream said it; recorded as its client asked it.
    let tokens = seen.record.tokens;
    assert_eq!(
        (tokens.prompt, tokens.completion),
        (Count::Reported(7), Count::Reported(4))
    );
    assert_eq!(seen.record.operation, Some(Operation::Chat));
    assert_eq!(seen.record.model_sent.as_deref(), Some("m"));
}

#[test]
fn a_call_that_a_dialect_cannot_say_is_the_clients_to_mend() {
    let seen = in_two_dialects(r#"{"model":"m","messages":[{"image_url":""}]}"#);
    assert_eq!(
        (seen.record.status, seen.record.code),
        (400, "call_not_translatable")
    );
    assert_eq!(seen.arrived.len(), 1, "{:?}", seen.arrived);
}
