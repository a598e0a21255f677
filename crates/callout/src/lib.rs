//! What the gate asks of outside services: who a caller is, whether it may call, which credential an upstream takes,
//! what a prompt counts, what an engine has to do, which endpoint of a pool takes a call.
//!
//! Invariant: it waits on a thread and a runtime of its own, never on a worker's; a worker hands a question over and
//! gets a future back. Everything has a bound, and whoever cannot be answered is told so, in time.
//! Not here: what an answer means for an exchange (`policy`), what a key set holds and whether a signature is good (the
//! host).

mod about_token;
mod client;
mod client_auth;
mod dial;
mod document;
mod engine_metrics;
mod engine_tokens;
mod ext_authz;
mod ext_proc;
mod fault;
mod form;
mod introspection;
mod issuer_document;
mod json;
mod jwks;
mod kubernetes;
mod openid;
mod questions;
mod secret_source;
mod service;
mod shared;
mod tls;
mod token;
mod turns;
mod url;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

pub use about_token::TOKEN_BYTES_MAX;
pub use client::{Bounds, Client, Protocol};
pub use client_auth::ClientAuth;
pub use document::fetched;
pub use engine_metrics::{EngineMetrics, EngineNews};
pub use engine_tokens::{
    AskedBy, EngineCount, EngineModel, EnginePlace, EngineQuestion, EngineSays, EngineTokens,
    api_root,
};
pub use ext_authz::{Authorized, AuthzPeer, AuthzRequest, AuthzTransport, ExtAuthz};
pub use ext_proc::{EndpointPicker, PickerSettings};
pub use fault::Fault;
pub use introspection::{ActiveToken, Introspected, Introspection, IntrospectionSettings};
pub use jwks::{
    Availability, Hooks, IssuerFault, Jwks, JwksSettings, JwksState, KEY_SET_BYTES_MAX, KeySource,
    OnChange, Refreshed, UNKNOWN_KEY_EVERY,
};
pub use kubernetes::{
    Access, AccessAction, AccessQuestion, AccessReview, AccessReviewSettings, ApiServer, Lines,
    Objects, Reviewed, Said, TokenReview, TokenReviewSettings, User,
};
pub use openid::{Code, OpenId, Provider};
pub use questions::{QuestionCounts, Questions};
pub use secret_source::{READ_AGAIN_AFTER, SecretSource};
pub use service::{Answered, Handle, QUESTIONS_MAX, Running, Service};
pub use tls::Tls;
pub use token::{
    AccessToken, CallerExchange, Federation, Grant, Impersonation, Issued, KeysRequest,
    MetadataMethod, MetadataRequest, OAuthRequest, SessionKeys, TokenEndpoint, TokenRequest,
    TokenState, WebIdentity,
};
pub use url::{Url, UrlFault};
