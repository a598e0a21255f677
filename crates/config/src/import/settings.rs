//! Settings of the whole: `litellm_settings`, `router_settings`, `general_settings` and `environment_variables`.
//!
//! Where both of the first say something, the router's counts, as it does there.
//! Not here: those without a counterpart (`left`).

use super::comment;
use super::left::{self, remark};
use super::read::{Given, Section, given, variables};
use crate::decode::{Findings, Place, Written};
use crate::mask::quoted;
use crate::node::{Node, Value};
use crate::scalar::{Age, Model};

/// What keeps callers out there, beside the master key.
const DOORS: [&str; 6] = [
    "enable_jwt_auth",
    "litellm_jwtauth",
    "enable_oauth2_auth",
    "enable_oauth2_proxy_auth",
    "custom_auth",
    "allowed_ips",
];

/// What a proxy has that knows keys, wherever it has its master key from.
const OF_KEYS: [&str; 6] = [
    "custom_key_generate",
    "database_connection_pool_limit",
    "database_url",
    "litellm_key_header_name",
    "store_model_in_db",
    "store_prompts_in_spend_logs",
];
/// Variables that say the same.
const OF_KEYS_SET: [&str; 2] = ["LITELLM_MASTER_KEY", "DATABASE_URL"];

/// What of them has a counterpart.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) timeout: Option<String>,
    pub(super) ejection: Option<String>,
    /// Tries of a call after the first.
    pub(super) retries: Option<u64>,
    /// Of a model, in the order in which they are tried.
    pub(super) fallbacks: Vec<(String, Vec<String>)>,
    pub(super) default_fallbacks: Vec<String>,
    /// Names that stand for another.
    pub(super) aliases: Vec<(String, String)>,
    /// Callers need a key.
    pub(super) asks_for_keys: bool,
    pub(super) body_mib: Option<u64>,
    pub(super) retention: Option<String>,
    /// Money, and the period as written.
    pub(super) budget: Option<(String, Option<String>, Place)>,
    /// Variables that the other file sets.
    pub(super) environment: Vec<String>,
    /// Variables that it names.
    pub(super) variables: Vec<String>,
    /// Of settings without a counterpart.
    pub(super) notes: Vec<String>,
}

/// Read of `litellm_settings` and of `router_settings`.
const READ: &[&str] = &[
    "num_retries",
    "allowed_fails",
    "cooldown_time",
    "fallbacks",
    "default_fallbacks",
];

impl Settings {
    pub(super) fn read(root: &Section<'_>, findings: &mut Findings) -> Self {
        let mut settings = Self::default();
        for entry in root.entries() {
            variables(&entry.node, &mut settings.variables);
        }
        let litellm = root.section("litellm_settings", findings);
        let router = root.section("router_settings", findings);
        let general = root.section("general_settings", findings);
        settings.calls(&litellm, &router, findings);
        settings.fallbacks(&litellm, &router, findings);
        settings.aliases(&router, findings);
        settings.general(&general, findings);
        settings.budget(&litellm, findings);
        let environment = root.section("environment_variables", findings);
        let names = environment.entries().map(|entry| entry.key.clone());
        settings.environment = names.collect();
        if !settings.environment.is_empty() {
            let says = "values of variables stand in the file, and are not taken over";
            let place = root.place_of("environment_variables");
            findings.warn(&place, says, "give them to the gate");
        }
        settings.keys(root, &general, findings);
        if root.get("mcp_servers").is_some() || litellm.get("mcp_servers").is_some() {
            let from = match root.get("mcp_servers") {
                Some(_) => root,
                None => &litellm,
            };
            let says = "servers of tools are not taken over, and clients find none at /mcp";
            let hint = "write them under `mcp.servers`: docs/mcp.md";
            findings.warn(&from.place_of("mcp_servers"), says, hint);
        }
        settings.name_the_rest(root, [&litellm, &router, &general]);
        settings
    }

