//! InferencePool: the Pods that serve a model, and who picks one of them for each call.
//!
//! Invariant: calls go to Pods that are ready, by their addresses, and to no other one that a picker names.
//! Not here: asking the picker (`callout`), which routes lead here (`refs`).

use std::net::IpAddr;

use config::quoted;

use crate::backend::{Address, Upstream};
use crate::cluster::Cluster;
use crate::fields::{Item, Said};
use crate::findings::{Broken, Findings, Spot};
use crate::object::{CORE, Object};
use crate::reference::Reference;
use crate::slices::{self, is_elsewhere};
use crate::target::{Path, Target};
use crate::tree::Tree;
use crate::trust::{self, Policy};

/// A pool as it is read.
pub(crate) struct Pool {
    spot: Spot,
    upstream: Upstream,
    picker: Option<Picker>,
}

/// Who picks.
struct Picker {
    spot: Spot,
    url: String,
    fails_open: bool,
}

impl Pool {
    pub(crate) fn of(
        cluster: &Cluster<'_>,
        object: &Object<'_>,
        trusts: &[Policy],
        findings: &mut Findings,
    ) -> Option<Self> {
        let before = findings.faults.len();
        let mut spec = object.spec(findings);
        let selector = spec.need("selector", findings);
        let ports: Vec<u64> = spec
            .list("targetPorts", findings)
            .iter()
            .filter_map(|item| number_of(item, findings))
            .collect();
        let protocol = spec.text("appProtocol", findings);
        let picker = spec.take("endpointPickerRef");
        spec.end(findings);
        if ports.is_empty() {
            findings.fault(&object.spot, "has no port", "write targetPorts");
        }
        let is_http2 = protocol.is_some_and(|said| speaks_http2(&said, findings));
        let endpoints = selector.map(|item| endpoints(cluster, object, &item, &ports, findings));
        let picker = picker.and_then(|item| Picker::of(cluster, object, &item, trusts, findings));
        (findings.faults.len() == before).then(|| Self {
            spot: object.spot.clone(),
            upstream: Upstream {
                endpoints: endpoints.unwrap_or_default(),
                is_http2,
                is_elsewhere: cluster.mode.is_live && !cluster.mode.reaches_machine,
                ..Upstream::nowhere()
            },
            picker,
        })
    }

    /// It as a target of calls to models, by this name.
    pub(crate) fn target(self, name: String) -> Target {
        let is_several = self.upstream.endpoints.len() > 1;
        let balancing = match &self.picker {
            Some(picker) => Some(picker.tree()),
            None => is_several.then(|| Tree::text("prefix_cache")),
        };
        Target {
            path: Path::Is("/v1".to_owned()),
            dialect: Some("openai"),
            balancing,
            ..Target::plain(name, self.spot, self.upstream)
        }
    }
}

fn number_of(item: &Item<'_>, findings: &mut Findings) -> Option<u64> {
    let mut of = item.fields(findings);
    let number = of.need("number", findings);
    of.end(findings);
    number?.number(findings).map(|said| said.value)
}

fn speaks_http2(said: &Said<String>, findings: &mut Findings) -> bool {
    match said.value.as_str() {
        "http" => false,
        "kubernetes.io/h2c" => true,
        other => {
            let says = format!("the protocol {} is not spoken", quoted(other));
            findings.fault(&said.spot, says, "write http or kubernetes.io/h2c");
            false
        }
    }
}

/// The addresses of a pool's Pods that are ready, one for each port.
fn endpoints(
    cluster: &Cluster<'_>,
    pool: &Object<'_>,
    selector: &Item<'_>,
    ports: &[u64],
    findings: &mut Findings,
) -> Vec<Address> {
    let mut of = selector.fields(findings);
    let labels = of.need("matchLabels", findings);
    of.end(findings);
    let Some(labels) = labels else {
        return Vec::new();
    };
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, item) in labels.fields(findings).all() {
        let value = item.text(findings);
        all.extend(value.map(|value| (name.to_owned(), value.value)));
    }
    all.sort_unstable();
    if all.is_empty() {
        findings.fault(&labels.spot, "names no label", "write one at least");
        return Vec::new();
    }
    let pods = cluster.pods_of(&pool.namespace, &all, &labels.spot, findings);
    if pods.is_empty() && !cluster.mode.is_live {
        let says = "is of no Pod in these files";
        let hint =
            "add its Pods with their status (kubectl get pods -o yaml), or run with --kubernetes";
        findings.fault(&labels.spot, says, hint);
    }
    let hosts = pods.into_iter().filter_map(address_of);
    let hosts = hosts
        .filter(|host| !cluster.mode.is_live || cluster.mode.reaches_machine || is_elsewhere(host));
    let address = |(host, port): (String, u64)| Address {
        spot: pool.spot.clone(),
        host,
        port,
    };
    let mut all: Vec<(String, u64)> = hosts
        .flat_map(|host| ports.iter().map(move |port| (host.clone(), *port)))
        .collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(address).collect()
}

