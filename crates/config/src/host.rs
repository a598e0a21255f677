//! What the process needs of a document, besides the snapshot.
//!
//! Not here: what workers read (`policy::snapshot`), how fields become this (`lower`).

mod credential;
mod kubernetes;
mod login;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openapi::Remote;
use policy::admin::Access;
use policy::counting::Settings;
use policy::credential::UpstreamAuth;
use policy::id::EndpointId;
use policy::plain::HostPattern;
use policy::secret::Secret;

pub use self::credential::{
    AwsFrom, AwsSource, AzureProof, AzureSource, ClientCertificate, ClientProof, ContainerToken,
    ExchangeGrant, GoogleFrom, GoogleSource, MadeCredential, MadeKind, SubjectToken, TokenSource,
    UpstreamCredential,
};
pub use self::login::{AdminLogin, LoginClient, LoginSource, OAuthServer};

pub use self::kubernetes::{
    AccessReviewSource, ApiServer, Fact, Piece, ReviewedAction, TokenReviewSource,
};

/// What the process needs besides the snapshot. Only certificates can change without a restart.
#[derive(Debug)]
pub struct Host {
    /// Data plane.
    pub data: SocketAddr,
    /// Metrics, health, the API.
    pub admin: SocketAddr,
    /// Who may do what there.
    pub admin_access: Access,
    /// Who may log in there.
    pub admin_login: Option<AdminLogin>,
    /// TLS of the data plane.
    pub tls: Option<Tls>,
    /// Its listeners, where there are several addresses or hosts; `data` and `tls` above are not used then.
    pub listeners: Vec<HostListener>,
    /// Worker threads, where the document says.
    pub workers: Option<usize>,
    /// Where access-log lines go.
    pub access_log: AccessLog,
    /// How long exchanges in flight may run on when the gate stops.
    pub drain_grace: Duration,
    /// How long the gate goes on taking new connections after SIGTERM, not ready meanwhile.
    pub drain_delay: Duration,
    /// Where usage is written, where the document says.
    pub ledger: Option<Ledger>,
    /// Sources of identities that take credentials, in the order written.
    pub credentials: Vec<CredentialSource>,
    /// Rules about who may make which call, as text.
    pub rules: Option<AuthorityRules>,
    /// The service that is asked about each call.
    pub ext_authz: Option<ExtAuthzSource>,
    /// The API server that is asked what callers may do.
    pub access_review: Option<AccessReviewSource>,
    /// Credentials of endpoints that are made while the gate runs: in the snapshot stands one for each that never
    /// gives any.
    pub upstream_credentials: Vec<UpstreamCredential>,
    /// Certificates that the gate shows to upstreams.
    pub client_certificates: Vec<ClientCertificate>,
    /// What the snapshot's tokenizers are made of.
    pub tokenizers: Vec<TokenizerSource>,
    /// Who counts tokens, and within which bounds.
    pub counting: Settings,
    /// How engines are asked what prompts count; none where they are not.
    pub calibration: Option<Calibration>,
    /// Servers of tools that are started by a command: of each the endpoint whose address is told when the gate runs.
    pub tool_commands: Vec<ToolCommand>,
    /// Servers of tools that are HTTP APIs, whose descriptions are fetched.
    pub tool_descriptions: Vec<ToolDescription>,
    /// Where each of the snapshot's backends is asked, in their order.
    pub asked: Vec<AskedAt>,
    /// How each of the snapshot's backends is asked for its engines' metrics, in their order; `None`: it is not.
    pub engine_metrics: Vec<Option<EngineMetrics>>,
    /// Who picks for each of the snapshot's backends, in their order; `None`: nobody does.
    pub pickers: Vec<Option<EndpointPicker>>,
    /// Where spans are sent, where the document says.
    pub traces: Option<Traces>,
    /// How long responses are kept, and how much of them, where they are.
    pub responses: Option<KeptResponses>,
    /// Where the document names what is written.
    pub lines: Lines,
}

