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
    /// Where clients reach it, as is said when it starts; nothing is known where nothing is said.
    pub(crate) addresses: Vec<String>,
    /// Its Gateway asks for an address that it does not have.
    pub(crate) lacks_address: bool,
    /// A file of ours says where it listens.
    pub(crate) has_own_address: bool,
    /// The zone that the gate is in.
    pub(crate) zone: Option<String>,
    /// Listeners that are not served, by the object that says them and their place there.
    pub(crate) shut_listeners: BTreeSet<(String, usize)>,
    /// The certificate that upstreams are to be shown is faulty.
    pub(crate) is_shown_faulty: bool,
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
    Parts(Parts),
    /// It takes its calls and refuses them.
    Whole,
    /// It takes none: what it takes is faulty itself.
    Gone,
}

/// Parts of a route, by their places.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Parts {
    pub(crate) rules: BTreeSet<usize>,
    /// Targets of rules: their shares of the rules' calls are refused.
    pub(crate) targets: BTreeSet<(usize, usize)>,
}

impl Parts {
    fn and(&self, more: &Self) -> Self {
        Self {
            rules: &self.rules | &more.rules,
            targets: &self.targets | &more.targets,
        }
    }
}

impl Shut {
    pub(crate) fn is_whole(&self) -> bool {
        *self >= Self::Whole
    }

    pub(crate) fn is_rule(&self, index: usize) -> bool {
        self.is_whole() || matches!(self, Self::Parts(parts) if parts.rules.contains(&index))
    }

    pub(crate) fn is_target(&self, rule: usize, target: usize) -> bool {
        matches!(self, Self::Parts(parts) if parts.targets.contains(&(rule, target)))
    }

    /// With faults of these parts, or, where there are none, of more than a rule.
    pub(crate) fn more(&self, parts: Option<Parts>) -> Self {
        match (self, parts) {
            (Self::Nothing, Some(parts)) => Self::Parts(parts),
            (Self::Parts(before), Some(parts)) if before.and(&parts) != *before => {
                Self::Parts(before.and(&parts))
            }
            (Self::Nothing | Self::Parts(_), _) => Self::Whole,
            (Self::Whole | Self::Gone, _) => Self::Gone,
        }
    }
}

impl Mode {
    /// Whether a listener is not served, of an object as faults name it.
    pub(crate) fn is_listener_shut(&self, owner: &str, place: usize) -> bool {
        let mut shut = self.shut_listeners.iter();
        shut.any(|(of, at)| of == owner && *at == place)
    }

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
