//! Calls in a dialect that the upstream does not speak: the subject translates each of them, and its answer.
//!
//! Invariant: nothing is measured whose answer was not seen to tell the upstream's own text and counts, in the client's dialect.
//! Not here: calls that the upstream takes as they are (`check`), sending (`load`).

use std::net::SocketAddr;

use load::client::Request;
use serde_json::Value;

use super::check;
use super::scenario::Scenario;
use crate::subject::{Client, Dialect};

#[cfg(test)]
mod tests;

const WHOLE: &str =
    r#"{"model":"race-model","max_tokens":64,"messages":[{"role":"user","content":"Answer."}]}"#;
const STREAM: &str = r#"{"model":"race-model","stream":true,"max_tokens":64,"messages":[{"role":"user","content":"Answer."}]}"#;

impl Dialect {
    /// A request as `client` wants it, with what is asked of the upstream in headers.
    pub(crate) fn request(
        self,
        client: &Client,
        asks: &[(String, String)],
        body: &[u8],
    ) -> Result<Request, String> {
        let Self::Anthropic = self;
        let mut client = client.clone();
        client.path = Some("/v1/messages".into());
        let version = ("anthropic-version".to_owned(), "2023-06-01".to_owned());
        client.headers.extend([version]);
        check::request(Some(&client), asks, body)
    }
}

/// What an answer told, whatever it was written in.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    text: String,
    prompt: u64,
    completion: u64,
    /// Whether it said that it is over.
    is_whole: bool,
}

/// Asks for an answer of the kind that `scenario` measures, and holds it against the upstream's.
pub(crate) fn check(
    (client, dialect): (&Client, Dialect),
    address: SocketAddr,
    upstream: SocketAddr,
    scenario: &Scenario,
) -> Result<(), String> {
    let what = "the translated answer";
    let (expected, got) = if scenario.streams() {
        let asks = check::stream_asks();
        let request = dialect.request(client, &asks, STREAM.as_bytes())?;
        (
            chat_events(&check::upstreams_stream(upstream)?),
            anthropic_events(&check::ask(address, &request, what)?.body),
        )
    } else {
        let request = dialect.request(client, &[], WHOLE.as_bytes())?;
        (
            chat(&check::upstreams_answer(upstream)?),
            anthropic(&check::ask(address, &request, what)?.body),
        )
    };
    if got == expected {
        return Ok(());
    }
    Err(format!(
        "{what} tells {got:?}, and the upstream's told {expected:?}"
    ))
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

fn number(of: &Value) -> u64 {
    of.as_u64().unwrap_or_default()
}

/// The data of each event of a stream.
fn events(body: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(body);
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(|data| json(data.trim().as_bytes())).collect()
}

fn chat(body: &[u8]) -> Told {
    let answer = json(body);
    let choice = &answer["choices"][0];
    Told {
        text: choice["message"]["content"]
            .as_str()
            .unwrap_or_default()
            .into(),
        prompt: number(&answer["usage"]["prompt_tokens"]),
        completion: number(&answer["usage"]["completion_tokens"]),
        is_whole: choice["finish_reason"].is_string(),
    }
}

fn chat_events(body: &[u8]) -> Told {
    let mut told = Told::default();
    for event in events(body) {
        let choice = &event["choices"][0];
        told.text
            .push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        told.is_whole |= choice["finish_reason"].is_string();
        let usage = &event["usage"];
        told.prompt = told.prompt.max(number(&usage["prompt_tokens"]));
        told.completion = told.completion.max(number(&usage["completion_tokens"]));
    }
    told
}

fn anthropic(body: &[u8]) -> Told {
    let answer = json(body);
    let parts = answer["content"].as_array().into_iter().flatten();
    let texts = parts.filter_map(|part| part["text"].as_str());
    Told {
        text: texts.collect(),
        prompt: number(&answer["usage"]["input_tokens"]),
        completion: number(&answer["usage"]["output_tokens"]),
        is_whole: answer["stop_reason"].is_string(),
    }
}

fn anthropic_events(body: &[u8]) -> Told {
    let mut told = Told::default();
    for event in events(body) {
        told.text
            .push_str(event["delta"]["text"].as_str().unwrap_or_default());
        told.is_whole |= event["type"] == "message_stop";
        for usage in [&event["usage"], &event["message"]["usage"]] {
            told.prompt = told.prompt.max(number(&usage["input_tokens"]));
            told.completion = told.completion.max(number(&usage["output_tokens"]));
        }
    }
    told
}
