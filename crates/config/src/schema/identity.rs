//! `identity`: the ways in which callers are recognised.
//!
//! Not here: what they become (`lower::identity`).

use serde_json::{Value as Json, json};

use super::Bearer;
use super::login::LoginClient;
use crate::decode::{At, Decode, Defs, Findings, ListOf, MapOf, OneOrMany, Place, record};
use crate::node::{Node, Value};
use crate::scalar::{
    Algorithm, CallUser, Claim, ClientAuth, File, IdentityHeader, Name, Network, RecordUser,
    RedirectUrl, SecretFile, Span, Text, Trust,
};
use crate::target::Target;

/// One source, or several in the order in which they are asked.
pub(crate) struct Identity(pub(crate) Vec<(Place, Option<IdentitySource>)>);

impl Decode for Identity {
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        if matches!(node.value, Value::List(_)) {
            return ListOf::decode(node, path, findings).map(|ListOf(sources)| Self(sources));
        }
        let place = Place::new(path, node.line);
        let source = IdentitySource::decode(node, path, findings)?;
        Some(Self(vec![(place, Some(source))]))
    }

    fn schema(defs: &mut Defs) -> Json {
        let one = IdentitySource::schema(defs);
        json!({ "anyOf": [one.clone(), { "type": "array", "minItems": 1, "items": one }] })
    }
}

record! {
    /// A way to recognise callers: exactly one of `keys`, `static_keys`, `jwt`, `introspection`, `token_review`, `login`, `certificates` and `header`.
    IdentitySource {
        /// Keys of the gate's own, as `tollgate keys` makes them.
        optional keys: Keys,
        /// Keys that somebody else made, by the user whom each was given to.
        optional static_keys: MapOf<Name, StaticKey>,
        /// Signed tokens.
        optional jwt: Jwt,
        /// Tokens that whoever issued them is asked about (RFC 7662).
        optional introspection: Introspection,
        /// Tokens of Kubernetes, which its API server is asked about.
        optional token_review: TokenReview,
        /// People who log in with a browser at an OpenID provider, and their sessions.
        optional login: Login,
        /// Workloads by a DNS or URI name of the client's certificate, such as spiffe://cluster.local/ns/chat/sa/web; a * at the end fits any rest. They need `listen.tls.client_ca`.
        optional certificates: MapOf<Text, At<Name>>,
        /// The request header that names the workload; beside another kind, one that must not contradict what is proven. Default x-workload-app.
        optional header: At<IdentityHeader>,
        /// A request header that names the user, believed of the same peers.
        optional user_header: At<IdentityHeader>,
        /// The workload of a call without that header; without this such a call is refused.
        optional default: At<Name>,
        /// Addresses or networks of the peers whose header is believed.
        optional from: OneOrMany<Network>,
        /// Names of certificates of peers whose header is believed.
        optional from_certificates: OneOrMany<Text>,
        /// anyone: whoever reaches the listener is believed, whatever the header says. Needed where others than this machine reach it, and `from` is not said.
        optional trust: At<Trust>,
        /// Whether a call says itself who is behind it, where what identifies it names no user: trusted reads `user`, `safety_identifier` or `metadata.user_id` of its body. Default ignored.
        optional call_user: At<CallUser>,
        /// Whether ledger, access log and spans hold the user: full, or off. Default full.
        optional record_user: At<RecordUser>,
    }
}

record! {
    /// Keys of the gate's own.
    Keys {
        /// The file that holds their hashes, one JSON object a line; `tollgate keys` writes it. Watched, and readable by its owner alone.
        required file: At<SecretFile>,
    }
}

record! {
    /// A key that somebody else made, from exactly one of `file`, `env` and `inline`.
    StaticKey of secret: Bearer {
        /// The workload that brings it.
        required workload: At<Name>,
    }
}

