//! `vectors/translate`: a directory for each pair of a client's dialect and a backend's, a file for each case.
//!
//! A case gives the client's body and the backend's response; `UPDATE=1` writes what becomes of both. Each stream is cut at every
//! byte, and a request is told again with one message more, whose bytes have to begin the same.

mod memory;
mod pairs;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use bytes::Bytes;
use serde_json::Value;
use testing::eventstream::{event, exception};
use wire::dialect::Operation;
use wire::dialect::gemini::Named;
use wire::filter::{Content, Filter, Request, ResponseFilter, Stop};
use wire::head::{Known, ResponseHead};

use crate::{Dialect, Translation};

/// A second of Unix time.
const NOW: u64 = 1_700_000_000;
/// What ends the body of a response that broke off.
const BROKEN: &str = "(broken off)";

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/translate")
}

fn dialect(name: &str) -> Dialect {
    let known = Dialect::ALL
        .into_iter()
        .find(|dialect| dialect.as_str() == name);
    known.unwrap_or_else(|| panic!("{name} is no dialect"))
}

/// Each case: its file, its client's dialect and its backend's.
fn cases() -> Vec<(PathBuf, Dialect, Dialect)> {
    let mut cases = Vec::new();
    for pair in fs::read_dir(vectors()).expect("vectors") {
        let pair = pair.expect("a directory").path();
        let name = pair
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let (client, backend) = name.split_once("_to_").expect("a pair");
        for case in fs::read_dir(&pair).expect("a directory") {
            let case = case.expect("a file").path();
            cases.push((case, dialect(client), dialect(backend)));
        }
    }
    cases.sort_by(|one, other| one.0.cmp(&other.0));
    cases
}

/// The part of a case of this name.
fn part<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("=== {name}\n"))?;
    Some(
        rest.split("\n=== ")
            .next()
            .unwrap_or(rest)
            .trim_end_matches('\n'),
    )
}

/// The head of a response: its status and content type, and lines of further fields.
fn head_of(text: &str) -> (ResponseHead, &str) {
    let mut head = ResponseHead::new();
    let mut lines = text.lines();
    let first = lines.next().expect("a line");
    let (status, content_type) = first.split_once(' ').expect("status and type");
    head.status = status.parse().expect("a status");
    for line in lines {
        let (name, value) = line.split_once(": ").expect("a field");
        head.fields
            .push(name.as_bytes(), value.as_bytes())
            .expect("room");
    }
    head.fields
        .push(b"content-type", content_type.as_bytes())
        .expect("room");
    assert!(head.fields.get(Known::ContentType).is_some());
    (head, content_type)
}

/// How long the body of a response is, at the most.
fn length_of(response: &str) -> usize {
    let (head, body) = response.split_once("\n\n").expect("a head and a body");
    match Content::of(&head_of(head).0) {
        Content::Frames => body_of(Content::Frames, body.trim_end_matches(BROKEN), false).len(),
        _ => response.len(),
    }
}

/// The body of a response, as it comes: of binary events a case has one in a line, its name and its payload; a failure has a mark.
fn body_of(content: Content, body: &str, is_broken: bool) -> Vec<u8> {
    match content {
        Content::Frames => {
            let lines = body.lines().filter(|line| !line.is_empty());
            let messages = lines.map(|line| {
                let (name, payload) = line.split_once(' ').unwrap_or((line, ""));
                match name.strip_prefix('!') {
                    Some(name) => exception(name, payload),
                    None => event(name, payload),
                }
            });
            messages.collect::<Vec<_>>().concat()
        }
        // Events end with a blank line, which files lose at their end.
        Content::Events if !is_broken => format!("{body}\n\n").into_bytes(),
        _ => body.as_bytes().to_vec(),
    }
}

type Made = Result<(Request, Option<Box<dyn wire::filter::Answering>>), String>;

fn request(client: Dialect, backend: Dialect, body: &str) -> Made {
    let translation = Translation::new(backend, &[]);
    let mut request = asking(client, body);
    let asked = client.operation();
    match translation.request(asked, &mut request) {
        Ok(answering) => Ok((request, answering)),
        Err(unfit) => Err(unfit.what.into_owned()),
    }
}

/// A request of a client's, as policy gives it. Clients of Google's say in its path, a line before the body, what others say in there.
fn asking(client: Dialect, asked: &str) -> Request {
    let body = |body: &str| vec![Bytes::copy_from_slice(body.as_bytes())];
    if client != Dialect::Gemini {
        return Request {
            body: body(asked),
            ..Request::default()
        };
    }
    let (line, asked) = asked.split_once("\n\n").unwrap_or(("", asked));
    let target = line
        .strip_prefix("POST ")
        .unwrap_or("/models/m:generateContent");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = format!("/v1beta{path}");
    let fallback = "/v1beta/models/m:generateContent";
    let named = Named::of(&path).or_else(|| Named::of(fallback));
    let named = named.expect("a path of Google's");
    Request {
        model: Some((*named.model).into()),
        manner: named.manner(Some(query)),
        below: named.below.into(),
        body: body(asked),
        ..Request::default()
    }
}

fn shown_request(made: &Made) -> String {
    let mut shown = String::new();
    match made {
        Err(unfit) => writeln!(shown, "unfit: {unfit}"),
        Ok((request, _)) => {
            let path = request.path.as_deref().unwrap_or("");
            let query = request.query.as_deref().filter(|query| !query.is_empty());
            let query = query.map_or_else(String::new, |query| format!("?{query}"));
            writeln!(shown, "POST {path}{query}").expect("room");
            for (name, value) in &request.headers {
                writeln!(shown, "{name}: {}", String::from_utf8_lossy(value)).expect("room");
            }
            if !request.dropped.is_empty() {
                writeln!(shown, "(dropped: {})", request.dropped.join(", ")).expect("room");
            }
            let body = request.body.concat();
            writeln!(shown, "\n{}", String::from_utf8(body).expect("text"))
        }
    }
    .expect("room");
    shown
}

