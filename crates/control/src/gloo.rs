//! Gloo's VirtualService and Upstream: calls of plain HTTP, where they say what an HTTPRoute could.
//!
//! Invariant: what they say beside is a fault. Gloo asks nobody whether another namespace may be reached.
//! Not here: Gloo's own Gateways and RouteTables.

use crate::backend::{Address, Upstream};
use crate::certificate::certificate_of;
use crate::cluster::Cluster;
use crate::fields::{Fields, Item};
use crate::filters::Filters;
use crate::findings::{Findings, Spot};
use crate::gateway::Door;
use crate::matching::{HeaderMatch, How, Wanted};
use crate::object::{CORE, GLOO, Object};
use crate::plain::{PlainMatch, PlainRoute};
use crate::quantity;
use crate::reference::Reference;
use crate::refs::Ref;
use crate::route::{Rule, Times};
use crate::target::{Target, called};
use crate::tree::Tree;
use crate::trust::Trust;

/// All of them.
pub(crate) fn routes<'c, 'n>(
    cluster: &'c Cluster<'n>,
    door: &Door<'_, '_>,
    findings: &mut Findings,
) -> Vec<PlainRoute<'c, 'n>> {
    let all = cluster.of_kind("VirtualService");
    all.filter_map(|object| route(cluster, object, door, findings))
        .collect()
}

/// Where Gloo's proxy listens unless its own Gateways say otherwise.
pub(crate) fn door<'c, 'n>(
    cluster: &'c Cluster<'n>,
    findings: &mut Findings,
) -> Option<Door<'c, 'n>> {
    let first = cluster.of_kind("VirtualService").next()?;
    let tls = tls(cluster, findings);
    let port = if tls.is_some() { 8443 } else { 8080 };
    Some(Door::at(first, port, tls))
}

/// The certificate that one of them says.
fn tls(cluster: &Cluster<'_>, findings: &mut Findings) -> Option<Tree> {
    let mut found = None;
    for object in cluster.of_kind("VirtualService") {
        let mut spec = object.spec(&mut Findings::default());
        let Some(item) = spec.take("sslConfig") else {
            continue;
        };
        if found.is_some() {
            findings.fault(
                &item.spot,
                "is a second certificate, and a gate has one",
                "keep one",
            );
        }
        let mut of = item.fields(findings);
        let named = of.need("secretRef", findings);
        of.refuse(
            &[
                ("sniDomains", "a gate has one certificate"),
                ("parameters", "versions and ciphers are chosen by the gate"),
                (
                    "verifySubjectAltName",
                    "write a Gateway with tls.frontendValidation",
                ),
                ("oneWayTls", "write a Gateway with tls.frontendValidation"),
            ],
            findings,
        );
        of.end(findings);
        let secret = named.and_then(|item| {
            Reference::whole(&item, (CORE, "Secret"), &object.namespace, findings)
        });
        let Some(secret) = secret else { continue };
        // With Gloo, no grant is asked for.
        let home = cluster
            .objects
            .iter()
            .find(|object| secret.is_to(object))
            .unwrap_or(object);
        let pair = certificate_of(cluster, home, &secret, findings);
        found = pair.map(|[certificate, key]| {
            let pair = [("certificate", Some(certificate)), ("key", Some(key))];
            Tree::map(pair).of(&item.spot)
        });
    }
    found
}

fn route<'c, 'n>(
    cluster: &'c Cluster<'n>,
    object: &'c Object<'n>,
    door: &Door<'_, '_>,
    findings: &mut Findings,
) -> Option<PlainRoute<'c, 'n>> {
    let mut spec = object.spec(findings);
    spec.skip(&["displayName"]);
    if let Some(item) = spec
        .take("sslConfig")
        .filter(|_| door.gateway.kind == "Gateway")
    {
        let says = "is not the listener's certificate, which the Gateway beside says";
        findings.fault(&item.spot, says, "leave one of them out");
    }
    let host = spec.need("virtualHost", findings);
    spec.end(findings);
    let mut host = host?.fields(findings);
    let mut hostnames = host.texts("domains", findings);
    // Which is every host, whatever stands beside it.
    if hostnames.iter().any(|said| said.value == "*") {
        hostnames.clear();
    }
    let has_options = "write it as policies of the Gateway API, or in a file of ours beside";
    host.refuse(
        &[("options", has_options), ("optionsConfigRefs", has_options)],
        findings,
    );
    let mut seen: Vec<Seen> = Vec::new();
    let rules = host.list("routes", findings);
    let rules = rules
        .iter()
        .filter_map(|item| rule(cluster, item, object, &mut seen, findings))
        .collect();
    in_order(&seen, findings);
    host.end(findings);
    Some(PlainRoute {
        object,
        hosts: door.hosts_of(&hostnames),
        held: Vec::new(),
        listeners: Vec::new(),
        hostnames,
        rules,
    })
}

