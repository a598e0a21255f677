//! `balancing`: how a backend's endpoints share its calls.
//!
//! Not here: what a policy does (`policy::balancing`).

use std::net::IpAddr;
use std::time::Duration;

use policy::balancing::{Balancer, By};

use crate::decode::At;
use crate::host::{EndpointPicker, EngineMetrics};
use crate::scalar::Name;
use crate::schema::Backend;
use crate::schema::balancing::{self as schema, Balancing, BalancingAt};
use crate::target::Target;

/// How often an engine is asked at most, and at least.
const EVERY_MIN: Duration = Duration::from_millis(10);
const EVERY_MAX: Duration = Duration::from_secs(60);
/// How often it is unless said: a few steps of an engine that is busy.
const EVERY: Duration = Duration::from_millis(200);
/// Where vLLM and SGLang have their metrics.
const PATH: &str = "/metrics";

/// How long a call waits for a picker unless said.
const PICK_WITHIN: Duration = Duration::from_millis(500);

/// What comes of what is written.
#[derive(Default)]
pub(super) struct Balanced {
    pub(super) balancer: Option<Balancer>,
    pub(super) metrics: Option<EngineMetrics>,
    pub(super) picker: Option<EndpointPicker>,
}

impl super::Lowering<'_> {
    /// What chooses among so many endpoints, and where engines are asked for their metrics.
    pub(super) fn balancing(
        &mut self,
        name: &At<Name>,
        written: &Backend,
        endpoints: usize,
    ) -> Balanced {
        let Some(balancing) = written.balancing.get() else {
            return Balanced::default();
        };
        let (by, full) = match balancing {
            Balancing::Short(at) => (at.value.0, None),
            Balancing::Full(full) => (full.policy.get().and_then(|at| at.value.0), Some(full)),
        };
        let has_picker = full.is_some_and(|full| !full.picker.is_absent());
        if !written.url.is_absent() && !has_picker {
            let says = "has one address, among which there is nothing to choose";
            let hint = "list its `endpoints`; a name with several addresses is called in turn";
            self.warn(&name.place.below("balancing"), says, hint);
        }
        let by_load = matches!(by, Some(By::LeastLoad | By::PrefixCache));
        let metrics = full.and_then(|full| self.engine_metrics(full, by_load));
        let metrics = match full {
            None if by_load => Some(EngineMetrics {
                path: PATH.to_owned(),
                every: EVERY,
            }),
            _ => metrics,
        };
        let picker = full.and_then(|full| full.picker.get());
        let picker = picker.and_then(|picker| {
            let at = picker.grpc.get()?;
            self.addresses_of_pool(written);
            Some(EndpointPicker {
                url: super::identity::address(&at.value),
                timeout: self.within(&picker.timeout, PICK_WITHIN),
                fails_open: picker.on_failure.value().is_some_and(|is| is.0),
                ca_pem: self.roots_of(&picker.ca),
                is_anyone: self.is_anyone(picker, at),
                adds_fields: picker.response_headers.value().is_some_and(|is| is.0),
            })
        });
        Balanced {
            balancer: by.map(|by| Balancer::new(by, endpoints)),
            metrics,
            picker,
        }
    }

    /// Whether a picker's certificate is not looked at.
    fn is_anyone(&mut self, picker: &schema::EndpointPicker, at: &At<Target>) -> bool {
        let Some(trust) = picker.trust.get() else {
            return false;
        };
        if !picker.ca.is_absent() || !at.value.tls {
            let says = "is said beside `ca`, or of an address without TLS";
            self.fault(&trust.place, says, "leave one of them out");
        }
        true
    }

    /// Whom a picker can name: it knows addresses, and no names.
    fn addresses_of_pool(&mut self, written: &Backend) {
        let of_list = written.endpoints.items().iter();
        let of_list = of_list.filter_map(|(_, endpoint)| endpoint.as_ref()?.url.get());
        let targets: Vec<_> = written.url.get().into_iter().chain(of_list).collect();
        for target in targets {
            if target.value.host.parse::<IpAddr>().is_err() {
                let hint = "write the IP address of each endpoint, as the picker names them";
                self.refuse(target, "is a name, which no endpoint picker can name", hint);
            }
        }
    }

    fn engine_metrics(&mut self, written: &BalancingAt, by_load: bool) -> Option<EngineMetrics> {
        let mut every = EVERY;
        if let Some(at) = written.every.get() {
            every = at.value.0;
            if !(EVERY_MIN..=EVERY_MAX).contains(&every) {
                self.refuse(
                    at,
                    "is no interval for engines' metrics",
                    "write 10ms to 1m",
                );
            }
        }
        let path = match written.metrics.get() {
            Some(at) => at.value.0.clone()?,
            None if by_load => PATH.to_owned(),
            None => return None,
        };
        if let (false, Some(at)) = (by_load, written.metrics.get()) {
            let hint = "write policy: least_load or prefix_cache, or leave `metrics` out";
            self.warn(
                &at.place,
                "are read by no one: the policy does not look at them",
                hint,
            );
            return None;
        }
        Some(EngineMetrics { path, every })
    }
}
