//! The MCP part of agentgateway's configuration (<https://agentgateway.dev/docs/standalone/latest/mcp/>): the `mcp` section, and `mcp` backends of
//! routes, as servers of tools of this gate.
//!
//! Not here: the `llm` section (`super`), who may use what (`rules`, `doors`), keys (`keys`), what a server is (`lower::mcp`).

use std::fmt::Write as _;

use super::super::comment;
use super::super::credential::{Credential, Variables, free, variable_of};
use super::super::deployment::target;
use super::super::read::{Section, given, scalar};
use super::keys::{self, variable};
use super::rules::{Rules, text_of};
use super::{Plan, word};
use crate::decode::{Findings, Written};
use crate::scalar::DescriptionAt;

/// Servers of tools, and who may use what of them.
#[derive(Default)]
pub(super) struct Tools {
    servers: Vec<Server>,
    /// Limits of the route, each as it is written.
    limits: Vec<String>,
    /// They are named as the other gateway names them where there is one.
    prefix: Option<&'static str>,
    /// Variables of commands, each with its value there: held to be compared, and never written.
    environment: Vec<(String, String)>,
}

struct Server {
    name: String,
    /// Where it is, each member a line.
    at: Vec<String>,
    credential: Option<Credential>,
    /// The credential as it is written.
    written: Option<String>,
    /// What of it may be used, each member a line.
    says: Vec<String>,
}