/// Where a Pod is, where it is ready.
fn address_of(pod: &Object<'_>) -> Option<String> {
    let none = &mut Findings::default();
    if pod.is_going() {
        return None;
    }
    let mut status = pod.top(none).take("status")?.fields(none);
    let conditions = status.list("conditions", none);
    let is_ready = conditions.iter().any(|item| {
        let none = &mut Findings::default();
        let mut of = item.fields(none);
        let mut said = |name| {
            of.text(name, &mut Findings::default())
                .map(|said| said.value)
        };
        said("type").as_deref() == Some("Ready") && said("status").as_deref() == Some("True")
    });
    let host = status.text("podIP", none)?.value;
    let is_address = host.parse::<IpAddr>().is_ok();
    (is_ready && is_address).then_some(host)
}

impl Picker {
    fn of(
        cluster: &Cluster<'_>,
        pool: &Object<'_>,
        item: &Item<'_>,
        trusts: &[Policy],
        findings: &mut Findings,
    ) -> Option<Self> {
        let mut of = item.fields(findings);
        let mode = of.text("failureMode", findings);
        let port = of.take("port");
        let named = Reference::take(&mut of, (CORE, "Service"), &pool.namespace, findings);
        of.end(findings);
        let fails_open = match mode.as_ref().map(|said| said.value.as_str()) {
            None | Some("FailClose") => false,
            Some("FailOpen") => true,
            Some(_) => {
                let hint = "write FailOpen or FailClose";
                findings.fault(&item.spot, "says no failureMode that is known", hint);
                return None;
            }
        };
        let named = named.filter(|named| named.is_one_of(&[(CORE, "Service")], findings))?;
        let Some(port) = port else {
            findings.fault(&item.spot, "needs the port of the Service", "write port");
            return None;
        };
        let port = number_of(&port, findings)?;
        let url = match cluster.mode.is_live {
            true => service_url(cluster, pool, &named, port, trusts, findings)?,
            false => {
                let Reference {
                    namespace, name, ..
                } = &named;
                format!("https://{name}.{namespace}.svc.cluster.local:{port}")
            }
        };
        Some(Self {
            spot: item.spot.clone(),
            url,
            fails_open,
        })
    }

    /// As `balancing` of our document says it.
    fn tree(&self) -> Tree {
        let plain = |text: &str| Some(Tree::Plain(text.to_owned()));
        let picker = Tree::map([
            ("grpc", Some(Tree::text(&self.url))),
            (
                "on_failure",
                Some(Tree::text(if self.fails_open { "allow" } else { "deny" })),
            ),
            // Pickers make a certificate of their own when they start.
            (
                "trust",
                self.url.starts_with("https").then(|| Tree::text("anyone")),
            ),
            ("response_headers", plain("true")),
        ]);
        let members = [
            ("policy", Some(Tree::text("least_request"))),
            ("picker", Some(picker.of(&self.spot))),
        ];
        Tree::map(members)
    }
}

/// Where the Service of a picker is: the first endpoint that is ready, or else the Service's own address, at which nobody answers then.
fn service_url(
    cluster: &Cluster<'_>,
    pool: &Object<'_>,
    named: &Reference,
    port: u64,
    trusts: &[Policy],
    findings: &mut Findings,
) -> Option<String> {
    let service = cluster.resolve(pool, named, findings)?;
    let none = &mut Findings::default();
    let kind = service.spec(none).text("type", none);
    if kind.is_some_and(|said| said.value == "ExternalName") {
        let says = "names a Service that is outside of the cluster";
        let hint = "name one with Pods";
        findings.break_off(Broken::Kind, &named.spot, says, hint);
        return None;
    }
    let reached = slices::of_service(cluster, pool, named, port, findings)?;
    if trust::of_port(trusts, named, &reached.port_name).is_some() {
        let says = "names a Service with a BackendTLSPolicy, and a picker's name is not checked";
        findings.fault(
            &named.spot,
            says,
            "leave the policy out, or write it in a file of ours",
        );
        return None;
    }
    let scheme = if reached.is_http2 { "http" } else { "https" };
    let at = slices::one_of(cluster, pool, named, port, &reached.addresses);
    let host = match at.host.contains(':') {
        true => format!("[{}]", at.host),
        false => at.host,
    };
    Some(format!("{scheme}://{host}:{}", at.port))
}
