//! Targets of rules: AIServiceBackends, Services and Backends.
//!
//! Not here: what several of them are together (`backends`).

use std::collections::BTreeMap;

use config::quoted;

use crate::backend::Upstream;
use crate::cluster::Cluster;
use crate::credential::Credential;
use crate::edits;
use crate::fields::{Fields, Item};
use crate::findings::{Findings, Spot};
use crate::object::{AI, CORE, ENVOY, Object};
use crate::reference::Reference;
use crate::slices;
use crate::tree::Tree;
use crate::trust::Policy;

/// Where calls of a target go, and how.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) spot: Spot,
    pub(crate) upstream: Upstream,
    pub(crate) path: Path,
    /// The API that it speaks; none of plain HTTP.
    pub(crate) dialect: Option<&'static str>,
    pub(crate) headers: Option<Tree>,
    credential: Option<Credential>,
}

/// What stands before a call's path.
#[derive(Debug, Clone)]
pub(crate) enum Path {
    Is(String),
    /// Azure's, which has the deployment in it, and its version in the query.
    Deployment(String),
    /// Google's, which has the project and the region in it; the credential says them.
    Project,
}

/// What is read once for all routes.
pub(crate) struct Services {
    pub(crate) upstreams: BTreeMap<(String, String), Upstream>,
    pub(crate) targets: BTreeMap<(String, String), Target>,
    pub(crate) trusts: Vec<Policy>,
}

impl Services {
    pub(crate) fn read(cluster: &Cluster<'_>, home: &str, findings: &mut Findings) -> Self {
        let trusts = crate::trust::policies(cluster, findings);
        let credentials = crate::credential::policies(cluster, findings);
        let id = |object: &Object<'_>| (object.namespace.clone(), object.name.clone());
        let upstreams: BTreeMap<_, _> = cluster
            .of_kind("Backend")
            .map(|backend| {
                (
                    id(backend),
                    Upstream::of(cluster, backend, &trusts, findings),
                )
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
        Self {
            upstreams,
            targets,
            trusts,
        }
    }

    /// A target of plain HTTP: a Service by its name in the cluster, or a Backend.
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
                    trust: trust.cloned(),
                    is_elsewhere: cluster.mode.is_live && !cluster.mode.reaches_machine,
                }
            }
        };
        Some(Target::plain(name, named.spot.clone(), upstream))
    }
}

/// What an object is called in our document.
pub(crate) fn called(namespace: &str, name: &str, home: &str) -> String {
    match namespace == home {
        true => name.to_owned(),
        false => format!("{namespace}.{name}"),
    }
}

impl Target {
    /// One of plain HTTP.
    pub(crate) fn plain(name: String, spot: Spot, upstream: Upstream) -> Self {
        Self {
            name,
            spot,
            upstream,
            path: Path::Is(String::new()),
            dialect: None,
            headers: None,
            credential: None,
        }
    }

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
            credential,
        })
    }

    pub(crate) fn is_fallback(&self) -> bool {
        self.upstream.is_fallback
    }

    /// Whether its address has the name of a deployment in it.
    pub(crate) fn needs_deployment(&self) -> bool {
        matches!(self.path, Path::Deployment(_))
    }
}

/// What stands before the paths of Vertex AI.
fn project(
    service: &Object<'_>,
    credential: Option<&Credential>,
    findings: &mut Findings,
) -> Option<Path> {
    let said = credential.and_then(|credential| credential.project.as_ref());
    let Some([project, region]) = said else {
        let says = "goes to a project of Google's, and which it is is not known";
        let hint = "write projectName and region in gcpCredentials of a policy for it";
        findings.fault(&service.spot, says, hint);
        return None;
    };
    let is_odd = |b: u8| !b.is_ascii_alphanumeric() && !matches!(b, b'-' | b':' | b'.');
    for part in [project, region] {
        if part.value.is_empty() || part.value.starts_with('.') || part.value.bytes().any(is_odd) {
            findings.fault(
                &part.spot,
                "is no name of Google's",
                "write it as the console shows it",
            );
            return None;
        }
    }
    let (project, region) = (&project.value, &region.value);
    Some(Path::Is(format!(
        "/v1/projects/{project}/locations/{region}"
    )))
}

