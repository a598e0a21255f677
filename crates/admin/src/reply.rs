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

pub(crate) fn fault(status: StatusCode, code: &str, message: &str) -> Reply {
    let body = serde_json::json!({
        "error": {
            "message": message, "type": "invalid_request_error", "param": null, "code": code
        }
    });
    text(status, "application/json", body.to_string())
}

/// The answer to a method that changes things.
pub(crate) fn method_not_allowed() -> Reply {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let mut refused = fault(status, "method_not_allowed", "use GET or HEAD");
    refused
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    refused
}
