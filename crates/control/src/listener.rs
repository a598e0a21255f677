//! One listener of a Gateway or of a ListenerSet: its port, its host, its certificate, and which routes it lets in.
//!
//! Invariant: in a cluster a listener that cannot be served as it says is not served, and keeps no other from being.
//! Not here: which routes are attached (`gateway`), which listeners cannot stand beside others (`listeners`).

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use config::quoted;

use crate::certificate::certificate_of;
use crate::cluster::Cluster;
use crate::fields::{Fields, Item, Said};
use crate::findings::{Broken, Findings, Spot};
use crate::gateway_tls::{Clients, GatewayTls, validation};
use crate::namespaces::Namespaces;
use crate::object::{CORE, GATEWAY_API, Object};
use crate::reference::Reference;
use crate::tree::Tree;

/// Where calls come in.
pub(crate) struct Listener {
    pub(crate) spot: Spot,
    /// The object that says it, as faults name that.
    pub(crate) owner: Rc<str>,
    /// The namespace of that.
    home: String,
    /// Its place there.
    pub(crate) place: usize,
    pub(crate) name: String,
    /// What our document calls it.
    pub(crate) key: String,
    pub(crate) port: u64,
    pub(crate) protocol: String,
    /// The host that it is for, in lower case, where it says one.
    pub(crate) hostname: Option<(String, Spot)>,
    from: Namespaces,
    pub(crate) takes_routes: bool,
    pub(crate) address: Option<Tree>,
    pub(crate) tls: Option<Tree>,
    pub(crate) clients: Clients,
    pub(crate) is_served: bool,
}

impl Listener {
    /// One that lets in every route.
    pub(crate) fn open(spot: &Spot, port: u16, address: Tree, tls: Option<Tree>) -> Self {
        Self {
            spot: spot.clone(),
            owner: Rc::clone(&spot.object),
            home: String::new(),
            place: 0,
            name: String::new(),
            key: String::new(),
            port: port.into(),
            protocol: "HTTP".to_owned(),
            hostname: None,
            from: Namespaces::All,
            takes_routes: true,
            address: Some(address),
            tls,
            clients: Clients::None,
            is_served: true,
        }
    }

