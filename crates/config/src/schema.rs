//! What a person writes: the document, and what is of the process as a whole; each other part is a module.
//!
//! Doc comments here are the descriptions in the published JSON Schema.
//! Not here: what the fields become (`lower`).

pub(crate) mod abandon;
pub(crate) mod admin;
pub(crate) mod authority;
pub(crate) mod backend;
pub(crate) mod balancing;
pub(crate) mod budget;
pub(crate) mod calibration;
pub(crate) mod catalogue;
pub(crate) mod credential;
pub(crate) mod identity;
pub(crate) mod ledger;
pub(crate) mod login;
pub(crate) mod mcp;
pub(crate) mod plain;
pub(crate) mod price;
pub(crate) mod proxy;
pub(crate) mod responses;
pub(crate) mod route;
pub(crate) mod traces;

use serde_json::json;

use self::admin::Admin;
use self::authority::Authority;
pub(crate) use self::backend::{Backend, Credential, Pool};
pub(crate) use self::budget::Budget;
pub(crate) use self::calibration::{Calibration, EngineStart};
use self::credential::ClientCertificate;
use self::identity::Identity;
pub(crate) use self::ledger::Ledger;
use self::mcp::Mcp;
pub(crate) use self::price::{Price, PriceFor, PriceList};
pub(crate) use self::proxy::ProxyAt;
pub(crate) use self::responses::Responses;
pub(crate) use self::route::{Limit, Retries, Route, Unread};
pub(crate) use self::traces::Traces;
use crate::decode::{At, Decode, Defs, ListOf, MapOf, OneOrMany, ShortOrFull, record};
use crate::scalar::{
    Address, Brief, BuiltIn, ClientCertificates, Count, File, Flag, Hold, Host, Inline,
    ListenerName, LogTarget, MatchedHost, Name, Network, Origin, Pattern, Percent, ProxyProtocol,
    Recorded, SecretFile, Size, Span, Variable,
};

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
        optional backends: MapOf<Name, Backend>,
        /// From workload and model to backend; the first that fits is taken.
        optional routes: ListOf<Route>,
        /// Servers of tools (the Model Context Protocol) behind one address; none unless said.
        optional mcp: Mcp,
        /// What is kept for clients of the Responses API; nothing unless said.
        optional responses: Responses,
        /// What tokens cost, by model, and with `catalogue` what the models of providers cost at their own addresses.
        optional prices: PriceList,
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
        /// Several addresses and hosts of the data plane, in place of `data`, `hosts` and `tls`.
        optional listeners: ListOf<Listener>,
    }
}

record! {
    /// One of several addresses of the data plane, for one host or for all.
    Listener {
        /// What routes call it.
        required name: At<ListenerName>,
        /// Its address; several may share one, each for hosts of its own.
        required data: At<Address>,
        /// The host that it is for, without a port; *.example for all below. The most specific one has a call. All unless said.
        optional host: At<MatchedHost>,
        /// Serve it over TLS. Of those on one address all do or none does.
        optional tls: Tls,
        /// Whether calls to models and to servers of tools are served there, too. Default true.
        optional models: At<Flag>,
    }
}

record! {
    /// A certificate with its key; reloaded when either file changes.
    Tls of pair: ClientCertificate {
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
    /// The files of a model's own tokenizer.
    TokenizerFiles {
        /// Its tokenizer.json.
        required file: At<File>,
        /// Its chat template, where `settings` has none or another.
        optional template: At<File>,
        /// Its tokenizer_config.json: special tokens, and often the template.
        optional settings: At<File>,
        /// What its engine was started with, which no call tells.
        optional engine: EngineStart,
    }
}

record! {
    /// How tokens are counted, where there are tokenizers.
    Counting {
        /// Percent of the CPU quota, or of the CPUs where there is none, that may count: so many threads beside the workers, at least one. Default 50.
        optional share: At<Percent>,
        /// The most threads that count at once, in place of a share.
        optional threads: At<Count<64>>,
        /// What may wait to be counted; what finds no room is not counted. A quarter is for routes that are billed by count, where there are any. Default 64MiB.
        optional queue: At<Size>,
        /// How long an answer is held back at most while the queue has no room for its call, at most 10s; `off` for not at all. Default 100ms.
        optional backpressure: At<Hold>,
        /// A longer request or answer is not counted. Default 4MiB.
        optional longest: At<Size<32>>,
        /// How long a row waits for its count before it is settled without one, 1s to 1h. Default 1m.
        optional wait: At<Brief>,
        /// Percent by which the engine's prompt tokens may differ from ours before it is drift. Default 0 where the template is known, and 10 where it is not.
        optional prompt_tolerance: At<Percent>,
        /// The same for the output, which is encoded again. Default 5 and eight tokens.
        optional output_tolerance: At<Percent>,
        /// Whether engines are asked what prompts count, to hold that against what the gate counts: `off`, or how. Every 6h unless said.
        optional calibration: Calibration,
    }
}

/// A vocabulary that is built in, by its name, or files.
pub(crate) type Tokenizer = ShortOrFull<BuiltIn, TokenizerFiles>;

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
        "anyOf": [{ "required": ["backends", "routes"] }, { "required": ["mcp"] }],
        "$defs": defs,
    });
    format!("{schema:#}\n")
}
