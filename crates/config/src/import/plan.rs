//! Which deployments share a backend, and which route leads there.
//!
//! Deployments of one model that differ in address, key or weight alone are endpoints of one backend. Others are backends of
//! their own, asked in their order. A backend serves all models that are reached in the same way, and calls each what it is
//! called there; where one name would be two, there is another backend of the same address.
//! Not here: the text (`write`).

mod backends;
mod patterns;
mod rates;

use std::collections::BTreeSet;

use policy::retry::{MAX_ATTEMPTS, Retries};

use super::comment;
use super::credential::{Variables, free};
use super::deployment::{Deployment, Deployments};
use super::price::Price;
use super::settings::Settings;
use super::wildcard::{self, Passed};

use crate::decode::{Findings, Written};
use crate::mask::quoted;
use crate::scalar::Model;

/// What the document will say.
pub(super) struct Plan {
    pub(super) backends: Vec<Backend>,
    pub(super) routes: Vec<Route>,
    /// Backends of which somebody has to list the models.
    pub(super) waiting: Vec<(Backend, String)>,
    pub(super) prices: Vec<ModelPrice>,
    /// Of what is left out.
    pub(super) notes: Vec<String>,
    /// Variables for secrets of the other file.
    pub(super) of_secrets: Vec<String>,
}

pub(super) struct Backend {
    pub(super) name: String,
    /// Its members, in order.
    pub(super) body: Vec<(String, Value)>,
    pub(super) addresses: usize,
    /// The gate's names of models, and what they are called there.
    pub(super) names: Vec<(String, String)>,
    /// Those that it is the first choice for.
    pub(super) models: Vec<String>,
    /// It serves models whose names are not known.
    pub(super) is_open: bool,
    pub(super) notes: Vec<String>,
}

/// How a member is written.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Value {
    Line(String),
    /// A list, an item on each line.
    Items(Vec<String>),
}

pub(super) struct Route {
    pub(super) name: String,
    /// Which models it takes; none for all.
    pub(super) models: Vec<String>,
    /// The model in place of the client's.
    pub(super) model: Option<String>,
    /// Names of backends.
    pub(super) backends: Vec<String>,
    pub(super) limits: Vec<String>,
    pub(super) attempts: Option<u64>,
    pub(super) notes: Vec<String>,
}

pub(super) struct ModelPrice {
    pub(super) model: String,
    pub(super) price: Price,
    /// What it costs at other backends.
    pub(super) at: Vec<(String, Price)>,
    pub(super) notes: Vec<String>,
}

/// A deployment, and what the model that is asked for is called there.
type Target = (usize, String);

/// Targets that are endpoints of one backend.
struct Pool {
    members: Vec<usize>,
    upstream: String,
    order: u64,
}

/// A plan that is being made.
struct Making<'a> {
    list: &'a [Deployment],
    settings: &'a Settings,
    findings: &'a mut Findings,
    variables: Variables,
    plan: Plan,
    /// Patterns of the routes so far.
    taken: Vec<String>,
    /// Deployments whose notes were said.
    said: BTreeSet<usize>,
}

impl Plan {
    pub(super) fn make(
        deployments: Deployments,
        settings: &Settings,
        findings: &mut Findings,
    ) -> Self {
        let Deployments { list, notes } = deployments;
        let keys = list.iter().filter_map(|it| it.reach.credential.as_ref());
        let keys = keys.filter_map(|credential| credential.variable().map(str::to_owned));
        let variables = Variables::new(settings.variables.iter().cloned().chain(keys));
        let mut making = Making {
            list: &list,
            settings,
            findings,
            variables,
            plan: Self {
                backends: Vec::new(),
                routes: Vec::new(),
                waiting: Vec::new(),
                prices: Vec::new(),
                notes,
                of_secrets: Vec::new(),
            },
            taken: Vec::new(),
            said: BTreeSet::new(),
        };
        let groups = groups(&list);
        for group in groups.iter().filter(|group| !group.contains('*')) {
            making.exact(group);
        }
        making.aliases_of_others(&groups);
        for pattern in making.patterns(&groups) {
            making.wildcard(pattern);
        }
        making.plan.of_secrets = making.variables.of_secrets();
        making.plan
    }
}

