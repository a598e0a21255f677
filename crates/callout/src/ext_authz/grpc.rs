//! Over gRPC: `envoy.service.auth.v3.Authorization/Check`, one message each way.
//!
//! Invariant: a yes is a status of `OK` that was written down, or a response for a yes; an empty message is no answer.
//! A response for a no is a no, whatever the status beside it.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use http::{Method, StatusCode};
use prost::Message;
use wire::grpc;

use super::messages::{
    Address, AttributeContext, CheckRequest, CheckResponse, DeniedHttpResponse, HeaderValueOption,
    HttpRequest, HttpResponse, OkHttpResponse, Peer, Request, SocketAddress, Timestamp,
};
use super::{
    Asker, Authorized, AuthzFacts, AuthzHeader, AuthzPeer, BODY_BYTES_MAX, Denial, HEADERS_MAX,
    Question,
};
use crate::client::{Call, Reply};
use crate::fault::Fault;
use crate::url::Url;

const METHOD: &str = "/envoy.service.auth.v3.Authorization/Check";

impl Asker {
    pub(super) async fn grpc(
        &self,
        url: &Url,
        context_extensions: &BTreeMap<String, String>,
        question: &Question<'_>,
    ) -> Result<Authorized, Fault> {
        let check = self.check(context_extensions, question);
        let url = url.at(METHOD).map_err(|_| Fault::Unaskable("its path"))?;
        let call = Call {
            headers: headers(question),
            body: grpc::framed(&check.encode_to_vec())
                .ok_or(Fault::Unaskable("the request is too long"))?
                .into(),
            ..Call::new(Method::POST, &url, BODY_BYTES_MAX)
        };
        let reply = self.client.send(&call).await?;
        self.read(&message(&reply)?)
    }

    fn check(
        &self,
        context_extensions: &BTreeMap<String, String>,
        question: &Question<'_>,
    ) -> CheckRequest {
        let request = question.request;
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in &request.headers {
            if self.request_headers.has(name) {
                let value = String::from_utf8_lossy(value);
                let joined = headers.entry(name.clone());
                joined
                    .and_modify(|all| *all = format!("{all},{value}"))
                    .or_insert_with(|| value.into_owned());
            }
        }
        let http = HttpRequest {
            id: request.id.clone(),
            method: request.method.clone(),
            headers,
            path: request.path.clone(),
            host: request.host.clone(),
            scheme: request.scheme.clone(),
            size: request
                .size
                .map_or(-1, |size| i64::try_from(size).unwrap_or(-1)),
            protocol: request.protocol.clone(),
        };
        CheckRequest {
            attributes: Some(AttributeContext {
                source: Some(peer(&request.source)),
                destination: Some(peer(&request.destination)),
                request: Some(Request {
                    time: now(),
                    http: Some(http),
                }),
                context_extensions: context_extensions.clone(),
            }),
        }
    }

    fn read(&self, message: &[u8]) -> Result<Authorized, Fault> {
        let response = CheckResponse::decode(message);
        let response = response.map_err(|_| Fault::Garbage("it is no CheckResponse"))?;
        let code = response.status.map(|status| status.code);
        match (code, response.http_response) {
            (_, Some(HttpResponse::Denied(denied))) => Ok(self.denied(denied)),
            (Some(0) | None, Some(HttpResponse::Ok(ok))) => self.allowed(ok),
            (Some(0), None) => self.allowed(OkHttpResponse::default()),
            (Some(_), _) => Ok(Denial::alone(StatusCode::FORBIDDEN)),
            (None, None) => Err(Fault::Garbage("it says neither yes nor no")),
        }
    }

    fn allowed(&self, ok: OkHttpResponse) -> Result<Authorized, Fault> {
        let mut removed = ok.headers_to_remove;
        removed.truncate(HEADERS_MAX);
        removed
            .iter_mut()
            .for_each(|name| name.make_ascii_lowercase());
        Ok(Authorized::Allowed(AuthzFacts {
            headers: self.answer_headers.pass(given(&ok.headers)?.into_iter())?,
            removed,
            to_client: self
                .answer_headers
                .pass(given(&ok.response_headers_to_add)?.into_iter())?,
        }))
    }

    /// A no stays one, whatever comes with it.
    fn denied(&self, denied: DeniedHttpResponse) -> Authorized {
        let headers = given(&denied.headers);
        let headers = headers.and_then(|headers| self.denied_headers.pass(headers.into_iter()));
        let code = denied.status.map_or(403, |status| status.code);
        Authorized::Denied(Denial::new(
            u16::try_from(code).unwrap_or(403),
            headers.unwrap_or_default(),
            denied.body.into(),
        ))
    }
}

fn headers(question: &Question<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    // At most eight digits, as gRPC has it.
    let milliseconds = question.within.as_millis().min(99_999_999);
    if let Ok(timeout) = HeaderValue::from_str(&format!("{milliseconds}m")) {
        headers.insert(HeaderName::from_static("grpc-timeout"), timeout);
    }
    headers
}

/// The one message of a good answer.
fn message(reply: &Reply) -> Result<Bytes, Fault> {
    let body = reply.good(
        &["application/grpc", "application/grpc+proto"],
        "it is not gRPC",
    )?;
    let code = |headers: &HeaderMap| headers.get("grpc-status").cloned();
    let code = code(&reply.headers).or_else(|| reply.trailers.as_ref().and_then(code));
    let code = code.ok_or(Fault::Garbage("it has no grpc-status"))?;
    if code != "0" {
        let code = code.to_str().ok().and_then(|code| code.parse::<u16>().ok());
        return Err(Fault::Status {
            status: reply.status.as_u16(),
            code: code.map(|code| format!("gRPC status {code}")),
        });
    }
    let message = grpc::only_message(body).map_err(Fault::Garbage)?;
    Ok(body.slice_ref(message))
}

pub(super) fn given(options: &[HeaderValueOption]) -> Result<Vec<AuthzHeader>, Fault> {
    let headers = options.iter().map(|option| {
        let header = option.header.as_ref()?;
        let raw = (!header.raw_value.is_empty()).then_some(&*header.raw_value);
        let value = raw.unwrap_or(header.value.as_bytes());
        let is_added = option.append.is_some_and(|append| append.value);
        AuthzHeader::new(&header.key, value, is_added)
    });
    let all: Option<Vec<AuthzHeader>> = headers.collect();
    all.ok_or(Fault::Garbage("a header of it fits no message"))
}

fn peer(peer: &AuthzPeer) -> Peer {
    let address = peer.address.map(|address| Address {
        socket_address: Some(SocketAddress {
            address: address.ip().to_string(),
            port_value: Some(u32::from(address.port())),
        }),
    });
    Peer {
        address,
        service: peer.service.clone(),
        principal: peer.principal.clone(),
    }
}

fn now() -> Option<Timestamp> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp {
        seconds: i64::try_from(now.as_secs()).ok()?,
        nanos: i32::try_from(now.subsec_nanos()).ok()?,
    })
}
