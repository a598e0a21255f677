//! One attempt to use what is hidden, as bytes: whose, in which version and session, by which method, under which form of a name, in
//! which envelope.
//!
//! Not here: what became of it (`filters`).

use std::collections::BTreeMap;
use std::net::SocketAddr;

use experiment::random::Rng;
use load::client::ask;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// From whom nothing is hidden, but what a server hides; to whom few things are shown by a list; who is hindered by a rule; who is shown two tools
/// in place of that list; who brings a token of its own for one of its servers.
pub(super) const CALLERS: [&str; 5] = ["shown", "few", "ruled", "searched", "owner"];
const SEARCHED: usize = 3;
const OWNER: usize = 4;
/// The gate's own tools of a route that is searched.
const FIND: &str = "tollgate__find_tools";
const CALL: &str = "tollgate__call_tool";
/// The header that brings a token, and the token that the owner has.
pub(super) const TOKEN_IN: &str = "x-both-token";
pub(super) const TOKEN: &str = "of-the-owner";
/// What nobody has.
const STRANGE_TOKEN: &str = "of-a-thief";
/// The last has no sessions.
const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", STATELESS];
const STATELESS: &str = "2026-07-28";

pub(super) struct Attempt {
    /// The request.
    pub(super) bytes: Vec<u8>,
    /// In words.
    pub(super) says: String,
    /// Whether it asks for a list, which may not hold what is hidden.
    pub(super) is_list: bool,
    /// Whether its answer may be a stream that stays open.
    pub(super) listens: bool,
}

/// What each caller has open, by version.
pub(super) struct Sessions(BTreeMap<(usize, usize), String>);

/// What is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Named,
    Uri,
    Prompt,
    Template,
    Listen,
}

const USES: [(&str, Kind); 8] = [
    ("tools/call", Kind::Named),
    ("prompts/get", Kind::Named),
    ("resources/read", Kind::Uri),
    ("resources/subscribe", Kind::Uri),
    ("resources/unsubscribe", Kind::Uri),
    ("completion/complete", Kind::Prompt),
    ("completion/complete", Kind::Template),
    ("subscriptions/listen", Kind::Listen),
];
const LISTS: [&str; 4] = [
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
];
/// Methods that almost are one.
const ALMOST: [&str; 10] = [
    "Tools/Call",
    "tools/call ",
    "tools//call",
    "tools/call/",
    "tools.call",
    "prompts/read",
    "resources/get",
    "resources/templates/read",
    "tasks/get",
    "notifications/tools/call",
];

/// Each kind of use of what is shown, through which it is known that the way is open.
pub(super) fn controls(sessions: &Sessions) -> Vec<Attempt> {
    let mut all = Vec::new();
    let mut add = |caller: usize, version: usize, method: &str, params: Value| {
        let session = sessions.0.get(&(caller, version));
        let head = head(caller, version, session, (method, &params));
        let body = message(version, method, &params).to_string();
        all.push(attempt(
            head,
            &body,
            format!("{} {method} {params}", CALLERS[caller]),
        ));
    };
    for version in 0..VERSIONS.len() {
        for (caller, tool, uri) in [
            (0, "all__secret", "all+file:///etc/secret"),
            (0, "all__open", "all+db://users"),
            (1, "both__open", "both+file:///open"),
            (2, "new__open", "new+file:///open"),
            (SEARCHED, "both__open", "both+file:///open"),
            (OWNER, "both__open", "both+file:///open"),
        ] {
            add(
                caller,
                version,
                "tools/call",
                json!({ "name": tool, "arguments": {} }),
            );
            add(caller, version, "prompts/get", json!({ "name": tool }));
            add(caller, version, "resources/read", json!({ "uri": uri }));
            let reference = json!({ "type": "ref/prompt", "name": tool });
            let argument = json!({ "name": "a", "value": "" });
            let params = json!({ "ref": reference, "argument": argument });
            add(caller, version, "completion/complete", params);
        }
        let found = json!({ "name": "both__open", "arguments": {} });
        for (own, arguments) in [(FIND, json!({ "query": "open" })), (CALL, found)] {
            let params = json!({ "name": own, "arguments": arguments });
            add(SEARCHED, version, "tools/call", params);
        }
    }
    all
}

