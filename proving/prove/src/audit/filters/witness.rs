//! The servers behind a gate under audit: each has what is shown and what is hidden, takes names in every spelling, and remembers
//! which uses of what is hidden came to it.
//!
//! `/all` shows everything to whoever comes there; `/old` speaks versions with sessions alone, `/new` the one without, `/both` all.
//! Invariant: where a name stands twice or in another spelling, each of them counts.
//! Not here: a server that only echoes (`tool_server`).

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::super::verdict::Found;
use super::attempt::{TOKEN, TOKEN_IN};
use crate::host::ports;

/// In answers to uses of what is hidden, and nowhere else.
pub(super) const MARKER: &str = "what-is-hidden-was-told";
const BODY_BYTES_MAX: usize = 4 << 20;
const STATELESS: &str = "2026-07-28";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// What came to the servers.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) messages: u64,
    pub(super) hidden: Found,
    /// With the token that was brought for the server that it came to.
    pub(super) tokens: u64,
    /// Tokens and headers that had no business there.
    pub(super) strange: Found,
}

pub(super) struct Witness {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

impl Witness {
    /// Serves on a thread of its own until the process ends.
    pub(super) fn start() -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(ports::loopback(0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let theirs = Arc::clone(&seen);
        thread::Builder::new()
            .name("witness".into())
            .spawn(move || {
                let runtime = crate::runtime::make_local()?;
                runtime.block_on(serve(listener, theirs))
            })?;
        Ok(Self { address, seen })
    }

    /// What came since the last time.
    pub(super) fn take(&self) -> Seen {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn serve(listener: std::net::TcpListener, seen: Arc<Mutex<Seen>>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let seen = Arc::clone(&seen);
        let service = service_fn(move |request| {
            let seen = Arc::clone(&seen);
            async move { Ok::<_, Infallible>(answer(request, &seen).await) }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // An error is a gate that left.
        tokio::task::spawn_local(async move { drop(connection.await) });
    }
}

async fn answer(request: Request<Incoming>, seen: &Mutex<Seen>) -> Response<Full<Bytes>> {
    if request.method() == Method::GET {
        return said(StatusCode::METHOD_NOT_ALLOWED, &Value::Null);
    }
    if request.method() == Method::DELETE {
        return said(StatusCode::OK, &Value::Null);
    }
    let path = request.uri().path().trim_matches('/').to_owned();
    let server = path.split('/').next().unwrap_or_default();
    let by_header = |name: &str| {
        let all = request.headers().get_all(name).iter();
        all.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect::<Vec<_>>()
    };
    let mut names = by_header("mcp-name");
    let credentials = by_header("authorization");
    let carried = by_header(TOKEN_IN);
    let is_stateless = by_header("mcp-protocol-version")
        .iter()
        .any(|version| version == STATELESS);
    let Ok(body) = Limited::new(request.into_body(), BODY_BYTES_MAX)
        .collect()
        .await
    else {
        return said(StatusCode::PAYLOAD_TOO_LARGE, &Value::Null);
    };
    let body = body.to_bytes();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    gather(&String::from_utf8_lossy(&body), &mut names);
    let is_list = method.ends_with("/list");
    let is_hidden = !is_list && names.iter().any(|name| is_hidden(server, name));
    {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.messages += 1;
        let is_its = server == "both" && credentials == [format!("Bearer {TOKEN}")];
        seen.tokens += u64::from(is_its);
        if !(credentials.is_empty() || is_its) || !carried.is_empty() {
            seen.strange
                .add(|| format!("{server}: {method} with {credentials:?} and {carried:?}"));
        }
        if is_hidden {
            seen.hidden.add(|| {
                format!(
                    "{server}: {method} {names:?}: {}",
                    String::from_utf8_lossy(&body)
                )
            });
        }
    }
    if message["id"].is_null() {
        return said(StatusCode::ACCEPTED, &Value::Null);
    }
    let told = match (&*method, server, is_stateless) {
        ("initialize", "new", _) => Err((400, -32022, "no sessions here")),
        ("server/discover", "old", _) => Err((400, -32601, "sessions alone")),
        _ => Ok(result(&method, is_hidden, is_stateless)),
    };
    let id = &message["id"];
    match told {
        Ok(result) => {
            let body = json!({ "jsonrpc": "2.0", "id": id, "result": result });
            let mut response = said(StatusCode::OK, &body);
            if method == "initialize" {
                let id = HeaderValue::from_static("a-session-of-the-witness");
                response.headers_mut().insert(SESSION, id);
            }
            response
        }
        Err((status, code, says)) => {
            let body =
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": says } });
            said(
                StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST),
                &body,
            )
        }
    }
}

fn result(method: &str, is_hidden: bool, is_stateless: bool) -> Value {
    let says = if is_hidden { MARKER } else { "shown" };
    let abilities = json!({ "tools": {}, "prompts": {}, "resources": { "subscribe": true }, "completions": {} });
    let mut result = match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": abilities, "serverInfo": { "name": "witness", "version": "1" },
        }),
        "server/discover" => json!({ "supportedVersions": [STATELESS], "capabilities": abilities }),
        "tools/list" => json!({ "tools": [
            { "name": "open", "inputSchema": { "type": "object" } }, { "name": "secret", "inputSchema": { "type": "object" } } ] }),
        "prompts/list" => json!({ "prompts": [{ "name": "open" }, { "name": "secret" }] }),
        "resources/list" => json!({ "resources": [
            { "uri": "file:///open", "name": "open" }, { "uri": "file:///etc/secret", "name": "secret" } ] }),
        "resources/templates/list" => json!({ "resourceTemplates": [
            { "uriTemplate": "memo://{topic}", "name": "memo" }, { "uriTemplate": "db://{table}", "name": "secret tables" } ] }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": says }] }),
        "prompts/get" => {
            json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": says } }] })
        }
        "resources/read" => json!({ "contents": [{ "uri": "file:///open", "text": says }] }),
        "completion/complete" => json!({ "completion": { "values": [says] } }),
        _ => json!({}),
    };
    if is_stateless {
        result["resultType"] = json!("complete");
        result["ttlMs"] = json!(60_000);
        result["cacheScope"] = json!("public");
    }
    result
}

fn said(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// Every text that stands behind a member called `name` or `uri`, in any capitals and at any depth but within `arguments` and what a
/// client says of itself, and each of several.
fn gather(body: &str, names: &mut Vec<String>) {
    let mut rest = body;
    while let Some(at) = rest.find('"') {
        let Some((text, after)) = string(&rest[at..]) else {
            return;
        };
        let behind = after.trim_start();
        rest = after;
        let Some(value) = behind.strip_prefix(':') else {
            continue;
        };
        let value = value.trim_start();
        if (["arguments", "argument"].contains(&&*text) || text.ends_with("clientInfo"))
            && value.starts_with('{')
        {
            let mut one = serde_json::Deserializer::from_str(value).into_iter::<Value>();
            if let Some(Ok(_)) = one.next() {
                rest = &value[one.byte_offset()..];
            }
            continue;
        }
        if ["name", "uri"]
            .iter()
            .any(|name| text.eq_ignore_ascii_case(name))
            && let Some((value, after)) = string(value)
        {
            names.push(value);
            rest = after;
        }
    }
}

/// The string that a text begins with, decoded, and what follows it.
fn string(text: &str) -> Option<(String, &str)> {
    if !text.starts_with('"') {
        return None;
    }
    let mut one = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let value = one.next()?.ok()?;
    Some((value, text.get(one.byte_offset()..)?))
}

/// Whether a server takes this for something that is hidden from whoever comes to it.
fn is_hidden(server: &str, name: &str) -> bool {
    let uri = name.contains(':').then(|| read(name));
    match server {
        // One list of what is allowed: all else is hidden.
        "both" => match &uri {
            Some((scheme, path)) => !(scheme == "memo" || scheme == "file" && path == "/open"),
            None => name != "open",
        },
        _ => match &uri {
            Some((scheme, path)) => scheme == "db" || scheme == "file" && path.starts_with("/etc/"),
            None => name == "secret",
        },
    }
}

/// Scheme and path as a server that forgives everything reads them.
fn read(uri: &str) -> (String, String) {
    let mut text = uri.to_owned();
    for _ in 0..3 {
        text = decoded(&text);
    }
    let text: String = text
        .chars()
        .filter(|c| !c.is_control() && !c.is_whitespace())
        .map(|c| if c == '\\' { '/' } else { c })
        .collect();
    let (scheme, rest) = text.split_once(':').unwrap_or(("", &text));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let rest = match rest.strip_prefix("//") {
        Some(host) => host.split_once('/').map_or("", |(_, path)| path),
        None => rest,
    };
    let mut segments: Vec<&str> = Vec::new();
    for segment in rest.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    (
        scheme.to_ascii_lowercase(),
        format!("/{}", segments.join("/")),
    )
}

fn decoded(text: &str) -> String {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = (byte == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    //! What counts as hidden, in which spelling.

    use super::{gather, is_hidden};

    #[test]
    fn a_name_is_found_wherever_a_server_might_read_it() {
        let mut names = Vec::new();
        gather(
            r#"{"params":{"name":"open","Name":"\u0073ecret","arguments":{"name":"x"},"ref":{"uri" : "db://a"}},"params":{"name":"b"}}"#,
            &mut names,
        );
        assert_eq!(names, ["open", "secret", "db://a", "b"]);
    }

    #[test]
    fn a_spelling_of_a_hidden_uri_is_hidden() {
        for uri in [
            "file:///etc/secret",
            "FILE:///etc/secret",
            "file:///x/../etc/secret",
            "file:///x/%252e%252e/etc/secret",
            "file:\\\\\\etc\\secret",
            "file://localhost/etc/secret",
            "d%62://users",
        ] {
            assert!(is_hidden("old", uri), "{uri}");
        }
        assert!(!is_hidden("old", "file:///open") && !is_hidden("old", "open"));
        assert!(is_hidden("both", "anything") && !is_hidden("both", "open"));
    }
}
