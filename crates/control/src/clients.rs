//! ClientTrafficPolicy: what clients may send, and whose word about their address counts.
//!
//! Not here: where the gate listens (`gateway`).

use crate::cluster::Cluster;
use crate::fields::{Item, Said};
use crate::findings::{Broken, Findings};
use crate::gateway::{Door, targets};
use crate::object::Object;
use crate::quantity;
use crate::reference::Reference;
use crate::tree::Tree;

/// What clients may send, as a ClientTrafficPolicy says it: `bounds` and `client_address`.
pub(crate) fn clients(
    cluster: &Cluster<'_>,
    door: &Door<'_, '_>,
    findings: &mut Findings,
) -> [Option<Tree>; 2] {
    let mut policies: Vec<&Object<'_>> = cluster.of_kind("ClientTrafficPolicy").collect();
    policies.sort_by_cached_key(|policy| policy.age());
    let mut in_force = None;
    for policy in policies {
        let mut spec = policy.spec(findings);
        let is_judged = |target: &Reference| door.judges(cluster, target);
        let targets = targets(&mut spec, policy, is_judged, findings);
        let (own, others): (Vec<&Reference>, Vec<&Reference>) = targets
            .iter()
            .partition(|target| target.is_to(door.gateway));
        for target in others {
            let says = format!("is {}, and this is for the Gateway", target.shown());
            let hint = format!("the Gateway is {}", door.gateway.id());
            findings.fault(&target.spot, says, hint);
        }
        match in_force {
            _ if own.is_empty() => {}
            None => in_force = Some((policy, spec)),
            Some(_) => {
                let says = "is a second policy of this kind for one Gateway";
                findings.break_off(Broken::Conflict, &policy.spot, says, "keep one");
            }
        }
    }
    let Some((policy, mut spec)) = in_force else {
        return [None, None];
    };
    let mut bounds = Vec::new();
    if let Some(item) = spec.take("connection") {
        connection(&item, &mut bounds, findings);
    }
    if let Some(item) = spec.take("timeout") {
        times(&item, &mut bounds, findings);
    }
    let trusted = spec.take("clientIPDetection");
    let trusted = trusted.and_then(|item| trusted_proxies(&item, findings));
    spec.pass_over(
        &[
            ("tcpKeepalive", "the gate's own is kept"),
            ("http1", "the gate's own rules of HTTP/1.1 hold"),
            ("http2", "the gate's own bounds of HTTP/2 hold"),
            ("http3", "HTTP/3 is not served"),
            (
                "healthCheck",
                "/healthz and /readyz are on the admin address",
            ),
            ("scheme", "upstreams are told what the gate speaks to them"),
        ],
        findings,
    );
    spec.refuse(
        &[
            (
                "enableProxyProtocol",
                "write client_address: { proxy_protocol: required } in a file of ours beside",
            ),
            (
                "proxyProtocol",
                "write client_address: { proxy_protocol: required } in a file of ours beside",
            ),
            (
                "headers",
                "which headers pass is said of a route in a file of ours",
            ),
            ("path", "paths are compared as they came"),
            ("tls", "the listener's tls says which certificate it has"),
        ],
        findings,
    );
    spec.end(findings);
    let bounds = (!bounds.is_empty()).then(|| Tree::Map(bounds).of(&policy.spot));
    [bounds, trusted]
}

fn connection(item: &Item<'_>, bounds: &mut Vec<(String, Tree)>, findings: &mut Findings) {
    let mut of = item.fields(findings);
    let limit = of.take("bufferLimit");
    let limit = limit.and_then(|item| quantity::bytes(&item, findings));
    bounds.extend(limit.map(|limit| ("body".to_owned(), limit)));
    let own = "`bounds` of a file of ours says how many there may be";
    of.refuse(&[("connectionLimit", own)], findings);
    of.pass_over(
        &[
            ("socketBufferLimit", "buffers of sockets are the system's"),
            ("maxAcceptPerSocketEvent", "there is no Envoy"),
        ],
        findings,
    );
    of.end(findings);
}

fn times(item: &Item<'_>, bounds: &mut Vec<(String, Tree)>, findings: &mut Findings) {
    let mut of = item.fields(findings);
    let all = "`keep_alive` of the gate's bounds is for all connections";
    of.pass_over(&[("tcp", all)], findings);
    if let Some(http) = of.take("http") {
        let mut http = http.fields(findings);
        for (theirs, ours) in [
            ("requestReceivedTimeout", "body_time"),
            ("idleTimeout", "keep_alive"),
        ] {
            let Some(item) = http.take(theirs) else {
                continue;
            };
            let found = quantity::millis(&item, findings);
            let found = found.map(|ms| quantity::span(ms).of(&item.spot));
            bounds.extend(found.map(|span| (ours.to_owned(), span)));
        }
        let streams = "the backend's `timeouts.idle` is for streams";
        http.pass_over(&[("streamIdleTimeout", streams)], findings);
        http.end(findings);
    }
    of.end(findings);
}

/// Proxies whose `x-forwarded-for` is believed.
fn trusted_proxies(item: &Item<'_>, findings: &mut Findings) -> Option<Tree> {
    let mut of = item.fields(findings);
    of.refuse(
        &[("customHeader", "addresses come from x-forwarded-for")],
        findings,
    );
    let forwarded = of.take("xForwardedFor");
    of.end(findings);
    let forwarded = forwarded?;
    let mut inside = forwarded.fields(findings);
    inside.refuse(
        &[("numTrustedHops", "hops are not counted: write trustedCIDRs")],
        findings,
    );
    let networks = inside.texts("trustedCIDRs", findings);
    inside.end(findings);
    let network = |said: &Said<String>| Tree::text(&said.value).of(&said.spot);
    let networks = Tree::List(networks.iter().map(network).collect());
    Some(Tree::map([("trusted_proxies", Some(networks))]).of(&forwarded.spot))
}
