//! The MCP part of agentgateway's configuration (<https://agentgateway.dev/docs/standalone/latest/mcp/>): the `mcp` section, and `mcp` backends of
//! routes, as servers of tools of this gate.
//!
//! Invariant: whoever could not use a tool there cannot use it here: rules that say more than names leave nothing open.
//! Not here: the `llm` section (`super`), what a server is (`lower::mcp`).

use std::fmt::Write as _;

use super::super::comment;
use super::super::deployment::target;
use super::super::read::{Given, Section, given, scalar};
use super::{Plan, said, word};
use crate::decode::{Findings, Place, Written};
use crate::node::{Node, Value};
use crate::scalar::DescriptionAt;
use crate::vars::is_name;

/// Servers of tools, and who may use what of them.
#[derive(Default)]
pub(super) struct Tools {
    servers: Vec<Server>,
    /// Limits of the route, each as it is written.
    limits: Vec<String>,
    /// They are named as the other gateway names them where there is one.
    prefix: Option<&'static str>,
}

struct Server {
    name: String,
    /// Members, each a line.
    says: Vec<String>,
}

/// Who may use which tools, as far as rules say no more than their names.
#[derive(Default)]
struct Rules {
    allow: Vec<String>,
    deny: Vec<String>,
    /// Some rule is not carried over.
    is_less: bool,
    are_any: bool,
}

/// Settings that are elsewhere, and what is said of them.
const ELSEWHERE: [(&str, &str); 12] = [
    ("port", "is `listen.data` here"),
    ("cors", "is `web` here"),
    ("jwtAuth", "is `identity` here: docs/identity.md#tokens"),
    (
        "mcpAuthentication",
        "is `identity` and `mcp.oauth` here: docs/mcp.md#tokens",
    ),
    ("apiKey", "is `tollgate keys` here: docs/identity.md#keys"),
    (
        "basicAuth",
        "callers bring a key or a token here: docs/identity.md",
    ),
    (
        "authorization",
        "is `authority` here, in CEL or Rego: docs/authority.md",
    ),
    ("extAuthz", "is `authority.ext_authz` here"),
    (
        "statefulMode",
        "sessions are sealed into their ids here, and servers without sessions are used without",
    ),
    (
        "failureMode",
        "a server that fails is left out here, and the others are there",
    ),
    ("mcpGuardrails", "guards are not there yet"),
    ("remoteRateLimit", "limits are the gate's own"),
];

impl Tools {
    pub(super) const fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// The `mcp` section, or a backend that is one; `policies` stand beside it.
    pub(super) fn add(
        &mut self,
        mcp: &Section<'_>,
        policies: &Section<'_>,
        (plan, findings): (&mut Plan, &mut Findings),
    ) {
        let known = ["targets", "policies", "prefixMode"];
        plan.others_of(mcp, &known, &ELSEWHERE);
        match word(mcp, "prefixMode", findings).as_deref() {
            Some("always") => self.prefix = Some("always"),
            Some("never") => self.prefix = Some("never"),
            _ => {}
        }
        let targets = mcp.list("targets");
        let rules = Rules::of(policies, plan, findings);
        let credential = credential(policies, plan, findings);
        self.limits(policies, plan, findings);
        let known = ["mcpAuthorization", "backendAuth", "localRateLimit"];
        plan.others_of(policies, &known, &ELSEWHERE);
        for (nth, node) in targets.iter().enumerate() {
            let path = format!("{}.targets[{nth}]", mcp.place.path);
            if let Some(target) = Section::open(node, &path, findings) {
                self.target(&target, (&rules, credential.as_deref()), (plan, findings));
            }
        }
    }

