//! What a person writes of the credentials that upstreams take.
//!
//! Not here: what becomes of it (`lower::credential`).

use crate::decode::{At, MapOf, OneOrMany, record};
use crate::scalar::{
    AccessKeyId, Algorithm, ClientAuth, CredentialHeader, File, Flag, Inline, JwtBearer, Name,
    Scheme, SecretFile, Text, Variable,
};
use crate::schema::Bearer;
use crate::target::Target;

record! {
    /// What an upstream takes: a secret from `file`, `env` or `inline`, or one that is made while the gate runs. Exactly one.
    UpstreamCredential of secret: Kept {
        /// A token that an OAuth endpoint gives the gate (client credentials).
        optional oauth: OAuth,
        /// A token that an OAuth endpoint gives for the caller's own (RFC 8693).
        optional exchange: TokenExchange,
        /// A token of Google Cloud's.
        optional google: Google,
        /// A token of Microsoft Entra's.
        optional azure: Azure,
        /// Each request is signed for AWS (Signature Version 4).
        optional aws: Aws,
    }
    and carrier: Carrier
}

record! {
    /// A secret, from exactly one of `file`, `env` and `inline`.
    Kept {
        /// File that holds the secret alone; watched, and used anew within a second of a change.
        optional file: At<SecretFile>,
        /// Environment variable that holds the secret.
        optional env: At<Variable>,
        /// The secret itself, for tests.
        optional inline: At<Inline>,
    }
}

record! {
    /// What carries a credential.
    Carrier {
        /// The header that carries it. Default authorization.
        optional header: At<CredentialHeader>,
        /// The word before it. Default Bearer for authorization, nothing for another header.
        optional scheme: At<Scheme>,
    }
}

record! {
    /// A certificate with its key, which the gate shows to an upstream; used anew when either file changes.
    ClientCertificate {
        /// PEM file with the certificate chain, the gate's own first.
        required certificate: At<File>,
        /// PEM file with the private key.
        required key: At<SecretFile>,
    }
}

record! {
    /// A private key that proves who the gate is (private_key_jwt, RFC 7523).
    PrivateKey {
        /// PEM file with the key: RSA, P-256 or Ed25519.
        required file: At<SecretFile>,
        /// The key's name at the endpoint (`kid`); none unless said.
        optional id: At<Text>,
        /// The algorithm: RS256, PS256, ES256 or EdDSA; what the key is for unless said.
        optional algorithm: At<Algorithm>,
    }
}

record! {
    /// Who the gate is to an OAuth endpoint, and what it asks for.
    OAuth {
        /// The token endpoint.
        required token_url: At<Target>,
        /// The gate's own name there.
        required client_id: At<Text>,
        /// Its secret there; one of `client_secret` and `private_key`.
        optional client_secret: Bearer,
        /// The key that it signs with, in place of a secret.
        optional private_key: PrivateKey,
        /// How name and secret are sent: basic or post. Default basic.
        optional client_auth: At<ClientAuth>,
    }
    and asked: Asked
}

record! {
    /// Where a caller's own token is given for another one.
    TokenExchange {
        /// The token endpoint.
        required token_url: At<Target>,
        /// The gate's own name there; the gate says none unless said.
        optional client_id: At<Text>,
        /// Its secret there.
        optional client_secret: Bearer,
        /// The key that it signs with, in place of a secret.
        optional private_key: PrivateKey,
        /// How name and secret are sent: basic or post. Default basic.
        optional client_auth: At<ClientAuth>,
        /// How the caller's token is sent: token_exchange (RFC 8693) or jwt_bearer (RFC 7523). Default token_exchange.
        optional grant: At<JwtBearer>,
        /// What the caller's token is. Default urn:ietf:params:oauth:token-type:access_token.
        optional subject_token_type: At<Text>,
        /// What is asked for, where the endpoint has to be told.
        optional requested_token_type: At<Text>,
    }
    and asked: Asked
}

record! {
    /// What an OAuth endpoint is asked for.
    Asked {
        /// What the token is to allow.
        optional scope: OneOrMany<Text>,
        /// Whom it is for, where the endpoint asks.
        optional audience: OneOrMany<Text>,
        /// Where it is for (RFC 8707), where the endpoint asks.
        optional resource: OneOrMany<Text>,
        /// Further fields of the request, by name; no secrets.
        optional fields: MapOf<Text, At<Text>>,
        /// PEM file with the roots to trust there, in place of the system's.
        optional ca: At<File>,
    }
}

