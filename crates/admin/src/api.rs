//! The JSON API: a tree of resources under `/api/v1`, all of them read only.
//!
//! Invariant: within a version resources and fields are added and never renamed, retyped or taken away.
//! Not here: what the fields are (`gateway`), who may ask (`access`).

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::gateway::{Gateway, Health};
use crate::reply::{self, Reply, fault, method_not_allowed};

/// The root of this version.
const ROOT: &str = "/api/v1";

/// Every resource, and what it is.
const RESOURCES: [(&str, &str); 5] = [
    (
        "budgets",
        "budgets and what is left of their running periods",
    ),
    ("config", "the configuration in force, secrets redacted"),
    ("health", "whether the gate runs and takes traffic"),
    ("ledger", "whether the ledger takes rows, and its head"),
    ("limits", "limits and what is left of them"),
];

/// Whether a path is of the API.
pub(crate) fn is_of(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// The answer to a request of the API.
pub(crate) fn answer(method: &Method, path: &str, gateway: &impl Gateway) -> Reply {
    let name = match path.strip_prefix(ROOT) {
        Some("" | "/") => Some(""),
        Some(rest) => rest.strip_prefix('/'),
        None => None,
    };
    let resource = name.and_then(|name| resource(name, gateway));
    match resource {
        Some(_) if !matches!(*method, Method::GET | Method::HEAD) => method_not_allowed(),
        Some(resource) => reply::json(&resource),
        None if name == Some("ledger") => {
            let says = "no ledger is configured";
            fault(StatusCode::NOT_FOUND, "no_ledger", says)
        }
        None => {
            let says = "there is no such resource; GET /api/v1 lists them";
            fault(StatusCode::NOT_FOUND, "unknown_resource", says)
        }
    }
}

pub(crate) fn resource(name: &str, gateway: &impl Gateway) -> Option<Value> {
    Some(match name {
        "" => index(),
        "budgets" => json!({ "budgets": gateway.budgets() }),
        "config" => {
            let config = gateway.config();
            let files = config.key_files;
            json!({ "version": config.version, "key_files": files, "document": *config.document })
        }
        "health" => health(gateway.health()),
        "ledger" => gateway.ledger()?,
        "limits" => json!({ "limits": gateway.limits() }),
        _ => return None,
    })
}

fn index() -> Value {
    let resources = RESOURCES.map(
        |(name, what)| json!({ "name": name, "path": format!("{ROOT}/{name}"), "description": what }),
    );
    json!({ "version": "v1", "resources": resources })
}

fn health(health: Health) -> Value {
    json!({
        "status": health.status(),
        "alive": health.is_alive,
        "ready": health.is_ready,
        "draining": health.is_draining,
        "ledger_available": health.ledger_available,
    })
}