    fn target(
        &mut self,
        target: &Section<'_>,
        (rules, usual): (&Rules, Option<&str>),
        (plan, findings): (&mut Plan, &mut Findings),
    ) {
        let forms = ["stdio", "mcp", "sse", "openapi"];
        let known = [&["name", "policies"][..], &forms].concat();
        plan.others_of(target, &known, &ELSEWHERE);
        let said_name = word(target, "name", findings).unwrap_or_default();
        let form = forms.into_iter().find(|form| target.get(form).is_some());
        let Some(form) = form else {
            let says = "says neither stdio nor mcp nor openapi, and is left out";
            return findings.warn(&target.place, says, "");
        };
        let section = target.section(form, findings);
        let address = match form {
            "stdio" => stdio(&section, plan, findings),
            "mcp" => address(&section, plan, findings),
            "openapi" => openapi(&section, plan, findings),
            _ => {
                let says = "speaks the old HTTP+SSE, which the gate does not, and is left out";
                let hint =
                    "name its address of Streamable HTTP, which most such servers have at /mcp";
                return findings.warn(&section.place, says, hint);
            }
        };
        let mut says = match address {
            Ok(says) => says,
            Err(says) => {
                return findings.warn(&section.place, format!("is left out: {says}"), "");
            }
        };
        let policies = target.section("policies", findings);
        let own = Rules::of(&policies, plan, findings);
        plan.others_of(&policies, &["mcpAuthorization", "backendAuth"], &ELSEWHERE);
        if form != "stdio" {
            let own = credential(&policies, plan, findings);
            says.extend(own.as_deref().or(usual).map(str::to_owned));
        }
        if rules.are_any && own.are_any {
            // Both hold there, and one of them alone would leave more open.
            says.extend(Rules::closed(form == "openapi"));
            let fault = "has rules of its own beside those of the whole, and none of its tools is open until its `tools` are written";
            findings.warn(&policies.place, fault, "allow what both allow");
        } else {
            let rules = if own.are_any { &own } else { rules };
            says.extend(rules.says(form == "openapi"));
        }
        let name = self.name(&said_name);
        if name != said_name {
            plan.comment(&target.place_of("name"), &format!("is {name} here"));
        }
        self.servers.push(Server { name, says });
    }

    /// A name that a server may have here, which no other has.
    fn name(&self, said: &str) -> String {
        let mut name = String::new();
        for c in said.chars().take(28) {
            match c {
                c if c.is_ascii_alphanumeric() => name.push(c),
                _ if name.ends_with('-') || name.is_empty() => {}
                _ => name.push('-'),
            }
        }
        let name = name.trim_end_matches('-').to_owned();
        let name = if name.is_empty() {
            "server".to_owned()
        } else {
            name
        };
        let is_taken = |name: &str| self.servers.iter().any(|server| server.name == name);
        if !is_taken(&name) {
            return name;
        }
        let mut further = (2..).map(|nth| format!("{name}-{nth}"));
        further.find(|name| !is_taken(name)).unwrap_or(name)
    }

    /// Limits of requests that are counted in the gateway itself.
    fn limits(&mut self, policies: &Section<'_>, plan: &mut Plan, findings: &mut Findings) {
        for (nth, node) in policies.list("localRateLimit").iter().enumerate() {
            let path = format!("{}.localRateLimit[{nth}]", policies.place.path);
            let Some(limit) = Section::open(node, &path, findings) else {
                continue;
            };
            let of = word(&limit, "type", findings);
            let number = |name: &str, findings: &mut Findings| limit.count(name, findings);
            let rate = number("tokensPerFill", findings).unwrap_or(1);
            let burst = number("maxTokens", findings);
            let per = word(&limit, "fillInterval", findings);
            match (of.as_deref().unwrap_or("requests"), per) {
                ("requests", Some(per)) => {
                    let burst = burst.map_or_else(String::new, |burst| format!(", burst: {burst}"));
                    let limit = format!("{{ requests: {rate}, per: {}{burst} }}", scalar(&per));
                    if !self.limits.contains(&limit) {
                        self.limits.push(limit);
                    }
                }
                _ => plan.comment(&limit.place, "limits of tools count requests alone"),
            }
        }
    }

    /// Writes them.
    pub(super) fn write(&self, text: &mut String) {
        text.push_str("\nmcp:\n");
        comment::write(
            text,
            2,
            "What sessions are sealed with: openssl rand -hex 32",
        );
        text.push_str("  secret: { env: MCP_SECRET }\n");
        let prefix = match (self.prefix, self.servers.len()) {
            (Some(prefix), _) => prefix,
            (None, 1) => "on_conflict",
            (None, _) => "always",
        };
        if prefix == "always" {
            comment::write(
                text,
                2,
                "The tool t of the server s is s__t here, with two lines, and s_t there.",
            );
        }
        let _ = writeln!(text, "  prefix: {prefix}");
        text.push_str("  servers:\n");
        for server in &self.servers {
            let _ = writeln!(text, "    {}:", server.name);
            for says in &server.says {
                let _ = writeln!(text, "      {says}");
            }
        }
        text.push_str("  routes:\n    - workload: default\n");
        if !self.limits.is_empty() {
            let _ = writeln!(text, "      limits: [ {} ]", self.limits.join(", "));
        }
    }
}