fn rule(
    cluster: &Cluster<'_>,
    item: &Item<'_>,
    object: &Object<'_>,
    seen: &mut Vec<Seen>,
    findings: &mut Findings,
) -> Option<Rule<PlainMatch>> {
    let mut of = item.fields(findings);
    let name = of.text("name", findings).map(|said| said.value);
    let matchers = of.list("matchers", findings);
    let mut matches: Vec<PlainMatch> = matchers
        .iter()
        .filter_map(|item| matched(item, seen, findings))
        .collect();
    if matchers.is_empty() {
        seen.push(Seen {
            spot: item.spot.clone(),
            rank: (false, 1, false, 0),
            path: "/".to_owned(),
        });
        matches.push(PlainMatch::everything(item.spot.clone()));
    }
    let mut times = Times::default();
    if let Some(options) = of.take("options") {
        let mut inside = options.fields(findings);
        if let Some(item) = inside.take("timeout") {
            let says =
                "bounds the time to the head of an answer here; one that has begun is not cut";
            findings.warn(&item.spot, says, "");
            let found = quantity::millis(&item, findings).filter(|ms| *ms > 0);
            times.first_byte = found.map(|ms| (ms, item.spot));
        }
        inside.end(findings);
    }
    let elsewhere = "calls of plain HTTP go to a service as they are";
    of.refuse(
        &[
            ("redirectAction", elsewhere),
            ("directResponseAction", elsewhere),
            ("delegateAction", "write the routes of the RouteTable here"),
            ("graphqlApiRef", elsewhere),
            ("inheritableMatchers", "write the matchers out"),
            ("inheritablePathMatchers", "write the matchers out"),
            (
                "optionsConfigRefs",
                "write it as policies of the Gateway API",
            ),
        ],
        findings,
    );
    let action = of.need("routeAction", findings);
    of.end(findings);
    let refs = targets(cluster, &action?, object, findings);
    Some(Rule {
        spot: item.spot.clone(),
        name,
        refs,
        matches,
        times,
        filters: Filters::default(),
        is_closed: false,
    })
}

/// A match, and how much it says: that it is exact, the length of its path, a method, headers.
struct Seen {
    spot: Spot,
    rank: (bool, usize, bool, usize),
    path: String,
}

/// With Gloo the first route that takes a call has it, here the one that says most: notes where that is not the same.
fn in_order(seen: &[Seen], findings: &mut Findings) {
    let meet = |one: &Seen, other: &Seen| match (one.rank.0, other.rank.0) {
        (true, true) => one.path == other.path,
        (true, false) => one.path.starts_with(&other.path),
        (false, true) => other.path.starts_with(&one.path),
        (false, false) => one.path.starts_with(&other.path) || other.path.starts_with(&one.path),
    };
    for (index, one) in seen.iter().enumerate() {
        let before = seen.get(..index).unwrap_or_default();
        if let Some(first) = before
            .iter()
            .find(|first| first.rank < one.rank && meet(first, one))
        {
            let says = format!(
                "says more than {}, which stands before it and has its calls with Gloo",
                first.spot.path
            );
            findings.fault(&one.spot, says, "write what says most first");
        }
    }
}

/// What a route takes. A prefix of Gloo's is one of letters, ours is one of whole segments.
fn matched(item: &Item<'_>, seen: &mut Vec<Seen>, findings: &mut Findings) -> Option<PlainMatch> {
    let mut of = item.fields(findings);
    let prefix = of.text("prefix", findings);
    let exact = of.text("exact", findings);
    let methods = of.texts("methods", findings);
    let mut headers = Vec::new();
    for item in of.list("headers", findings) {
        let mut inside = item.fields(findings);
        let name = inside.needed_text("name", findings);
        let value = inside.needed_text("value", findings);
        inside.refuse(
            &[
                ("regex", "write the value"),
                ("invertMatch", "say which values are meant"),
            ],
            findings,
        );
        inside.end(findings);
        if let (Some(name), Some(value)) = (name, value) {
            headers.push(HeaderMatch {
                spot: item.spot,
                name: name.value.to_ascii_lowercase(),
                how: How::Is(vec![Wanted::Exact(value.value)]),
            });
        }
    }
    of.refuse(
        &[
            ("regex", "write prefix or exact"),
            ("queryParameters", "routes do not go by the query"),
            ("connectMatcher", "tunnels are not served"),
            ("caseSensitive", "paths are compared as they came"),
        ],
        findings,
    );
    of.end(findings);
    if let Some(said) = exact.as_ref().or(prefix.as_ref()) {
        seen.push(Seen {
            spot: item.spot.clone(),
            rank: (
                exact.is_some(),
                said.value.len(),
                !methods.is_empty(),
                headers.len(),
            ),
            path: said.value.clone(),
        });
    }
    let path = match (prefix, exact) {
        (None, Some(path)) => Tree::text(&path.value).of(&path.spot),
        (Some(prefix), None)
            if prefix.value.ends_with('/') && !prefix.value.contains(['*', '{']) =>
        {
            Tree::text(format!("{}*", prefix.value)).of(&prefix.spot)
        }
        (Some(prefix), None) => {
            let says = format!(
                "takes every path that begins with {}, also in the middle of a name",
                prefix.value
            );
            findings.fault(&prefix.spot, says, "end it with a slash");
            return None;
        }
        _ => {
            findings.fault(&item.spot, "says no single path", "write prefix or exact");
            return None;
        }
    };
    let methods: Vec<String> = methods.into_iter().map(|said| said.value).collect();
    let method = (!methods.is_empty()).then(|| Tree::texts(&methods));
    Some(PlainMatch::new(item.spot.clone(), path, method, headers))
}