    /// A master key that the file does not show may be in LiteLLM's environment.
    fn keys(&mut self, root: &Section<'_>, general: &Section<'_>, findings: &mut Findings) {
        let is_set = |name: &&str| self.environment.iter().any(|set| set == name);
        self.asks_for_keys |=
            OF_KEYS.iter().any(|key| general.get(key).is_some()) || OF_KEYS_SET.iter().any(is_set);
        if !self.asks_for_keys {
            let says = "holds no master key, and LiteLLM takes one from LITELLM_MASTER_KEY as well";
            let hint = "where that is set there, write identity: { keys: { file: keys.jsonl } }: the made file lets in whoever reaches the gate";
            findings.warn(&root.place_of("general_settings"), says, hint);
        }
    }

    fn calls(&mut self, litellm: &Section<'_>, router: &Section<'_>, findings: &mut Findings) {
        let of = |key: &str| {
            if router.get(key).is_some() {
                router
            } else {
                litellm
            }
        };
        self.timeout = router
            .seconds("timeout", findings)
            .or_else(|| litellm.seconds("request_timeout", findings));
        self.retries = of("num_retries").count("num_retries", findings);
        let fails = of("allowed_fails").count("allowed_fails", findings);
        let cooldown = of("cooldown_time").count("cooldown_time", findings);
        if router.is_true("disable_cooldowns") || (fails.is_none() && cooldown.is_none()) {
            return;
        }
        let mut ejection = Vec::new();
        if let Some(fails) = fails {
            // There, more than these end it; here, these many in a row.
            let failures = fails.saturating_add(1).min(1000).to_string();
            ejection.push(("failures".to_owned(), failures));
        }
        if let Some(cooldown) = cooldown.filter(|seconds| (1..=3600).contains(seconds)) {
            ejection.push(("time".to_owned(), format!("{cooldown}s")));
            if cooldown > 300 {
                ejection.push(("max_time".to_owned(), format!("{cooldown}s")));
            }
        }
        if !ejection.is_empty() {
            self.ejection = Some(super::read::flow(&ejection));
        }
    }

    fn fallbacks(&mut self, litellm: &Section<'_>, router: &Section<'_>, findings: &mut Findings) {
        let of = |key: &str| {
            if router.get(key).is_some() {
                router
            } else {
                litellm
            }
        };
        let section = of("fallbacks");
        let place = section.place_of("fallbacks");
        for item in section.list("fallbacks") {
            let Value::Map(entries) = &item.value else {
                let says = format!("is {}, not a mapping from a model to others", item.what());
                let place = Place::new(&*place.path, item.line);
                findings.fault(&place, says, "write [ { MODEL: [OTHER] } ]");
                continue;
            };
            for entry in entries {
                let items = match &entry.node.value {
                    Value::List(items) => items.as_slice(),
                    _ => std::slice::from_ref(&entry.node),
                };
                let names = self.names(items, &place);
                if entry.key == "*" {
                    self.default_fallbacks.extend(names);
                } else {
                    self.fallbacks.push((entry.key.clone(), names));
                }
            }
        }
        let section = of("default_fallbacks");
        let place = section.place_of("default_fallbacks");
        let names = self.names(section.list("default_fallbacks"), &place);
        self.default_fallbacks.extend(names);
    }

    /// Names of models; one with messages of its own is named in a comment.
    fn names(&mut self, items: &[Node], place: &Place) -> Vec<String> {
        let mut names = Vec::new();
        for item in items {
            match given(item) {
                Some(Given::Text(name)) => names.push(name),
                _ => {
                    let place = Place::new(&*place.path, item.line);
                    let says = "a fallback with a call of its own: a call is sent on as it is.";
                    self.notes.push(comment::of(&place, says));
                }
            }
        }
        names
    }

    fn aliases(&mut self, router: &Section<'_>, findings: &mut Findings) {
        let aliases = router.section("model_group_alias", findings);
        for entry in aliases.entries() {
            let group = match given(&entry.node) {
                Some(Given::Text(group)) => Some(group),
                Some(Given::Variable(_)) => None,
                None => {
                    let path = aliases.place_of(&entry.key).path;
                    let full = Section::open(&entry.node, &path, findings);
                    if full.as_ref().is_some_and(|it| it.is_true("hidden")) {
                        let says = "hidden from /v1/models there; here a backend's `models` says what is listed.";
                        self.notes
                            .push(comment::of(&aliases.place_of(&entry.key), says));
                    }
                    match full.and_then(|it| it.text("model", findings)) {
                        Some(Given::Text(group)) => Some(group),
                        _ => None,
                    }
                }
            };
            match group {
                Some(_) if Model::read(&entry.key).is_err() => {
                    let says = "no route can match this name: left out.";
                    self.notes
                        .push(comment::of(&aliases.place_of(&entry.key), says));
                }
                Some(group) => self.aliases.push((entry.key.clone(), group)),
                None => {
                    let place = aliases.place_of(&entry.key);
                    findings.fault(&place, "does not say which model it stands for", "");
                }
            }
        }
    }

