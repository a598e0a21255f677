//! What is kept, for whom, and what goes first.

use std::cell::Cell;

use super::*;

thread_local! {
    static LATER: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static BEGAN: Instant = Instant::now();
}

fn clock() -> Instant {
    BEGAN.with(|began| *began) + LATER.get()
}

fn store(keep_s: u64, bytes: usize) -> Responses {
    let store = Responses {
        now: clock,
        ..Responses::default()
    };
    store.bound(Some(KeptResponses {
        keep: Duration::from_secs(keep_s),
        bytes,
    }));
    store
}

fn who(user: &str) -> Principal {
    Principal::of(&"app".into(), None, Some(user))
}

fn response(id: &str, previous: Option<&str>, bytes: usize) -> KeptResponse {
    KeptResponse {
        id: id.into(),
        previous: previous.map(Arc::from),
        input: format!("\"{id}\"").into(),
        output: "[]".into(),
        document: vec![b' '; bytes].into(),
    }
}

fn ids(chain: Option<Vec<Arc<KeptResponse>>>) -> Option<Vec<String>> {
    chain.map(|chain| chain.iter().map(|one| one.id.to_string()).collect())
}

#[test]
fn a_response_is_its_principals_alone_and_stands_behind_all_that_it_goes_on_from() {
    let store = store(60, 1 << 20);
    let (ann, bob) = (who("ann"), who("bob"));
    store.keep(&ann, response("a", None, 10));
    store.keep(&ann, response("b", Some("a"), 10));
    store.keep(&bob, response("c", Some("b"), 10));
    assert_eq!(
        ids(store.chain(&ann, "b")),
        Some(vec!["a".into(), "b".into()])
    );
    assert_eq!(ids(store.chain(&bob, "b")), None);
    assert_eq!(
        ids(store.chain(&bob, "c")),
        None,
        "what it names is another's"
    );
    assert!(store.find(&bob, "a").is_none() && !store.remove(&bob, "a"));
    assert!(store.remove(&ann, "a") && !store.remove(&ann, "a"));
    assert_eq!(
        ids(store.chain(&ann, "b")),
        None,
        "the one before it is gone"
    );
    assert!(store.find(&ann, "b").is_some());
}

#[test]
fn what_is_not_used_for_so_long_is_gone_and_what_is_used_stays_with_all_before_it() {
    let store = store(60, 1 << 20);
    let ann = who("ann");
    store.keep(&ann, response("a", None, 10));
    store.keep(&ann, response("b", Some("a"), 10));
    store.keep(&ann, response("other", None, 10));
    LATER.set(Duration::from_secs(59));
    assert!(store.chain(&ann, "b").is_some());
    LATER.set(Duration::from_secs(100));
    assert!(store.find(&ann, "other").is_none());
    assert!(store.chain(&ann, "b").is_some());
    LATER.set(Duration::from_secs(160));
    assert!(store.chain(&ann, "b").is_none());
    assert_eq!(store.locked().bytes, 0);
    LATER.set(Duration::ZERO);
}

#[test]
fn nobody_keeps_more_than_half_and_all_together_no_more_than_the_bound() {
    let store = store(60, 100_000);
    let (ann, bob) = (who("ann"), who("bob"));
    store.keep(&bob, response("of_bob", None, 1000));
    for nth in 0..1000 {
        store.keep(&ann, response(&format!("a{nth}"), None, 4000));
    }
    assert!(store.find(&bob, "of_bob").is_some(), "a crowd of another's");
    assert!(store.find(&ann, "a999").is_some());
    assert!(store.find(&ann, "a900").is_none());
    for nth in 0..100 {
        store.keep(&who(&nth.to_string()), response("x", None, 4000));
    }
    let kept = store.locked();
    assert!(kept.bytes <= 100_000, "{}", kept.bytes);
    assert_eq!(kept.entries.len(), kept.order.len());
    let of_owners: usize = kept.owners.values().map(|owner| owner.bytes).sum();
    assert_eq!(of_owners, kept.bytes);
    drop(kept);
    store.keep(&bob, response("huge", None, 60_000));
    assert!(store.find(&bob, "huge").is_none(), "more than half");
    store.bound(None);
    assert_eq!(store.locked().bytes, 0);
}

#[test]
fn ids_are_the_gates_own_and_never_the_same() {
    let store = Responses::default();
    let (one, other) = (store.fresh_id(), store.fresh_id());
    assert_ne!(one, other);
    assert!(store.is_own(&one) && !store.is_own("resp_68af"));
    assert_eq!(one.len(), PREFIX.len() + 32);
}

#[test]
fn of_a_conversation_its_newest_response_goes_last() {
    let store = store(60, 30_000);
    let ann = who("ann");
    store.keep(&ann, response("a", None, 5_000));
    store.keep(&ann, response("b", Some("a"), 5_000));
    assert!(store.chain(&ann, "b").is_some());
    store.keep(&who("bob"), response("c", None, 9_000));
    store.keep(&who("eve"), response("d", None, 9_000));
    assert!(store.find(&ann, "a").is_none());
    assert!(store.find(&ann, "b").is_some(), "the next call names it");
}
