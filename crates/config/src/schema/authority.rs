//! `authority`: rules about who may make which call.
//!
//! Not here: what they become (`lower::authority`).

use crate::decode::{At, ListOf, OneOrMany, record};
use crate::scalar::{Expression, File, Name, OnFailure, SecretHeader, Span, Text};
use crate::target::Target;

record! {
    /// Who may make which call, beside routes and limits: exactly one of `rules` and `rego`, or neither with `ext_authz`.
    Authority {
        /// Rules in CEL: a call is refused where one denies it or none allows it.
        optional rules: ListOf<Rule>,
        /// A policy in OPA's language.
        optional rego: Rego,
        /// A service that is asked about each call, as Envoy's external authorisation does.
        optional ext_authz: ExtAuthz,
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
        optional on_failure: At<OnFailure>,
        /// PEM file with the roots to trust there, in place of the system's.
        optional ca: At<File>,
    }
}
