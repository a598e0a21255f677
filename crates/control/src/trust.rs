//! BackendTLSPolicy: by which roots and names an upstream's certificate is checked.

use crate::cluster::Cluster;
use crate::fields::{Fields, Item, Said};
use crate::findings::Findings;
use crate::gateway::{authority_file, certificate_of, targets};
use crate::object::{CORE, ENVOY, Object};
use crate::reference::Reference;
use crate::tree::Tree;

/// TLS to an upstream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trust {
    pub(crate) ca: Option<Tree>,
    pub(crate) hostname: Option<Said<String>>,
    pub(crate) client_certificate: Option<Tree>,
}

/// Policies, and what each is for.
pub(crate) fn policies(cluster: &Cluster<'_>, findings: &mut Findings) -> Vec<(Reference, Trust)> {
    let mut found: Vec<(Reference, Trust)> = Vec::new();
    for policy in cluster.of_kind("BackendTLSPolicy") {
        let mut spec = policy.spec(findings);
        let targets = targets(&mut spec, policy, findings);
        let mut trust = Trust::default();
        if let Some(item) = spec.need("validation", findings) {
            let mut of = item.fields(findings);
            trust.hostname = of.needed_text("hostname", findings);
            trust.ca = roots(cluster, policy, &item, &mut of, findings);
            of.refuse(
                &[(
                    "subjectAltNames",
                    "a certificate is checked by its host's name",
                )],
                findings,
            );
            of.end(findings);
        }
        spec.pass_over(
            &[("options", "versions and ciphers are chosen by the gate")],
            findings,
        );
        spec.end(findings);
        for target in targets {
            if !target.is_one_of(&[(ENVOY, "Backend"), (CORE, "Service")], findings) {
                continue;
            }
            let is_here =
                target.kind == "Service" || cluster.resolve(policy, &target, findings).is_some();
            if !is_here {
                continue;
            }
            let is_it = |(other, _): &(Reference, Trust)| other.is_as(&target);
            if found.iter().any(is_it) {
                findings.fault(
                    &target.spot,
                    "has its roots by another policy",
                    "keep one of the policies",
                );
            }
            found.push((target, trust.clone()));
        }
    }
    found
}

/// The roots that are said: a file, or the system's.
fn roots(
    cluster: &Cluster<'_>,
    from: &Object<'_>,
    item: &Item<'_>,
    of: &mut Fields<'_>,
    findings: &mut Findings,
) -> Option<Tree> {
    let well_known = of.text("wellKnownCACertificates", findings);
    let refs = of.list("caCertificateRefs", findings);
    if let Some(said) = well_known.as_ref().filter(|said| said.value != "System") {
        findings.fault(&said.spot, "is not known", "write System");
    }
    if refs.is_empty() && well_known.is_none() {
        findings.fault(
            &item.spot,
            "says no roots to trust",
            "write wellKnownCACertificates: System, or name a ConfigMap in caCertificateRefs",
        );
    }
    authority_file(cluster, from, &refs, findings)
}

/// What a Backend says of TLS itself.
pub(crate) fn own(
    cluster: &Cluster<'_>,
    backend: &Object<'_>,
    item: &Item<'_>,
    findings: &mut Findings,
) -> Trust {
    let mut of = item.fields(findings);
    let mut trust = Trust {
        ca: roots(cluster, backend, item, &mut of, findings),
        hostname: of.text("sni", findings),
        client_certificate: None,
    };
    if let Some(said) = of
        .flag("insecureSkipVerify", findings)
        .filter(|said| said.value)
    {
        findings.fault(
            &said.spot,
            "is not honoured here: certificates are always checked",
            "name the roots in caCertificateRefs",
        );
    }
    if let Some(item) = of.take("clientCertificateRef") {
        let secret = Reference::whole(&item, (CORE, "Secret"), &backend.namespace, findings);
        let pair = secret.and_then(|secret| certificate_of(cluster, backend, &secret, findings));
        trust.client_certificate = pair.map(|[certificate, key]| {
            Tree::map([("certificate", Some(certificate)), ("key", Some(key))]).of(&item.spot)
        });
    }
    let chosen = "versions and ciphers are chosen by the gate";
    of.pass_over(
        &[
            ("minVersion", chosen),
            ("maxVersion", chosen),
            ("ciphers", chosen),
            ("ecdhCurves", chosen),
            ("signatureAlgorithms", chosen),
            ("alpnProtocols", chosen),
            ("autoSNI", "the host's name is sent"),
        ],
        findings,
    );
    of.end(findings);
    trust
}
