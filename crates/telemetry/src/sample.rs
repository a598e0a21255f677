//! A small snapshot and records of it, for tests and the bench.
//!
//! Not here: anything shipped.

#[path = "../../policy/tests/fixture/mod.rs"]
#[expect(dead_code, reason = "policy's own tests use the rest")]
mod fixture;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use policy::id::{BackendId, EndpointId, RouteId, WorkloadId};
use policy::limit::Kind;
use policy::operation::Operation;
use policy::record::{Count, Outcome, Record, Tokens};
use policy::snapshot::Snapshot;

use self::fixture::{BackendPlan, RoutePlan, rate};

/// A snapshot with these workloads, all on one route to one backend with one endpoint, each with
/// a request and a token limit.
pub(crate) fn snapshot(version: &str, workloads: &[&str]) -> Snapshot {
    let backend = BackendPlan {
        name: "on-prem",
        weights: &[1],
        models: &["gpt-oss-120b"],
    };
    let mut snapshot = fixture::snapshot(&[RoutePlan {
        workloads,
        models: &["asked", "gpt-*"],
        model: Some("override"),
        backends: &[backend],
        limits: &[Kind::Requests, Kind::Tokens].map(|kind| (kind, rate(2, 60))),
        plain: &[],
        unread: &[],
        unlisted: &[],
    }]);
    snapshot.version = version.into();
    snapshot.routes[0].name = "all".into();
    snapshot
}

/// A streamed chat of `workload` that went well: 100 prompt and 21 completion tokens.
pub(crate) fn completed(workload: u32) -> Record {
    Record {
        id: "req-1".into(),
        started_unix_ms: 1_785_585_600_123,
        client: Some(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9))),
        operation: Some(Operation::Chat),
        workload: Some(WorkloadId(workload)),
        route: Some(RouteId(0)),
        endpoint: Some(EndpointId(0)),
        backend: Some(BackendId(0)),
        model_asked: Some("asked".into()),
        model_sent: Some(Arc::from("gpt-oss-120b")),
        streamed: true,
        status: 200,
        outcome: Outcome::Completed,
        attempts: 1,
        tokens: Tokens {
            prompt: Count::Reported(100),
            completion: Count::Reported(21),
            cached: Some(64),
            ..Tokens::default()
        },
        bytes_in: 1024,
        bytes_out: 4096,
        duration: Duration::from_millis(450),
        first_byte: Some(Duration::from_millis(50)),
        own: Some(Duration::from_micros(18)),
        upstream: Some(Duration::from_millis(49)),
        ..Record::default()
    }
}

/// A call of `workload` that its limit on `kind` refused.
pub(crate) fn limited(workload: u32, kind: Kind) -> Record {
    Record {
        endpoint: None,
        backend: None,
        model_sent: None,
        streamed: false,
        status: 429,
        outcome: Outcome::Refused,
        code: "rate_limit_exceeded",
        limited: Some(kind),
        attempts: 0,
        tokens: Tokens {
            prompt: Count::Estimated(90),
            ..Tokens::default()
        },
        bytes_out: 180,
        duration: Duration::from_micros(70),
        first_byte: None,
        own: None,
        upstream: None,
        ..completed(workload)
    }
}

/// A call of nobody known.
pub(crate) fn unknown() -> Record {
    Record {
        workload: None,
        route: None,
        model_asked: None,
        status: 404,
        code: "workload_not_registered",
        limited: None,
        tokens: Tokens::default(),
        ..limited(0, Kind::Requests)
    }
}
