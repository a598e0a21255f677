//! `tollgate mcp list`: what a caller finds behind a running gate, asked as any client asks.
//!
//! Invariant: what is shown is what that caller may use, since the gate itself says it.
//! Not here: who may use what (`policy::mcp`).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use clap::{Args, Subcommand};
use policy::mcp::PATH;
use proxy::tool_search::listed;
use serde_json::{Value, json};
use tokens::{BuiltIn, Counter};

use crate::words::counted;

/// How long the gate may be silent.
const WITHIN: Duration = Duration::from_secs(60);
/// Longest answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// The variable that may hold the caller's credential.
const CREDENTIAL: &str = "TOLLGATE_CREDENTIAL";
/// What is listed: the method, the member of its answer, and what names a thing.
const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "uri"),
    (
        "resources/templates/list",
        "resourceTemplates",
        "uriTemplate",
    ),
];
/// Longest description that is shown.
const ABOUT_CHARS_MAX: usize = 80;

/// Options of `mcp`.
#[derive(Debug, Args)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the tools, prompts and resources that a caller sees, and the servers that do not answer.
    #[command(before_help = "Examples:\n  \
        tollgate mcp list -H 'x-workload-app: ide'\n  \
        TOLLGATE_CREDENTIAL=$KEY tollgate mcp list --json")]
    List(List),
}

#[derive(Debug, Args)]
struct List {
    /// Where the gate's servers of tools are; http:// alone.
    #[arg(long, default_value = "http://127.0.0.1:1975/mcp", value_name = "URL")]
    url: String,
    /// A header that says who asks; may be repeated. A credential stands better in the variable TOLLGATE_CREDENTIAL.
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Ask the admin endpoint there in place of the gate: what all servers list, or what one workload sees.
    #[arg(long, value_name = "URL", conflicts_with = "url")]
    admin: Option<String>,
    /// With --admin: the workload that asks.
    #[arg(long, value_name = "NAME", requires = "admin")]
    workload: Option<String>,
    /// With --admin: print the digests of all tools as they stand now, to be pasted into the configuration.
    #[arg(long, requires = "admin", conflicts_with = "workload")]
    pins: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A gate that is asked.
struct Gate<'a> {
    authority: &'a str,
    path: &'a str,
    headers: Vec<String>,
}

/// Does what is asked.
///
/// # Errors
/// The gate cannot be reached, or refuses.
pub(crate) fn run(asked: &Mcp) -> Result<String, String> {
    let Verb::List(list) = &asked.verb;
    let url = list.admin.as_ref().unwrap_or(&list.url);
    let rest = url.strip_prefix("http://");
    let rest = rest.ok_or("the address of the gate must begin with http://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.len() < 2 { PATH } else { path };
    let mut headers = list.header.clone();
    if let Some(odd) = headers
        .iter()
        .find(|header| header.contains(['\r', '\n']) || !header.contains(':'))
    {
        return Err(format!("{odd:?} is no header: write 'NAME: VALUE'"));
    }
    if let Ok(credential) = std::env::var(CREDENTIAL) {
        headers.push(format!("authorization: Bearer {}", credential.trim()));
    }
    if list.admin.is_some() {
        let path = "/api/v1/mcp";
        let gate = Gate {
            authority,
            path,
            headers,
        };
        return of_admin(list, &gate.read()?);
    }
    let mut gate = Gate {
        authority,
        path,
        headers,
    };
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "tollgate mcp list", "version": env!("CARGO_PKG_VERSION") },
    });
    let (begun, session) = gate.ask("initialize", &params)?;
    if let Some(session) = session {
        gate.headers.push(format!("mcp-session-id: {session}"));
    }
    let mut found = serde_json::Map::new();
    for (method, list, _) in LISTS {
        let (result, _) = gate.ask(method, &json!({}))?;
        found.insert(list.to_owned(), result[list].clone());
    }
    // What it opened at servers ends; where it does not, it expires.
    let _ended = gate.send("DELETE", "");
    let silent = begun["_meta"]["tollgate/unavailable"].clone();
    found.insert(
        "unavailable".to_owned(),
        if silent.is_null() { json!([]) } else { silent },
    );
    let found = Value::Object(found);
    Ok(if list.json {
        format!("{found:#}")
    } else {
        shown(&found)
    })
}

