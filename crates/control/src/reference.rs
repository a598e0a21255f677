//! References from one object to another, and what a ReferenceGrant allows.
//!
//! Invariant: nothing is reached in another namespace unless that namespace grants it.

use config::{nearest, quoted};

use crate::fields::{Fields, Item};
use crate::findings::{Broken, Findings, Spot};
use crate::object::Object;

/// What an object names.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    pub(crate) spot: Spot,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Reference {
    /// Takes the members that every reference has; group and kind are these unless said.
    pub(crate) fn take(
        fields: &mut Fields<'_>,
        unless: (&str, &str),
        home: &str,
        findings: &mut Findings,
    ) -> Option<Self> {
        let group = fields.text("group", findings);
        let kind = fields.text("kind", findings);
        let namespace = fields.text("namespace", findings);
        let name = fields.needed_text("name", findings)?;
        let or = |said: Option<crate::fields::Said<String>>, unless: &str| {
            said.map_or_else(|| unless.to_owned(), |s| s.value)
        };
        Some(Self {
            spot: fields.spot.clone(),
            group: or(group, unless.0),
            kind: or(kind, unless.1),
            namespace: or(namespace, home),
            name: name.value,
        })
    }

    /// The same, of a value that has no other members.
    pub(crate) fn whole(
        item: &Item<'_>,
        unless: (&str, &str),
        home: &str,
        findings: &mut Findings,
    ) -> Option<Self> {
        let mut fields = item.fields(findings);
        let found = Self::take(&mut fields, unless, home, findings);
        fields.end(findings);
        found
    }

    pub(crate) fn is_of(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }

    pub(crate) fn is_to(&self, object: &Object<'_>) -> bool {
        self.is_of(object.group, object.kind)
            && self.namespace == object.namespace
            && self.name == object.name
    }

    /// Whether both are to the same.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        (&self.group, &self.kind, &self.namespace, &self.name)
            == (&other.group, &other.kind, &other.namespace, &other.name)
    }

    /// Whether it is to a route. What Envoy makes of an AIGatewayRoute is an HTTPRoute of its name, so both words name either.
    pub(crate) fn is_to_route(&self, route: &Object<'_>) -> bool {
        let is_route = |kind: &str| matches!(kind, "HTTPRoute" | "AIGatewayRoute");
        is_route(&self.kind)
            && is_route(route.kind)
            && (&self.namespace, &self.name) == (&route.namespace, &route.name)
    }

    pub(crate) fn shown(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }

    /// Notes that it is of a kind that cannot stand here.
    pub(crate) fn is_one_of(&self, kinds: &[(&str, &str)], findings: &mut Findings) -> bool {
        let is = kinds.iter().any(|(group, kind)| self.is_of(group, kind));
        if !is {
            let of = if self.group.is_empty() {
                "the core group".to_owned()
            } else {
                quoted(&self.group)
            };
            let kinds: Vec<&str> = kinds.iter().map(|(_, kind)| *kind).collect();
            let says = format!("names the kind {} of {of}", quoted(&self.kind));
            findings.break_off(
                Broken::Kind,
                &self.spot,
                says,
                format!("the kind is {} here", kinds.join(" or ")),
            );
        }
        is
    }
}

/// What a namespace lets others name.
pub(crate) struct Grant {
    namespace: String,
    from: Vec<[String; 3]>,
    to: Vec<(String, String, Option<String>)>,
}

impl Grant {
    pub(crate) fn of(object: &Object<'_>, findings: &mut Findings) -> Self {
        let mut spec = object.spec(findings);
        let mut grant = Self {
            namespace: object.namespace.clone(),
            from: Vec::new(),
            to: Vec::new(),
        };
        for item in spec.list("from", findings) {
            let mut from = item.fields(findings);
            let group = from
                .text("group", findings)
                .map(|s| s.value)
                .unwrap_or_default();
            let kind = from.needed_text("kind", findings);
            let namespace = from.needed_text("namespace", findings);
            from.end(findings);
            if let (Some(kind), Some(namespace)) = (kind, namespace) {
                grant.from.push([group, kind.value, namespace.value]);
            }
        }
        for item in spec.list("to", findings) {
            let mut to = item.fields(findings);
            let group = to
                .text("group", findings)
                .map(|s| s.value)
                .unwrap_or_default();
            let kind = to.needed_text("kind", findings);
            let name = to.text("name", findings).map(|s| s.value);
            to.end(findings);
            grant.to.extend(kind.map(|kind| (group, kind.value, name)));
        }
        spec.end(findings);
        grant
    }

    fn allows(&self, from: &Object<'_>, to: &Reference) -> bool {
        let is_from = |[group, kind, namespace]: &[String; 3]| {
            *group == from.group && *kind == from.kind && *namespace == from.namespace
        };
        let is_to = |(group, kind, name): &(String, String, Option<String>)| {
            *group == to.group
                && *kind == to.kind
                && name.as_ref().is_none_or(|name| *name == to.name)
        };
        self.namespace == to.namespace && self.from.iter().any(is_from) && self.to.iter().any(is_to)
    }
}

/// Whether an object may name what it names.
pub(crate) fn is_granted(
    from: &Object<'_>,
    to: &Reference,
    grants: &[Grant],
    findings: &mut Findings,
) -> bool {
    let is = from.namespace == to.namespace || grants.iter().any(|grant| grant.allows(from, to));
    if !is {
        let says = format!(
            "names {}, which is in another namespace, and no ReferenceGrant there allows it",
            to.shown()
        );
        let hint = format!(
            "write a ReferenceGrant in the namespace {} from its kind in {} to {}",
            to.namespace, from.namespace, to.kind
        );
        findings.break_off(Broken::NotPermitted, &to.spot, says, hint);
    }
    is
}

/// Notes that what is named is not there.
pub(crate) fn is_missing(to: &Reference, there: &[&Object<'_>], findings: &mut Findings) {
    let of_kind = there.iter().filter(|o| to.is_of(o.group, o.kind));
    let names: Vec<&str> = of_kind
        .clone()
        .filter(|o| o.namespace == to.namespace)
        .map(|o| o.name.as_str())
        .collect();
    let elsewhere = of_kind.clone().find(|o| o.name == to.name);
    let hint = match (nearest(&to.name, &names), elsewhere) {
        (Some(near), _) => format!("did you mean {near}?"),
        (None, Some(other)) => format!(
            "there is one in the namespace {}: name it, and grant it there",
            other.namespace
        ),
        (None, None) => "add it to these files".to_owned(),
    };
    let says = format!("there is no {}", to.shown());
    findings.break_off(Broken::Missing, &to.spot, says, hint);
}
