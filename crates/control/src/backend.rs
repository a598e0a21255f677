//! Envoy Gateway's Backend: addresses.

use std::net::IpAddr;

use policy::address::is_allowed;

use crate::cluster::Cluster;
use crate::fields::Item;
use crate::findings::{Findings, Spot};
use crate::object::Object;
use crate::tree::Tree;
use crate::trust::{self, Policy, Trust};

/// Addresses of one Backend.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    pub(crate) endpoints: Vec<Address>,
    pub(crate) is_fallback: bool,
    pub(crate) is_http2: bool,
    pub(crate) trust: Option<Trust>,
    /// Nothing is sent to the gate's own machine, whatever a name of it is looked up to.
    pub(crate) is_elsewhere: bool,
}

/// One of them.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) spot: Spot,
    pub(crate) host: String,
    pub(crate) port: u64,
}

impl Upstream {
    /// Without an address.
    pub(crate) fn nowhere() -> Self {
        Self {
            endpoints: Vec::new(),
            is_fallback: false,
            is_http2: false,
            trust: None,
            is_elsewhere: false,
        }
    }

    pub(crate) fn of(
        cluster: &Cluster<'_>,
        backend: &Object<'_>,
        policies: &[Policy],
        findings: &mut Findings,
    ) -> Self {
        let mut spec = backend.spec(findings);
        if let Some(kind) = spec
            .text("type", findings)
            .filter(|kind| kind.value != "Endpoints")
        {
            findings.fault(
                &kind.spot,
                "is not honoured here",
                "write the addresses under endpoints",
            );
        }
        let mut upstream = Self {
            endpoints: Vec::new(),
            is_fallback: spec
                .flag("fallback", findings)
                .is_some_and(|said| said.value),
            is_http2: false,
            trust: None,
            is_elsewhere: cluster.mode.is_live && !cluster.mode.reaches_machine,
        };
        for said in spec.texts("appProtocols", findings) {
            match said.value.as_str() {
                "gateway.envoyproxy.io/h2c" | "kubernetes.io/h2c" => upstream.is_http2 = true,
                _ => findings.fault(
                    &said.spot,
                    "is not honoured here",
                    "leave it out: HTTP is spoken to models",
                ),
            }
        }
        if let Some(item) = spec.take("tls") {
            upstream.trust = Some(trust::own(cluster, backend, &item, findings));
        }
        let for_it = policies.iter().find(|of| of.target.is_to(backend));
        if let Some(Policy { trust, .. }) = for_it {
            let own = upstream.trust.take().and_then(|own| own.client_certificate);
            upstream.trust = Some(Trust {
                client_certificate: own,
                ..trust.clone()
            });
        }
        let endpoints = spec.list("endpoints", findings);
        if endpoints.is_empty() {
            findings.fault(&backend.spot, "has no address", "write spec.endpoints");
        }
        upstream.endpoints = endpoints
            .iter()
            .filter_map(|item| Address::of(item, findings))
            .collect();
        if cluster.mode.is_live && !cluster.mode.reaches_machine {
            let all = upstream.endpoints.iter();
            for at in all.filter(|at| is_of_machine(&at.host)) {
                findings.fault(
                    &at.spot,
                    "is an address of the gate's own machine, of its link or of nobody, which no object reaches",
                    "name a Service; a gate beside its cluster may be run with --local-backends",
                );
            }
        }
        spec.end(findings);
        upstream
    }

    /// Whether it can be shown what it is to be shown; a fault where it cannot.
    pub(crate) fn can_be_shown(&self, spot: &Spot, findings: &mut Findings) -> bool {
        let is_faulty = self.trust.as_ref().is_some_and(|of| of.shows_faulty);
        if is_faulty {
            let says = "is to be shown a certificate by the Gateway's tls.backend, which is faulty";
            findings.fault(spot, says, "its status says why");
        }
        !is_faulty
    }

    /// An address of it, with a path.
    pub(crate) fn url(&self, at: &Address, path: &str) -> Tree {
        let scheme = if self.trust.is_some() {
            "https"
        } else {
            "http"
        };
        let host = if at.host.contains(':') {
            format!("[{}]", at.host)
        } else {
            at.host.clone()
        };
        let port = match (scheme, at.port) {
            ("https", 443) | ("http", 80) => String::new(),
            (_, port) => format!(":{port}"),
        };
        Tree::text(format!("{scheme}://{host}{port}{path}")).of(&at.spot)
    }

    /// The name by which its certificate is checked, where that is not the one that is dialled.
    pub(crate) fn tls_name(&self) -> Option<Tree> {
        let name = self.trust.as_ref()?.hostname.as_ref()?;
        let is_other = |at: &Address| !at.host.eq_ignore_ascii_case(&name.value);
        let is_other = self.endpoints.iter().any(is_other);
        is_other.then(|| Tree::text(&name.value).of(&name.spot))
    }
}

/// Whether a host is the machine that looks it up, or nobody else's, however it is written. A name is looked up later.
pub(crate) fn is_of_machine(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    let host = host.to_ascii_lowercase();
    if let Ok(address) = host.parse::<IpAddr>() {
        let address = address.to_canonical();
        return address.is_loopback() || !is_allowed(address, false);
    }
    // What ends with a number is an address in one of its old forms.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    is_number || host == "localhost" || host.ends_with(".localhost")
}

impl Address {
    fn of(item: &Item<'_>, findings: &mut Findings) -> Option<Self> {
        let mut of = item.fields(findings);
        let fqdn = of.take("fqdn");
        let ip = of.take("ip");
        of.refuse(
            &[
                ("unix", "sockets of Unix are not dialled"),
                ("hostname", "the host header is the address's"),
            ],
            findings,
        );
        of.skip(&["zone"]);
        of.end(findings);
        let (item, name) = match (fqdn, ip) {
            (Some(item), None) => (item, "hostname"),
            (None, Some(item)) => (item, "address"),
            _ => {
                findings.fault(
                    &item.spot,
                    "says no single address",
                    "write fqdn: { hostname, port } or ip: { address, port }",
                );
                return None;
            }
        };
        let mut of = item.fields(findings);
        let host = of.needed_text(name, findings);
        let port = of
            .need("port", findings)
            .and_then(|item| item.number(findings));
        of.end(findings);
        Some(Self {
            spot: item.spot.clone(),
            host: host?.value,
            port: port?.value,
        })
    }
}
