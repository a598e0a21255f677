//! Over HTTP: the request without its body, answered by a status.
//!
//! Invariant: 200 is a yes, 5xx is no answer, every other status is a no. The service sees the path as the gate read it,
//! behind a prefix that is the gate's.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use super::{Asker, Authorized, AuthzFacts, AuthzHeader, BODY_BYTES_MAX, Denial, Question};
use crate::client::{Call, Reply};
use crate::fault::Fault;
use crate::url::Url;

/// Headers for the upstream that an answer wants removed, as Envoy's services name them.
const REMOVED: &str = "x-envoy-auth-headers-to-remove";

impl Asker {
    pub(super) async fn http(
        &self,
        url: &Url,
        question: &Question<'_>,
    ) -> Result<Authorized, Fault> {
        let Some((method, url, host)) = asked_about(url, question) else {
            return Ok(Denial::alone(StatusCode::FORBIDDEN));
        };
        let Some(headers) = self.shown(question) else {
            return Ok(Denial::alone(StatusCode::FORBIDDEN));
        };
        let call = Call {
            headers,
            host: Some(host),
            head_is_enough_at: Some(question.enough_at),
            ..Call::new(method, &url, BODY_BYTES_MAX)
        };
        let reply = self.client.send(&call).await?;
        self.told(reply)
    }

    fn shown(&self, question: &Question<'_>) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        for (name, value) in &question.request.headers {
            if self.request_headers.has(name) {
                let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
                let mut value = HeaderValue::from_bytes(value).ok()?;
                value.set_sensitive(true);
                headers.append(name, value);
            }
        }
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        Some(headers)
    }

    fn told(&self, reply: Reply) -> Result<Authorized, Fault> {
        if reply.status.is_server_error() {
            return Err(reply.refusal());
        }
        let all = all(&reply.headers);
        if reply.status == StatusCode::OK {
            return Ok(Authorized::Allowed(AuthzFacts {
                headers: self.answer_headers.pass(all)?,
                removed: removed(&reply.headers),
                to_client: Vec::new(),
            }));
        }
        // A no stays one, whatever comes with it.
        let passed = self.denied_headers.pass(all).unwrap_or_default();
        let body = Bytes::clone(&reply.body);
        Ok(Authorized::Denied(Denial::new(
            reply.status.as_u16(),
            passed,
            body,
        )))
    }
}

/// The request line and the host of the question; none where a request line cannot hold them.
fn asked_about(url: &Url, question: &Question<'_>) -> Option<(Method, Url, HeaderValue)> {
    let request = question.request;
    let method = Method::from_bytes(request.method.as_bytes()).ok()?;
    if method == Method::CONNECT || !request.path.starts_with('/') {
        return None;
    }
    let prefix = url.target().strip_suffix('/').unwrap_or(url.target());
    let url = url.at(&format!("{prefix}{}", request.path)).ok()?;
    let host = HeaderValue::from_str(&request.host).ok()?;
    Some((method, url, host)).filter(|_| !request.host.is_empty())
}

/// Each line of an answer's head; those of one name after the first are added to it.
fn all(headers: &HeaderMap) -> impl Iterator<Item = AuthzHeader> {
    headers.keys().flat_map(|name| {
        let lines = headers.get_all(name).iter().enumerate();
        lines.filter_map(|(number, value)| {
            AuthzHeader::new(name.as_str(), value.as_bytes(), number > 0)
        })
    })
}

fn removed(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all(REMOVED).iter();
    let names = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    let names = names.map(|name| name.trim().to_ascii_lowercase());
    names
        .filter(|name| !name.is_empty())
        .take(super::HEADERS_MAX)
        .collect()
}
