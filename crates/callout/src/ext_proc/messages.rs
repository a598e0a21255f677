//! The messages of `envoy.service.ext_proc.v3`, as far as the gate writes and reads them.
//!
//! Invariant: numbers and kinds of fields are the protocol's, and do not change. A field that is not declared here is
//! skipped.

use std::collections::BTreeMap;

use prost::{Message, Oneof};

/// From the gate: a step of a request or of its answer.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProcessingRequest {
    #[prost(oneof = "Step", tags = "2, 3, 4")]
    pub(crate) step: Option<Step>,
    #[prost(message, optional, tag = "8")]
    pub(crate) metadata_context: Option<Metadata>,
    #[prost(message, optional, tag = "11")]
    pub(crate) protocol_config: Option<ProtocolConfiguration>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Step {
    #[prost(message, tag = "2")]
    RequestHeaders(HttpHeaders),
    #[prost(message, tag = "3")]
    ResponseHeaders(HttpHeaders),
    #[prost(message, tag = "4")]
    RequestBody(HttpBody),
}

/// How bodies are sent: 0 not at all, 4 in both directions at one time.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ProtocolConfiguration {
    #[prost(int32, tag = "1")]
    pub(crate) request_body_mode: i32,
    #[prost(int32, tag = "2")]
    pub(crate) response_body_mode: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpHeaders {
    #[prost(message, optional, tag = "1")]
    pub(crate) headers: Option<HeaderMap>,
    #[prost(bool, tag = "3")]
    pub(crate) end_of_stream: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpBody {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) body: bytes::Bytes,
    #[prost(bool, tag = "2")]
    pub(crate) end_of_stream: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeaderMap {
    #[prost(message, repeated, tag = "1")]
    pub(crate) headers: Vec<HeaderValue>,
}

/// The value stands in one of the two.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeaderValue {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) raw_value: Vec<u8>,
}

/// Facts by the filter that they are for.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Metadata {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(crate) filter_metadata: BTreeMap<String, Struct>,
}

/// `google.protobuf.Struct`, of which strings and structs are read.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Struct {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(crate) fields: BTreeMap<String, Value>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Value {
    #[prost(oneof = "Kind", tags = "3, 5")]
    pub(crate) kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Kind {
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(message, tag = "5")]
    Struct(Struct),
}

/// From the service: what it says to a step.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProcessingResponse {
    #[prost(oneof = "Said", tags = "1, 2, 3, 7")]
    pub(crate) said: Option<Said>,
    #[prost(message, optional, tag = "8")]
    pub(crate) dynamic_metadata: Option<Struct>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Said {
    #[prost(message, tag = "1")]
    RequestHeaders(HeadersResponse),
    #[prost(message, tag = "2")]
    ResponseHeaders(HeadersResponse),
    #[prost(message, tag = "3")]
    RequestBody(HeadersResponse),
    #[prost(message, tag = "7")]
    Immediate(ImmediateResponse),
}

/// `HeadersResponse` and `BodyResponse`, which are written alike.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeadersResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) response: Option<CommonResponse>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CommonResponse {
    #[prost(message, optional, tag = "2")]
    pub(crate) header_mutation: Option<HeaderMutation>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeaderMutation {
    #[prost(message, repeated, tag = "1")]
    pub(crate) set_headers: Vec<HeaderValueOption>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeaderValueOption {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<HeaderValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ImmediateResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<HttpStatus>,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) body: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(crate) details: String,
}

/// `envoy.type.v3.HttpStatus`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct HttpStatus {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
}
