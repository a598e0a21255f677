//! Over gRPC: `envoy.service.auth.v3.Authorization/Check`, one message each way.
//!
//! Invariant: a yes is a status of `OK` that was written down, or a response for a yes; an empty message is no answer.
//! A response for a no is a no, whatever stands beside it. What stands twice and could be a yes is no answer.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use prost::Message;
use wire::grpc;

use super::messages::{
    Address, AttributeContext, CheckRequest, CheckResponse, DeniedHttpResponse, HttpRequest,
    HttpStatus, Peer, Request, SocketAddress, Status, Timestamp,
};
use super::{Asker, Authorized, AuthzPeer, BODY_BYTES_MAX, Question};
use crate::client::{Call, Reply};
use crate::fault::Fault;
use crate::url::Url;

const METHOD: &str = "/envoy.service.auth.v3.Authorization/Check";

impl Asker {
    pub(super) async fn grpc(
        &self,
        url: &Url,
        question: &Question<'_>,
    ) -> Result<Authorized, Fault> {
        let check = self.check(question);
        let url = url.at(METHOD).map_err(|_| Fault::Unaskable("its path"))?;
        let call = Call {
            headers: headers(question),
            body: grpc::framed(&check.encode_to_vec())
                .ok_or(Fault::Unaskable("the request is too long"))?
                .into(),
            ..Call::new(Method::POST, &url, BODY_BYTES_MAX)
        };
        let reply = self.client.send(&call).await?;
        answer(&message(&reply)?)
    }

    fn check(&self, question: &Question<'_>) -> CheckRequest {
        let request = question.request;
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in &request.headers {
            if self.request_headers.contains(name) {
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
            // Not known: the body may still be on its way.
            size: -1,
            protocol: request.protocol.clone(),
        };
        CheckRequest {
            attributes: Some(AttributeContext {
                source: Some(peer(&request.source)),
                destination: Some(Peer::default()),
                request: Some(Request {
                    time: now(),
                    http: Some(http),
                }),
            }),
        }
    }
}

fn answer(message: &[u8]) -> Result<Authorized, Fault> {
    let response = CheckResponse::decode(message);
    let response = response.map_err(|_| Fault::Garbage("it is not a CheckResponse"))?;
    if !response.denied_response.is_empty() {
        return Ok(denied(&response.denied_response));
    }
    let code = code(&response.status)?;
    match (code, &response.ok_response[..]) {
        (Some(0) | None, [_]) | (Some(0), []) => Ok(Authorized::Allowed),
        (None, []) => Err(Fault::Garbage("it says neither yes nor no")),
        (None | Some(0), _) => Err(Fault::Garbage("its ok_response stands twice")),
        (Some(_), _) => Ok(Authorized::FORBIDDEN),
    }
}

/// The code of a status; none without one.
fn code(status: &[Status]) -> Result<Option<i64>, Fault> {
    match status {
        [] => Ok(None),
        [Status { code }] => match code[..] {
            // What is zero may be left out.
            [] => Ok(Some(0)),
            [code] => Ok(Some(code)),
            _ => Err(Fault::Garbage("the code of its status stands twice")),
        },
        _ => Err(Fault::Garbage("its status stands twice")),
    }
}

/// A no, with the status that it says once.
fn denied(responses: &[DeniedHttpResponse]) -> Authorized {
    let said = match responses {
        [DeniedHttpResponse { status }] => match &status[..] {
            [HttpStatus { code }] => match code[..] {
                [code] => u16::try_from(code).ok(),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    said.map_or(Authorized::FORBIDDEN, Authorized::denied)
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
    let trailers = reply.trailers.iter();
    let parts = std::iter::once(&reply.headers).chain(trailers);
    let mut codes = parts.flat_map(|part| part.get_all("grpc-status"));
    let code = codes.next();
    let code = code.ok_or(Fault::Garbage("it has no grpc-status"))?;
    if codes.next().is_some() {
        return Err(Fault::Garbage("its grpc-status stands twice"));
    }
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
