//! What a person writes: every field of the document, in the order of the reference.
//!
//! Doc comments here are the descriptions in the published JSON Schema.
//! Not here: what the fields become (`lower`).

pub(crate) mod abandon;
pub(crate) mod admin;
pub(crate) mod authority;
pub(crate) mod credential;
pub(crate) mod identity;
pub(crate) mod proxy;

use serde_json::json;

use self::abandon::Abandon;
use self::admin::Admin;
use self::authority::Authority;
use self::credential::{ClientCertificate, UpstreamCredential};
use self::identity::Identity;
use self::proxy::Proxy;
use crate::decode::{At, Decode, Defs, Findings, ListOf, MapOf, OneOrMany, record};
use crate::node::{Node, Value};
use crate::scalar::{
    Address, Age, Amount, Apart, BilledBy, Billing, Brief, BuiltIn, Call, Charge,
    ClientCertificates, Count, CredentialHeader, Currency, Decimal, Every, File, Flag, HeaderValue,
    Host, Inline, LogTarget, Model, Money, Name, Network, Origin, OtlpProtocol, PassedHeader,
    Pattern, Percent, PricePer, Protocol, ProxyProtocol, QueryName, QueryValue, Ratio, Recorded,
    Scheme, SecretFile, Size, Span, Status, Variable, Whose, Zone,
};
use crate::target::Target;

record! {
    /// The configuration of the gate.
    Document {
        /// Where the gate listens.
        optional listen: Listen,
        /// How callers are recognised: one source, or several in the order in which they are asked.
        optional identity: Identity,
        /// Who may make which call, beside routes and limits; everybody unless said.
        optional authority: Authority,
        /// Which web pages may call; none unless said.
        optional cors: Cors,
        /// Who may do what on the admin endpoint; whoever reaches it may read unless said.
        optional admin: Admin,
        /// Whose word about a client's address counts, and what of it is recorded.
        optional client_address: ClientAddress,
        /// Worker threads; as many as the CPU quota has cores unless said.
        optional workers: At<Count<1024>>,
        /// Where access-log lines go: off, stdout or a file. Default stdout.
        optional access_log: At<LogTarget>,
        /// How the gate stops.
        optional drain: Drain,
        /// What a client may send, and how slowly.
        optional bounds: Bounds,
        /// The upstream targets, by name.
        required backends: MapOf<Name, Backend>,
        /// From workload and model to backend; the first that fits is taken.
        required routes: ListOf<Route>,
        /// What tokens cost, by model.
        optional prices: MapOf<Model, Price>,
        /// Workloads that pay together, by the group's name; a workload is in one group at most.
        optional groups: MapOf<Name, OneOrMany<Name>>,
        /// Amounts of tokens or money over calendar periods, by name; they need a ledger.
        optional budgets: MapOf<Name, Budget>,
        /// What the gate counts tokens with, by the model sent upstream; the most specific pattern counts.
        optional tokenizers: MapOf<Pattern, Tokenizer>,
        /// How tokens are counted, where there are tokenizers.
        optional counting: Counting,
        /// The usage ledger: a row on disk for each exchange that was let in; none unless said.
        optional ledger: Ledger,
        /// Where spans of sampled exchanges are sent; nowhere unless said.
        optional traces: Traces,
    }
}

record! {
    /// Where the gate listens.
    Listen {
        /// Address of the data plane. Default 127.0.0.1:1975.
        optional data: At<Address>,
        /// Address of metrics, health and /config. Default 127.0.0.1:1976.
        optional admin: At<Address>,
        /// Hosts that a request may name, without a port, or "*" for all; on a loopback address beside localhost and the loopback addresses.
        optional hosts: OneOrMany<Host>,
        /// Serve the data plane over TLS.
        optional tls: Tls,
    }
}

