//! A config of Portkey's gateway (<https://portkey.ai/docs/api-reference/inference-api/config-object>) as a document of this gate.
//!
//! Invariant: as of all that is imported: no secret is written, and each setting without a counterpart has a comment with its line.
//! Not here: which target has a call (`strategy`), providers (`provider`), printing it (`tollgate import`).

mod strategy;

use std::fmt::Write as _;
use std::path::Path;

use strategy::Strategy;

use super::credential::{free, key_of};
use super::deployment::target;
use super::provider::{self, Kind, Provider};
use super::read::{Section, scalar};
use super::{Imported, comment, imported};
use crate::decode::{Findings, Place, Written, child};
use crate::document;
use crate::fault::Faults;
use crate::mask::quoted;
use crate::node::{Node, Value};
use crate::scalar::Pattern;
use crate::sources::Sources;

/// Providers that are called otherwise there.
const SLUGS: [(&str, &str); 9] = [
    ("google", "gemini"),
    ("mistral-ai", "mistral"),
    ("together-ai", "together_ai"),
    ("fireworks-ai", "fireworks_ai"),
    ("perplexity-ai", "perplexity"),
    ("x-ai", "xai"),
    ("azure-openai", "azure"),
    ("vertex-ai", "vertex_ai"),
    ("workers-ai", "cloudflare"),
];
/// Google's own API.
const GOOGLE: &str = "https://generativelanguage.googleapis.com/v1beta";
/// How deep targets may lie in targets.
const LEVELS: usize = 8;

/// Settings of a config and of a target that the gate has in another place, and what is said of the others.
const ELSEWHERE: [(&str, &str); 6] = [
    ("cache", "answers are not kept"),
    (
        "retry",
        "a call is tried again at another address here, and never at the same one: `retries` of the route says how often, and after which statuses",
    ),
    ("request_timeout", "is `timeouts` of the backends here"),
    (
        "strict_open_ai_compliance",
        "answers of a translated call have what their API documents",
    ),
    ("forward_headers", "is `forward_headers` of the route here"),
    (
        "passthrough",
        "a call in the backend's own API passes as it came",
    ),
];

/// Makes a document of a config of Portkey's.
///
/// # Errors
/// [`Faults`] where it cannot be read, or nothing of it can be taken over.
pub fn import_portkey(path: &Path, sources: &dyn Sources) -> Result<Imported, Faults> {
    let bytes = document::bytes_of(path, sources)?;
    let root = document::tree_of(path, &bytes)?;
    let mut findings = Findings::default();
    let mut plan = Plan::default();
    if let Some(root) = Section::open(&root, "", &mut findings) {
        plan.config(&root, 0, &mut findings);
        plan.models_differ();
        if plan.targets.is_empty() && findings.faults.is_empty() {
            let says = "none of its targets can be reached from here";
            findings.fault(&root.place_of("targets"), says, "the warnings say why");
        }
    }
    let made = (plan.document(path), plan.comments.len());
    imported(path, findings, Some(made))
}

#[derive(Default)]
struct Plan {
    targets: Vec<Target>,
    strategy: Strategy,
    comments: Vec<String>,
}

struct Target {
    name: String,
    provider: &'static Provider,
    dialect: &'static str,
    url: String,
    variable: Option<String>,
    /// Whose secret the variable has.
    secret: Secret,
    model: Option<String>,
    /// Its share of the calls, where targets have shares.
    weight: f64,
    place: Place,
}

/// Which secret it is: two that differ have variables of their own, and none goes to the host of another.
#[derive(Clone, PartialEq, Eq)]
struct Secret {
    provider: &'static str,
    host: Option<String>,
    /// Held to be compared, and never written.
    key: Option<String>,
}

impl Plan {
    /// A config, or a target that is one.
    fn config(&mut self, section: &Section<'_>, level: usize, findings: &mut Findings) {
        let Some(Node {
            value: Value::List(targets),
            ..
        }) = section.get("targets")
        else {
            return self.target(section, findings);
        };
        self.others(section, &["strategy", "targets", "name"]);
        let strategy = section.section("strategy", findings);
        if level > 0 {
            self.nested(&strategy, findings);
        }
        let mut named = Vec::new();
        for (nth, node) in targets.iter().enumerate() {
            let path = format!("{}[{nth}]", child(&section.place.path, "targets"));
            let Some(target) = Section::open(node, &path, findings) else {
                continue;
            };
            let first = self.targets.len();
            match level < LEVELS {
                true => self.config(&target, level + 1, findings),
                false => findings.fault(&target.place, "lies deeper than 8 levels", ""),
            }
            named.push((word(&target, "name", findings), first..self.targets.len()));
        }
        if level == 0 {
            let is_flat = named.iter().all(|(_, of)| of.len() <= 1);
            self.strategy(&strategy, &named, is_flat, findings);
        }
    }

