//! The keys of a configuration: made, listed, changed, rotated and revoked. `tollgate keys` and the admin API both do it here.
//!
//! Invariant: what is not checked here goes into no file; the secret of a key is kept nowhere.
//! Not here: how the file is changed (`store`), what a key is (`identity::keys`).

mod change;
mod priced;
mod store;
mod time;

use std::collections::BTreeMap;
use std::path::PathBuf;

use admin::KeyFault;
use config::{CredentialKind, Loaded};
use identity::keys::{Entry, KeyFile, NewKey, Previous, WrittenBudget, WrittenLimit};
use ledger::date;
use policy::model::ModelPattern;
use policy::snapshot::Snapshot;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::Value;

pub(crate) use self::change::Change;
pub(crate) use self::store::Absent;
pub(crate) use self::time::Time;

/// Where keys are, and what they may be for.
#[derive(Debug)]
pub(crate) struct Keyring {
    file: PathBuf,
    /// Workloads that there are.
    workloads: Vec<String>,
    has_ledger: bool,
    /// The longest period of a budget, days, for which the ledger keeps rows.
    period_days_max: u64,
    absent: Absent,
}

/// What a new key is to be.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// The workload that brings it.
    pub(crate) workload: String,
    /// The person or service that it is given to.
    #[serde(default)]
    pub(crate) user: Option<String>,
    /// A name for people.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// What else is recorded of each of its calls.
    #[serde(default)]
    pub(crate) tags: BTreeMap<String, String>,
    /// Models that it may ask for; none given: all of its workload's.
    #[serde(default, deserialize_with = "some")]
    pub(crate) models: Vec<String>,
    /// Limits of its own.
    #[serde(default)]
    pub(crate) limits: Vec<WrittenLimit>,
    /// Budgets of its own.
    #[serde(default)]
    pub(crate) budgets: Vec<WrittenBudget>,
    /// How long it is good.
    #[serde(default)]
    pub(crate) expires: Option<Time>,
}

/// A list that is written has something in it: of no models at all, it would be taken for all of them.
fn some<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let models = Vec::<String>::deserialize(from)?;
    if models.is_empty() {
        return Err(D::Error::custom(
            "`models` is empty: name at least one, or leave it out for all of the workload's",
        ));
    }
    Ok(models)
}

/// How a key is rotated.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rotation {
    /// How long the old secret is good yet. Default 24h.
    #[serde(default)]
    pub(crate) overlap: Option<Time>,
    /// A secret that is good yet from the last rotation ends at once.
    #[serde(default)]
    pub(crate) force: bool,
}

impl Keyring {
    /// That of the first source with keys, where there is one. `absent`: what it means that its file is not there.
    pub(crate) fn of(loaded: &Loaded, absent: Absent) -> Option<Self> {
        let mut sources = loaded.host.credentials.iter();
        let file = sources.find_map(|source| {
            let CredentialKind::Keys(file) = &source.kind else {
                return None;
            };
            Some(file.clone())
        })?;
        let workloads = loaded.snapshot.workloads.iter();
        Some(Self {
            file,
            has_ledger: loaded.host.ledger.is_some(),
            period_days_max: loaded
                .host
                .ledger
                .as_ref()
                .map_or(0, config::Ledger::period_days_max),
            absent,
            workloads: workloads.map(|w| w.name.to_string()).collect(),
        })
    }

    /// Of a file alone, to list, rotate and revoke: its keys end whatever is wrong with the rest of a configuration.
    pub(crate) fn bare(file: PathBuf, absent: Absent) -> Self {
        Self {
            file,
            workloads: Vec::new(),
            has_ledger: false,
            period_days_max: 0,
            absent,
        }
    }

    /// All keys.
    pub(crate) fn read(&self) -> Result<KeyFile, KeyFault> {
        store::read(&self.file, self.absent)
    }

