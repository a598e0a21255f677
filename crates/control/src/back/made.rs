//! Objects of a backend and of a route.
//!
//! Invariant: what is made of either says all that it says; one with a member that objects do not have is none of these.

use std::net::SocketAddr;

use config::{Node, Scalar, Value};

use super::{entries, has_only, items, said, texts};
use crate::matching::MODEL;
use crate::object::{AI, ENVOY, GATEWAY_API, member, text};
use crate::tree::Tree;

/// The name of the one Gateway.
const GATEWAY: &str = "tollgate";
/// The key under which tokens are counted.
const TOKENS: &str = "llm_total_token";

/// A backend that objects can say.
pub(super) struct Backend {
    schema: &'static str,
    is_tls: bool,
    host: String,
    port: u64,
    prefix: String,
    headers: Vec<(String, String)>,
    credential: Option<Credential>,
}

struct Credential {
    kind: &'static str,
    /// The annotation that names the variable or the file, and that.
    from: (&'static str, String),
}

impl Backend {
    pub(super) fn of(name: &str, node: &Node) -> Option<Self> {
        let members = ["url", "dialect", "credential", "headers"];
        if !is_name(name) || !has_only(node, &members) {
            return None;
        }
        let (schema, usual) = match text(node, "dialect")? {
            "openai" => ("OpenAI", "authorization"),
            "anthropic" => ("Anthropic", "x-api-key"),
            _ => return None,
        };
        let url = text(node, "url").filter(|url| !url.contains(['$', '@', '?', '#']))?;
        let (scheme, rest) = url.split_once("://")?;
        let is_tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') => (host, port.parse().ok()?),
            None => (authority, if is_tls { 443 } else { 80 }),
            Some(_) => return None,
        };
        // One without a path is at the root of its address, which is another thing.
        let prefix = path
            .strip_prefix('/')
            .filter(|path| !path.is_empty() && !path.ends_with('/'))?;
        let headers = entries(member(node, "headers"));
        let headers: Option<Vec<(String, String)>> = headers
            .map(|(name, node)| match &node.value {
                Value::Scalar(Scalar { raw, .. }) if !raw.contains('$') => {
                    Some((name.to_owned(), raw.clone()))
                }
                _ => None,
            })
            .collect();
        let credential = match member(node, "credential") {
            Some(node) => Some(Credential::of(node, usual)?),
            None => None,
        };
        Some(Self {
            schema,
            is_tls,
            host: host.to_owned(),
            port,
            prefix: prefix.to_owned(),
            headers: headers?,
            credential,
        })
    }