impl Sessions {
    /// Each caller begins one in each version that has them.
    pub(super) async fn begin(gate: SocketAddr) -> Result<Self, String> {
        let mut open = BTreeMap::new();
        for (caller, name) in CALLERS.iter().enumerate() {
            for version in (0..VERSIONS.len()).filter(|at| VERSIONS[*at] != STATELESS) {
                let params = json!({ "protocolVersion": VERSIONS[version], "capabilities": {},
                    "clientInfo": { "name": "audit", "version": "1" } });
                let body = message(version, "initialize", &params).to_string();
                let head = head(caller, version, None, ("initialize", &params));
                let sent = attempt(head, &body, String::new());
                let said = |says: String| format!("initialize of {name}: {says}");
                let stream = TcpStream::connect(gate)
                    .await
                    .map_err(|error| said(error.to_string()))?;
                let asked = ask(stream, &sent.bytes, 1 << 20).await;
                let (fetched, _) = asked.map_err(|error| said(error.to_string()))?;
                let mut headers = fetched.lines.headers.iter();
                let session = headers.find(|(name, _)| name == "mcp-session-id");
                let session = session.and_then(|(_, id)| String::from_utf8(id.clone()).ok());
                let session = session.ok_or_else(|| {
                    said(format!(
                        "status {}: {}",
                        fetched.status,
                        String::from_utf8_lossy(&fetched.body)
                    ))
                })?;
                open.insert((caller, version), session);
            }
        }
        Ok(Self(open))
    }
}

impl Attempt {
    /// The next one.
    pub(super) fn draw(rng: &mut Rng, sessions: &Sessions) -> Self {
        let caller = below(rng, CALLERS.len());
        let version = below(rng, VERSIONS.len());
        // From the first nothing is hidden but by the server `old`.
        let server = match caller {
            0 => "old",
            2 => "new",
            _ => one(rng, &["both", "old"]),
        };
        let (whose, session) = session(rng, (caller, version), sessions);
        if below(rng, 12) == 0 {
            let (method, params) = match below(rng, 3) {
                0 => (one(rng, &LISTS), json!({})),
                1 => {
                    let cursor = one(rng, &["", "0", "secret", "MQ=="]);
                    (one(rng, &LISTS), json!({ "cursor": cursor }))
                }
                _ => ("tools/call", sought(rng)),
            };
            let head = head(caller, version, session.as_ref(), (method, &params));
            let body = message(version, method, &params).to_string();
            let says = format!("{} {whose} {} {method}", CALLERS[caller], VERSIONS[version]);
            let mut attempt = attempt(head, &body, says);
            // To the first caller another server shows it all.
            attempt.is_list = caller != 0;
            return attempt;
        }
        let (method, kind) = USES[below(rng, USES.len())];
        let is_uri = matches!(kind, Kind::Uri | Kind::Template | Kind::Listen);
        let hidden = if is_uri {
            uri(rng, caller, server)
        } else {
            name(rng, caller, server)
        };
        let open = if is_uri {
            format!("{server}+file:///open")
        } else {
            format!("{server}__open")
        };
        let mut params = params(kind, &hidden);
        let may_wrap = if caller == SEARCHED { 2 } else { 12 };
        if method == "tools/call" && below(rng, may_wrap) == 0 {
            params = through_own_tool(rng, params, (&hidden, &open));
        }
        let method = if below(rng, 15) == 0 {
            one(rng, &ALMOST)
        } else {
            method
        };
        let text = message(version, method, &params).to_string();
        let (envelope, body) = envelope(rng, text, (&hidden, &open));
        let mut head = head(caller, version, session.as_ref(), (method, &params));
        let by_header = headers(rng, &mut head, (caller, &hidden, &open));
        let says = format!(
            "{} {whose} {} {envelope} {by_header} {body}",
            CALLERS[caller], VERSIONS[version]
        );
        attempt(head, &body, says)
    }
}

