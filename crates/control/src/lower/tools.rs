//! `mcp` of our document: servers of tools, and who may use them.
//!
//! Routes go by callers here, so that each caller has the servers of one route: of the one that says most headers, then of the older.
//! Invariant: a route that is closed keeps its callers, and gives them nothing.
//! Not here: single routes and servers (`tools`), what is asked of callers for all routes (`security`).

use super::callers::Callers;
use super::limits::{counts, is_by_model, is_each_apart, limit};
use super::routes::Made;
use super::written::manner;
use crate::backends::free;
use crate::findings::{Broken, Findings};
use crate::plain::PlainRoute;
use crate::route::{ModelRoute, Times};
use crate::security::Security;
use crate::tools::{Policy, ToolRoute};
use crate::traffic::{LimitRule, Traffic};
use crate::tree::Tree;

/// Puts what routes to tools say of their callers where it holds for all; gives what clients learn of it.
pub(super) fn policies(
    tools: &mut [ToolRoute<'_, '_>],
    models: &[ModelRoute<'_, '_>],
    plain: &[PlainRoute<'_, '_>],
    security: &mut Security,
    findings: &mut Findings,
) -> Option<Tree> {
    let open = tools.iter_mut().filter(|route| !route.is_closed);
    let mut open: Vec<&mut ToolRoute<'_, '_>> = open.collect();
    let of_others = models.iter().map(|route| route.object);
    let mut of_others = of_others.chain(plain.iter().map(|route| route.object));
    let other = of_others.next();
    let mut first: Option<(String, String)> = None;
    for route in &open {
        let spot = route.policy.spot.as_ref().unwrap_or(&route.object.spot);
        let print = route.policy.print();
        let id = route.object.id();
        if let Some(other) = other.filter(|_| !route.policy.is_nothing()) {
            let says = format!(
                "is not for {} {}, and callers are known in one way",
                other.kind,
                other.id()
            );
            let hint = "write it in a SecurityPolicy for the Gateway, or run a gate for each";
            findings.fault(spot, says, hint);
        }
        match &first {
            Some((known, _)) if *known == print => {}
            Some((_, other)) => {
                let says =
                    format!("is not what MCPRoute {other} says, and callers are known in one way");
                findings.fault(spot, says, "write the same in all, or run a gate for each");
            }
            None => first = Some((print, id)),
        }
    }
    let route = open.first_mut()?;
    let spot = route.policy.spot.clone()?;
    let Policy {
        oauth, keys, asked, ..
    } = std::mem::take(&mut route.policy);
    let is_known = !security.issuers.is_empty() || security.keys.is_some();
    if is_known && (oauth.is_some() || keys.is_some())
        || security.asked.is_some() && asked.is_some()
    {
        let says = "says who calls beside a SecurityPolicy, and callers are known in one way";
        findings.fault(&spot, says, "keep one of them");
        return None;
    }
    security.keys = security.keys.take().or(keys);
    security.asked = security.asked.take().or(asked);
    let oauth = oauth?;
    security.issuers.push(oauth.issuer);
    Some(oauth.told)
}

impl Made<'_> {
    /// `mcp`; nothing where no route is open.
    pub(super) fn tools(
        &mut self,
        tools: &[ToolRoute<'_, '_>],
        oauth: Option<Tree>,
        findings: &mut Findings,
    ) -> Option<Tree> {
        let mut servers: Vec<(String, Tree)> = Vec::new();
        let mut routes = Vec::new();
        let mut names = Vec::new();
        let mut taken: Vec<String> = Vec::new();
        let mut is_prefixed = None;
        let mut ordered: Vec<&ToolRoute<'_, '_>> = tools.iter().collect();
        ordered.sort_by_key(|route| std::cmp::Reverse(route.headers.len()));
        for route in ordered {
            let Some(mut workloads) = self.callers.taken_by(&route.headers, findings) else {
                continue;
            };
            workloads.retain(|workload| !taken.contains(workload));
            taken.extend(workloads.iter().cloned());
            if route.is_closed {
                continue;
            }
            if workloads.is_empty() {
                let says = "takes calls that other MCPRoutes take already, and each caller has one";
                let hint = "tell callers apart by a header, or name all servers in one route";
                findings.break_off(Broken::Conflict, &route.object.spot, says, hint);
                continue;
            }
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
            for (workloads, limits) in self.parts(traffic, &workloads, findings) {
                let name = free(&route.object.name, |name| names.iter().any(|of| of == name));
                let own = route.servers.iter().map(|server| server.name.clone());
                let own: Vec<String> = own.collect();
                let members = [
                    ("name", Some(Tree::text(&name))),
                    ("workload", Some(Tree::texts(&workloads))),
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

    /// Callers that have the same limits. Calls of tools have neither a model nor tokens, so that limits of those count none of them.
    fn parts(
        &mut self,
        traffic: Option<&Traffic>,
        workloads: &[String],
        findings: &mut Findings,
    ) -> Vec<(Vec<String>, Vec<Tree>)> {
        let rules = traffic.map_or(&[][..], |traffic| &traffic.limits);
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
            self.count(traffic, &holding, &workloads, findings);
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
