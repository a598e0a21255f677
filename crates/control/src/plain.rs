//! HTTPRoute: calls of plain HTTP, to Services and Backends.

use config::Value;

use crate::cluster::Cluster;
use crate::edits;
use crate::fields::{Item, Said};
use crate::filters::Filters;
use crate::findings::{Findings, Spot};
use crate::gateway::Door;
use crate::matching::{HeaderMatch, How, Wanted};
use crate::mode::Shut;
use crate::object::{self, Object};
use crate::refs::Ref;
use crate::route::Rule;
use crate::service::Services;
use crate::tree::Tree;

/// A route whose rules go to ordinary services.
pub(crate) struct PlainRoute<'c, 'n> {
    pub(crate) object: &'c Object<'n>,
    pub(crate) hostnames: Vec<Said<String>>,
    /// Those of them that the listener has, too.
    pub(crate) hosts: Vec<String>,
    /// The listeners that it is attached to.
    pub(crate) held: Vec<String>,
    /// The same, where calls are told apart by them.
    pub(crate) listeners: Vec<String>,
    pub(crate) rules: Vec<Rule<PlainMatch>>,
}

/// What a rule takes, but for its header of callers.
pub(crate) struct PlainMatch {
    pub(crate) spot: Spot,
    path: Option<Tree>,
    method: Option<Tree>,
    pub(crate) headers: Vec<HeaderMatch>,
    query: Vec<(String, String, Spot)>,
    /// Its path is that of calls to models, or stands before theirs.
    pub(crate) models: OfModels,
}

/// Whether a match is of paths of calls to models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfModels {
    No,
    /// Of all paths.
    Too,
    /// Of theirs.
    Alone,
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
        let hostnames = spec.texts("hostnames", findings);
        let held = door.holds(cluster, object, &mut spec, &hostnames, findings);
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
            let is_shut = |target| shut.is_target(index, target);
            let rule = rule(cluster, object, item, services, (home, &is_shut), findings);
            // With all of its targets, itself is closed.
            let mut called = rule.refs.iter().filter(|of| of.weight > 0).peekable();
            let is_without = called.peek().is_some() && called.all(|of| of.is_closed);
            let is_closed = is_closed || is_without;
            Rule { is_closed, ..rule }
        };
        let rules = rules.iter().enumerate().map(rule).collect();
        spec.end(findings);
        (!held.is_empty()).then(|| Self {
            object,
            hosts: door.hosts_of(&hostnames),
            listeners: match door.is_told_apart {
                true => held.clone(),
                false => Vec::new(),
            },
            held,
            hostnames,
            rules,
        })
    }
}

impl PlainRoute<'_, '_> {
    /// Whether some of its calls are not refused.
    pub(crate) fn is_open(&self) -> bool {
        self.rules.iter().any(|rule| !rule.is_closed)
    }
}

/// A rule for calls of plain HTTP.
fn rule(
    cluster: &Cluster<'_>,
    route: &Object<'_>,
    item: &Item<'_>,
    services: &Services,
    (home, is_shut): (&str, &dyn Fn(usize) -> bool),
    findings: &mut Findings,
) -> Rule<PlainMatch> {
    let (mut rule, mut of) = Rule::read(
        item,
        false,
        findings,
        |at, item, findings| match is_shut(at) {
            true => Some(Ref::closed(item)),
            false => Ref::of_plain(cluster, route, item, services, home, findings),
        },
        PlainMatch::of,
        PlainMatch::everything,
    );
    of.refuse(
        &[
            ("sessionPersistence", "calls go to the addresses in turn"),
            ("retry", "write it in a BackendTrafficPolicy"),
        ],
        findings,
    );
    rule.filters = Filters::of(&mut of, findings, |item, findings| {
        Ref::of_plain(cluster, route, item, services, home, findings)
    });
    of.end(findings);
    // What is named and faulty has its fault already.
    let named = object::member(item.node, "backendRefs").map(|of| &of.value);
    let is_named = matches!(named, Some(Value::List(items)) if !items.is_empty());
    let goes_nowhere = rule.refs.is_empty() && !rule.filters.is_redirect;
    if goes_nowhere && !is_named && !cluster.mode.is_live {
        let hint = "name what it goes to in backendRefs";
        findings.fault(&item.spot, "goes nowhere", hint);
    }
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
            query: Vec::new(),
            models: OfModels::No,
        }
    }

    /// The one path that it takes, where it takes no other.
    pub(crate) fn exact(&self) -> Option<String> {
        let path = self.path.as_ref()?.flow();
        let path = path.trim_matches('"');
        (!path.ends_with("/*")).then(|| path.to_owned())
    }

    /// Whether it takes calls of this path, and not of all.
    pub(crate) fn names(&self, path: &str) -> bool {
        let Some(taken) = self.path.as_ref().map(Tree::flow) else {
            return false;
        };
        let taken = taken.trim_matches('"');
        match taken.strip_suffix("/*") {
            Some("") => false,
            Some(below) => path
                .strip_prefix(below)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            None => taken == path,
        }
    }

    /// Every call.
    pub(crate) fn everything(spot: Spot) -> Self {
        Self {
            spot,
            path: None,
            method: None,
            headers: Vec::new(),
            query: Vec::new(),
            models: OfModels::Too,
        }
    }

    fn of(item: &Item<'_>, findings: &mut Findings) -> Option<Self> {
        let mut of = item.fields(findings);
        let path = of.take("path");
        let method = of.text("method", findings);
        let mut headers = HeaderMatch::all(&mut of, findings);
        let mut query = edits::query(&mut of, findings);
        of.end(findings);
        // In whatever order they stand, a match is the same.
        headers.sort_by(|a, b| a.name.cmp(&b.name));
        query.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        let path = match path {
            Some(item) => Some(path_of(&item, findings)?),
            None => None,
        };
        let models = match path.as_ref().map(Tree::flow).as_deref() {
            _ if method.is_some() || !query.is_empty() => OfModels::No,
            None | Some("\"/*\"") => OfModels::Too,
            Some("\"/v1/*\"") => OfModels::Alone,
            Some(_) => OfModels::No,
        };
        Some(Self {
            spot: item.spot.clone(),
            path,
            // Each stands for itself.
            method: method.map(|said| match said.value.as_str() {
                alone @ ("GET" | "HEAD") => Tree::text(format!("={alone}")).of(&said.spot),
                other => Tree::text(other).of(&said.spot),
            }),
            headers,
            query,
            models,
        })
    }

    /// As our document writes it; hosts are the route's.
    pub(crate) fn tree(
        &self,
        callers: Option<&str>,
        hosts: &[String],
        listeners: &[String],
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
        let query = self.query.iter();
        let query = query.map(|(name, value, spot)| (name.clone(), Tree::text(value).of(spot)));
        let query: Vec<(String, Tree)> = query.collect();
        Tree::map([
            (
                "path",
                Some(self.path.clone().unwrap_or_else(|| Tree::text("/*"))),
            ),
            ("method", self.method.clone()),
            ("host", (!hosts.is_empty()).then(|| Tree::texts(hosts))),
            (
                "listener",
                (!listeners.is_empty()).then(|| Tree::texts(listeners)),
            ),
            ("headers", (!wanted.is_empty()).then_some(Tree::Map(wanted))),
            ("query", (!query.is_empty()).then_some(Tree::Map(query))),
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
    if kind == "RegularExpression" {
        let says = "is an expression, and paths go by whole ones and by beginnings";
        findings.fault(&item.spot, says, "write Exact or PathPrefix");
        return None;
    }
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