    pub(super) fn objects(&self, name: &str) -> Vec<Tree> {
        let to = |kind: &str, group: &str| {
            Tree::map([
                ("group", Some(said(group))),
                ("kind", Some(said(kind))),
                ("name", Some(said(name))),
            ])
        };
        let schema = Tree::map([
            ("name", Some(said(self.schema))),
            ("prefix", (self.prefix != "v1").then(|| said(&self.prefix))),
        ]);
        let set = self.headers.iter().map(|(name, value)| {
            Tree::map([("name", Some(said(name))), ("value", Some(said(value)))])
        });
        let set = Tree::map([("set", Some(Tree::List(set.collect())))]);
        let spec = Tree::map([
            ("schema", Some(schema)),
            ("backendRef", Some(to("Backend", ENVOY))),
            ("headerMutation", (!self.headers.is_empty()).then_some(set)),
        ]);
        let port = Some(Tree::number(self.port));
        let at = match self.host.parse::<std::net::IpAddr>() {
            Ok(_) => (
                "ip",
                Tree::map([("address", Some(said(&self.host))), ("port", port)]),
            ),
            Err(_) => (
                "fqdn",
                Tree::map([("hostname", Some(said(&self.host))), ("port", port)]),
            ),
        };
        let endpoints = Tree::List(vec![Tree::map([(at.0, Some(at.1))])]);
        let tls = Tree::map([("wellKnownCACertificates", Some(said("System")))]);
        let backend = Tree::map([
            ("endpoints", Some(endpoints)),
            ("tls", self.is_tls.then_some(tls)),
        ]);
        let mut all = vec![
            object(
                &format!("{AI}/v1beta1"),
                "AIServiceBackend",
                name,
                None,
                spec,
            ),
            object(&format!("{ENVOY}/v1alpha1"), "Backend", name, None, backend),
        ];
        if let Some(Credential { kind, from }) = &self.credential {
            let block = match *kind {
                "AnthropicAPIKey" => "anthropicAPIKey",
                "AzureAPIKey" => "azureAPIKey",
                _ => "apiKey",
            };
            let secret = Tree::map([("name", Some(said(name)))]);
            let secret = Tree::map([("secretRef", Some(secret))]);
            let policy = Tree::map([
                (
                    "targetRefs",
                    Some(Tree::List(vec![to("AIServiceBackend", AI)])),
                ),
                ("type", Some(said(kind))),
                (block, Some(secret)),
            ]);
            all.push(object(
                &format!("{AI}/v1beta1"),
                "BackendSecurityPolicy",
                name,
                None,
                policy,
            ));
            let (annotation, value) = from;
            let annotations = Tree::map([(*annotation, Some(said(value)))]);
            all.push(Tree::map([
                ("apiVersion", Some(said("v1"))),
                ("kind", Some(said("Secret"))),
                (
                    "metadata",
                    Some(Tree::map([
                        ("name", Some(said(name))),
                        ("annotations", Some(annotations)),
                    ])),
                ),
            ]));
        }
        all
    }
}

impl Credential {
    fn of(node: &Node, usual: &str) -> Option<Self> {
        if !has_only(node, &["env", "file", "header"]) {
            return None;
        }
        let kind = match text(node, "header").unwrap_or(usual) {
            "authorization" => "APIKey",
            "x-api-key" => "AnthropicAPIKey",
            "api-key" => "AzureAPIKey",
            _ => return None,
        };
        let from = match (text(node, "env"), text(node, "file")) {
            (Some(name), None) => ("substitution.aigw.run/env/apiKey", name),
            (None, Some(path)) => ("substitution.aigw.run/file/apiKey", path),
            _ => return None,
        };
        let from = (from.0, from.1.to_owned());
        (!from.1.contains('$')).then_some(Self { kind, from })
    }
}

/// A route that objects can say.
pub(super) struct Route {
    name: String,
    workloads: Vec<String>,
    /// Names of models, or beginnings with a `*`; all where there is none.
    models: Vec<String>,
    pub(super) backends: Vec<String>,
    model: Option<String>,
    limits: Vec<Limit>,
    callers: String,
}

struct Limit {
    amount: u64,
    unit: &'static str,
    is_of_tokens: bool,
    /// The headers of whose values each has the amount: of callers, and perhaps of users.
    apart: Vec<String>,
}

impl Route {
    pub(super) fn of(
        node: &Node,
        callers: &str,
        users: Option<&str>,
        is_known: &dyn Fn(&str) -> bool,
    ) -> Option<Self> {
        let members = ["name", "workload", "match", "backend", "model", "limits"];
        let matched = member(node, "match");
        if !has_only(node, &members) || matched.is_some_and(|of| !has_only(of, &["model"])) {
            return None;
        }
        let models = match matched {
            Some(of) => texts(member(of, "model")).filter(|all| !all.is_empty())?,
            None => Vec::new(),
        };
        // All of them is no match.
        let models = match models.iter().any(|model| model == "*") {
            true => Vec::new(),
            false => models,
        };
        let limit = |node: &Node| Limit::of(node, callers, users);
        let limits = items(member(node, "limits")).into_iter().map(limit);
        let route = Self {
            name: text(node, "name").filter(|name| is_name(name))?.to_owned(),
            workloads: texts(member(node, "workload"))?,
            models,
            backends: texts(member(node, "backend"))?,
            model: text(node, "model").map(str::to_owned),
            limits: limits.collect::<Option<Vec<Limit>>>()?,
            callers: callers.to_owned(),
        };
        let is_said = !route.backends.is_empty() && !route.workloads.is_empty();
        let is_known = route.backends.iter().all(|name| is_known(name));
        let model = route.model.as_ref();
        (is_said && is_known && model.is_none_or(|model| !model.contains('$'))).then_some(route)
    }

