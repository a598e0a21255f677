//! Faults are read as they are written, and lies touch only usage.

use serde_json::{Value, json};

use super::*;

#[test]
fn a_list_of_faults_is_read() {
    let fault: Fault = "status=503, retry-after=7,stall=3:250, usage=x0.5"
        .parse()
        .unwrap();
    assert_eq!(fault.status, Some(StatusCode::SERVICE_UNAVAILABLE));
    assert_eq!(
        (fault.retry_after_s, fault.stall),
        (Some(7), Some((3, Duration::from_millis(250))))
    );
    assert_eq!(fault.usage, Some(UsageFault::Times(0.5)));
    assert_eq!("".parse(), Ok(Fault::default()));
}

#[test]
fn an_unknown_fault_is_refused() {
    for bad in [
        "status=200",
        "status=x",
        "reset",
        "reset=-1",
        "stall=3",
        "split=0",
        "usage=lots",
        "usage=x-1",
        "stall-head=9999999",
        "flood=1",
    ] {
        assert!(bad.parse::<Fault>().is_err(), "{bad}");
    }
}

#[test]
fn a_usage_fault_changes_only_usage() {
    let nested = json!({"n": 5, "response": {"usage": {"input_tokens": 10, "details": {"cached": 4, "none": null}}}});
    let changed = |usage_fault: UsageFault| {
        usage_fault
            .apply(nested.to_string().as_bytes())
            .map(|v| serde_json::from_slice::<Value>(&v).unwrap())
    };
    let usage = |usage_fault| changed(usage_fault).unwrap()["response"]["usage"].clone();
    assert_eq!(
        usage(UsageFault::Times(0.5)),
        json!({"input_tokens": 5, "details": {"cached": 2, "none": null}})
    );
    assert_eq!(usage(UsageFault::Negative)["input_tokens"], -10);
    assert_eq!(usage(UsageFault::Huge)["input_tokens"], u64::MAX);
    assert_eq!(usage(UsageFault::Null), Value::Null);
    assert!(
        changed(UsageFault::Missing).unwrap()["response"]
            .get("usage")
            .is_none()
    );
    assert_eq!(changed(UsageFault::Zero).unwrap()["n"], 5);
    assert!(UsageFault::Zero.apply(b"{\"usage\":null}").is_none());
}

#[test]
fn the_injector_hits_its_share_of_calls() {
    let request: FaultRequest =
        serde_json::from_value(json!({"fault": "status=429", "share": 0.3})).unwrap();
    let mut injector = FaultInjector::new(&request).unwrap();
    let hit = (0..1_000)
        .filter(|_| injector.next_fault().status.is_some())
        .count();
    assert!((299..=300).contains(&hit), "{hit}");
    let mut over: FaultInjector = FaultInjector::new(
        &serde_json::from_value(json!({"fault": "status=429", "for_s": 0})).unwrap(),
    )
    .unwrap();
    assert_eq!(over.next_fault(), Fault::default());
    assert!(
        FaultInjector::new(
            &serde_json::from_value(json!({"fault": "status=429", "share": 2})).unwrap()
        )
        .is_err()
    );
}