record! {
    /// A certificate with its key; reloaded when either file changes.
    Tls {
        /// PEM file with the certificate chain, the gate's own first.
        required certificate: At<File>,
        /// PEM file with the private key.
        required key: At<SecretFile>,
        /// PEM file with the roots that sign clients' certificates; without it clients are asked for none.
        optional client_ca: At<File>,
        /// Whether a client without a certificate is let in all the same: required or optional. Default required.
        optional client_certificates: At<ClientCertificates>,
    }
}

record! {
    /// Which web pages may call.
    Cors {
        /// Their origins as browsers write them, such as https://app.example, or "*" for all but null.
        required origins: OneOrMany<Origin>,
    }
}

record! {
    /// A secret, from exactly one of `file`, `env` and `inline`.
    Bearer {
        /// File that holds it alone; watched, and used anew within a second of a change.
        optional file: At<SecretFile>,
        /// Environment variable that holds it.
        optional env: At<Variable>,
        /// The secret itself, for tests.
        optional inline: At<Inline>,
    }
}

record! {
    /// Whose word about a client's address counts, and what of it is recorded.
    ClientAddress {
        /// What the access log and spans hold: full, shortened (its /24 or /48) or off. Default full.
        optional record: At<Recorded>,
        /// Proxies, by address or network, whose x-forwarded-for and PROXY protocol headers are believed; none unless said.
        optional trusted_proxies: OneOrMany<Network>,
        /// off, or required: trusted proxies begin each connection to the data plane with a PROXY protocol header, version 1 or 2. Default off.
        optional proxy_protocol: At<ProxyProtocol>,
    }
}

record! {
    /// How the gate stops.
    Drain {
        /// How long exchanges in flight may run on after SIGTERM, the delay not counted. Default 10m.
        optional grace: At<Span>,
        /// How long new connections are taken after SIGTERM, while /readyz already fails; none unless said.
        optional delay: At<Span>,
    }
}

record! {
    /// What a client may send, and how slowly.
    Bounds {
        /// Request body. Default 32MiB.
        optional body: At<Size<1024>>,
        /// Request head. Default 64KiB.
        optional head: At<Size<1>>,
        /// Request header fields. Default 100.
        optional fields: At<Count<10000>>,
        /// From the first byte of a head to its end. Default 10s.
        optional head_time: At<Span>,
        /// Silence in the middle of a request body. Default 30s.
        optional body_idle: At<Span>,
        /// From the first byte of a request to the end of its body. Default 5m.
        optional body_time: At<Span>,
        /// Request bodies that one worker keeps at one time, until they are sent. Default 256MiB, or one body.
        optional bodies: At<Size>,
        /// A client that takes nothing of a response for so long is gone. Default 30s.
        optional write_stall: At<Span>,
        /// A kept-alive connection with no request on it. Default 75s.
        optional keep_alive: At<Span>,
        /// Connections of one worker. Default 50000.
        optional connections: At<Count<1000000>>,
        /// Connections of one worker that come from one address, or from one /64 of IPv6. Default 10000.
        optional source_connections: At<Count<1000000>>,
        /// Streams of one HTTP/2 connection at one time. Default 100.
        optional streams: At<Count<10000>>,
        /// Responses of one worker that are read to their end without a client. Default 100.
        optional reads_to_end: At<Count<100000>>,
        /// How long the last good addresses of an upstream's name are used while it cannot be looked up. Default 10m.
        optional address_age: At<Span>,
        /// Keys and users whose limits are kept apart at one time, and as many of which budgets are. Default 65536.
        optional subjects: At<Count<16777216>>,
    }
}

