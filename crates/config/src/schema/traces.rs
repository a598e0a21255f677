//! `traces`: where spans are sent.
//!
//! Not here: what they become (`lower`).

use super::backend::Credential;
use crate::decode::{At, record};
use crate::scalar::{File, Name, OtlpProtocol, Ratio};
use crate::target::Collector;

record! {
    /// OpenTelemetry spans of sampled exchanges.
    Traces {
        /// The collector: http://host:4318, or http://host:4317 for grpc.
        required otlp: At<Collector>,
        /// How it is spoken to: http (protobuf over HTTP/1.1) or grpc. Default http.
        optional protocol: At<OtlpProtocol>,
        /// Which share of the traces that begin here is kept, 0 to 1. Default 1.
        optional ratio: At<Ratio>,
        /// The name of this service in its spans. Default tollgate.
        optional service: At<Name>,
        /// The credential sent to the collector; none unless said.
        optional credential: Credential,
        /// PEM file with the roots to trust instead of the system's.
        optional ca: At<File>,
    }
}
