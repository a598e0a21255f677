//! Targets of rules: AIServiceBackends, Services, Backends and pools.
//!
//! Not here: what a rule says of one (`refs`), what several of them are together (`backends`).

use std::collections::BTreeMap;

use crate::backend::Upstream;
use crate::cluster::Cluster;
use crate::credential::Credential;
use crate::fields::Item;
use crate::findings::Findings;
use crate::gateway::Door;
use crate::gateway_tls::Shown;
use crate::object::{CORE, ENVOY, Object};
use crate::pool::Pool;
use crate::reference::Reference;
use crate::schema::{project, schema};
use crate::slices;
use crate::target::{Path, Target, called};
use crate::tree::Tree;
use crate::trust::Policy;

/// What is read once for all routes.
pub(crate) struct Services {
    pub(crate) upstreams: BTreeMap<(String, String), Upstream>,
    pub(crate) targets: BTreeMap<(String, String), Target>,
    /// Pools as they serve models.
    pub(crate) pools: BTreeMap<(String, String), Target>,
    pub(crate) trusts: Vec<Policy>,
    /// The certificate that upstreams are shown.
    shown: Shown,
}

impl Services {
    pub(crate) fn read(
        cluster: &Cluster<'_>,
        door: &Door<'_, '_>,
        findings: &mut Findings,
    ) -> Self {
        let home = door.gateway.namespace.as_str();
        let trusts = crate::trust::policies(cluster, findings);
        let credentials = crate::credential::policies(cluster, findings);
        let id = |object: &Object<'_>| (object.namespace.clone(), object.name.clone());
        let upstreams: BTreeMap<_, _> = cluster
            .of_kind("Backend")
            .map(|backend| {
                let mut upstream = Upstream::of(cluster, backend, &trusts, findings);
                upstream.trust = upstream.trust.map(|trust| trust.showing(&door.shown));
                (id(backend), upstream)
            })
            .collect();
        let mut targets = BTreeMap::new();
        for service in cluster.of_kind("AIServiceBackend") {
            let credential = credentials.iter().find(|(target, _)| target.is_to(service));
            let credential = credential.map(|(_, credential)| credential.clone());
            let target =
                Target::of_service(cluster, service, &upstreams, credential, home, findings);
            targets.extend(target.map(|target| (id(service), target)));
        }
        let mut pools = BTreeMap::new();
        for object in cluster.of_kind("InferencePool") {
            let credential = credentials.iter().find(|(target, _)| target.is_to(object));
            let credential = credential.map(|(_, credential)| credential.clone());
            let pool = Pool::of(cluster, object, &trusts, findings);
            let target =
                pool.map(|pool| pool.target(called(&object.namespace, &object.name, home)));
            let target = target.map(|target| Target {
                credential,
                ..target
            });
            pools.extend(target.map(|target| (id(object), target)));
        }
        Self {
            upstreams,
            targets,
            pools,
            trusts,
            shown: door.shown.clone(),
        }
    }

    /// A target of plain HTTP: a Service by its name in the cluster, a Backend, or a pool.
    pub(crate) fn plain(
        &self,
        cluster: &Cluster<'_>,
        route: &Object<'_>,
        named: &Reference,
        port: Option<u64>,
        home: &str,
        findings: &mut Findings,
    ) -> Option<Target> {
        let name = called(&named.namespace, &named.name, home);
        let upstream = match named.kind.as_str() {
            "InferencePool" => {
                cluster.resolve(route, named, findings)?;
                let pool = self
                    .pools
                    .get(&(named.namespace.clone(), named.name.clone()));
                return pool.cloned().map(Target::of_plain_http);
            }
            "Backend" => {
                cluster.resolve(route, named, findings)?;
                self.upstreams
                    .get(&(named.namespace.clone(), named.name.clone()))
                    .cloned()?
            }
            _ => {
                if !cluster.is_granted(route, named, findings) {
                    return None;
                }
                let Some(port) = port else {
                    findings.fault(&named.spot, "needs the port of the Service", "write port");
                    return None;
                };
                let reached = if cluster.mode.is_live {
                    slices::of_service(cluster, route, named, port, findings)?
                } else {
                    slices::Reached {
                        addresses: vec![crate::backend::Address {
                            spot: named.spot.clone(),
                            host: format!("{}.{}.svc.cluster.local", named.name, named.namespace),
                            port,
                        }],
                        is_http2: false,
                        port_name: String::new(),
                    }
                };
                let trust = crate::trust::of_port(&self.trusts, named, &reached.port_name);
                Upstream {
                    endpoints: reached.addresses,
                    is_fallback: false,
                    is_http2: reached.is_http2,
                    trust: trust.map(|trust| trust.clone().showing(&self.shown)),
                    is_elsewhere: cluster.mode.is_live && !cluster.mode.reaches_machine,
                }
            }
        };
        let is_sound = upstream.can_be_shown(&named.spot, findings);
        is_sound.then(|| Target::plain(name, named.spot.clone(), upstream))
    }
}

