//! All objects together: callers, routes in their order, limits where they count.
//!
//! Rules go by headers and by the model; our routes go by the caller and by the model. So the one header beside the model's that
//! rules and limits look at is the header that names callers, and its values are the callers.
//! Invariant: what a limit counts together is counted together in our document, or is a fault.
//! Not here: single objects (`gateway`, `route`, `service`, `traffic`, `security`).

mod callers;
mod headers;
mod hosts;
mod limits;
mod model_rules;
mod open;
mod plain_rules;
mod routes;
mod shared_addresses;
mod shared_paths;
mod spread;
mod tools;
mod written;

use std::path::Path;
use std::rc::Rc;

use config::{Node, Shape, Value, parse_all};

use self::callers::Callers;
use self::hosts::{Served, hosts, serving};
use self::routes::Made;
use crate::cluster::Cluster;
use crate::findings::{Findings, Spot};
use crate::gateway::{self, Door};
use crate::mode::Mode;
use crate::object;
use crate::origins::Origins;
use crate::plain::PlainRoute;
use crate::refs::Ref;
use crate::route::ModelRoute;
use crate::security;
use crate::service::Services;
use crate::tools::ToolRoute;
use crate::traffic;
use crate::tree::Tree;
use crate::{
    Input, Lowered, Refused, access_log, clients, gateway_config, gloo, pool_route, quota,
};

