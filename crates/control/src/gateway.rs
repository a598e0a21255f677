//! The Gateway: where the gate listens, and what is attached where.
//!
//! Invariant: there is one Gateway; each of its listeners is served as it says, or not at all.
//! Not here: single listeners (`listener`), who may call (`security`), routes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::cluster::Cluster;
use crate::fields::{Fields, Item, Said};
use crate::findings::{Attached, Broken, Findings, Parent, Spot};
use crate::gateway_tls::{GatewayTls, Shown};
use crate::listener::{self, Listener};
use crate::listener_set;
use crate::listeners::{self, Owner};
use crate::object::{AI, ENVOY, GATEWAY_API, Object};
use crate::reference::Reference;
use crate::tree::Tree;

/// What a route may be attached to.
const PARENTS: [(&str, &str); 2] = [(GATEWAY_API, "Gateway"), (GATEWAY_API, "ListenerSet")];

/// What is said of a Gateway none of whose listeners can be served.
pub(crate) const NOT_SERVED: &str = "has no listener that can be served";

/// The door that routes are attached to.
pub(crate) struct Door<'c, 'n> {
    pub(crate) gateway: &'c Object<'n>,
    /// Those that are served.
    pub(crate) listeners: Vec<Listener>,
    /// Those that are not: routes are attached to them, and have no calls by them.
    unserved: Vec<Listener>,
    /// The ListenerSets that it lets in.
    sets: Vec<&'c Object<'n>>,
    /// The certificate that upstreams are shown.
    pub(crate) shown: Shown,
    pub(crate) is_loopback: bool,
    /// Calls are told apart by listeners.
    pub(crate) is_told_apart: bool,
}

impl<'c, 'n> Door<'c, 'n> {
    pub(crate) fn of(cluster: &'c Cluster<'n>, findings: &mut Findings) -> Option<Self> {
        let mut gateways = cluster.of_kind("Gateway");
        let gateway = gateways.next()?;
        for other in gateways {
            let says = format!(
                "is a second Gateway beside {}, and a gate is one",
                gateway.id()
            );
            findings.fault(&other.spot, says, "run a gate for each, or keep one");
        }
        let mut spec = gateway.spec(findings);
        let class = spec.needed_text("gatewayClassName", findings);
        let mut classes = cluster.of_kind("GatewayClass").peekable();
        let is_known = |name: &str| {
            cluster
                .of_kind("GatewayClass")
                .any(|class| class.name == name)
        };
        if let Some(class) =
            class.filter(|class| classes.peek().is_some() && !is_known(&class.value))
        {
            let says = format!("there is no GatewayClass {}", config::quoted(&class.value));
            findings.fault(&class.spot, says, "");
        }
        if let Some(infrastructure) = spec.take("infrastructure") {
            let mut of = infrastructure.fields(findings);
            of.skip(&["labels", "annotations"]);
            parameters(cluster, gateway, &mut of, findings);
            of.end(findings);
        }
        let addresses = spec.list("addresses", findings);
        let ip = match cluster.mode.bind {
            Some(ip) => {
                static_addresses(cluster, &addresses, findings);
                ip
            }
            None => bound(&addresses, findings),
        };
        let items = spec.list("listeners", findings);
        if items.is_empty() {
            let hint = "add one to spec.listeners";
            findings.fault(&gateway.spot, "has no listener", hint);
        }
        let allowed = listener_set::allowed(&mut spec, findings);
        spec.refuse(
            &[
                ("backendTLS", "write a BackendTLSPolicy"),
                (
                    "defaultScope",
                    "name the Gateway in each route's parentRefs",
                ),
            ],
            findings,
        );
        let tls = GatewayTls::of(cluster, gateway, &mut spec, findings);
        spec.end(findings);
        let mut owners = listener_set::let_in(cluster, gateway, &allowed, findings);
        let sets = owners.iter().map(|owner| owner.object).collect();
        let own = Owner {
            object: gateway,
            items,
        };
        owners.insert(0, own);
        let all = listeners::all(cluster, &owners, ip, &tls, findings);
        let (listeners, unserved): (Vec<Listener>, Vec<Listener>) =
            all.into_iter().partition(|one| one.is_served);
        if listeners.is_empty() && cluster.mode.is_live {
            findings.fault(&gateway.spot, NOT_SERVED, "");
        }
        Some(Self {
            gateway,
            is_told_apart: listeners.len() > 1
                || cluster.mode.is_live && !cluster.mode.has_own_address,
            listeners,
            unserved,
            sets,
            shown: tls.shown,
            is_loopback: ip.is_loopback(),
        })
    }

