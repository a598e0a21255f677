//! Servers of tools as editors keep them, `{"mcpServers": {"github": {"url": …, "headers": …}}}`, beside a document.
//!
//! They become the `mcp.servers` that a person would write, and are lowered with the rest.
//! Invariant: no value of a header is shown anywhere; what the gate does not do of an entry is a fault or a warning, with its line.
//! Not here: where the text comes from (the host), what a server becomes (`lower::mcp`).

use std::path::{Path, PathBuf};

use policy::secret::Secret;

use crate::decode::child;
use crate::fault::{Fault, Faults};
use crate::lower::{self, Loaded};
use crate::node::{Entry, Node, Scalar, Value};
use crate::sources::Sources;

/// Holds what sessions are sealed with, where the document says nothing of it.
pub const SECRET_VARIABLE: &str = "TOLLGATE_MCP_SECRET";
/// The names under which editors keep servers.
const LISTS: [&str; 2] = ["mcpServers", "servers"];
/// What an editor keeps beside a server for itself.
const OF_EDITORS: [&str; 7] = [
    "alwaysAllow",
    "autoApprove",
    "description",
    "disabledTools",
    "name",
    "timeout",
    "trust",
];

/// Servers of tools in the form of editors.
#[derive(Debug, Clone)]
pub struct EditorServers {
    /// The file; what faults are reported against.
    pub file: PathBuf,
    /// What it says, where there is no such file.
    pub text: Option<String>,
    /// What sessions are sealed with, where neither the document nor the environment says.
    pub secret: Secret,
}

/// Lowers a document with these servers beside its own.
pub(crate) fn lower_with(
    path: &Path,
    mut root: Node,
    mut own: Node,
    sources: &dyn Sources,
    servers: &EditorServers,
) -> Result<Loaded, Faults> {
    let (mut faults, mut warnings) = (Vec::new(), Vec::new());
    as_ours(&mut own);
    let entries = entries_of(own, &mut faults, &mut warnings);
    let names: Vec<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    for fault in faults.iter_mut().chain(&mut warnings) {
        fault.file = Some(servers.file.clone());
    }
    if faults.is_empty() {
        faults.extend(add(&mut root, entries, servers, sources));
    }
    if !faults.is_empty() {
        return Err(Faults {
            file: path.to_owned(),
            faults,
            warnings,
            watched: servers.watched(path),
            key_files: Vec::new(),
        });
    }
    let places: Vec<String> = names
        .iter()
        .map(|name| child("mcp.servers", name))
        .collect();
    let theirs = |fault: &mut Fault| {
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
        let is_theirs = |place: &String| {
            fault
                .path
                .strip_prefix(place.as_str())
                .is_some_and(is_below)
        };
        if places.iter().any(is_theirs) {
            let rest = fault.path.split_off("mcp.servers".len());
            (fault.path, fault.file) = (format!("{}{rest}", LISTS[0]), Some(servers.file.clone()));
        }
    };
    match lower::lower(path, root, sources) {
        Ok(mut loaded) => {
            loaded.warnings.iter_mut().for_each(theirs);
            loaded.warnings.extend(warnings);
            loaded
                .watched
                .extend(servers.watched(path).into_iter().skip(1));
            Ok(loaded)
        }
        Err(mut refused) => {
            refused
                .faults
                .iter_mut()
                .chain(&mut refused.warnings)
                .for_each(theirs);
            refused.warnings.extend(warnings);
            refused
                .watched
                .extend(servers.watched(path).into_iter().skip(1));
            Err(refused)
        }
    }
}

impl EditorServers {
    fn watched(&self, document: &Path) -> Vec<PathBuf> {
        let own = self.text.is_none().then(|| self.file.clone());
        std::iter::once(document.to_owned()).chain(own).collect()
    }
}

/// Variables as documents have them: editors write `${env:NAME}`, too, and a `$` by itself stands for itself.
fn as_ours(node: &mut Node) {
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(as_ours),
        Value::Map(members) => members
            .iter_mut()
            .for_each(|member| as_ours(&mut member.node)),
        Value::Scalar(scalar) if scalar.raw.contains('$') => {
            let mut parts = scalar.raw.split('$');
            let mut text = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                text.push('$');
                match (part.strip_prefix("{env:"), part.starts_with('{')) {
                    (Some(rest), _) => text.extend(["{", rest]),
                    (None, true) => text.push_str(part),
                    (None, false) => text.extend(["$", part]),
                }
            }
            *scalar = Scalar::quoted(&text);
        }
        Value::Scalar(_) => {}
    }
}

