//! What a person writes, lowered to the [`Snapshot`] that cores read.
//!
//! Exists for *purity*: files and variables come from the host through [`Sources`]; no clock, no
//! environment, no file system here, so every document lowers the same way everywhere.
//! Invariant: a document is taken whole or refused whole, and a refusal names every fault that
//! can be found, with line and path; no message quotes a secret.
//! Not here: watching files, swapping snapshots (`tollgate`), what a reload carries over (`policy::revision`).

pub use catalogue::{BUILT_IN as BUILT_IN_CATALOGUE, CatalogueModel};
pub use decode::nearest;
pub use document::{catalogue, load, load_with, parse_document};
pub use environment::{from_environment, from_environment_with};
pub use fault::{Fault, Faults, Located};
pub use host::{
    AccessLog, AccessReviewSource, AdminLogin, ApiServer, AskedAt, AuthorityRules, AwsFrom,
    AwsSource, AzureProof, AzureSource, Calibration, ClaimNames, ClientCertificate, ClientProof,
    ClientTls, ContainerToken, ContentFormat, CredentialKind, CredentialSource, EndpointPicker,
    EngineMetrics, EngineStart, ExchangeGrant, ExtAuthzSource, Fact, Fetched, GoogleFrom,
    GoogleSource, Host, HostListener, IntrospectionSource, JwksSource, JwtSource, KeptResponses,
    Ledger, Lines, LoginClient, LoginSource, MadeCredential, MadeKind, OAuthServer, OtlpProtocol,
    Piece, Program, ReviewedAction, StaticKey, SubjectToken, Tls, TokenReviewSource, TokenSource,
    TokenizerSource, ToolCommand, ToolDescription, Traces, UpstreamCredential, Vocabulary,
    WorkloadFrom, WrittenRule,
};
pub use import::{Imported, import_agentgateway, import_litellm, import_portkey};
pub use line::line_of;
pub use lower::{FILE_BYTES_MAX, Given, Loaded};
pub use mask::{masked, quoted};
pub use node::{Entry, Node, Scalar, Shape, Value, parse_all, parse_json};
pub use redact::Redacted;
pub use scalar::{is_tool_path, may_name_callers};
pub use schema::json_schema;
pub use servers::{EditorServers, SECRET_VARIABLE as SESSIONS_VARIABLE};
pub use sources::Sources;
pub use starter::{FoundEngine, Starter, starter};

mod catalogue;
mod decode;
mod document;
mod environment;
mod fault;
mod host;
mod import;
mod line;
mod lower;
mod mask;
mod node;
mod redact;
mod scalar;
mod schema;
mod servers;
mod sources;
mod starter;
mod target;
mod vars;

#[cfg(test)]
mod tests;