    /// One on all of this machine's addresses, for routes of every namespace.
    pub(crate) fn at(gateway: &'c Object<'n>, port: u16, tls: Option<Tree>) -> Self {
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).to_string();
        let address = Tree::text(address).of(&gateway.spot);
        Self {
            gateway,
            listeners: vec![Listener::open(&gateway.spot, port, address, tls)],
            unserved: Vec::new(),
            sets: Vec::new(),
            shown: Shown::None,
            is_loopback: false,
            is_told_apart: false,
        }
    }

    /// Where the gate listens; routes may say which hosts it is for, and which listeners serve models.
    pub(crate) fn listen(&self, hosts: Option<Tree>, models: Option<&[String]>) -> Tree {
        let one = self.listeners.first().filter(|_| !self.is_told_apart);
        let serves = |one: &Listener| models.is_none_or(|names| names.contains(&one.key));
        let several = self.listeners.iter().map(|one| one.tree(serves(one)));
        let several = Tree::List(several.collect());
        let members = [
            ("data", one.and_then(|one| one.address.clone())),
            ("hosts", hosts),
            ("tls", one.and_then(|one| one.tls.clone())),
            ("listeners", self.is_told_apart.then_some(several)),
        ];
        Tree::map(members).of(&self.gateway.spot)
    }

    /// The hosts that the listener and a route have in common: none where the route is not attached. A listener without a host
    /// name leaves those of the route, and so do several, which are told apart by their hosts first.
    pub(crate) fn hosts_of(&self, route: &[Said<String>]) -> Vec<String> {
        let route = route.iter().map(|said| said.value.to_ascii_lowercase());
        let one = self.listeners.first().filter(|_| !self.is_told_apart);
        let Some((own, _)) = one.and_then(|one| one.hostname.as_ref()) else {
            return route.collect();
        };
        let mut common: Vec<String> = route
            .filter_map(|host| listener::common(&host, own))
            .collect();
        common.dedup();
        common
    }

    /// The host that the gate is for, where its one listener says one.
    pub(crate) fn hostname(&self) -> Option<&(String, Spot)> {
        let one = self.listeners.first().filter(|_| !self.is_told_apart);
        one.and_then(|one| one.hostname.as_ref())
    }

    /// The listeners that a route is attached to, by name; a fault where it is attached to none, but in a cluster, where its status
    /// says so for each of its parents.
    pub(crate) fn holds(
        &self,
        cluster: &Cluster<'_>,
        route: &Object<'_>,
        spec: &mut Fields<'_>,
        hostnames: &[Said<String>],
        findings: &mut Findings,
    ) -> Vec<String> {
        let parents = spec.list("parentRefs", findings);
        if parents.is_empty() {
            findings.fault(
                &route.spot,
                "is attached to no Gateway",
                "name one in spec.parentRefs",
            );
        }
        let mut held: Vec<String> = Vec::new();
        for (index, item) in parents.iter().enumerate() {
            let mut of = item.fields(findings);
            let section = of.text("sectionName", findings);
            let port = of.number("port", findings);
            let parent = Reference::take(
                &mut of,
                (GATEWAY_API, "Gateway"),
                &route.namespace,
                findings,
            );
            of.end(findings);
            // In a cluster a route may be attached to others, too, which are not this gate's to judge.
            let is_ours = |of: &Reference| !cluster.mode.is_live || self.is_ours(cluster, of);
            let parent = parent.filter(is_ours);
            let Some(parent) = parent.filter(|of| of.is_one_of(&PARENTS, findings)) else {
                continue;
            };
            let owner = self.owners().find(|owner| parent.is_to(owner));
            if owner.is_none() && !cluster.mode.is_live {
                // Another one that is here has its fault.
                if !cluster.objects.iter().any(|object| parent.is_to(object)) {
                    let says = format!("there is no {}", parent.shown());
                    let hint = match parent.kind.as_str() {
                        "Gateway" => format!("the one that is here is {}", self.gateway.id()),
                        _ => "add it to these files".to_owned(),
                    };
                    findings.fault(&parent.spot, says, hint);
                }
                continue;
            }
            let section = section.as_ref().map(|said| said.value.as_str());
            let port = port.map(|port| port.value);
            let attached = match owner {
                Some(owner) => self.attached(cluster, (route, owner), section, port, hostnames),
                None => Err(Attached {
                    reason: "NoMatchingParent",
                    says: "names a ListenerSet that the Gateway does not let in".to_owned(),
                    hint: "its status says why".to_owned(),
                }),
            };
            if let Ok(names) = &attached {
                let is_served = |name: &&String| self.listeners.iter().any(|one| one.key == **name);
                let new = names.iter().filter(is_served);
                let new: Vec<String> = new.filter(|name| !held.contains(name)).cloned().collect();
                held.extend(new);
            }
            match attached {
                attached if cluster.mode.is_live => findings.parents.push(Parent {
                    route: route.spot.object.clone(),
                    index,
                    attached,
                }),
                Ok(_) => {}
                Err(Attached { says, hint, .. }) => findings.fault(&item.spot, says, hint),
            }
        }
        held
    }

    /// Whether what a policy is for is to be judged here: in a cluster another Gateway is another gate's.
    pub(crate) fn judges(&self, cluster: &Cluster<'_>, target: &Reference) -> bool {
        let is_other = target.is_of(GATEWAY_API, "Gateway") && !target.is_to(self.gateway);
        !(is_other && cluster.mode.is_live)
    }

    /// What routes may be attached to.
    fn owners(&self) -> impl Iterator<Item = &Object<'n>> {
        std::iter::once(self.gateway).chain(self.sets.iter().copied())
    }

    /// Whether a route's parent in a cluster is this gate's: its Gateway, or a ListenerSet that names that, let in or not.
    fn is_ours(&self, cluster: &Cluster<'_>, parent: &Reference) -> bool {
        let is_set = || {
            let key = [&parent.kind, &parent.namespace, &parent.name].map(Clone::clone);
            let mut there = cluster.of_kind("ListenerSet");
            parent.is_of(GATEWAY_API, "ListenerSet")
                && (there.any(|set| parent.is_to(set)) || cluster.mode.refused.contains_key(&key))
        };
        parent.is_to(self.gateway) || is_set()
    }

    /// The listeners that one of a route's parents comes to.
    fn attached(
        &self,
        cluster: &Cluster<'_>,
        (route, owner): (&Object<'_>, &Object<'_>),
        section: Option<&str>,
        port: Option<u64>,
        hostnames: &[Said<String>],
    ) -> Result<Vec<String>, Attached> {
        let is_named = |one: &&Listener| {
            one.owner == owner.spot.object
                && section.is_none_or(|section| section == one.name)
                && port.is_none_or(|port| port == one.port)
        };
        let all = || self.listeners.iter().chain(&self.unserved);
        let named: Vec<&Listener> = all().filter(is_named).collect();
        if named.is_empty() {
            return Err(Attached {
                reason: "NoMatchingParent",
                says: format!("names a listener that the {} does not have", owner.kind),
                hint: {
                    let own = all().filter(|one| one.owner == owner.spot.object);
                    let names: Vec<&str> = own.map(|one| one.name.as_str()).collect();
                    match names.as_slice() {
                        [one] => format!("its listener is {one}"),
                        names => format!("its listeners are {}", names.join(", ")),
                    }
                },
            });
        }
        let lets_in = |one: &&Listener| one.lets_in(cluster, route);
        let open: Vec<&Listener> = named.into_iter().filter(lets_in).collect();
        if open.is_empty() {
            return Err(Attached {
                reason: "NotAllowedByListeners",
                says: match route.namespace == owner.namespace {
                    false => format!(
                        "is not let in by the {} {}, which is in another namespace",
                        owner.kind,
                        owner.id()
                    ),
                    true => "is not let in by the listeners that it names".to_owned(),
                },
                hint: "write allowedRoutes: { namespaces: { from: All } } at its listener"
                    .to_owned(),
            });
        }
        let has_host = |one: &&Listener| self.is_told_apart && !one.has_common(hostnames);
        if open.iter().all(has_host) {
            return Err(Attached {
                reason: "NoMatchingListenerHostname",
                says: "has no host in common with the listeners that it names".to_owned(),
                hint: "write one of theirs in hostnames".to_owned(),
            });
        }
        let open = open.into_iter().filter(|one| !has_host(one));
        Ok(open.map(|one| one.key.clone()).collect())
    }
}