    pub(crate) fn of(
        cluster: &Cluster<'_>,
        owner: &Object<'_>,
        (place, item): (usize, &Item<'_>),
        (ip, gateway): (IpAddr, &GatewayTls<'_, '_>),
        findings: &mut Findings,
    ) -> Self {
        let mut of = item.fields(findings);
        let name = of.needed_text("name", findings);
        let port = of
            .need("port", findings)
            .and_then(|item| item.number(findings));
        let protocol = of.needed_text("protocol", findings);
        let hostname = of.text("hostname", findings);
        let name = name.map(|s| s.value).unwrap_or_default();
        let mut listener = Self {
            spot: item.spot.clone(),
            owner: Rc::clone(&owner.spot.object),
            home: owner.namespace.clone(),
            place,
            key: key_of(owner.kind, &owner.namespace, &owner.name, &name),
            name,
            port: 80,
            protocol: protocol
                .as_ref()
                .map_or("HTTP", |said| &said.value)
                .to_owned(),
            hostname: hostname.map(|s| (s.value.to_ascii_lowercase(), s.spot)),
            from: Namespaces::Same,
            takes_routes: true,
            address: None,
            tls: None,
            clients: Clients::None,
            is_served: true,
        };
        if let Some(port) = port {
            listener.port = port.value;
            match u16::try_from(port.value) {
                Ok(number) if number > 0 => {
                    let address = SocketAddr::new(ip, number).to_string();
                    listener.address = Some(Tree::text(address).of(&port.spot));
                }
                Ok(_) | Err(_) => findings.fault(&port.spot, "is no port", ""),
            }
        }
        let tls = of.take("tls");
        match listener.protocol.as_str() {
            "HTTP" => {
                if let Some(tls) = tls {
                    findings.fault(
                        &tls.spot,
                        "says TLS of a listener for HTTP",
                        "write protocol: HTTPS",
                    );
                }
            }
            "HTTPS" => match tls {
                Some(tls) => {
                    let port = listener.port;
                    let frontend = |findings: &mut Findings| {
                        gateway.clients(cluster, port, &item.spot, findings)
                    };
                    let clients = &mut listener.clients;
                    listener.tls = certificate(cluster, owner, &tls, clients, frontend, findings);
                }
                None => findings.fault(
                    &item.spot,
                    "needs tls for HTTPS",
                    "name a Secret in tls.certificateRefs",
                ),
            },
            other => {
                let says = format!("the protocol {} is not served", quoted(other));
                if let Some(said) = &protocol {
                    findings.break_off(Broken::Protocol, &said.spot, says, "write HTTP or HTTPS");
                }
            }
        }
        if let Some(allowed) = of.take("allowedRoutes") {
            let mut allowed = allowed.fields(findings);
            listener.takes_routes = kinds(&mut allowed, findings);
            if let Some(namespaces) = allowed.take("namespaces") {
                listener.from = Namespaces::of(&namespaces, Namespaces::Same, findings);
            }
            allowed.end(findings);
        }
        of.end(findings);
        listener
    }

    /// As our document writes it.
    pub(crate) fn tree(&self, serves_models: bool) -> Tree {
        Tree::map([
            ("name", Some(Tree::text(&self.key))),
            ("data", self.address.clone()),
            (
                "host",
                self.hostname
                    .as_ref()
                    .map(|(host, spot)| Tree::text(host).of(spot)),
            ),
            ("tls", self.tls.clone()),
            (
                "models",
                (!serves_models).then(|| Tree::Plain("false".into())),
            ),
        ])
        .of(&self.spot)
    }

    pub(crate) fn host(&self) -> Option<&str> {
        self.hostname.as_ref().map(|(host, _)| host.as_str())
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.protocol == "HTTPS"
    }

    /// Whether its protocol is served.
    pub(crate) fn is_http(&self) -> bool {
        matches!(self.protocol.as_str(), "HTTP" | "HTTPS")
    }

    /// Whether a route of this kind and namespace may be attached.
    pub(crate) fn lets_in(&self, cluster: &Cluster<'_>, route: &Object<'_>) -> bool {
        let is_from = self.from.lets_in(cluster, &self.home, &route.namespace);
        let is_kind = self.takes_routes || !cluster.mode.is_live;
        // In files that is its own fault, and none of its routes.
        let is_served = self.is_http() || !cluster.mode.is_live;
        is_from && is_kind && is_served
    }

    /// Whether a route with these hosts can have a call that comes by it.
    pub(crate) fn has_common(&self, hostnames: &[Said<String>]) -> bool {
        let Some(own) = self.host() else { return true };
        let mut all = hostnames.iter();
        hostnames.is_empty()
            || all.any(|said| common(&said.value.to_ascii_lowercase(), own).is_some())
    }
}

fn certificate(
    cluster: &Cluster<'_>,
    owner: &Object<'_>,
    item: &Item<'_>,
    clients: &mut Clients,
    frontend: impl FnOnce(&mut Findings) -> (Option<Tree>, Clients),
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
    // What a listener says itself goes before what its Gateway says.
    let (client_ca, asked) = match of.take("frontendValidation") {
        Some(item) => validation(cluster, owner, &item, findings),
        None => frontend(findings),
    };
    *clients = asked;
    of.end(findings);
    let [one] = refs.as_slice() else {
        findings.fault(
            &item.spot,
            "needs one certificate",
            "name one Secret in certificateRefs",
        );
        return None;
    };
    let secret = Reference::whole(one, (CORE, "Secret"), &owner.namespace, findings)?;
    let [certificate, key] = certificate_of(cluster, owner, &secret, findings)?;
    let made = Tree::map([
        ("certificate", Some(certificate)),
        ("key", Some(key)),
        ("client_ca", client_ca),
    ]);
    Some(made.of(&item.spot))
}

/// What our document calls a listener: those of ListenerSets may have names that others have, too.
pub(crate) fn key_of(kind: &str, namespace: &str, owner: &str, name: &str) -> String {
    match kind {
        "ListenerSet" => format!("{namespace}/{owner}/{name}"),
        _ => name.to_owned(),
    }
}

/// What a route's host and a listener's have in common, where they have something.
pub(crate) fn common(route: &str, listener: &str) -> Option<String> {
    match (is_below(route, listener), is_below(listener, route)) {
        (true, _) => Some(route.to_owned()),
        (false, true) => Some(listener.to_owned()),
        (false, false) => None,
    }
}

/// Whether a host is one of those that a name stands for, `*.` standing for whatever is before.
fn is_below(host: &str, name: &str) -> bool {
    let end = name.strip_prefix('*');
    host == name || end.is_some_and(|end| host.len() > end.len() && host.ends_with(end))
}

/// Whether the kinds of routes that a listener lets in are served: an AIGatewayRoute is an HTTPRoute to it.
fn kinds(allowed: &mut Fields<'_>, findings: &mut Findings) -> bool {
    let kinds = allowed.list("kinds", findings);
    let mut has_http = kinds.is_empty();
    let mut other = None;
    for item in &kinds {
        let mut of = item.fields(findings);
        let group = of.text("group", findings);
        let kind = of.needed_text("kind", findings);
        of.end(findings);
        let is_http = group.is_none_or(|group| group.value == GATEWAY_API)
            && kind.is_some_and(|kind| kind.value == "HTTPRoute");
        has_http |= is_http;
        other = other.or((!is_http).then_some(item));
    }
    if let Some(item) = other {
        let says = match has_http {
            true => "lets in a kind of routes that is not served",
            false => "lets in no route that is served",
        };
        findings.break_off(
            Broken::RouteKind,
            &item.spot,
            says,
            "write kind: HTTPRoute, or leave kinds out",
        );
    }
    has_http
}
