//! Objects: what each is, and whether a gate reads its kind.
//!
//! Not here: what is in them (`gateway`, `route`, `service`, `policy`).

use std::path::Path;
use std::rc::Rc;

use config::{Node, Scalar, Shape, Value, nearest, quoted};

use crate::fields::{Fields, Item};
use crate::findings::{Findings, Spot};

pub(crate) const CORE: &str = "";
pub(crate) const GATEWAY_API: &str = "gateway.networking.k8s.io";
pub(crate) const ENVOY: &str = "gateway.envoyproxy.io";
pub(crate) const AI: &str = "aigateway.envoyproxy.io";
const DISCOVERY: &str = "discovery.k8s.io";
pub(crate) const GLOO: &str = "gloo.solo.io";
const GLOO_GATEWAY: &str = "gateway.solo.io";
const KUSTOMIZE: &str = "kustomize.config.k8s.io";
const KUSTOMIZED: &str = "give what `kubectl kustomize` makes of it";
pub(crate) const INFERENCE: &str = "inference.networking.k8s.io";

/// What becomes of a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Is {
    Read,
    /// It would change what happens; what to do instead.
    Refused(&'static str),
    /// It says nothing to a gate.
    Passed,
}

/// Kinds by group, and the versions that are read.
const KINDS: &[(&str, &str, &[&str], Is)] = &[
    (GATEWAY_API, "GatewayClass", &["v1", "v1beta1"], Is::Read),
    (GATEWAY_API, "Gateway", &["v1", "v1beta1"], Is::Read),
    (GATEWAY_API, "HTTPRoute", &["v1", "v1beta1"], Is::Read),
    (
        GATEWAY_API,
        "ReferenceGrant",
        &["v1", "v1beta1", "v1alpha2"],
        Is::Read,
    ),
    (
        GATEWAY_API,
        "BackendTLSPolicy",
        &["v1", "v1alpha3"],
        Is::Read,
    ),
    (
        GATEWAY_API,
        "GRPCRoute",
        &[],
        Is::Refused("calls of gRPC are not served"),
    ),
    (
        GATEWAY_API,
        "TLSRoute",
        &[],
        Is::Refused("connections are not passed on unread"),
    ),
    (
        GATEWAY_API,
        "TCPRoute",
        &[],
        Is::Refused("connections are not passed on unread"),
    ),
    (
        GATEWAY_API,
        "UDPRoute",
        &[],
        Is::Refused("datagrams are not served"),
    ),
    (GATEWAY_API, "ListenerSet", &["v1"], Is::Read),
    (AI, "AIGatewayRoute", &["v1beta1", "v1alpha1"], Is::Read),
    (AI, "AIServiceBackend", &["v1beta1", "v1alpha1"], Is::Read),
    (
        AI,
        "BackendSecurityPolicy",
        &["v1beta1", "v1alpha1"],
        Is::Read,
    ),
    (AI, "MCPRoute", &["v1beta1", "v1alpha1"], Is::Read),
    (AI, "QuotaPolicy", &["v1alpha1"], Is::Read),
    (AI, "GatewayConfig", &["v1beta1", "v1alpha1"], Is::Read),
    (ENVOY, "Backend", &["v1alpha1"], Is::Read),
    (ENVOY, "BackendTrafficPolicy", &["v1alpha1"], Is::Read),
    (ENVOY, "ClientTrafficPolicy", &["v1alpha1"], Is::Read),
    (ENVOY, "SecurityPolicy", &["v1alpha1"], Is::Read),
    (ENVOY, "EnvoyProxy", &["v1alpha1"], Is::Read),
    (
        ENVOY,
        "HTTPRouteFilter",
        &[],
        Is::Refused("filters of routes are not served"),
    ),
    (
        ENVOY,
        "EnvoyPatchPolicy",
        &[],
        Is::Refused("there is no Envoy to patch"),
    ),
    (
        ENVOY,
        "EnvoyExtensionPolicy",
        &[],
        Is::Refused("there is no Envoy to extend"),
    ),
    (INFERENCE, "InferencePool", &["v1"], Is::Read),
    (
        "inference.networking.x-k8s.io",
        "InferenceObjective",
        &[],
        Is::Refused("requests have no priorities"),
    ),
    (GLOO_GATEWAY, "VirtualService", &["v1"], Is::Read),
    (GLOO, "Upstream", &["v1"], Is::Read),
    (
        GLOO_GATEWAY,
        "RouteTable",
        &[],
        Is::Refused("write its routes in the VirtualService"),
    ),
    (CORE, "Secret", &["v1"], Is::Read),
    (CORE, "ConfigMap", &["v1"], Is::Read),
    (CORE, "Namespace", &["v1"], Is::Read),
    (CORE, "Service", &["v1"], Is::Read),
    (CORE, "Pod", &["v1"], Is::Read),
    (DISCOVERY, "EndpointSlice", &["v1"], Is::Read),
    (CORE, "ServiceAccount", &["v1"], Is::Passed),
    (CORE, "PersistentVolumeClaim", &["v1"], Is::Passed),
    ("apps", "Deployment", &["v1"], Is::Passed),
    ("apps", "StatefulSet", &["v1"], Is::Passed),
    ("apps", "DaemonSet", &["v1"], Is::Passed),
    ("batch", "Job", &["v1"], Is::Passed),
    (
        "autoscaling",
        "HorizontalPodAutoscaler",
        &["v2", "v1"],
        Is::Passed,
    ),
    ("policy", "PodDisruptionBudget", &["v1"], Is::Passed),
    ("networking.k8s.io", "NetworkPolicy", &["v1"], Is::Passed),
    ("rbac.authorization.k8s.io", "Role", &["v1"], Is::Passed),
    (
        "rbac.authorization.k8s.io",
        "RoleBinding",
        &["v1"],
        Is::Passed,
    ),
    (
        "rbac.authorization.k8s.io",
        "ClusterRole",
        &["v1"],
        Is::Passed,
    ),
    (
        "rbac.authorization.k8s.io",
        "ClusterRoleBinding",
        &["v1"],
        Is::Passed,
    ),
];