impl Target {
    fn of_service(
        cluster: &Cluster<'_>,
        service: &Object<'_>,
        upstreams: &BTreeMap<(String, String), Upstream>,
        credential: Option<Credential>,
        home: &str,
        findings: &mut Findings,
    ) -> Option<Self> {
        let mut spec = service.spec(findings);
        let schema = spec
            .need("schema", findings)
            .and_then(|item| schema(&item, findings));
        let headers = spec
            .take("headerMutation")
            .and_then(|item| headers(&item, findings));
        spec.refuse(
            &[
                (
                    "bodyMutation",
                    "bodies are edited in what a route says of models, and in nothing else",
                ),
                ("headerValueFilters", "write api_headers in a file of ours"),
            ],
            findings,
        );
        // A field of earlier versions, which their API servers leave out.
        spec.pass_over(&[("timeouts", "a route's rule says its times")], findings);
        let backend = spec.need("backendRef", findings);
        let backend = backend.and_then(|item| {
            let mut of = item.fields(findings);
            of.skip(&["port"]);
            let named = Reference::take(&mut of, (CORE, "Service"), &service.namespace, findings);
            of.end(findings);
            named
        });
        spec.end(findings);
        let backend = backend.filter(|named| named.is_one_of(&[(ENVOY, "Backend")], findings))?;
        cluster.resolve(service, &backend, findings)?;
        let upstream = upstreams.get(&(backend.namespace, backend.name)).cloned()?;
        if !upstream.can_be_shown(&backend.spot, findings) {
            return None;
        }
        let (path, dialect) = schema?;
        let path = match path {
            Path::Project => project(service, credential.as_ref(), findings)?,
            Path::Is(_) | Path::Deployment(_) => path,
        };
        Some(Self {
            name: called(&service.namespace, &service.name, home),
            spot: service.spot.clone(),
            upstream,
            path,
            dialect: Some(dialect),
            headers,
            balancing: None,
            credential,
        })
    }
}

/// Headers that are set for a target.
pub(crate) fn headers(item: &Item<'_>, findings: &mut Findings) -> Option<Tree> {
    let mut of = item.fields(findings);
    let mut set = Vec::new();
    for header in of.list("set", findings) {
        let mut inside = header.fields(findings);
        let name = inside.needed_text("name", findings);
        let value = inside.needed_text("value", findings);
        inside.end(findings);
        if let (Some(name), Some(value)) = (name, value) {
            set.push((
                name.value.to_ascii_lowercase(),
                Tree::text(value.value).of(&header.spot),
            ));
        }
    }
    for said in of.texts("remove", findings) {
        let name = said.value.to_ascii_lowercase();
        if name.starts_with("anthropic-") || name.starts_with("openai-") {
            findings.fault(
                &said.spot,
                "is not honoured here",
                "write api_headers in a file of ours",
            );
        } else {
            findings.warn(
                &said.spot,
                "is left out: a client's header passes only where a route lists it",
                "",
            );
        }
    }
    of.end(findings);
    (!set.is_empty()).then(|| Tree::Map(set).of(&item.spot))
}
