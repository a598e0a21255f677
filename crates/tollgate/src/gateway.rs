//! What the admin endpoint shows of the running gate.
//!
//! Not here: paths and who may ask (`admin`), the metrics (`metrics`), what limits and budgets are (`policy`).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use admin::{Budget, Changed, Config, Gateway, Health, KeyFault, KeyFile, Limit, People};
use identity::keys::Entry;
use policy::admin::Access;
use policy::budget::{self, Calendar, Scope, Unit};
use policy::caller::Caller;
use policy::clock::Mono;
use policy::id::LimitId;
use policy::revision::Revision;
use policy::secret::Secret;
use policy::snapshot;
use policy::subject::Whose;

use crate::budget::now_ms;
use crate::calibration::said::as_json;
use crate::identity::KeysState;
use crate::keyring::{self, Change, Keyring, Rotation, Wanted};
use crate::metrics;
use crate::running::Running;
use crate::services::now_s;
use crate::tool_catalogue;

impl Gateway for Running {
    fn access(&self) -> Arc<Access> {
        self.current().access
    }

    fn people(&self) -> Option<Arc<dyn People>> {
        self.current().people
    }

    fn health(&self) -> Health {
        Health {
            is_alive: self.gate.is_alive(),
            is_ready: self.is_ready(),
            is_draining: self.draining.load(Ordering::SeqCst),
            ledger_available: self.ledger_available(),
        }
    }

    fn config(&self) -> Config {
        let current = self.current();
        Config {
            version: current.revision.snapshot.version.to_string(),
            document: current.document,
            key_files: current.key_files.iter().map(key_file).collect(),
        }
    }

    fn limits(&self) -> Vec<Limit> {
        limits(&self.current().revision, self.now())
    }

    fn budgets(&self) -> Vec<Budget> {
        budgets(&self.current().revision, now_ms())
    }

    fn ledger(&self) -> Option<serde_json::Value> {
        self.outlets.ledger.as_ref().map(metrics::ledger::state)
    }

    fn tokens(&self) -> Option<serde_json::Value> {
        let calibrator = self.outlets.calibrator.as_ref();
        calibrator.map(|calibrator| as_json(&calibrator.known()))
    }

    fn mcp(&self) -> Option<serde_json::Value> {
        tool_catalogue::of(&self.current().revision.snapshot)
    }

    async fn metrics(&self) -> String {
        metrics::merged(self).await.render(&metrics::of(self))
    }

    fn reload(&self) -> Result<String, String> {
        self.reload_now()
    }

    fn drain(&self) {
        self.stop.notify_one();
    }

    type NewKey = Wanted;
    type Rotation = Rotation;
    type KeyChange = Change;

    fn keys(&self, after: Option<&str>, most: usize) -> Result<Vec<serde_json::Value>, KeyFault> {
        let mut file = keys_of(self)?.read()?;
        let first = match after {
            None => 0,
            Some(id) => {
                let mut ids = file.entries.iter().map(|entry| &*entry.id);
                let at = ids.position(|known| known == id);
                at.ok_or_else(|| KeyFault::Wrong(format!("after: there is no key {id:?}")))? + 1
            }
        };
        let now = now_s();
        let page = file.entries.drain(first..).take(most);
        Ok(page.map(|entry| keyring::row(&entry, now)).collect())
    }

    fn key(&self, id: &str) -> Result<serde_json::Value, KeyFault> {
        let mut file = keys_of(self)?.read()?;
        let entry = keyring::of_id(&mut file, id)?;
        let mut row = keyring::row(entry, now_s());
        let standing = standing(
            &self.current().revision,
            &Arc::new(entry.caller()),
            now_ms(),
        );
        if let Some(members) = row.as_object_mut() {
            members.insert("standing".to_owned(), standing.into());
        }
        Ok(row)
    }

    fn create_key(&self, wanted: Wanted) -> Result<Changed, KeyFault> {
        let keys = keys_of(self)?;
        let revision = self.current().revision;
        let (key, entry) = keys.create(wanted, now_s(), &revision.snapshot)?;
        Ok(changed(self, &entry, Some(key.key)))
    }

    fn change_key(&self, id: &str, change: Change) -> Result<Changed, KeyFault> {
        let keys = keys_of(self)?;
        let revision = self.current().revision;
        let (_, entry) = keys.change(id, change, now_s(), &revision.snapshot)?;
        Ok(changed(self, &entry, None))
    }

    fn rotate_key(&self, id: &str, how: Rotation) -> Result<Changed, KeyFault> {
        let (key, entry) = keys_of(self)?.rotate(id, how, now_s())?;
        Ok(changed(self, &entry, Some(key.key)))
    }

    fn revoke_key(&self, id: &str) -> Result<Changed, KeyFault> {
        let entry = keys_of(self)?.revoke(id, now_s())?;
        Ok(changed(self, &entry, None))
    }
}

fn keys_of(running: &Running) -> Result<Arc<Keyring>, KeyFault> {
    running.current().keyring.ok_or(KeyFault::NotConfigured)
}