record! {
    /// A named upstream target: one `url`, or several `endpoints`.
    Backend {
        /// The API root, /v1 included, as in OPENAI_BASE_URL; it replaces the /v1 of the client's path.
        optional url: At<Target>,
        /// Several addresses that share the traffic.
        optional endpoints: ListOf<Endpoint>,
        /// The credential sent upstream; none unless said.
        optional credential: UpstreamCredential,
        /// The certificate that the gate shows upstream; none unless said.
        optional client_certificate: ClientCertificate,
        /// Headers of every request to it, by name; they replace what the client sends by these names.
        optional headers: MapOf<PassedHeader, At<HeaderValue>>,
        /// Members of the query of every request to it, by name, such as api-version; they replace the client's.
        optional query: MapOf<QueryName, At<QueryValue>>,
        /// Models it serves, for /v1/models.
        optional models: OneOrMany<Model>,
        /// What it calls models that the gate knows by other names. Prices, limits and budgets go by the gate's.
        optional model_names: MapOf<Model, At<Model>>,
        /// How long each phase of a call may take.
        optional timeouts: Timeouts,
        /// When an address of it that keeps failing is left alone.
        optional ejection: Ejection,
        /// One worker's connections to each of its addresses.
        optional pool: Pool,
        /// auto (over TLS what ALPN chooses, in clear HTTP/1.1), http1 or http2. Default auto.
        optional protocol: At<Protocol>,
        /// PEM file with the roots to trust instead of the system's.
        optional ca: At<File>,
        /// The API is at the root of its addresses, which then need no path such as /v1. Default false.
        optional at_root: At<Flag>,
        /// The HTTP proxy on the way, or none; as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say unless written.
        optional proxy: Proxy,
    }
}

record! {
    /// An HTTP proxy and what it asks for.
    ProxyAt {
        /// Its address, such as http://proxy.example:3128.
        required url: At<Target>,
        /// What the gate sends to it to be let through; nothing unless said.
        optional credential: ProxyCredential,
    }
}

record! {
    /// A user and a password, written user:password, from exactly one of `file`, `env` and `inline`.
    ProxyCredential {
        /// File that holds them alone; watched, and used anew within a second of a change.
        optional file: At<SecretFile>,
        /// Environment variable that holds them.
        optional env: At<Variable>,
        /// They themselves, for tests.
        optional inline: At<Inline>,
    }
}

record! {
    /// One address of a backend.
    Endpoint {
        /// The API root, as in a backend's `url`.
        required url: At<Target>,
        /// Its share of the traffic. Default 1.
        optional weight: At<Count<1000000>>,
        /// Its own credential, in place of the backend's.
        optional credential: UpstreamCredential,
    }
}

record! {
    /// A secret, from exactly one of `file`, `env` and `inline`, and the header that carries it.
    Credential {
        /// File that holds the secret alone; watched, and used anew within a second of a change.
        optional file: At<SecretFile>,
        /// Environment variable that holds the secret.
        optional env: At<Variable>,
        /// The secret itself, for tests.
        optional inline: At<Inline>,
        /// The header that carries it. Default authorization.
        optional header: At<CredentialHeader>,
        /// The word before it. Default Bearer for authorization, nothing for another header.
        optional scheme: At<Scheme>,
    }
}

record! {
    /// How long each phase of a call may take. There is no total: generations may be long.
    Timeouts {
        /// To an established connection, TLS included. Default 5s.
        optional connect: At<Span>,
        /// From the request sent to the response head. Default 5m.
        optional first_byte: At<Span>,
        /// Silence in the middle of a response. Default 5m.
        optional idle: At<Span>,
    }
}

record! {
    /// When an address that keeps failing is left alone, by each worker for itself.
    Ejection {
        /// Failures in a row before it is. Default 5.
        optional failures: At<Count<1000>>,
        /// How long the first time, 1h at most; doubles with each failed trial after it. Default 5s.
        optional time: At<Brief>,
        /// How long at most, 1h at most. Default 5m.
        optional max_time: At<Brief>,
    }
}

record! {
    /// One worker's connections to one address.
    Pool {
        /// Open at one time, busy or idle. Default 20000.
        optional connections: At<Count<1000000>>,
        /// Kept without a call. Default 1024.
        optional idle: At<Count<1000000>>,
        /// How long one is kept so, 1h at most. Default 55s.
        optional idle_time: At<Brief>,
        /// Calls on one HTTP/2 connection at one time. Default 100.
        optional streams: At<Count<10000>>,
    }
}

