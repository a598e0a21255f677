//! One expectation of answers: headers, members, bytes, the end of a stream, usage.
//!
//! Invariant: bytes are compared with what the upstream handed to its connection for that very call.

use serde_json::Value;

use super::{Exchange, Found};
use crate::verify::suite::{Answers, StreamEnd};
use crate::verify::upstream::{Seen, Usage};

/// Answers that are not whole are faults, unless broken ones were asked for.
pub(super) fn whole_ones(found: &mut Found, asked: &[Answers], exchanges: &[Exchange]) {
    for exchange in exchanges {
        let answer = &exchange.answer;
        let may_break = asked.iter().any(|asked| {
            let is_meant = asked
                .status
                .as_ref()
                .is_none_or(|code| code.takes(answer.status));
            is_meant && asked.stream.is_some()
        });
        if let (false, Some(says)) = (may_break, &answer.broken) {
            let status = answer.status;
            found.fault(format!("an answer of status {status} is not whole: {says}"));
        }
    }
}

/// What one expectation finds.
pub(super) fn check(found: &mut Found, asked: &Answers, exchanges: &[Exchange]) {
    let is_meant = |exchange: &&Exchange| {
        asked
            .status
            .as_ref()
            .is_none_or(|code| code.takes(exchange.answer.status))
    };
    let meant: Vec<&Exchange> = exchanges.iter().filter(is_meant).collect();
    if let (true, Some(code)) = (meant.is_empty(), &asked.status) {
        found.fault(format!("there was no answer of status {code}"));
    }
    for exchange in &meant {
        if let Err(says) = one(asked, exchange) {
            let status = exchange.answer.status;
            found.fault(format!("an answer of status {status}: {says}"));
        }
    }
    if let Some(line) = told(asked, &meant) {
        found.says(line);
    }
}

fn one(asked: &Answers, exchange: &Exchange) -> Result<(), String> {
    let answer = &exchange.answer;
    for name in &asked.headers {
        answer
            .header(name)
            .ok_or_else(|| format!("no header {name}"))?;
    }
    if let Some(name) = asked
        .no_headers
        .iter()
        .find(|name| answer.header(name).is_some())
    {
        return Err(format!("a header {name}"));
    }
    members(asked, exchange)?;
    if asked.body_equals_upstream {
        same_bytes(exchange)?;
    }
    match asked.stream {
        Some(StreamEnd::Whole) => whole(exchange)?,
        Some(StreamEnd::Broken) => broken(exchange)?,
        None => {}
    }
    if asked.flows {
        flows(exchange)?;
    }
    if asked.usage_equals_upstream {
        same_usage(exchange)?;
    }
    Ok(())
}

fn members(asked: &Answers, exchange: &Exchange) -> Result<(), String> {
    if asked.json.is_empty() && asked.json_equals.is_empty() {
        return Ok(());
    }
    let body: Value = serde_json::from_slice(&exchange.answer.body)
        .map_err(|_| format!("its body is no JSON: {}", start(&exchange.answer.body)))?;
    let at = |pointer: &String| {
        let member = body.pointer(pointer);
        member.ok_or_else(|| format!("no member {pointer} in {}", start(&exchange.answer.body)))
    };
    for pointer in &asked.json {
        at(pointer)?;
    }
    for (pointer, wanted) in &asked.json_equals {
        let member = at(pointer)?;
        if member != wanted {
            return Err(format!("{pointer} is {member}; expected {wanted}"));
        }
    }
    Ok(())
}

/// What was sent for this call: by the last attempt, where there were several.
fn upstream(exchange: &Exchange) -> Result<&Seen, String> {
    let last = exchange.arrived.last();
    last.ok_or_else(|| "nothing arrived upstream for it".to_owned())
}

fn same_bytes(exchange: &Exchange) -> Result<(), String> {
    let (got, sent) = (&exchange.answer.body, &upstream(exchange)?.sent);
    if got == sent {
        return Ok(());
    }
    let same = got
        .iter()
        .zip(sent)
        .take_while(|(got, sent)| got == sent)
        .count();
    let (got, of) = (got.len(), sent.len());
    Err(format!(
        "its {got} bytes are not the {of} that the upstream sent: they differ from byte {same}"
    ))
}

/// The data of the last event; comments are none.
fn last_data(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let mut events = text
        .lines()
        .rev()
        .filter_map(|line| line.strip_prefix("data:"));
    events.next().unwrap_or_default().trim().to_owned()
}

fn whole(exchange: &Exchange) -> Result<(), String> {
    let answer = &exchange.answer;
    if !answer.is_stream() {
        return Err(format!("no stream of events: {}", start(&answer.body)));
    }
    if let Some(says) = &answer.broken {
        return Err(format!("the stream is cut: {says}"));
    }
    match last_data(&answer.body).as_str() {
        "[DONE]" => Ok(()),
        _ => Err("the stream ends without [DONE]".into()),
    }
}

