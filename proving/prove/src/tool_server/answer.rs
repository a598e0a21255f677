//! What a message to an echoing server of tools is answered.
//!
//! Not here: sockets (`tool_server`).

use std::borrow::Cow;

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The version without sessions.
const STATELESS: &str = "2026-07-28";
const VERSION_IN_META: &str = "io.modelcontextprotocol/protocolVersion";

/// What goes back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) kind: Kind,
    /// Whether a session begins with it.
    pub(super) begins: bool,
    pub(super) body: Bytes,
}

/// In what form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Json,
    /// One event.
    Events,
    /// One event, after which the stream stays open.
    Listening,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    arguments: Option<Arguments<'a>>,
    #[serde(borrow, default, rename = "protocolVersion")]
    version: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "requestState")]
    state: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    /// As it was written.
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
}

/// The answer to the body of a POST in this session.
pub(super) fn answer(body: &[u8], session: Option<&str>) -> Answer {
    let Ok(message) = serde_json::from_slice::<Message<'_>>(body) else {
        return error(StatusCode::BAD_REQUEST, "null", -32700, "no message");
    };
    let Some(id) = message.id else {
        return Answer {
            status: StatusCode::ACCEPTED,
            kind: Kind::Json,
            begins: false,
            body: Bytes::new(),
        };
    };
    let (id, params) = (id.get(), &message.params);
    let stateless = params.is_stateless();
    match (&*message.method, params.name.as_deref()) {
        ("initialize", _) => {
            let version = params.version.as_deref().unwrap_or("2025-11-25");
            let mut begun = whole(
                id,
                &json!({
                    "protocolVersion": version,
                    "capabilities": { "tools": { "listChanged": true }, "logging": {} },
                    "serverInfo": { "name": "echo", "version": env!("CARGO_PKG_VERSION") },
                }),
            );
            begun.begins = true;
            begun
        }
        ("server/discover", _) if stateless => whole(
            id,
            &json!({
                "resultType": "complete",
                "supportedVersions": [STATELESS],
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "echo", "version": env!("CARGO_PKG_VERSION") },
                "ttlMs": 60_000,
                "cacheScope": "public",
            }),
        ),
        ("tools/list", _) => whole(id, &tools(stateless)),
        ("tools/call", Some(name @ ("echo" | "echo_events"))) => {
            called(id, name, params.text(), stateless)
        }
        ("tools/call", Some("echo_session")) => {
            let both = format!(
                r#"{}}},{{"type":"text","text":"{}""#,
                params.text(),
                session.unwrap_or_default()
            );
            called(id, "echo", &both, stateless)
        }
        ("tools/call", Some("ask")) if stateless => asking(id, params),
        ("tools/call", _) => error(StatusCode::OK, id, -32602, "there is no such tool"),
        ("ping" | "logging/setLevel", _) => whole(id, &json!({})),
        ("subscriptions/listen", _) if stateless => Answer {
            kind: Kind::Listening,
            ..events(format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{"toolsListChanged":true}},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
            ))
        },
        _ if stateless => error(StatusCode::NOT_FOUND, id, -32601, "there is no such method"),
        _ => error(StatusCode::OK, id, -32601, "there is no such method"),
    }
}

impl Params<'_> {
    /// What is to be given back, as it is written.
    fn text(&self) -> &str {
        let text = self.arguments.as_ref().and_then(|given| given.text);
        text.map_or(r#""""#, RawValue::get)
    }

    fn is_stateless(&self) -> bool {
        let meta: Option<Value> = self
            .meta
            .and_then(|meta| serde_json::from_str(meta.get()).ok());
        meta.is_some_and(|meta| meta[VERSION_IN_META] == STATELESS)
    }
}

fn tools(stateless: bool) -> Value {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    let tool = |name, says| json!({ "name": name, "description": says, "inputSchema": schema });
    let tools = [
        tool("echo", "Gives a text back"),
        tool("echo_events", "Gives a text back, by an event"),
        tool(
            "echo_session",
            "Gives a text back, and the session that it came in",
        ),
        tool("ask", "Gives a text back when it is asked again"),
    ];
    if stateless {
        json!({ "resultType": "complete", "tools": tools, "ttlMs": 60_000, "cacheScope": "public" })
    } else {
        json!({ "tools": tools })
    }
}

