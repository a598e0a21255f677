//! BackendTLSPolicy: by which roots and names an upstream's certificate is checked.

use crate::certificate::{authority_file, certificate_of};
use crate::cluster::Cluster;
use crate::fields::{Fields, Item, Said};
use crate::findings::{Broken, Findings};
use crate::gateway_tls::Shown;
use crate::object::{CORE, ENVOY, Object};
use crate::reference::Reference;
use crate::tree::Tree;

/// TLS to an upstream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trust {
    pub(crate) ca: Option<Tree>,
    pub(crate) hostname: Option<Said<String>>,
    /// Names of which its certificate has to have one, in place of that.
    pub(crate) alt_names: Option<Tree>,
    pub(crate) client_certificate: Option<Tree>,
    /// The one that it is to be shown is faulty.
    pub(crate) shows_faulty: bool,
}

impl Trust {
    /// The same with what the Gateway shows, where nothing else is said of that.
    pub(crate) fn showing(self, shown: &Shown) -> Self {
        match shown {
            Shown::Is(tree) if self.client_certificate.is_none() => Self {
                client_certificate: Some(tree.clone()),
                ..self
            },
            Shown::Faulty if self.client_certificate.is_none() => Self {
                shows_faulty: true,
                ..self
            },
            Shown::None | Shown::Is(_) | Shown::Faulty => self,
        }
    }
}

/// What a policy is for, and what it says.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    pub(crate) target: Reference,
    /// The name of the one port of a Service that it is for.
    section: Option<String>,
    pub(crate) trust: Trust,
}

/// What is said of a Service's port: by a policy for the port, or else for the whole.
pub(crate) fn of_port<'p>(
    policies: &'p [Policy],
    service: &Reference,
    port: &str,
) -> Option<&'p Trust> {
    let of_it = |section: Option<&str>| {
        let mut all = policies.iter();
        all.find(|of| of.target.is_as(service) && of.section.as_deref() == section)
    };
    let own = of_it(Some(port)).or_else(|| of_it(None));
    own.map(|of| &of.trust)
}

/// Policies, the oldest first.
pub(crate) fn policies(cluster: &Cluster<'_>, findings: &mut Findings) -> Vec<Policy> {
    let mut found: Vec<Policy> = Vec::new();
    let mut objects: Vec<&Object<'_>> = cluster.of_kind("BackendTLSPolicy").collect();
    objects.sort_by_cached_key(|object| (object.created.clone(), object.id()));
    for policy in objects {
        let mut spec = policy.spec(findings);
        let targets = targets(&mut spec, policy, findings);
        let mut trust = Trust::default();
        if let Some(item) = spec.need("validation", findings) {
            let mut of = item.fields(findings);
            trust.hostname = of.needed_text("hostname", findings);
            trust.ca = roots(cluster, policy, &item, &mut of, findings);
            trust.alt_names = alt_names(&mut of, findings);
            of.end(findings);
        }
        spec.pass_over(
            &[("options", "versions and ciphers are chosen by the gate")],
            findings,
        );
        spec.end(findings);
        for (target, section) in targets {
            if !target.is_one_of(&[(ENVOY, "Backend"), (CORE, "Service")], findings) {
                continue;
            }
            let is_here =
                target.kind == "Service" || cluster.resolve(policy, &target, findings).is_some();
            if !is_here {
                continue;
            }
            let is_it = |of: &Policy| of.target.is_as(&target) && of.section == section;
            if found.iter().any(is_it) {
                findings.break_off(
                    Broken::Conflict,
                    &target.spot,
                    "has its roots by another policy",
                    "keep one of the policies",
                );
                continue;
            }
            found.push(Policy {
                target,
                section,
                trust: trust.clone(),
            });
        }
    }
    found
}

/// What a policy is for, with the port that it says.
fn targets(
    spec: &mut Fields<'_>,
    policy: &Object<'_>,
    findings: &mut Findings,
) -> Vec<(Reference, Option<String>)> {
    let items = spec.list("targetRefs", findings);
    if items.is_empty() {
        let hint = "name what it is for in spec.targetRefs";
        findings.fault(&policy.spot, "is for nothing", hint);
    }
    let mut targets = Vec::new();
    for item in &items {
        let mut of = item.fields(findings);
        let section = of.text("sectionName", findings);
        let target = Reference::take(&mut of, (CORE, "Service"), &policy.namespace, findings);
        of.end(findings);
        let Some(target) = target else { continue };
        if target.namespace != policy.namespace {
            let says = "is in another namespace, and a policy is for objects of its own";
            findings.fault(&target.spot, says, "write the policy there");
        }
        if let Some(section) = section.as_ref().filter(|_| target.kind != "Service") {
            findings.fault(
                &section.spot,
                "is not honoured here",
                "the policy is for the whole",
            );
        }
        targets.push((target, section.map(|said| said.value)));
    }
    targets
}

/// Names that certificates have beside a host's, of hosts or URIs.
fn alt_names(of: &mut Fields<'_>, findings: &mut Findings) -> Option<Tree> {
    let item = of.take("subjectAltNames")?;
    let mut names = Vec::new();
    for item in item.items(findings) {
        let mut inside = item.fields(findings);
        let kind = inside.needed_text("type", findings);
        let (hostname, uri) = (
            inside.text("hostname", findings),
            inside.text("uri", findings),
        );
        inside.end(findings);
        let said = match (kind.as_ref().map(|kind| kind.value.as_str()), hostname, uri) {
            (Some("Hostname"), Some(said), None) if !said.value.contains('*') => said,
            (Some("Hostname"), Some(said), None) => {
                let says = "has a star, and a name is compared whole";
                findings.fault(&said.spot, says, "write each of the names");
                continue;
            }
            (Some("URI"), None, Some(said)) => said,
            (None, ..) => continue,
            (Some(_), ..) => {
                let hint = "write type: Hostname with hostname, or type: URI with uri";
                findings.fault(&item.spot, "says no single name", hint);
                continue;
            }
        };
        names.push(Tree::text(said.value).of(&said.spot));
    }
    // Without any, it is as if it were not said: the host's name is checked.
    (!names.is_empty()).then(|| Tree::List(names).of(&item.spot))
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
        alt_names: None,
        client_certificate: None,
        shows_faulty: false,
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