record! {
    /// A rule from workload and model to backend.
    Route {
        /// For logs, metrics and limits; made from the backends unless said.
        optional name: At<Name>,
        /// The workloads it is for; being named here registers them.
        required workload: OneOrMany<Name>,
        /// Which calls of theirs it takes; all unless said.
        optional r#match: Match,
        /// Where they go; of several, the next is tried when one fails.
        required backend: OneOrMany<Name>,
        /// The model sent upstream in place of the client's.
        optional model: At<Model>,
        /// Rates, each counted for each workload apart, or for each key or user of it.
        optional limits: ListOf<Limit>,
        /// The most tokens that one answer can have, held for a call that has no cap of its own.
        optional output_max: At<Amount>,
        /// grouped (nobody waits for the ledger) or strict (no call runs without its row on disk). Default grouped.
        optional billing: At<Billing>,
        /// Whose count limits, budgets and costs go by: reported (the engine's) or counted (the gate's own, where it can count). Default reported.
        optional billed_by: At<BilledBy>,
        /// When a call is tried again.
        optional retries: Retries,
        /// When a client leaves: cancel (the upstream is told at once) or read_to_end (the gate reads on for the usage). Default cancel.
        optional abandon: Abandon,
        /// Calls that it lets through though the gate does not read them; none unless said.
        optional unread: ListOf<Unread>,
        /// Request headers that go upstream besides those that always do.
        optional forward_headers: OneOrMany<PassedHeader>,
        /// Response headers that go to clients besides those that always do.
        optional return_headers: OneOrMany<PassedHeader>,
    }
}

record! {
    /// When a call is tried again.
    Retries {
        /// Tries of one call, the first included; 1 for none again. Default 4.
        optional attempts: At<Count<8>>,
        /// After which statuses of an upstream. Default 408, 425, 429, 500, 502, 503, 504 and 529.
        optional statuses: OneOrMany<Status>,
        /// Retries in all, as a share of first tries, 0 to 1. Default 0.1.
        optional share: At<Ratio>,
        /// Retries in hand at the start, and the most that can be saved up. Default 10.
        optional burst: At<Count<1000>>,
    }
}

record! {
    /// Calls that are let through unread, and what each that is answered is charged.
    Unread {
        /// Method and path, such as "GET /v1/files/{id}"; {id} is one plain segment.
        required call: OneOrMany<Call>,
        /// Tokens; required where a limit or a budget counts tokens.
        optional tokens: At<Charge>,
        /// Money, an exact decimal; required where a budget counts money.
        optional money: At<Decimal>,
        /// ISO 4217 code of the money. Default USD.
        optional currency: At<Currency>,
        /// What it reads and changes may be every workload's that uses the account. Default false.
        optional shared: At<Flag>,
    }
}

record! {
    /// The gate reads on when a client leaves.
    ReadToEnd {
        /// How far.
        required read_to_end: ReadToEndBounds,
    }
}

record! {
    /// How far the gate reads on for a client that left; then the upstream is told.
    ReadToEndBounds {
        /// At most about so many tokens: events of a stream, or four bytes each.
        required tokens: At<Amount>,
        /// At most so long.
        required seconds: At<Count<3600>>,
    }
}

record! {
    /// Which calls a route takes.
    Match {
        /// Models by name, or by the start of a name and a `*`.
        required model: OneOrMany<Pattern>,
    }
}

record! {
    /// A rate of `requests` or of `tokens`.
    Limit {
        /// Exchanges admitted in each `per`.
        optional requests: At<Amount>,
        /// Tokens, of prompt and completion together, in each `per`.
        optional tokens: At<Amount>,
        /// The window, such as 1m.
        required per: At<Span>,
        /// How much an idle bucket holds. Default one window's worth.
        optional burst: At<Amount>,
        /// Who has such a bucket to itself: workload, key or user, each on this route. Default workload.
        optional r#for: At<Whose>,
    }
}

