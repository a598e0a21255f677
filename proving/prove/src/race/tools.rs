//! Gateways of tools (MCP): how a subject is spoken to, checked, and what it is sent.
//!
//! A client begins its session or says of each request which version it is of, looks for the echoing tool in the list of tools
//! under whatever name the gateway gave it, calls it once and holds the answer against what it sent; then the same call is
//! sent over and over, each under another id.
//! Invariant: nothing is measured that was not seen to give back what it was given, in the form that the scenario asks for.
//! Not here: sending (`load`), the server of tools (`tool_server`), calls to models (`check`).

mod message;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use load::client::{Fetched, Request, fetch};
use load::observer::Answers;
use load::source::{Head, Payload, Source, Turn};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cell::Sent;
use crate::subject::Client;
use message::{Era, read};

const PATIENCE: Duration = Duration::from_secs(10);
/// Where gateways serve tools, unless a manifest says otherwise.
const PATH: &str = "/mcp";
/// What is sent, and comes back.
const TEXT: &str = "the quick brown fox counts every token at the gate";
/// Ids of the calls that are measured begin here: no other request of a session has one of these.
const FIRST_ID: u64 = 1_000;

/// What a scenario of `mcp` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tools {
    /// Of the protocol: with sessions, or without.
    pub(crate) version: Version,
    /// In which form the server of tools answers.
    #[serde(default)]
    pub(crate) answers: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(crate) enum Version {
    #[serde(rename = "2025-06-18")]
    June2025,
    #[serde(rename = "2025-11-25")]
    November2025,
    #[serde(rename = "2026-07-28")]
    July2026,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    #[default]
    Json,
    /// One event of a stream that ends with it.
    Events,
}

impl Version {
    pub(crate) const fn has_sessions(self) -> bool {
        !Era::of(self).is_stateless()
    }
}

impl Form {
    /// The tool that is answered so.
    const fn tool(self) -> &'static str {
        match self {
            Self::Json => "echo",
            Self::Events => "echo_events",
        }
    }
}

/// What is known of one subject since it was started.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    /// Sessions that were begun, by version; in a version without them nothing.
    sessions: Vec<(Version, String)>,
    /// What was checked, with the name of the tool there.
    checked: Vec<(Tools, String)>,
}

/// A request that any gateway of tools answers with 200 when it is ready.
pub(crate) fn knock(client: &Client) -> Result<Request, String> {
    Era::of(Version::November2025).request(client, None, "initialize", &initialize())
}

impl Talk {
    /// Forgets everything: the subject starts anew.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// What is sent in a scenario of so many clients, once the subject was seen to do what is asked.
    pub(crate) fn sent(
        &mut self,
        (client, address): (&Client, SocketAddr),
        tools: Tools,
        (clients, is_held): (usize, bool),
    ) -> Result<Sent, String> {
        let sessions = self.sessions(client, address, tools.version, clients)?;
        let tool = self.tool((client, address), tools, sessions.first())?;
        let era = Era::of(tools.version);
        if is_held {
            let head = |session: &String| era.listening(client, session);
            let heads: Result<Vec<Head>, String> = sessions.iter().map(head).collect();
            return Calls::new(heads?, Bytes::new(), Bytes::new()).sent(Answers::Any);
        }
        let params = json!({ "name": tool, "arguments": { "text": TEXT } });
        let call = |session| era.request(client, session, "tools/call", &params);
        let first = call(sessions.first())?;
        let heads: Result<Vec<Head>, String> = match sessions.is_empty() {
            true => Ok(vec![first.head]),
            false => sessions
                .iter()
                .map(|session| Ok(call(Some(session))?.head))
                .collect(),
        };
        let (before, after) = message::around_id(&first.body)?;
        Calls::new(heads?, before, after).sent(Answers::Result)
    }

    /// As many sessions as there are clients; none in a version that has none.
    fn sessions(
        &mut self,
        client: &Client,
        address: SocketAddr,
        version: Version,
        clients: usize,
    ) -> Result<Vec<String>, String> {
        let era = Era::of(version);
        if era.is_stateless() {
            return Ok(Vec::new());
        }
        let own = |all: &[(Version, String)]| -> Vec<String> {
            let own = all.iter().filter(|(of, _)| *of == version);
            own.map(|(_, id)| id.clone()).collect()
        };
        for _ in own(&self.sessions).len()..clients {
            let begun = begin(era, client, address)?;
            self.sessions.push((version, begun));
        }
        let mut sessions = own(&self.sessions);
        sessions.truncate(clients);
        Ok(sessions)
    }