/// Its servers, as members of `mcp.servers`.
fn entries_of(root: Node, faults: &mut Vec<Fault>, warnings: &mut Vec<Fault>) -> Vec<Entry> {
    let Value::Map(members) = root.value else {
        faults.push(fault("", root.line, "is no list of servers", FORM));
        return Vec::new();
    };
    let list = members
        .into_iter()
        .find(|entry| LISTS.contains(&&*entry.key));
    let Some(Entry { key, node, .. }) = list else {
        faults.push(fault("", root.line, "holds no `mcpServers`", FORM));
        return Vec::new();
    };
    let Value::Map(servers) = node.value else {
        faults.push(fault(
            &key,
            node.line,
            "is no mapping of servers by name",
            FORM,
        ));
        return Vec::new();
    };
    if servers.is_empty() {
        faults.push(fault(&key, node.line, "names no server", FORM));
    }
    let mut entries = Vec::new();
    for server in servers {
        let path = format!("{key}.{}", server.key);
        entries.extend(server_of(server, &path, faults, warnings));
    }
    entries
}

const FORM: &str = r#"write {"mcpServers": {"NAME": {"url": "https://…/mcp"}}}"#;

/// One server; none where it is switched off, or has a fault.
fn server_of(
    server: Entry,
    path: &str,
    faults: &mut Vec<Fault>,
    warnings: &mut Vec<Fault>,
) -> Option<Entry> {
    let Value::Map(members) = server.node.value else {
        faults.push(fault(path, server.line, "is no mapping", FORM));
        return None;
    };
    let says = |name: &str| {
        members
            .iter()
            .find(|member| member.key == name)
            .and_then(|member| text(&member.node))
    };
    if says("disabled") == Some("true") || says("enabled") == Some("false") {
        return None;
    }
    let is_command = members.iter().any(|member| member.key == "command");
    let mut own = Vec::new();
    for member in members {
        let (place, line) = (format!("{path}.{}", member.key), member.line);
        match &*member.key {
            "url" | "serverUrl" | "httpUrl" => own.push(Entry {
                key: "url".into(),
                ..member
            }),
            "headers" | "http_headers" => headers(member, &place, &mut own, faults),
            "type" | "transport" => {
                let is_known = matches!(
                    text(&member.node),
                    Some(
                        "http" | "stdio" | "streamable-http" | "streamableHttp" | "streamable_http"
                    )
                );
                if !is_known {
                    let hint = "the gate speaks to servers over Streamable HTTP: write \"type\": \"http\" and the address of that";
                    faults.push(fault(&place, line, "is another transport than http", hint));
                }
            }
            "disabled" | "enabled" => {}
            "env" | "envFile" if !is_command => warnings.push(fault(
                &place,
                line,
                "is of the editor, and changes nothing here",
                "",
            )),
            "env" => own.push(Entry {
                key: "environment".into(),
                ..member
            }),
            "cwd" => own.push(Entry {
                key: "directory".into(),
                ..member
            }),
            other if OF_EDITORS.contains(&other) => {
                warnings.push(fault(
                    &place,
                    line,
                    "is of the editor, and changes nothing here",
                    "",
                ));
            }
            // Whatever else a server of the gate says: `tools`, `credential`, `timeouts`.
            _ => own.push(member),
        }
    }
    Some(Entry {
        key: server.key,
        line: server.line,
        node: Node {
            line: server.node.line,
            value: Value::Map(own),
        },
    })
}

/// Headers: the one that is a credential, and those that are shown in `/config`.
fn headers(member: Entry, path: &str, own: &mut Vec<Entry>, faults: &mut Vec<Fault>) {
    let Value::Map(headers) = member.node.value else {
        faults.push(fault(
            path,
            member.line,
            "is no mapping of headers by name",
            "",
        ));
        return;
    };
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["auth", "key", "token", "secret", "cookie", "password"]
            .iter()
            .any(|word| name.contains(word))
    };
    let (mut secret, shown): (Vec<Entry>, Vec<Entry>) = headers
        .into_iter()
        .partition(|header| is_secret(&header.key));
    let Some(carrier) = secret.pop() else {
        own.push(Entry {
            key: "headers".into(),
            line: member.line,
            node: Node {
                line: member.node.line,
                value: Value::Map(shown),
            },
        });
        return;
    };
    if !secret.is_empty() {
        let hint =
            "the gate sends one; write the server into the configuration's `mcp.servers` otherwise";
        faults.push(fault(path, carrier.line, "holds several credentials", hint));
        return;
    }
    let line = carrier.line;
    let word = |key: &str, text: &str| Entry {
        key: key.into(),
        line,
        node: scalar(line, text),
    };
    let value = text(&carrier.node).unwrap_or_default();
    let (scheme, value) = match value.split_once(' ') {
        Some((scheme, value)) if !scheme.contains('$') => (scheme, value.trim_start()),
        _ => ("", value),
    };
    let credential = vec![
        word("inline", value),
        word("header", &carrier.key.to_ascii_lowercase()),
        word("scheme", scheme),
    ];
    own.push(Entry {
        key: "credential".into(),
        line,
        node: Node {
            line,
            value: Value::Map(credential),
        },
    });
    if !shown.is_empty() {
        own.push(Entry {
            key: "headers".into(),
            line: member.line,
            node: Node {
                line: member.node.line,
                value: Value::Map(shown),
            },
        });
    }
}

