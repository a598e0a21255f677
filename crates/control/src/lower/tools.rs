//! `mcp` of our document: servers of tools, and who may use them.
//!
//! Routes go by callers here, so that each caller has the servers of one route at each path: of the one that says most headers, then of the older.
//! Invariant: a route that is closed keeps its callers, and gives them nothing.
//! Not here: single routes and servers (`tools`), what is asked of callers for all routes (`security`).

use super::callers::Callers;
use super::limits::{Held, counts, is_by_model, is_each_apart, limit};
use super::routes::Made;
use super::written::manner;
use crate::backends::free;
use crate::findings::{Broken, Findings};
use crate::object::Object;
use crate::plain::PlainRoute;
use crate::route::{ModelRoute, Times};
use crate::security::Security;
use crate::tools::{PATH, Policy, ToolRoute};
use crate::traffic::LimitRule;
use crate::tree::Tree;

/// Puts what routes to tools say of their callers where it holds for all; gives what clients learn of it.
pub(super) fn policies(
    tools: &mut [ToolRoute<'_, '_>],
    models: &[ModelRoute<'_, '_>],
    plain: &[PlainRoute<'_, '_>],
    security: &mut Security,
    findings: &mut Findings,
) -> Option<Tree> {
    let mut open: Vec<&mut ToolRoute<'_, '_>> = Vec::new();
    for route in tools.iter_mut().filter(|route| !route.is_closed) {
        if is_said(&route.policy, security) {
            let says = "says who calls beside a SecurityPolicy, and callers are known in one way";
            let spot = route.policy.spot.as_ref().unwrap_or(&route.object.spot);
            findings.fault(spot, says, "keep one of them");
        } else {
            open.push(route);
        }
    }
    let of_models = models.iter().filter(|route| route.is_open());
    let of_models = of_models.map(|route| route.object);
    let of_plain = plain.iter().filter(|route| route.is_open());
    let of_others = of_models.chain(of_plain.map(|route| route.object));
    let nothing = Policy::default();
    let of_tools = open.iter().map(|route| (route.object, &route.policy));
    let all = of_others.map(|object| (object, &nothing));
    let mut all: Vec<(&Object<'_>, &Policy)> = all.chain(of_tools).collect();
    all.sort_by_cached_key(|(object, _)| object.age());
    // The oldest says in which way callers are known.
    let (first, way) = *all.first()?;
    let print = way.print();
    for (object, policy) in all.iter().filter(|(_, policy)| policy.print() != print) {
        let says = format!(
            "is not of the callers of {} {}, and callers are known in one way",
            first.kind,
            first.id()
        );
        let hint = "say who calls in a SecurityPolicy for the Gateway, or run a gate for each";
        let spot = policy.spot.as_ref().unwrap_or(&object.spot);
        findings.fault(spot, says, hint);
    }
    if way.is_nothing() {
        return None;
    }
    let route = open.first_mut()?;
    let Policy {
        oauth, keys, asked, ..
    } = std::mem::take(&mut route.policy);
    security.keys = security.keys.take().or(keys);
    security.asked = security.asked.take().or(asked);
    let oauth = oauth?;
    security.issuers.push(oauth.issuer);
    Some(oauth.told)
}

/// Whether a route says of callers what a SecurityPolicy says already.
fn is_said(policy: &Policy, security: &Security) -> bool {
    let is_known = !security.issuers.is_empty() || security.keys.is_some();
    is_known && (policy.oauth.is_some() || policy.keys.is_some())
        || security.asked.is_some() && policy.asked.is_some()
}

impl Made<'_> {
    /// `mcp`; nothing where no route is open.
    pub(super) fn tools(
        &mut self,
        tools: &[ToolRoute<'_, '_>],
        oauth: Option<Tree>,
        findings: &mut Findings,
    ) -> Option<Tree> {
        let mut routes = Vec::new();
        let mut names = Vec::new();
        let mut taken: Vec<(&str, String)> = Vec::new();
        let (servers, is_prefixed) = self.servers(tools, findings);
        let mut ordered: Vec<&ToolRoute<'_, '_>> = tools.iter().collect();
        ordered.sort_by_key(|route| std::cmp::Reverse(route.headers.len()));
        for route in ordered {
            // One with headers by none of which callers are known is refused for that, and keeps nobody from another.
            let is_callers = |name: &str| Some(name) == self.callers.header();
            let mut headers = route.headers.iter();
            if !route.headers.is_empty() && !headers.any(|header| is_callers(&header.name)) {
                continue;
            }
            let Some(mut workloads) = self.callers.taken_by(&route.headers, findings) else {
                continue;
            };
            let path = route.path.value.as_str();
            workloads.retain(|workload| !taken.contains(&(path, workload.clone())));
            taken.extend(workloads.iter().map(|workload| (path, workload.clone())));
            if route.is_closed {
                continue;
            }
            if workloads.is_empty() {
                let says = "takes calls that other MCPRoutes take already, and each caller has one at a path";
                let hint = "tell callers apart by a header, give it a path of its own, or name all servers in one route";
                findings.break_off(Broken::Conflict, &route.object.spot, says, hint);
                continue;
            }
            let traffic = self.traffic_of(route.object);
            let held = Held {
                route: route.object,
                spot: &route.object.spot,
                traffic,
                is_live: self.is_live,
            };
            let parts = held.told(findings, |findings| self.parts(held, &workloads, findings));
            for (workloads, limits) in parts {
                let name = free(&route.object.name, |name| names.iter().any(|of| of == name));
                let own = route.servers.iter().map(|server| server.name.clone());
                let own: Vec<String> = own.collect();
                let members = [
                    ("name", Some(Tree::text(&name))),
                    ("workload", Some(Tree::texts(&workloads))),
                    (
                        "path",
                        (path != PATH).then(|| Tree::text(path).of(&route.path.spot)),
                    ),
                    ("servers", Some(Tree::texts(&own))),
                    ("tools", route.tools.clone()),
                    ("limits", (!limits.is_empty()).then_some(Tree::List(limits))),
                ];
                routes.push(Tree::map(members).of(&route.object.spot));
                names.push(name);
            }
        }
        let first = tools.first()?;
        let secret = Tree::map([("env", Some(Tree::text(config::SESSIONS_VARIABLE)))]);
        let secret = secret.of(&first.object.spot);
        let members = [
            ("secret", Some(secret)),
            (
                "prefix",
                (is_prefixed == Some(false)).then(|| Tree::text("never")),
            ),
            ("oauth", oauth),
            ("servers", Some(Tree::Map(servers))),
            ("routes", (!routes.is_empty()).then_some(Tree::List(routes))),
        ];
        names.first().map(|_| Tree::map(members))
    }

    /// The servers of all routes that are open, and whether their names stand before those of tools. The older route says it.
    fn servers(
        &self,
        tools: &[ToolRoute<'_, '_>],
        findings: &mut Findings,
    ) -> (Vec<(String, Tree)>, Option<bool>) {
        let mut servers: Vec<(String, Tree)> = Vec::new();
        let mut is_prefixed = None;
        for route in tools.iter().filter(|route| !route.is_closed) {
            let traffic = self.traffic_of(route.object);
            let timeouts = manner(traffic, &Times::default()).timeouts;
            for server in &route.servers {
                if *is_prefixed.get_or_insert(server.is_prefixed) != server.is_prefixed {
                    let says = "has another prefixMode than the other servers, and names are made in one way";
                    findings.fault(&server.spot, says, "write the same for all");
                }
                let tree = with(&server.tree, "timeouts", timeouts.clone());
                match servers.iter().find(|(name, _)| *name == server.name) {
                    Some((_, known)) if known.flow() == tree.flow() => {}
                    Some(_) => {
                        let says = format!(
                            "is {} as another MCPRoute names it, with another address, key or selector",
                            server.name
                        );
                        let hint = "say the same of it in both, or name another Backend";
                        findings.fault(&server.spot, says, hint);
                    }
                    None => servers.push((server.name.clone(), tree)),
                }
            }
        }
        (servers, is_prefixed)
    }

    /// Callers that have the same limits. Calls of tools have neither a model nor tokens, so that limits of those count none of them.
    fn parts(
        &mut self,
        held: Held<'_>,
        workloads: &[String],
        findings: &mut Findings,
    ) -> Vec<(Vec<String>, Vec<Tree>)> {
        let rules = held.traffic.map_or(&[][..], |traffic| &traffic.limits);
        let rules = rules.iter().enumerate();
        let rules: Vec<(usize, &LimitRule)> = rules
            .filter(|(_, rule)| rule.key.is_none() && !is_by_model(rule))
            .collect();
        let holding = |workload: &String, callers: &Callers| {
            let holds = rules
                .iter()
                .filter(|(_, rule)| counts(rule, workload, callers));
            holds.map(|(index, _)| *index).collect::<Vec<usize>>()
        };
        let mut parts: Vec<(Vec<usize>, Vec<String>)> = Vec::new();
        for workload in workloads {
            let holding = holding(workload, self.callers);
            match parts.iter_mut().find(|(same, _)| *same == holding) {
                Some((_, all)) => all.push(workload.clone()),
                None => parts.push((holding, vec![workload.clone()])),
            }
        }
        for (index, rule) in &rules {
            let counted = parts.iter().filter(|(holding, _)| holding.contains(index));
            let counted: Vec<&str> = counted
                .flat_map(|(_, workloads)| workloads.iter().map(String::as_str))
                .collect();
            if counted.len() > 1 && !is_each_apart(rule, self.callers) {
                let says = format!(
                    "counts its callers together, and here {} would have as much each",
                    counted.join(", ")
                );
                let hint = "select them by a header of type: Distinct, or one by its value; one amount for all is a budget of a file of ours";
                findings.fault(&rule.spot, says, hint);
            }
        }
        let mut made = Vec::new();
        for (holding, workloads) in parts {
            self.count(held, &holding, &workloads, findings);
            let held = rules.iter().filter(|(index, _)| holding.contains(index));
            let limits = held.filter_map(|(_, rule)| limit(rule, self.callers, &[], findings));
            made.push((workloads, limits.collect()));
        }
        made
    }
}

/// A mapping with one more member.
fn with(tree: &Tree, name: &str, more: Option<Tree>) -> Tree {
    match (tree, more) {
        (Tree::Of(spot, inside), more) => with(inside, name, more).of(spot),
        (Tree::Map(members), Some(more)) => {
            let members = members.iter().cloned();
            Tree::Map(members.chain([(name.to_owned(), more)]).collect())
        }
        (other, _) => other.clone(),
    }
}
