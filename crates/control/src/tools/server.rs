//! A server of tools: a backendRef, with its credential and what is seen of it.
//!
//! Not here: where a Service or a Backend is (`service`).

use crate::backend::{Address, Upstream};
use crate::cluster::{Cluster, Content};
use crate::fields::{Item, Said};
use crate::findings::{Findings, Spot};
use crate::object::{CORE, ENVOY, Object};
use crate::reference::Reference;
use crate::service::Services;
use crate::tree::Tree;

use super::{PATH, selector};

/// A server, as it becomes one of `mcp.servers`.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) spot: Spot,
    /// Whether the names of its tools begin with its own.
    pub(crate) is_prefixed: bool,
    pub(crate) tree: Tree,
}

impl Server {
    pub(super) fn of(
        cluster: &Cluster<'_>,
        route: &Object<'_>,
        item: &Item<'_>,
        services: &Services,
        prefix: Option<&Said<String>>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let mut of = item.fields(findings);
        let port = of.number("port", findings).map(|port| port.value);
        let path = of.text("path", findings);
        let tools = of.take("toolSelector");
        let tools = tools.and_then(|item| selector::selection(&item, findings));
        let prompts = of.take("promptSelector");
        let prompts = prompts.and_then(|item| selector::selection(&item, findings));
        let own = of.text("prefixMode", findings);
        let is_prefixed = is_prefixed(own.as_ref().or(prefix), findings);
        let policy = of.take("securityPolicy");
        of.refuse(
            &[(
                "forwardHeaders",
                "no header of a client goes to a server of tools: give the gate a credential of its own",
            )],
            findings,
        );
        let named = Reference::take(&mut of, (CORE, "Service"), &route.namespace, findings);
        of.end(findings);
        let credential = policy.and_then(|item| {
            let mut of = item.fields(findings);
            let key = of.take("apiKey");
            of.end(findings);
            key.and_then(|item| credential(cluster, route, &item, named.as_ref(), findings))
        });
        let named = named
            .filter(|named| named.is_one_of(&[(CORE, "Service"), (ENVOY, "Backend")], findings))?;
        let name = named.name.clone();
        if !is_name(&name) {
            let says = format!("names {name}, with which the names of its tools would begin");
            let hint =
                "give the Backend or Service a name of letters, digits and single -, 32 at most";
            findings.fault(&named.spot, says, hint);
            return None;
        }
        let home = &route.namespace;
        let target = services.plain(cluster, route, &named, port, home, findings)?;
        let upstream = target.upstream;
        let address = address(&upstream, &named, port, findings)?;
        let path = path.as_ref().map_or(PATH, |said| said.value.as_str());
        if !path.starts_with('/') || path.contains(['?', '#']) {
            findings.fault(
                &item.spot,
                "has a path that is none",
                "write /mcp or the like",
            );
            return None;
        }
        let trust = upstream.trust.as_ref();
        let is_elsewhere = upstream.is_elsewhere;
        let tree = Tree::map([
            ("url", Some(upstream.url(&address, path))),
            ("credential", credential),
            ("tools", tools),
            ("prompts", prompts),
            ("ca", trust.and_then(|trust| trust.ca.clone())),
            ("alt_names", trust.and_then(|trust| trust.alt_names.clone())),
            ("tls_name", upstream.tls_name()),
            (
                "client_certificate",
                trust.and_then(|trust| trust.client_certificate.clone()),
            ),
            ("local", is_elsewhere.then(|| Tree::Plain("false".into()))),
            ("protocol", upstream.is_http2.then(|| Tree::text("http2"))),
        ]);
        Some(Self {
            name,
            spot: item.spot.clone(),
            is_prefixed,
            tree: tree.of(&item.spot),
        })
    }
}

/// The one address of a server. A Service of several Pods is called by its name: which of them has a session is the server's to say.
fn address(
    upstream: &Upstream,
    named: &Reference,
    port: Option<u64>,
    findings: &mut Findings,
) -> Option<Address> {
    match (upstream.endpoints.as_slice(), named.kind.as_str()) {
        ([one], _) => Some(one.clone()),
        (several, "Service") => {
            if !several.is_empty() {
                let says = "has several Pods and is called by its name: a session is at one of them, so run one, or a server that keeps none";
                findings.warn(&named.spot, says, "");
            }
            Some(Address {
                spot: named.spot.clone(),
                host: format!("{}.{}.svc.cluster.local", named.name, named.namespace),
                port: port?,
            })
        }
        ([], _) => None,
        (_, _) => {
            let says =
                "has several addresses, and a server of tools is at one: sessions live there";
            findings.fault(&named.spot, says, "keep one, or name a server for each");
            None
        }
    }
}

/// As names of servers have to be in our document.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric());
    name.len() <= 32 && name.split('-').all(is_part)
}

fn is_prefixed(mode: Option<&Said<String>>, findings: &mut Findings) -> bool {
    match mode.map(|mode| (mode.value.as_str(), mode)) {
        None | Some(("Always", _)) => true,
        Some(("Never", _)) => false,
        Some((_, mode)) => {
            findings.fault(
                &mode.spot,
                "is no way to prefix names",
                "write Always or Never",
            );
            true
        }
    }
}

/// The key that a server is sent, and the header that carries it.
fn credential(
    cluster: &Cluster<'_>,
    route: &Object<'_>,
    item: &Item<'_>,
    server: Option<&Reference>,
    findings: &mut Findings,
) -> Option<Tree> {
    let mut of = item.fields(findings);
    let secret = of.take("secretRef");
    let inline = of.text("inline", findings);
    let header = of.text("header", findings);
    let query = of.take("queryParam");
    let injection = of.text("injectionPolicy", findings);
    of.end(findings);
    if let Some(query) = query {
        let (says, hint) = match &header {
            Some(_) => ("says queryParam beside header", "keep header"),
            None => (
                "is not honoured here: what stands in an address is shown in logs",
                "write header",
            ),
        };
        findings.fault(&query.spot, says, hint);
    }
    if let Some(said) = injection.filter(|said| said.value != "Always") {
        let says = "is not honoured here: what a client brings is never sent to a server";
        findings.fault(&said.spot, says, "write Always, or leave it out");
    }
    let source = match (secret, inline) {
        (Some(item), None) => {
            let named = Reference::whole(&item, (CORE, "Secret"), &route.namespace, findings)?;
            if !named.is_one_of(&[(CORE, "Secret")], findings) {
                return None;
            }
            cluster.content(route, &named, &["apiKey"], findings)?
        }
        (None, Some(said)) => {
            let of = server.map_or("server", |named| named.name.as_str());
            let path = cluster.give(route, &format!("{of}.key"), said.value.into_bytes());
            Content::File(path)
        }
        (secret, _) => {
            let says = match secret {
                Some(_) => "says secretRef and inline, and a server is sent one key",
                None => "says no key",
            };
            findings.fault(&item.spot, says, "write secretRef or inline");
            return None;
        }
    };
    let Tree::Map(mut members) = source.source(&item.spot) else {
        return None;
    };
    if let Some(header) = header {
        let name = header.value.to_ascii_lowercase();
        if name != "authorization" {
            members.push(("header".into(), Tree::text(name).of(&header.spot)));
        }
    }
    Some(Tree::Map(members).of(&item.spot))
}
