//! The JSON API: a tree of resources under `/api/v1`.
//!
//! Invariant: within a version resources and fields are added and never renamed, retyped or taken away; whatever
//! changes something is logged with who did it.
//! Not here: what the fields are (`gateway`), who asks (`access`), keys (`keys`).

use std::sync::Arc;

use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use policy::admin::Role;
use serde_json::{Value, json};

use crate::access::Principal;
use crate::body;
use crate::gateway::{Gateway, Health};
use crate::keys::{self, KeyDesk, Verb};
use crate::reply::{self, Refusal, Reply, broken, method_not_allowed, private, refusal};

/// The root of this version.
const ROOT: &str = "/api/v1";
/// Methods that change nothing.
pub(crate) const READ: &str = "GET, HEAD";

/// A resource.
struct Resource {
    /// Its path below the root; `{id}` stands for a name of any kind.
    name: &'static str,
    /// Its methods, as the header `allow` lists them.
    methods: &'static str,
    /// What it needs; `None`: a credential of any role.
    role: Option<Role>,
    description: &'static str,
    is: Is,
}

/// What a resource is.
#[derive(Clone, Copy)]
enum Is {
    Index,
    Budgets,
    Caller,
    Config,
    Drain,
    Health,
    Keys,
    Key,
    Rotation,
    Ledger,
    Limits,
    Mcp,
    Reload,
    Tokens,
}

const fn of(
    name: &'static str,
    methods: &'static str,
    role: Option<Role>,
    is: Is,
    description: &'static str,
) -> Resource {
    Resource {
        name,
        methods,
        role,
        description,
        is,
    }
}

const READER: Option<Role> = Some(Role::Read);
const OPERATOR: Option<Role> = Some(Role::Operate);
const KEEPER: Option<Role> = Some(Role::Keys);

/// Every resource, the index first.
#[rustfmt::skip]
const RESOURCES: [Resource; 14] = [
    of("", READ, None, Is::Index, "the resources that there are"),
    of("budgets", READ, READER, Is::Budgets, "budgets and what is left of their running periods"),
    of("caller", READ, None, Is::Caller, "who asks, and with which roles"),
    of("config", READ, READER, Is::Config, "the configuration in force, secrets redacted"),
    of("drain", "POST", OPERATOR, Is::Drain, "stops the gate as SIGTERM does"),
    of("health", READ, READER, Is::Health, "whether the gate runs and takes traffic"),
    of("keys", "GET, HEAD, POST", KEEPER, Is::Keys, "the gate's own keys, without their secrets; makes one"),
    of("keys/{id}", "DELETE, GET, HEAD, PATCH", KEEPER, Is::Key, "a key; changes what it may; revokes it"),
    of("keys/{id}/rotate", "POST", KEEPER, Is::Rotation, "gives a key another secret"),
    of("ledger", READ, READER, Is::Ledger, "whether the ledger takes rows, and its head"),
    of("limits", READ, READER, Is::Limits, "limits and what is left of them"),
    of("mcp", READ, READER, Is::Mcp, "servers of tools, what they list, and what each workload sees of it"),
    of("reload", "POST", OPERATOR, Is::Reload, "reads the configuration anew"),
    of("tokens", READ, READER, Is::Tokens, "how the gate's counts of prompts stand to those of engines"),
];

/// Whether a path is of the API.
pub(crate) fn is_of(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// The answer to a request of the API.
pub(crate) async fn answer<G: Gateway>(
    request: Request<Incoming>,
    caller: &Principal,
    desk: &KeyDesk<G>,
) -> Result<Reply, Refusal> {
    let path = request.uri().path().to_owned();
    let name = match path.strip_prefix(ROOT) {
        Some("" | "/") => Some(""),
        Some(rest) => rest.strip_prefix('/'),
        None => None,
    };
    let found = name.and_then(|name| {
        let mut all = RESOURCES.iter();
        all.find_map(|resource| Some((resource, id_in(name, resource.name)?)))
    });
    let Some((resource, id)) = found else {
        let says = "there is no such resource; GET /api/v1 lists them";
        return Err(refusal(StatusCode::NOT_FOUND, "unknown_resource", says));
    };
    if let Some(role) = resource.role {
        caller.may(role)?;
    }
    let method = request.method().clone();
    if !resource.methods.split(", ").any(|known| method == known) {
        return Err(method_not_allowed(resource.methods));
    }
    let gateway = &desk.gateway;
    let id = id.to_owned();
    match (resource.is, method) {
        (Is::Drain, _) => drain(request, caller, gateway).await,
        (Is::Reload, _) => reload(request, caller, gateway).await,
        (Is::Keys, Method::POST) => keys::create(request, caller, desk).await,
        (Is::Keys, _) => keys::list(request, desk).await,
        (Is::Key, Method::DELETE) => keys::change(request, caller, desk, id, Verb::Revoke).await,
        (Is::Key, Method::PATCH) => keys::change(request, caller, desk, id, Verb::Change).await,
        (Is::Key, _) => keys::one(desk, id).await,
        (Is::Rotation, _) => keys::change(request, caller, desk, id, Verb::Rotate).await,
        (is, _) => Ok(reply::json(&shown(is, caller, &**gateway)?)),
    }
}

/// What stands for `{id}` in a name that fits a pattern; empty where the pattern has none.
fn id_in<'n>(name: &'n str, pattern: &str) -> Option<&'n str> {
    let Some((before, after)) = pattern.split_once("{id}") else {
        return (name == pattern).then_some("");
    };
    let id = name.strip_prefix(before)?.strip_suffix(after)?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