/// Whether the last event says that something went wrong.
fn says_error(body: &[u8]) -> bool {
    let data: Value = serde_json::from_str(&last_data(body)).unwrap_or_default();
    data.get("error").is_some_and(|error| !error.is_null())
}

fn broken(exchange: &Exchange) -> Result<(), String> {
    let answer = &exchange.answer;
    if !answer.is_stream() {
        return Err(format!("no stream of events: {}", start(&answer.body)));
    }
    let sent = &upstream(exchange)?.sent;
    if last_data(&answer.body) == "[DONE]" {
        return Err("the upstream broke the stream, and the client was told [DONE]".into());
    }
    if says_error(&answer.body) {
        return Ok(());
    }
    if answer.broken.is_none() {
        return Err("the upstream broke the stream, and the client saw a clean end".into());
    }
    if !sent.starts_with(&answer.body) {
        return Err("what came before the break is not what the upstream sent".into());
    }
    Ok(())
}

fn flows(exchange: &Exchange) -> Result<(), String> {
    let last = upstream(exchange)?.last_sent;
    match (exchange.answer.first_byte, last) {
        (Some(first), Some(last)) if first < last => Ok(()),
        _ => {
            Err("nothing came before the upstream had sent its last event: it is held back".into())
        }
    }
}

fn same_usage(exchange: &Exchange) -> Result<(), String> {
    let said = upstream(exchange)?
        .usage
        .ok_or("the upstream told no usage")?;
    let told = usage(&exchange.answer.body).ok_or("it tells no usage")?;
    if told == said {
        return Ok(());
    }
    Err(format!(
        "it tells of {} + {} tokens; the upstream said {} + {}",
        told.prompt, told.completion, said.prompt, said.completion
    ))
}

/// The usage of an answer in one piece, or the last of a stream.
fn usage(body: &[u8]) -> Option<Usage> {
    let text = String::from_utf8_lossy(body);
    let read = |text: &str| {
        let body: Value = serde_json::from_str(text).ok()?;
        let of = |name: &str| body.pointer(&format!("/usage/{name}"))?.as_u64();
        Some(Usage {
            prompt: of("prompt_tokens")?,
            completion: of("completion_tokens")?,
        })
    };
    let mut events = text
        .lines()
        .rev()
        .filter_map(|line| line.strip_prefix("data:"));
    read(&text).or_else(|| events.find_map(|data| read(data.trim())))
}

/// What these expectations come to, where they hold.
fn told(asked: &Answers, meant: &[&Exchange]) -> Option<String> {
    let first = meant.first()?;
    let bytes: usize = meant
        .iter()
        .map(|exchange| exchange.answer.body.len())
        .sum();
    let mut parts = Vec::new();
    for name in &asked.headers {
        let value = first
            .answer
            .header(name)
            .unwrap_or_else(|| "missing".into());
        parts.push(format!("{name}: {value}"));
    }
    if asked.body_equals_upstream {
        parts.push(format!("{bytes} bytes against the upstream's"));
    }
    if asked.stream.is_some() {
        let body = String::from_utf8_lossy(&first.answer.body);
        let events = body
            .lines()
            .filter(|line| line.starts_with("data:"))
            .count();
        let end = match (&first.answer.broken, says_error(&first.answer.body)) {
            (Some(_), _) => "then cut",
            (None, true) => "the last an error",
            (None, false) => "then a clean end",
        };
        parts.push(format!("{events} events, {end}"));
    }
    if asked.flows
        && let (Some(here), Some(last)) = (first.answer.first_byte, first.arrived.last()?.last_sent)
    {
        let ahead = last.saturating_duration_since(here).as_millis();
        parts.push(format!(
            "first byte {ahead} ms before the upstream's last event"
        ));
    }
    if asked.usage_equals_upstream
        && let Some(told) = usage(&first.answer.body)
    {
        parts.push(format!(
            "usage {} + {} tokens",
            told.prompt, told.completion
        ));
    }
    let body: Value = serde_json::from_slice(&first.answer.body).unwrap_or_default();
    for pointer in asked.json.iter().chain(asked.json_equals.keys()) {
        let value = body
            .pointer(pointer)
            .map_or_else(|| "missing".into(), Value::to_string);
        parts.push(format!("{pointer} {}", start(value.as_bytes())));
    }
    let of = match meant.len() {
        1 => format!("{}", first.answer.status),
        several => format!("{} x {}", several, first.answer.status),
    };
    (!parts.is_empty()).then(|| format!("{of}: {}", parts.join("; ")))
}

/// The start of a body, as one may show it.
fn start(body: &[u8]) -> String {
    const SHOWN: usize = 120;
    let text = String::from_utf8_lossy(body.get(..body.len().min(SHOWN)).unwrap_or_default());
    let more = if body.len() > SHOWN { "…" } else { "" };
    format!("{}{more}", text.trim())
}