/// What the admin endpoint says, as it is asked for.
fn of_admin(list: &List, told: &Value) -> Result<String, String> {
    let each = |of: &Value| of.as_array().cloned().unwrap_or_default();
    if let Some(name) = &list.workload {
        let of = each(&told["workloads"]);
        let found = of.iter().find(|of| of["workload"] == name.as_str());
        let found = found.ok_or_else(|| format!("no route of mcp is for the workload {name}"))?;
        if list.json {
            return Ok(format!("{found:#}"));
        }
        let tools = with_schemas(&each(&found["tools"]), &each(&told["servers"]));
        let mut found = found.clone();
        found["tools"] = tools.into();
        if found["list_tools"] != "search" {
            return Ok(shown(&found));
        }
        let two: Value = serde_json::from_slice(&listed()).unwrap_or_default();
        return Ok(shown(&two) + "which find and call (list_tools: search):\n" + &shown(&found));
    }
    if list.pins {
        return Ok(pins(&each(&told["servers"])));
    }
    if list.json {
        return Ok(format!("{told:#}"));
    }
    let mut out = String::new();
    for server in each(&told["servers"]) {
        let text = |name: &str| server[name].as_str().unwrap_or_default();
        let fault = match text("fault") {
            "" => String::new(),
            fault => format!(": {fault}"),
        };
        let at = match text("address") {
            "" => "a command",
            address => address,
        };
        let _fits = writeln!(out, "{}  {at}  {}{fault}", text("name"), text("state"));
        for tool in each(&server["tools"]) {
            let about = tool["definition"]["description"].as_str();
            let about = about.and_then(|about| about.lines().next());
            let about: String = about
                .unwrap_or_default()
                .chars()
                .take(ABOUT_CHARS_MAX)
                .collect();
            let text = |name: &str| tool[name].as_str().unwrap_or_default();
            let state = match text("state") {
                "served" => String::new(),
                state => format!("({state}) "),
            };
            let line = format!("  {}  {state}{about}", text("name"));
            let _fits = writeln!(out, "{}", line.trim_end());
        }
    }
    if told["has_rules"] == true {
        out.push_str("the rules of `authority` may hide some of it from a caller\n");
    }
    Ok(printable(&out))
}

/// Tools as a workload sees them, each with the schema that its server gave: prompts have those, too.
fn with_schemas(tools: &[Value], servers: &[Value]) -> Vec<Value> {
    let mut schemas: HashMap<(&str, &str), &Value> = HashMap::new();
    for server in servers {
        let listed = server["tools"].as_array().map_or(&[][..], Vec::as_slice);
        for tool in listed {
            if let (Some(server), Some(own)) = (server["name"].as_str(), tool["name"].as_str()) {
                schemas.insert((server, own), &tool["definition"]["inputSchema"]);
            }
        }
    }
    let with = |tool: &Value| {
        let mut tool = tool.clone();
        let of = tool["server"].as_str().zip(tool["own_name"].as_str());
        if let Some(schema) = of.and_then(|of| schemas.get(&of)) {
            tool["inputSchema"] = (*schema).clone();
        }
        tool
    };
    tools.iter().map(with).collect()
}

/// The digests of all tools, as the configuration has them.
fn pins(servers: &[Value]) -> String {
    let mut out = "mcp:\n  servers:\n".to_owned();
    for server in servers {
        let tools = server["tools"].as_array().map_or(&[][..], Vec::as_slice);
        let of = |tool: &Value| Some((tool["name"].clone(), tool["digest"].as_str()?.to_owned()));
        let mut pins: Vec<(Value, String)> = tools.iter().filter_map(of).collect();
        pins.sort_by(|(a, _), (b, _)| a.as_str().cmp(&b.as_str()));
        if pins.is_empty() {
            continue;
        }
        let name = server["name"].as_str().unwrap_or_default();
        let _fits = writeln!(out, "    {name}:\n      pins:");
        for (tool, digest) in pins {
            // A text of JSON is one of YAML.
            let _fits = writeln!(out, "        {tool}: \"{digest}\"");
        }
    }
    out
}