/// The API of a service, and what stands before its paths.
fn schema(item: &Item<'_>, findings: &mut Findings) -> Option<(Path, &'static str)> {
    let mut of = item.fields(findings);
    let name = of.needed_text("name", findings);
    let version = of.text("version", findings);
    let prefix = of.text("prefix", findings);
    of.end(findings);
    let name = name?;
    let prefixed = |unless: &str| {
        let prefix = prefix.as_ref().map_or(unless, |said| said.value.as_str());
        Path::Is(match prefix.trim_matches('/') {
            "" => String::new(),
            prefix => format!("/{prefix}"),
        })
    };
    let found = match name.value.as_str() {
        "OpenAI" => (prefixed("v1"), "openai"),
        "Anthropic" => (prefixed("v1"), "anthropic"),
        "AWSOpenAI" => (prefixed("openai/v1"), "openai"),
        "AWSBedrock" => (prefixed(""), "bedrock"),
        "AzureOpenAI" => {
            let Some(version) = &version else {
                findings.fault(
                    &item.spot,
                    "needs the version of Azure's API",
                    "write version, such as 2024-10-21",
                );
                return None;
            };
            if let Some(prefix) = &prefix {
                findings.fault(&prefix.spot, "is not of Azure's API", "leave it out");
            }
            return Some((Path::Deployment(version.value.clone()), "openai"));
        }
        "GCPVertexAI" => {
            if let Some(prefix) = &prefix {
                findings.fault(&prefix.spot, "is not of Google's API", "leave it out");
            }
            (Path::Project, "vertex")
        }
        other @ ("AWSAnthropic" | "GCPAnthropic" | "Cohere" | "TypeSafe") => {
            let says = format!("the schema {other} is not spoken");
            findings.fault(
                &name.spot,
                says,
                "write OpenAI, AzureOpenAI, Anthropic, GCPVertexAI, AWSBedrock or AWSOpenAI, with an address that speaks it",
            );
            return None;
        }
        other => {
            findings.fault(
                &name.spot,
                format!("the schema {} is not known", quoted(other)),
                "write OpenAI, AzureOpenAI, Anthropic, GCPVertexAI, AWSBedrock or AWSOpenAI",
            );
            return None;
        }
    };
    if let Some(version) = version {
        findings.warn(
            &version.spot,
            "is left out: this schema has no version; what stands before its paths is prefix",
            "",
        );
    }
    Some(found)
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

/// What a rule says of one of its targets.
#[derive(Debug, Clone)]
pub(crate) struct Ref {
    pub(crate) spot: Spot,
    pub(crate) target: Target,
    pub(crate) weight: u64,
    pub(crate) priority: u64,
    pub(crate) model: Option<String>,
    pub(crate) headers: Option<Tree>,
    /// What becomes of header fields of calls of plain HTTP to it.
    pub(crate) edits: Option<Tree>,
}

impl Ref {
    /// Its credential, in the header that its dialect has unless it says another.
    pub(crate) fn credential(&self) -> Option<Tree> {
        let usual = match self.target.dialect {
            Some("anthropic") => "x-api-key",
            _ => "authorization",
        };
        self.target
            .credential
            .as_ref()
            .map(|credential| credential.tree(usual))
    }

    /// A target of a rule for models.
    pub(crate) fn of_model(
        cluster: &Cluster<'_>,
        route: &Object<'_>,
        item: &Item<'_>,
        services: &Services,
        findings: &mut Findings,
    ) -> Option<Self> {
        let mut of = item.fields(findings);
        let model = of.text("modelNameOverride", findings);
        let headers = of
            .take("headerMutation")
            .and_then(|item| headers(&item, findings));
        of.refuse(
            &[(
                "bodyMutation",
                "bodies are edited in what a route says of models, and in nothing else",
            )],
            findings,
        );
        let (weight, priority) = shares(&mut of, findings);
        let named = Reference::take(
            &mut of,
            (AI, "AIServiceBackend"),
            &route.namespace,
            findings,
        );
        of.end(findings);
        let named = named.filter(|named| named.is_one_of(&[(AI, "AIServiceBackend")], findings))?;
        cluster.resolve(route, &named, findings)?;
        let target = services
            .targets
            .get(&(named.namespace, named.name))
            .cloned()?;
        Some(Self {
            spot: item.spot.clone(),
            priority: priority.unwrap_or_else(|| u64::from(target.is_fallback())),
            target,
            weight,
            model: model.map(|said| said.value),
            headers,
            edits: None,
        })
    }

    /// A target of a rule for plain HTTP.
    pub(crate) fn of_plain(
        cluster: &Cluster<'_>,
        route: &Object<'_>,
        item: &Item<'_>,
        services: &Services,
        home: &str,
        findings: &mut Findings,
    ) -> Option<Self> {
        let mut of = item.fields(findings);
        let port = of.number("port", findings);
        let mut edits = None;
        for item in of.list("filters", findings) {
            let mut of = item.fields(findings);
            let kind = of.needed_text("type", findings);
            let inside = of.take("requestHeaderModifier");
            match (kind, inside) {
                (Some(kind), Some(inside)) if kind.value == "RequestHeaderModifier" => {
                    edits = Some(edits::edits(&inside, findings));
                }
                _ => findings.fault(
                    &item.spot,
                    "is a filter that is not served here",
                    "write RequestHeaderModifier, or the filter at the rule",
                ),
            }
            of.end(findings);
        }
        let (weight, _) = shares(&mut of, findings);
        let named = Reference::take(&mut of, (CORE, "Service"), &route.namespace, findings);
        of.end(findings);
        let kinds = [(CORE, "Service"), (ENVOY, "Backend")];
        let named = named.filter(|named| named.is_one_of(&kinds, findings))?;
        let port = port.map(|port| port.value);
        let target = services.plain(cluster, route, &named, port, home, findings)?;
        Some(Self {
            spot: item.spot.clone(),
            priority: u64::from(target.is_fallback()),
            target,
            weight,
            model: None,
            headers: None,
            edits,
        })
    }
}

fn shares(of: &mut Fields<'_>, findings: &mut Findings) -> (u64, Option<u64>) {
    let weight = of.number("weight", findings).map_or(1, |said| said.value);
    let priority = of.number("priority", findings).map(|said| said.value);
    (weight, priority)
}