/// What becomes of a response that comes in pieces of this many bytes, but for the first, which has so many.
fn response(made: &Made, response: &str, first: usize, piece: usize) -> Option<String> {
    let (_, Some(answering)) = made.as_ref().ok()? else {
        return None;
    };
    let (head, body) = response.split_once("\n\n").expect("a head and a body");
    let (head, content_type) = head_of(head);
    let status = head.status;
    let content = Content::of(&head);
    let mut filter = answering
        .response(&head, content, NOW)
        .expect("it is filtered");
    let shape = filter.shape();
    let content_type = shape.map_or_else(|| content_type.into(), |shape| shape.content_type);
    let mut shown = format!("{status} {content_type}\n\n");
    let (body, is_broken) = match body.strip_suffix(BROKEN) {
        Some(body) => (body, true),
        None => (body, false),
    };
    let body = body_of(content, body, is_broken);
    let (out, stopped) = pass(&mut *filter, &body, (first, piece), is_broken);
    shown.push_str(String::from_utf8(out).expect("text").trim_end());
    if let Some(stop) = stopped {
        write!(shown, "\n(stopped: {stop:?})").expect("room");
    }
    Some(shown)
}

fn pass(
    filter: &mut dyn ResponseFilter,
    body: &[u8],
    (first, piece): (usize, usize),
    is_broken: bool,
) -> (Vec<u8>, Option<Stop>) {
    let mut out = Vec::new();
    let (first, rest) = body.split_at(first.min(body.len()));
    let mut pieces: Vec<&[u8]> = vec![first];
    pieces.extend(rest.chunks(piece));
    let last = pieces.len() - 1;
    for (nth, piece) in pieces.into_iter().enumerate() {
        if let Err(stop) = filter.pass(piece, nth == last && !is_broken, &mut out) {
            return (out.concat(), Some(stop));
        }
    }
    if is_broken {
        filter.release(&mut out);
    }
    (out.concat(), None)
}