/// Which of two objects has it where both cannot: the older one, then by namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age {
    pub(crate) created: String,
    id: String,
}

/// An object that a gate reads.
pub(crate) struct Object<'n> {
    pub(crate) spot: Spot,
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) annotations: Vec<(String, String)>,
    pub(crate) labels: Vec<(String, String)>,
    /// When a cluster took it, as it is written there: of two routes that take a call, the older one has it.
    pub(crate) created: String,
    node: &'n Node,
}

impl<'n> Object<'n> {
    /// The members at its top that are its own.
    pub(crate) fn top(&self, findings: &mut Findings) -> Fields<'n> {
        let item = Item {
            node: self.node,
            spot: self.spot.clone(),
        };
        let mut top = item.fields(findings);
        top.skip(&["apiVersion", "kind", "metadata", "status"]);
        top
    }

    /// Its `spec`.
    pub(crate) fn spec(&self, findings: &mut Findings) -> Fields<'n> {
        let mut top = self.top(findings);
        let spec = top.need("spec", findings);
        top.end(findings);
        let none = Fields::none(self.spot.clone());
        spec.map_or(none, |spec| spec.fields(findings))
    }

    /// Whether it is being deleted.
    pub(crate) fn is_going(&self) -> bool {
        let metadata = member(self.node, "metadata");
        metadata.is_some_and(|of| member(of, "deletionTimestamp").is_some())
    }

    /// How old it is, beside others.
    pub(crate) fn age(&self) -> Age {
        Age {
            created: self.created.clone(),
            id: self.id(),
        }
    }

    /// Where it is, in a sentence.
    pub(crate) fn id(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// Whether a document is an object of Kubernetes.
pub(crate) fn is_object(node: &Node) -> bool {
    member(node, "apiVersion").is_some() && member(node, "kind").is_some()
}

/// Whether a document is one, or would be if it said all that one has to say.
pub(crate) fn looks_like_object(node: &Node) -> bool {
    let of_objects = [
        "apiVersion",
        "kind",
        "metadata",
        "spec",
        "stringData",
        "resources",
    ];
    of_objects.iter().any(|name| member(node, name).is_some())
}

pub(crate) fn member<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let Value::Map(entries) = &node.value else {
        return None;
    };
    entries
        .iter()
        .find(|entry| entry.key == name)
        .map(|entry| &entry.node)
}

