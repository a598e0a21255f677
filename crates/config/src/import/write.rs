//! The plan as text.
//!
//! Invariant: whatever stands in it passed `read::scalar`, `comment` or a check of its own.

use std::fmt::Write as _;
use std::path::Path;

use super::budget::{self, Made};
use super::comment;
use super::plan::{Backend, ModelPrice, Plan, Route, Value};
use super::read::{composed, flow, scalar};
use super::settings::Settings;

/// The document, and how many comments there are of what has no counterpart.
pub(super) fn document(path: &Path, plan: &Plan, settings: &Settings) -> (String, usize) {
    let mut text = String::new();
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let says = format!(
        "Made of {file} by `tollgate import litellm`. Comments say what differs, and what has no counterpart. \
         `tollgate check` says what is still missing."
    );
    comment::write(&mut text, 0, &says);
    environment(&mut text, plan, settings);
    listen(&mut text, settings);
    text.push_str("\nbackends:\n");
    for backend in &plan.backends {
        self::backend(&mut text, backend, "");
    }
    for (backend, _) in &plan.waiting {
        self::backend(&mut text, backend, "# ");
    }
    text.push_str("\n# The first that fits.\nroutes:\n");
    for route in &plan.routes {
        self::route(&mut text, route);
    }
    for (backend, model) in &plan.waiting {
        let _ = writeln!(
            text,
            "  # - {{ workload: default, match: {{ model: [{}] }}, backend: {} }}",
            scalar(model),
            backend.name
        );
    }
    prices(&mut text, &plan.prices);
    text.push_str("\n# What was used, by whom, and what it cost: `tollgate usage report`.\n");
    let mut ledger = vec![("path".to_owned(), "usage.db".to_owned())];
    if let Some(retention) = &settings.retention {
        ledger.push(("retention".into(), retention.clone()));
    }
    let _ = writeln!(text, "ledger: {}", flow(&ledger));
    let mut left = usize::default();
    match budget::made(plan, settings) {
        Some(Made::Line(line)) => {
            let _ = writeln!(text, "\nbudgets:\n  all: {line}");
        }
        Some(Made::Comment(says)) => {
            text.push('\n');
            comment::write(&mut text, 0, &says);
            left += 1;
        }
        None => {}
    }
    let notes = || plan.notes.iter().chain(&settings.notes);
    if notes().next().is_some() {
        text.push_str("\n# What differs, and what is not taken over:\n");
        for note in notes() {
            comment::write(&mut text, 0, &format!("- {note}"));
        }
    }
    left += notes().count();
    let backends = plan
        .backends
        .iter()
        .chain(plan.waiting.iter().map(|(it, _)| it));
    left += backends.map(|backend| backend.notes.len()).sum::<usize>();
    (text, left)
}

/// Variables that the other file sets, or whose values stand in it.
fn environment(text: &mut String, plan: &Plan, settings: &Settings) {
    if !settings.environment.is_empty() {
        let says = format!(
            "environment_variables: a file sets no variables here; give them to the gate: {}.",
            settings.environment.join(", ")
        );
        comment::write(text, 0, &says);
    }
    if !plan.of_secrets.is_empty() {
        let says = format!(
            "Secrets that stood in the file are to be in these variables: {}.",
            plan.of_secrets.join(", ")
        );
        comment::write(text, 0, &says);
    }
}

fn listen(text: &mut String, settings: &Settings) {
    text.push('\n');
    comment::write(
        text,
        0,
        "LiteLLM listens on port 4000 of all addresses, the gate on this machine unless `listen` says more. \
         Clients' base URL ends in /v1.",
    );
    text.push_str("listen: { data: 127.0.0.1:1975, admin: 127.0.0.1:1976 }\n\n");
    if settings.asks_for_keys {
        for says in [
            "The master key, its virtual keys and other ways to say who calls do not move over. Make keys, one for each client:",
            "tollgate keys create --workload default --expires 90d",
            "With a budget for each key: `tollgate keys create --help`.",
        ] {
            comment::write(text, 0, says);
        }
        text.push_str("identity: { keys: { file: keys.jsonl } }\n");
    } else {
        comment::write(
            text,
            0,
            "Without a master key whoever reaches the gate may call. For keys: identity: { keys: { file: keys.jsonl } } and \
             `tollgate keys create --workload default`.",
        );
        text.push_str("identity: { default: default }\n");
    }
    if let Some(mib) = settings.body_mib {
        let _ = writeln!(text, "\nbounds: {{ body: {mib}MiB }}");
    }
}

