//! One client of tools: it begins, calls, holds each answer against what it sent, and goes on where it was cut off.
//!
//! Not here: who is killed (`sessions`).

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use load::client::{Client, ConnectionSlot, Failure, Listener, Said, ask};
use load::source::Head;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::super::verdict::Found;
use super::WORKLOAD;

const SESSIONS: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";
/// After a gate was not there.
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes of an answer that are kept.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// What all clients share.
pub(super) struct Shared {
    pub(super) gates: Vec<SocketAddr>,
    answered: AtomicU64,
    is_over: AtomicBool,
}

/// What one client saw.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) with_session: u64,
    pub(super) without_session: u64,
    pub(super) states: u64,
    pub(super) cut: u64,
    pub(super) wrong: Found,
    pub(super) moved: Found,
    pub(super) sessions_lost: Found,
    pub(super) states_lost: Found,
    pub(super) refused: Found,
}

impl Shared {
    pub(super) const fn new(gates: Vec<SocketAddr>) -> Self {
        Self {
            gates,
            answered: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Calls under way are the last.
    pub(super) fn stop(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }
}

impl Told {
    pub(super) fn absorb(&mut self, other: &Self) {
        self.with_session += other.with_session;
        self.without_session += other.without_session;
        self.states += other.states;
        self.cut += other.cut;
        self.wrong.absorb(&other.wrong);
        self.moved.absorb(&other.moved);
        self.sessions_lost.absorb(&other.sessions_lost);
        self.states_lost.absorb(&other.states_lost);
        self.refused.absorb(&other.refused);
    }
}

/// Lives until it is told to stop.
pub(super) async fn live(shared: Arc<Shared>, client: Rc<Client>, number: usize) -> Vec<Told> {
    let mut one = One {
        line: client.line(number),
        shared,
        client,
        number,
        id: 0,
        told: Told::default(),
    };
    if number.is_multiple_of(2) {
        one.with_a_session().await;
    } else {
        one.without_a_session().await;
    }
    vec![one.told]
}

struct One {
    shared: Arc<Shared>,
    client: Rc<Client>,
    line: ConnectionSlot,
    number: usize,
    /// Of its last request: it counts from one, as every other client does.
    id: u64,
    told: Told,
}

impl One {
    async fn with_a_session(&mut self) {
        let Some(session) = self.begin().await else {
            return;
        };
        let head = head(SESSIONS, Some(&session), None);
        let mut at_server: Option<String> = None;
        while self.shared.goes_on() {
            let text = self.text();
            let params = json!({ "name": "one__echo_session", "arguments": { "text": text } });
            let Some((status, told)) = self.call(&head, &params).await else {
                return;
            };
            if status != 200 {
                let who = self.number;
                let lost = if status == 404 {
                    &mut self.told.sessions_lost
                } else {
                    &mut self.told.refused
                };
                lost.add(|| format!("client {who}: {status} {told}"));
                return;
            }
            let content = &told["result"]["content"];
            if self.is_own(&told, &content[0]["text"], &text) {
                self.told.with_session += 1;
                let there = content[1]["text"].as_str().unwrap_or_default();
                let first = at_server.get_or_insert_with(|| there.to_owned());
                if first.is_empty() || first != there {
                    let (who, first) = (self.number, first.clone());
                    self.told
                        .moved
                        .add(|| format!("client {who}: {first}, then {there}"));
                }
            }
        }
    }

    async fn without_a_session(&mut self) {
        let name = "two__ask";
        let head = head(STATELESS, None, Some(name));
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientInfo": { "name": "audit", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        });
        while self.shared.goes_on() {
            let text = self.text();
            let params = json!({ "name": name, "arguments": { "text": text }, "_meta": meta });
            let Some((status, told)) = self.call(&head, &params).await else {
                return;
            };
            let result = &told["result"];
            let state = result["requestState"].as_str();
            let Some(state) = state.filter(|_| status == 200 && told["id"] == self.id) else {
                let who = self.number;
                self.told
                    .refused
                    .add(|| format!("client {who}: {status} {told}"));
                return;
            };
            self.told.without_session += 1;
            let mut again = params.clone();
            again["requestState"] = json!(state);
            again["inputResponses"] = json!({ "again": { "action": "accept", "content": {} } });
            let Some((status, told)) = self.call(&head, &again).await else {
                return;
            };
            if status != 200 {
                let who = self.number;
                self.told
                    .states_lost
                    .add(|| format!("client {who}: {status} {told}"));
                return;
            }
            if self.is_own(&told, &told["result"]["content"][0]["text"], &text) {
                self.told.without_session += 1;
                self.told.states += 1;
            }
        }
    }

    /// What no other call of any client sends.
    fn text(&self) -> String {
        format!("client {} call {}", self.number, self.id + 1)
    }

    fn is_own(&mut self, told: &Value, text: &Value, sent: &str) -> bool {
        let is_own = told["id"] == self.id && text == sent;
        if !is_own {
            let id = self.id;
            self.told
                .wrong
                .add(|| format!("{sent} as {id} was told {told}"));
        }
        is_own
    }

    /// Sends a call until it is answered, under one id; `None` when there is no more time for it.
    async fn call(&mut self, head: &Head, params: &Value) -> Option<(u16, Value)> {
        self.id += 1;
        let body =
            json!({ "jsonrpc": "2.0", "id": self.id, "method": "tools/call", "params": params });
        let payload = Bytes::from(body.to_string()).into();
        loop {
            let mut heard = Heard::default();
            let sent = self
                .client
                .exchange(&mut self.line, (head, None), &payload, &mut heard);
            match sent.await {
                Ok(answer) => {
                    self.shared.answered.fetch_add(1, Ordering::Relaxed);
                    let told = serde_json::from_slice(&heard.body);
                    let told = told.unwrap_or_else(|_| json!(String::from_utf8_lossy(&heard.body)));
                    return Some((answer.said.status, told));
                }
                Err(failure @ (Failure::Timeout | Failure::Malformed)) => {
                    let who = self.number;
                    self.told.refused.add(|| format!("client {who}: {failure}"));
                    return None;
                }
                Err(failure) => {
                    self.told.cut += u64::from(failure != Failure::Connect);
                    if !self.shared.goes_on() {
                        return None;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Begins a session at some gate.
    async fn begin(&mut self) -> Option<String> {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": { "name": "audit", "version": "1" } } });
        let noted = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let mut at = self.number;
        while self.shared.goes_on() {
            at += 1;
            let gate = self.shared.gates[at % self.shared.gates.len()];
            if let Some(session) = send(gate, &head(SESSIONS, None, None), &body).await {
                let told = send(gate, &head(SESSIONS, Some(&session), None), &noted).await;
                // Whoever was killed meanwhile has nothing of it to lose.
                drop(told);
                self.id = 1;
                return Some(session);
            }
            tokio::time::sleep(PAUSE).await;
        }
        None
    }
}

/// The id of the session that an answer begins; `None` where there is no such answer.
async fn send(gate: SocketAddr, head: &Head, message: &Value) -> Option<String> {
    let body = message.to_string();
    let mut bytes = Vec::new();
    head.write(
        "",
        gate.to_string().as_bytes(),
        body.len() as u64,
        &mut bytes,
    );
    bytes.extend_from_slice(body.as_bytes());
    let stream = TcpStream::connect(gate).await.ok()?;
    let (fetched, _) = ask(stream, &bytes, ANSWER_BYTES_MAX).await.ok()?;
    let mut headers = fetched.lines.headers.iter();
    let (_, id) = headers.find(|(name, _)| name == "mcp-session-id")?;
    String::from_utf8(id.clone()).ok()
}

fn head(version: &str, session: Option<&str>, tool: Option<&str>) -> Head {
    let mut fields = vec![
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("x-workload-app", WORKLOAD),
    ];
    fields.extend(session.map(|id| ("mcp-session-id", id)));
    if session.is_some() || tool.is_some() {
        fields.push(("mcp-protocol-version", version));
    }
    if let Some(name) = tool {
        fields.extend([("mcp-method", "tools/call"), ("mcp-name", name)]);
    }
    let path = Head::post("/mcp");
    let all = fields.into_iter();
    let head = all.fold(path, |head, (name, value)| {
        head.and_then(|head| head.with(name, value))
    });
    head.expect("fields of letters and digits")
}

/// The body of an answer.
#[derive(Default)]
struct Heard {
    body: Vec<u8>,
}

impl Listener for Heard {
    fn on_send(&mut self, _now: Instant) {
        self.body.clear();
    }

    fn on_first_byte(&mut self, _now: Instant) {}

    fn on_body(&mut self, _now: Instant, _said: Said, bytes: &[u8]) {
        let room = ANSWER_BYTES_MAX - self.body.len();
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}
