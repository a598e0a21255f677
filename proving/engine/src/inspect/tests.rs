//! What is kept of requests, and how much of it.

use super::*;

fn arrive(inspector: &mut Inspector, body: &[u8]) -> u64 {
    let (head, ()) = http::Request::new(()).into_parts();
    inspector.arrived(&head, body)
}

#[test]
fn the_ring_is_bounded_by_number_and_by_bytes() {
    let mut inspector = Inspector::default();
    let body = vec![b'x'; MAX_KEPT_BODY_BYTES];
    for _ in 0..MAX_TOTAL_BODY_BYTES / MAX_KEPT_BODY_BYTES + 3 {
        arrive(&mut inspector, &body);
    }
    assert_eq!(
        inspector.ring.len(),
        MAX_TOTAL_BODY_BYTES / MAX_KEPT_BODY_BYTES
    );
    inspector.clear();
    assert_eq!((inspector.ring.len(), inspector.body_bytes), (0, 0));
    for _ in 0..MAX_REQUESTS + 3 {
        arrive(&mut inspector, b"x");
    }
    assert_eq!(inspector.ring.len(), MAX_REQUESTS);
}

#[test]
fn later_facts_reach_their_request_and_no_other() {
    let mut inspector = Inspector::default();
    let first = arrive(&mut inspector, b"a");
    let second = arrive(&mut inspector, &[0xff]);
    inspector.ended(first, "id", 3, 4, "stop");
    inspector.answered(second, 404);
    assert_eq!(inspector.ring[0].completion_tokens, Some(4));
    assert_eq!(
        (
            inspector.ring[1].status,
            inspector.ring[1].body_hex.as_deref()
        ),
        (Some(404), Some("ff"))
    );
    inspector.clear();
    inspector.answered(first, 200);
    assert!(inspector.ring.is_empty());
}