    fn target(&mut self, section: &Section<'_>, findings: &mut Findings) {
        let known = [
            "strategy",
            "provider",
            "virtual_key",
            "api_key",
            "custom_host",
            "override_params",
            "name",
            "weight",
        ];
        self.others(section, &known);
        let weight = self.weight(section, findings);
        if weight <= 0.0 {
            let says = "is no share of the calls: this target is left out";
            return self.comment(&section.place_of("weight"), says);
        }
        let slug = word(section, "provider", findings);
        let slug = slug.or_else(|| word(section, "virtual_key", findings));
        let params = section.section("override_params", findings);
        let model = word(&params, "model", findings);
        let of_model = model.as_deref().filter(|model| model.starts_with('@'));
        let of_model = of_model.and_then(|model| model.split('/').next());
        let Some(slug) = slug.or_else(|| of_model.map(str::to_owned)) else {
            let says = "says no provider, and is left out";
            return findings.warn(&section.place, says, "");
        };
        let by_slug = Some(slug.clone()).filter(|slug| slug.starts_with('@'));
        let slug = slug.trim_start_matches('@').to_owned();
        let prefix = SLUGS.iter().find(|(theirs, _)| *theirs == slug);
        let prefix = prefix.map_or(&*slug, |(_, ours)| ours);
        let found = provider::of_prefix(prefix).filter(|found| found.kind == Kind::Plain);
        let host = word(section, "custom_host", findings).filter(|host| !host.is_empty());
        // There Google is asked in its own API.
        let api = found.map(|found| match prefix {
            "gemini" => (GOOGLE, "gemini"),
            _ => (found.root, found.dialect),
        });
        let url = host
            .clone()
            .or_else(|| api.map(|(root, _)| root.to_owned()));
        let (Some(provider), Some(url)) = (found, url) else {
            if section.get("provider").is_none() {
                let says = "says no provider: what its `virtual_key` stands for is known at Portkey alone. It is left out";
                let hint = "write its provider beside it, such as \"provider\": \"anthropic\"";
                return findings.warn(&section.place, says, hint);
            }
            if let (None, Some(slug)) = (found, by_slug) {
                let says = format!(
                    "what the slug {} stands for is known at Portkey alone. It is left out",
                    quoted(&slug)
                );
                let hint = "write its provider in its place, such as \"provider\": \"openai\"";
                return findings.warn(&section.place, says, hint);
            }
            let says = "is a provider whose address and credential have a form of their own, and is left out";
            let hint = "write a backend for it; docs/translation.md says how";
            return findings.warn(&section.place, says, hint);
        };
        if let Err(says) = target(&url) {
            let says = format!("{says}. This target is left out");
            return findings.warn(&section.place_of("custom_host"), says, "");
        }
        if model
            .as_deref()
            .is_some_and(|name| Pattern::read(name).is_err())
        {
            let says = "is not a model's name. This target is left out";
            return findings.warn(&params.place_of("model"), says, "");
        }
        let key =
            word(section, "api_key", findings).or_else(|| word(section, "virtual_key", findings));
        let is_keyless = host.is_some() && key.is_none();
        if is_keyless {
            let says = "is an address of its own without a key here: none is sent; where it needs one, write `credential: { env: NAME }`";
            self.comment(&section.place_of("custom_host"), says);
        }
        let secret = Secret {
            provider: provider.key,
            host,
            key,
        };
        let variable =
            (!is_keyless && !provider.key.is_empty()).then(|| self.variable_for(&secret));
        if section.get("api_key").is_some() {
            let says = "a secret stands in the file, and is not taken over";
            let place = section.place_of("api_key");
            let hint = variable
                .as_ref()
                .map_or_else(String::new, |name| format!("put it into {name}"));
            findings.warn(&place, says, &hint);
        }
        if section.get("virtual_key").is_some() {
            let says =
                "keys that Portkey keeps cannot be read: the backend's is taken from a variable";
            self.comment(&section.place_of("virtual_key"), says);
        }

        self.others(&params, &["model"]);
        let name = self.name_for(provider.name);
        self.targets.push(Target {
            name,
            provider,
            dialect: api.map_or("openai", |(_, dialect)| dialect),
            url,
            variable,
            secret,
            model,
            weight,
            place: section.place.clone(),
        });
    }