impl Rules {
    /// Those of a policy. Rules there allow what any of them allows, and all that no rule allows is refused.
    fn of(policies: &Section<'_>, plan: &mut Plan, findings: &mut Findings) -> Self {
        let mut rules = Self::default();
        let section = policies.section("mcpAuthorization", findings);
        for (nth, node) in section.list("rules").iter().enumerate() {
            let place = Place::new(format!("{}.rules[{nth}]", section.place.path), node.line);
            let (kind, text) = match &node.value {
                Value::Map(entries) => match entries.first() {
                    Some(entry) => (entry.key.as_str(), text_of(&entry.node)),
                    None => continue,
                },
                _ => ("allow", text_of(node)),
            };
            rules.are_any = true;
            let named = text.as_deref().and_then(named);
            match (kind, named) {
                ("allow", Some(names)) => rules.allow.extend(names),
                ("deny", Some(names)) => rules.deny.extend(names),
                _ => {
                    rules.is_less = true;
                    let says = "says more than names of tools: write it as a rule of `authority`, whose `method` is tools/call and whose `path` is the whole name";
                    plan.comment(&place, says);
                    let says = "is not taken over, and what it allows is refused until it is";
                    findings.warn(
                        &place,
                        says,
                        "docs/authority.md says how such a rule is written",
                    );
                }
            }
        }
        rules
    }

    /// What a server says of them.
    fn says(&self, has_tools_alone: bool) -> Vec<String> {
        if !self.are_any {
            return Vec::new();
        }
        let list = |names: &[String]| {
            let names: Vec<String> = names.iter().map(|name| scalar(name)).collect();
            format!("[{}]", names.join(", "))
        };
        let tools = match (self.is_less, self.allow.is_empty(), self.deny.is_empty()) {
            // A rule that is not carried over may deny or demand something of what others allow.
            (true, _, _) => return Self::closed(has_tools_alone),
            // Rules that deny alone leave the rest open.
            (false, true, _) => return vec![format!("tools: {{ deny: {} }}", list(&self.deny))],
            (false, false, true) => format!("tools: {{ allow: {} }}", list(&self.allow)),
            (false, false, false) => format!(
                "tools: {{ allow: {}, deny: {} }}",
                list(&self.allow),
                list(&self.deny)
            ),
        };
        let mut says = Self::closed(has_tools_alone);
        says[0] = tools;
        says
    }

    /// What a server says that shows nothing.
    fn closed(has_tools_alone: bool) -> Vec<String> {
        let kinds = ["tools", "prompts", "resources"];
        let kinds = kinds.into_iter().take(if has_tools_alone { 1 } else { 3 });
        kinds
            .map(|kind| format!("{kind}: {{ deny: \"*\" }}"))
            .collect()
    }
}

/// The names of tools that a rule is about, where it is about nothing else.
fn named(rule: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for part in rule.split("||") {
        let part = part.trim();
        let rest = part.strip_prefix("mcp.tool.name")?.trim_start();
        let plain = |quoted: &str| {
            let quoted = quoted.trim();
            let quote = quoted.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let inner = quoted.strip_prefix(quote)?.strip_suffix(quote)?;
            let is_fine = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
            (!inner.is_empty() && inner.chars().all(is_fine)).then(|| inner.to_owned())
        };
        match (rest.strip_prefix("=="), rest.strip_prefix("in ")) {
            (Some(name), _) => names.push(plain(name)?),
            (None, Some(list)) => {
                let list = list.trim().strip_prefix('[')?.strip_suffix(']')?;
                for name in list.split(',') {
                    names.push(plain(name)?);
                }
            }
            (None, None) => return None,
        }
    }
    Some(names)
}

fn text_of(node: &Node) -> Option<String> {
    match given(node)? {
        Given::Text(text) => Some(text),
        Given::Variable(_) => None,
    }
}

/// The credential that a policy sends, as a member.
fn credential(policies: &Section<'_>, plan: &mut Plan, findings: &mut Findings) -> Option<String> {
    let auth = policies.section("backendAuth", findings);
    for other in auth.entries().filter(|entry| entry.key != "key") {
        let says = match other.key.as_str() {
            "passthrough" => "no server is sent what a caller brings: give it a `credential`",
            _ => "docs/upstream-credentials.md says how such a credential is made here",
        };
        plan.comment(&auth.place_of(&other.key), says);
    }
    let is_nested = matches!(auth.get("key").map(|node| &node.value), Some(Value::Map(_)));
    let (said, place) = if is_nested {
        let key = auth.section("key", findings);
        if let Some(file) = word(&key, "file", findings) {
            return Some(format!("credential: {{ file: {} }}", scalar(&file)));
        }
        (said(&key, "value", findings), key.place_of("value"))
    } else {
        (said(&auth, "key", findings), auth.place_of("key"))
    };
    let said = said?;
    let named = said.strip_prefix('$').map(|name| {
        let name = name.strip_prefix('{').unwrap_or(name);
        name.strip_suffix('}').unwrap_or(name)
    });
    let name = named.filter(|name| is_name(name)).unwrap_or_else(|| {
        let says = "a secret stands in the file, and is not taken over";
        findings.warn(
            &place,
            says,
            "put it into MCP_SERVER_KEY, or name another variable",
        );
        "MCP_SERVER_KEY"
    });
    Some(format!("credential: {{ env: {name} }}"))
}

