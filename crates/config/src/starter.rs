//! A document to start from, with comments: what the environment and the engines that were found say.
//!
//! Invariant: it names variables and never holds what is in them, and it is one that [`crate::parse_document`] takes.
//! Not here: looking for engines and writing the file (`tollgate init`).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::decode::Written;
use crate::environment::{Provider, has_prices, present};
use crate::scalar::Model;
use crate::sources::Sources;

/// Models of an engine that are written out; a route without them takes the rest.
const MODELS: usize = 20;

/// An engine that answers, or that somebody named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundEngine {
    /// What it is called in the document: a name of a backend.
    pub name: String,
    /// With its root, such as `http://127.0.0.1:8000/v1`.
    pub url: String,
    /// As it lists them; empty where it did not.
    pub models: Vec<String>,
    /// It refused to list them without a key.
    pub asks_for_a_key: bool,
}

/// A document to start from, and what to say beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Starter {
    /// The document.
    pub text: String,
    /// Nothing was found: the only backend is an address that somebody has to put right.
    pub is_placeholder: bool,
    /// The first model of an engine that a call can name.
    pub model: Option<String>,
}

const HEAD: &str = "\
# The gate's configuration. `tollgate check` says what is wrong with it, `tollgate run` takes it, and takes
# each change of it while it runs.

# Where clients connect, and where you look: metrics, health, configuration.
listen: { data: 127.0.0.1:1975, admin: 127.0.0.1:1976 }

# Who sends no header x-workload-app is `default`; another name needs a route of its own. Keys, signed
# tokens and certificates prove who calls: `tollgate keys --help`.
identity: { default: default }

# Where calls go. A credential is named here and never written: a variable, or `{ file: PATH }`. Calls of
# Anthropic's and Google's clients and of Codex are translated for an engine with `dialect: openai`; one that
# has those APIs itself is `dialect: [openai, anthropic, responses]`.
backends:
";

const LEDGER: &str = "
# What was used, by whom: `tollgate usage report`.
ledger: { path: usage.db }
";

const PRICES: &str = "
# What the providers' models cost, and which there are: lists of models (`/v1/models`) name them. A price of one's own,
# for a million tokens, stands beside it: `MODEL: { input: 0.10, output: 0.40 }`.
prices: { catalogue: builtin }
";

const NO_PRICES: &str = "
# Prices of a million tokens.
# prices: { catalogue: builtin, MODEL: { input: 0.10, output: 0.40 } }
";

const TAIL: &str = "
# An amount for a month, and the gate's own count beside the engine's (`tollgate usage drift`). A route may have
# `limits: [ { requests: 60, per: 1m } ]`.
# budgets: { all: { tokens: 100M, per: month } }
# tokenizers: { \"*\": o200k }
";

/// A document for these engines and for the providers whose variables are set; one for an engine on this machine where
/// there is neither.
#[must_use]
pub fn starter(engines: &[FoundEngine], sources: &dyn Sources) -> Starter {
    let providers = present(sources);
    let mut text = String::from(HEAD);
    let own = own_models(engines);
    for (index, (engine, own)) in engines.iter().zip(&own).enumerate() {
        // What no route leads to is a line to take up.
        let begin = if index == 0 || !own.is_empty() {
            ""
        } else {
            "# "
        };
        let url = quoted(&engine.url);
        let _ = writeln!(
            text,
            "  {begin}{}: {{ url: {url}, dialect: openai }}",
            engine.name
        );
        if engine.asks_for_a_key {
            text.push_str(
                "  # It asks for a key: add `credential: { env: NAME_OF_A_VARIABLE }`.\n",
            );
        }
    }
    for provider in &providers {
        provider.write(&mut text, sources, Some(quoted));
    }
    let is_placeholder = engines.is_empty() && providers.is_empty();
    if is_placeholder {
        text.push_str("  # Nothing was found: this is where vLLM listens unless told otherwise.\n");
        text.push_str("  engine: { url: \"http://127.0.0.1:8000/v1\", dialect: openai }\n");
    }
    text.push_str("\n# Which calls go where: the first that fits.\nroutes:\n");
    write_routes(&mut text, engines, &own, &providers);
    text.push_str(LEDGER);
    let are_several = engines.len() + providers.len() > 1;
    let prices = are_several && has_prices(&providers, sources);
    text.push_str(if prices { PRICES } else { NO_PRICES });
    text.push_str(TAIL);
    let mut models = engines.iter().flat_map(|engine| &engine.models);
    let model = models.find(|model| Model::read(model).is_ok()).cloned();
    Starter {
        text,
        is_placeholder,
        model,
    }
}

/// The models that have a route to each engine. One that two have goes to the first; a name that no route can have stays
/// with the rest.
fn own_models(engines: &[FoundEngine]) -> Vec<Vec<String>> {
    let mut taken = BTreeSet::new();
    let own = engines.iter().map(|engine| {
        let models = engine.models.iter();
        let new = models.filter(|model| Model::read(model).is_ok() && taken.insert(model.as_str()));
        new.take(MODELS).map(|model| quoted(model)).collect()
    });
    own.collect()
}

/// Models go to who has them, the rest to the first.
fn write_routes(
    text: &mut String,
    engines: &[FoundEngine],
    own: &[Vec<String>],
    providers: &[&Provider],
) {
    let first = engines.first().map(|engine| &*engine.name);
    let first = first.or_else(|| providers.first().map(|provider| provider.name));
    let first = first.unwrap_or("engine");
    if engines.len() + providers.len() > 1 {
        for (engine, own) in engines.iter().zip(own) {
            write_route(text, own, &engine.name);
        }
        for provider in providers {
            let models: Vec<String> = provider.models.iter().map(|model| quoted(model)).collect();
            write_route(text, &models, provider.name);
        }
        let _ = writeln!(
            text,
            "  - {{ name: otherwise, workload: default, backend: {first} }}"
        );
    } else {
        let _ = writeln!(text, "  - {{ workload: default, backend: {first} }}");
    }
}

fn write_route(text: &mut String, models: &[String], backend: &str) {
    if !models.is_empty() {
        let models = models.join(", ");
        let _ = writeln!(
            text,
            "  - {{ workload: default, match: {{ model: [{models}] }}, backend: {backend} }}"
        );
    }
}

/// Text as YAML takes it in double quotes: as JSON does.
fn quoted(text: &str) -> String {
    // One dollar sign would begin a variable.
    serde_json::Value::from(text.replace('$', "$$")).to_string()
}