pub(crate) fn text<'n>(node: &'n Node, name: &str) -> Option<&'n str> {
    match &member(node, name)?.value {
        Value::Scalar(Scalar { raw, .. }) => Some(raw),
        Value::List(_) | Value::Map(_) => None,
    }
}

/// The objects of a document: one, those of a List, or none where it is not read.
pub(crate) fn objects<'n>(
    file: &Rc<Path>,
    node: &'n Node,
    findings: &mut Findings,
) -> Vec<Object<'n>> {
    let nowhere = Spot {
        file: Rc::clone(file),
        object: "".into(),
        path: String::new(),
        line: node.line,
    };
    let (Some(version), Some(kind)) = (text(node, "apiVersion"), text(node, "kind")) else {
        let of = named_in(node);
        let says = format!("is no object of Kubernetes: {of}");
        // A kustomization need not say what it is.
        let hint = match member(node, "resources") {
            Some(_) => KUSTOMIZED,
            None => "",
        };
        findings.fault(&nowhere, says, hint);
        return Vec::new();
    };
    if kind == "List" || kind.ends_with("List") && member(node, "items").is_some() {
        return match member(node, "items").map(|items| &items.value) {
            Some(Value::List(items)) => items
                .iter()
                .flat_map(|item| objects(file, item, findings))
                .collect(),
            // A list whose items are not found may hold what keeps somebody out.
            _ => {
                findings.fault(&nowhere, format!("is a {kind} without a list of items"), "");
                Vec::new()
            }
        };
    }
    let metadata = member(node, "metadata");
    let named = |name: &str| metadata.and_then(|of| text(of, name));
    let (group, number) = version.rsplit_once('/').unwrap_or((CORE, version));
    let namespace = named("namespace").unwrap_or("default").to_owned();
    let name = named("name").unwrap_or_default().to_owned();
    let label = match kind {
        "GatewayClass" | "Namespace" | "ClusterRole" | "ClusterRoleBinding" => {
            format!("{kind} {name}")
        }
        _ => format!("{kind} {namespace}/{name}"),
    };
    let spot = Spot {
        object: label.into(),
        ..nowhere
    };
    let known = KINDS.iter().find(|(g, k, ..)| *g == group && *k == kind);
    let Some((group, kind, versions, is)) = known else {
        unknown(&spot, group, kind, findings);
        return Vec::new();
    };
    if let Some((of, owner)) = metadata.and_then(|of| maker(of, kind)) {
        let says = format!("is left out: it is what a cluster makes of {of} {owner}");
        findings.warn(&spot, says, "");
        return Vec::new();
    }
    match is {
        Is::Passed => return Vec::new(),
        Is::Refused(hint) => {
            findings.fault(
                &spot,
                format!("objects of the kind {kind} are not honoured"),
                *hint,
            );
            return Vec::new();
        }
        Is::Read if !versions.contains(&number) => {
            let says = format!("version {} of {kind} is not read", quoted(number));
            findings.fault(&spot, says, format!("write {}", versions.join(" or ")));
            return Vec::new();
        }
        Is::Read => {}
    }
    // It says nothing to a gate but that it is there.
    let is_only_there = matches!(*kind, "Service" | "EndpointSlice" | "Pod" | "Namespace");
    if is_only_there && !(is_name(&name) && is_name(&namespace)) {
        return Vec::new();
    }
    if name.is_empty() {
        findings.fault(&spot, "has no metadata.name", "");
        return Vec::new();
    }
    // They become names of files.
    for (what, text) in [("name", &name), ("namespace", &namespace)] {
        if !is_name(text) {
            let says = format!("metadata.{what} {} is no name of an object", quoted(text));
            findings.fault(
                &spot,
                says,
                "use a-z, 0-9, - and ., with a letter or a digit at both ends",
            );
            return Vec::new();
        }
    }
    let annotations = metadata.and_then(|of| member(of, "annotations"));
    let labels = metadata.and_then(|of| member(of, "labels"));
    vec![Object {
        spot,
        group,
        kind,
        namespace,
        name,
        annotations: annotations.map(pairs).unwrap_or_default(),
        labels: labels.map(pairs).unwrap_or_default(),
        created: named("creationTimestamp").unwrap_or_default().to_owned(),
        node,
    }]
}