/// What looks for what is hidden.
fn sought(rng: &mut Rng) -> Value {
    let words = one(
        rng,
        &[
            "secret",
            "both__secret",
            "open secret",
            "old secret open",
            "s",
        ],
    );
    json!({ "name": FIND, "arguments": { "query": words, "limit": 20 } })
}

/// A call of a tool through the tool that calls what was found, which may have a second one within.
fn through_own_tool(rng: &mut Rng, call: Value, (hidden, open): (&str, &str)) -> Value {
    let through = |call: Value| json!({ "name": CALL, "arguments": call });
    match below(rng, 10) {
        0 => through(through(call)),
        1 => through(json!({ "name": hidden, "arguments": call.to_string() })),
        2 => through(json!({ "name": open, "arguments": { "name": hidden } })),
        3 => through(json!({ "name": open, "Name": hidden, "arguments": {} })),
        4 => json!({ "name": open, "arguments": call }),
        5 => json!({ "name": CALL, "arguments": call, "task": { "name": hidden } }),
        6 => json!({ "name": FIND, "arguments": call }),
        _ => through(call),
    }
}

/// Whose session is brought.
fn session(
    rng: &mut Rng,
    (caller, version): (usize, usize),
    sessions: &Sessions,
) -> (&'static str, Option<String>) {
    let own = sessions.0.get(&(caller, version)).cloned();
    match below(rng, 10) {
        0 => {
            let other = (caller + 1 + below(rng, CALLERS.len() - 1)) % CALLERS.len();
            (
                "another's",
                sessions.0.get(&(other, below(rng, 2))).cloned(),
            )
        }
        1 => (
            "own of another version",
            sessions.0.get(&(caller, below(rng, 2))).cloned(),
        ),
        2 => ("none", None),
        3 => {
            let mut id = own.unwrap_or_else(|| "made-up".into());
            let at = below(rng, id.len().max(1));
            id.replace_range(at..=at, "A");
            ("changed", Some(id))
        }
        _ => ("own", own),
    }
}

/// The name of what is hidden, as it is or as somebody may write it in its place.
fn name(rng: &mut Rng, caller: usize, server: &str) -> String {
    let exact = format!("{server}__secret");
    // To whom all is shown elsewhere, that is shown.
    let other = if caller == 0 {
        server
    } else {
        one(rng, &["all", "old", "both", "new"])
    };
    match below(rng, 24) {
        0 => "secret".into(),
        1 => format!("{other}__secret"),
        2 => format!("{server}__{exact}"),
        3 => format!("__{exact}"),
        4 => exact.to_uppercase(),
        5 => format!("{exact} "),
        6 => format!(" {exact}"),
        7 => format!("{exact}\u{0}"),
        8 => format!("{server}__open\u{0}__secret"),
        9 => format!("{exact}\u{200b}"),
        10 => format!("{server}__s\u{435}cret"),
        11 => format!("{server}__%73ecret"),
        12 => format!("{server}__open/../secret"),
        13 => format!("{server}_secret"),
        14 => format!("{server}___secret"),
        15 => format!("{server}.secret"),
        16 => format!("{server}+secret"),
        17 => format!("{server}__secret__open"),
        18 => format!("{server}__open\n{exact}"),
        19 => format!("{server}__{}", "secret".repeat(20)),
        _ => exact,
    }
}

/// The URI of what is hidden, likewise.
fn uri(rng: &mut Rng, caller: usize, server: &str) -> String {
    let other = if caller == 0 {
        server
    } else {
        one(rng, &["all", "old", "both", "new"])
    };
    let plain = one(
        rng,
        &[
            "file:///etc/secret",
            "file:///etc/passwd",
            "db://users",
            "db://a/b",
            "db://{table}",
        ],
    );
    let mut uri = match below(rng, 18) {
        0 => plain.to_uppercase(),
        1 => plain.replacen("file", "FILE", 1).replacen("db", "Db", 1),
        2 => plain.replacen("///", "///x/../", 1),
        3 => plain.replacen("///", "///x/%2e%2e/", 1),
        4 => plain.replacen("///", "///./", 1),
        5 => plain.replacen("///", "////", 1),
        6 => plain.replacen("///", "//localhost/", 1),
        7 => plain.replacen("///", "/", 1),
        8 => plain.replacen("///open", "///open/../", 1),
        9 => plain.replace('/', "\\"),
        10 => format!("{plain}?x=1"),
        11 => format!("{plain}#x"),
        12 => format!("{plain}%00"),
        13 => format!("{plain}/"),
        14 => plain.replacen("/secret", "//secret", 1),
        15 => format!("file:///open/../{}", &plain[plain.len().min(8)..]),
        _ => plain.to_owned(),
    };
    for _ in 0..below(rng, 3) {
        uri = encoded(rng, &uri);
    }
    match below(rng, 8) {
        0 => format!("{other}+{uri}"),
        1 => uri,
        2 => format!("{server}+{server}+{uri}"),
        _ => format!("{server}+{uri}"),
    }
}

