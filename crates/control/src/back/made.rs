//! Objects of a backend and of a route.
//!
//! Invariant: what is made of either says all that it says; one with a member that objects do not have is none of these.

use std::net::SocketAddr;

use config::{Node, Scalar, Value};

use super::kept::{Kept, only};
use super::{entries, items, said, texts};
use crate::cluster::IN_FILE;
use crate::matching::MODEL;
use crate::object::{self, AI, ENVOY, GATEWAY_API, member, text};
use crate::tree::Tree;

/// The name of the one Gateway.
const GATEWAY: &str = "tollgate";
/// What an object is called.
const NAME: &str = "write a name of lower-case letters, digits, - and ., 60 bytes at most";
/// The key under which tokens are counted.
const TOKENS: &str = "llm_total_token";

/// Whether TLS is spoken, the host, the port, and what stands before the paths of an API.
type Address = (bool, String, u64, String);

/// Where a backend is.
fn address(at: &str, node: &Node) -> Result<Address, Kept> {
    let at = format!("{at}.url");
    let url = text(node, "url").filter(|url| !url.contains(['$', '@', '?', '#']));
    let Some(url) = url else {
        return Err(Kept::variable(&at, member(node, "url").unwrap_or(node)));
    };
    let other = |says: &str, hint: &'static str| Err(Kept::of(&at, node, says, hint));
    let (is_tls, rest) = match url.split_once("://") {
        Some(("https", rest)) => (true, rest),
        Some(("http", rest)) => (false, rest),
        _ => return other("is no address", "write http:// or https://"),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match authority.rsplit_once(':') {
        None => (authority, Some(if is_tls { 443 } else { 80 })),
        Some((host, port)) => (host, port.parse().ok().filter(|_| !host.contains(':'))),
    };
    let Some(port) = port else {
        return other("is an address of IPv6", "name the host");
    };
    // One without a path is at the root of its address, which is another thing.
    let prefix = path
        .strip_prefix('/')
        .filter(|path| !path.is_empty() && !path.ends_with('/'));
    match prefix {
        Some(prefix) => Ok((is_tls, host.to_owned(), port, prefix.to_owned())),
        None => other(
            "has no path, and a schema's prefix is one",
            "write the API's root, such as /v1",
        ),
    }
}

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
    from: From,
}

/// Where the key is: a variable or a file.
enum From {
    Variable(String),
    File(String),
}