/// Responses that are kept for clients whose backends keep none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptResponses {
    /// How long after one was last used.
    pub keep: Duration,
    /// Bytes of all together.
    pub bytes: usize,
}

/// Lines of the document, from 1, for faults that only the machine can tell. `None` where nothing is written there.
#[derive(Debug, Default)]
pub struct Lines {
    /// Of `access_log`.
    pub access_log: Option<usize>,
    /// Of `ledger.path`.
    pub ledger: Option<usize>,
}

/// A server of tools that is started by a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCommand {
    /// The server's name.
    pub server: String,
    /// Where it is asked.
    pub endpoint: EndpointId,
    /// What is started.
    pub program: Program,
}

/// A server of tools whose description is fetched.
#[derive(Debug, Clone)]
pub struct ToolDescription {
    /// The server's name.
    pub server: String,
    /// What is known of it, which the snapshot's server has, too.
    pub remote: Arc<Remote>,
    /// Roots to trust where it is fetched, in place of the system's, PEM.
    pub ca_pem: Option<Vec<u8>>,
}

/// A program and what it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// By its path, or its name on PATH.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables beside those that every program has.
    pub environment: Vec<(String, Secret)>,
    /// Where it runs.
    pub directory: Option<PathBuf>,
}

/// Rules about who may make which call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorityRules {
    /// In CEL.
    Cel(Vec<WrittenRule>),
    /// In OPA's language.
    Rego {
        /// Names and texts.
        files: Vec<(String, String)>,
        /// What must be true.
        query: String,
    },
}

/// A rule in CEL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRule {
    /// Its name.
    pub name: String,
    /// It refuses; else it allows.
    pub is_deny: bool,
    /// The expression.
    pub when: String,
    /// The line of the document.
    pub line: usize,
}

/// A service that is asked about each call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtAuthzSource {
    /// Its address.
    pub url: String,
    /// It is spoken to over gRPC, else over HTTP.
    pub is_grpc: bool,
    /// Headers that it sees, in lower case.
    pub headers: Vec<String>,
    /// How long a call waits.
    pub timeout: Duration,
    /// A call goes on where it does not answer.
    pub fails_open: bool,
    /// Roots to trust there in place of the system's, PEM.
    pub ca_pem: Option<Vec<u8>>,
}

/// A source of identities that takes credentials: what its verifier is made of.
#[derive(Debug)]
pub struct CredentialSource {
    /// Where its verifier belongs among the snapshot's sources, once those before it are in place.
    pub position: usize,
    /// Where it stands in the document, for faults that are only found when it is built.
    pub place: String,
    /// What it is.
    pub kind: CredentialKind,
}

/// A kind of credential.
#[derive(Debug)]
pub enum CredentialKind {
    /// The gate's own keys, from this file.
    Keys(PathBuf),
    /// Keys that somebody else made.
    Static(Vec<StaticKey>),
    /// Tokens that an issuer signs.
    Jwt(Box<JwtSource>),
    /// Tokens that somebody is asked about.
    Introspection(Box<IntrospectionSource>),
    /// Sessions of people who log in.
    Login(Box<LoginSource>),
    /// Tokens that an API server of Kubernetes is asked about.
    TokenReview(Box<TokenReviewSource>),
}

/// A key that somebody else made.
#[derive(Debug, Clone)]
pub struct StaticKey {
    /// Whom it was given to.
    pub user: String,
    /// The workload that brings it.
    pub workload: String,
    /// What is brought.
    pub secret: Secret,
}

/// Tokens that somebody is asked about.
#[derive(Debug, Clone)]
pub struct IntrospectionSource {
    /// The address of the endpoint.
    pub url: String,
    /// The gate's name there.
    pub client_id: Option<String>,
    /// Its secret there.
    pub client_secret: Option<Secret>,
    /// Both are sent in the form, and not as HTTP's basic credential.
    pub is_posted: bool,
    /// Roots to trust there in place of the system's, PEM.
    pub ca_pem: Option<Vec<u8>>,
    /// How long an answer is used.
    pub cache: Duration,
    /// `aud`: one of these; empty takes any.
    pub audiences: Vec<String>,
    /// How the answer becomes a caller.
    pub claims: ClaimNames,
}

