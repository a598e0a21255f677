//! One call of a case, and what holds of its answers.
//!
//! Invariant: what is read here can be sent: a path without spaces, headers without control characters.
//! Not here: cases and what surrounds them (`form`).

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Deserialize;
use serde_json::json;
use toml::Value;

use super::{CALLS_MAX, Within, number_of};
use crate::toml_document::Faults;
use crate::verify::suite::{Answers, Call, Code, Statuses, StreamEnd, To};

const BODY_BYTES_MAX: usize = 1 << 20;
const PATH: &str = "/v1/chat/completions";

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct CallForm {
    to: Option<String>,
    method: Option<String>,
    path: Option<String>,
    headers: BTreeMap<String, String>,
    body: Option<String>,
    stream: bool,
    count: Option<usize>,
    statuses: Option<String>,
    answer: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AnswerForm {
    status: Option<String>,
    headers: Vec<String>,
    no_headers: Vec<String>,
    json: Vec<String>,
    json_equals: BTreeMap<String, serde_json::Value>,
    body_equals_upstream: bool,
    stream_ends: Option<StreamEnd>,
    flows: bool,
    usage_equals_upstream: bool,
}

/// Reads a call.
pub(super) fn call(
    faults: &mut Faults,
    path: &str,
    form: CallForm,
    within: &Within<'_>,
) -> Option<Call> {
    let to = match form.to.as_deref() {
        None | Some("gateway") => To::Gateway,
        Some(name) => {
            let at = faults.of(&format!("{path}.to"), number_of(name, within.upstreams));
            To::Upstream(at.unwrap_or(0))
        }
    };
    let method = form.method.as_deref().unwrap_or("POST").parse();
    let method = faults.of(
        &format!("{path}.method"),
        method.map_err(|_| "is no method"),
    );
    let target = form.path.as_deref().unwrap_or(PATH);
    if !target.starts_with('/') || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        faults.add(
            format!("{path}.path"),
            "begins with / and holds neither spaces nor control characters",
        );
    }
    let headers = headers(faults, &format!("{path}.headers"), &form.headers);
    // As clients may spell them, a gateway has to know each.
    let names = form.headers.keys();
    let spelled = names.map(|name| (name.to_ascii_lowercase(), name.clone()));
    let spelled = spelled.filter(|(small, name)| small != name).collect();
    let is_bodiless = method
        .as_ref()
        .is_some_and(|method: &Method| *method == Method::GET);
    let body = match form.body {
        Some(text) => text.replace("{model}", within.model),
        None if is_bodiless => String::new(),
        None => chat(within.model, form.stream),
    };
    if body.len() > BODY_BYTES_MAX {
        faults.add(
            format!("{path}.body"),
            format!("at most {BODY_BYTES_MAX} bytes"),
        );
    }
    let count = form.count.unwrap_or(1);
    if !(1..=CALLS_MAX).contains(&count) {
        faults.add(format!("{path}.count"), format!("from 1 to {CALLS_MAX}"));
        return None;
    }
    let statuses = form.statuses.as_deref().map(str::parse).transpose();
    let statuses = faults.of(&format!("{path}.statuses"), statuses)?;
    let statuses: Statuses = statuses.unwrap_or_else(|| Statuses::all_good(count));
    if statuses.count() != count {
        let of = statuses.count();
        faults.add(
            format!("{path}.statuses"),
            format!("speaks of {of} answers, and count is {count}"),
        );
    }
    let forms = faults
        .tables(&format!("{path}.answer"), form.answer)
        .into_iter();
    let answers = forms.filter_map(|(path, form)| answer(faults, &path, form, &statuses));
    let answers = answers.collect();
    Some(Call {
        to,
        method: method?,
        path: target.to_owned(),
        headers,
        body: body.into_bytes(),
        spelled,
        count,
        statuses,
        answers,
    })
}

/// A small conversation.
fn chat(model: &str, stream: bool) -> String {
    let mut body = json!({
        "model": model,
        "messages": [{ "role": "user", "content": "Say what you are, in one sentence." }],
    });
    if stream {
        body["stream"] = true.into();
        body["stream_options"] = json!({ "include_usage": true });
    }
    body.to_string()
}

fn headers(faults: &mut Faults, path: &str, form: &BTreeMap<String, String>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in form {
        let path = format!("{path}.{name}");
        let parsed: Result<HeaderName, _> = name.parse().map_err(|_| "is no name of a header");
        let Some(parsed) = faults.of(&path, parsed) else {
            continue;
        };
        if matches!(
            parsed.as_str(),
            "content-length" | "transfer-encoding" | "connection"
        ) {
            faults.add(path, "follows from the call itself and cannot be given");
            continue;
        }
        let value = HeaderValue::from_str(value);
        let value = value.map_err(|_| "the value holds control characters");
        if let Some(value) = faults.of(&path, value) {
            headers.insert(parsed, value);
        }
    }
    headers
}

fn answer(
    faults: &mut Faults,
    path: &str,
    form: AnswerForm,
    statuses: &Statuses,
) -> Option<Answers> {
    let status = form.status.as_deref().map(str::parse::<Code>).transpose();
    let status = faults.of(&format!("{path}.status"), status)?;
    if let Some(code) = status.as_ref().filter(|code| !statuses.may_hold(code)) {
        faults.add(
            format!("{path}.status"),
            format!("{code} is none of the statuses {statuses}"),
        );
    }
    for pointer in form.json.iter().chain(form.json_equals.keys()) {
        if !pointer.starts_with('/') {
            faults.add(
                format!("{path}.json"),
                format!("{pointer:?} is no JSON pointer: it begins with /"),
            );
        }
    }
    for name in form.headers.iter().chain(&form.no_headers) {
        if name.parse::<HeaderName>().is_err() {
            faults.add(path, format!("{name:?} is no name of a header"));
        }
    }
    Some(Answers {
        status,
        headers: form.headers,
        no_headers: form.no_headers,
        json: form.json,
        json_equals: form.json_equals,
        body_equals_upstream: form.body_equals_upstream,
        stream: form.stream_ends,
        flows: form.flows,
        usage_equals_upstream: form.usage_equals_upstream,
    })
}
