//! A small snapshot and records of it, for tests and the bench.
//!
//! Not here: anything shipped.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use policy::credential::UpstreamAuth;
use policy::id::{BackendId, EndpointId, LimitId, RouteId, WorkloadId};
use policy::identity::Identity;
use policy::limit::{Kind, Rate};
use policy::model::ModelPattern;
use policy::operation::Operation;
use policy::price::Prices;
use policy::record::{Count, Outcome, Record, Tokens};
use policy::snapshot::{
    Backend, Bounds, Endpoint, Grant, Limit, Origin, Protocol, Route, Snapshot, Timeouts, Workload,
};

/// A snapshot with these workloads, all on one route to one backend with one endpoint, each with
/// a request and a token limit.
pub(crate) fn snapshot(version: &str, workloads: &[&str]) -> Snapshot {
    let limit = |(i, kind): (usize, Kind)| Limit {
        workload: WorkloadId(id(i)),
        route: RouteId(0),
        kind,
        key: format!("{i}/{kind:?}"),
        rate: Rate {
            amount: 2,
            per: Duration::from_secs(60),
            burst: 2,
        },
    };
    let each = 0..workloads.len();
    let limits: Vec<Limit> = each
        .flat_map(|i| [(i, Kind::Requests), (i, Kind::Tokens)])
        .map(limit)
        .collect();
    let workload = |(i, name): (usize, &&str)| Workload {
        name: Arc::from(*name),
        authorizer: None,
        grants: vec![Grant {
            route: RouteId(0),
            limits: vec![LimitId(id(2 * i)), LimitId(id(2 * i + 1))],
        }],
    };
    let ids = workloads.iter().enumerate().map(|(i, name)| {
        let name = name.as_bytes().into();
        (name, WorkloadId(id(i)))
    });
    Snapshot {
        version: version.to_owned(),
        identity: Identity::Header {
            name: "x-workload-app".to_owned(),
            default: None,
        },
        by_name: ids.collect(),
        workloads: workloads.iter().enumerate().map(workload).collect(),
        routes: vec![Route {
            name: Arc::from("all"),
            models: vec![
                ModelPattern::Exact(Arc::from("asked")),
                ModelPattern::Prefix("gpt-".to_owned()),
            ],
            backends: vec![BackendId(0)],
            model: Some(Arc::from("override")),
            billing: policy::billing::Billing::Grouped,
            billed_by: policy::billing::BilledBy::Reported,
            output_max: None,
            retries: policy::retry::Retries::default(),
            abandon: policy::disconnect::OnDisconnect::Cancel,
            is_exclusive: false,
            unread: Vec::new(),
            forward_headers: Vec::new(),
            return_headers: Vec::new(),
        }],
        backends: vec![Backend {
            name: Arc::from("on-prem"),
            endpoints: vec![EndpointId(0)],
            models: vec![Arc::from("gpt-oss-120b")],
            timeouts: Timeouts::default(),
            ..Backend::default()
        }],
        endpoints: vec![Endpoint {
            name: Arc::from("on-prem#1"),
            backend: BackendId(0),
            origin: Origin {
                tls: false,
                host: "127.0.0.1".to_owned(),
                port: 8000,
                protocol: Protocol::Http1,
                ca_file: String::new(),
                proxy: None,
            },
            authority: "127.0.0.1:8000".to_owned(),
            base_path: "/v1".to_owned(),
            weight: 1,
            auth: UpstreamAuth::None,
        }],
        limits,
        prices: Prices::default(),
        budgets: policy::budget::Budgets::default(),
        tokenizers: Vec::new(),
        bounds: Bounds::default(),
        web: policy::web::Web::default(),
        clients: policy::client::Clients::default(),
    }
}

fn id(index: usize) -> u32 {
    u32::try_from(index).expect("samples are small")
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