/// With one of its characters percent-encoded.
fn encoded(rng: &mut Rng, uri: &str) -> String {
    let at = below(rng, uri.len());
    match uri.as_bytes().get(at) {
        Some(byte)
            if uri.is_char_boundary(at) && byte.is_ascii() && uri.is_char_boundary(at + 1) =>
        {
            format!("{}%{byte:02x}{}", &uri[..at], &uri[at + 1..])
        }
        _ => uri.to_owned(),
    }
}

fn params(kind: Kind, hidden: &str) -> Value {
    let argument = json!({ "name": "a", "value": "" });
    match kind {
        Kind::Named => json!({ "name": hidden, "arguments": {} }),
        Kind::Uri => json!({ "uri": hidden }),
        Kind::Prompt => {
            json!({ "ref": { "type": "ref/prompt", "name": hidden }, "argument": argument })
        }
        Kind::Template => {
            json!({ "ref": { "type": "ref/resource", "uri": hidden }, "argument": argument })
        }
        Kind::Listen => json!({ "notifications": { "resourceSubscriptions": [hidden] } }),
    }
}

fn message(version: usize, method: &str, params: &Value) -> Value {
    let mut params = params.clone();
    if VERSIONS[version] == STATELESS {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientInfo": { "name": "audit", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// What stands around a message, and in it twice.
fn envelope(rng: &mut Rng, text: String, (hidden, open): (&str, &str)) -> (&'static str, String) {
    let quoted = json!(hidden).to_string();
    let shown = json!(open).to_string();
    let member = if text.contains("\"uri\":") {
        "uri"
    } else {
        "name"
    };
    let own = format!("\"{member}\":{quoted}");
    let again = |more: &str| text.replacen(&own, &format!("\"{member}\":{shown},{more}"), 1);
    match below(rng, 22) {
        0 => ("twice", again(&own)),
        1 => (
            "twice, the other way round",
            text.replacen(&own, &format!("{own},\"{member}\":{shown}"), 1),
        ),
        2 => (
            "in capitals",
            again(&format!("\"{}\":{quoted}", member.to_uppercase())),
        ),
        3 => (
            "by another member",
            again(&format!("\"uri\":{quoted},\"name\":{quoted}")),
        ),
        4 => (
            "two params",
            text.replacen(
                "\"params\":",
                &format!("\"params\":{{\"{member}\":{shown}}},\"params\":"),
                1,
            ),
        ),
        5 => (
            "two methods",
            text.replacen("\"method\":", "\"method\":\"ping\",\"method\":", 1),
        ),
        6 => ("a batch", format!("[{text}]")),
        7 => ("two messages", format!("{text}{text}")),
        8 => (
            "two lines",
            format!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}}\n{text}"),
        ),
        9 => ("a mark before it", format!("\u{feff}{text}")),
        10 => ("escaped", text.replacen(&quoted, &escaped(&quoted), 1)),
        11 => (
            "escaped members",
            text.replacen(
                &format!("\"{member}\""),
                &escaped(&format!("\"{member}\"")),
                1,
            ),
        ),
        12 => ("without an id", text.replacen("\"id\":1,", "", 1)),
        13 => ("an id of null", text.replacen("\"id\":1", "\"id\":null", 1)),
        14 => ("a great id", text.replacen("\"id\":1", "\"id\":1e400", 1)),
        15 => ("no version", text.replacen("\"jsonrpc\":\"2.0\",", "", 1)),
        16 => (
            "a nested one",
            text.replacen(&own, &format!("\"{member}\":{{\"{member}\":{quoted}}}"), 1),
        ),
        17 => (
            "a list of names",
            text.replacen(&own, &format!("\"{member}\":[{quoted}]"), 1),
        ),
        _ => ("plain", text),
    }
}

