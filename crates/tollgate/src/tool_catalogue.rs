//! Servers of tools as JSON: what the admin endpoint shows of them, and the lists in which `tollgate mcp list` shows what a caller sees.
//!
//! Invariant: members are a contract (docs/operations.md): one that is there stays.
//! Not here: what is known of servers (`proxy::catalogue`), asking a gate (`mcp_list`).

use policy::snapshot::Snapshot;
use proxy::catalogue::{Item, Known, LISTS, Seen, Tool, View, servers, views};
use serde_json::{Map, Value, json};

/// All of it; none where the configuration has no servers of tools.
pub(crate) fn of(s: &Snapshot) -> Option<Value> {
    let servers: Vec<Value> = servers(s)?.iter().map(|of| server(of, s)).collect();
    let views = views(s);
    let workloads = views.iter().flat_map(|of| {
        let one = move |name: &String| workload(name, of);
        of.workloads.iter().map(one)
    });
    let workloads: Vec<Value> = workloads.collect();
    Some(json!({
        "servers": servers,
        "workloads": workloads,
        "has_rules": s.authority.is_some(),
    }))
}

fn server(of: &Known, s: &Snapshot) -> Value {
    let mut backends = s.backends.iter();
    let backend = backends.find(|backend| *backend.name == format!("mcp:{}", of.name));
    let endpoint = backend.and_then(|backend| s.endpoint(*backend.endpoints.first()?));
    let config = s.mcp.as_deref();
    let mut all = config.into_iter().flat_map(|config| &config.servers);
    let is_command = all.any(|server| *server.name == *of.name && server.is_command);
    let address = endpoint.filter(|_| !is_command).map(|endpoint| {
        let scheme = if endpoint.origin.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", endpoint.authority, endpoint.base_path)
    });
    let state = match &of.last {
        None => "unasked",
        Some((_, None)) => "answers",
        Some((_, Some(_))) => "silent",
    };
    let mut told = json!({
        "name": of.name,
        "address": address,
        "command": is_command,
        "state": state,
        "asked_unix_ms": of.last.as_ref().map(|(at, _)| at),
        "fault": of.last.as_ref().and_then(|(_, fault)| fault.as_ref()),
        "pin": of.pin,
        "tools": of.tools.as_ref().map(|tools| tools.iter().map(tool).collect::<Vec<_>>()),
    });
    let others = LISTS.iter().skip(1).zip(&of.others);
    if let Some(members) = told.as_object_mut() {
        members.extend(others.map(|(name, items)| {
            let items = items.as_ref();
            let items = items.map(|items| items.iter().map(definition).collect::<Vec<_>>());
            ((*name).to_owned(), json!(items))
        }));
    }
    told
}

fn tool(of: &Tool) -> Value {
    let state = match (&of.raw, &of.digest, &of.pinned) {
        (None, ..) => "refused",
        (Some(_), Some(digest), Some(pinned)) if digest != pinned => "changed",
        (Some(_), ..) => "served",
    };
    json!({
        "name": of.own,
        "state": state,
        "digest": of.digest,
        "pinned": of.pinned,
        "definition": of.raw.as_deref().map(parsed),
    })
}

fn definition(of: &Item) -> Value {
    parsed(&of.raw)
}

fn parsed(raw: &[u8]) -> Value {
    serde_json::from_slice(raw).unwrap_or_default()
}

/// What callers of a workload see, in the form of the lists that they are given.
fn workload(name: &str, of: &View) -> Value {
    let mut told = Map::new();
    told.insert("workload".to_owned(), name.into());
    told.insert("route".to_owned(), of.route.as_str().into());
    let shown = if of.is_searched { "search" } else { "all" };
    told.insert("list_tools".to_owned(), shown.into());
    for (list, items) in LISTS.iter().zip(&of.lists) {
        told.insert(
            (*list).to_owned(),
            items.iter().map(|of| seen(list, of)).collect(),
        );
    }
    told.insert("unavailable".to_owned(), json!(of.unknown));
    Value::Object(told)
}

/// An item under the name that its callers use, and where it comes from.
fn seen(list: &str, of: &Seen) -> Value {
    let named = match list {
        "resources" => "uri",
        "resourceTemplates" => "uriTemplate",
        _ => "name",
    };
    let mut told = parsed(&of.item.raw);
    let description = told.get_mut("description").map(Value::take);
    let title = told.get_mut("title").map(Value::take);
    json!({
        named: of.name,
        "title": title,
        "description": description,
        "server": of.server,
        "own_name": of.item.own,
        "conditional": of.is_conditional,
    })
}