/// Tokens of one issuer.
#[derive(Debug, Clone)]
pub struct JwtSource {
    /// `iss`.
    pub issuer: String,
    /// `aud`: one of these.
    pub audiences: Vec<String>,
    /// `alg`: one of these; empty takes all that are known.
    pub algorithms: Vec<&'static str>,
    /// `typ`: one of these; empty takes what is usual.
    pub types: Vec<String>,
    /// How far clocks may differ, seconds.
    pub leeway_s: u64,
    /// Where its keys are.
    pub keys: JwksSource,
    /// How its claims become a caller.
    pub claims: ClaimNames,
}

/// Where an issuer's keys are.
#[derive(Debug, Clone)]
pub enum JwksSource {
    /// Found by discovery at the issuer.
    Discovery(Fetched),
    /// At an address.
    Url(String, Fetched),
    /// In a file, by content.
    File(Vec<u8>),
}

/// How keys are fetched.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// Roots to trust in place of the system's, PEM.
    pub ca_pem: Option<Vec<u8>>,
    /// How long the last good keys are used while they cannot be fetched.
    pub stale: Duration,
}

/// How claims become a caller.
#[derive(Debug, Clone)]
pub struct ClaimNames {
    /// What says the workload.
    pub workload: WorkloadFrom,
    /// The claim that says who is behind the call.
    pub user: String,
    /// Tags and the claims that say them, ordered by tag.
    pub tags: Vec<(String, String)>,
}

impl ClaimNames {
    /// All claims that are read.
    pub(crate) fn all(&self) -> Vec<&str> {
        let workload = match &self.workload {
            WorkloadFrom::Fixed(_) => None,
            WorkloadFrom::Claim(claim, _) => Some(&**claim),
        };
        let tags = self.tags.iter().map(|(_, claim)| &**claim);
        [&*self.user]
            .into_iter()
            .chain(workload)
            .chain(tags)
            .collect()
    }
}

/// What says the workload.
#[derive(Debug, Clone)]
pub enum WorkloadFrom {
    /// All are one workload's.
    Fixed(String),
    /// A claim, whose value names it, or stands for it in this table where there is one.
    Claim(String, Vec<(String, String)>),
}

/// What a tokenizer is made of.
#[derive(Debug)]
pub struct TokenizerSource {
    /// Tells it from any other; the snapshot's tokenizer has the same.
    pub key: u64,
    /// Where it stands in the document, for faults that are only found when it is built.
    pub place: String,
    /// A vocabulary that is built in, or files.
    pub vocabulary: Vocabulary,
}

/// A vocabulary, with the rendering of prompts that belongs to it.
#[derive(Debug)]
pub enum Vocabulary {
    /// gpt-oss's, with its format.
    Harmony,
    /// OpenAI's since GPT-4o; the template is not public.
    O200k,
    /// OpenAI's before that.
    Cl100k,
    /// A model's own files, by content.
    Files {
        /// `tokenizer.json`.
        tokenizer: Vec<u8>,
        /// The chat template; where there is none, the settings hold one.
        template: Option<Vec<u8>>,
        /// `tokenizer_config.json`: special tokens, and often the template.
        settings: Option<Vec<u8>>,
        /// What the engine was started with.
        engine: EngineStart,
    },
}

/// What a model's engine was started with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineStart {
    /// A JSON object, or nothing.
    pub default_arguments: String,
    /// Calls whose tool choice is none are rendered without their tools.
    pub excludes_tools: bool,
    /// How the chat template is given content.
    pub content: ContentFormat,
    /// The most tokens of a prompt and its answer, where the document says.
    pub model_length: Option<u64>,
}

/// How a chat template is given content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ContentFormat {
    /// As the template reads it.
    #[default]
    Auto,
    /// As text.
    Text,
    /// As a list of parts.
    Parts,
}