/// What an object lacks that does not say what it is, with what it says of that.
fn named_in(node: &Node) -> String {
    let name = member(node, "metadata").and_then(|of| text(of, "name"));
    let kind = text(node, "kind");
    let it = match (kind, name) {
        (Some(kind), Some(name)) => format!("the {kind} {}", quoted(name)),
        (None, Some(name)) => quoted(name),
        (Some(kind), None) => format!("the {kind}"),
        (None, None) => "it".to_owned(),
    };
    match (text(node, "apiVersion"), kind) {
        (None, Some(_)) => format!("{it} has no apiVersion"),
        (Some(_), _) => format!("{it} has no kind"),
        (None, None) => format!("{it} has neither apiVersion nor kind"),
    }
}

/// What Envoy AI Gateway's controller makes of its routes, and who exports a cluster has beside them. None of it keeps anybody out whom
/// the route itself lets in.
const MADE: [(&str, &[&str]); 2] = [
    (
        "AIGatewayRoute",
        &["HTTPRoute", "HTTPRouteFilter", "EnvoyExtensionPolicy"],
    ),
    (
        "MCPRoute",
        &[
            "HTTPRoute",
            "HTTPRouteFilter",
            "EnvoyExtensionPolicy",
            "SecurityPolicy",
            "BackendTrafficPolicy",
            "Backend",
        ],
    ),
];

/// The kind and the name of the route that an object was made of.
fn maker<'n>(metadata: &'n Node, kind: &str) -> Option<(&'static str, &'n str)> {
    let Value::List(owners) = &member(metadata, "ownerReferences")?.value else {
        return None;
    };
    owners.iter().find_map(|owner| {
        let version = text(owner, "apiVersion")?;
        let of = text(owner, "kind").filter(|_| version.starts_with(AI))?;
        let (of, _) = MADE
            .iter()
            .find(|(made_of, kinds)| *made_of == of && kinds.contains(&kind))?;
        Some((*of, text(owner, "name")?))
    })
}

/// As Kubernetes has names: a DNS subdomain.
pub(crate) fn is_name(text: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_label = |label: &str| {
        let inside = label.bytes().all(|b| is_letter(b) || b == b'-');
        let ends = [label.bytes().next(), label.bytes().last()];
        inside && ends.iter().all(|end| end.is_some_and(is_letter))
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn unknown(spot: &Spot, group: &str, kind: &str, findings: &mut Findings) {
    let kinds: Vec<&str> = KINDS.iter().map(|(_, kind, ..)| *kind).collect();
    let of_kind = KINDS.iter().find(|(_, known, ..)| *known == kind);
    let hint = match (of_kind, nearest(kind, &kinds)) {
        _ if group == KUSTOMIZE => KUSTOMIZED.to_owned(),
        (Some((group, ..)), _) => format!("{kind} is of the group {}", quoted(group)),
        (None, Some(near)) => format!("did you mean {near}?"),
        (None, None) => String::new(),
    };
    let says = format!(
        "unknown kind {} of the group {}",
        quoted(kind),
        quoted(group)
    );
    findings.fault(spot, says, hint);
}

fn pairs(node: &Node) -> Vec<(String, String)> {
    let Value::Map(entries) = &node.value else {
        return Vec::new();
    };
    let pair = |entry: &config::Entry| match &entry.node.value {
        Value::Scalar(scalar) if scalar.shape() != Shape::Nothing => {
            Some((entry.key.clone(), scalar.raw.clone()))
        }
        _ => None,
    };
    entries.iter().filter_map(pair).collect()
}