fn escaped(quoted: &str) -> String {
    let mut out = String::new();
    for c in quoted.chars() {
        if c.is_ascii_alphanumeric() {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

fn head(
    caller: usize,
    version: usize,
    session: Option<&String>,
    (method, params): (&str, &Value),
) -> Vec<(String, String)> {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut head = vec![
        pair("host", "localhost"),
        pair("content-type", "application/json"),
        pair("accept", "application/json, text/event-stream"),
        pair("x-workload-app", CALLERS[caller]),
        pair("connection", "close"),
    ];
    if method != "initialize" {
        head.push(pair("mcp-protocol-version", VERSIONS[version]));
    }
    head.extend(session.map(|id| pair("mcp-session-id", id)));
    head.extend((caller == OWNER).then(|| pair(TOKEN_IN, TOKEN)));
    if VERSIONS[version] == STATELESS {
        head.push(pair("mcp-method", method));
        let named = params["name"].as_str().or(params["uri"].as_str());
        head.extend(named.map(|name| pair("mcp-name", name)));
    }
    head
}

/// Changes what headers say.
fn headers(
    rng: &mut Rng,
    head: &mut Vec<(String, String)>,
    (caller, hidden, open): (usize, &str, &str),
) -> &'static str {
    let mut set = |name: &str, value: &str| {
        head.retain(|(of, _)| of != name);
        head.push((name.to_owned(), value.to_owned()));
    };
    match below(rng, 16) {
        0 => {
            set("mcp-name", open);
            "another name"
        }
        1 => {
            set("mcp-name", open);
            head.push(("mcp-name".into(), hidden.into()));
            "two names"
        }
        2 => {
            set(
                "mcp-method",
                one(rng, &["ping", "tools/list", "prompts/get"]),
            );
            "another method"
        }
        3 => {
            set("mcp-protocol-version", one(rng, &VERSIONS));
            "another version"
        }
        4 => {
            set(
                "content-type",
                one(
                    rng,
                    &[
                        "application/json; charset=utf-16",
                        "text/plain",
                        "application/json; charset=\"utf-8\"",
                    ],
                ),
            );
            "another type"
        }
        5 => {
            set(
                "accept",
                one(rng, &["application/json", "text/event-stream", "*/*"]),
            );
            "one type accepted"
        }
        6 => {
            let other = CALLERS[(caller + 1) % CALLERS.len()];
            head.push(("x-workload-app".into(), other.into()));
            "two callers"
        }
        7 => {
            head.push(("mcp-param-name".into(), hidden.into()));
            "a parameter's header"
        }
        8 => {
            head.push(("x-original-url".into(), "/all/mcp".into()));
            head.push(("x-ai-eg-mcp-route".into(), "shown".into()));
            "a route by header"
        }
        9 => {
            head.push((TOKEN_IN.into(), STRANGE_TOKEN.into()));
            "a token"
        }
        10 => {
            head.push(("authorization".into(), format!("Bearer {STRANGE_TOKEN}")));
            "a credential"
        }
        _ => "",
    }
}

fn attempt(head: Vec<(String, String)>, body: &str, says: String) -> Attempt {
    let mut bytes = b"POST /mcp HTTP/1.1\r\n".to_vec();
    for (name, value) in head {
        // What no header can hold is none: the rest of the attempt counts.
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(body.as_bytes());
    Attempt {
        bytes,
        says,
        is_list: false,
        listens: body.contains("subscriptions/listen"),
    }
}

fn one<'a>(rng: &mut Rng, all: &[&'a str]) -> &'a str {
    all[below(rng, all.len())]
}

fn below(rng: &mut Rng, bound: usize) -> usize {
    usize::try_from(rng.below(bound.max(1) as u64)).unwrap_or(0)
}
