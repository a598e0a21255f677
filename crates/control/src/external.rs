//! `extAuth` of a SecurityPolicy: a service that is asked about each call.
//!
//! Invariant: what the service would have seen with Envoy, and does not see here, is a fault: it may be what it refuses by. While none of
//! its endpoints is ready it is asked all the same, where nobody answers.
//! Not here: what becomes of its answer (`callout`).

use crate::backend::{Address, Upstream};
use crate::cluster::Cluster;
use crate::fields::{Fields, Item};
use crate::findings::Findings;
use crate::object::{CORE, ENVOY, Object};
use crate::quantity;
use crate::reference::Reference;
use crate::service::Services;
use crate::slices;
use crate::tree::Tree;

/// The longest that a call waits for somebody who is asked about it, milliseconds.
const WAIT_MS_MAX: u64 = 2000;

/// `authority` of our document.
pub(crate) fn asked(
    cluster: &Cluster<'_>,
    policy: &Object<'_>,
    item: &Item<'_>,
    services: &Services,
    findings: &mut Findings,
) -> Option<Tree> {
    let mut of = item.fields(findings);
    let [http, grpc] = [of.take("http"), of.take("grpc")];
    let headers = of.texts("headersToExtAuth", findings);
    let fails_open = of
        .flag("failOpen", findings)
        .filter(|said| said.value)
        .map(|said| Tree::text("allow").of(&said.spot));
    let timeout = of.take("timeout");
    of.refuse(
        &[
            ("bodyToExtAuth", "it is asked before the body is read"),
            ("recomputeRoute", "routes go by what the client sent"),
            ("statusOnError", "without an answer it is 503"),
            (
                "contextExtensions",
                "it is told method, path, host, address, workload and user",
            ),
        ],
        findings,
    );
    of.end(findings);
    let (item, is_grpc) = match (http, grpc) {
        (Some(item), None) => (item, false),
        (None, Some(item)) => (item, true),
        _ => {
            findings.fault(&item.spot, "asks no single service", "write http or grpc");
            return None;
        }
    };
    let headers: Vec<String> = match headers.as_slice() {
        [] if is_grpc => {
            let says =
                "lets the service see every header with Envoy, and here those that are listed";
            let hint = "list what it decides by in headersToExtAuth";
            findings.fault(&item.spot, says, hint);
            return None;
        }
        [] => vec!["authorization".to_owned()],
        said => said
            .iter()
            .map(|said| said.value.to_ascii_lowercase())
            .collect(),
    };
    let mut inside = item.fields(findings);
    let path = match is_grpc {
        true => None,
        false => inside.text("path", findings),
    };
    inside.refuse(
        &[
            ("headersToBackend", "its answer is a yes or a no"),
            ("backendSettings", "it is asked once, within timeout"),
        ],
        findings,
    );
    let service = service(cluster, policy, &mut inside, services, findings);
    inside.end(findings);
    let (upstream, at) = service?;
    let path = path.map(|said| said.value).unwrap_or_default();
    let url = upstream.url(&at, path.trim_end_matches('/'));
    let ca = upstream.trust.as_ref().and_then(|trust| trust.ca.clone());
    let timeout = timeout.map_or(Some(quantity::span(WAIT_MS_MAX)), |item| {
        let mut ms = quantity::millis(&item, findings)?;
        // Without an answer somebody would be let in sooner.
        if ms > WAIT_MS_MAX && fails_open.is_none() {
            findings.warn(
                &item.spot,
                "is 2s here: a call waits no longer for who is asked",
                "",
            );
            ms = WAIT_MS_MAX;
        }
        Some(quantity::span(ms).of(&item.spot))
    });
    let asked = Tree::map([
        (if is_grpc { "grpc" } else { "url" }, Some(url)),
        ("headers", Some(Tree::texts(&headers))),
        ("timeout", timeout),
        ("on_failure", fails_open),
        ("ca", ca),
    ]);
    Some(Tree::map([("ext_authz", Some(asked.of(&item.spot)))]))
}

/// The one service that is named, and the address at which it is asked.
fn service(
    cluster: &Cluster<'_>,
    policy: &Object<'_>,
    of: &mut Fields<'_>,
    services: &Services,
    findings: &mut Findings,
) -> Option<(Upstream, Address)> {
    let spot = of.spot.clone();
    let single = of.take("backendRef");
    let mut refs = of.list("backendRefs", findings);
    refs.extend(single);
    let [item] = refs.as_slice() else {
        findings.fault(&spot, "asks no single service", "name one in backendRefs");
        return None;
    };
    let mut of = item.fields(findings);
    let port = of.number("port", findings).map(|port| port.value);
    of.skip(&["weight"]);
    let named = Reference::take(&mut of, (CORE, "Service"), &policy.namespace, findings);
    of.end(findings);
    let kinds = [(CORE, "Service"), (ENVOY, "Backend")];
    let named = named.filter(|named| named.is_one_of(&kinds, findings))?;
    let home = &policy.namespace;
    let upstream = services
        .plain(cluster, policy, &named, port, home, findings)?
        .upstream;
    let service = port.filter(|_| named.kind == "Service");
    let at = match (service, upstream.endpoints.as_slice()) {
        (Some(port), ready) => slices::one_of(cluster, policy, &named, port, ready),
        (None, [at]) => at.clone(),
        (None, []) => {
            findings.fault(&named.spot, "has no address", "write spec.endpoints");
            return None;
        }
        (None, _) => {
            let says = "has several addresses, and one is asked";
            findings.fault(&named.spot, says, "keep one");
            return None;
        }
    };
    let at = checked(&named, service, &upstream, at, findings)?;
    Some((upstream, at))
}

/// The address, or the name that its certificate is checked by where a Service is reached by that, too.
fn checked(
    named: &Reference,
    service: Option<u64>,
    upstream: &Upstream,
    at: Address,
    findings: &mut Findings,
) -> Option<Address> {
    let Some(trust) = &upstream.trust else {
        return Some(at);
    };
    if trust.client_certificate.is_some() {
        let says = "is shown a client certificate, and none is shown to who is asked";
        findings.fault(&named.spot, says, "leave the certificate out");
        return None;
    }
    if trust.alt_names.is_some() {
        let says = "is known by other names than its host's, and who is asked is not";
        findings.fault(&named.spot, says, "leave subjectAltNames out of its policy");
        return None;
    }
    let wanted = trust.hostname.as_ref().map(|name| name.value.as_str());
    let Some(name) = wanted.filter(|name| !at.host.eq_ignore_ascii_case(name)) else {
        return Some(at);
    };
    let own = format!("{}.{}.svc", named.name, named.namespace);
    let is_own = [own.clone(), format!("{own}.cluster.local")];
    let is_own = is_own.iter().any(|own| own.eq_ignore_ascii_case(name));
    if let (Some(port), true) = (service, is_own) {
        let host = name.to_ascii_lowercase();
        return Some(Address { host, port, ..at });
    }
    let says = format!("has a certificate for {name}, and is asked at {}", at.host);
    let hint = format!("give it one for {own}, and name that in the policy for its certificate");
    findings.fault(&named.spot, says, &hint);
    None
}
