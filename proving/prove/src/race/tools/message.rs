//! Messages of a client of tools, in each version, and what is read of answers.
//!
//! Not here: which are sent (`tools`).

use bytes::Bytes;
use load::client::{Fetched, Request};
use load::source::Head;
use serde_json::{Value, json};

use super::{PATH, Version};
use crate::race::check;
use crate::subject::Client;

const ACCEPT: &str = "application/json, text/event-stream";
/// Stands where the id is, and nowhere else.
const ID: &str = "\"the-id-of-the-call\"";

/// How messages of a version look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Era {
    version: &'static str,
    is_stateless: bool,
}

impl Era {
    pub(super) const fn of(version: Version) -> Self {
        let (version, is_stateless) = match version {
            Version::June2025 => ("2025-06-18", false),
            Version::November2025 => ("2025-11-25", false),
            Version::July2026 => ("2026-07-28", true),
        };
        Self {
            version,
            is_stateless,
        }
    }

    pub(super) const fn is_stateless(self) -> bool {
        self.is_stateless
    }

    /// A request.
    pub(super) fn request(
        self,
        client: &Client,
        session: Option<&String>,
        method: &str,
        params: &Value,
    ) -> Result<Request, String> {
        let mut params = params.clone();
        if method == "initialize" {
            params["protocolVersion"] = json!(self.version);
        }
        if self.is_stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.version,
                "io.modelcontextprotocol/clientInfo": { "name": "prove", "version": env!("CARGO_PKG_VERSION") },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{ID},"method":"{method}","params":{params}}}"#);
        let mut headers = self.headers(client, session, method == "initialize");
        if self.is_stateless {
            headers.push(("mcp-method".into(), method.into()));
            let name = params["name"].as_str();
            headers.extend(name.map(|name| ("mcp-name".into(), name.into())));
        }
        check::post(path(client), &headers, body.into_bytes())
    }

    /// A notification in a session.
    pub(super) fn notification(
        self,
        client: &Client,
        session: &String,
        method: &str,
    ) -> Result<Request, String> {
        let body = json!({ "jsonrpc": "2.0", "method": method }).to_string();
        let headers = self.headers(client, Some(session), false);
        check::post(path(client), &headers, body.into_bytes())
    }

    /// The head of a standing stream of a session.
    pub(super) fn listening(self, client: &Client, session: &String) -> Result<Head, String> {
        let mut head = Head::get(path(client)).and_then(|head| head.with("host", "localhost"));
        for (name, value) in self.headers(client, Some(session), false) {
            if name != "content-type" {
                head = head.and_then(|head| head.with(&name, &value));
            }
        }
        head.map_err(|error| error.to_string())
    }

    fn headers(
        self,
        client: &Client,
        session: Option<&String>,
        begins: bool,
    ) -> Vec<(String, String)> {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut headers = vec![
            pair("content-type", "application/json"),
            pair("accept", ACCEPT),
        ];
        if !begins {
            headers.push(pair("mcp-protocol-version", self.version));
        }
        headers.extend(session.map(|id| pair("mcp-session-id", id)));
        let own = client.headers.iter();
        headers.extend(own.map(|(name, value)| pair(name, value)));
        headers
    }
}

fn path(client: &Client) -> &str {
    client.path.as_deref().unwrap_or(PATH)
}

/// What stands before and after the id of a request.
pub(super) fn around_id(body: &Bytes) -> Result<(Bytes, Bytes), String> {
    let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
    let at = text.find(ID).ok_or("bug: a request without its id")?;
    Ok((body.slice(..at), body.slice(at + ID.len()..)))
}

/// The message of an answer: its body, or its last event that is one.
pub(super) fn read(fetched: &Fetched) -> Option<Value> {
    if !is_events(fetched) {
        return serde_json::from_slice(&fetched.body).ok();
    }
    let text = String::from_utf8_lossy(&fetched.body);
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let messages = data.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
    let mut answers = messages.filter(|message| message["id"].is_string());
    answers.next_back()
}

pub(super) fn is_events(fetched: &Fetched) -> bool {
    header(fetched, "content-type").is_some_and(|is| is.starts_with("text/event-stream"))
}

/// The id of the session that an answer begins.
pub(super) fn session(fetched: &Fetched) -> Option<String> {
    header(fetched, "mcp-session-id")
}

fn header(fetched: &Fetched, name: &str) -> Option<String> {
    let mut headers = fetched.lines.headers.iter();
    let (_, value) = headers.find(|(of, _)| of == name)?;
    Some(String::from_utf8_lossy(value).into_owned())
}
