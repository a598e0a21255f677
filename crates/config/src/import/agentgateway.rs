//! The `llm` section of agentgateway's configuration (<https://agentgateway.dev/docs/standalone/latest/llm/>) and its servers of tools as a
//! document of this gate.
//!
//! Invariant: as of all that is imported: no secret is written, and each setting without a counterpart has a comment with its line. No
//! secret of one host is sent to another, and nobody is let in here who was kept out there.
//! Not here: providers (`provider`), servers of tools (`tools`), what keeps callers out (`doors`), keys (`keys`), its other routes and listeners, printing
//! it (`tollgate import`).

mod doors;
mod keys;
mod rules;
mod tools;

use std::fmt::Write as _;
use std::path::Path;

use self::tools::Tools;
use super::credential::Credential;
use super::deployment::target;
use super::provider::{self, Kind, Provider};
use super::read::{Given, Section, scalar};
use super::{Imported, comment, imported};
use crate::decode::{Findings, Place, Written, child};
use crate::document;
use crate::fault::Faults;
use crate::node::{Node, Value};
use crate::scalar::Pattern;
use crate::sources::Sources;

/// Google's own API.
const GOOGLE: &str = "https://generativelanguage.googleapis.com/v1beta";

/// Settings that the gate has in another place, and what is said of them.
const ELSEWHERE: [(&str, &str); 13] = [
    ("port", "is `listen.data` here"),
    (
        "policies",
        "who may call is `identity` and `authority` here, and how much `limits` of a route",
    ),
    (
        "matches",
        "routes here match models and workloads: docs/identity.md says how callers are told apart",
    ),
    (
        "virtualModels",
        "backends of one route are asked in their order, and the next where one fails",
    ),
    ("guardrails", "guards are not there yet"),
    ("promptGuard", "guards are not there yet"),
    (
        "transformation",
        "members of a call are not rewritten, but for the model",
    ),
    (
        "defaults",
        "members of a call are not rewritten, but for the model",
    ),
    (
        "overrides",
        "members of a call are not rewritten, but for the model",
    ),
    (
        "health",
        "an address that fails is left out for a while by itself",
    ),
    ("backendTunnel", "is `proxy` of the backends here"),
    ("requestHeaders", "is `headers` of the backends here"),
    (
        "visibility",
        "a route is taken by all callers of its workloads",
    ),
];

/// Makes a document of the `llm` section of a configuration of agentgateway's, and of its servers of tools.
///
/// # Errors
/// [`Faults`] where it cannot be read, or nothing of it can be taken over.
pub fn import_agentgateway(path: &Path, sources: &dyn Sources) -> Result<Imported, Faults> {
    let bytes = document::bytes_of(path, sources)?;
    let root = document::tree_of(path, &bytes)?;
    let mut findings = Findings::default();
    let mut plan = Plan::default();
    if let Some(section) = Section::open(&root, "", &mut findings) {
        plan.whole(&section, &mut findings);
        plan.doors(&root, &mut findings);
        plan.keys(&root, &mut findings);
        if plan.routes.is_empty() && plan.tools.is_empty() && findings.faults.is_empty() {
            let says = "none of its models and servers of tools can be reached from here";
            let hint = "name a configuration with an `llm` section that has `models`, or with `mcp` that has `targets`; the warnings say more";
            findings.fault(&section.place_of("llm"), says, hint);
        }
    }
    let made = (plan.document(path), plan.comments.len());
    imported(path, findings, Some(made))
}

#[derive(Default)]
struct Plan {
    backends: Vec<Backend>,
    routes: Vec<Route>,
    tools: Tools,
    comments: Vec<String>,
    /// Where rules about tools stand that are taken over.
    rules: Vec<String>,
    /// Somebody keeps callers out there: nobody is let in here before a person says who is.
    is_closed: bool,
}