/// Lowers the objects of these files. One file of ours may lie beside them: what it says goes before what objects come to, and its
/// backends and routes are added.
///
/// # Errors
/// Every fault that can be found.
pub fn lower(inputs: &[Input<'_>]) -> Result<Lowered, Refused> {
    let mut findings = Findings::default();
    let mut files: Vec<(Rc<Path>, Vec<Node>)> = Vec::new();
    for input in inputs {
        let file: Rc<Path> = Rc::from(input.file);
        match parse_all(input.text) {
            Ok(nodes) => files.push((file, nodes)),
            Err(faults) => findings
                .faults
                .extend(faults.into_iter().map(|fault| config::Fault {
                    file: Some(input.file.to_path_buf()),
                    hint: match is_template(input.text, fault.line) {
                        true => "it is a template: give what `helm template` makes of it".into(),
                        false => fault.hint,
                    },
                    ..fault
                })),
        }
    }
    let mut objects = Vec::new();
    let mut own: Option<(Spot, &Node)> = None;
    for (file, node) in files
        .iter()
        .flat_map(|(file, nodes)| nodes.iter().map(move |node| (file, node)))
    {
        if matches!(&node.value, Value::Scalar(scalar) if scalar.shape() == Shape::Nothing) {
            continue;
        }
        if object::looks_like_object(node) || !matches!(node.value, Value::Map(_)) {
            objects.extend(object::objects(file, node, &mut findings));
            continue;
        }
        let spot = Spot {
            file: Rc::clone(file),
            object: "".into(),
            path: String::new(),
            line: node.line,
        };
        match &own {
            None => own = Some((spot, node)),
            Some((first, _)) => {
                let says = format!(
                    "is a second document of ours beside objects of Kubernetes; the first is {}",
                    first.place()
                );
                findings.fault(&spot, says, "write both into one");
            }
        }
    }
    let cluster = Cluster::new(objects, Mode::default(), &mut findings);
    let lowered = of_cluster(&cluster, own, &mut findings);
    let Some(lowered) = lowered.filter(|_| findings.faults.is_empty()) else {
        return Err(Refused {
            faults: ordered(findings.faults),
            warnings: ordered(findings.warnings),
        });
    };
    Ok(Lowered {
        warnings: ordered(findings.warnings),
        ..lowered
    })
}

/// Whether a line is to be filled in by Helm.
fn is_template(text: &str, line: Option<usize>) -> bool {
    let line = line.and_then(|line| text.lines().nth(line.saturating_sub(1)));
    line.is_some_and(|line| line.contains("{{"))
}

/// What objects come to, with what a file of ours says beside them. It has a meaning where nothing is found to be wrong.
pub(crate) fn of_cluster(
    cluster: &Cluster<'_>,
    own: Option<(Spot, &Node)>,
    findings: &mut Findings,
) -> Option<Lowered> {
    // Of what is wrong with the document as a whole nothing can be an object's.
    let whole_of = own.as_ref().map(|(spot, _)| spot.clone());
    let own = own.map(|(spot, node)| members(Tree::copied(node, &spot)));
    let document = whole(cluster, own, findings)?;
    let mut origins = Origins::default();
    if let Some(spot) = whole_of {
        origins.add("", &spot);
    }
    document.note("", &mut origins);
    let (given, given_of) = cluster.given().iter().cloned().unzip();
    Some(Lowered {
        document: document.document(),
        given,
        given_of,
        origins,
        warnings: Vec::new(),
    })
}

/// A document by which every call is refused, with what a file of ours says beside.
pub(crate) fn shut_document(address: &str, own: Option<(Spot, &Node)>) -> Lowered {
    let everybody = Tree::text("default");
    let plain = |text: &str| Some(Tree::Plain(text.to_owned()));
    let identity = Tree::map([
        ("header", Some(Tree::text("x-tollgate-workload"))),
        ("default", Some(everybody.clone())),
        ("trust", Some(Tree::text("anyone"))),
    ]);
    let closed = Tree::map([("closed", plain("true"))]);
    let route = Tree::map([
        ("name", Some(Tree::text("closed"))),
        ("workload", Some(everybody)),
        ("backend", Some(Tree::text("closed"))),
    ]);
    let document = [
        ("listen", Tree::map([("data", Some(Tree::text(address)))])),
        ("identity", identity),
        ("backends", Tree::map([("closed", Some(closed))])),
        ("routes", Tree::List(vec![route])),
    ];
    let document = document.map(|(name, tree)| (name.to_owned(), tree));
    let own = own.map(|(spot, node)| members(Tree::copied(node, &spot)));
    let kept = [
        "listen",
        "bounds",
        "client_address",
        "access_log",
        "ledger",
        "traces",
        "drain",
        "workers",
    ];
    let own = own.unwrap_or_default().into_iter();
    let own = own.filter(|(name, _)| kept.contains(&name.as_str()));
    let document = beside(document.into(), own.collect());
    Lowered {
        document: document.document(),
        given: Vec::new(),
        given_of: Vec::new(),
        origins: Origins::default(),
        warnings: Vec::new(),
    }
}

/// In the order of files and lines, each once.
pub(crate) fn ordered(mut faults: Vec<config::Fault>) -> Vec<config::Fault> {
    faults.sort_by(|a, b| {
        (&a.file, a.line, &a.path, &a.says).cmp(&(&b.file, b.line, &b.path, &b.says))
    });
    faults.dedup();
    faults
}

fn members(tree: Tree) -> Vec<(String, Tree)> {
    match tree {
        Tree::Map(members) => members,
        Tree::Of(_, inside) => members(*inside),
        Tree::Plain(_) | Tree::Text(_) | Tree::List(_) => Vec::new(),
    }
}

fn whole(
    cluster: &Cluster<'_>,
    own: Option<Vec<(String, Tree)>>,
    findings: &mut Findings,
) -> Option<Tree> {
    let door = Door::of(cluster, findings).or_else(|| gloo::door(cluster, findings));
    let Some(door) = door else {
        if let Some(object) = cluster.objects.first() {
            findings.fault(
                &object.spot,
                "there is no Gateway in these files",
                "add one: it says where the gate listens",
            );
        }
        return None;
    };
    gateway::classes(cluster, findings);
    let access_log = access_log::access_log(cluster, findings);
    let [bounds, client_address] = clients::clients(cluster, &door, findings);
    let services = Services::read(cluster, &door, findings);
    let mut models: Vec<ModelRoute<'_, '_>> = cluster
        .of_kind("AIGatewayRoute")
        .filter_map(|route| ModelRoute::of(cluster, route, &door, &services, findings))
        .collect();
    let mut plain: Vec<PlainRoute<'_, '_>> = cluster
        .of_kind("HTTPRoute")
        .filter_map(|route| PlainRoute::of(cluster, route, &door, &services, findings))
        .collect();
    models.extend(
        plain
            .iter()
            .filter_map(|route| pool_route::for_models(route, findings)),
    );
    models.sort_by_cached_key(|route| route.object.age());
    let mut tools: Vec<ToolRoute<'_, '_>> = cluster
        .of_kind("MCPRoute")
        .filter_map(|route| ToolRoute::of(cluster, route, &door, &services, findings))
        .collect();
    tools.sort_by_cached_key(|route| route.object.age());
    let config = gateway_config::read(cluster, &door, findings);
    for route in &mut models {
        let all = config.costs.iter();
        let more = all.filter(|(key, _)| !route.costs.iter().any(|(own, _)| own == key));
        let more: Vec<_> = more.cloned().collect();
        route.costs.extend(more);
    }
    plain.sort_by_cached_key(|route| route.object.age());
    plain.extend(gloo::routes(cluster, &door, findings));
    let traffic = traffic::policies(cluster, &door, findings);
    let quotas = quota::policies(cluster, findings);
    let mut security = security::policies(cluster, &door, &services, findings);
    let oauth = tools::policies(&mut tools, &models, &plain, &mut security, findings);
    let says_who = |(name, _): &(String, Tree)| name == "identity";
    let has_own = own.iter().flatten().any(says_who);
    let taking = match has_own {
        true => Vec::new(),
        false => open::taking(&models, &plain, &tools),
    };
    let callers = Callers::of(
        (&models, &plain, &tools),
        &traffic,
        &security,
        cluster.mode.is_live.then_some(taking.as_slice()),
        findings,
    );
    let mut made = Made::new(
        &callers,
        &traffic,
        quotas,
        config.proxy,
        cluster.mode.is_live,
    );
    made.sorted(&models, findings);
    for route in &plain {
        made.plain(route, findings);
    }
    if cluster.mode.is_live {
        shared_addresses::check(&models, &plain, findings);
        shared_paths::check(&tools, &plain, findings);
    }
    let mcp = made.tools(&tools, oauth, findings);
    if cluster.mode.is_live && made.routes.is_empty() && mcp.is_none() {
        made.nothing(&door);
    }
    // What is not in force for another's fault has none of its own.
    if findings.faults.is_empty() && (!made.routes.is_empty() || mcp.is_some()) {
        made.unused(findings);
    }
    let unused = cluster.of_kind("AIServiceBackend").filter(|service| {
        let is_it = |r: &&Ref| r.target.spot.object == service.spot.object;
        !models
            .iter()
            .flat_map(|route| &route.rules)
            .any(|rule| rule.refs.iter().any(|r| is_it(&r)))
    });
    // What a route names and is faulty is not among its targets.
    let is_sound = findings.faults.is_empty();
    for service in unused.filter(|_| is_sound) {
        findings.warn(&service.spot, "no route goes to this", "");
    }
    let is_without = made.routes.is_empty() && mcp.is_none();
    if is_without && findings.faults.is_empty() && !cluster.mode.is_live {
        findings.fault(
            &door.gateway.spot,
            "no route is attached to this",
            "add an AIGatewayRoute, an HTTPRoute or an MCPRoute with this Gateway in its parentRefs",
        );
    }
    let own = own.unwrap_or_default();
    if own.iter().any(|(name, _)| name == "identity") {
        let issuers = security.issuers.iter().map(|issuer| &issuer.spot);
        for spot in issuers.chain(security.keys.as_ref().map(|keys| &keys.spot)) {
            let says = "is left out: `identity` of a file of ours says who calls";
            findings.warn(spot, says, "");
        }
    }
    let identity = callers.identity(&security, &door, findings);
    if !plain.is_empty() {
        security.told_to_services(callers.header(), &plain, findings);
    }
    let mut served: Vec<Served<'_>> = models
        .iter()
        .map(|route| {
            (
                route.object,
                route.hostnames.as_slice(),
                route.listeners.as_slice(),
            )
        })
        .chain(tools.iter().map(|route| {
            (
                route.object,
                route.hostnames.as_slice(),
                route.listeners.as_slice(),
            )
        }))
        .collect();
    // Of those that do not go together the older has it.
    served.sort_by_cached_key(|(object, ..)| object.age());
    let hosts = hosts(&served, &plain, &door, cluster.mode.is_live, findings);
    let serving = serving(&served, &door, findings);
    let document = [
        ("listen", Some(door.listen(hosts, serving))),
        ("identity", Some(identity)),
        ("authority", security.asked),
        ("cors", security.cors),
        ("client_address", client_address),
        ("access_log", access_log),
        ("bounds", bounds),
        (
            "backends",
            (!made.backends.is_empty()).then(|| made.backends.tree()),
        ),
        (
            "routes",
            (!made.routes.is_empty()).then_some(Tree::List(made.routes)),
        ),
        ("mcp", mcp),
    ];
    let there = document
        .into_iter()
        .filter_map(|(name, tree)| Some((name.to_owned(), tree?)));
    Some(beside(there.collect(), own))
}

/// The document with what a file of ours says beside.
fn beside(mut document: Vec<(String, Tree)>, own: Vec<(String, Tree)>) -> Tree {
    for (name, tree) in own {
        let Some((_, there)) = document.iter_mut().find(|(member, _)| *member == name) else {
            document.push((name, tree));
            continue;
        };
        match (name.as_str(), there.bare(), tree.bare()) {
            (
                "listen" | "bounds" | "client_address" | "authority",
                Tree::Map(lowered),
                Tree::Map(said),
            ) => {
                let kept = lowered
                    .iter()
                    .filter(|(name, _)| !said.iter().any(|(own, _)| own == name));
                *there = Tree::Map(kept.chain(said).cloned().collect());
            }
            ("mcp", Tree::Map(lowered), Tree::Map(said)) => {
                let own = said.clone();
                *there = beside_tools(lowered.clone(), own);
            }
            ("backends", Tree::Map(lowered), Tree::Map(said)) => {
                *there = Tree::Map(lowered.iter().chain(said).cloned().collect())
            }
            ("routes", Tree::List(lowered), Tree::List(said)) => {
                *there = Tree::List(lowered.iter().chain(said).cloned().collect())
            }
            _ => *there = tree,
        }
    }
    Tree::Map(document)
}

/// `mcp` with what a file of ours says of it: its servers and routes are added, and whatever else it says goes before.
fn beside_tools(mut lowered: Vec<(String, Tree)>, own: Vec<(String, Tree)>) -> Tree {
    for (name, tree) in own {
        let Some((_, there)) = lowered.iter_mut().find(|(member, _)| *member == name) else {
            lowered.push((name, tree));
            continue;
        };
        *there = match (name.as_str(), there.bare(), tree.bare()) {
            ("servers", Tree::Map(lowered), Tree::Map(said)) => {
                Tree::Map(lowered.iter().chain(said).cloned().collect())
            }
            ("routes", Tree::List(lowered), Tree::List(said)) => {
                Tree::List(lowered.iter().chain(said).cloned().collect())
            }
            _ => tree,
        };
    }
    Tree::Map(lowered)
}
