//! The kinds that are watched, and where an API server has them.
//!
//! Not here: what a gate honours of them (`control`).

/// A kind of objects.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    group: &'static str,
    /// Those that are read, the best first.
    pub(crate) versions: &'static [&'static str],
    plural: &'static str,
    pub(crate) is_namespaced: bool,
}

const GATEWAY_API: &str = "gateway.networking.k8s.io";
const AI: &str = "aigateway.envoyproxy.io";
const ENVOY: &str = "gateway.envoyproxy.io";
const INFERENCE: &str = "inference.networking.k8s.io";

const fn kind(
    name: &'static str,
    group: &'static str,
    versions: &'static [&'static str],
    plural: &'static str,
) -> Kind {
    Kind {
        name,
        group,
        versions,
        plural,
        is_namespaced: true,
    }
}

/// Those of which all are watched.
pub(crate) const WATCHED: &[Kind] = &[
    Kind {
        is_namespaced: false,
        ..kind(
            "GatewayClass",
            GATEWAY_API,
            &["v1", "v1beta1"],
            "gatewayclasses",
        )
    },
    kind("Gateway", GATEWAY_API, &["v1", "v1beta1"], "gateways"),
    kind("ListenerSet", GATEWAY_API, &["v1"], "listenersets"),
    kind("HTTPRoute", GATEWAY_API, &["v1", "v1beta1"], "httproutes"),
    kind(
        "ReferenceGrant",
        GATEWAY_API,
        &["v1", "v1beta1"],
        "referencegrants",
    ),
    kind(
        "BackendTLSPolicy",
        GATEWAY_API,
        &["v1", "v1alpha3"],
        "backendtlspolicies",
    ),
    kind(
        "AIGatewayRoute",
        AI,
        &["v1beta1", "v1alpha1"],
        "aigatewayroutes",
    ),
    kind("MCPRoute", AI, &["v1beta1", "v1alpha1"], "mcproutes"),
    kind(
        "AIServiceBackend",
        AI,
        &["v1beta1", "v1alpha1"],
        "aiservicebackends",
    ),
    kind(
        "BackendSecurityPolicy",
        AI,
        &["v1beta1", "v1alpha1"],
        "backendsecuritypolicies",
    ),
    kind(
        "GatewayConfig",
        AI,
        &["v1beta1", "v1alpha1"],
        "gatewayconfigs",
    ),
    kind("QuotaPolicy", AI, &["v1alpha1"], "quotapolicies"),
    kind("Backend", ENVOY, &["v1alpha1"], "backends"),
    kind(
        "BackendTrafficPolicy",
        ENVOY,
        &["v1alpha1"],
        "backendtrafficpolicies",
    ),
    kind(
        "ClientTrafficPolicy",
        ENVOY,
        &["v1alpha1"],
        "clienttrafficpolicies",
    ),
    kind("SecurityPolicy", ENVOY, &["v1alpha1"], "securitypolicies"),
    kind("EnvoyProxy", ENVOY, &["v1alpha1"], "envoyproxies"),
    kind("InferencePool", INFERENCE, &["v1"], "inferencepools"),
];

/// Those of which each is watched by its name, where something names it.
pub(crate) const NAMED: &[Kind] = &[
    kind("Secret", "", &["v1"], "secrets"),
    kind("ConfigMap", "", &["v1"], "configmaps"),
    kind("Service", "", &["v1"], "services"),
    // Those of one Service, by its name.
    kind(SLICES, "discovery.k8s.io", &["v1"], "endpointslices"),
    // Those that have some labels, by these.
    kind(PODS, "", &["v1"], "pods"),
    Kind {
        is_namespaced: false,
        ..kind("Namespace", "", &["v1"], "namespaces")
    },
];

/// The kind of which those of one Service are named by its name.
const SLICES: &str = "EndpointSlice";
/// The kind of which those with some labels are named by these, as a selector says them: `app=vllm,model=m`.
const PODS: &str = "Pod";
/// The label by which a slice says whose it is.
pub(crate) const SERVICE_LABEL: &str = "kubernetes.io/service-name";

impl Kind {
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        WATCHED.iter().chain(NAMED).find(|kind| kind.name == name)
    }

    /// Whether objects of it are named by the Service that they are parts of.
    pub(crate) fn is_of_service(&self) -> bool {
        self.name == SLICES
    }

    /// Whether objects of it are named by labels that they have.
    pub(crate) fn is_of_labels(&self) -> bool {
        self.name == PODS
    }

    /// As objects of it say their version.
    pub(crate) fn api_version(&self, version: &str) -> String {
        match self.group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        }
    }

    /// Where objects of it are, of one namespace or of all.
    pub(crate) fn path(&self, version: &str, namespace: Option<&str>) -> String {
        let root = match self.group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        match namespace.filter(|_| self.is_namespaced) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }
}