    /// The route and its limits. Of several that take a call the older one has it, so each is a second younger than the one before.
    pub(super) fn objects(&self, index: usize) -> Vec<Tree> {
        let of_models = (!self.models.is_empty()).then(|| header(MODEL, &self.models));
        let matches = self.workloads.iter().map(|workload| {
            let of_caller = header(&self.callers, std::slice::from_ref(workload));
            let both = of_models.clone().into_iter().chain([of_caller]);
            Tree::map([("headers", Some(Tree::List(both.collect())))])
        });
        let refs = self.backends.iter().enumerate().map(|(priority, name)| {
            let priority = u64::try_from(priority).unwrap_or(u64::MAX);
            Tree::map([
                ("name", Some(said(name))),
                ("priority", (priority > 0).then(|| Tree::number(priority))),
                ("modelNameOverride", self.model.as_deref().map(said)),
            ])
        });
        let rule = Tree::map([
            ("matches", Some(Tree::List(matches.collect()))),
            ("backendRefs", Some(Tree::List(refs.collect()))),
        ]);
        let cost = Tree::map([
            ("metadataKey", Some(said(TOKENS))),
            ("type", Some(said("TotalToken"))),
        ]);
        let counts = self.limits.iter().any(|limit| limit.is_of_tokens);
        let parent = Tree::map([("name", Some(said(GATEWAY)))]);
        let spec = Tree::map([
            ("parentRefs", Some(Tree::List(vec![parent]))),
            ("rules", Some(Tree::List(vec![rule]))),
            ("llmRequestCosts", counts.then(|| Tree::List(vec![cost]))),
        ]);
        let created = format!(
            "2000-01-01T{:02}:{:02}:{:02}Z",
            index / 3600,
            index / 60 % 60,
            index % 60
        );
        let version = format!("{AI}/v1beta1");
        let mut all = vec![object(
            &version,
            "AIGatewayRoute",
            &self.name,
            Some(&created),
            spec,
        )];
        if !self.limits.is_empty() {
            let rules = Tree::List(self.limits.iter().map(Limit::rule).collect());
            let global = Tree::map([("rules", Some(rules))]);
            let limits = Tree::map([("type", Some(said("Global"))), ("global", Some(global))]);
            let target = Tree::map([
                ("group", Some(said(AI))),
                ("kind", Some(said("AIGatewayRoute"))),
                ("name", Some(said(&self.name))),
            ]);
            let spec = Tree::map([
                ("targetRefs", Some(Tree::List(vec![target]))),
                ("rateLimit", Some(limits)),
            ]);
            let version = format!("{ENVOY}/v1alpha1");
            all.push(object(
                &version,
                "BackendTrafficPolicy",
                &self.name,
                None,
                spec,
            ));
        }
        all
    }
}

impl Limit {
    fn of(node: &Node, callers: &str, users: Option<&str>) -> Option<Self> {
        let is_rolling = text(node, "window") == Some("rolling");
        if !is_rolling || !has_only(node, &["requests", "tokens", "per", "window", "for"]) {
            return None;
        }
        let (is_of_tokens, amount) = match (text(node, "requests"), text(node, "tokens")) {
            (Some(requests), None) => (false, requests),
            (None, Some(tokens)) => (true, tokens),
            _ => return None,
        };
        let unit = match text(node, "per")? {
            "1s" => "Second",
            "1m" => "Minute",
            "1h" => "Hour",
            "1d" => "Day",
            _ => return None,
        };
        let users = match text(node, "for") {
            None => None,
            Some("user") => Some(users?),
            Some(_) => return None,
        };
        let apart = std::iter::once(callers).chain(users);
        Some(Self {
            amount: amount.parse().ok()?,
            unit,
            is_of_tokens,
            apart: apart.map(str::to_owned).collect(),
        })
    }

