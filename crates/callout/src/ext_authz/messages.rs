//! The messages of `envoy.service.auth.v3`, as far as the gate writes and reads them.
//!
//! Invariant: numbers and kinds of fields are the protocol's, and do not change. A field that is not declared here is
//! skipped.

use std::collections::BTreeMap;

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct CheckRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) attributes: Option<AttributeContext>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AttributeContext {
    #[prost(message, optional, tag = "1")]
    pub(super) source: Option<Peer>,
    #[prost(message, optional, tag = "2")]
    pub(super) destination: Option<Peer>,
    #[prost(message, optional, tag = "4")]
    pub(super) request: Option<Request>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Peer {
    #[prost(message, optional, tag = "1")]
    pub(super) address: Option<Address>,
    #[prost(string, tag = "2")]
    pub(super) service: String,
    #[prost(string, tag = "4")]
    pub(super) principal: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Address {
    #[prost(message, optional, tag = "1")]
    pub(super) socket_address: Option<SocketAddress>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SocketAddress {
    #[prost(string, tag = "2")]
    pub(super) address: String,
    #[prost(uint32, optional, tag = "3")]
    pub(super) port_value: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Request {
    #[prost(message, optional, tag = "1")]
    pub(super) time: Option<Timestamp>,
    #[prost(message, optional, tag = "2")]
    pub(super) http: Option<HttpRequest>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub(super) seconds: i64,
    #[prost(int32, tag = "2")]
    pub(super) nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HttpRequest {
    #[prost(string, tag = "1")]
    pub(super) id: String,
    #[prost(string, tag = "2")]
    pub(super) method: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(super) headers: BTreeMap<String, String>,
    #[prost(string, tag = "4")]
    pub(super) path: String,
    #[prost(string, tag = "5")]
    pub(super) host: String,
    #[prost(string, tag = "6")]
    pub(super) scheme: String,
    #[prost(int64, tag = "9")]
    pub(super) size: i64,
    #[prost(string, tag = "10")]
    pub(super) protocol: String,
}

/// What stands there once is a list here, so that it is seen where it stands twice: a decoder merges the two, or takes the
/// last.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CheckResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) status: Vec<Status>,
    /// Of the two at most one stands there.
    #[prost(message, repeated, tag = "2")]
    pub(super) denied_response: Vec<DeniedHttpResponse>,
    #[prost(message, repeated, tag = "3")]
    pub(super) ok_response: Vec<OkHttpResponse>,
}

/// `google.rpc.Status`. Its code is of 32 bits; what is more is read, too, so that it is not cut to a zero.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub(super) code: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeniedHttpResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) status: Vec<HttpStatus>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct OkHttpResponse {}

/// `envoy.type.v3.HttpStatus`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HttpStatus {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub(super) code: Vec<i64>,
}
