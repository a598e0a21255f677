//! What the engine refuses, in vLLM's words and shape.
//!
//! Invariant: every refusal but `internal` is the client's fault, and each carries the HTTP status as a number in `code`, as vLLM does.
//! Not here: deciding to refuse (`validate`, `plan`, `route`).

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use serde_json::json;

/// One refusal, ready to be answered.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    kind: &'static str,
    message: String,
    param: Option<&'static str>,
    retry_after_s: Option<u64>,
}

impl Refusal {
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequestError", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "AuthenticationError",
            "Unauthorized",
        )
    }

    pub(crate) fn unknown_model(name: &str) -> Self {
        Self::not_found(format!("The model `{name}` does not exist.")).about("model")
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFoundError", message)
    }

    /// A refusal that was asked for.
    pub(crate) fn injected(status: StatusCode, retry_after_s: Option<u64>) -> Self {
        let kind = match status {
            StatusCode::TOO_MANY_REQUESTS => "RateLimitError",
            status if status.is_server_error() => "InternalServerError",
            _ => "BadRequestError",
        };
        Self {
            retry_after_s,
            ..Self::new(status, kind, format!("An injected fault: {status}"))
        }
    }

    /// The simulated engine gave up: a bug of ours.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalServerError",
            message,
        )
    }

    /// Paths that a flag turns on.
    pub(crate) fn scale_out_disabled() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "PermissionDeniedError",
            "Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out to enable them.",
        )
    }

    pub(crate) fn method() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowedError",
            "Method Not Allowed",
        )
    }

    pub(crate) fn body_too_large(limit_bytes: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLargeError",
            format!("The request body is larger than {limit_bytes} bytes."),
        )
    }

    /// What is wrong, for whoever asked.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    #[cfg(test)]
    pub(crate) fn param(&self) -> Option<&'static str> {
        self.param
    }

    /// Names the member that is at fault.
    pub(crate) fn about(mut self, param: &'static str) -> Self {
        self.param = Some(param);
        self
    }

    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            message: message.into(),
            param: None,
            retry_after_s: None,
        }
    }

    pub(crate) fn into_response(self) -> Response<Full<Bytes>> {
        let body = json!({"error": {
            "message": self.message, "type": self.kind, "param": self.param, "code": self.status.as_u16(),
        }});
        let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
        *response.status_mut() = self.status;
        response.headers_mut().insert(
            http::header::CONTENT_TYPE,
            http::HeaderValue::from_static("application/json"),
        );
        if let Some(seconds) = self.retry_after_s {
            response
                .headers_mut()
                .insert(http::header::RETRY_AFTER, http::HeaderValue::from(seconds));
        }
        response
    }
}