/// A command.
fn stdio(
    section: &Section<'_>,
    plan: &mut Plan,
    findings: &mut Findings,
) -> Result<Vec<String>, String> {
    plan.others_of(section, &["cmd", "args", "env"], &ELSEWHERE);
    let command = word(section, "cmd", findings).ok_or("it says no `cmd`")?;
    let mut says = vec![format!("command: {}", scalar(&command))];
    let args: Vec<String> = section
        .list("args")
        .iter()
        .filter_map(given)
        .map(|of| scalar(&of.composed()))
        .collect();
    if !args.is_empty() {
        says.push(format!("args: [{}]", args.join(", ")));
    }
    let env = section.section("env", findings);
    let mut variables = Vec::new();
    for entry in env.entries() {
        // Each may be a secret: its value is looked up where the gate runs.
        variables.push(format!("{}: \"${{{}}}\"", scalar(&entry.key), entry.key));
        let says = "its value is not taken over: set it where the gate runs";
        findings.warn(&env.place_of(&entry.key), says, "");
    }
    if !variables.is_empty() {
        says.push(format!("environment: {{ {} }}", variables.join(", ")));
    }
    Ok(says)
}

/// An API.
fn openapi(
    section: &Section<'_>,
    plan: &mut Plan,
    findings: &mut Findings,
) -> Result<Vec<String>, String> {
    plan.others_of(section, &["schema", "host", "port", "path"], &ELSEWHERE);
    let schema = section.section("schema", findings);
    plan.others_of(&schema, &["file", "url"], &ELSEWHERE);
    let at = word(&schema, "file", findings).or_else(|| word(&schema, "url", findings));
    let at = at.ok_or("it does not say where its description is")?;
    DescriptionAt::read(&at).map_err(|problem| format!("its description {}", problem.is))?;
    let base = address_of(section, "", findings)?;
    let relative =
        "relative paths start where the configuration is, and there where the gateway was started";
    if !at.contains("://") && !at.starts_with('/') {
        plan.comment(&schema.place_of("file"), relative);
    }
    Ok(vec![
        format!("openapi: {}", scalar(&at)),
        format!("base: {}", scalar(&base)),
    ])
}

fn address(
    section: &Section<'_>,
    plan: &mut Plan,
    findings: &mut Findings,
) -> Result<Vec<String>, String> {
    plan.others_of(section, &["host", "port", "path"], &ELSEWHERE);
    let url = address_of(section, "/mcp", findings)?;
    Ok(vec![format!("url: {}", scalar(&url))])
}

/// Where something is, by its host, port and path; a host may be a whole address.
fn address_of(
    section: &Section<'_>,
    usual: &str,
    findings: &mut Findings,
) -> Result<String, String> {
    let host = word(section, "host", findings).ok_or("it does not say where it is")?;
    let url = if host.contains("://") {
        host.trim_end_matches('/').to_owned()
    } else {
        let port = section.count("port", findings);
        let path = word(section, "path", findings);
        put_together(&host, port, path.as_deref().unwrap_or(usual))
    };
    target(&url).map(|_| url)
}

fn put_together(host: &str, port: Option<u64>, path: &str) -> String {
    let path = path.trim_end_matches('/');
    let slash = if path.is_empty() || path.starts_with('/') {
        ""
    } else {
        "/"
    };
    let (host, port) = match (host.rsplit_once(':'), port) {
        (_, Some(port)) => (host, port.to_string()),
        (Some((host, port)), None) => (host, port.to_owned()),
        (None, None) => (host, "80".to_owned()),
    };
    let (scheme, port) = match &*port {
        "443" => ("https", String::new()),
        "80" => ("http", String::new()),
        port => ("http", format!(":{port}")),
    };
    format!("{scheme}://{host}{port}{slash}{path}")
}
