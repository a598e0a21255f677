//! Headers that rules and limits go by, and what each of them is for.
//!
//! Not here: who callers are (`callers`).

use crate::findings::Findings;
use crate::matching::{HeaderMatch, How, MODEL};
use crate::object::{Age, Object};
use crate::plain::PlainRoute;
use crate::route::ModelRoute;
use crate::security::Security;
use crate::tools::ToolRoute;
use crate::traffic::Traffic;

/// A header, and the object that goes by it.
#[derive(Clone)]
pub(super) struct Named<'h> {
    pub(super) header: &'h HeaderMatch,
    /// It is a policy for the Gateway, which goes before what is attached there.
    pub(super) is_for_all: bool,
    pub(super) age: Age,
    pub(super) namespace: &'h str,
}

impl<'h> Named<'h> {
    fn by(object: &'h Object<'_>, header: &'h HeaderMatch) -> Self {
        Self {
            header,
            is_for_all: false,
            age: object.age(),
            namespace: &object.namespace,
        }
    }

    fn by_limit(policy: &'h Traffic, header: &'h HeaderMatch) -> Self {
        Self {
            header,
            is_for_all: policy.is_for_all(),
            age: policy.age.clone(),
            namespace: &policy.namespace,
        }
    }
}

/// All of them but the model's, in the order in which they have it where two cannot be.
pub(super) struct Headers<'h> {
    /// By which rules and limits tell callers apart.
    pub(super) callers: Vec<Named<'h>>,
    /// Of them those of rules.
    pub(super) rules: Vec<&'h HeaderMatch>,
    /// Those of limits.
    pub(super) limits: Vec<&'h HeaderMatch>,
    /// Of limits that count each value apart, and nobody says which there are.
    pub(super) users: Vec<Named<'h>>,
    /// Of rules for services, which go by any header.
    pub(super) services: Vec<&'h HeaderMatch>,
}

impl<'h> Headers<'h> {
    pub(super) fn of(
        models: &'h [ModelRoute<'_, '_>],
        plain: &'h [PlainRoute<'_, '_>],
        tools: &'h [ToolRoute<'_, '_>],
        traffic: &'h [Traffic],
        security: &Security,
    ) -> Self {
        let of_models = models.iter().flat_map(|route| {
            let matches = route.rules.iter().flat_map(|rule| &rule.matches);
            let all = matches.flat_map(|(_, headers)| headers);
            let all = all.filter(|header| header.name != MODEL);
            all.map(move |header| Named::by(route.object, header))
        });
        let of_tools = tools.iter().flat_map(|route| {
            let all = route.headers.iter();
            all.map(move |header| Named::by(route.object, header))
        });
        let services = plain.iter().flat_map(|route| {
            let matches = route.rules.iter().flat_map(|rule| &rule.matches);
            let all = matches.flat_map(|one| &one.headers);
            all.map(move |header| Named::by(route.object, header))
        });
        let services: Vec<Named<'h>> = services.collect();
        // One that a policy proves is never taken as a client says it.
        let of_proven = services.iter();
        let of_proven = of_proven.filter(|named| security.proves(&named.header.name));
        let rules = of_models.chain(of_tools).chain(of_proven.cloned());
        let rules: Vec<Named<'h>> = rules.collect();
        let limits = traffic.iter().flat_map(|policy| {
            let all = policy.limits.iter().flat_map(|rule| &rule.headers);
            let all = all.filter(|header| header.name != MODEL);
            all.map(move |header| Named::by_limit(policy, header))
        });
        let limits: Vec<Named<'h>> = limits.collect();
        let is_known = |named: &Named<'h>| {
            let name = &named.header.name;
            let mut said = rules.iter().chain(&limits).map(|other| other.header);
            let keys = security.keys.as_ref();
            said.any(|other| other.name == *name && !matches!(other.how, How::Distinct))
                || keys.is_some_and(|keys| keys.known_by(name).is_some())
        };
        let (known, mut users): (Vec<Named<'h>>, Vec<Named<'h>>) =
            limits.iter().cloned().partition(is_known);
        let bare = |all: &[Named<'h>]| -> Vec<&'h HeaderMatch> {
            all.iter().map(|named| named.header).collect()
        };
        let in_order = |all: &mut Vec<Named<'h>>| {
            // Of those that are as old as each other rules go before limits.
            all.sort_by_cached_key(|named| (!named.is_for_all, named.age.created.clone()));
        };
        let mut headers = Self {
            rules: bare(&rules),
            limits: bare(&known),
            services: bare(&services),
            callers: rules.into_iter().chain(known).collect(),
            users: Vec::new(),
        };
        in_order(&mut headers.callers);
        in_order(&mut users);
        headers.users = users;
        headers
    }

    /// Notes that services have none of them from the gate, and none from clients.
    pub(super) fn told_to_services(&self, security: &Security, findings: &mut Findings) {
        let users = self.users.iter().map(|named| named.header);
        let mut all = self.rules.iter().chain(&self.limits).copied().chain(users);
        if let Some(header) = all.find(|header| !security.proves(&header.name)) {
            let name = &header.name;
            let says = format!("goes by {name}, which services behind HTTPRoutes do not get");
            findings.warn(&header.spot, says, "");
        }
    }
}