struct Backend {
    name: String,
    provider: &'static Provider,
    dialect: &'static str,
    url: String,
    /// The address is the provider's own.
    is_its_own: bool,
    /// Of each model that is asked there.
    credentials: Vec<Option<Credential>>,
    /// As it is written.
    credential: Option<String>,
}

struct Route {
    /// The names that it takes; all of them where it is none.
    model: Option<String>,
    backend: String,
    /// What its backend is asked for.
    asked: Option<String>,
}

impl Plan {
    fn whole(&mut self, root: &Section<'_>, findings: &mut Findings) {
        let known = ["llm", "mcp", "binds"];
        for entry in root.entries().filter(|entry| !known.contains(&&*entry.key)) {
            let says = "is not taken over: this reads models and servers of tools alone";
            self.comment(&root.place_of(&entry.key), says);
        }
        self.servers(root, findings);
        let llm = root.section("llm", findings);
        self.others(&llm, &["models"]);
        for (nth, node) in llm.list("models").iter().enumerate() {
            let path = format!("llm.models[{nth}]");
            if let Some(model) = Section::open(node, &path, findings) {
                self.model(&model, findings);
            }
        }
    }

    /// Servers of tools: of the `mcp` section, and of routes whose backends are such.
    fn servers(&mut self, root: &Section<'_>, findings: &mut Findings) {
        let mut tools = std::mem::take(&mut self.tools);
        let mcp = root.section("mcp", findings);
        if root.get("mcp").is_some() {
            let policies = mcp.section("policies", findings);
            tools.add(&mcp, &policies, (self, findings));
        }
        for bind in below(root, "binds", findings) {
            self.others_of(&bind, &["listeners"], &tools::ELSEWHERE);
            for listener in below(&bind, "listeners", findings) {
                self.others_of(
                    &listener,
                    &["name", "policies", "routes"],
                    &tools::ELSEWHERE,
                );
                let policies = listener.section("policies", findings);
                self.others_of(&policies, &[], &tools::ELSEWHERE);
                for route in below(&listener, "routes", findings) {
                    self.tools_of(&route, &mut tools, findings);
                }
            }
        }
        self.tools = tools;
    }

    /// The servers of tools behind a route.
    fn tools_of(&mut self, route: &Section<'_>, tools: &mut Tools, findings: &mut Findings) {
        self.others_of(route, &["name", "policies", "backends"], &tools::ELSEWHERE);
        let policies = route.section("policies", findings);
        for backend in below(route, "backends", findings) {
            if backend.get("mcp").is_none() {
                self.comment(
                    &backend.place,
                    "is no server of tools, and is not taken over",
                );
                continue;
            }
            self.others_of(&backend, &["mcp"], &tools::ELSEWHERE);
            let mcp = backend.section("mcp", findings);
            tools.add(&mcp, &policies, (self, findings));
        }
    }

    fn model(&mut self, section: &Section<'_>, findings: &mut Findings) {
        self.others(section, &["name", "provider", "params", "auth", "tls"]);
        let Some(name) = word(section, "name", findings) else {
            return findings.warn(&section.place, "has no name, and is left out", "");
        };
        let Some((slug, own)) = provider_of(section, findings) else {
            return findings.warn(&section.place, "says no provider, and is left out", "");
        };
        let params = section.section("params", findings);
        let known = ["model", "apiKey", "baseUrl", "hostOverride"];
        let found = provider::of_prefix(&slug).filter(|found| found.kind == Kind::Plain);
        let url = address(&params, findings);
        let api = found.map(|found| match &*slug {
            "gemini" => (GOOGLE, "gemini"),
            _ => (found.root, found.dialect),
        });
        let url = url.or_else(|| api.map(|(root, _)| root.to_owned()));
        let (Some(provider), Some(url)) = (found, url.filter(|url| !url.is_empty())) else {
            let says = "is of a provider whose address and credential have a form of their own, and is left out";
            let hint = "write a backend for it; docs/translation.md says how";
            return findings.warn(&section.place, says, hint);
        };
        self.others(&params, &known);
        if let Err(says) = target(&url) {
            let mut named = ["baseUrl", "hostOverride"].into_iter();
            let named = named.find(|name| params.get(name).is_some());
            let place = params.place_of(named.unwrap_or("baseUrl"));
            let says = format!("{says}. This model is left out");
            return findings.warn(&place, says, "");
        }
        let asked = word(&params, "model", findings).or(own);
        let is_odd = |name: &String| name != "*" && Pattern::read(name).is_err();
        if is_odd(&name) || asked.as_ref().is_some_and(is_odd) {
            let says = "is not a model's name, or is asked for by one that is none. This model is left out";
            return findings.warn(&section.place_of("name"), says, "");
        }
        let is_its_own = api.is_some_and(|(root, _)| root == url);
        let usual = Some(provider.key).filter(|_| is_its_own);
        let credential = self.credential(section, &params, (&url, usual), findings);
        let dialect = api.map_or("openai", |(_, dialect)| dialect);
        let backend = Backend {
            name: String::new(),
            provider,
            dialect,
            url,
            is_its_own,
            credentials: vec![credential],
            credential: None,
        };
        let backend = self.backend(backend);
        self.routes.push(Route {
            asked: asked.filter(|asked| *asked != name),
            model: (name != "*").then_some(name),
            backend,
        });
    }

