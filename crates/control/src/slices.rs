//! Services of a cluster: the addresses of their pods, as EndpointSlices tell them.
//!
//! Invariant: calls go to endpoints that are ready, and to those of other zones only where none is meant for the gate's own.
//! Not here: whether a Service may be named (`reference`), its share of a rule's calls (`backends`).

use std::net::IpAddr;

use policy::address::is_allowed;

use crate::backend::Address;
use crate::cluster::Cluster;
use crate::fields::{Fields, Item};
use crate::findings::{Broken, Findings};
use crate::object::Object;
use crate::reference::Reference;

/// What a port of a Service comes to.
pub(crate) struct Reached {
    pub(crate) addresses: Vec<Address>,
    /// HTTP/2 without TLS is spoken there.
    pub(crate) is_http2: bool,
    /// What the port is called.
    pub(crate) port_name: String,
}

/// One endpoint of a slice.
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u64,
    /// The zones that it is meant for; none where that is not said.
    pub(crate) zones: Vec<String>,
}

/// The addresses behind a port of a Service; none where no endpoint is ready.
pub(crate) fn of_service(
    cluster: &Cluster<'_>,
    route: &Object<'_>,
    named: &Reference,
    port: u64,
    findings: &mut Findings,
) -> Option<Reached> {
    let service = cluster.resolve(route, named, findings)?;
    let mut spec = service.spec(&mut Findings::default());
    let ports = spec.list("ports", &mut Findings::default());
    let is_it = |of: &mut Fields<'_>| number(of, "port") == Some(port);
    let found = ports.iter().find_map(|item| {
        let mut of = item.fields(&mut Findings::default());
        is_it(&mut of).then_some(of)
    });
    let Some(mut found) = found else {
        let says = format!(
            "names the port {port}, which {} does not have",
            named.shown()
        );
        findings.break_off(Broken::Missing, &named.spot, says, "write one of its ports");
        return None;
    };
    let name = text(&mut found, "name").unwrap_or_default();
    let protocol = text(&mut found, "appProtocol");
    let is_http2 = protocol.as_deref() == Some("kubernetes.io/h2c");
    let outside = text(&mut spec, "externalName");
    if let Some(host) =
        outside.filter(|_| text(&mut spec, "type").as_deref() == Some("ExternalName"))
    {
        let spot = named.spot.clone();
        let addresses = vec![Address { spot, host, port }];
        return Some(Reached {
            addresses,
            is_http2,
            port_name: name,
        });
    }
    let endpoints = cluster.slices_of(named);
    let endpoints = endpoints.flat_map(|slice| endpoints_of(slice, &name));
    let endpoints: Vec<Endpoint> = endpoints
        .filter(|one| cluster.mode.reaches_machine || is_elsewhere(&one.host))
        .collect();
    let near = near(&endpoints, cluster.mode.zone.as_deref());
    let mut addresses: Vec<Address> = Vec::new();
    for one in near {
        let is_known = |at: &Address| at.host == one.host && at.port == one.port;
        if !addresses.iter().any(is_known) {
            addresses.push(Address {
                spot: named.spot.clone(),
                host: one.host.clone(),
                port: one.port,
            });
        }
    }
    addresses.sort_by(|a, b| (&a.host, a.port).cmp(&(&b.host, b.port)));
    Some(Reached {
        addresses,
        is_http2,
        port_name: name,
    })
}

/// Where somebody is asked who is asked at one address: at the first endpoint that is ready, or else at the Service's own address, where
/// nobody answers then.
pub(crate) fn one_of(
    cluster: &Cluster<'_>,
    asks: &Object<'_>,
    named: &Reference,
    port: u64,
    ready: &[Address],
) -> Address {
    if let Some(first) = ready.first() {
        return first.clone();
    }
    let none = &mut Findings::default();
    let service = cluster.resolve(asks, named, none);
    let own = service.and_then(|service| text(&mut service.spec(none), "clusterIP"));
    let own = own.filter(|ip| is_elsewhere(ip));
    let name = || format!("{}.{}.svc.cluster.local", named.name, named.namespace);
    Address {
        spot: named.spot.clone(),
        host: own.unwrap_or_else(name),
        port,
    }
}

/// Whether an address is none of the gate's own machine or of its link.
pub(crate) fn is_elsewhere(host: &str) -> bool {
    let address = host.parse::<IpAddr>().map(|ip| ip.to_canonical());
    address.is_ok_and(|ip| !ip.is_loopback() && is_allowed(ip, false))
}

/// The endpoints that a gate of a zone goes to: where all of them say which zones they are meant for, those that say its own, if
/// there are any.
pub(crate) fn near<'e>(all: &'e [Endpoint], zone: Option<&str>) -> Vec<&'e Endpoint> {
    let whole = || all.iter().collect();
    let Some(zone) = zone.filter(|_| all.iter().all(|one| !one.zones.is_empty())) else {
        return whole();
    };
    let own: Vec<&Endpoint> = all
        .iter()
        .filter(|one| one.zones.iter().any(|of| of == zone))
        .collect();
    if own.is_empty() { whole() } else { own }
}

/// The ready endpoints of a slice, by the name of a port.
fn endpoints_of(slice: &Object<'_>, port: &str) -> Vec<Endpoint> {
    let none = &mut Findings::default();
    let mut top = slice.top(none);
    if text(&mut top, "addressType").is_some_and(|kind| kind == "FQDN") {
        return Vec::new();
    }
    let ports = top.list("ports", none);
    let number = ports.iter().find_map(|item| {
        let mut of = item.fields(&mut Findings::default());
        let name = text(&mut of, "name").unwrap_or_default();
        number(&mut of, "port").filter(|_| name == port)
    });
    let Some(port) = number else {
        return Vec::new();
    };
    let endpoints = top.list("endpoints", none);
    endpoints
        .iter()
        .filter_map(|item| endpoint(item, port))
        .collect()
}

fn endpoint(item: &Item<'_>, port: u64) -> Option<Endpoint> {
    let none = &mut Findings::default();
    let mut of = item.fields(none);
    let ready = of.take("conditions").and_then(|item| {
        let mut of = item.fields(&mut Findings::default());
        of.flag("ready", &mut Findings::default())
    });
    // What says nothing of it is ready.
    if ready.is_some_and(|said| !said.value) {
        return None;
    }
    let hints = of.take("hints");
    let zones = hints.map_or_else(Vec::new, |item| {
        let mut of = item.fields(&mut Findings::default());
        of.list("forZones", &mut Findings::default())
    });
    let zone = |item: &Item<'_>| text(&mut item.fields(&mut Findings::default()), "name");
    let zones = zones.iter().filter_map(zone).collect();
    // All addresses of an endpoint lead to it: the first is taken.
    let host = of.texts("addresses", none).into_iter().next()?.value;
    Some(Endpoint { host, port, zones })
}

fn text(of: &mut Fields<'_>, name: &'static str) -> Option<String> {
    of.text(name, &mut Findings::default())
        .map(|said| said.value)
}

fn number(of: &mut Fields<'_>, name: &'static str) -> Option<u64> {
    of.number(name, &mut Findings::default())
        .map(|said| said.value)
}
