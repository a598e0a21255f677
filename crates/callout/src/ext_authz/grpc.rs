//! Over gRPC: `envoy.service.auth.v3.Authorization/Check`, one message each way.
//!
//! Invariant: a yes is a status of `OK` that was written down, or a response for a yes; an empty message is no answer.
//! A response for a no is a no, whatever the status beside it.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use prost::Message;
use wire::grpc;

use super::messages::{
    Address, AttributeContext, CheckRequest, CheckResponse, HttpRequest, HttpResponse, Peer,
    Request, SocketAddress, Timestamp,
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
    let response = response.map_err(|_| Fault::Garbage("it is no CheckResponse"))?;
    let code = response.status.map(|status| status.code);
    match (code, response.http_response) {
        (_, Some(HttpResponse::Denied(denied))) => {
            let status = denied.status.and_then(|of| u16::try_from(of.code).ok());
            Ok(status.map_or(Authorized::FORBIDDEN, Authorized::denied))
        }
        (Some(0) | None, Some(HttpResponse::Ok(_))) | (Some(0), None) => Ok(Authorized::Allowed),
        (Some(_), _) => Ok(Authorized::FORBIDDEN),
        (None, None) => Err(Fault::Garbage("it says neither yes nor no")),
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
