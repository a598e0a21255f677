//! Calls about responses that the gate keeps: whose they are, what goes on from one, and what is told of one.

use std::sync::{Arc, Mutex, PoisonError};

use policy::budget::Unit;
use policy::disconnect::OnDisconnect;
use policy::exchange::Verdict;
use policy::operation::Operation::{InputTokens, KeptResponse, Responses};
use policy::responses::{Principal, ResponseStore};
use policy::snapshot::Snapshot;
use policy::subject::Whose;
use policy::tokens::Count;
use policy::wire::filter;
use policy::wire::meter::Meter;

use crate::fixture::{IDENTITY, RoutePlan, snapshot};
use crate::world::{Asked, Call, JSON, ME, World, budget, call, plan};

/// Keeps everything, for good.
#[derive(Debug, Default)]
struct Store(Mutex<Vec<(Principal, Arc<filter::KeptResponse>)>>);

impl ResponseStore for Store {
    fn fresh_id(&self) -> Arc<str> {
        "resp_own_1".into()
    }

    fn is_own(&self, id: &str) -> bool {
        id.starts_with("resp_own_")
    }

    fn keep(&self, of: &Principal, response: filter::KeptResponse) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((of.clone(), Arc::new(response)));
    }

    fn find(&self, of: &Principal, id: &str) -> Option<Arc<filter::KeptResponse>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all
            .iter()
            .find(|(whose, kept)| whose == of && *kept.id == *id);
        found.map(|(_, kept)| Arc::clone(kept))
    }

    fn chain(&self, of: &Principal, id: &str) -> Option<Vec<Arc<filter::KeptResponse>>> {
        self.find(of, id).map(|kept| vec![kept])
    }

    fn remove(&self, of: &Principal, id: &str) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.len();
        all.retain(|(whose, kept)| whose != of || *kept.id != *id);
        all.len() < before
    }
}

/// A store that holds one response of the workload `ide`.
fn store() -> Arc<Store> {
    let store = Arc::new(Store::default());
    let kept = filter::KeptResponse {
        id: "resp_own_1".into(),
        previous: None,
        input: r#""hello""#.into(),
        output: r#"[{"type":"message","role":"assistant","content":"hi"}]"#.into(),
        document: r#"{"id":"resp_own_1"}"#.into(),
    };
    store.keep(&Principal::of(&"ide".into(), None, None), kept);
    store
}

/// Two workloads that share a backend, and what it is kept in.
fn shared(store: &Arc<Store>) -> World {
    let mut s: Snapshot = snapshot(&[RoutePlan {
        workloads: &["ide", "other"],
        ..plan()
    }]);
    s.responses = Some(Arc::clone(store) as _);
    World::new(s)
}

const GOES_ON: &str = r#"{"model":"m","previous_response_id":"resp_own_1","input":"and?"}"#;

#[test]
fn a_call_that_goes_on_from_a_kept_response_says_all_of_it_itself() {
    let mut world = shared(&store());
    let asked = world.ask(&call(Responses, GOES_ON));
    assert_eq!(asked.code(), "", "whoever shares the account");
    assert_eq!(
        asked.body(),
        r#"{"model":"m","previous_response_id":null,"input":[{"type":"message","role":"user","content":"hello"},{"type":"message","role":"assistant","content":"hi"},{"type":"message","role":"user","content":"and?"}]}"#
    );
    // It comes to what is sent.
    assert_eq!(asked.record().bytes_in, asked.body().len() as u64);
    // Its tokens are counted of the same.
    let counted = world.ask(&call(InputTokens, GOES_ON));
    assert_eq!((counted.code(), counted.body()), ("", asked.body()));
}

#[test]
fn nobody_goes_on_from_what_is_anothers_or_gone() {
    let store = store();
    let mut world = shared(&store);
    let fields = [(IDENTITY, "other"), JSON];
    let other = Call::of("POST", "/v1/responses", &fields).with(GOES_ON);
    let refused = world.ask(&other).refusal().reply();
    assert_eq!(
        (refused.status, refused.code, refused.param),
        (
            400,
            "previous_response_not_found",
            Some("previous_response_id")
        )
    );
    let theirs = GOES_ON.replace("resp_own_1", "resp_68af");
    let refused = world.ask(&call(Responses, &theirs)).code();
    assert_eq!(refused, "account_shared", "it is none of the gate's");
    store.remove(&Principal::of(&"ide".into(), None, None), "resp_own_1");
    let gone = world.ask(&call(Responses, GOES_ON)).code();
    assert_eq!(gone, "previous_response_not_found");
}