/// Settings that are elsewhere, and what is said of them.
pub(super) const ELSEWHERE: [(&str, &str); 12] = [
    ("port", "is `listen.data` here"),
    ("cors", "is `cors` here: `origins` that may call"),
    (
        "jwtAuth",
        "is `identity` here: docs/identity.md#signed-tokens-jwt",
    ),
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
        let credential = keys::of_policies(policies, "MCP_SERVER_KEY", plan, findings);
        self.limits(policies, findings);
        let known = ["mcpAuthorization", "backendAuth", "localRateLimit"];
        plan.others_of(policies, &known, &ELSEWHERE);
        for (nth, node) in targets.iter().enumerate() {
            let path = format!("{}.targets[{nth}]", mcp.place.path);
            if let Some(target) = Section::open(node, &path, findings) {
                self.target(&target, (&rules, credential.as_ref()), (plan, findings));
            }
        }
    }

    fn target(
        &mut self,
        target: &Section<'_>,
        (rules, usual): (&Rules, Option<&Credential>),
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
            "stdio" => self.stdio(&section, plan, findings),
            "mcp" => address(&section, plan, findings),
            "openapi" => openapi(&section, plan, findings),
            _ => {
                let says = "speaks the old HTTP+SSE, which the gate does not, and is left out";
                let hint =
                    "name its address of Streamable HTTP, which most such servers have at /mcp";
                return findings.warn(&section.place, says, hint);
            }
        };
        let at = match address {
            Ok(at) => at,
            Err(says) => {
                return findings.warn(&section.place, format!("is left out: {says}"), "");
            }
        };
        let policies = target.section("policies", findings);
        let own = Rules::of(&policies, plan, findings);
        plan.others_of(&policies, &["mcpAuthorization", "backendAuth"], &ELSEWHERE);
        let name = self.name(&said_name);
        let credential = match form {
            "stdio" => None,
            _ => {
                let suggested = format!("{}_KEY", variable_of(&name));
                keys::of_policies(&policies, &suggested, plan, findings).or_else(|| usual.cloned())
            }
        };
        let mut says = Vec::new();
        if rules.are_any && own.are_any {
            // Both hold there, and one of them alone would leave more open.
            says.extend(Rules::closed(form == "openapi"));
            let fault = "has rules of its own beside those of the whole, and none of its tools is open until its `tools` are written";
            findings.warn(&policies.place, fault, "allow what both allow");
        } else {
            let rules = if own.are_any { &own } else { rules };
            says.extend(rules.says(form == "openapi"));
        }
        if name != said_name {
            plan.comment(&target.place_of("name"), &format!("is {name} here"));
        }
        self.servers.push(Server {
            name,
            at,
            credential,
            written: None,
            says,
        });
    }

    /// The variables of commands.
    pub(super) fn variables(&self) -> impl Iterator<Item = String> {
        self.environment.iter().map(|(name, _)| name.clone())
    }

    /// Writes the credentials: a secret has a variable to itself.
    pub(super) fn keys(&mut self, keys: &mut Variables, findings: &mut Findings) {
        for server in &mut self.servers {
            let credential = server.credential.as_ref();
            server.written = credential.map(|credential| keys.written(credential, findings));
        }
    }

    /// A command.
    fn stdio(
        &mut self,
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
            let value = text_of(&entry.node).unwrap_or_default();
            let name = match variable(&value) {
                Some(name) => name.to_owned(),
                None => {
                    let name = self.variable_for(&entry.key, value);
                    let says = match name == entry.key {
                        true => {
                            "its value is not taken over: set it where the gate runs".to_owned()
                        }
                        false => format!(
                            "its value is not taken over, and another command has another {}: set {name} where the gate runs",
                            entry.key
                        ),
                    };
                    findings.warn(&env.place_of(&entry.key), says, "");
                    name
                }
            };
            variables.push(format!("{}: \"${{{name}}}\"", scalar(&entry.key)));
        }
        if !variables.is_empty() {
            says.push(format!("environment: {{ {} }}", variables.join(", ")));
        }
        Ok(says)
    }

    /// The variable for a value of a command's: one that another command has under the same name is not sent to this one.
    fn variable_for(&mut self, key: &str, value: String) -> String {
        let is_others = |name: &str| {
            let mut known = self.environment.iter();
            known.any(|(known, its)| known == name && *its != value)
        };
        let name = free(key, "_", is_others);
        self.environment.push((name.clone(), value));
        name
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
    fn limits(&mut self, policies: &Section<'_>, findings: &mut Findings) {
        for (nth, node) in policies.list("localRateLimit").iter().enumerate() {
            let path = format!("{}.localRateLimit[{nth}]", policies.place.path);
            let Some(limit) = Section::open(node, &path, findings) else {
                continue;
            };
            let of = word(&limit, "type", findings);
            let number = |name: &str, findings: &mut Findings| limit.count(name, findings);
            // Its form of today, and the older one of a bucket.
            let rate = number("limit", findings).or_else(|| number("tokensPerFill", findings));
            let burst = number("burst", findings).or_else(|| number("maxTokens", findings));
            let unit = word(&limit, "unit", findings).map(|unit| unit.to_ascii_lowercase());
            let per = match unit.as_deref() {
                Some("second" | "seconds") => Some("1s".to_owned()),
                Some("minute" | "minutes") => Some("1m".to_owned()),
                Some("hour" | "hours") => Some("1h".to_owned()),
                Some("day" | "days") => Some("24h".to_owned()),
                _ => word(&limit, "fillInterval", findings),
            };
            let is_bucket = limit.get("fillInterval").is_some();
            let rate = rate.or(is_bucket.then_some(1));
            match (of.as_deref().unwrap_or("requests"), rate, per) {
                ("requests", Some(rate), Some(per)) => {
                    let burst = burst.map_or_else(String::new, |burst| format!(", burst: {burst}"));
                    let limit = format!("{{ requests: {rate}, per: {}{burst} }}", scalar(&per));
                    if !self.limits.contains(&limit) {
                        self.limits.push(limit);
                    }
                }
                ("requests", ..) => {
                    let says = "is a limit in a form that is not read, and is left out";
                    let hint =
                        "write it under `limits` of the route, such as { requests: 50, per: 1s }";
                    findings.warn(&limit.place, says, hint);
                }
                _ => {
                    let says = "is left out: limits of tools count requests alone";
                    findings.warn(&limit.place, says, "");
                }
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
            let credential = server.written.as_ref();
            let credential = credential.map(|written| format!("credential: {written}"));
            for says in server.at.iter().chain(&credential).chain(&server.says) {
                let _ = writeln!(text, "      {says}");
            }
        }
        text.push_str("  routes:\n    - workload: default\n");
        if !self.limits.is_empty() {
            let _ = writeln!(text, "      limits: [ {} ]", self.limits.join(", "));
        }
    }
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
