//! Credentials for upstreams that are made while the gate runs: what each is made of.
//!
//! Two that are equal are one: it is kept over a reload. So a secret that was replaced makes another one.
//! Not here: making them (`tollgate`), secrets that are sent as they are (`policy::credential`).

use std::path::PathBuf;
use std::time::Duration;

use policy::id::EndpointId;
use policy::secret::Secret;

/// The credential of an endpoint.
#[derive(Debug)]
pub struct UpstreamCredential {
    /// Whose.
    pub endpoint: EndpointId,
    /// Where it stands in the document, for faults that are only found when it is built.
    pub place: String,
    /// What it is made of.
    pub made: MadeCredential,
}

/// What a credential is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeCredential {
    /// Which account it is for, and who is asked; no secret.
    pub account: String,
    /// The header that carries it, lower case.
    pub header: String,
    /// The word before it; empty for none.
    pub scheme: String,
    /// Roots to trust at whoever is asked, in place of the system's, PEM.
    pub ca_pem: Option<Vec<u8>>,
    /// How it is made.
    pub kind: MadeKind,
}

/// How a credential is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MadeKind {
    /// An OAuth endpoint gives it to the gate.
    OAuth(Box<TokenSource>),
    /// An OAuth endpoint gives it for the caller's own token.
    Exchange(Box<TokenSource>, ExchangeGrant),
    /// Google gives it.
    Google(Box<GoogleSource>),
    /// Microsoft Entra gives it.
    Azure(Box<AzureSource>),
    /// Requests are signed for AWS.
    Aws(Box<AwsSource>),
}

/// A request to an OAuth endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSource {
    /// The endpoint.
    pub url: String,
    /// The gate's name there.
    pub client_id: Option<String>,
    /// What proves it.
    pub proof: ClientProof,
    /// What the token is to allow.
    pub scope: Option<String>,
    /// Whom it is for.
    pub audiences: Vec<String>,
    /// Where it is for.
    pub resources: Vec<String>,
    /// Further fields.
    pub fields: Vec<(String, String)>,
}

/// What proves who the gate is to an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientProof {
    /// Nothing does.
    Nothing,
    /// A secret.
    Secret {
        /// It.
        secret: Secret,
        /// It is sent in the form, and not as HTTP's basic credential.
        is_posted: bool,
    },
    /// A key.
    Key {
        /// It, PEM.
        pem: Secret,
        /// Its name there.
        id: Option<String>,
        /// What it signs with; what it is for where none is said.
        algorithm: Option<&'static str>,
    },
}

/// How a caller's token is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeGrant {
    /// By RFC 8693.
    TokenExchange {
        /// What the caller's token is.
        subject_token_type: String,
        /// What is asked for.
        requested_token_type: Option<String>,
    },
    /// By RFC 7523.
    JwtBearer,
}

/// Who the gate is to Google, and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoogleSource {
    /// What the token is to allow.
    pub scopes: Vec<String>,
    /// Who.
    pub from: GoogleFrom,
}

/// Who the gate is to Google.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GoogleFrom {
    /// A service account, by its key.
    Key {
        /// Its name.
        email: String,
        /// Its key, PEM.
        pem: Secret,
        /// The key's name.
        id: Option<String>,
        /// Who gives the token.
        url: String,
    },
    /// The machine's own, from its metadata server at this address.
    Metadata(String),
    /// Somebody for whom another issuer vouches.
    External {
        /// Who gives a token for that one.
        url: String,
        /// Whom that one is shown to.
        audience: String,
        /// What it is.
        subject_token_type: String,
        /// It.
        token: SubjectToken,
        /// Where a service account's token is given for what was given, and how long that is to live.
        impersonation: Option<(String, Duration)>,
    },
}

/// A token of another issuer, which whoever gives one for it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubjectToken {
    /// In a file that is read each time: its whole text, or this member of its JSON.
    File(PathBuf, Option<String>),
    /// Asked for each time, at the endpoint that the source says.
    Asked(Box<TokenSource>),
    /// Asked for each time, at the endpoint that this issuer's document says.
    AskedOf(String, Box<TokenSource>),
}

/// Who the gate is to Microsoft Entra.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AzureSource {
    /// An application.
    Application {
        /// The token endpoint of its tenant.
        url: String,
        /// Its id.
        client_id: String,
        /// What the token is to allow.
        scope: String,
        /// What proves it.
        proof: AzureProof,
    },
    /// The identity of the machine, from its metadata service at this address.
    Managed(String),
}

/// What proves an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AzureProof {
    /// A secret.
    Secret(Secret),
    /// A certificate, PEM, and its key, PEM.
    Certificate(Vec<u8>, Secret),
    /// A token of another issuer.
    Token(SubjectToken),
}

/// With which keys requests are signed, and for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsSource {
    /// The region.
    pub region: String,
    /// The name by which the service signs.
    pub service: String,
    /// Whose keys.
    pub from: AwsFrom,
}

/// Whose keys sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AwsFrom {
    /// These.
    Keys {
        /// Names the key.
        id: String,
        /// Signs.
        secret: Secret,
        /// Sent along, where they are a session's.
        token: Option<Secret>,
    },
    /// A role's, which a token lets the gate take.
    WebIdentity {
        /// The token service.
        url: String,
        /// The role.
        role_arn: String,
        /// What the session is called.
        session_name: String,
        /// The token.
        token: SubjectToken,
    },
    /// Those of the machine's role, from its metadata service at this address.
    Instance(String),
    /// Those of the container's role, from its agent.
    Container {
        /// The agent.
        url: String,
        /// What proves the container to it, where it asks for that.
        token: Option<ContainerToken>,
    },
}

/// What proves a container to its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContainerToken {
    /// A file with it; read each time.
    File(PathBuf),
    /// It.
    Text(Secret),
}

/// A certificate that the gate shows to upstreams.
#[derive(Debug)]
pub struct ClientCertificate {
    /// What tells it from others: `policy::snapshot::Origin::certificate`.
    pub digest: String,
    /// Where it stands in the document.
    pub place: String,
    /// The chain, PEM.
    pub certificate_pem: Vec<u8>,
    /// The key, PEM.
    pub key_pem: Secret,
}
