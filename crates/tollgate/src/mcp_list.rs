//! `tollgate mcp list`: what a caller finds behind a running gate, asked as any client asks.
//!
//! Invariant: what is shown is what that caller may use, since the gate itself says it.
//! Not here: who may use what (`policy::mcp`).

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

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
    let rest = list.url.strip_prefix("http://");
    let rest = rest.ok_or("the address of the gate must begin with http://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
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
        let _fits = writeln!(out, "{}", counted(items.len() as u64, word));
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
    // What a server says is no instruction to a terminal.
    out.chars()
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