/// A backend, or the lines to take up for one.
fn backend(text: &mut String, backend: &Backend, off: &str) {
    for note in &backend.notes {
        comment::write(text, 2, note);
    }
    let _ = writeln!(text, "  {off}{}:", scalar(&backend.name));
    for (name, value) in &backend.body {
        match value {
            Value::Line(value) => {
                let _ = writeln!(text, "  {off}  {name}: {value}");
            }
            Value::Items(items) => {
                let _ = writeln!(text, "  {off}  {name}:");
                for item in items {
                    let _ = writeln!(text, "  {off}    - {item}");
                }
            }
        }
    }
    let is_of_another = |model: &String, name: &String| {
        let mut all = backend.names.iter();
        all.any(|(other, own)| own == name && other != model)
    };
    let names: Vec<(String, String)> = backend
        .names
        .iter()
        .filter(|(model, name)| model != name || is_of_another(model, name))
        .map(|(model, name)| (model.clone(), scalar(&composed(name))))
        .collect();
    if !names.is_empty() {
        let _ = writeln!(text, "  {off}  model_names: {}", flow(&names));
    }
    if !backend.is_open && !backend.models.is_empty() {
        let _ = writeln!(text, "  {off}  models: {}", list(&backend.models));
    }
}

fn route(text: &mut String, route: &Route) {
    for note in &route.notes {
        comment::write(text, 2, note);
    }
    let _ = writeln!(text, "  - name: {}", scalar(&route.name));
    text.push_str("    workload: default\n");
    if !route.models.is_empty() {
        let _ = writeln!(text, "    match: {{ model: {} }}", list(&route.models));
    }
    if let Some(model) = &route.model {
        let _ = writeln!(text, "    model: {}", scalar(model));
    }
    let _ = writeln!(text, "    backend: {}", list(&route.backends));
    if !route.limits.is_empty() {
        let _ = writeln!(text, "    limits: [ {} ]", route.limits.join(", "));
    }
    if let Some(attempts) = route.attempts {
        let _ = writeln!(text, "    retries: {{ attempts: {attempts} }}");
    }
}

fn prices(text: &mut String, prices: &[ModelPrice]) {
    if prices.is_empty() {
        text.push_str("\n# LiteLLM knows prices of models. Here `catalogue: builtin` does, of the big providers at their own addresses; another model\n");
        text.push_str("# has the price that is written, for a million tokens:\n");
        text.push_str("# prices: { catalogue: builtin, MODEL: { input: 0.10, output: 0.40 } }\n");
        return;
    }
    text.push_str("\n# For a million tokens. `catalogue: builtin` beside them knows models of the big providers at their own addresses.\nprices:\n");
    for price in prices {
        for note in &price.notes {
            comment::write(text, 2, note);
        }
        let mut members = price.price.0.clone();
        let at: Vec<(String, String)> = price
            .at
            .iter()
            .map(|(backend, price)| (backend.clone(), price.flow()))
            .collect();
        if !at.is_empty() {
            members.push(("at".into(), flow(&at)));
        }
        let _ = writeln!(text, "  {}: {}", scalar(&price.model), flow(&members));
    }
}

/// One, or a list of several.
fn list(items: &[String]) -> String {
    match items {
        [only] => scalar(only),
        items => {
            let items: Vec<String> = items.iter().map(|item| scalar(item)).collect();
            format!("[{}]", items.join(", "))
        }
    }
}