record! {
    /// A token of another issuer, which the gate asks for (client credentials) each time that it is to be shown.
    IssuedToken {
        /// The issuer, whose discovery document says where its tokens are given; one of `issuer` and `token_url`.
        optional issuer: At<Text>,
        /// The token endpoint, in place of an issuer.
        optional token_url: At<Target>,
        /// The gate's own name there.
        required client_id: At<Text>,
        /// Its secret there.
        required client_secret: Bearer,
        /// How name and secret are sent: basic or post. Default basic.
        optional client_auth: At<ClientAuth>,
        /// What the token is to allow.
        optional scope: OneOrMany<Text>,
        /// Whom it is for, where the endpoint asks.
        optional audience: OneOrMany<Text>,
        /// Where it is for (RFC 8707), where the endpoint asks.
        optional resource: OneOrMany<Text>,
    }
}

record! {
    /// Workload identity federation with Google Cloud, by a token that the gate asks another issuer for.
    Federation {
        /// The provider: //iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER.
        required audience: At<Text>,
        /// The token of the other issuer.
        required token: IssuedToken,
        /// The service account whose token is asked for with Google's, by its address; Google's own is sent unless said.
        optional service_account: At<Text>,
    }
}

record! {
    /// Who the gate is to Google Cloud: exactly one of `key_file`, `federation` and `metadata`.
    Google {
        /// The JSON of a service account (service_account) or of workload identity federation (external_account); watched.
        optional key_file: At<SecretFile>,
        /// Somebody for whom another issuer vouches, which the gate asks for a token.
        optional federation: Federation,
        /// true: the service account of the machine, from its metadata server.
        optional metadata: At<Flag>,
        /// What the token is to allow. Default https://www.googleapis.com/auth/cloud-platform.
        optional scope: OneOrMany<Text>,
        /// Another address of the metadata server, or with `federation` of Google's token services.
        optional endpoint: At<Target>,
        /// PEM file with the roots to trust at the token endpoint, in place of the system's.
        optional ca: At<File>,
    }
}

record! {
    /// Who the gate is to Microsoft Entra: an application (`tenant`, `client_id` and one proof of it) or a managed identity.
    Azure {
        /// The tenant, by id or domain.
        optional tenant: At<Name>,
        /// The application's id; with managed_identity the id of the one that is meant, where the machine has several.
        optional client_id: At<Text>,
        /// The application's secret.
        optional client_secret: Bearer,
        /// PEM file with the application's certificate, in place of a secret.
        optional certificate: At<File>,
        /// PEM file with the certificate's key.
        optional key: At<SecretFile>,
        /// File with a token of another issuer, in place of a secret; read anew as it is replaced.
        optional federated_token_file: At<SecretFile>,
        /// A token of another issuer that the gate asks for, in place of a secret.
        optional federated_token: IssuedToken,
        /// true: the identity of the machine, from its metadata service.
        optional managed_identity: At<Flag>,
        /// What the token is to allow. Default https://cognitiveservices.azure.com/.default.
        optional scope: At<Text>,
        /// The address of Entra. Default https://login.microsoftonline.com.
        optional authority: At<Target>,
        /// Another address of the metadata service.
        optional endpoint: At<Target>,
        /// PEM file with the roots to trust at the token endpoint, in place of the system's.
        optional ca: At<File>,
    }
}

record! {
    /// With whose keys requests are signed for AWS: `access_key_id` and `secret_access_key`, `web_identity`, `imds`, `container`, or `default_chain`.
    Aws {
        /// The region of the service.
        required region: At<Name>,
        /// The name by which the service signs. Default bedrock.
        optional service: At<Name>,
        /// Names the key.
        optional access_key_id: At<AccessKeyId>,
        /// The key's secret.
        optional secret_access_key: Bearer,
        /// The session's token, where the key is a session's.
        optional session_token: Bearer,
        /// A role that a token of another issuer may take.
        optional web_identity: WebIdentity,
        /// true: the role of the machine, from its metadata service (IMDSv2).
        optional imds: At<Flag>,
        /// true: the role of the container, from its agent (ECS, EKS Pod Identity), as the environment says.
        optional container: At<Flag>,
        /// true: the first that there is of keys in the environment, a role's token that it names, the container's role, the machine's.
        optional default_chain: At<Flag>,
        /// Another address of the token service or of the metadata service.
        optional endpoint: At<Target>,
        /// PEM file with the roots to trust at the token service, in place of the system's.
        optional ca: At<File>,
    }
}

record! {
    /// A role at AWS, and the token that lets the gate take it: exactly one of `token_file` and `token`.
    WebIdentity {
        /// The role.
        required role_arn: At<Text>,
        /// File with the token; read anew as it is replaced.
        optional token_file: At<SecretFile>,
        /// The token, which the gate asks another issuer for.
        optional token: IssuedToken,
        /// What the session is called in the account's logs. Default tollgate.
        optional session_name: At<Name>,
    }
}