/// The names that clients ask for, in the order of the file.
fn groups(list: &[Deployment]) -> Vec<String> {
    let mut groups: Vec<String> = Vec::new();
    for deployment in list {
        if !groups.contains(&deployment.group) {
            groups.push(deployment.group.clone());
        }
    }
    groups
}

impl Making<'_> {
    /// The route of a name without a `*`.
    fn exact(&mut self, group: &str) {
        let is_of = |(_, it): &(usize, &Deployment)| it.group == group;
        let (named, several): (Vec<_>, Vec<_>) = self
            .list
            .iter()
            .enumerate()
            .filter(is_of)
            .partition(|(_, it)| !it.upstream.contains('*'));
        for (_, it) in several {
            let says = format!(
                "{} is one name, and {} many: left out.",
                quoted(group),
                quoted(&it.upstream)
            );
            self.leave(it, &says);
        }
        let targets: Vec<Target> = named
            .into_iter()
            .map(|(index, it)| (index, it.upstream.clone()))
            .collect();
        let aliases = self.settings.aliases.iter();
        let aliases = aliases.filter(|(alias, of)| of == group && alias != group);
        let mut models = vec![group.to_owned()];
        models.extend(aliases.map(|(alias, _)| alias.clone()));
        self.route(group, models, &targets);
    }

    /// Aliases of what is no group of its own: of a pattern's model.
    fn aliases_of_others(&mut self, groups: &[String]) {
        for (alias, of) in &self.settings.aliases {
            if groups.contains(of) {
                continue;
            }
            let targets = self.targets(of);
            if targets.is_empty() {
                let says = format!(
                    "router_settings.model_group_alias: {} stands for {}, which is no model here.",
                    quoted(alias),
                    quoted(of)
                );
                self.plan.notes.push(says);
            } else {
                self.route(alias, vec![alias.clone()], &targets);
            }
        }
    }

    /// Names with a `*`, the most specific first; those that become names of a provider's own give way to what is written.
    fn patterns<'g>(&self, groups: &'g [String]) -> Vec<&'g String> {
        let mut patterns: Vec<&String> = groups.iter().filter(|it| it.contains('*')).collect();
        let loses_prefix = |pattern: &str| {
            let first = self.list.iter().find(|it| it.group == pattern);
            first.is_some_and(|it| matches!(wildcard::passed(it), Passed::WithoutPrefix(_)))
        };
        patterns.sort_by_key(|pattern| {
            let length = std::cmp::Reverse(pattern.len());
            (*pattern == "*", loses_prefix(pattern), length)
        });
        patterns
    }

    /// A route of exact names, and the backends that it needs.
    fn route(&mut self, group: &str, models: Vec<String>, targets: &[Target]) {
        let models: Vec<String> = models
            .into_iter()
            .filter(|model| !self.taken.contains(model))
            .collect();
        if targets.is_empty() {
            return;
        }
        if models.first().is_none_or(|first| first != group) {
            let says = format!("{}: an alias of this name takes its calls.", quoted(group));
            self.plan.notes.push(says);
            return;
        }
        let mut notes = Vec::new();
        let pools = self.pools(targets);
        let first_order = pools.first().map(|pool| pool.order);
        let peers = pools.iter().filter(|pool| Some(pool.order) == first_order);
        if peers.count() > 1 {
            let says = "LiteLLM shares calls among these; here the first has them, and the next is asked when it fails.";
            notes.push(says.to_owned());
        }
        let own = pools.len();
        let mut all = pools;
        for name in self.fallbacks_of(group) {
            let targets = self.targets(&name);
            if targets.is_empty() {
                let says = format!("The fallback {} is no model here.", quoted(&name));
                notes.push(says);
            }
            all.extend(self.pools(&targets));
        }
        let mut backends: Vec<String> = Vec::new();
        let mut prices = Vec::new();
        let mut addresses = 0;
        for (index, pool) in all.iter().enumerate() {
            let at = self.backend(group, pool);
            let Some(backend) = self.plan.backends.get_mut(at) else {
                continue;
            };
            if index < own {
                for model in &models {
                    if !backend.models.contains(model) {
                        backend.models.push(model.clone());
                    }
                }
            }
            if !backends.contains(&backend.name) {
                addresses += backend.addresses;
                backends.push(backend.name.clone());
                prices.push((backend.name.clone(), self.price_of(pool)));
            }
        }
        self.price(group, &prices);
        let limits = self.limits(targets, &mut notes);
        let model = (models.len() > 1).then(|| group.to_owned());
        self.taken.extend(models.iter().cloned());
        let name = self.route_name(group);
        let attempts = self.attempts(addresses);
        self.plan.routes.push(Route {
            name,
            models,
            model,
            backends,
            limits,
            attempts,
            notes,
        });
    }

    fn fallbacks_of(&self, group: &str) -> Vec<String> {
        let own = self.settings.fallbacks.iter().find(|(of, _)| of == group);
        let names = own.map_or(&self.settings.default_fallbacks, |(_, names)| names);
        let names = names.iter().filter(|name| *name != group);
        names.cloned().collect()
    }

    /// What a name stands for: a group, an alias, a deployment's id, or a model that a pattern takes.
    fn targets(&self, name: &str) -> Vec<Target> {
        let alias = self
            .settings
            .aliases
            .iter()
            .find(|(alias, _)| alias == name);
        let name = alias.map_or(name, |(_, group)| group);
        let all = || self.list.iter().enumerate();
        let group: Vec<Target> = all()
            .filter(|(_, it)| it.group == name && !it.upstream.contains('*'))
            .map(|(index, it)| (index, it.upstream.clone()))
            .collect();
        if !group.is_empty() {
            return group;
        }
        let by_id = all().filter(|(_, it)| it.id.as_deref() == Some(name));
        let by_id: Vec<Target> = by_id
            .filter(|(_, it)| !it.upstream.contains('*'))
            .map(|(index, it)| (index, it.upstream.clone()))
            .collect();
        if !by_id.is_empty() {
            return by_id;
        }
        let by_pattern =
            all().filter_map(|(index, it)| Some((index, wildcard::upstream_of(name, it)?)));
        let by_pattern = by_pattern.filter(|(_, upstream)| Model::read(upstream).is_ok());
        let by_pattern: Vec<Target> = by_pattern.collect();
        // The longest start is the most specific.
        let start = |(index, _): &Target| self.list.get(*index).map_or(0, |it| it.group.len());
        let longest = by_pattern.iter().map(start).max();
        let best = by_pattern.into_iter();
        best.filter(|target| Some(start(target)) == longest)
            .collect()
    }

    fn leave(&mut self, it: &Deployment, says: &str) {
        self.findings
            .warn(&it.place, says.trim_end_matches('.'), "");
        self.plan.notes.push(comment::of(&it.place, says));
    }

    /// Tries of a call, where it is not what the gate does of itself.
    fn attempts(&self, addresses: usize) -> Option<u64> {
        let of = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let unless_said = of(Retries::default().attempts);
        let asked = self.settings.retries;
        let asked = asked.map_or(unless_said, |retries| retries.saturating_add(1));
        let attempts = asked.max(of(addresses)).min(of(MAX_ATTEMPTS));
        (attempts != unless_said).then_some(attempts)
    }

    fn route_name(&self, group: &str) -> String {
        let name = match named(group).as_str() {
            "" => "all".to_owned(),
            name => name.to_owned(),
        };
        let is_taken = |name: &str| self.plan.routes.iter().any(|it| it.name == name);
        free(&name, "-", is_taken)
    }
}

/// A model's name as one of a backend or a route.
fn named(group: &str) -> String {
    let letter = |c: char| {
        let is_fine = c.is_ascii_alphanumeric() || "._-".contains(c);
        if is_fine { c } else { '-' }
    };
    let name: String = group.chars().map(letter).collect();
    let name: String = name.trim_matches('-').chars().take(56).collect();
    name
}