    /// Makes a key for a gate that runs by `s`, `now` in seconds since the Unix epoch, as everywhere here.
    pub(crate) fn create(
        &self,
        wanted: Wanted,
        now: u64,
        s: &Snapshot,
    ) -> Result<(NewKey, Entry), KeyFault> {
        self.check(&wanted)?;
        let key = NewKey::make().map_err(|fault| KeyFault::Unavailable(fault.to_string()))?;
        let entry = Entry {
            id: key.id.clone(),
            sha256: key.hash.to_string(),
            workload: wanted.workload,
            created_unix_s: now,
            name: wanted.name,
            user: wanted.user,
            tags: wanted.tags,
            models: wanted.models,
            limits: wanted.limits,
            budgets: wanted.budgets,
            expires_unix_s: wanted.expires.map(|expires| expires.after(now)),
            revoked_unix_s: None,
            previous: None,
        };
        let wrong = |says: &str| KeyFault::Wrong(says.to_owned());
        entry
            .check()
            .and_then(|()| entry.check_new())
            .map_err(wrong)?;
        priced::check(&entry, s).map_err(KeyFault::Wrong)?;
        let entry = store::change(&self.file, self.absent, |file| {
            if file.entry(&entry.id).is_some() {
                return Err(wrong("an id came twice by chance; try again"));
            }
            file.entries.push(entry.clone());
            Ok(entry)
        })?;
        Ok((key, entry))
    }

    fn check(&self, wanted: &Wanted) -> Result<(), KeyFault> {
        if !self.workloads.contains(&wanted.workload) {
            let known = self.workloads.join(", ");
            return Err(KeyFault::Wrong(format!(
                "no route is for the workload {:?}; there are {known}",
                wanted.workload
            )));
        }
        check_end(wanted.expires)?;
        self.check_budgets(&wanted.budgets)
    }

    /// Whether budgets can be kept to.
    fn check_budgets(&self, budgets: &[WrittenBudget]) -> Result<(), KeyFault> {
        if !budgets.is_empty() && !self.has_ledger {
            let says = "a budget needs a ledger, from which it is read back after a restart; write ledger: { path: usage.db }";
            return Err(KeyFault::Wrong(says.to_owned()));
        }
        let budgets = budgets.iter().filter_map(WrittenBudget::lowered);
        let days = budgets.map(|budget| budget.calendar.every.days_max());
        let longest = days.max().unwrap_or(0);
        if longest > self.period_days_max {
            let says = format!(
                "rows of the ledger do not last for this budget's period, which would begin anew at a restart; write ledger.retention: {}d or more",
                longest + 1
            );
            return Err(KeyFault::Wrong(says));
        }
        Ok(())
    }

    /// Changes what a key may, and gives it as it was and as it is. What it has spent stays spent.
    pub(crate) fn change(
        &self,
        id: &str,
        change: Change,
        now: u64,
        s: &Snapshot,
    ) -> Result<(Entry, Entry), KeyFault> {
        if change.is_nothing() {
            let says = "nothing is to change; say a name, tags, models, limits, budgets or an end";
            return Err(KeyFault::Wrong(says.to_owned()));
        }
        check_end(change.expires.flatten())?;
        if let Some(Some(budgets)) = &change.budgets {
            self.check_budgets(budgets)?;
        }
        store::change(&self.file, self.absent, |file| {
            let entry = of_id(file, id)?;
            is_good(entry, now)?;
            let next = change.applied(entry, now)?;
            if next.budgets != entry.budgets || next.models != entry.models {
                priced::check(&next, s).map_err(KeyFault::Wrong)?;
            }
            Ok((std::mem::replace(entry, next.clone()), next))
        })
    }