/// What a Gateway asks for where it is said where the gate listens: a fault for each that clients do not reach it by.
fn static_addresses(cluster: &Cluster<'_>, addresses: &[Item<'_>], findings: &mut Findings) {
    for item in addresses {
        let mut of = item.fields(findings);
        let kind = of.text("type", findings);
        let value = of.text("value", findings);
        of.end(findings);
        let is_known = |kind: &str| matches!(kind, "IPAddress" | "Hostname");
        if let Some(kind) = kind.filter(|kind| !is_known(&kind.value)) {
            let says = format!("the type {} is not known", config::quoted(&kind.value));
            let hint = "write IPAddress or Hostname";
            findings.break_off(Broken::AddressType, &kind.spot, says, hint);
            continue;
        }
        let all = &cluster.mode.addresses;
        let is_had = |value: &Said<String>| all.is_empty() || all.contains(&value.value);
        let is_told = cluster.mode.lacks_address;
        if let Some(value) = value.filter(|value| !is_told && !is_had(value)) {
            let says = format!("is not where clients reach the gate: {}", all.join(", "));
            let hint = "write one of these, or say it with --address";
            findings.break_off(Broken::AddressNotUsable, &value.spot, says, hint);
        }
    }
}

/// The address that the Gateway asks for; all of this machine's unless said.
fn bound(addresses: &[Item<'_>], findings: &mut Findings) -> IpAddr {
    let mut found = None;
    for item in addresses {
        let mut of = item.fields(findings);
        let kind = of.text("type", findings);
        let value = of.text("value", findings);
        of.end(findings);
        let is_ip = kind.is_none_or(|kind| kind.value == "IPAddress");
        let ip = value
            .and_then(|value| value.value.parse().ok())
            .filter(|_| is_ip);
        match (ip, found) {
            (Some(ip), None) => found = Some(ip),
            (Some(_), Some(_)) => findings.fault(
                &item.spot,
                "is a second address, and a gate listens on one",
                "keep one",
            ),
            (None, _) => findings.break_off(
                Broken::AddressType,
                &item.spot,
                "is not an IP address to listen on",
                "write type: IPAddress and one of this machine's",
            ),
        }
    }
    found.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

/// The EnvoyProxy that a Gateway or its class names.
fn parameters(
    cluster: &Cluster<'_>,
    from: &Object<'_>,
    of: &mut Fields<'_>,
    findings: &mut Findings,
) {
    let Some(item) = of.take("parametersRef") else {
        return;
    };
    let Some(named) = Reference::whole(&item, (ENVOY, "EnvoyProxy"), &from.namespace, findings)
    else {
        return;
    };
    if named.is_one_of(&[(ENVOY, "EnvoyProxy")], findings) {
        cluster.resolve(from, &named, findings);
    }
}

/// What classes say, which is which parameters they have.
pub(crate) fn classes(cluster: &Cluster<'_>, findings: &mut Findings) {
    for class in cluster.of_kind("GatewayClass") {
        let mut spec = class.spec(findings);
        spec.skip(&["controllerName", "description"]);
        if let Some(item) = spec.take("parametersRef") {
            let named = Reference::whole(&item, (ENVOY, "EnvoyProxy"), &class.namespace, findings);
            let known = |named: &Reference| {
                cluster
                    .of_kind("EnvoyProxy")
                    .any(|proxy| named.is_to(proxy))
            };
            if let Some(named) = named.filter(|named| !known(named)) {
                let says = format!(
                    "there is no {} {}/{}",
                    named.kind, named.namespace, named.name
                );
                findings.fault(&named.spot, says, "add it to these files");
            }
        }
        spec.end(findings);
    }
}

/// Whether what a policy for calls names is here: the Gateway, or a route; a fault where it is not.
pub(crate) fn is_here(
    cluster: &Cluster<'_>,
    door: &Door<'_, '_>,
    target: &Reference,
    findings: &mut Findings,
) -> bool {
    let kinds = [
        (GATEWAY_API, "Gateway"),
        (GATEWAY_API, "HTTPRoute"),
        (AI, "AIGatewayRoute"),
    ];
    if target.is_of(AI, "MCPRoute") {
        let says = "names an MCPRoute, and what holds for its calls is said of the Gateway";
        let hint = "name the Gateway; who calls may be said in the route's own securityPolicy";
        findings.break_off(Broken::Kind, &target.spot, says, hint);
        return false;
    }
    if !target.is_one_of(&kinds, findings) {
        return false;
    }
    let is_here = target.is_to(door.gateway)
        || cluster
            .objects
            .iter()
            .any(|object| target.is_to_route(object));
    if !is_here {
        let says = format!("there is no {}", target.shown());
        findings.fault(&target.spot, says, "add it to these files");
    }
    is_here
}

/// What a policy is for, as far as that is to be judged here.
pub(crate) fn targets(
    spec: &mut Fields<'_>,
    policy: &Object<'_>,
    is_judged: impl Fn(&Reference) -> bool,
    findings: &mut Findings,
) -> Vec<Reference> {
    let single = spec.take("targetRef");
    let mut items = spec.list("targetRefs", findings);
    items.extend(single);
    spec.refuse(
        &[(
            "targetSelectors",
            "labels are not read: name what it is for in targetRefs",
        )],
        findings,
    );
    if items.is_empty() {
        findings.fault(
            &policy.spot,
            "is for nothing",
            "name what it is for in spec.targetRefs",
        );
    }
    let target = |item: &Item<'_>, findings: &mut Findings| {
        let mut of = item.fields(findings);
        let target = Reference::take(
            &mut of,
            (GATEWAY_API, "Gateway"),
            &policy.namespace,
            findings,
        );
        if target.as_ref().is_some_and(|target| !is_judged(target)) {
            return None;
        }
        of.refuse(&[("sectionName", "the policy is for the whole")], findings);
        of.end(findings);
        if let Some(target) = target
            .as_ref()
            .filter(|target| target.namespace != policy.namespace)
        {
            let says = "is in another namespace, and a policy is for objects of its own";
            findings.fault(&target.spot, says, "write the policy there");
        }
        target
    };
    items
        .iter()
        .filter_map(|item| target(item, findings))
        .collect()
}