record! {
    /// Tokens that an issuer signs.
    Jwt {
        /// The issuer, exactly as the tokens' `iss` says it.
        required issuer: At<Text>,
        /// Whom the tokens must be for: one of these must be in `aud`.
        required audience: OneOrMany<Text>,
        /// The issuer's keys; found by discovery at the issuer unless said.
        optional jwks: Jwks,
        /// Algorithms that are taken. Default: whatever the issuer's key is for, of RS, PS, ES and EdDSA.
        optional algorithms: OneOrMany<Algorithm>,
        /// Values of the tokens' `typ` that are taken, such as at+jwt. Default: at+jwt, JWT or none.
        optional types: OneOrMany<Text>,
        /// How far the issuer's clock may differ. Default 30s, at most 60s.
        optional leeway: At<Span>,
    }
    and claims: CallerClaims
}

record! {
    /// Tokens that whoever issued them is asked about.
    Introspection {
        /// The address of the endpoint.
        required url: At<Target>,
        /// The gate's own name there.
        optional client_id: At<Text>,
        /// Its secret there.
        optional client_secret: Bearer,
        /// How both are sent: basic or post. Default basic.
        optional client_auth: At<ClientAuth>,
        /// PEM file with the roots to trust there, in place of the system's.
        optional ca: At<File>,
        /// How long an answer is used, at most 10m and never past the token's end. Default 5s.
        optional cache: At<Span>,
        /// Whom the tokens must be for: one of these must be in `aud`. Any unless said.
        optional audience: OneOrMany<Text>,
    }
    and claims: CallerClaims
}

record! {
    /// Tokens that an API server of Kubernetes is asked about (`TokenReview`).
    TokenReview {
        /// Whom the tokens must be for: one of these. Default: the API server itself.
        optional audiences: OneOrMany<Text>,
        /// How long an answer is used, at most 10m and never past the token's end. The API server keeps its own for 10s on top of it. Default 5s.
        optional cache: At<Span>,
    }
    and server: ApiServer
    and claims: CallerClaims
}

record! {
    /// Where an API server of Kubernetes is, and who the gate is to it.
    ApiServer {
        /// The address of the API server. Default https://kubernetes.default.svc, as pods reach theirs.
        optional server: At<Target>,
        /// PEM file with the roots to trust there. Default: those of the pod; the system's where `server` is said.
        optional ca: At<File>,
        /// The gate's own token there. Default: the pod's.
        optional token: TokenFile,
    }
}

record! {
    /// A token that is replaced from time to time.
    TokenFile {
        /// The file that holds it; read anew at least every 10s while it is used.
        required file: At<SecretFile>,
    }
}

record! {
    /// How claims become a caller.
    CallerClaims {
        /// The workload of all of these tokens.
        optional workload: At<Name>,
        /// The claim that says the workload; one of `workload` and `workload_claim`.
        optional workload_claim: At<Claim>,
        /// Workloads by the values of that claim, where the claim does not name them itself.
        optional workloads: MapOf<Text, At<Name>>,
        /// The claim that says who the person or service behind the call is. Default sub, and username of `token_review`.
        optional user_claim: At<Claim>,
        /// Tags of the call's record, by name, and the claims that say them.
        optional tags: MapOf<Name, At<Claim>>,
    }
}

record! {
    /// People who log in with a browser at an OpenID provider (authorisation code with PKCE), and their sessions.
    Login {
        /// Where the provider sends browsers back to, as it is registered there: the gate's public address with a path of its own, such as https://ai.example/login/callback. With http for loopback hosts only.
        required redirect_url: At<RedirectUrl>,
        /// Claims of the ID token that a session keeps beside those named below, for rules. All unless said.
        optional keep_claims: OneOrMany<Claim>,
    }
    and client: LoginClient
    and claims: CallerClaims
}

record! {
    /// Where an issuer's keys are: exactly one of `url` and `file`.
    Jwks {
        /// The address of its key set.
        optional url: At<Target>,
        /// A file with its key set; watched.
        optional file: At<File>,
        /// PEM file with the roots to trust there, in place of the system's.
        optional ca: At<File>,
        /// How long the last good keys are used while they cannot be fetched. Default 24h.
        optional stale: At<Span>,
    }
}
