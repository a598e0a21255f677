//! What a run is configured with: routes of every kind, tight times, one budget that counts everything.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use policy::billing::Billing;
use policy::budget::{Budget, Calendar, Every, Scope, Unit};
use policy::clock::Mono;
use policy::credential::UpstreamAuth;
use policy::disconnect::{OnDisconnect, ReadBounds};
use policy::id::BudgetId;
use policy::limit::Kind;
use policy::revision::Revision;
use policy::secret::Secret;
use policy::snapshot::{Snapshot, Timeouts};

use super::Rng;
use super::fixture::{BackendPlan, ONE, RoutePlan, rate, snapshot};
use crate::runtime_config::RuntimeConfig;

/// Who calls: on a route with a second backend, on one that reads on, on a strict one, on a limited one.
pub(super) const WORKLOADS: [&str; 4] = ["plain", "patient", "strict", "limited"];
/// What opens the upstreams' doors, and nobody else may see.
pub(super) const KEY: &str = "sk-upstream-secret";

/// The configuration, of which each publication is a variant.
#[derive(Default)]
pub(super) struct Scene {
    newest: RefCell<Option<Arc<Revision>>>,
}

impl Scene {
    /// Tokens that the budget holds.
    pub(super) fn held(&self) -> u64 {
        let newest = self.newest.borrow();
        let Some(Revision { snapshot, levels }) = newest.as_deref() else {
            return 0;
        };
        let (budget, spent) = (&snapshot.budgets.list[0], levels.spent(BudgetId(0)));
        let period = budget.calendar.of(super::unix_ms());
        spent.expect("a budget").level(period).held
    }

    /// One more variant, which takes the place of the newest one.
    pub(super) fn publication(&self, rng: &mut Rng) -> RuntimeConfig {
        let next = variant(rng);
        let next = match self.newest.borrow().as_deref() {
            // No limit changes its rate.
            Some(newest) => newest.next(next, Mono(0)),
            None => Revision::first(next),
        };
        let revision = Arc::new(next);
        *self.newest.borrow_mut() = Some(Arc::clone(&revision));
        RuntimeConfig {
            revision,
            acceptor: None,
            acceptors: Vec::new(),
            connectors: HashMap::new(),
        }
    }
}

fn variant(rng: &mut Rng) -> Snapshot {
    let near: &[u32] = if rng.chance(50) { &[3, 1] } else { &[1, 1, 2] };
    let backend = |name, weights| BackendPlan {
        name,
        weights,
        ..ONE
    };
    let (near, far) = (backend("near", near), backend("far", &[1]));
    let both = [near, far];
    let [plain, patient, strict, limited] = [0, 1, 2, 3].map(|nth| &WORKLOADS[nth..=nth]);
    let route = |workloads| RoutePlan {
        workloads,
        backends: &both,
        ..RoutePlan::default()
    };
    let few = [(Kind::Requests, rate(20, 10))];
    let mut s = snapshot(&[
        route(plain),
        route(patient),
        route(strict),
        RoutePlan {
            limits: &few,
            ..route(limited)
        },
    ]);
    s.routes[1].abandon = OnDisconnect::ReadToEnd(ReadBounds {
        tokens: rng.between(1, 200),
        time: Duration::from_secs(2),
    });
    s.routes[2].billing = Billing::Strict;
    for endpoint in &mut s.endpoints {
        endpoint.auth = UpstreamAuth::Header {
            name: "authorization".to_owned(),
            value: Secret::new(format!("Bearer {KEY}").into_bytes()),
        };
    }
    for backend in &mut s.backends {
        backend.timeouts = Timeouts {
            connect: Duration::from_secs(1),
            first_byte: Duration::from_secs(rng.between(1, 4)),
            idle: Duration::from_secs(2),
        };
    }
    s.bounds.write_stall = Duration::from_secs(2);
    s.bounds.body_idle = Duration::from_secs(2);
    s.bounds.keep_alive = Duration::from_secs(5);
    s.bounds.reads_to_end = usize::try_from(rng.between(0, 6)).expect("few");
    s.budgets.list.push(Budget {
        name: "all".into(),
        unit: Unit::Tokens,
        tools: Vec::new(),
        amount: 1 << 50,
        calendar: Calendar {
            every: Every::Day,
            east_min: 0,
        },
        scope: Scope::Everyone,
        whose: policy::subject::Whose::Workload,
        models: Vec::new(),
    });
    s.budgets.of = vec![vec![BudgetId(0)]; s.workloads.len()];
    s.budgets.groups = vec![None; s.workloads.len()];
    s
}
