//! Answers: a page, a JSON resource, an error.
//!
//! Invariant: an error is JSON with a stable code and a message for people.
//! Not here: which answer it is (`server`, `api`, `access`).

use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use serde::Serialize;

/// What is sent.
pub(crate) type Reply = Response<Full<Bytes>>;

/// What is sent to whom something is refused.
pub(crate) type Refusal = Box<Reply>;

pub(crate) fn text(status: StatusCode, kind: &'static str, body: String) -> Reply {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A resource, laid out for people too.
pub(crate) fn json(resource: &impl Serialize) -> Reply {
    match serde_json::to_string_pretty(resource) {
        Ok(page) => text(StatusCode::OK, "application/json", page + "\n"),
        Err(error) => {
            let says = format!("bug: the resource cannot be written: {error}");
            fault(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", &says)
        }
    }
}

/// A resource that nobody may keep a copy of.
pub(crate) fn private(status: StatusCode, resource: &impl Serialize) -> Reply {
    let mut reply = json(resource);
    if reply.status() == StatusCode::OK {
        *reply.status_mut() = status;
    }
    no_store(&mut reply);
    reply
}

/// Has nobody keep a copy.
pub(crate) fn no_store(reply: &mut Reply) {
    let never = HeaderValue::from_static("no-store");
    reply.headers_mut().insert(header::CACHE_CONTROL, never);
}

pub(crate) fn fault(status: StatusCode, code: &str, message: &str) -> Reply {
    let body = serde_json::json!({
        "error": {
            "message": message, "type": "invalid_request_error", "param": null, "code": code
        }
    });
    text(status, "application/json", body.to_string())
}

pub(crate) fn refusal(status: StatusCode, code: &str, message: &str) -> Refusal {
    Box::new(fault(status, code, message))
}

/// The answer where a task of ours panicked.
pub(crate) fn broken() -> Refusal {
    let says = "bug: what was asked for broke off; the log has more";
    refusal(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", says)
}

/// The answer to a method that is not one of `allowed`, a list as the header `allow` has it.
pub(crate) fn method_not_allowed(allowed: &'static str) -> Refusal {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let says = format!("use {}", allowed.replace(", ", " or "));
    let mut refused = refusal(status, "method_not_allowed", &says);
    let allowed = HeaderValue::from_static(allowed);
    refused.headers_mut().insert(header::ALLOW, allowed);
    refused
}
