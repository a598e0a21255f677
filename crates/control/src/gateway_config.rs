//! GatewayConfig: costs that hold for all routes, and the proxy on the way to models.
//!
//! Not here: how Envoy's processor is deployed, which no object says to a gate.

use crate::cluster::Cluster;
use crate::findings::Findings;
use crate::gateway::Door;
use crate::object::AI;
use crate::reference::Reference;
use crate::route::{Counted, cost};
use crate::tree::Tree;

/// By what a Gateway names its configuration.
const NAMED_BY: &str = "aigateway.envoyproxy.io/gateway-config";

/// What holds for all routes to models.
#[derive(Default)]
pub(crate) struct GatewayConfig {
    pub(crate) costs: Vec<(String, Counted)>,
    pub(crate) proxy: Option<Tree>,
}

/// What the Gateway's configuration says.
pub(crate) fn read(
    cluster: &Cluster<'_>,
    door: &Door<'_, '_>,
    findings: &mut Findings,
) -> GatewayConfig {
    let gateway = door.gateway;
    let mut annotations = gateway.annotations.iter();
    let named = annotations.find(|(name, _)| name == NAMED_BY);
    let named = named.map(|(_, name)| Reference {
        spot: gateway.spot.clone(),
        group: AI.to_owned(),
        kind: "GatewayConfig".to_owned(),
        namespace: gateway.namespace.clone(),
        name: name.clone(),
    });
    let mut config = GatewayConfig::default();
    for object in cluster.of_kind("GatewayConfig") {
        let is_it = named.as_ref().is_some_and(|named| named.is_to(object));
        if !is_it {
            let says = format!("is left out: no Gateway names it by the annotation {NAMED_BY}");
            findings.warn(&object.spot, says, "");
        }
        let mut spec = object.spec(findings);
        let deployed = "where and how the gate runs is not said here";
        spec.pass_over(&[("extProc", deployed)], findings);
        let costs = spec.list("globalLLMRequestCosts", findings);
        let costs: Vec<_> = costs
            .iter()
            .filter_map(|item| cost(item, findings))
            .collect();
        let proxy = spec.take("forwardProxy").and_then(|item| {
            let mut of = item.fields(findings);
            let address = of.needed_text("address", findings);
            of.end(findings);
            address.map(|said| Tree::text(format!("http://{}", said.value)).of(&said.spot))
        });
        spec.end(findings);
        if is_it {
            config = GatewayConfig { costs, proxy };
        }
    }
    if let Some(named) = named {
        cluster.resolve(gateway, &named, findings);
    }
    config
}
