//! Calls about responses that the gate keeps: whose they are, what goes on from one, and what is told of one.

use std::sync::{Arc, Mutex, PoisonError};

use policy::exchange::Verdict;
use policy::operation::Operation::{InputTokens, KeptResponse, Responses};
use policy::responses::{Principal, ResponseStore};
use policy::snapshot::Snapshot;
use policy::wire::filter;

use crate::fixture::{IDENTITY, RoutePlan, snapshot};
use crate::world::{Call, JSON, ME, World, call, plan};

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
