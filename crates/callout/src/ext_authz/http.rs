//! Over HTTP: the request without its body, answered by a status.
//!
//! Invariant: 200 is a yes where all of it came, 5xx is no answer, every other status is a no. The service sees the path as the gate read it,
//! behind a prefix that is the gate's.

use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};

use super::{Asker, Authorized, BODY_BYTES_MAX, Question};
use crate::client::Call;
use crate::fault::Fault;
use crate::url::Url;

impl Asker {
    pub(super) async fn http(
        &self,
        url: &Url,
        question: &Question<'_>,
    ) -> Result<Authorized, Fault> {
        let Some((method, url, host)) = asked_about(url, question) else {
            return Ok(Authorized::FORBIDDEN);
        };
        let Some(headers) = self.shown(question) else {
            return Ok(Authorized::FORBIDDEN);
        };
        let call = Call {
            headers,
            host: Some(host),
            head_is_enough_at: Some(question.enough_at),
            ..Call::new(method, &url, BODY_BYTES_MAX)
        };
        let reply = self.client.send(&call).await?;
        match reply.status {
            StatusCode::OK if reply.has_two_lengths() => {
                Err(Fault::Garbage("its yes has a length and is in chunks"))
            }
            StatusCode::OK if !reply.is_whole() => Err(Fault::Garbage(
                "its yes is not whole, or longer than 64 KiB",
            )),
            StatusCode::OK => Ok(Authorized::Allowed),
            status if status.is_server_error() => Err(reply.refusal()),
            status => Ok(Authorized::denied(status.as_u16())),
        }
    }

    fn shown(&self, question: &Question<'_>) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        for (name, value) in &question.request.headers {
            if self.request_headers.contains(name) {
                let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
                let mut value = HeaderValue::from_bytes(value).ok()?;
                value.set_sensitive(true);
                headers.append(name, value);
            }
        }
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        Some(headers)
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
