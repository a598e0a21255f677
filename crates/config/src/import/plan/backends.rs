//! Backends: deployments that are reached in the same way, together.
//!
//! Not here: which route leads there (`plan`), how they are written (`write`).

use super::{Backend, Making, Pool, Target, Value, named};
use crate::import::credential::free;
use crate::import::deployment::Deployment;
use crate::import::read::{flow, scalar};

impl Making<'_> {
    /// Targets by their order; those that are reached in the same way together.
    pub(super) fn pools(&self, targets: &[Target]) -> Vec<Pool> {
        let mut pools: Vec<Pool> = Vec::new();
        for (index, upstream) in targets {
            let Some(it) = self.list.get(*index) else {
                continue;
            };
            let is_same = |pool: &&mut Pool| {
                let first = pool.members.first().and_then(|first| self.list.get(*first));
                pool.order == it.order
                    && pool.upstream == *upstream
                    && first.is_some_and(|first| first.reach.manner == it.reach.manner)
            };
            match pools.iter_mut().find(is_same) {
                Some(pool) => pool.members.push(*index),
                None => pools.push(Pool {
                    members: vec![*index],
                    upstream: upstream.clone(),
                    order: it.order,
                }),
            }
        }
        pools.sort_by_key(|pool| pool.order);
        pools
    }

    /// The backend of a pool, which may be there: its index.
    pub(super) fn backend(&mut self, model: &str, pool: &Pool) -> usize {
        let made = self.made(pool);
        let known = self.plan.backends.iter().position(|known| {
            let other = known.names.iter().find(|(name, _)| name == model);
            known.body == made.body && other.is_none_or(|(_, name)| *name == pool.upstream)
        });
        let at = known.unwrap_or_else(|| {
            let mut made = made;
            let is_taken = |name: &str| self.plan.backends.iter().any(|it| it.name == name);
            made.name = free(&made.name, "-", is_taken);
            self.plan.backends.push(made);
            self.plan.backends.len() - 1
        });
        let notes = self.notes_of(pool);
        if let Some(backend) = self.plan.backends.get_mut(at) {
            for note in notes {
                if !backend.notes.contains(&note) {
                    backend.notes.push(note);
                }
            }
            let name = (model.to_owned(), pool.upstream.clone());
            if !backend.names.contains(&name) {
                backend.names.push(name);
            }
        }
        at
    }

    /// What is to be said of deployments, once.
    pub(super) fn notes_of(&mut self, pool: &Pool) -> Vec<String> {
        let mut notes = Vec::new();
        for index in &pool.members {
            if let (true, Some(it)) = (self.said.insert(*index), self.list.get(*index)) {
                notes.extend(it.notes.iter().cloned());
            }
        }
        notes
    }

    /// A backend as its pool says, without a model.
    pub(super) fn made(&mut self, pool: &Pool) -> Backend {
        let members = pool
            .members
            .iter()
            .filter_map(|index| self.list.get(*index));
        let members: Vec<&Deployment> = members.collect();
        let weights = weights(&members);
        let mut addresses: Vec<(String, Option<String>, u64)> = Vec::new();
        for (it, weight) in members.iter().zip(weights) {
            let credential = it.reach.credential.as_ref();
            let credential = credential.map(|it| self.variables.written(it, self.findings));
            let is_same = |known: &&mut (String, Option<String>, u64)| {
                known.0 == it.reach.url && known.1 == credential
            };
            match addresses.iter_mut().find(is_same) {
                Some(known) => known.2 = known.2.saturating_add(weight),
                None => addresses.push((it.reach.url.clone(), credential, weight)),
            }
        }
        let shared = addresses.first().and_then(|first| first.1.clone());
        let is_shared = addresses.iter().all(|it| it.1 == shared);
        let mut body = Vec::new();
        if let [(url, ..)] = addresses.as_slice() {
            body.push(("url".to_owned(), Value::Line(scalar(url))));
        } else {
            let are_weighed = addresses.iter().any(|it| it.2 != 1);
            let item = |(url, credential, weight): &(String, Option<String>, u64)| {
                let mut members = vec![("url".to_owned(), scalar(url))];
                if are_weighed {
                    members.push(("weight".into(), weight.to_string()));
                }
                if let (false, Some(credential)) = (is_shared, credential) {
                    members.push(("credential".into(), credential.clone()));
                }
                flow(&members)
            };
            let items = addresses.iter().map(item).collect();
            body.push(("endpoints".to_owned(), Value::Items(items)));
        }
        let first = members.first();
        let manner = first.map_or(&[][..], |first| &first.reach.manner);
        let lines = manner.iter();
        body.extend(lines.map(|(name, value)| (name.clone(), Value::Line(value.clone()))));
        if let (true, Some(credential)) = (is_shared, shared) {
            body.push(("credential".to_owned(), Value::Line(credential)));
        }
        Backend {
            name: first.map_or_else(String::new, |first| backend_name(first)),
            body,
            addresses: addresses.len(),
            names: Vec::new(),
            models: Vec::new(),
            is_open: false,
            notes: Vec::new(),
        }
    }
}

/// Shares of the traffic: by weight, else by rpm or tpm, where all say it.
fn weights(members: &[&Deployment]) -> Vec<u64> {
    let by = |of: fn(&Deployment) -> Option<u64>| -> Option<Vec<u64>> {
        members.iter().map(|it| of(it).filter(|n| *n > 0)).collect()
    };
    let weights = by(|it| it.weight)
        .or_else(|| by(|it| it.rpm))
        .or_else(|| by(|it| it.tpm));
    let weights = weights.unwrap_or_else(|| vec![1; members.len()]);
    let divisor = weights.iter().copied().fold(0, greatest_divisor);
    let weight = |n: u64| (n / divisor.max(1)).clamp(1, 1_000_000);
    weights.into_iter().map(weight).collect()
}

fn greatest_divisor(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        greatest_divisor(b, a % b)
    }
}

/// What a backend is called: after its provider, or after the model of an address of one's own.
fn backend_name(first: &Deployment) -> String {
    if !first.is_elsewhere {
        return first.provider.name.to_owned();
    }
    match named(&first.group).as_str() {
        "" => "engine".to_owned(),
        name => name.to_owned(),
    }
}