/// Puts the servers into a document; says where it cannot.
fn add(
    root: &mut Node,
    entries: Vec<Entry>,
    servers: &EditorServers,
    sources: &dyn Sources,
) -> Option<Fault> {
    let workloads = workloads_of(root);
    let line = root.line;
    let Value::Map(members) = &mut root.value else {
        // It has its own fault.
        return None;
    };
    let member = |key: &str, value: Value| Entry {
        key: key.into(),
        line,
        node: Node { line, value },
    };
    if !members.iter().any(|member| member.key == "mcp") {
        let named = sources
            .var(SECRET_VARIABLE)
            .is_some_and(|value| !value.is_empty());
        let secret = if named {
            Entry {
                key: "env".into(),
                line,
                node: scalar(line, SECRET_VARIABLE),
            }
        } else {
            let secret = String::from_utf8_lossy(servers.secret.expose());
            Entry {
                key: "inline".into(),
                line,
                node: scalar(line, &secret),
            }
        };
        let route = member("workload", Value::List(workloads));
        let made = vec![
            member("secret", Value::Map(vec![secret])),
            member("servers", Value::Map(entries)),
            member(
                "routes",
                Value::List(vec![Node {
                    line,
                    value: Value::Map(vec![route]),
                }]),
            ),
        ];
        members.push(member("mcp", Value::Map(made)));
        return None;
    }
    let mcp = members.iter_mut().find(|member| member.key == "mcp")?;
    let Value::Map(mcp) = &mut mcp.node.value else {
        return None;
    };
    let Some(known) = mcp.iter_mut().find(|member| member.key == "servers") else {
        mcp.push(member("servers", Value::Map(entries)));
        return None;
    };
    let Value::Map(known) = &mut known.node.value else {
        return None;
    };
    for entry in entries {
        if known.iter().any(|known| known.key == entry.key) {
            let path = format!("{}.{}", LISTS[0], entry.key);
            let twice = fault(
                &path,
                entry.line,
                "is a server of the configuration, too",
                "give one of them another name",
            );
            return Some(Fault {
                file: Some(servers.file.clone()),
                ..twice
            });
        }
        known.push(entry);
    }
    None
}

/// Each workload that routes of a document name: whoever may call models may use the servers.
fn workloads_of(root: &Node) -> Vec<Node> {
    let member = |node: &Node, name: &str| match &node.value {
        Value::Map(members) => members
            .iter()
            .find(|member| member.key == name)
            .map(|member| member.node.clone()),
        _ => None,
    };
    let items = |node: Node| match node.value {
        Value::List(items) => items,
        _ => vec![node],
    };
    let routes = member(root, "routes").map(items).unwrap_or_default();
    let named = routes
        .iter()
        .filter_map(|route| member(route, "workload"))
        .flat_map(items);
    let usual = member(root, "identity").and_then(|identity| member(&identity, "default"));
    let mut workloads: Vec<Node> = Vec::new();
    for workload in named.chain(usual) {
        if !workloads.iter().any(|known| text(known) == text(&workload)) {
            workloads.push(workload);
        }
    }
    workloads
}

fn text(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Scalar(scalar) => Some(&scalar.raw),
        _ => None,
    }
}

fn scalar(line: usize, text: &str) -> Node {
    Node {
        line,
        value: Value::Scalar(Scalar::quoted(text)),
    }
}

fn fault(path: &str, line: usize, says: &str, hint: &str) -> Fault {
    Fault {
        file: None,
        path: path.into(),
        line: Some(line),
        says: says.into(),
        hint: hint.into(),
    }
}
