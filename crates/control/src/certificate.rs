//! Certificates and roots that objects name, as files.
//!
//! Not here: what trusts them (`listener`, `trust`).

use crate::cluster::Cluster;
use crate::fields::Item;
use crate::findings::Findings;
use crate::object::{CORE, Object};
use crate::reference::Reference;
use crate::tree::Tree;

/// The one bundle of roots that is named, as a file.
pub(crate) fn authority_file(
    cluster: &Cluster<'_>,
    from: &Object<'_>,
    refs: &[Item<'_>],
    findings: &mut Findings,
) -> Option<Tree> {
    let [item, rest @ ..] = refs else {
        return None;
    };
    if let Some(second) = rest.first() {
        let says = "is a second bundle of roots, and there is one";
        findings.fault(&second.spot, says, "write both into one ConfigMap");
    }
    let named = Reference::whole(item, (CORE, "ConfigMap"), &from.namespace, findings)?;
    cluster.file(from, &named, &["ca.crt"], findings)
}

/// A certificate and its key, as files.
pub(crate) fn certificate_of(
    cluster: &Cluster<'_>,
    from: &Object<'_>,
    secret: &Reference,
    findings: &mut Findings,
) -> Option<[Tree; 2]> {
    let certificate = cluster.file(from, secret, &["tls.crt"], findings)?;
    let key = cluster.file(from, secret, &["tls.key"], findings)?;
    Some([certificate, key])
}