    /// The tool's name there; it was called once and gave back what it was given.
    fn tool(
        &mut self,
        (client, address): (&Client, SocketAddr),
        tools: Tools,
        session: Option<&String>,
    ) -> Result<String, String> {
        if let Some((_, name)) = self.checked.iter().find(|(of, _)| *of == tools) {
            return Ok(name.clone());
        }
        let era = Era::of(tools.version);
        let ask = |method: &str, params: &Value| {
            let request = era.request(client, session, method, params)?;
            let fetched = answered(address, &request, method)?;
            Ok::<_, String>((result(method, &fetched)?, fetched))
        };
        let (listed, _) = ask("tools/list", &json!({}))?;
        let name = find(&listed, tools.answers.tool())?;
        let params = json!({ "name": name, "arguments": { "text": TEXT } });
        let (told, fetched) = ask("tools/call", &params)?;
        let text = told["content"][0]["text"].as_str();
        if text != Some(TEXT) {
            return Err(format!(
                "tools/call of {name} did not give back what it was given: {told}"
            ));
        }
        let came = if message::is_events(&fetched) {
            Form::Events
        } else {
            Form::Json
        };
        if came != tools.answers {
            eprintln!(
                "note: {address} answers {:?} of its server with {came:?}",
                tools.answers
            );
        }
        self.checked.push((tools, name.clone()));
        Ok(name)
    }
}

fn initialize() -> Value {
    json!({ "capabilities": {}, "clientInfo": { "name": "prove", "version": env!("CARGO_PKG_VERSION") } })
}

/// Begins a session; gives its id.
fn begin(era: Era, client: &Client, address: SocketAddr) -> Result<String, String> {
    let request = era.request(client, None, "initialize", &initialize())?;
    let begun = answered(address, &request, "initialize")?;
    result("initialize", &begun)?;
    let id = message::session(&begun).ok_or("initialize was answered without an mcp-session-id")?;
    let noted = era.notification(client, &id, "notifications/initialized")?;
    let noted = fetch(address, &noted, PATIENCE)
        .map_err(|error| format!("notifications/initialized: {error}"))?;
    match noted.status {
        200..=299 => Ok(id),
        status => Err(format!("notifications/initialized has status {status}")),
    }
}

fn answered(address: SocketAddr, request: &Request, what: &str) -> Result<Fetched, String> {
    let fetched = fetch(address, request, PATIENCE).map_err(|error| format!("{what}: {error}"))?;
    if fetched.status == 200 {
        return Ok(fetched);
    }
    let says = String::from_utf8_lossy(&fetched.body);
    let says: String = says.chars().take(200).collect();
    Err(format!("{what} has status {}: {says}", fetched.status))
}

fn result(what: &str, fetched: &Fetched) -> Result<Value, String> {
    let message = read(fetched).ok_or_else(|| format!("{what}: the answer is no message"))?;
    match message.get("result") {
        Some(result) => Ok(result.clone()),
        None => Err(format!("{what}: {}", message["error"])),
    }
}

/// The first tool of that name, whatever the gateway put before it.
fn find(listed: &Value, tool: &str) -> Result<String, String> {
    let names = listed["tools"].as_array().into_iter().flatten();
    let mut names = names.filter_map(|tool| tool["name"].as_str());
    let is_it = |name: &&str| {
        name.strip_suffix(tool)
            .is_some_and(|before| before.is_empty() || before.ends_with(['_', '-', '.', '/', ':']))
    };
    let found = names.find(is_it).map(ToOwned::to_owned);
    found.ok_or_else(|| format!("tools/list has no tool `{tool}`: {listed}"))
}

/// One message over and over, each time under another id, with each of the heads in turn.
#[derive(Debug)]
struct Calls {
    heads: Vec<Head>,
    before: Bytes,
    after: Bytes,
    sent: AtomicU64,
}

impl Calls {
    const fn new(heads: Vec<Head>, before: Bytes, after: Bytes) -> Self {
        Self {
            heads,
            before,
            after,
            sent: AtomicU64::new(0),
        }
    }

    fn sent(self, answers: Answers) -> Result<Sent, String> {
        let head = self.heads.first().ok_or("bug: no head")?.clone();
        Ok(Sent {
            requests: None,
            head,
            source: Arc::new(self),
            answers,
        })
    }
}

impl Source for Calls {
    fn sessions(&self, _profile: usize) -> u64 {
        1
    }

    fn turns(&self, _profile: usize, _session: u64) -> u32 {
        1
    }

    fn turn(&self, _profile: usize, _session: u64, turn: u32) -> Option<Turn<'_>> {
        if turn > 0 {
            return None;
        }
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let at = usize::try_from(number).unwrap_or(0) % self.heads.len();
        let payload = if self.before.is_empty() {
            Payload::default()
        } else {
            let id = Bytes::from((FIRST_ID + number).to_string());
            Payload::new(&[self.before.clone(), id, self.after.clone()]).expect("three parts")
        };
        Some(Turn {
            payload,
            head: self.heads.get(at),
            tokens: None,
        })
    }
}

#[cfg(test)]
mod tests;