record! {
    /// What calls to a model cost; exact decimals. Its name is the one that goes upstream.
    Price {
        /// Of prompt tokens.
        required input: At<Decimal>,
        /// Of completion tokens.
        required output: At<Decimal>,
        /// Of prompt tokens that the engine had cached; as `input` unless said.
        optional cached_input: At<Decimal>,
        /// Of prompt tokens written to a cache that keeps them five minutes; as `input` unless said.
        optional cache_write_5m: At<Decimal>,
        /// Of prompt tokens written to a cache that keeps them an hour; as `input` unless said.
        optional cache_write_1h: At<Decimal>,
        /// Of audio tokens of the prompt; as `input` unless said.
        optional audio_input: At<Decimal>,
        /// Of completion tokens spent on reasoning; as `output` unless said.
        optional reasoning: At<Decimal>,
        /// Of audio tokens of the completion; as `output` unless said.
        optional audio_output: At<Decimal>,
        /// Of each call that was answered, whatever its tokens. Default 0.
        optional request: At<Decimal>,
        /// Other prices for the whole of a call with a long prompt.
        optional tiers: ListOf<Tier>,
        /// For how many tokens: 1, 1K or 1M. Default 1M.
        optional per: At<PricePer>,
        /// ISO 4217 code. Default USD.
        optional currency: At<Currency>,
        /// What it costs at a backend, by the backend's name, in place of all the above.
        optional at: MapOf<Name, PriceAt>,
    }
}

record! {
    /// What calls to a model cost at one backend.
    PriceAt {
        /// Of prompt tokens.
        required input: At<Decimal>,
        /// Of completion tokens.
        required output: At<Decimal>,
        /// Of prompt tokens that the engine had cached; as `input` unless said.
        optional cached_input: At<Decimal>,
        /// Of prompt tokens written to a cache that keeps them five minutes; as `input` unless said.
        optional cache_write_5m: At<Decimal>,
        /// Of prompt tokens written to a cache that keeps them an hour; as `input` unless said.
        optional cache_write_1h: At<Decimal>,
        /// Of audio tokens of the prompt; as `input` unless said.
        optional audio_input: At<Decimal>,
        /// Of completion tokens spent on reasoning; as `output` unless said.
        optional reasoning: At<Decimal>,
        /// Of audio tokens of the completion; as `output` unless said.
        optional audio_output: At<Decimal>,
        /// Of each call that was answered, whatever its tokens. Default 0.
        optional request: At<Decimal>,
        /// Other prices for the whole of a call with a long prompt.
        optional tiers: ListOf<Tier>,
        /// For how many tokens; as the model's unless said.
        optional per: At<PricePer>,
        /// ISO 4217 code; as the model's unless said.
        optional currency: At<Currency>,
    }
}

record! {
    /// Prices of calls with long prompts.
    Tier {
        /// It is for calls whose prompt has more tokens than this.
        required above: At<Amount>,
        /// Of prompt tokens.
        required input: At<Decimal>,
        /// Of completion tokens.
        required output: At<Decimal>,
        /// Of prompt tokens that the engine had cached; as `input` unless said.
        optional cached_input: At<Decimal>,
        /// Of prompt tokens written to a cache that keeps them five minutes; as `input` unless said.
        optional cache_write_5m: At<Decimal>,
        /// Of prompt tokens written to a cache that keeps them an hour; as `input` unless said.
        optional cache_write_1h: At<Decimal>,
        /// Of audio tokens of the prompt; as `input` unless said.
        optional audio_input: At<Decimal>,
        /// Of completion tokens spent on reasoning; as `output` unless said.
        optional reasoning: At<Decimal>,
        /// Of audio tokens of the completion; as `output` unless said.
        optional audio_output: At<Decimal>,
    }
}

