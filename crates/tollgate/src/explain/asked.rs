//! What `tollgate explain` is asked as a client would send it: the head, and a body that says as much as its API needs.
//!
//! Not here: options (`arguments`), what becomes of it (`explain`).

use policy::authority::Members;
use policy::mcp::{Mcp, PATH};
use proxy::arguments::{self, Unread};
use proxy::tool_search::CALL;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use wire::dialect::gemini::Named;

use super::arguments::Explain;

/// The variable that may hold the client's credential.
const CREDENTIAL: &str = "TOLLGATE_CREDENTIAL";
/// What a call says of which nothing but its model is known.
const TEXT: &str = "hello";

/// The call's head and body as a client would send them.
///
/// # Errors
/// The file with the body cannot be read, or a tool is called where none are.
pub(super) fn request(asked: &Explain, mcp: Option<&Mcp>) -> Result<(Vec<u8>, Vec<u8>), String> {
    let body = match &asked.body {
        Some(file) => std::fs::read(file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?,
        None => body(asked).to_string().into_bytes(),
    };
    let names_host = |header: &String| {
        let name = header.split(':').next().unwrap_or_default();
        name.eq_ignore_ascii_case("host")
    };
    let host = if asked.header.iter().any(names_host) {
        ""
    } else {
        "host: localhost\r\n"
    };
    let path = match asked.tool {
        Some(_) => path_of_tools(asked.path.as_deref(), mcp)?,
        None => asked.path(),
    };
    let mut head = format!("{} {path} HTTP/1.1\r\n{host}", asked.method);
    if asked.method == "POST" {
        head.push_str(&format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        ));
    }
    if let Ok(credential) = std::env::var(CREDENTIAL) {
        head.push_str(&format!("authorization: Bearer {}\r\n", credential.trim()));
    }
    for header in &asked.header {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    Ok((head.into_bytes(), body))
}

/// Where servers of tools are found.
fn path_of_tools<'p>(said: Option<&'p str>, mcp: Option<&'p Mcp>) -> Result<&'p str, String> {
    let paths: Vec<&str> = mcp.map_or(Vec::new(), |mcp| {
        mcp.paths.iter().map(|path| &**path).collect()
    });
    match (said, &*paths) {
        // That there are none is said by what is refused.
        (None, []) => Ok(PATH),
        (None, [path]) => Ok(path),
        (None, paths) if paths.contains(&PATH) => Ok(PATH),
        (Some(said), paths) if paths.contains(&said) => Ok(said),
        (Some(said), []) => Err(format!("there are no servers of tools at {said}")),
        (Some(said), paths) => Err(format!(
            "there are no servers of tools at {said}; they are at {}",
            paths.join(", ")
        )),
        (None, paths) => Err(format!(
            "servers of tools are at {}: say which with --path",
            paths.join(", ")
        )),
    }
}

/// The least that a call to this path says, so that what it becomes at a backend of another API can be told.
fn body(asked: &Explain) -> Value {
    let path = asked.path().split('?').next().unwrap_or_default();
    let messages = || json!([{ "role": "user", "content": TEXT }]);
    if let Some(named) = Named::of(path) {
        let content = json!({ "role": "user", "parts": [{ "text": TEXT }] });
        return match named.verb {
            "embedContent" => json!({ "content": content }),
            "batchEmbedContents" => json!({ "requests": [] }),
            _ => json!({ "contents": [content] }),
        };
    }
    let mut body = match path {
        "/v1/chat/completions" => json!({ "messages": messages() }),
        "/v1/messages" => json!({ "messages": messages(), "max_tokens": 1024 }),
        "/v1/messages/count_tokens" => json!({ "messages": messages() }),
        "/v1/completions" => json!({ "prompt": TEXT }),
        "/v1/responses" | "/v1/responses/input_tokens" | "/v1/embeddings" | "/v1/moderations" => {
            json!({ "input": TEXT })
        }
        "/v1/audio/speech" => json!({ "input": TEXT, "voice": "alloy" }),
        "/v1/rerank" | "/v2/rerank" => json!({ "query": TEXT, "documents": [TEXT] }),
        "/v1/images/generations" => json!({ "prompt": TEXT }),
        _ => json!({}),
    };
    if let Some(model) = &asked.model {
        body["model"] = model.as_str().into();
    }
    body
}

/// A tool that is called.
pub(super) struct Used {
    /// Its whole name.
    pub(super) name: String,
    /// With these arguments, where they are known, or why they are not looked at.
    pub(super) arguments: Option<Result<Members, Unread>>,
    /// The tool that it calls in turn, where it is the gate's own that does that.
    pub(super) found: Option<Box<Used>>,
}

impl Used {
    fn of(called: Params) -> Self {
        let arguments = called.arguments.as_ref();
        let arguments = arguments.map_or("{}", |arguments| arguments.get());
        let found = (called.name == CALL).then(|| serde_json::from_str(arguments).ok());
        Self {
            arguments: Some(arguments::read(arguments.as_bytes())),
            found: found.flatten().map(Self::of).map(Box::new),
            name: called.name,
        }
    }
}

/// The tool that a call names, by its option or in a message to servers of tools.
pub(super) fn tool(asked: &Explain, body: &[u8]) -> Option<Used> {
    if let Some(name) = &asked.tool {
        return Some(Used {
            name: name.clone(),
            arguments: None,
            found: None,
        });
    }
    // Where servers of tools are found, the configuration says; no call to a model is such a message.
    let is_message = !asked.path().starts_with("/v1/") && asked.method == "POST";
    let message: Message = serde_json::from_slice(body).ok().filter(|_| is_message)?;
    if message.method != "tools/call" {
        return None;
    }
    Some(Used::of(message.params))
}

/// A message, as far as it says which tool is used.
#[derive(Deserialize)]
struct Message {
    method: String,
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    name: String,
    /// As they are written: a name that stands twice is seen.
    arguments: Option<Box<RawValue>>,
}