fn targets(
    cluster: &Cluster<'_>,
    action: &Item<'_>,
    object: &Object<'_>,
    findings: &mut Findings,
) -> Vec<Ref> {
    let mut of = action.fields(findings);
    let single = of.take("single");
    let several = of.take("multi");
    of.refuse(
        &[
            ("upstreamGroup", "write its destinations under multi"),
            ("clusterHeader", "a client does not say where its call goes"),
            (
                "dynamicForwardProxy",
                "a client does not say where its call goes",
            ),
        ],
        findings,
    );
    of.end(findings);
    let mut refs = Vec::new();
    if let Some(item) = single {
        refs.extend(target(cluster, &item, 1, object, findings));
    }
    if let Some(item) = several {
        let mut of = item.fields(findings);
        for item in of.list("destinations", findings) {
            let mut inside = item.fields(findings);
            let weight = inside
                .number("weight", findings)
                .map_or(1, |said| said.value);
            let destination = inside.need("destination", findings);
            inside.refuse(
                &[("options", "calls go to a service as they are")],
                findings,
            );
            inside.end(findings);
            refs.extend(
                destination.and_then(|item| target(cluster, &item, weight, object, findings)),
            );
        }
        of.end(findings);
    }
    if refs.is_empty() && findings.faults.is_empty() {
        findings.fault(&action.spot, "goes nowhere", "write single or multi");
    }
    refs
}

/// An Upstream, one that Gloo would make of a Service, or a Service.
fn target(
    cluster: &Cluster<'_>,
    item: &Item<'_>,
    weight: u64,
    object: &Object<'_>,
    findings: &mut Findings,
) -> Option<Ref> {
    let mut of = item.fields(findings);
    let upstream = of.take("upstream");
    let kube = of.take("kube");
    of.refuse(
        &[
            ("consul", "write an Upstream with the addresses"),
            ("destinationSpec", "functions are not called"),
            ("subset", "all addresses are used"),
        ],
        findings,
    );
    of.end(findings);
    let (name, upstream) = match (upstream, kube) {
        (Some(item), None) => {
            let named = Reference::whole(&item, (GLOO, "Upstream"), &object.namespace, findings)?;
            let name = called(&named.namespace, &named.name, &object.namespace);
            (name, of_upstream(cluster, &named, findings)?)
        }
        (None, Some(item)) => {
            let mut inside = item.fields(findings);
            let port = inside
                .need("port", findings)
                .and_then(|item| item.number(findings));
            let named = inside.need("ref", findings);
            inside.end(findings);
            let named = Reference::whole(&named?, (CORE, "Service"), &object.namespace, findings)?;
            let name = called(&named.namespace, &named.name, &object.namespace);
            (
                name,
                of_service(&named.namespace, &named.name, port?.value, &item.spot),
            )
        }
        _ => {
            findings.fault(
                &item.spot,
                "names no single service",
                "write upstream or kube",
            );
            return None;
        }
    };
    Some(Ref {
        spot: item.spot.clone(),
        target: Target::plain(name, item.spot.clone(), upstream),
        weight,
        priority: 0,
        model: None,
        headers: None,
        edits: None,
        is_closed: false,
        for_models: None,
    })
}

fn of_service(namespace: &str, name: &str, port: u64, spot: &Spot) -> Upstream {
    Upstream {
        endpoints: vec![Address {
            spot: spot.clone(),
            host: format!("{name}.{namespace}.svc.cluster.local"),
            port,
        }],
        is_fallback: false,
        is_http2: false,
        trust: None,
        is_elsewhere: false,
    }
}

