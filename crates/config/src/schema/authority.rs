//! `authority`: rules about who may make which call.
//!
//! Not here: what they become (`lower::authority`).

use super::identity::ApiServer;
use crate::decode::{At, ListOf, OneOrMany, record};
use crate::scalar::{
    Expression, FailsOpen, File, Name, SecretHeader, Span, SystemNames, Template, Text,
};
use crate::target::Target;

record! {
    /// Who may make which call, beside routes and limits: at most one of `rules` and `rego`; all that is written must allow a call.
    Authority {
        /// Rules in CEL: a call is refused where one denies it or none allows it.
        optional rules: ListOf<Rule>,
        /// A policy in OPA's language.
        optional rego: Rego,
        /// A service that is asked about each call, as Envoy's external authorisation does.
        optional ext_authz: ExtAuthz,
        /// An API server of Kubernetes that is asked what the caller may do (`SubjectAccessReview`).
        optional subject_access_review: SubjectAccessReview,
    }
}

record! {
    /// A rule in CEL: exactly one of `allow` and `deny`.
    Rule {
        /// Its name, for the log.
        required name: At<Name>,
        /// Allows a call where this is true.
        optional allow: At<Expression>,
        /// Refuses a call where this is true, whatever else allows it.
        optional deny: At<Expression>,
    }
}

record! {
    /// A policy in OPA's language.
    Rego {
        /// Its files; watched.
        required files: OneOrMany<File>,
        /// What must be true for a call to be allowed. Default data.tollgate.allow.
        optional query: At<Text>,
    }
}

record! {
    /// A service that is asked about each call: exactly one of `url` and `grpc`.
    ExtAuthz {
        /// Its address, spoken to over HTTP; the call's path follows it.
        optional url: At<Target>,
        /// Its address, spoken to over gRPC.
        optional grpc: At<Target>,
        /// Headers of the call that it sees.
        optional headers: OneOrMany<SecretHeader>,
        /// How long a call waits for it, at most 2s. Default 200ms.
        optional timeout: At<Span>,
        /// What becomes of a call where it does not answer: deny or allow. Default deny.
        optional on_failure: At<FailsOpen>,
        /// PEM file with the roots to trust there, in place of the system's.
        optional ca: At<File>,
    }
}

record! {
    /// What an API server of Kubernetes is asked: an object of the API where `resource` is said, else the call's path. In the fields of an object stand for themselves {workload}, {model}, {backend}, {route} and {method}.
    SubjectAccessReview {
        /// The kind of the object, in the plural.
        optional resource: At<Template>,
        /// Its group.
        optional group: At<Template>,
        /// Its version.
        optional version: At<Template>,
        /// Its part.
        optional subresource: At<Template>,
        /// Its namespace.
        optional namespace: At<Template>,
        /// Its name.
        optional name: At<Template>,
        /// What is done with it. Default: of an object get, create, update, patch or delete by the method; of a path the method.
        optional verb: At<Template>,
        /// Whether names that begin with system: are believed of other sources than `token_review`, too: trusted or refused. Default refused.
        optional system_names: At<SystemNames>,
        /// How long a call waits for it, at most 2s. Default 500ms.
        optional timeout: At<Span>,
        /// How long a yes is used, at most 10m. Default 5s.
        optional cache: At<Span>,
        /// How long a no is used, at most 10m. Default 5s.
        optional cache_denied: At<Span>,
        /// What becomes of a call where it does not answer: deny or allow. Default deny.
        optional on_failure: At<FailsOpen>,
    }
    and server: ApiServer
}
