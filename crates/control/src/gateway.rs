//! The Gateway: where the gate listens, and which hosts it answers for.
//!
//! Invariant: there is one Gateway with one listener, or a fault.
//! Not here: who may call (`security`), routes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use config::quoted;

use crate::cluster::Cluster;
use crate::fields::{Fields, Item, Said};
use crate::findings::{Findings, Spot};
use crate::object::{AI, CORE, ENVOY, GATEWAY_API, Object};
use crate::reference::Reference;
use crate::tree::Tree;

/// The door that routes are attached to.
pub(crate) struct Door<'c, 'n> {
    pub(crate) gateway: &'c Object<'n>,
    listener: String,
    port: u64,
    takes_other_namespaces: bool,
    /// Where the listener says which hosts it is for.
    pub(crate) hostname: Option<(String, Spot)>,
    pub(crate) is_loopback: bool,
    address: Option<Tree>,
    tls: Option<Tree>,
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
            let says = format!("there is no GatewayClass {}", quoted(&class.value));
            findings.fault(&class.spot, says, "");
        }
        if let Some(infrastructure) = spec.take("infrastructure") {
            let mut of = infrastructure.fields(findings);
            of.skip(&["labels", "annotations"]);
            parameters(cluster, gateway, &mut of, findings);
            of.end(findings);
        }
        let mut door = Self {
            gateway,
            listener: String::new(),
            port: 80,
            takes_other_namespaces: false,
            hostname: None,
            is_loopback: false,
            address: None,
            tls: None,
        };
        let addresses = spec.list("addresses", findings);
        let ip = bound(&addresses, findings);
        door.is_loopback = ip.is_loopback();
        let listeners = spec.list("listeners", findings);
        match listeners.as_slice() {
            [] => findings.fault(
                &gateway.spot,
                "has no listener",
                "add one to spec.listeners",
            ),
            [first, rest @ ..] => {
                if let Some(other) = rest.first() {
                    let says = "is a second listener, and a gate has one";
                    findings.fault(&other.spot, says, "run a gate for each, or keep one");
                }
                door.listener(cluster, first, ip, findings);
            }
        }
        spec.refuse(
            &[
                ("tls", "trust of clients' certificates stands in the listener's tls.frontendValidation"),
                ("backendTLS", "write a BackendTLSPolicy"),
                ("allowedListeners", "write the listener in the Gateway"),
                ("defaultScope", "name the Gateway in each route's parentRefs"),
            ],
            findings,
        );
        spec.end(findings);
        Some(door)
    }

    /// One on all of this machine's addresses, for routes of every namespace.
    pub(crate) fn at(gateway: &'c Object<'n>, port: u16, tls: Option<Tree>) -> Self {
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).to_string();
        Self {
            gateway,
            listener: String::new(),
            port: port.into(),
            takes_other_namespaces: true,
            hostname: None,
            is_loopback: false,
            address: Some(Tree::text(address).of(&gateway.spot)),
            tls,
        }
    }

    fn listener(
        &mut self,
        cluster: &Cluster<'_>,
        item: &Item<'_>,
        ip: IpAddr,
        findings: &mut Findings,
    ) {
        let mut of = item.fields(findings);
        self.listener = of
            .needed_text("name", findings)
            .map(|s| s.value)
            .unwrap_or_default();
        let port = of
            .need("port", findings)
            .and_then(|item| item.number(findings));
        let protocol = of.needed_text("protocol", findings);
        self.hostname = of.text("hostname", findings).map(|s| (s.value, s.spot));
        if let Some(port) = port {
            self.port = port.value;
            match u16::try_from(port.value) {
                Ok(number) if number > 0 => {
                    let address = SocketAddr::new(ip, number).to_string();
                    self.address = Some(Tree::text(address).of(&port.spot));
                }
                Ok(_) | Err(_) => findings.fault(&port.spot, "is no port", ""),
            }
        }
        let tls = of.take("tls");
        match protocol.as_ref().map(|said| said.value.as_str()) {
            Some("HTTP") | None => {
                if let Some(tls) = tls {
                    findings.fault(
                        &tls.spot,
                        "says TLS of a listener for HTTP",
                        "write protocol: HTTPS",
                    );
                }
            }
            Some("HTTPS") => match tls {
                Some(tls) => self.tls = self.certificate(cluster, &tls, findings),
                None => findings.fault(
                    &item.spot,
                    "needs tls for HTTPS",
                    "name a Secret in tls.certificateRefs",
                ),
            },
            Some(other) => {
                let says = format!("the protocol {} is not served", quoted(other));
                if let Some(said) = &protocol {
                    findings.fault(&said.spot, says, "write HTTP or HTTPS");
                }
            }
        }
        if let Some(allowed) = of.take("allowedRoutes") {
            let mut allowed = allowed.fields(findings);
            kinds(&mut allowed, findings);
            if let Some(namespaces) = allowed.take("namespaces") {
                let mut of = namespaces.fields(findings);
                let from = of.text("from", findings);
                match from.as_ref().map(|said| said.value.as_str()) {
                    Some("All") => self.takes_other_namespaces = true,
                    Some("Same") | None => {}
                    Some(_) => findings.fault(
                        &namespaces.spot,
                        "chooses namespaces in a way that is not read",
                        "write from: All or Same",
                    ),
                }
                of.refuse(
                    &[(
                        "selector",
                        "labels of namespaces are not read: write from: All or Same",
                    )],
                    findings,
                );
                of.end(findings);
            }
            allowed.end(findings);
        }
        of.end(findings);
    }

    fn certificate(
        &self,
        cluster: &Cluster<'_>,
        item: &Item<'_>,
        findings: &mut Findings,
    ) -> Option<Tree> {
        let mut of = item.fields(findings);
        if let Some(mode) = of
            .text("mode", findings)
            .filter(|mode| mode.value != "Terminate")
        {
            findings.fault(&mode.spot, "is not served", "write Terminate");
        }
        of.pass_over(
            &[("options", "versions and ciphers are chosen by the gate")],
            findings,
        );
        let refs = of.list("certificateRefs", findings);
        let mut client_ca = None;
        if let Some(validation) = of.take("frontendValidation") {
            let mut inside = validation.fields(findings);
            let roots = inside.list("caCertificateRefs", findings);
            if roots.is_empty() {
                let says =
                    "names no roots for clients' certificates, and would let in who has none";
                findings.fault(&validation.spot, says, "write caCertificateRefs");
            }
            client_ca = authority_file(cluster, self.gateway, &roots, findings);
            let mode = inside.text("mode", findings);
            if let Some(mode) = mode.filter(|mode| mode.value != "AllowValidOnly") {
                let hint = "clients' certificates are required";
                findings.fault(&mode.spot, "is not honoured here", hint);
            }
            inside.end(findings);
        }
        of.end(findings);
        let [one] = refs.as_slice() else {
            findings.fault(
                &item.spot,
                "needs one certificate",
                "name one Secret in certificateRefs",
            );
            return None;
        };
        let secret = Reference::whole(one, (CORE, "Secret"), &self.gateway.namespace, findings)?;
        let [certificate, key] = certificate_of(cluster, self.gateway, &secret, findings)?;
        let made = Tree::map([
            ("certificate", Some(certificate)),
            ("key", Some(key)),
            ("client_ca", client_ca),
        ]);
        Some(made.of(&item.spot))
    }

    /// Where the gate listens; routes may say which hosts it is for.
    pub(crate) fn listen(&self, hosts: Option<Tree>) -> Tree {
        let members = [
            ("data", self.address.clone()),
            ("hosts", hosts),
            ("tls", self.tls.clone()),
        ];
        Tree::map(members).of(&self.gateway.spot)
    }

    /// The hosts that the listener and a route have in common: none where the route is not attached. A listener without a host
    /// name leaves those of the route.
    pub(crate) fn hosts_of(&self, route: &[Said<String>]) -> Vec<String> {
        let route = route.iter().map(|said| said.value.to_ascii_lowercase());
        let Some((own, _)) = &self.hostname else {
            return route.collect();
        };
        let own = own.to_ascii_lowercase();
        let mut common: Vec<String> = route
            .filter_map(
                |host| match (is_below(&host, &own), is_below(&own, &host)) {
                    (true, _) => Some(host),
                    (false, true) => Some(own.clone()),
                    (false, false) => None,
                },
            )
            .collect();
        common.dedup();
        common
    }

    /// Whether a route is attached here; a fault where it cannot be.
    pub(crate) fn holds(
        &self,
        cluster: &Cluster<'_>,
        route: &Object<'_>,
        spec: &mut Fields<'_>,
        findings: &mut Findings,
    ) -> bool {
        let parents = spec.list("parentRefs", findings);
        if parents.is_empty() {
            findings.fault(
                &route.spot,
                "is attached to no Gateway",
                "name one in spec.parentRefs",
            );
        }
        let mut is_held = false;
        for item in parents {
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
            let is_ours = |parent: &Reference| !cluster.mode.is_live || parent.is_to(self.gateway);
            let parent = parent.filter(is_ours);
            let Some(parent) =
                parent.filter(|p| p.is_one_of(&[(GATEWAY_API, "Gateway")], findings))
            else {
                continue;
            };
            if !parent.is_to(self.gateway) {
                // Another one that is here has its fault.
                if !cluster
                    .of_kind("Gateway")
                    .any(|gateway| parent.is_to(gateway))
                {
                    let says = format!("there is no Gateway {}/{}", parent.namespace, parent.name);
                    findings.fault(
                        &parent.spot,
                        says,
                        format!("the one that is here is {}", self.gateway.id()),
                    );
                }
                continue;
            }
            let is_listener = section
                .as_ref()
                .is_none_or(|section| section.value == self.listener);
            if !is_listener || port.is_some_and(|port| port.value != self.port) {
                let says = "names a listener that the Gateway does not have";
                findings.fault(
                    &item.spot,
                    says,
                    format!("its listener is {}", self.listener),
                );
            } else if route.namespace != self.gateway.namespace && !self.takes_other_namespaces {
                let says = format!(
                    "is not let in by the Gateway {}, which is in another namespace",
                    self.gateway.id()
                );
                let hint = "write allowedRoutes: { namespaces: { from: All } } at its listener";
                findings.fault(&item.spot, says, hint);
            } else {
                is_held = true;
            }
        }
        is_held
    }
}