#[expect(clippy::disallowed_methods, reason = "UPDATE=1 rewrites the vectors")]
#[test]
fn each_case_becomes_what_its_file_says() {
    let cases = cases();
    assert!(cases.len() >= 20, "{}", cases.len());
    let mut wrong = Vec::new();
    for (path, client, backend) in cases {
        let text = fs::read_to_string(&path).expect("a file");
        let about = text
            .split("\n=== ")
            .next()
            .expect("a first line")
            .trim_end();
        let asked = part(&text, "client request").expect("a client's request");
        let made = request(client, backend, asked);
        let mut now = format!("{about}\n\n=== client request\n{asked}\n");
        write!(now, "=== upstream request\n{}", shown_request(&made)).expect("room");
        if let Some(came) = part(&text, "upstream response") {
            let whole = response(&made, came, usize::MAX, 1).expect("a response to a request");
            write!(now, "=== upstream response\n{came}\n").expect("room");
            write!(now, "=== client response\n{whole}\n").expect("room");
            for first in 0..length_of(came) {
                let cut = response(&made, came, first, usize::MAX);
                assert_eq!(
                    cut.as_ref(),
                    Some(&whole),
                    "{} cut at {first}",
                    path.display()
                );
            }
            assert_eq!(
                response(&made, came, 0, 1),
                Some(whole),
                "{}",
                path.display()
            );
        }
        if env::var_os("UPDATE").is_some() {
            fs::write(&path, &now).expect("written");
        } else if now != text {
            wrong.push(format!("{}\n{now}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A conversation in a dialect, message by message.
fn history(client: Dialect) -> Vec<&'static str> {
    match client {
        Dialect::OpenAi => vec![
            r#"{"role":"user","content":"How warm is it in Turin?"}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"warmth","arguments":"{\"city\":\"Turin\"}"}}]}"#,
            r#"{"role":"tool","tool_call_id":"call_1","content":"21"}"#,
            r#"{"role":"assistant","content":"21 degrees."}"#,
            r#"{"role":"user","content":[{"type":"text","text":"And now?"}]}"#,
        ],
        Dialect::Anthropic => vec![
            r#"{"role":"user","content":"How warm is it in Turin?"}"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"warmth","input":{"city":"Turin"}}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"21"}]}"#,
            r#"{"role":"assistant","content":[{"type":"text","text":"21 degrees."}]}"#,
            r#"{"role":"user","content":"And now?"}"#,
        ],
        Dialect::Gemini => vec![
            r#"{"role":"user","parts":[{"text":"How warm is it in Turin?"}]}"#,
            r#"{"role":"model","parts":[{"functionCall":{"name":"warmth","args":{"city":"Turin"}}}]}"#,
            r#"{"role":"user","parts":[{"functionResponse":{"name":"warmth","response":{"output":"21"}}}]}"#,
            r#"{"role":"model","parts":[{"text":"21 degrees."}]}"#,
            r#"{"role":"user","parts":[{"text":"And now?"}]}"#,
        ],
        Dialect::Vertex
        | Dialect::Azure
        | Dialect::Bedrock
        | Dialect::Cohere
        | Dialect::AnthropicOnVertex => {
            unreachable!("no client speaks it")
        }
        // What a model made in one turn, and what tools gave for it, is one step.
        Dialect::Responses => vec![
            r#"{"role":"user","content":"How warm is it in Turin?"}"#,
            r#"{"type":"reasoning","summary":[],"encrypted_content":"tollgate:anthropic:thinking:EqQB:Ask."},{"type":"function_call","call_id":"call_1","name":"warmth","arguments":"{\"city\":\"Turin\"}"},{"type":"custom_tool_call","call_id":"call_2","name":"note","input":"Turin"},{"type":"function_call_output","call_id":"call_1","output":"21"},{"type":"custom_tool_call_output","call_id":"call_2","output":"noted"}"#,
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"21 degrees."}]}"#,
            r#"{"role":"user","content":[{"type":"input_text","text":"And now?"}]}"#,
        ],
    }
}

/// A call with this conversation.
fn call(client: Dialect, messages: &[&str]) -> String {
    let messages = messages.join(",");
    match client {
        Dialect::OpenAi => format!(r#"{{"model":"m","messages":[{messages}]}}"#),
        Dialect::Anthropic => format!(r#"{{"model":"m","max_tokens":9,"messages":[{messages}]}}"#),
        Dialect::Responses => format!(r#"{{"model":"m","input":[{messages}]}}"#),
        Dialect::Gemini => format!(r#"{{"contents":[{messages}]}}"#),
        Dialect::Vertex
        | Dialect::Azure
        | Dialect::Bedrock
        | Dialect::Cohere
        | Dialect::AnthropicOnVertex => {
            unreachable!("no client speaks it")
        }
    }
}

/// The same call, with the tools of the conversations here.
fn with_tools(client: Dialect, body: &str) -> String {
    if client == Dialect::Gemini {
        let tools = ["warmth", "note", "now"].map(|name| format!(r#"{{"name":"{name}"}}"#));
        let tools = tools.join(",");
        let tools = format!(r#"{{"tools":[{{"functionDeclarations":[{tools}]}}],"#);
        return body.replacen('{', &tools, 1);
    }
    let tools = ["warmth", "note", "now"].map(|name| match client {
        Dialect::OpenAi => format!(r#"{{"type":"function","function":{{"name":"{name}"}}}}"#),
        Dialect::Anthropic => format!(r#"{{"name":"{name}","input_schema":{{"type":"object"}}}}"#),
        _ => format!(r#"{{"type":"function","name":"{name}"}}"#),
    });
    body.replacen('{', &format!(r#"{{"tools":[{}],"#, tools.join(",")), 1)
}

/// The list of messages, as it is written in a body of this dialect.
fn list(backend: Dialect, body: &[u8]) -> String {
    let members: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(body).expect("JSON");
    let name = match backend {
        Dialect::OpenAi
        | Dialect::Azure
        | Dialect::Anthropic
        | Dialect::AnthropicOnVertex
        | Dialect::Bedrock
        | Dialect::Cohere => "messages",
        Dialect::Responses => "input",
        Dialect::Gemini | Dialect::Vertex => "contents",
    };
    assert!(members.contains_key(name));
    let text = std::str::from_utf8(body).expect("text");
    let (_, rest) = text
        .split_once(&format!("\"{name}\":"))
        .expect("it is there");
    let mut values =
        serde_json::Deserializer::from_str(rest).into_iter::<&serde_json::value::RawValue>();
    values
        .next()
        .expect("a value")
        .expect("JSON")
        .get()
        .to_owned()
}

#[test]
fn a_longer_history_has_the_same_bytes_at_its_front() {
    for (client, backend) in pairs().filter(|(_, backend)| backend.is_target()) {
        if is_moved(client, backend) {
            continue;
        }
        let history = history(client);
        let lists: Vec<String> = (1..=history.len())
            .map(|length| {
                let body = call(client, &history[..length]);
                let made = request(client, backend, &with_tools(client, &body));
                list(backend, &made.expect("it can be said").0.body.concat())
            })
            .collect();
        for (shorter, longer) in lists.iter().zip(&lists[1..]) {
            let front = shorter.strip_suffix(']').expect("a list");
            assert!(
                longer.starts_with(front),
                "{client:?} to {backend:?}:\n{shorter}\n{longer}"
            );
        }
    }
}

/// Whether a call passes to a backend that has it at another path.
fn is_moved(client: Dialect, backend: Dialect) -> bool {
    matches!(
        (client, backend),
        (Dialect::Gemini, Dialect::Vertex)
            | (Dialect::OpenAi, Dialect::Azure)
            | (Dialect::Anthropic, Dialect::AnthropicOnVertex)
    )
}

/// Every two dialects.
fn pairs() -> impl Iterator<Item = (Dialect, Dialect)> {
    let all = Dialect::ALL.into_iter();
    let clients = all.filter(|dialect| dialect.is_source());
    let pairs = clients.flat_map(|client| Dialect::ALL.map(|backend| (client, backend)));
    pairs.filter(|(client, backend)| client != backend)
}

#[test]
fn a_call_in_a_dialect_that_the_backend_speaks_passes_as_it_came() {
    let pairs = pairs()
        .filter(|(client, backend)| *client != Dialect::Gemini && !is_moved(*client, *backend));
    for (client, backend) in pairs {
        let operation = client.operation();
        assert!(Translation::new(backend, &[]).applies(operation));
        assert!(!Translation::new(backend, &[client]).applies(operation));
        assert!(!Translation::new(client, &[]).applies(operation));
    }
}

#[test]
fn a_call_is_made_into_the_first_dialect_that_it_can_be() {
    let asks = |speaks: Translation, asked: Operation| {
        let mut request = Request {
            body: vec![Bytes::from(call(
                Dialect::Anthropic,
                &history(Dialect::Anthropic),
            ))],
            ..Request::default()
        };
        let made = speaks.request(asked, &mut request);
        made.map(|_| request.path).map_err(|unfit| unfit.what)
    };
    let both = Translation::new(Dialect::Responses, &[Dialect::OpenAi]);
    assert_eq!(both.operation(Operation::Messages), Operation::Chat);
    assert_eq!(
        asks(both, Operation::Messages),
        Ok(Some("/chat/completions".into()))
    );
    let alone = Translation::new(Dialect::Responses, &[]);
    assert_eq!(
        asks(alone, Operation::Messages),
        Err("no call is translated for a backend that speaks responses alone".into())
    );
}

#[test]
fn each_api_counts_prompts_of_its_own_alone() {
    for (asked, speaks) in [
        (Operation::CountTokens, Dialect::Anthropic),
        (Operation::InputTokens, Dialect::Responses),
    ] {
        for backend in Dialect::ALL {
            let passes = Translation::new(Dialect::OpenAi, &[backend]).passes(asked);
            let too = (speaks, backend) == (Dialect::Anthropic, Dialect::AnthropicOnVertex);
            assert_eq!(passes, backend == speaks || too, "{asked:?} at {backend:?}");
        }
        let body = match asked {
            Operation::CountTokens => r#"{"model":"m","messages":[{"role":"user","content":"a"}]}"#,
            _ => r#"{"model":"m","instructions":"s","input":"a"}"#,
        };
        let request = Request {
            body: vec![Bytes::from_static(body.as_bytes())],
            ..Request::default()
        };
        let engine = Translation::new(Dialect::OpenAi, &[]);
        let (call, prompt) = engine.prompt_to_count(asked, &request).expect("a prompt");
        assert_eq!(call, Operation::Chat);
        let prompt = String::from_utf8(prompt.concat()).expect("text");
        assert!(prompt.contains(r#""messages":["#), "{prompt}");
    }
}

#[test]
fn what_a_translation_keeps_of_an_answer_is_told() {
    let made = request(
        Dialect::Anthropic,
        Dialect::OpenAi,
        r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}]}"#,
    );
    let answering = made.expect("a call").1.expect("an answer");
    for (status, kind) in [
        ("200 application/json", Content::Json),
        ("200 text/event-stream", Content::Events),
        ("500 application/json", Content::Json),
    ] {
        let (head, _) = head_of(status);
        let mut filter = answering.response(&head, kind, 0).expect("a filter");
        assert_eq!(filter.kept(), 0);
        let piece = b"data: {\"choices\":[";
        let mut out = Vec::new();
        filter.pass(piece, false, &mut out).expect("it goes on");
        assert_eq!(filter.kept(), piece.len(), "{status}");
        assert_eq!(filter.held(), 0, "it is nothing of the route's");
    }
}

#[test]
fn a_backend_of_google_or_amazon_is_asked_for_its_own_call_and_for_no_other() {
    for (backend, call) in [
        (Dialect::Gemini, Operation::GenerateContent),
        (Dialect::Vertex, Operation::GenerateContent),
        (Dialect::Bedrock, Operation::Converse),
    ] {
        let speaks = Translation::new(backend, &[]);
        for asked in [Operation::Chat, Operation::Messages, Operation::Responses] {
            assert_eq!(speaks.operation(asked), call);
        }
        if backend != Dialect::Bedrock {
            for asked in [Operation::GenerateContent, Operation::CountContent] {
                assert_eq!(speaks.operation(asked), asked);
            }
            assert_eq!(
                speaks.operation(Operation::Embeddings),
                Operation::EmbedContent
            );
        }
        for asked in [Operation::Images, Operation::CountTokens] {
            assert!(speaks.applies(asked), "{asked:?}");
            let mut request = Request::default();
            let unfit = speaks.request(asked, &mut request).map(|_| ());
            let says = unfit.expect_err("it has no counterpart").what;
            assert!(says.contains("to translate to"), "{says}");
        }
        assert!(!speaks.applies(Operation::Models));
    }
}

/// What a backend of Google's answers: a text that is signed where it ends, and two calls of which the first is signed.
const SIGNED: [&str; 4] = [
    r#"{"text":"I look."}"#,
    r#"{"text":"","thoughtSignature":"Zm9v+/=="}"#,
    r#"{"functionCall":{"id":"fc_1","name":"now","args":{}},"thoughtSignature":"EjQK-_=="}"#,
    r#"{"functionCall":{"id":"fc_2","name":"now","args":{}}}"#,
];

/// A call of this client, who asks to be shown what is thought, with what an answer was and what tools gave for it.
fn asked_again(client: Dialect, answer: Option<&Value>) -> String {
    let list = |items: &Value| {
        let items = items.to_string();
        items[1..items.len() - 1].to_owned()
    };
    match client {
        Dialect::OpenAi => {
            let rest = answer.map_or_else(String::new, |answer| {
                let message = &answer["choices"][0]["message"];
                format!(r#",{message},{{"role":"tool","tool_call_id":"fc_1","content":"1"}},{{"role":"tool","tool_call_id":"fc_2","content":"2"}}"#)
            });
            format!(r#"{{"model":"m","messages":[{{"role":"user","content":"a"}}{rest}]}}"#)
        }
        Dialect::Anthropic => {
            let rest = answer.map_or_else(String::new, |answer| {
                let content = &answer["content"];
                let calls = content.as_array().expect("blocks").iter();
                let ids = calls.filter_map(|block| block["id"].as_str());
                let results = ids.map(|id| {
                    format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"1"}}"#)
                });
                let results = results.collect::<Vec<_>>().join(",");
                format!(r#",{{"role":"assistant","content":{content}}},{{"role":"user","content":[{results}]}}"#)
            });
            format!(
                r#"{{"model":"m","max_tokens":9,"thinking":{{"type":"adaptive"}},"messages":[{{"role":"user","content":"a"}}{rest}]}}"#
            )
        }
        Dialect::Responses => {
            let rest = answer.map_or_else(String::new, |answer| {
                let output = list(&answer["output"]);
                format!(r#",{output},{{"type":"function_call_output","call_id":"fc_1","output":"1"}},{{"type":"function_call_output","call_id":"fc_2","output":"2"}}"#)
            });
            format!(r#"{{"model":"m","input":[{{"role":"user","content":"a"}}{rest}]}}"#)
        }
        Dialect::Gemini
        | Dialect::Vertex
        | Dialect::Azure
        | Dialect::Bedrock
        | Dialect::Cohere
        | Dialect::AnthropicOnVertex => {
            unreachable!("not asked here")
        }
    }
}

#[test]
fn passes_to_google_as_it_came_at_the_path_of_where_the_api_is() {
    let body = "{ \"contents\" : [] , \"odd\":1}";
    let table = [
        (
            Dialect::Gemini,
            "/models/m:generateContent",
            "/models/m:generateContent",
            None,
        ),
        (
            Dialect::Gemini,
            "/models/org/m:streamGenerateContent?alt=sse",
            "/models/org%2Fm:streamGenerateContent",
            Some("alt=sse"),
        ),
        (
            Dialect::Gemini,
            "/tunedModels/t:streamGenerateContent",
            "/tunedModels/t:streamGenerateContent",
            Some("alt=sse"),
        ),
        (
            Dialect::Vertex,
            "/models/m:generateContent",
            "/publishers/google/models/m:generateContent",
            None,
        ),
    ];
    for (backend, asked, path, query) in table {
        let (made, answering) =
            request(Dialect::Gemini, backend, &format!("POST {asked}\n\n{body}"))
                .expect("it passes");
        assert_eq!(made.body.concat(), body.as_bytes());
        assert_eq!(
            (made.path.as_deref(), made.query.as_deref()),
            (Some(path), query)
        );
        assert_eq!(
            answering.is_some(),
            asked == "/tunedModels/t:streamGenerateContent"
        );
    }
}

/// A call of OpenAI's embeddings, and what becomes of this answer.
fn embedded(backend: Dialect, body: &str, answer: &str) -> (Request, Option<String>) {
    let translation = Translation::new(backend, &[]);
    let mut request = Request {
        body: vec![Bytes::copy_from_slice(body.as_bytes())],
        ..Request::default()
    };
    let answering = translation.request(Operation::Embeddings, &mut request);
    let made = Ok((request.clone(), answering.expect("it can be said")));
    let told = response(&made, answer, 0, 1);
    (request, told)
}

#[test]
fn embeddings_of_openai_are_made_at_google_text_by_text_and_come_back_in_their_order() {
    let body = r#"{"model":"gemini-embedding-001","input":["a","b\n"],"dimensions":2,"user":"u"}"#;
    let answer = "200 application/json\n\n{\"embeddings\":[{\"values\":[0.10, -1]},{\"values\":[2,3e-1]}],\"usageMetadata\":{\"promptTokenCount\":5}}";
    let (made, told) = embedded(Dialect::Gemini, body, answer);
    assert_eq!(
        made.path.as_deref(),
        Some("/models/gemini-embedding-001:batchEmbedContents")
    );
    assert_eq!(made.dropped, ["user"]);
    assert_eq!(
        made.body.concat(),
        br#"{"requests":[{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"a"}]},"outputDimensionality":2},{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"b\n"}]},"outputDimensionality":2}]}"#
    );
    let expected = r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.10, -1]},{"object":"embedding","index":1,"embedding":[2,3e-1]}],"model":"gemini-embedding-001","usage":{"prompt_tokens":5,"total_tokens":5}}"#;
    assert_eq!(told, Some(format!("200 application/json\n\n{expected}")));
    // In binary, as OpenAI's SDKs ask for it.
    let body = r#"{"model":"m","input":"a","encoding_format":"base64","dimensions":2}"#;
    let answer = "200 application/json\n\n{\"embedding\":{\"values\":[1.0,-2.5]}}";
    let (made, told) = embedded(Dialect::Vertex, body, answer);
    assert_eq!(
        made.path.as_deref(),
        Some("/publishers/google/models/m:embedContent")
    );
    assert_eq!(
        made.body.concat(),
        br#"{"content":{"parts":[{"text":"a"}]},"embedContentConfig":{"outputDimensionality":2}}"#
    );
    let told = told.expect("an answer");
    assert!(told.contains(r#""embedding":"AACAPwAAIMA=""#), "{told}");
    // An answer that is short of one is none, and an error is one of the client's API.
    let (_, short) = embedded(
        Dialect::Gemini,
        r#"{"model":"m","input":["a","b"]}"#,
        answer,
    );
    assert!(short.expect("told").ends_with("(stopped: Malformed)"));
    let failed = "429 application/json\n\n{\"error\":{\"code\":429,\"message\":\"Slow down.\",\"status\":\"RESOURCE_EXHAUSTED\"}}";
    let (_, told) = embedded(Dialect::Gemini, body, failed);
    assert!(told.expect("told").contains(r#""type":"rate_limit_error""#));
}

#[test]
fn embeddings_of_openai_are_made_at_cohere_which_wants_to_know_what_they_are_for() {
    let body = r#"{"model":"embed-v4.0","input":["a","b"],"dimensions":2,"user":"u"}"#;
    let answer = "200 application/json\n\n{\"id\":\"1\",\"embeddings\":{\"float\":[[0.10, -1],[2,3e-1]]},\"texts\":[\"a\",\"b\"],\"meta\":{\"api_version\":{\"version\":\"2\"},\"billed_units\":{\"input_tokens\":5}}}";
    let (made, told) = embedded(Dialect::Cohere, body, answer);
    assert_eq!(made.path.as_deref(), Some("/embed"));
    assert_eq!(made.dropped, ["user"]);
    assert_eq!(
        made.body.concat(),
        br#"{"model":"embed-v4.0","input_type":"search_document","texts":["a","b"],"embedding_types":["float"],"output_dimension":2}"#
    );
    let expected = r#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.10, -1]},{"object":"embedding","index":1,"embedding":[2,3e-1]}],"model":"embed-v4.0","usage":{"prompt_tokens":5,"total_tokens":5}}"#;
    assert_eq!(told, Some(format!("200 application/json\n\n{expected}")));
    // A member of servers of the same kin says it.
    let body = r#"{"model":"m","input":"a","input_type":"search_query"}"#;
    let (made, told) = embedded(Dialect::Cohere, body, answer);
    assert!(
        made.body
            .concat()
            .starts_with(br#"{"model":"m","input_type":"search_query","#)
    );
    assert!(
        told.expect("told").ends_with("(stopped: Malformed)"),
        "one is too many"
    );
}

#[test]
fn embeddings_that_google_cannot_be_told_are_refused_by_their_place() {
    for (body, says) in [
        (r#"{"model":"m","input":[1,2]}"#, "input[0]: is no text"),
        (r#"{"model":"m","input":[[1]]}"#, "input[0]: is no text"),
        (r#"{"input":"a"}"#, "model: is missing"),
        (r#"{"model":"m","input":"a","odd":1}"#, "odd: is a member"),
        (
            r#"{"model":"m","input":"a","input_type":"search_query"}"#,
            "input_type: is a member",
        ),
        (
            r#"{"model":"m","input":"a","encoding_format":"int8"}"#,
            "encoding_format: \"int8\" is no format",
        ),
    ] {
        let mut request = Request {
            body: vec![Bytes::copy_from_slice(body.as_bytes())],
            ..Request::default()
        };
        let speaks = Translation::new(Dialect::Gemini, &[]);
        let unfit = speaks
            .request(Operation::Embeddings, &mut request)
            .map(|_| ());
        let what = unfit.expect_err("refused").what;
        assert!(what.starts_with(says), "{body}: {what}");
    }
}

#[test]
fn a_call_of_openai_passes_to_azure_as_it_came_below_the_deployment_of_its_model() {
    let azure = Translation::new(Dialect::Azure, &[Dialect::Responses]);
    let table = [
        (Operation::Chat, "/deployments/gpt-5/chat/completions"),
        (Operation::Embeddings, "/deployments/gpt-5/embeddings"),
    ];
    for (asked, path) in table {
        assert!(azure.applies(asked));
        assert_eq!(azure.operation(asked), asked);
        let mut request = Request {
            model: Some("gpt-5".into()),
            body: vec![Bytes::from_static(b"{ }")],
            ..Request::default()
        };
        let answering = azure.request(asked, &mut request).expect("it passes");
        assert!(answering.is_none());
        assert_eq!(request.path.as_deref(), Some(path));
        assert_eq!(request.body.concat(), b"{ }");
    }
    // What nobody reads names no model, and no path.
    let form = azure.request(Operation::Transcriptions, &mut Request::default());
    let unfit = form.map(|_| ()).expect_err("nowhere to go");
    assert!(unfit.what.contains("names the model"));
    assert!(
        !azure.applies(Operation::Responses),
        "it has no deployment in its path"
    );
}

#[test]
fn a_stream_that_its_client_wants_as_a_list_is_one_of_the_same_items() {
    let made = request(
        Dialect::Gemini,
        Dialect::Gemini,
        "POST /models/m:streamGenerateContent\n\n{\"contents\":[]}",
    );
    let items = [r#"{"a": 1}"#, r#"{"b":[2]}"#];
    let events = format!(
        "200 text/event-stream\n\ndata: {}\r\n\r\ndata: {}\r\n\r\n",
        items[0], items[1]
    );
    let whole = format!("200 application/json\n\n[{}]", items.join(",\r\n"));
    for first in 0..events.len() {
        assert_eq!(
            response(&made, &events, first, usize::MAX).as_ref(),
            Some(&whole)
        );
    }
    let broken = format!(
        "200 text/event-stream\n\ndata: {}\r\n\r\n(broken off)",
        items[0]
    );
    assert_eq!(
        response(&made, &broken, 0, 1),
        Some(format!("200 application/json\n\n[{}", items[0]))
    );
    assert_eq!(
        response(&made, "200 text/event-stream\n\n", 0, 1),
        Some("200 application/json\n\n[]".to_owned())
    );
    // What is no JSON would be read as part of the list: it is no item, and the list has no end.
    for odd in ["1],[{}", "{\"a\":", "<html>"] {
        let events = format!(
            "200 text/event-stream\n\ndata: {}\n\ndata: {odd}\n\ndata: {}",
            items[0], items[1]
        );
        let cut = format!("200 application/json\n\n[{}", items[0]);
        for first in [0, events.len()] {
            let told = response(&made, &events, first, 1).expect("it is filtered");
            assert!(told.starts_with(&cut), "{odd}: {told}");
            assert!(
                !told.contains("\"b\"") && told.contains("Malformed"),
                "{odd}: {told}"
            );
        }
    }
}

#[test]
fn what_google_signed_comes_back_byte_for_byte_where_it_stood() {
    let parts = SIGNED.join(",");
    let answer = format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":[{parts}]}},"finishReason":"STOP"}}],"responseId":"r","modelVersion":"m"}}"#
    );
    for (client, backend) in pairs().filter(|(_, backend)| *backend == Dialect::Gemini) {
        let made = request(client, backend, &asked_again(client, None));
        let told = response(&made, &format!("200 application/json\n\n{answer}"), 0, 1);
        let told = told.expect("an answer");
        let (_, told) = told.split_once("\n\n").expect("a body");
        let told: Value = serde_json::from_str(told).expect("JSON");
        let again = request(client, backend, &asked_again(client, Some(&told)));
        let contents = list(backend, &again.expect("it can be said").0.body.concat());
        let expected = match client {
            // It has no place for the signature of a text, which no model has to see again.
            Dialect::OpenAi => [SIGNED[0], SIGNED[2], SIGNED[3]].join(","),
            _ => parts.clone(),
        };
        let turn = format!(r#"{{"role":"model","parts":[{expected}]}}"#);
        assert!(contents.contains(&turn), "{client:?}: {contents}");
    }
}

/// The data of the events that a case's client gets, where it gets a response's stream.
fn streams_of_responses() -> Vec<(PathBuf, Vec<Value>)> {
    let of_responses = cases()
        .into_iter()
        .filter(|(_, client, _)| *client == Dialect::Responses);
    let streams = of_responses.filter_map(|(path, ..)| {
        let text = fs::read_to_string(&path).expect("a file");
        let events = part(&text, "client response")?.strip_prefix("200 text/event-stream")?;
        let data = events
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let events = data.map(|data| serde_json::from_str(data).expect("JSON"));
        Some((path, events.collect()))
    });
    streams.collect()
}

#[test]
fn items_of_a_response_are_added_told_and_done_and_its_end_repeats_them() {
    let streams = streams_of_responses();
    assert!(streams.len() >= 20, "{}", streams.len());
    for (path, events) in streams {
        let path = path.display();
        // Of each item: its id, what was told of it in deltas, and how it was when it was done.
        let mut items: Vec<(Value, String, Option<Value>)> = Vec::new();
        for (nth, event) in events.iter().enumerate() {
            let kind = event["type"].as_str().expect("a type");
            assert_eq!(event["sequence_number"], nth, "{path}");
            let Some(at) = event["output_index"].as_u64() else {
                continue;
            };
            let at = usize::try_from(at).expect("a place");
            if kind == "response.output_item.added" {
                assert_eq!(at, items.len(), "{path}");
                items.push((event["item"]["id"].clone(), String::new(), None));
                continue;
            }
            let (id, told, done) = &mut items[at];
            assert!(done.is_none(), "{path}: {kind} after the end");
            let named = event.get("item_id").unwrap_or(&event["item"]["id"]);
            assert_eq!(named, id, "{path}");
            if let Some(delta) = event["delta"].as_str() {
                told.push_str(delta);
            }
            if kind == "response.output_item.done" {
                let item = &event["item"];
                let parts = item["content"].as_array().into_iter().flatten();
                let said: String = parts
                    .map(|part| part.get("text").unwrap_or(&part["refusal"]))
                    .chain([&item["input"], &item["arguments"]])
                    .filter_map(Value::as_str)
                    .collect();
                assert_eq!(said, *told, "{path}");
                *done = Some(item.clone());
            }
        }
        let last = events.last().expect("an end");
        let output = last["response"]["output"].as_array().expect("items");
        assert_eq!(output.len(), items.len(), "{path}");
        let is_whole = last["type"] == "response.completed";
        for (item, (id, _, done)) in output.iter().zip(items) {
            assert_eq!(item["id"], id, "{path}");
            match done {
                Some(done) => assert_eq!(*item, done, "{path}"),
                None => assert!(!is_whole && item["status"] == "incomplete", "{path}"),
            }
        }
    }
}

/// What a filter makes of binary events, once all of them have come.
fn streamed(client: Dialect, body: &[u8], piece: usize) -> (String, Option<Stop>) {
    let asked = asked_again(client, None).replacen('{', r#"{"stream":true,"#, 1);
    let (_, answering) = request(client, Dialect::Bedrock, &asked).expect("it can be said");
    let (head, _) = head_of("200 application/vnd.amazon.eventstream");
    let answering = answering.expect("it is translated");
    let mut filter = answering
        .response(&head, Content::Frames, NOW)
        .expect("it is filtered");
    let (out, stopped) = pass(&mut *filter, body, (0, piece), false);
    (String::from_utf8(out).expect("text"), stopped)
}

#[test]
fn a_binary_stream_that_is_cut_in_a_message_or_damaged_is_no_whole_answer() {
    let lines = "messageStart {}\ncontentBlockDelta {\"contentBlockIndex\":0,\"delta\":{\"text\":\"Hel\"}}\nmessageStop {\"stopReason\":\"end_turn\"}\nmetadata {\"usage\":{\"inputTokens\":1,\"outputTokens\":2,\"totalTokens\":3}}";
    let whole = body_of(Content::Frames, lines, false);
    let usage = whole.len() - body_of(Content::Frames, "metadata {}", false).len() - 40;
    for client in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Responses] {
        for piece in [1, 7, usize::MAX] {
            let (told, stopped) = streamed(client, &whole, piece);
            assert_eq!(stopped, None, "{told}");
            assert!(!told.contains("error\":{"), "{told}");
            // Though a reason to stop was told before the cut.
            for cut in [usage, whole.len() - 1] {
                let (told, stopped) = streamed(client, &whole[..cut], piece);
                assert_eq!(stopped, Some(Stop::Malformed), "{told}");
                assert!(told.contains("could not be read"), "{told}");
            }
            let mut damaged = whole.clone();
            damaged[usage] ^= 1;
            let (told, stopped) = streamed(client, &damaged, piece);
            assert_eq!(stopped, Some(Stop::Malformed), "{told}");
            assert!(
                told.contains("Hel") && told.contains("could not be read"),
                "{told}"
            );
            // What follows the end changes nothing.
            let (more, stopped) = streamed(client, &[&whole[..], b"more"].concat(), piece);
            assert_eq!((more, stopped), streamed(client, &whole, piece));
        }
    }
}

#[test]
fn what_a_model_on_bedrock_signed_comes_back_byte_for_byte_where_it_stood() {
    let thought = r#"{"reasoningContent":{"reasoningText":{"text":"Look: twice.","signature":"EqQB+/=="}}},{"reasoningContent":{"redactedContent":"cmVk+/=="}}"#;
    let calls = r#"{"toolUse":{"toolUseId":"fc_1","name":"now","input":{}}},{"toolUse":{"toolUseId":"fc_2","name":"now","input":{}}}"#;
    let answer = format!(
        r#"{{"output":{{"message":{{"role":"assistant","content":[{thought},{calls}]}}}},"stopReason":"tool_use","usage":{{"inputTokens":1,"outputTokens":1,"totalTokens":2}}}}"#
    );
    for client in [Dialect::OpenAi, Dialect::Anthropic, Dialect::Responses] {
        let asked = |answer: Option<&Value>| {
            let model = r#""model":"anthropic.claude-x""#;
            let body = asked_again(client, answer).replacen(r#""model":"m""#, model, 1);
            request(client, Dialect::Bedrock, &with_tools(client, &body))
        };
        let made = asked(None);
        let told = response(&made, &format!("200 application/json\n\n{answer}"), 0, 1);
        let told = told.expect("an answer");
        let (_, told) = told.split_once("\n\n").expect("a body");
        let told: Value = serde_json::from_str(told).expect("JSON");
        let again = asked(Some(&told)).expect("it can be said");
        let expected = match client {
            // It has no place for what is signed.
            Dialect::OpenAi => calls.to_owned(),
            _ => format!("{thought},{calls}"),
        };
        let turn = format!(r#"{{"role":"assistant","content":[{expected}]}}"#);
        let messages = list(Dialect::Bedrock, &again.0.body.concat());
        assert!(messages.contains(&turn), "{client:?}: {messages}");
    }
}

#[test]
fn random_bodies_and_answers_are_read_or_refused() {
    let seed = testing::seed("translate::random_bodies_and_answers");
    let mut state = seed;
    let mut next = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits")
    };
    let cases = cases();
    for _ in 0..2_000 {
        let (path, client, backend) = &cases[next() % cases.len()];
        let text = fs::read_to_string(path).expect("a file");
        let mutated = |text: &str, next: &mut dyn FnMut() -> usize| {
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..1 + next() % 3 {
                if bytes.is_empty() {
                    break;
                }
                let at = next() % bytes.len();
                match next() % 3 {
                    0 => bytes[at] = b"{}[],:\"\\0n"[next() % 10],
                    1 => drop(bytes.remove(at)),
                    _ => bytes.truncate(at),
                }
            }
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let asked = part(&text, "client request").expect("a request");
        let _read_or_refused = request(*client, *backend, &mutated(asked, &mut next));
        let made = request(*client, *backend, asked);
        if let Some(came) = part(&text, "upstream response")
            && let Some((head, body)) = came.split_once("\n\n")
        {
            let came = format!("{head}\n\n{}", mutated(body, &mut next));
            let _read_or_stopped = response(&made, &came, usize::MAX, 1);
        }
    }
}

#[test]
fn a_body_of_a_hundred_thousand_members_is_refused_before_they_are_compared() {
    let members: String = (0..100_000).fold(String::new(), |mut all, n| {
        write!(all, ",\"m{n}\":1").expect("room");
        all
    });
    let bodies = [
        format!(r#"{{"model":"m","messages":[]{members}}}"#),
        format!(r#"{{"model":"m","messages":[{{"role":"user","content":"a"{members}}}]}}"#),
    ];
    for body in bodies {
        let unfit = request(Dialect::OpenAi, Dialect::Anthropic, &body).expect_err("refused");
        assert!(unfit.contains("more of them than any API has"), "{unfit}");
    }
}

#[test]
fn an_item_that_is_no_object_is_refused_by_its_place() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"a"},7]}"#;
    let unfit = request(Dialect::OpenAi, Dialect::Anthropic, body).expect_err("refused");
    assert_eq!(unfit, "messages[1]: is no object");
    let twice = r#"{"model":"m","messages":[{"role":"user","content":"a","content":"b"}]}"#;
    let unfit = request(Dialect::OpenAi, Dialect::Anthropic, twice).expect_err("refused");
    assert!(
        unfit.starts_with("messages[0]: says a member twice"),
        "{unfit}"
    );
}

#[test]
fn a_call_of_anthropics_goes_to_its_model_at_vertex_ai_with_all_else_as_it_came() {
    let speaks = Translation::new(Dialect::AnthropicOnVertex, &[]);
    let sent = |asked: Operation, body: &str| {
        let mut request = Request {
            body: vec![Bytes::from(body.to_owned())],
            model: Some("claude-sonnet-4-5@20250929".into()),
            ..Request::default()
        };
        speaks.request(asked, &mut request).expect("it is fit");
        let body = String::from_utf8(request.body.concat()).expect("a text");
        (request.path.expect("a path"), body)
    };
    let whole =
        r#"{"model":"claude-sonnet-4-5@20250929","max_tokens":9,"n":1.50,"x":null,"messages":[]}"#;
    let (path, body) = sent(Operation::Messages, whole);
    let at = "/publishers/anthropic/models/";
    assert_eq!(path, format!("{at}claude-sonnet-4-5@20250929:rawPredict"));
    let version = r#"{"anthropic_version":"vertex-2023-10-16","#;
    let rest = r#""max_tokens":9,"n":1.50,"x":null,"messages":[]}"#;
    assert_eq!(body, format!("{version}{rest}"));
    let (path, _) = sent(
        Operation::Messages,
        r#"{"stream":true,"anthropic_version":"x"}"#,
    );
    assert_eq!(
        path,
        format!("{at}claude-sonnet-4-5@20250929:streamRawPredict")
    );
    let (path, body) = sent(Operation::CountTokens, r#"{"model":"m","messages":[]}"#);
    assert_eq!(path, format!("{at}count-tokens:rawPredict"));
    assert_eq!(body, format!("{version}\"model\":\"m\",\"messages\":[]}}"));
}