record! {
    /// An amount of `tokens` or of `money` for each calendar period; everybody's unless it says whose.
    Budget {
        /// Tokens, of prompt and completion together.
        optional tokens: At<Amount>,
        /// Money, by the prices of the models; an exact decimal of at most nine places.
        optional money: At<Money>,
        /// ISO 4217 code of the money. Default USD.
        optional currency: At<Currency>,
        /// The period: day, week (from Monday) or month.
        required per: At<Every>,
        /// How far its midnight is from UTC's, such as "+02:00". Default +00:00.
        optional zone: At<Zone>,
        /// The workload whose calls it counts.
        optional workload: At<Name>,
        /// The group whose calls it counts.
        optional group: At<Name>,
        /// Models by name, or by the start of a name and a `*`; all unless said.
        optional model: OneOrMany<Pattern>,
        /// Who of them has the amount to itself: key or user; all share it unless said.
        optional r#for: At<Apart>,
    }
}

record! {
    /// The files of a model's own tokenizer.
    TokenizerFiles {
        /// Its tokenizer.json.
        required file: At<File>,
        /// Its chat template, where `settings` has none or another.
        optional template: At<File>,
        /// Its tokenizer_config.json: special tokens, and often the template.
        optional settings: At<File>,
    }
}

record! {
    /// How tokens are counted, where there are tokenizers.
    Counting {
        /// Threads that count, beside the workers. Default 1.
        optional threads: At<Count<64>>,
        /// What may wait to be counted; what finds no room is not counted. Default 64MiB.
        optional queue: At<Size>,
        /// A longer request or answer is not counted. Default 4MiB.
        optional longest: At<Size<32>>,
        /// Percent by which the engine's prompt tokens may differ from ours before it is drift. Default 0 where the template is known, and 10 where it is not.
        optional prompt_tolerance: At<Percent>,
        /// The same for the output, which is encoded again. Default 5 and eight tokens.
        optional output_tolerance: At<Percent>,
    }
}

record! {
    /// The usage ledger.
    Ledger {
        /// Its file, made where there is none; the directory must exist.
        required path: At<File>,
        /// This gate's name in each row. Default gate.
        optional node: At<Name>,
        /// Age at which rows are pruned; kept for good unless said.
        optional retention: At<Age>,
        /// Size of the file above which the oldest rows are pruned; none unless said.
        optional size: At<Size>,
        /// The fleet's Postgres, which gets a copy of every row.
        optional postgres: Postgres,
    }
}

record! {
    /// A connection string such as postgres://gate@db/usage, from exactly one of `file` and `env`.
    Postgres {
        /// File that holds it alone; read at the start.
        optional file: At<SecretFile>,
        /// Environment variable that holds it.
        optional env: At<Variable>,
    }
}

/// A vocabulary that is built in, by its name, or files.
pub(crate) enum Tokenizer {
    BuiltIn(BuiltIn),
    Files(Box<TokenizerFiles>),
}

impl Decode for Tokenizer {
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        if matches!(node.value, Value::Map(_)) {
            let files = TokenizerFiles::decode(node, path, findings)?;
            return Some(Self::Files(Box::new(files)));
        }
        At::<BuiltIn>::decode(node, path, findings).map(|at| Self::BuiltIn(at.value))
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        json!({ "anyOf": [At::<BuiltIn>::schema(defs), TokenizerFiles::schema(defs)] })
    }
}

record! {
    /// OpenTelemetry spans of sampled exchanges.
    Traces {
        /// The collector: http://host:4318, or http://host:4317 for grpc.
        required otlp: At<Target>,
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

/// Names the schema, wherever a copy of it lies. It changes when documents that were taken no longer are.
const SCHEMA_ID: &str = "urn:tollgate:schema:config:1";

/// The JSON Schema of the document, for editors: draft 2020-12, ending in a line break.
#[must_use]
pub fn json_schema() -> String {
    let mut defs = Defs::new();
    let root = Document::schema(&mut defs);
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "tollgate.yaml",
        "$ref": root.get("$ref"),
        "$defs": defs,
    });
    format!("{schema:#}\n")
}