    /// The name of the backend that is this, which models of one address and key share.
    fn backend(&mut self, mut backend: Backend) -> String {
        let is_as = |known: &Backend| {
            let keys = (known.credentials.first(), backend.credentials.first());
            known.url == backend.url
                && match keys {
                    (Some(Some(known)), Some(Some(own))) => known.is_as(own),
                    (Some(None), Some(None)) => true,
                    _ => false,
                }
        };
        if let Some(same) = self.backends.iter_mut().find(|known| is_as(known)) {
            same.credentials.append(&mut backend.credentials);
            return same.name.clone();
        }
        let provider = backend.provider.name;
        let same = |known: &&Backend| known.provider.name == provider;
        let name = match self.backends.iter().filter(same).count() {
            0 => provider.to_owned(),
            others => format!("{provider}-{}", others + 1),
        };
        backend.name.clone_from(&name);
        self.backends.push(backend);
        name
    }

    /// Comments on what is written besides.
    fn others(&mut self, section: &Section<'_>, known: &[&str]) {
        self.others_of(section, known, &ELSEWHERE);
    }

    fn others_of(&mut self, section: &Section<'_>, known: &[&str], elsewhere: &[(&str, &str)]) {
        let written: Vec<&str> = section.entries().map(|entry| &*entry.key).collect();
        for key in written.into_iter().filter(|key| !known.contains(key)) {
            let said = elsewhere.iter().find(|(name, _)| *name == key);
            let says = said.map_or("has no counterpart", |(_, says)| says);
            self.comment(&section.place_of(key), says);
        }
    }

    /// What keeps callers out: that it is left behind is told, and the made file lets nobody in without it.
    fn doors(&mut self, root: &Node, findings: &mut Findings) {
        let mut found = Vec::new();
        doors::below(root, "", &mut found);
        for place in found
            .iter()
            .filter(|place| !self.rules.contains(&place.path))
        {
            let says = "keeps callers out there, and is not taken over";
            let hint = "say who may call (docs/identity.md) and what (docs/authority.md): until then the made file takes keys of the gate's own alone";
            findings.warn(place, says, hint);
            self.is_closed = true;
        }
    }

    fn comment(&mut self, place: &Place, says: &str) {
        self.comments.push(comment::of(place, says));
    }