/// For a person.
fn shown(found: &Value) -> String {
    let mut out = String::new();
    for (_, list, named) in LISTS {
        let items = found[list].as_array().map_or(&[][..], Vec::as_slice);
        if items.is_empty() {
            continue;
        }
        let word = match list {
            "resourceTemplates" => "template",
            list => list.trim_end_matches('s'),
        };
        let tokens = if list == "tools" {
            tokens(items)
        } else {
            String::new()
        };
        let _fits = writeln!(out, "{}{tokens}", counted(items.len() as u64, word));
        let name = |item: &Value| item[named].as_str().unwrap_or_default().to_owned();
        let width = items
            .iter()
            .map(|item| name(item).chars().count())
            .max()
            .unwrap_or(0);
        for item in items {
            let about = item["description"].as_str().or(item["title"].as_str());
            let about = about
                .and_then(|about| about.lines().next())
                .unwrap_or_default();
            let about: String = about.chars().take(ABOUT_CHARS_MAX).collect();
            let line = format!("  {:width$}  {about}", name(item));
            let _fits = writeln!(out, "{}", line.trim_end());
        }
    }
    let silent = found["unavailable"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let silent: Vec<&str> = silent.iter().filter_map(Value::as_str).collect();
    if !silent.is_empty() {
        let _fits = writeln!(out, "no answer from {}", silent.join(", "));
    }
    if out.is_empty() {
        out.push_str("nothing is there for this caller\n");
    }
    printable(&out)
}

/// What the definitions of tools take of each prompt that has them, about: models are told them in a form of their own.
fn tokens(tools: &[Value]) -> String {
    let of = |tool: &Value| {
        let told = ["name", "description", "inputSchema"].map(|name| (name, &tool[name]));
        let told = told.into_iter().filter(|(_, of)| !of.is_null());
        Value::from_iter(told.map(|(name, of)| (name.to_owned(), of.clone())))
    };
    let text = Value::from_iter(tools.iter().map(of)).to_string();
    let counted = Counter::without_template(BuiltIn::O200k).text(&text);
    counted.map_or_else(
        |_| String::new(),
        |tokens| format!(", {tokens} tokens of a prompt"),
    )
}

/// What a server says is no instruction to a terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\n' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

impl Gate<'_> {
    /// The result of a request, and the session that it opened.
    fn ask(&self, method: &str, params: &Value) -> Result<(Value, Option<String>), String> {
        let message = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        let answer = self.send("POST", &message.to_string())?;
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .ok_or("the gate gives no answer that can be read")?;
        let told: Value = serde_json::from_str(body).map_err(|_| {
            let status = head.lines().next().unwrap_or_default();
            format!(
                "{} is no gate with servers of tools: {status}",
                self.authority
            )
        })?;
        if let Some(fault) = told["error"]["message"].as_str() {
            return Err(format!("{method}: {fault}"));
        }
        let session = head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        Ok((told["result"].clone(), session.map(str::to_owned)))
    }

    /// What stands there.
    fn read(&self) -> Result<Value, String> {
        let answer = self.send("GET", "")?;
        let (head, body) = answer
            .split_once("\r\n\r\n")
            .ok_or("the gate gives no answer that can be read")?;
        let told: Value = serde_json::from_str(body).unwrap_or_default();
        if head.starts_with("HTTP/1.1 200 ") && told.is_object() {
            return Ok(told);
        }
        let status = head.lines().next().unwrap_or_default();
        let says = told["error"]["message"].as_str().unwrap_or(status);
        Err(format!("{}: {says}", self.authority))
    }

    fn send(&self, method: &str, body: &str) -> Result<String, String> {
        let Self {
            authority, path, ..
        } = self;
        let unreachable = |error: std::io::Error| format!("cannot reach {authority}: {error}");
        let address = match authority.rsplit_once(':') {
            Some((_, port)) if port.parse::<u16>().is_ok() => (*authority).to_owned(),
            _ => format!("{authority}:80"),
        };
        let mut addresses = address.to_socket_addrs().map_err(unreachable)?;
        let address = addresses
            .next()
            .ok_or_else(|| format!("{authority} has no address"))?;
        let mut stream = TcpStream::connect_timeout(&address, WITHIN).map_err(unreachable)?;
        stream.set_read_timeout(Some(WITHIN)).map_err(unreachable)?;
        let own: String = self
            .headers
            .iter()
            .map(|header| format!("{header}\r\n"))
            .collect();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n{own}\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).map_err(unreachable)?;
        let mut answer = Vec::new();
        let mut reading = stream.take(ANSWER_BYTES_MAX);
        reading.read_to_end(&mut answer).map_err(unreachable)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}
