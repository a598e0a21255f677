//! Several endpoints: weights, and one that is left alone.

use super::{bad, good, siblings};
use crate::harness::answer::COMPLETION;
use crate::harness::{Connection, Gate, Step, Upstream};
use crate::upstream_faults::call;

#[test]
fn weights_hold_roughly() {
    let (heavy, light) = (good(), good());
    let gate = Gate::start(&siblings(heavy.address, light.address, 3), &[]);
    let mut connection = Connection::open(gate.data);
    for _ in 0..400 {
        assert_eq!(connection.call(&call("m", false)).status, 200);
    }
    // 300 expected; the standard deviation is 8.7, and 60 is seven of them.
    let got = heavy.seen().len();
    assert!((240..=360).contains(&got), "{got} of 400 at weight 3 to 1");
    assert_eq!(got + light.seen().len(), 400);
}

#[test]
fn an_endpoint_that_keeps_failing_is_left_alone() {
    let (sick, well) = (
        bad(),
        Upstream::start(|_, _| vec![Step::Send(crate::harness::answer::json(200, COMPLETION))]),
    );
    let config = siblings(sick.address, well.address, 1);
    let gate = Gate::start(&format!("workers: 1\n{config}"), &[]);
    let mut connection = Connection::open(gate.data);
    for _ in 0..60 {
        assert_eq!(connection.call(&call("503", false)).status, 200);
    }
    assert_eq!(sick.seen().len(), 5, "five failures in a row, then peace");
    assert_eq!(well.seen().len(), 60);
}