    fn general(&mut self, general: &Section<'_>, findings: &mut Findings) {
        self.asks_for_keys = general.get("master_key").is_some();
        for door in DOORS {
            // A variable may hold either.
            let said = general.get(door).and_then(given);
            let is_off = door.starts_with("enable_")
                && matches!(said, Some(Given::Text(_)))
                && !general.is_true(door);
            if general.get(door).is_some() && !is_off {
                let says = "keeps callers out there, and is not taken over";
                let hint = "say who may call (docs/identity.md) and what (docs/authority.md): until then the made file takes keys of the gate's own alone";
                findings.warn(&general.place_of(door), says, hint);
                self.asks_for_keys = true;
            }
        }
        if let Some(Given::Text(_)) = general.text("master_key", findings) {
            let says = "a secret stands in the file, and is not taken over";
            findings.warn(
                &general.place_of("master_key"),
                says,
                "make keys of the gate's own",
            );
        }
        self.body_mib = general
            .count("max_request_size_mb", findings)
            .filter(|mib| (1..=1024).contains(mib));
        let retention = general.text("maximum_spend_logs_retention_period", findings);
        self.retention = retention.and_then(|given| match given {
            Given::Text(text) if Age::read(&text).is_ok() => Some(text),
            _ => None,
        });
    }

    fn budget(&mut self, litellm: &Section<'_>, findings: &mut Findings) {
        let Some(Given::Text(money)) = litellm.text("max_budget", findings) else {
            return;
        };
        let period = match litellm.text("budget_duration", findings) {
            Some(Given::Text(period)) => Some(period),
            _ => None,
        };
        self.budget = Some((money, period, litellm.place_of("max_budget")));
    }

    /// Comments of what has no counterpart.
    fn name_the_rest(&mut self, root: &Section<'_>, [litellm, router, general]: [&Section<'_>; 3]) {
        let notes = &mut self.notes;
        let says = "becomes `timeouts: { first_byte: … }` of the backends: to the head of an answer, and a stream may take longer.";
        if router.get("timeout").is_some() {
            remark(router, "timeout", says, notes);
        } else {
            remark(litellm, "request_timeout", says, notes);
        }
        for (key, says) in [
            (
                "num_retries",
                "each address is tried once: `retries: { attempts: N }` counts the tries of all of them.",
            ),
            (
                "allowed_fails",
                "failures are counted in a row, each worker for itself, and not in a minute.",
            ),
        ] {
            let is_router = router.get(key).is_some();
            remark(if is_router { router } else { litellm }, key, says, notes);
        }
        let own: &[&str] = &["request_timeout", "max_budget", "budget_duration"];
        left::of(litellm, &[READ, own], left::LITELLM, notes);
        let own: &[&str] = &["timeout", "routing_strategy", "model_group_alias"];
        left::of(router, &[READ, own], left::ROUTER, notes);
        let strategy = match router.get("routing_strategy").and_then(given) {
            Some(Given::Text(strategy)) if strategy != "simple-shuffle" => strategy,
            _ => String::new(),
        };
        if !strategy.is_empty() {
            let says = format!(
                "{}: addresses of a backend are taken by weight, and left alone while they fail.",
                quoted(&strategy)
            );
            remark(router, "routing_strategy", &says, notes);
        }
        let mut own = vec!["master_key"];
        own.extend(self.body_mib.map(|_| "max_request_size_mb"));
        let retention = self.retention.as_ref();
        own.extend(retention.map(|_| "maximum_spend_logs_retention_period"));
        left::of(general, &[&own], left::GENERAL, notes);
        let own: &[&str] = &[
            "model_list",
            "credential_list",
            "litellm_settings",
            "router_settings",
            "general_settings",
            "environment_variables",
        ];
        left::of(root, &[own], left::SECTIONS, notes);
    }
}
