//! `spec.tls` of a Gateway: by which roots clients are checked at each port, and what the gate shows to upstreams.
//!
//! Invariant: a listener whose clients cannot be checked as it is said is not served, and an upstream that is to be shown a certificate that
//! cannot be had gets no calls.
//! Not here: certificates of single listeners (`listener`), roots for upstreams (`trust`).

use crate::certificate::{authority_file, certificate_of};
use crate::cluster::Cluster;
use crate::fields::{Fields, Item};
use crate::findings::{Broken, Findings, Spot};
use crate::object::{CORE, Object};
use crate::reference::Reference;
use crate::tree::Tree;

/// Which certificates clients are asked for.
pub(crate) enum Clients {
    None,
    /// Those that the roots of this file sign.
    Signed(String),
    /// What is said of them is faulty.
    Unknown,
}

impl Clients {
    /// Whether one port cannot ask for both.
    pub(crate) fn are_against(&self, others: &Self) -> bool {
        match (self, others) {
            (Self::Signed(one), Self::Signed(other)) => one != other,
            (Self::Signed(_), Self::None) | (Self::None, Self::Signed(_)) => true,
            (Self::None, Self::None) | (Self::Unknown, _) | (_, Self::Unknown) => false,
        }
    }
}

/// What a Gateway says of TLS for all of its listeners and upstreams.
pub(crate) struct GatewayTls<'o, 'n> {
    gateway: &'o Object<'n>,
    /// How clients are checked at ports of which nothing else is said.
    default: Option<Item<'n>>,
    ports: Vec<(u64, Option<Item<'n>>)>,
    pub(crate) shown: Shown,
}

/// The certificate that upstreams are shown.
#[derive(Debug, Clone)]
pub(crate) enum Shown {
    None,
    Is(Tree),
    /// It is faulty: what would be shown it gets no calls.
    Faulty,
}

impl<'o, 'n> GatewayTls<'o, 'n> {
    pub(crate) fn of(
        cluster: &Cluster<'n>,
        gateway: &'o Object<'n>,
        spec: &mut Fields<'n>,
        findings: &mut Findings,
    ) -> Self {
        let mut tls = Self {
            gateway,
            default: None,
            ports: Vec::new(),
            shown: Shown::None,
        };
        let Some(item) = spec.take("tls") else {
            return tls;
        };
        let mut of = item.fields(findings);
        if let Some(item) = of.take("frontend") {
            let mut of = item.fields(findings);
            let default = of.take("default");
            tls.default = default.and_then(|item| validation_of(&item, findings));
            for item in of.list("perPort", findings) {
                let mut of = item.fields(findings);
                let port = of.need("port", findings);
                let port = port.and_then(|item| item.number(findings));
                let inside = of.need("tls", findings);
                of.end(findings);
                let validation = inside.and_then(|item| validation_of(&item, findings));
                tls.ports.extend(port.map(|port| (port.value, validation)));
            }
            of.end(findings);
        }
        if let Some(item) = of.take("backend") {
            let mut of = item.fields(findings);
            if let Some(item) = of.take("clientCertificateRef") {
                let is_faulty = cluster.mode.is_shown_faulty;
                let mut quiet = Findings::default();
                let findings = if is_faulty {
                    &mut quiet
                } else {
                    &mut *findings
                };
                tls.shown = match shown(cluster, gateway, &item, findings) {
                    Some(tree) => Shown::Is(tree.of(&item.spot)),
                    None => Shown::Faulty,
                };
            }
            of.end(findings);
        }
        of.end(findings);
        tls
    }

    /// How clients of a listener on a port are checked, by which file; a fault of the listener where they cannot be.
    pub(crate) fn clients(
        &self,
        cluster: &Cluster<'_>,
        port: u64,
        listener: &Spot,
        findings: &mut Findings,
    ) -> (Option<Tree>, Clients) {
        let own = self.ports.iter().find(|(of, _)| *of == port);
        let Some(item) = own.map_or(self.default.as_ref(), |(_, own)| own.as_ref()) else {
            return (None, Clients::None);
        };
        let mut found = Findings::default();
        let read = validation(cluster, self.gateway, item, &mut found);
        for (at, fault) in found.faults.iter().enumerate() {
            let mut broken = found.broken.iter();
            let how = match broken.find(|(of, _)| *of == at).map(|(_, how)| how) {
                Some(Broken::NotPermitted) => Broken::ClientRootsNotPermitted,
                Some(Broken::Kind) => Broken::ClientRootsKind,
                _ => Broken::ClientRoots,
            };
            let place = fault.path.rsplit(' ').next().unwrap_or_default();
            let says = format!(
                "cannot check certificates of clients: {place}: {}",
                fault.says
            );
            findings.break_off(how, listener, says, fault.hint.clone());
        }
        read
    }
}

/// The validation that an entry of `frontend` says.
fn validation_of<'n>(item: &Item<'n>, findings: &mut Findings) -> Option<Item<'n>> {
    let mut of = item.fields(findings);
    let validation = of.take("validation");
    of.end(findings);
    validation
}

/// How clients are checked: by the roots of which file.
pub(crate) fn validation(
    cluster: &Cluster<'_>,
    owner: &Object<'_>,
    item: &Item<'_>,
    findings: &mut Findings,
) -> (Option<Tree>, Clients) {
    let mut of = item.fields(findings);
    let roots = of.list("caCertificateRefs", findings);
    if roots.is_empty() {
        let says = "names no roots for clients' certificates, and would let in who has none";
        findings.fault(&item.spot, says, "write caCertificateRefs");
    }
    let client_ca = authority_file(cluster, owner, &roots, findings);
    let mode = of.text("mode", findings);
    of.end(findings);
    let file = client_ca.as_ref().map(Tree::flow);
    match mode.as_ref().map(|mode| mode.value.as_str()) {
        None | Some("AllowValidOnly") => {
            (client_ca, file.map_or(Clients::Unknown, Clients::Signed))
        }
        // Nothing follows from a certificate that need not be good, and nobody is asked for one.
        Some("AllowInsecureFallback") => (None, Clients::None),
        Some(_) => {
            if let Some(mode) = mode {
                let hint = "write AllowValidOnly or AllowInsecureFallback";
                findings.fault(&mode.spot, "is no way to check clients", hint);
            }
            (None, Clients::Unknown)
        }
    }
}

/// The certificate that upstreams are shown, with its key.
fn shown(
    cluster: &Cluster<'_>,
    gateway: &Object<'_>,
    item: &Item<'_>,
    findings: &mut Findings,
) -> Option<Tree> {
    let secret = Reference::whole(item, (CORE, "Secret"), &gateway.namespace, findings)?;
    if !secret.is_one_of(&[(CORE, "Secret")], findings) {
        return None;
    }
    let [certificate, key] = certificate_of(cluster, gateway, &secret, findings)?;
    Some(Tree::map([
        ("certificate", Some(certificate)),
        ("key", Some(key)),
    ]))
}