fn called(id: &str, name: &str, text: &str, stateless: bool) -> Answer {
    let is = if stateless {
        r#""resultType":"complete","#
    } else {
        ""
    };
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{{is}"content":[{{"type":"text","text":{text}}}]}}}}"#
    );
    if name == "echo" {
        json_of(StatusCode::OK, body)
    } else {
        events(body)
    }
}

/// Wants to be asked again with a state, which is the text, and then gives back the state.
fn asking(id: &str, params: &Params<'_>) -> Answer {
    if let Some(state) = params.state {
        return called(id, "echo", state.get(), true);
    }
    let text = params.text();
    json_of(
        StatusCode::OK,
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","requestState":{text},"inputRequests":{{"again":{{"method":"elicitation/create","params":{{"message":"Again?","requestedSchema":{{"type":"object","properties":{{}}}}}}}}}}}}}}"#
        ),
    )
}

fn whole(id: &str, result: &Value) -> Answer {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    json_of(StatusCode::OK, body)
}

fn error(status: StatusCode, id: &str, code: i32, says: &str) -> Answer {
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{says}"}}}}"#);
    json_of(status, body)
}

fn json_of(status: StatusCode, body: String) -> Answer {
    Answer {
        status,
        kind: Kind::Json,
        begins: false,
        body: body.into(),
    }
}

fn events(message: String) -> Answer {
    Answer {
        kind: Kind::Events,
        ..json_of(
            StatusCode::OK,
            format!("event: message\ndata: {message}\n\n"),
        )
    }
}

#[cfg(test)]
mod tests {
    //! What a client is told.

    use serde_json::{Value, json};

    use super::{Kind, answer};

    fn asked(message: &Value) -> super::Answer {
        answer(message.to_string().as_bytes(), Some("s1"))
    }

    fn call(id: &Value, name: &str, stateless: bool) -> super::Answer {
        let mut params = json!({ "name": name, "arguments": { "text": "a \"b\"" } });
        if stateless {
            params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
        }
        asked(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
    }

    fn value(bytes: &[u8]) -> Value {
        let text = std::str::from_utf8(bytes).expect("text");
        let text = text.strip_prefix("event: message\ndata: ").unwrap_or(text);
        serde_json::from_str(text.trim_end()).expect("JSON")
    }

    #[test]
    fn a_text_comes_back_under_the_id_of_its_request_in_the_form_of_the_tool() {
        for (name, kind) in [("echo", Kind::Json), ("echo_events", Kind::Events)] {
            for id in [json!(7), json!("seven")] {
                let told = call(&id, name, false);
                assert_eq!(told.kind, kind);
                let told = value(&told.body);
                assert_eq!(told["id"], id);
                assert_eq!(told["result"]["content"][0]["text"], "a \"b\"");
                assert!(told["result"]["resultType"].is_null());
            }
            let told = value(&call(&json!(1), name, true).body);
            assert_eq!(told["result"]["resultType"], "complete");
        }
        let told = value(&call(&json!(1), "echo_session", false).body);
        assert_eq!(told["result"]["content"][0]["text"], "a \"b\"");
        assert_eq!(told["result"]["content"][1]["text"], "s1");
        let told = value(&call(&json!(1), "ask", true).body);
        assert_eq!(told["result"]["resultType"], "input_required");
        assert_eq!(told["result"]["requestState"], "a \"b\"");
        assert_eq!(
            value(&call(&json!(1), "none", false).body)["error"]["code"],
            -32602
        );
    }

    #[test]
    fn a_session_begins_with_initialize_and_a_notification_has_no_answer() {
        let begun = asked(
            &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-06-18" } }),
        );
        assert!(begun.begins);
        assert_eq!(
            value(&begun.body)["result"]["protocolVersion"],
            "2025-06-18"
        );
        let noted = asked(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!((noted.status.as_u16(), noted.body.len()), (202, 0));
        assert_eq!(answer(b"no JSON", None).status, 400);
    }
}