/// How engines are asked what prompts count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calibration {
    /// How often.
    pub every: Duration,
    /// How long one question may take.
    pub timeout: Duration,
}

/// How the addresses of a backend are asked what they have to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineMetrics {
    /// Their path at each address.
    pub path: String,
    /// How often.
    pub every: Duration,
}

/// Who picks an address of a backend for each call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointPicker {
    /// Its address, spoken to over gRPC.
    pub url: String,
    /// How long a call waits for it.
    pub timeout: Duration,
    /// Whether a call goes on without it.
    pub fails_open: bool,
    /// The roots to trust there, in place of the system's.
    pub ca_pem: Option<Vec<u8>>,
    /// Any certificate will do there.
    pub is_anyone: bool,
    /// What it adds to the head of an answer goes to the client.
    pub adds_fields: bool,
}

/// Where a backend is asked what prompts count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskedAt {
    /// Nowhere.
    Off,
    /// At its own addresses.
    Own,
    /// At another one: an API root, as in a backend's `url`.
    Other(String),
}

/// Where spans of sampled exchanges are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traces {
    /// Whether over TLS.
    pub tls: bool,
    /// The collector's host, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// `host[:port]`, as a request names it.
    pub authority: String,
    /// The path that takes spans over HTTP.
    pub path: String,
    /// How it is spoken to.
    pub protocol: OtlpProtocol,
    /// Which share of the traces that begin here is kept, millionths.
    pub ratio_millionths: u32,
    /// `service.name`.
    pub service: String,
    /// What the gate sends to be let in.
    pub auth: UpstreamAuth,
    /// Roots to trust in place of the system's, PEM.
    pub ca_pem: Option<Vec<u8>>,
}

/// A transport of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// Protobuf over HTTP/1.1.
    Http,
    /// gRPC over HTTP/2.
    Grpc,
}

/// Where usage is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    /// Its file.
    pub path: PathBuf,
    /// This gate's name in each row.
    pub node: Box<str>,
    /// Age at which rows are pruned.
    pub retention: Option<Duration>,
    /// Size of the file above which the oldest rows are pruned, bytes.
    pub bytes_max: Option<u64>,
    /// Connection string of the fleet's Postgres.
    pub postgres: Option<Secret>,
}

impl Ledger {
    /// The longest period of a budget, days, whose rows are all there after a restart.
    #[must_use]
    pub fn period_days_max(&self) -> u64 {
        self.retention.map_or(u64::MAX, period_days_max)
    }
}

/// The same of rows that are kept for so long: one day more is needed, as a period may end in the middle of one.
pub(crate) fn period_days_max(retention: Duration) -> u64 {
    let days = retention.as_secs() / (24 * 60 * 60);
    days.saturating_sub(1)
}

/// A certificate with its key, read and seen to be PEM.
#[derive(Debug)]
pub struct Tls {
    /// File of the chain.
    pub certificate: PathBuf,
    /// File of the key.
    pub key: PathBuf,
    /// The chain, PEM.
    pub certificate_pem: Vec<u8>,
    /// The key, PEM.
    pub key_pem: Secret,
    /// Who signs clients' certificates, where they are asked for.
    pub clients: Option<ClientTls>,
}

/// One of several listeners of the data plane.
#[derive(Debug)]
pub struct HostListener {
    /// As it is named.
    pub name: String,
    /// Where it stands in the document.
    pub place: String,
    /// Its address.
    pub address: SocketAddr,
    /// The hosts that it is for; all where there is none.
    pub host: Option<HostPattern>,
    /// TLS there.
    pub tls: Option<Tls>,
}

/// How clients' certificates are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTls {
    /// Roots that sign them, PEM.
    pub ca_pem: Vec<u8>,
    /// A client without one is let in all the same.
    pub is_optional: bool,
}

/// Where access-log lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessLog {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// Appended to a file.
    File(PathBuf),
}