    /// Gives a key another secret.
    pub(crate) fn rotate(
        &self,
        id: &str,
        how: Rotation,
        now: u64,
    ) -> Result<(NewKey, Entry), KeyFault> {
        let key = NewKey::of_id(id.to_owned());
        let key = key.map_err(|fault| KeyFault::Unavailable(fault.to_string()))?;
        let overlap = how.overlap.unwrap_or(Time::OVERLAP).seconds();
        let entry = store::change(&self.file, self.absent, |file| {
            let entry = of_id(file, id)?;
            is_good(entry, now)?;
            // Who gives no overlap wants every older one to end.
            let older = entry.previous.as_ref().filter(|old| now < old.until_unix_s);
            if let Some(older) = older.filter(|_| overlap > 0 && !how.force) {
                return Err(KeyFault::Rotating {
                    id: id.to_owned(),
                    until: date::timestamp(older.until_unix_s.saturating_mul(1000)),
                });
            }
            let old = std::mem::replace(&mut entry.sha256, key.hash.to_string());
            entry.previous = (overlap > 0).then(|| Previous {
                sha256: old,
                until_unix_s: now.saturating_add(overlap),
            });
            Ok(entry.clone())
        })?;
        Ok((key, entry))
    }

    /// Ends a key for good.
    pub(crate) fn revoke(&self, id: &str, now: u64) -> Result<Entry, KeyFault> {
        store::change(&self.file, self.absent, |file| {
            let entry = of_id(file, id)?;
            entry.revoked_unix_s.get_or_insert(now);
            Ok(entry.clone())
        })
    }
}

/// How long a key is to be good, where it is said.
fn check_end(expires: Option<Time>) -> Result<(), KeyFault> {
    if expires.is_some_and(|expires| expires.seconds() == 0) {
        let says = "expires: a key that is never good; write how long it is, such as 90d";
        return Err(KeyFault::Wrong(says.to_owned()));
    }
    Ok(())
}

/// Who has ended stays ended.
fn is_good(entry: &Entry, now: u64) -> Result<(), KeyFault> {
    let id = &entry.id;
    if entry.revoked_unix_s.is_some() {
        return Err(KeyFault::Revoked(id.clone()));
    }
    if entry.expires_unix_s.is_some_and(|at| now >= at) {
        let says = format!("the key {id} has expired; make another");
        return Err(KeyFault::Wrong(says));
    }
    Ok(())
}

/// The models of a key that no route of its workload takes.
pub(crate) fn untaken(entry: &Entry, s: &Snapshot) -> Vec<String> {
    let caller = entry.caller();
    let Some(workload) = s.workload_named(entry.workload.as_bytes()) else {
        return Vec::new();
    };
    let routes = s.grants(workload).iter();
    let routes = routes.filter_map(|grant| s.route(grant.route));
    let routes: Vec<_> = routes.filter(|route| !route.is_plain).collect();
    let takes = |model: &ModelPattern| {
        let mut routes = routes.iter();
        routes.any(|route| route.models.is_empty() || route.models.iter().any(|of| of.meets(model)))
    };
    let named = entry.models.iter().zip(&caller.models);
    let untaken = named.filter(|(_, model)| !takes(model));
    untaken.map(|(name, _)| name.clone()).collect()
}

/// The key of an id.
pub(crate) fn of_id<'f>(file: &'f mut KeyFile, id: &str) -> Result<&'f mut Entry, KeyFault> {
    file.entry(id)
        .ok_or_else(|| KeyFault::Unknown(id.to_owned()))
}

/// A key for other programs: all but its hash.
pub(crate) fn row(entry: &Entry, now: u64) -> Value {
    let mut row = serde_json::to_value(entry).unwrap_or_default();
    if let Some(members) = row.as_object_mut() {
        members.remove("sha256");
        let previous = members.remove("previous");
        if let Some(until) = previous.as_ref().and_then(|p| p.get("until_unix_s")) {
            members.insert("previous_until_unix_s".to_owned(), until.clone());
        }
        members.insert("state".to_owned(), state(entry, now).into());
    }
    row
}

/// One word for how a key is.
pub(crate) fn state(entry: &Entry, now: u64) -> &'static str {
    let is_past = |at: u64| now >= at;
    if entry.revoked_unix_s.is_some() {
        "revoked"
    } else if entry.expires_unix_s.is_some_and(is_past) {
        "expired"
    } else if entry
        .previous
        .as_ref()
        .is_some_and(|p| now < p.until_unix_s)
    {
        "rotating"
    } else {
        "active"
    }
}