    /// The variable for a secret: the provider's usual one is for its own address, and for one secret.
    fn variable_for(&self, secret: &Secret) -> String {
        let mut same = self
            .targets
            .iter()
            .filter(|target| target.secret == *secret);
        if let Some(name) = same.find_map(|target| target.variable.clone()) {
            return name;
        }
        let is_taken = |name: &str| {
            let is_usual = secret.host.is_some() && name == secret.provider;
            is_usual
                || self
                    .targets
                    .iter()
                    .any(|target| target.variable.as_deref() == Some(name))
        };
        let own = secret.host.as_deref().map(key_of);
        free(own.as_deref().unwrap_or(secret.provider), "_", is_taken)
    }

    /// Notes targets that are asked for another model here than there: a route sends one name, or the client's.
    fn models_differ(&mut self) {
        let mut notes = Vec::new();
        for (index, target) in self.targets.iter().enumerate() {
            let says = match (self.asked(index), &target.model) {
                (None, Some(own)) => format!(
                    "this target asks for {} whatever the client names, which holds for whole routes here: {} is asked for the client's name; \
                     say `model_names: {{ NAME: {} }}` of it for each name that clients use",
                    quoted(own),
                    target.name,
                    scalar(own)
                ),
                (Some(asked), None) => format!(
                    "this target is asked for what the client names there; here for {}, as all targets of the route are",
                    quoted(asked)
                ),
                _ => continue,
            };
            notes.push((target.place.clone(), says));
        }
        for (place, says) in notes {
            self.comment(&place, &says);
        }
    }

    /// The model that the route of a target sends: that of its first target.
    fn asked(&self, index: usize) -> Option<&str> {
        let first = self.strategy.first_of(index);
        self.targets.get(first)?.model.as_deref()
    }

    /// A name that no other target has.
    fn name_for(&self, base: &str) -> String {
        let same = |target: &&Target| target.provider.name == base;
        match self.targets.iter().filter(same).count() {
            0 => base.to_owned(),
            others => format!("{base}-{}", others + 1),
        }
    }

    /// Comments on what is written besides.
    fn others(&mut self, section: &Section<'_>, known: &[&str]) {
        let written: Vec<&str> = section.entries().map(|entry| &*entry.key).collect();
        for key in written.into_iter().filter(|key| !known.contains(key)) {
            let said = ELSEWHERE.iter().find(|(name, _)| *name == key);
            let says = said.map_or("has no counterpart", |(_, says)| says);
            self.comment(&section.place_of(key), says);
        }
    }

    fn comment(&mut self, place: &crate::decode::Place, says: &str) {
        self.comments.push(comment::of(place, says));
    }

    fn document(&self, path: &Path) -> String {
        let mut text = String::new();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let says = format!(
            "Made of {file} by `tollgate import portkey`. Comments say what differs, and what has no counterpart. \
             `tollgate check` says what is still missing."
        );
        comment::write(&mut text, 0, &says);
        text.push_str("\n# Whoever reaches the gate may call it; docs/identity.md says how callers are told apart.\n");
        text.push_str("identity: { default: default }\n\nbackends:\n");
        for (index, target) in self.targets.iter().enumerate() {
            let _ = writeln!(text, "  {}:", target.name);
            let _ = writeln!(text, "    url: {}", scalar(&target.url));
            let _ = writeln!(text, "    dialect: {}", target.dialect);
            if let Some(variable) = &target.variable {
                let _ = writeln!(text, "    credential: {{ env: {variable} }}");
            }
            if let (Some(asked), Some(own)) = (self.asked(index), &target.model)
                && asked != own
            {
                let [asked, own] = [asked, own].map(scalar);
                let _ = writeln!(text, "    model_names: {{ {asked}: {own} }}");
            }
        }
        self.routes(&mut text);
        if !self.comments.is_empty() {
            text.push_str("\n# What differs, and what has no counterpart:\n");
            for says in &self.comments {
                comment::write(&mut text, 0, &format!("- {says}"));
            }
        }
        text
    }
}

/// The text of a member, where one is written.
fn word(section: &Section<'_>, key: &str, findings: &mut Findings) -> Option<String> {
    section.text(key, findings).map(|given| given.composed())
}