#[test]
fn a_kept_response_is_told_to_its_caller_and_removed_by_it() {
    const PATH: &str = "/v1/responses/resp_own_1";
    let mut world = shared(&store());
    let others = [(IDENTITY, "other")];
    for method in ["GET", "DELETE"] {
        let asked = world.ask(&Call::of(method, PATH, &others));
        assert_eq!(asked.code(), "response_not_found");
    }
    let asked = world.ask(&Call::of("GET", PATH, &[ME]));
    assert_eq!(asked.record().operation, Some(KeptResponse));
    let Verdict::Kept(document) = &asked.verdict else {
        panic!("{:?}", asked.verdict)
    };
    assert_eq!(&document[..], br#"{"id":"resp_own_1"}"#);
    let removed = world.ask(&Call::of("DELETE", PATH, &[ME]));
    assert!(matches!(removed.verdict, Verdict::Kept(_)));
    let gone = world.ask(&Call::of("GET", PATH, &[ME]));
    assert_eq!(gone.code(), "response_not_found");
    // Without a store it is a call that no route lists.
    let mut without = World::routes(&[plan()]);
    let refused = without.ask(&Call::of("GET", PATH, &[ME]));
    assert_eq!(refused.code(), "operation_not_allowed");
}

const NAMES: &str =
    r#"{"model":"m","stream":true,"previous_response_id":"resp_theirs","input":"and?"}"#;
const STREAM: &str = "text/event-stream";
/// How a stream begins whose response has this id, and what it says.
const BEGUN: &str = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_theirs\"}}\n\nevent: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"all of it\"}\n\n";
const COMPLETED: &str = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"resp_theirs\",\"usage\":{\"input_tokens\":100000,\"output_tokens\":40,\"total_tokens\":100040}}}\n\n";

/// A call whose stream has begun, read by this meter; its client leaves then.
fn left(world: &mut World) -> (Asked, Meter) {
    let mut asked = world.ask(&call(Responses, NAMES));
    assert_eq!(asked.code(), "");
    let _plan = world.attempt(&mut asked);
    asked.exchange.sent(true);
    world.response(&mut asked, 200, STREAM);
    let mut meter = Meter::new(asked.relay().form);
    meter.observe(BEGUN.as_bytes());
    let events = meter.events();
    world.tell(&mut asked, |exchange, env| {
        exchange.disconnected(events, 0, env)
    });
    (asked, meter)
}

#[test]
fn an_answer_whose_prompt_is_with_its_upstream_is_read_to_its_end() {
    let said = |s: &mut Snapshot, abandon| s.routes[0].abandon = abandon;
    for (abandon, is_read) in [(OnDisconnect::Unsaid, true), (OnDisconnect::Cancel, false)] {
        let mut s = snapshot(&[plan()]);
        said(&mut s, abandon);
        let mut world = World::new(s);
        let (mut asked, mut meter) = left(&mut world);
        let reads = matches!(asked.verdict, Verdict::ReadToEnd { .. });
        assert_eq!(reads, is_read, "{abandon:?}");
        if !reads {
            continue;
        }
        meter.observe(COMPLETED.as_bytes());
        let events = meter.events();
        world.tell(&mut asked, |exchange, env| {
            exchange.read_on(COMPLETED.len() as u64, events, true, env)
        });
        asked.exchange.finish(&mut meter, false, &mut world.env());
        let tokens = &asked.record().tokens;
        assert_eq!(tokens.prompt, Count::Reported(100_000));
        assert_eq!(tokens.completion, Count::Reported(40));
        assert!(
            !tokens.doubtful,
            "nobody here has seen its prompt: {tokens:?}"
        );
    }
    // What says its prompt itself is cancelled, as ever.
    let mut world = World::new(snapshot(&[plan()]));
    let whole = NAMES.replace("\"resp_theirs\"", "null");
    let mut asked = world.ask(&call(Responses, &whole));
    let _plan = world.attempt(&mut asked);
    asked.exchange.sent(true);
    world.tell(&mut asked, |exchange, env| {
        exchange.disconnected(None, 0, env)
    });
    assert!(matches!(asked.verdict, Verdict::Abandon));
}

#[test]
fn a_call_that_names_a_response_holds_and_is_charged_what_that_came_to() {
    let written = || {
        let mut s = snapshot(&[plan()]);
        s.routes[0].abandon = OnDisconnect::Cancel;
        budget(&mut s, Unit::Tokens, 1_000_000, Whose::Workload);
        s
    };
    let mut world = World::new(written());
    // Nobody knows it yet.
    let first = world.ask(&call(Responses, NAMES));
    assert!(first.estimate().reserved < 1_000);
    world.release(first);
    let mut before = world.ask(&call(
        Responses,
        r#"{"model":"m","stream":true,"input":"a"}"#,
    ));
    let _plan = world.attempt(&mut before);
    before.exchange.sent(true);
    world.response(&mut before, 200, STREAM);
    let mut meter = Meter::new(before.relay().form);
    meter.observe(BEGUN.as_bytes());
    meter.observe(COMPLETED.as_bytes());
    world.end(&mut before, &mut meter, false);
    assert_eq!(world.held(0, None), 100_040);
    // What it came to is kept where the configuration changes.
    world.reload(written());
    let asked = world.ask(&call(Responses, NAMES));
    assert!(asked.estimate().reserved > 100_040);
    world.release(asked);
    let (mut asked, mut meter) = left(&mut world);
    assert!(matches!(asked.verdict, Verdict::Abandon));
    asked.exchange.finish(&mut meter, false, &mut world.env());
    let Count::Estimated(prompt) = asked.record().tokens.prompt else {
        panic!("{:?}", asked.record().tokens)
    };
    assert!((100_040..100_100).contains(&prompt), "{prompt}");
    assert!(world.held(0, None) > 200_080);
}
