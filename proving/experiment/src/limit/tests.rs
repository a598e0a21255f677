//! Verdicts by example.

use super::{Busy, Limit};

fn verdict(client: f64, upstream: f64, machine: f64) -> Limit {
    Limit::of(Busy {
        client,
        upstream,
        machine,
        cores: 2.0,
        subject: 0.5,
        quota: None,
    })
}

#[test]
fn a_subject_that_used_up_its_quota_was_its_own_limit() {
    let under = |quota| {
        Limit::of(Busy {
            client: 0.1,
            upstream: 0.1,
            machine: 2.0,
            cores: 2.0,
            subject: 0.48,
            quota,
        })
    };
    assert_eq!(under(Some(0.5)), Limit::Quota);
    assert_eq!(under(Some(1.0)), Limit::Machine);
    assert_eq!(under(None), Limit::Machine);
}

#[test]
fn a_full_thread_is_named_before_a_full_machine() {
    assert_eq!(verdict(0.99, 0.5, 2.0), Limit::Client);
    assert_eq!(verdict(0.40, 0.96, 2.0), Limit::Upstream);
}

#[test]
fn a_machine_without_an_idle_core_is_said_to_be_full() {
    assert_eq!(verdict(0.5, 0.45, 1.99), Limit::Machine);
    assert_eq!(verdict(0.5, 0.45, 1.8), Limit::Open);
}

#[test]
fn only_client_and_upstream_are_the_rig() {
    assert!(Limit::Client.is_rig() && Limit::Upstream.is_rig());
    assert!(!Limit::Machine.is_rig() && !Limit::Quota.is_rig() && !Limit::Open.is_rig());
}