/// Whether a host is one of those that a name stands for, `*.` standing for whatever is before.
fn is_below(host: &str, name: &str) -> bool {
    let end = name.strip_prefix('*');
    host == name || end.is_some_and(|end| host.len() > end.len() && host.ends_with(end))
}

/// Which kinds of routes a listener lets in: an AIGatewayRoute is an HTTPRoute to it.
fn kinds(allowed: &mut Fields<'_>, findings: &mut Findings) {
    let kinds = allowed.list("kinds", findings);
    let mut has_http = kinds.is_empty();
    for item in &kinds {
        let mut of = item.fields(findings);
        let group = of.text("group", findings);
        let kind = of.needed_text("kind", findings);
        of.end(findings);
        has_http |= group.is_none_or(|group| group.value == GATEWAY_API)
            && kind.is_some_and(|kind| kind.value == "HTTPRoute");
    }
    if let Some(first) = kinds.first().filter(|_| !has_http) {
        let says = "lets in no route that is served";
        findings.fault(
            &first.spot,
            says,
            "write kind: HTTPRoute, or leave kinds out",
        );
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
            (None, _) => findings.fault(
                &item.spot,
                "is no IP address to listen on",
                "write type: IPAddress and one of this machine's",
            ),
        }
    }
    found.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

/// The one bundle of roots that is named, as a file.
pub(crate) fn authority_file(
    cluster: &Cluster<'_>,
    from: &Object<'_>,
    refs: &[Item<'_>],
    findings: &mut Findings,
) -> Option<Tree> {
    let [item, rest @ ..] = refs else {
        return None;
    };
    if let Some(second) = rest.first() {
        let says = "is a second bundle of roots, and there is one";
        findings.fault(&second.spot, says, "write both into one ConfigMap");
    }
    let named = Reference::whole(item, (CORE, "ConfigMap"), &from.namespace, findings)?;
    cluster.file(from, &named, &["ca.crt"], findings)
}

/// A certificate and its key, as files.
pub(crate) fn certificate_of(
    cluster: &Cluster<'_>,
    from: &Object<'_>,
    secret: &Reference,
    findings: &mut Findings,
) -> Option<[Tree; 2]> {
    let certificate = cluster.file(from, secret, &["tls.crt"], findings)?;
    let key = cluster.file(from, secret, &["tls.key"], findings)?;
    Some([certificate, key])
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

/// What a policy is for.
pub(crate) fn targets(
    spec: &mut Fields<'_>,
    policy: &Object<'_>,
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
        of.refuse(&[("sectionName", "the policy is for the whole")], findings);
        let target = Reference::take(
            &mut of,
            (GATEWAY_API, "Gateway"),
            &policy.namespace,
            findings,
        );
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
