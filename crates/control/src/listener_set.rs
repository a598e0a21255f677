//! ListenerSets: listeners that stand outside the Gateway, of which it says from where it lets them in.
//!
//! Invariant: nobody adds a listener to a Gateway that does not say so: it lets in none unless said.
//! Not here: the listeners themselves (`listener`), which of them cannot stand beside others (`listeners`).

use crate::cluster::Cluster;
use crate::fields::Fields;
use crate::findings::{Broken, Findings};
use crate::listeners::Owner;
use crate::namespaces::Namespaces;
use crate::object::{GATEWAY_API, Object};
use crate::reference::Reference;

/// From where a Gateway lets them in, by its `spec`.
pub(crate) fn allowed(spec: &mut Fields<'_>, findings: &mut Findings) -> Namespaces {
    let Some(item) = spec.take("allowedListeners") else {
        return Namespaces::None;
    };
    let mut of = item.fields(findings);
    let namespaces = of.take("namespaces");
    of.end(findings);
    namespaces.map_or(Namespaces::None, |item| {
        Namespaces::of(&item, Namespaces::None, findings)
    })
}

/// Those that are let in, the oldest first; a fault for each that is not.
pub(crate) fn let_in<'c, 'n>(
    cluster: &'c Cluster<'n>,
    gateway: &Object<'_>,
    allowed: &Namespaces,
    findings: &mut Findings,
) -> Vec<Owner<'c, 'n>> {
    let mut objects: Vec<&Object<'n>> = cluster.of_kind("ListenerSet").collect();
    objects.sort_by_cached_key(|object| (object.created.clone(), object.id()));
    let mut owners = Vec::new();
    for object in objects {
        let mut spec = object.spec(findings);
        let parent = spec.need("parentRef", findings).and_then(|item| {
            Reference::whole(&item, (GATEWAY_API, "Gateway"), &object.namespace, findings)
        });
        let items = spec.list("listeners", findings);
        spec.end(findings);
        let parent = parent.filter(|of| of.is_one_of(&[(GATEWAY_API, "Gateway")], findings));
        let Some(parent) = parent else { continue };
        if !parent.is_to(gateway) {
            let says = format!("there is no Gateway {}/{}", parent.namespace, parent.name);
            let hint = format!("the one that is here is {}", gateway.id());
            findings.fault(&parent.spot, says, hint);
            continue;
        }
        if !allowed.lets_in(cluster, &gateway.namespace, &object.namespace) {
            let says = format!("is not let in by the Gateway {}", gateway.id());
            let hint = "write its namespace in that Gateway's allowedListeners";
            findings.break_off(Broken::NotAllowed, &parent.spot, says, hint);
            continue;
        }
        owners.push(Owner { object, items });
    }
    owners
}