    fn document(&self, path: &Path) -> String {
        let mut text = String::new();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let says = format!(
            "Made of {file} by `tollgate import agentgateway`. Comments say what differs, and what has no counterpart. \
             `tollgate check` says what is still missing."
        );
        comment::write(&mut text, 0, &says);
        text.push_str(match self.is_closed {
            true => {
                "\n# Who may call stood in policies. Make keys, one for each client: tollgate keys create --workload default\n\
                 identity: { keys: { file: keys.jsonl } }\n"
            }
            false => {
                "\n# Whoever reaches the gate may call it; docs/identity.md says how callers are told apart.\n\
                 identity: { default: default }\n"
            }
        });
        if !self.routes.is_empty() {
            self.models(&mut text);
        }
        if !self.tools.is_empty() {
            self.tools.write(&mut text);
        }
        if !self.comments.is_empty() {
            text.push_str("\n# What differs, and what has no counterpart:\n");
            for says in &self.comments {
                comment::write(&mut text, 0, &format!("- {says}"));
            }
        }
        text
    }

    fn models(&self, text: &mut String) {
        text.push_str("\nbackends:\n");
        for backend in &self.backends {
            let _ = writeln!(text, "  {}:", backend.name);
            let _ = writeln!(text, "    url: {}", scalar(&backend.url));
            let _ = writeln!(text, "    dialect: {}", backend.dialect);
            if let Some(credential) = &backend.credential {
                let _ = writeln!(text, "    credential: {credential}");
            }
        }
        text.push_str("\n# By model: the first that fits.\nroutes:\n");
        for route in &self.routes {
            text.push_str("  - { workload: default");
            if let Some(model) = &route.model {
                let _ = write!(text, ", match: {{ model: {} }}", scalar(model));
            }
            let _ = write!(text, ", backend: {}", route.backend);
            if let Some(asked) = &route.asked {
                let _ = write!(text, ", model: {}", scalar(asked));
            }
            text.push_str(" }\n");
        }
        text.push_str("\n# What models cost: `tollgate prices` lists it. A price of your own stands beside the catalogue.\n");
        text.push_str("prices: { catalogue: builtin }\n");
    }
}

/// The mappings of a list below another one.
fn below<'a>(of: &Section<'a>, key: &str, findings: &mut Findings) -> Vec<Section<'a>> {
    let open = |(nth, node)| {
        let path = format!("{}[{nth}]", child(&of.place.path, key));
        Section::open(node, &path, findings)
    };
    let items = of.list(key).iter().enumerate();
    items.filter_map(open).collect()
}

/// The provider of a model, in the words of the table, and the model that is said with it.
fn provider_of(section: &Section<'_>, findings: &mut Findings) -> Option<(String, Option<String>)> {
    let slug = |name: &str| match name {
        "openAI" | "openAi" => "openai".to_owned(),
        other => other.to_ascii_lowercase(),
    };
    match section.get("provider")? {
        Node {
            value: Value::Map(entries),
            ..
        } => {
            let name = &entries.first()?.key;
            let written = section
                .section("provider", findings)
                .section(name, findings);
            Some((slug(name), word(&written, "model", findings)))
        }
        _ => Some((slug(&word(section, "provider", findings)?), None)),
    }
}

/// The address that a model's settings say.
fn address(params: &Section<'_>, findings: &mut Findings) -> Option<String> {
    if let Some(root) = word(params, "baseUrl", findings) {
        let root = root.trim_end_matches('/');
        // Its own path is added there.
        let has_path = root
            .split_once("://")
            .is_some_and(|(_, rest)| rest.contains('/'));
        return Some(match has_path {
            true => root.to_owned(),
            false => format!("{root}/v1"),
        });
    }
    let host = word(params, "hostOverride", findings)?;
    let scheme = if host.ends_with(":443") {
        "https"
    } else {
        "http"
    };
    Some(format!("{scheme}://{}/v1", host.trim_end_matches(":443")))
}

/// The text of a member as it is written, variables and all.
fn said(section: &Section<'_>, key: &str, findings: &mut Findings) -> Option<String> {
    Some(match section.text(key, findings)? {
        Given::Text(text) => text,
        Given::Variable(name) => format!("${name}"),
    })
}

/// The text of a member, where one is written.
fn word(section: &Section<'_>, key: &str, findings: &mut Findings) -> Option<String> {
    section.text(key, findings).map(|given| given.composed())
}