    fn rule(&self) -> Tree {
        let headers = self
            .apart
            .iter()
            .map(|name| Tree::map([("name", Some(said(name))), ("type", Some(said("Distinct")))]));
        let selector = Tree::map([("headers", Some(Tree::List(headers.collect())))]);
        let limit = Tree::map([
            ("requests", Some(Tree::number(self.amount))),
            ("unit", Some(said(self.unit))),
        ]);
        let nothing = Tree::map([
            ("from", Some(said("Number"))),
            ("number", Some(Tree::number(0))),
        ]);
        let metadata = Tree::map([
            ("namespace", Some(said("io.envoy.ai_gateway"))),
            ("key", Some(said(TOKENS))),
        ]);
        let tokens = Tree::map([
            ("from", Some(said("Metadata"))),
            ("metadata", Some(metadata)),
        ]);
        let cost = Tree::map([("request", Some(nothing)), ("response", Some(tokens))]);
        Tree::map([
            ("clientSelectors", Some(Tree::List(vec![selector]))),
            ("limit", Some(limit)),
            ("cost", self.is_of_tokens.then_some(cost)),
        ])
    }
}

/// What a header has to say: one value, or one of several and beginnings of others.
fn header(name: &str, values: &[String]) -> Tree {
    let (kind, value) = match values {
        [one] if !one.ends_with('*') => ("Exact", one.clone()),
        several => {
            let escaped = several.iter().map(|value| {
                let (start, rest) = match value.strip_suffix('*') {
                    Some(start) => (start, ".*"),
                    None => (value.as_str(), ""),
                };
                format!("{}{rest}", start.replace('.', "\\."))
            });
            let all: Vec<String> = escaped.collect();
            ("RegularExpression", all.join("|"))
        }
    };
    Tree::map([
        ("type", Some(said(kind))),
        ("name", Some(said(name))),
        ("value", Some(said(&value))),
    ])
}

/// The class and the Gateway at this address.
pub(super) fn gateway(address: SocketAddr) -> Vec<Tree> {
    let version = format!("{GATEWAY_API}/v1");
    let class = Tree::map([("controllerName", Some(said("tollgate/gateway")))]);
    let at = Tree::map([
        ("type", Some(said("IPAddress"))),
        ("value", Some(said(&address.ip().to_string()))),
    ]);
    let listener = Tree::map([
        ("name", Some(said("http"))),
        ("protocol", Some(said("HTTP"))),
        ("port", Some(Tree::number(u64::from(address.port())))),
    ]);
    let spec = Tree::map([
        ("gatewayClassName", Some(said(GATEWAY))),
        ("addresses", Some(Tree::List(vec![at]))),
        ("listeners", Some(Tree::List(vec![listener]))),
    ]);
    vec![
        object(&version, "GatewayClass", GATEWAY, None, class),
        object(&version, "Gateway", GATEWAY, None, spec),
    ]
}

fn object(version: &str, kind: &str, name: &str, created: Option<&str>, spec: Tree) -> Tree {
    let metadata = Tree::map([
        ("name", Some(said(name))),
        ("creationTimestamp", created.map(said)),
    ]);
    Tree::map([
        ("apiVersion", Some(said(version))),
        ("kind", Some(said(kind))),
        ("metadata", Some(metadata)),
        ("spec", Some(spec)),
    ])
}

/// As objects are named.
fn is_name(name: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let ends = [name.bytes().next(), name.bytes().last()];
    let is_inside = name.bytes().all(|b| is_part(b) || b == b'-');
    name.len() <= 60 && is_inside && ends.iter().all(|end| end.is_some_and(is_part))
}