impl Backend {
    pub(super) fn of(name: &str, node: &Node) -> Result<Self, Kept> {
        let at = format!("backends.{name}");
        if !is_name(name) {
            return Err(Kept::of(&at, node, "is no name of an object", NAME));
        }
        only(&at, node, &["url", "dialect", "credential", "headers"])?;
        let spoken = member(node, "dialect");
        let (schema, usual) = match spoken.map(|_| text(node, "dialect").unwrap_or_default()) {
            // One that says none is of OpenAI's form to most who call it.
            None | Some("openai") => ("OpenAI", "authorization"),
            Some("anthropic") => ("Anthropic", "x-api-key"),
            Some(_) => {
                let says = "is neither openai nor anthropic, which are made here";
                let hint = "write the AIServiceBackend of another schema by hand";
                let at = format!("{at}.dialect");
                return Err(Kept::of(&at, spoken.unwrap_or(node), says, hint));
            }
        };
        let (is_tls, host, port, prefix) = address(&at, node)?;
        let mut headers = Vec::new();
        for (name, value) in entries(member(node, "headers")) {
            match &value.value {
                Value::Scalar(Scalar { raw, .. }) if !raw.contains('$') => {
                    headers.push((name.to_owned(), raw.clone()));
                }
                _ => {
                    let says = "is a variable, and an object has a value";
                    let at = format!("{at}.headers.{name}");
                    return Err(Kept::of(&at, value, says, "write the value"));
                }
            }
        }
        let credential = match member(node, "credential") {
            Some(node) => Some(Credential::of(&format!("{at}.credential"), node, usual)?),
            None => None,
        };
        Ok(Self {
            schema,
            is_tls,
            host,
            port,
            prefix,
            headers,
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
            let map = |key: &str, value: &str| Some(Tree::map([(key, Some(said(value)))]));
            let (annotations, value) = match from {
                // As programs without a cluster fill it in, and `envsubst` for one with.
                From::Variable(name) => (None, map("apiKey", &format!("${{{name}}}"))),
                From::File(path) => (map(&format!("{IN_FILE}apiKey"), path), None),
            };
            let metadata = [("name", Some(said(name))), ("annotations", annotations)];
            all.push(Tree::map([
                ("apiVersion", Some(said("v1"))),
                ("kind", Some(said("Secret"))),
                ("metadata", Some(Tree::map(metadata))),
                ("stringData", value),
            ]));
        }
        all
    }
}

impl Credential {
    fn of(at: &str, node: &Node, usual: &str) -> Result<Self, Kept> {
        only(at, node, &["env", "file", "header"])?;
        let kind = match text(node, "header").unwrap_or(usual) {
            "authorization" => "APIKey",
            "x-api-key" => "AnthropicAPIKey",
            "api-key" => "AzureAPIKey",
            _ => {
                let says = "is no header that a BackendSecurityPolicy sends a key in";
                let hint = "write authorization, x-api-key or api-key";
                return Err(Kept::of(&format!("{at}.header"), node, says, hint));
            }
        };
        let plain = |name| text(node, name).map(str::to_owned);
        let from = match (plain("env"), plain("file")) {
            (Some(name), None) => From::Variable(name),
            (None, Some(path)) => From::File(path),
            _ => return Err(Kept::of(at, node, "names no source", "write env or file")),
        };
        let (From::Variable(said) | From::File(said)) = &from;
        match said.contains('$') {
            true => Err(Kept::variable(at, node)),
            false => Ok(Self { kind, from }),
        }
    }
}

/// A route that objects can say.
pub(super) struct Route {
    name: String,
    pub(super) workloads: Vec<String>,
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
    /// The route at this place of the document; `name` is what it is called where it says no name.
    pub(super) fn of(
        at: &str,
        node: &Node,
        name: &str,
        callers: &str,
        users: Option<&str>,
    ) -> Result<Self, Kept> {
        let members = ["name", "workload", "match", "backend", "model", "limits"];
        only(at, node, &members)?;
        let matched = member(node, "match");
        if let Some(of) = matched {
            only(&format!("{at}.match"), of, &["model"])?;
        }
        let needed = |of: Option<&Node>, path: &str| match texts(of) {
            Some(all) if !all.is_empty() => Ok(all),
            _ => Err(Kept::variable(&format!("{at}.{path}"), of.unwrap_or(node))),
        };
        let models = match matched {
            Some(of) => needed(member(of, "model"), "match.model")?,
            None => Vec::new(),
        };
        // All of them is no match.
        let models = match models.iter().any(|model| model == "*") {
            true => Vec::new(),
            false => models,
        };
        if !is_name(name) {
            let says = format!("is called {name:?}, which is no name of an object");
            let node = member(node, "name").unwrap_or(node);
            return Err(Kept::of(&format!("{at}.name"), node, &says, NAME));
        }
        let mut limits = Vec::new();
        for (index, limit) in items(member(node, "limits")).into_iter().enumerate() {
            let at = format!("{at}.limits[{index}]");
            limits.push(Limit::of(&at, limit, callers, users)?);
        }
        let model = text(node, "model");
        if let Some(said) = member(node, "model")
            && model.is_none_or(|model| model.contains('$'))
        {
            return Err(Kept::variable(&format!("{at}.model"), said));
        }
        Ok(Self {
            name: name.to_owned(),
            workloads: needed(member(node, "workload"), "workload")?,
            models,
            backends: needed(member(node, "backend"), "backend")?,
            model: model.map(str::to_owned),
            limits,
            callers: callers.to_owned(),
        })
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
                // The route that Agent Router makes of the other: a policy cannot name that one.
                ("group", Some(said(GATEWAY_API))),
                ("kind", Some(said("HTTPRoute"))),
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
    fn of(at: &str, node: &Node, callers: &str, users: Option<&str>) -> Result<Self, Kept> {
        if text(node, "window") != Some("rolling") {
            let says = "is a bucket that refills evenly, and objects count in windows";
            let hint = "write window: rolling, which is never more in any window of its length";
            return Err(Kept::of(&format!("{at}.window"), node, says, hint));
        }
        only(at, node, &["requests", "tokens", "per", "window", "for"])?;
        let (is_of_tokens, amount) = match (text(node, "requests"), text(node, "tokens")) {
            (Some(requests), None) => (false, requests),
            (None, Some(tokens)) => (true, tokens),
            _ => {
                let says = "is not one amount, of requests or of tokens";
                return Err(Kept::of(at, node, says, "write requests or tokens"));
            }
        };
        let unit = match text(node, "per").unwrap_or_default() {
            "1s" => "Second",
            "1m" => "Minute",
            "1h" => "Hour",
            "1d" => "Day",
            _ => {
                let says = "is no window of a BackendTrafficPolicy";
                let hint = "write 1s, 1m, 1h or 1d";
                return Err(Kept::of(&format!("{at}.per"), node, says, hint));
            }
        };
        let users = match (text(node, "for"), users) {
            (None | Some("workload"), _) => None,
            (Some("user"), Some(users)) => Some(users),
            _ => {
                let says = "is for each of what objects do not tell apart";
                let hint = "leave it out, or write for: user with a user_header in identity";
                return Err(Kept::of(&format!("{at}.for"), node, says, hint));
            }
        };
        let apart = std::iter::once(callers).chain(users);
        let Ok(amount) = amount.parse() else {
            let says = "has an amount that is no number";
            return Err(Kept::of(at, node, says, "write the number in full"));
        };
        Ok(Self {
            amount,
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
    name.len() <= 60 && object::is_name(name)
}