/// Has the gate take a change to its keys.
fn changed(running: &Running, entry: &Entry, secret: Option<Secret>) -> Changed {
    running.catch_up();
    Changed {
        key: keyring::row(entry, now_s()),
        secret,
        is_in_force: is_in_force(running),
    }
}

/// Whether the gate goes by the files of keys as they are, and all of them are well.
fn is_in_force(running: &Running) -> bool {
    let current = running.current();
    let mut files = current.key_files.iter();
    running.are_keys_taken.load(Ordering::SeqCst) && files.all(|file| file.version.is_some())
}

fn key_file(state: &KeysState) -> KeyFile {
    KeyFile {
        source: state.source.clone(),
        keys: state.keys,
        version: state.version.clone(),
    }
}

fn limits(Revision { snapshot, levels }: &Revision, now: Mono) -> Vec<Limit> {
    let of = |(id, limit): (LimitId, &snapshot::Limit)| {
        let (rate, level) = (limit.rate, levels.level(id, now));
        Some(Limit {
            workload: snapshot.workload(limit.workload)?.name.to_string(),
            route: snapshot.route(limit.route)?.name.to_string(),
            unit: limit.kind.as_str(),
            amount: rate.amount,
            window_seconds: rate.per.as_secs_f64(),
            burst: rate.burst,
            window: limit.window.as_str(),
            remaining: level.map(|level| level.remaining),
            full_in_seconds: level.map(|level| level.reset.as_secs_f64()),
            r#for: limit.whose.as_str(),
        })
    };
    let limits = (0..).map(LimitId).zip(&snapshot.limits);
    limits.filter_map(of).collect()
}

fn budgets(Revision { snapshot, levels }: &Revision, now: u64) -> Vec<Budget> {
    let budgets = snapshot.budgets.iter();
    let of = budgets.filter_map(|(id, budget)| Some(of_budget(budget, levels.spent(id)?, now)));
    of.collect()
}

/// Where the budgets stand that a key has to itself or for its user: its own, which have no name, and those of the
/// configuration.
fn standing(
    Revision { snapshot, levels }: &Revision,
    caller: &Arc<Caller>,
    now: u64,
) -> Vec<serde_json::Value> {
    let Some(workload) = snapshot.workload_named(caller.workload.as_bytes()) else {
        return Vec::new();
    };
    let who = snapshot.who(workload, Some(caller));
    let row = |name: Option<&str>, unit: &Unit, amount: u64, calendar: Calendar, held: u64| {
        let (starts, ends) = calendar.span(calendar.of(now));
        let (unit, currency) = unit_of(unit);
        serde_json::json!({
            "name": name, "unit": unit, "currency": currency, "amount": amount, "held": held,
            "remaining": amount.saturating_sub(held), "period": calendar.every.as_str(),
            "period_starts_unix_ms": starts, "period_ends_unix_ms": ends,
        })
    };
    let own = caller.budgets.iter().map(|budget| {
        let held = levels.own_held(budget, budget.calendar.of(now), &who);
        row(
            None,
            &budget.unit,
            budget.amount,
            budget.calendar,
            held.unwrap_or(0),
        )
    });
    let of = [&snapshot.budgets.of, &snapshot.budgets.of_tools];
    let ids = of.into_iter().filter_map(|of| of.get(workload.index()));
    let ids = ids.flatten();
    let apart = ids.filter_map(|id| {
        let budget = snapshot.budgets.get(*id)?;
        let is_its = match budget.whose {
            Whose::Workload => false,
            Whose::Key => true,
            Whose::User => caller.user.is_some(),
        };
        let calendar = budget.calendar;
        let held = || levels.held(*id, budget, calendar.of(now), &who);
        is_its.then(|| {
            row(
                Some(&budget.name),
                &budget.unit,
                budget.amount,
                calendar,
                held(),
            )
        })
    });
    own.chain(apart).collect()
}

/// A unit as the API names it, and its currency.
fn unit_of(unit: &Unit) -> (&'static str, Option<String>) {
    match unit {
        Unit::Tokens => ("tokens", None),
        Unit::Calls => ("calls", None),
        Unit::Money(currency) => ("nano_units", Some(currency.to_string())),
    }
}

fn of_budget(budget: &budget::Budget, spent: &budget::Spent, now: u64) -> Budget {
    let calendar = budget.calendar;
    let period = calendar.of(now);
    let level = spent.level(period);
    let is_shared = budget.whose == Whose::Workload;
    let (starts, ends) = calendar.span(period);
    let (unit, currency) = unit_of(&budget.unit);
    Budget {
        name: budget.name.to_string(),
        unit,
        currency,
        amount: budget.amount,
        held: is_shared.then_some(level.held),
        remaining: is_shared.then(|| budget.amount.saturating_sub(level.held)),
        refused_calls: level.refused,
        period: calendar.every.as_str(),
        period_starts_unix_ms: starts,
        period_ends_unix_ms: ends,
        workloads: match &budget.scope {
            Scope::Everyone => None,
            Scope::Workloads(names) => Some(names.iter().map(ToString::to_string).collect()),
        },
        r#for: (!is_shared).then(|| budget.whose.as_str()),
    }
}

#[cfg(test)]
mod tests;
