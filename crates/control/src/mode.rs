//! What is different about objects of a cluster: what they may name, and what of them is closed.
//!
//! Not here: what closes them (`live`).

use std::collections::{BTreeMap, BTreeSet};

use crate::object::Object;

/// What is different about objects of a cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mode {
    pub(crate) is_live: bool,
    /// Its Backends may be addresses of the gate's machine and of its link.
    pub(crate) reaches_machine: bool,
    /// The address that the gate listens on, whatever its Gateway asks for.
    pub(crate) bind: Option<std::net::IpAddr>,
    /// A file of ours says where it listens.
    pub(crate) has_own_address: bool,
    /// The zone that the gate is in.
    pub(crate) zone: Option<String>,
    /// Listeners of the Gateway that are not served, by their place.
    pub(crate) shut_listeners: BTreeSet<usize>,
    /// Every route is closed.
    pub(crate) all_shut: bool,
    pub(crate) shut: BTreeMap<[String; 3], Shut>,
    /// What is there and not taken, by kind, namespace and name, and what is said of it where it is named.
    pub(crate) refused: BTreeMap<[String; 3], String>,
}

/// How much of a route is closed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shut {
    Nothing,
    Rules(BTreeSet<usize>),
    /// It takes its calls and refuses them.
    Whole,
    /// It takes none: what it takes is faulty itself.
    Gone,
}

impl Shut {
    pub(crate) fn is_whole(&self) -> bool {
        *self >= Self::Whole
    }

    pub(crate) fn is_rule(&self, index: usize) -> bool {
        self.is_whole() || matches!(self, Self::Rules(rules) if rules.contains(&index))
    }

    /// With faults of these rules, or, where there are none, of more than a rule.
    pub(crate) fn more(&self, rules: Option<BTreeSet<usize>>) -> Self {
        match (self, rules) {
            (Self::Nothing, Some(rules)) => Self::Rules(rules),
            (Self::Rules(before), Some(rules)) if !rules.is_subset(before) => {
                Self::Rules(before | &rules)
            }
            (Self::Nothing | Self::Rules(_), _) => Self::Whole,
            (Self::Whole | Self::Gone, _) => Self::Gone,
        }
    }
}

impl Mode {
    /// How much of a route is closed.
    pub(crate) fn shut(&self, route: &Object<'_>) -> Shut {
        let key = [route.kind, &route.namespace, &route.name].map(str::to_owned);
        let own = self.shut.get(&key).cloned().unwrap_or(Shut::Nothing);
        if self.all_shut {
            own.max(Shut::Whole)
        } else {
            own
        }
    }
}