fn of_upstream(
    cluster: &Cluster<'_>,
    named: &Reference,
    findings: &mut Findings,
) -> Option<Upstream> {
    let Some(object) = cluster
        .of_kind("Upstream")
        .find(|object| named.is_to(object))
    else {
        // Gloo makes one of each port of a Service.
        let found = cluster.of_kind("Service").find_map(|service| {
            let quiet = &mut Findings::default();
            let ports = service.spec(quiet).list("ports", quiet);
            let port = ports.iter().find_map(|item| {
                let port = item.fields(quiet).number("port", quiet)?.value;
                let made = format!("{}-{}-{port}", service.namespace, service.name);
                (made == named.name).then_some(port)
            })?;
            Some(of_service(
                &service.namespace,
                &service.name,
                port,
                &named.spot,
            ))
        });
        if found.is_none() {
            let says = format!(
                "there is no {}, and no Service that Gloo would make it of",
                named.shown()
            );
            findings.fault(&named.spot, says, "add it to these files");
        }
        return found;
    };
    let mut spec = object.spec(findings);
    spec.skip(&["discoveryMetadata"]);
    let kube = spec.take("kube");
    let fixed = spec.take("static");
    let is_http2 = spec
        .flag("useHttp2", findings)
        .is_some_and(|said| said.value);
    let tls = spec.take("sslConfig");
    let own = "an address is known by its calls";
    spec.pass_over(
        &[
            ("healthChecks", own),
            ("outlierDetection", own),
            ("connectionConfig", "the gate's own pool is kept"),
            (
                "loadBalancerConfig",
                "calls go to addresses as their weights say: write `balancing` of a backend in a file of ours",
            ),
        ],
        findings,
    );
    spec.end(findings);
    let (mut upstream, is_tls) = match (kube, fixed) {
        (Some(item), None) => (of_kube(&item, findings)?, false),
        (None, Some(item)) => of_static(&item, findings),
        _ => {
            findings.fault(&object.spot, "says no single place", "write kube or static");
            return None;
        }
    };
    upstream.is_http2 = is_http2;
    if is_tls || tls.is_some() {
        upstream.trust = Some(Trust::default());
    }
    if let Some(item) = tls {
        let mut of = item.fields(findings);
        let hostname = of.text("sni", findings);
        of.refuse(
            &[
                ("secretRef", "write a Backend with clientCertificateRef"),
                ("sslFiles", "write a Backend with clientCertificateRef"),
            ],
            findings,
        );
        let names = of.texts("verifySubjectAltName", findings);
        of.end(findings);
        let names = names
            .iter()
            .map(|said| Tree::text(&said.value).of(&said.spot));
        let names: Vec<Tree> = names.collect();
        upstream.trust = Some(Trust {
            hostname,
            alt_names: (!names.is_empty()).then_some(Tree::List(names)),
            ..Trust::default()
        });
    }
    Some(upstream)
}

fn of_kube(item: &Item<'_>, findings: &mut Findings) -> Option<Upstream> {
    let mut of = item.fields(findings);
    let name = of.needed_text("serviceName", findings);
    let namespace = of.needed_text("serviceNamespace", findings);
    let port = of
        .need("servicePort", findings)
        .and_then(|item| item.number(findings));
    of.skip(&["serviceSpec"]);
    of.refuse(
        &[("selector", "all addresses of the Service are used")],
        findings,
    );
    of.end(findings);
    Some(of_service(
        &namespace?.value,
        &name?.value,
        port?.value,
        &item.spot,
    ))
}

fn of_static(item: &Item<'_>, findings: &mut Findings) -> (Upstream, bool) {
    let mut of = item.fields(findings);
    let is_tls = of.flag("useTls", findings).is_some_and(|said| said.value);
    of.skip(&["autoSniRewrite", "serviceSpec"]);
    let hosts = of.list("hosts", findings);
    of.end(findings);
    if hosts.is_empty() {
        findings.fault(&item.spot, "has no address", "write hosts");
    }
    let address = |item: &Item<'_>, findings: &mut Findings| {
        let mut of: Fields<'_> = item.fields(findings);
        let host = of.needed_text("addr", findings);
        let port = of
            .need("port", findings)
            .and_then(|item| item.number(findings));
        of.refuse(
            &[("sniAddr", "a certificate is checked by its host's name")],
            findings,
        );
        of.pass_over(
            &[("healthCheckConfig", "an address is known by its calls")],
            findings,
        );
        of.end(findings);
        Some(Address {
            spot: item.spot.clone(),
            host: host?.value,
            port: port?.value,
        })
    };
    let endpoints = hosts
        .iter()
        .filter_map(|item| address(item, findings))
        .collect();
    let upstream = Upstream {
        endpoints,
        is_fallback: false,
        is_http2: false,
        trust: None,
        is_elsewhere: false,
    };
    // As Gloo has it.
    let is_tls = is_tls || upstream.endpoints.iter().any(|at| at.port == 443);
    (upstream, is_tls)
}
