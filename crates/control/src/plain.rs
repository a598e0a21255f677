//! HTTPRoute: calls of plain HTTP, to Services and Backends.

use crate::cluster::Cluster;
use crate::fields::{Item, Said};
use crate::findings::{Findings, Spot};
use crate::gateway::Door;
use crate::matching::{HeaderMatch, How, Wanted};
use crate::mode::Shut;
use crate::object::Object;
use crate::route::Rule;
use crate::service::{Ref, Services};
use crate::tree::Tree;

/// A route whose rules go to ordinary services.
pub(crate) struct PlainRoute<'c, 'n> {
    pub(crate) object: &'c Object<'n>,
    pub(crate) hostnames: Vec<Said<String>>,
    /// Those of them that the listener has, too.
    pub(crate) hosts: Vec<String>,
    pub(crate) rules: Vec<Rule<PlainMatch>>,
}

/// What a rule takes, but for its header of callers.
pub(crate) struct PlainMatch {
    pub(crate) spot: Spot,
    path: Option<Tree>,
    method: Option<Tree>,
    pub(crate) headers: Vec<HeaderMatch>,
}

impl<'c, 'n> PlainRoute<'c, 'n> {
    pub(crate) fn of(
        cluster: &'c Cluster<'n>,
        object: &'c Object<'n>,
        door: &Door<'_, '_>,
        services: &Services,
        findings: &mut Findings,
    ) -> Option<Self> {
        let shut = cluster.mode.shut(object);
        if shut == Shut::Gone {
            return None;
        }
        let mut quiet = Findings::default();
        let findings = if shut.is_whole() {
            &mut quiet
        } else {
            findings
        };
        let mut spec = object.spec(findings);
        let is_held = door.holds(cluster, object, &mut spec, findings);
        let hostnames = spec.texts("hostnames", findings);
        let rules = spec.list("rules", findings);
        let home = &door.gateway.namespace;
        let rule = |(index, item): (usize, &Item<'n>)| {
            let mut quiet = Findings::default();
            let is_closed = shut.is_rule(index);
            let findings = if is_closed {
                &mut quiet
            } else {
                &mut *findings
            };
            let rule = rule(cluster, object, item, services, home, findings);
            Rule { is_closed, ..rule }
        };
        let rules = rules.iter().enumerate().map(rule).collect();
        spec.end(findings);
        is_held.then_some(Self {
            object,
            hosts: door.hosts_of(&hostnames),
            hostnames,
            rules,
        })
    }
}

/// A rule for calls of plain HTTP.
fn rule(
    cluster: &Cluster<'_>,
    route: &Object<'_>,
    item: &Item<'_>,
    services: &Services,
    home: &str,
    findings: &mut Findings,
) -> Rule<PlainMatch> {
    let (rule, mut of) = Rule::read(
        item,
        findings,
        |item, findings| Ref::of_plain(cluster, route, item, services, home, findings),
        PlainMatch::of,
        PlainMatch::everything,
    );
    of.refuse(
        &[
            ("filters", "calls of plain HTTP pass as they are"),
            ("sessionPersistence", "calls go to the addresses in turn"),
            ("retry", "write it in a BackendTrafficPolicy"),
        ],
        findings,
    );
    of.end(findings);
    rule
}

impl PlainMatch {
    pub(crate) fn new(
        spot: Spot,
        path: Tree,
        method: Option<Tree>,
        headers: Vec<HeaderMatch>,
    ) -> Self {
        Self {
            spot,
            path: Some(path),
            method,
            headers,
        }
    }

    /// Every call.
    pub(crate) fn everything(spot: Spot) -> Self {
        Self {
            spot,
            path: None,
            method: None,
            headers: Vec::new(),
        }
    }

    fn of(item: &Item<'_>, findings: &mut Findings) -> Option<Self> {
        let mut of = item.fields(findings);
        let path = of.take("path");
        let method = of.text("method", findings);
        let headers = HeaderMatch::all(&mut of, findings);
        of.refuse(
            &[("queryParams", "routes do not go by the query")],
            findings,
        );
        of.end(findings);
        let path = match path {
            Some(item) => Some(path_of(&item, findings)?),
            None => None,
        };
        Some(Self {
            spot: item.spot.clone(),
            path,
            method: method.map(|said| Tree::text(said.value).of(&said.spot)),
            headers,
        })
    }

    /// As our document writes it; hosts are the route's.
    pub(crate) fn tree(
        &self,
        callers: Option<&str>,
        hosts: &[String],
        findings: &mut Findings,
    ) -> Tree {
        let mut wanted = Vec::new();
        for header in self
            .headers
            .iter()
            .filter(|header| Some(header.name.as_str()) != callers)
        {
            match &header.how {
                How::Is(values) if let [Wanted::Exact(value)] = values.as_slice() => {
                    wanted.push((header.name.clone(), Tree::text(value).of(&header.spot)));
                }
                How::Is(_) | How::Distinct => findings.fault(
                    &header.spot,
                    "says more than one value",
                    "write a match for each",
                ),
            }
        }
        Tree::map([
            (
                "path",
                Some(self.path.clone().unwrap_or_else(|| Tree::text("/*"))),
            ),
            ("method", self.method.clone()),
            ("host", (!hosts.is_empty()).then(|| Tree::texts(hosts))),
            ("headers", (!wanted.is_empty()).then_some(Tree::Map(wanted))),
        ])
        .of(&self.spot)
    }
}

fn path_of(item: &Item<'_>, findings: &mut Findings) -> Option<Tree> {
    let mut of = item.fields(findings);
    let kind = of.text("type", findings);
    let value = of
        .text("value", findings)
        .map_or_else(|| "/".to_owned(), |said| said.value);
    of.end(findings);
    let kind = kind.map_or_else(|| "PathPrefix".to_owned(), |said| said.value);
    if value.contains(['*', '{', '}']) {
        findings.fault(
            &item.spot,
            "holds a letter that stands for others here",
            "leave * and braces out",
        );
        return None;
    }
    let written = match kind.as_str() {
        "Exact" => value,
        "PathPrefix" => format!("{}/*", value.trim_end_matches('/')),
        _ => {
            findings.fault(
                &item.spot,
                "is neither Exact nor PathPrefix",
                "write one of those",
            );
            return None;
        }
    };
    Some(Tree::text(written).of(&item.spot))
}