/// A resource that is read.
fn shown(is: Is, caller: &Principal, gateway: &impl Gateway) -> Result<Value, Refusal> {
    Ok(match is {
        Is::Budgets => json!({ "budgets": gateway.budgets() }),
        Is::Caller => {
            let roles: Vec<_> = caller.roles.names().collect();
            json!({ "name": caller.name, "by": caller.by.as_str(), "roles": roles })
        }
        Is::Config => config(gateway),
        Is::Health => health(gateway.health()),
        Is::Ledger => ledger(gateway)?,
        Is::Limits => json!({ "limits": gateway.limits() }),
        Is::Mcp => mcp(gateway)?,
        Is::Tokens => tokens(gateway)?,
        Is::Index => index(),
        Is::Drain | Is::Keys | Is::Key | Is::Rotation | Is::Reload => return Err(broken()),
    })
}

/// The configuration in force, secrets redacted.
pub(crate) fn config(gateway: &impl Gateway) -> Value {
    let config = gateway.config();
    let files = config.key_files;
    json!({ "version": config.version, "key_files": files, "document": *config.document })
}

/// The ledger's state.
pub(crate) fn ledger(gateway: &impl Gateway) -> Result<Value, Refusal> {
    let none = || {
        refusal(
            StatusCode::NOT_FOUND,
            "no_ledger",
            "no ledger is configured",
        )
    };
    gateway.ledger().ok_or_else(none)
}

/// How the gate's counts stand to those of engines.
fn tokens(gateway: &impl Gateway) -> Result<Value, Refusal> {
    let none = || {
        let says = "nothing is counted: no tokenizers were configured when the gate started";
        refusal(StatusCode::NOT_FOUND, "no_tokenizers", says)
    };
    gateway.tokens().ok_or_else(none)
}

/// Servers of tools.
fn mcp(gateway: &impl Gateway) -> Result<Value, Refusal> {
    let none = || {
        refusal(
            StatusCode::NOT_FOUND,
            "no_mcp",
            "no servers of tools are configured",
        )
    };
    gateway.mcp().ok_or_else(none)
}

fn index() -> Value {
    let listed = RESOURCES
        .iter()
        .filter(|resource| !resource.name.is_empty());
    let row = |resource: &Resource| {
        json!({
            "name": resource.name,
            "path": format!("{ROOT}/{}", resource.name),
            "methods": resource.methods.split(", ").collect::<Vec<_>>(),
            "role": resource.role.map(Role::as_str),
            "description": resource.description,
        })
    };
    json!({ "version": "v1", "resources": listed.map(row).collect::<Vec<_>>() })
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

/// No member is known of what needs none.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

async fn reload<G: Gateway>(
    request: Request<Incoming>,
    caller: &Principal,
    gateway: &Arc<G>,
) -> Result<Reply, Refusal> {
    body::json::<Nothing>(request).await?;
    let (gateway, by) = (Arc::clone(gateway), caller.shown());
    // Logged where it is done: who asked for it may have left.
    let reload = move || {
        let ended = gateway.reload();
        match &ended {
            Ok(version) => {
                tracing::info!(
                    by,
                    version,
                    "the admin API asked for a reload, and the configuration was taken"
                );
            }
            Err(_) => {
                tracing::warn!(
                    by,
                    "the admin API asked for a reload, and the configuration was refused"
                );
            }
        }
        ended
    };
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    match tokio::task::spawn_blocking(reload).await {
        Ok(Ok(version)) => Ok(reply::json(&json!({ "version": version }))),
        Ok(Err(faults)) => Err(refusal(status, "configuration_refused", &faults)),
        Err(_) => Err(broken()),
    }
}

async fn drain<G: Gateway>(
    request: Request<Incoming>,
    caller: &Principal,
    gateway: &Arc<G>,
) -> Result<Reply, Refusal> {
    body::json::<Nothing>(request).await?;
    tracing::warn!(
        by = caller.shown(),
        "the gate stops: the admin API asked for it"
    );
    gateway.drain();
    Ok(private(StatusCode::ACCEPTED, &json!({ "draining": true })))
}
