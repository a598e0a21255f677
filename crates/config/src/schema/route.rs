//! `routes`: from workload and model to backend.
//!
//! Not here: what they become (`lower`).

use super::abandon::Abandon;
use super::plain::{FieldEdits, Mirror, Redirect, Rewrite, RouteCors};
use crate::decode::{At, ListOf, MapOf, OneOrMany, record};
use crate::scalar::{
    Amount, BilledBy, Billing, Call, Charge, Count, Currency, Decimal, FilesApi, Flag, HeaderValue,
    ListenerName, MatchedHeader, MatchedHost, MatchedText, MethodName, Model, Name, PassedHeader,
    Path, Pattern, QueryName, Ratio, Span, Status, UpstreamHostName, Whose, Window,
};

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
        /// One for each of several backends, in place of an order: each call goes to one of them alone, drawn by these.
        optional weights: OneOrMany<Count<1000000>>,
        /// The model sent upstream in place of the client's.
        optional model: At<Model>,
        /// Models that it takes and that lists of models leave out, by name, or by the start of a name and a `*`. None unless said.
        optional unlisted: OneOrMany<Pattern>,
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
        /// Lets its workloads keep files at the provider and have batches of calls made there; none may unless said.
        optional batches: Batches,
        /// What each call of plain HTTP that is answered with 2xx costs; nothing unless said.
        optional charge: Fee,
        /// Request headers that go upstream besides those that always do.
        optional forward_headers: OneOrMany<PassedHeader>,
        /// Response headers that go to clients besides those that always do.
        optional return_headers: OneOrMany<PassedHeader>,
        /// What becomes of header fields of calls of plain HTTP on their way upstream.
        optional request_headers: FieldEdits,
        /// What becomes of header fields of their answers.
        optional response_headers: FieldEdits,
        /// The host that upstreams of plain HTTP are told: client (the one that the call names), or a name. The address's unless said.
        optional upstream_host: At<UpstreamHostName>,
        /// The path by which calls of plain HTTP go upstream.
        optional rewrite: Rewrite,
        /// Where calls of plain HTTP are sent instead.
        optional redirect: Redirect,
        /// Who sees copies of calls of plain HTTP.
        optional mirrors: ListOf<Mirror>,
        /// Which web pages may read answers of plain HTTP; as their services say unless said.
        optional cors: RouteCors,
    }
}

record! {
    /// When a call is tried again.
    Retries {
        /// Tries of one call, the first included; 1 for none again. Default 4.
        optional attempts: At<Count<8>>,
        /// After which statuses of an upstream. Default 408, 425, 429, 500, 502, 503, 504 and 529, and 401 to 404 of calls whose tokens count.
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
    /// Files and batches of a provider, each its workload's own.
    Batches {
        /// Whose API the backend speaks: openai or anthropic.
        required api: At<FilesApi>,
        /// Batches of one workload that may be uncounted at once; another one is refused. Default 100.
        optional unsettled: At<Count<10000>>,
        /// What of a model's price the calls of a batch cost, 0 to 1. Default 1.
        optional price_share: At<Ratio>,
        /// How often the provider is asked for what becomes of a batch. Default 1m.
        optional check_every: At<Span>,
    }
}

record! {
    /// What a call costs, whatever is in it.
    Fee {
        /// Money, an exact decimal.
        required money: At<Decimal>,
        /// ISO 4217 code of the money. Default USD.
        optional currency: At<Currency>,
    }
}

record! {
    /// Which calls a route takes: by model, or of plain HTTP by the rest. All of it must hold.
    Match {
        /// Models by name, or by the start of a name and a `*`.
        optional model: OneOrMany<Pattern>,
        /// Paths of plain HTTP: /echo, /users/{id} for any one segment, or /files/* for all below. All unless said.
        optional path: OneOrMany<Path>,
        /// Methods of plain HTTP; GET stands for HEAD too, =GET and =HEAD for one of them alone. All unless said.
        optional method: OneOrMany<MethodName>,
        /// Hosts that a call of plain HTTP names, without a port; *.example for all below. All unless said.
        optional host: OneOrMany<MatchedHost>,
        /// Headers that a call of plain HTTP has, by name, with these values.
        optional headers: MapOf<MatchedHeader, At<HeaderValue>>,
        /// Members of the query that a call of plain HTTP has, by name, with these values.
        optional query: MapOf<QueryName, At<MatchedText>>,
        /// Listeners that a call of plain HTTP comes by. All unless said.
        optional listener: OneOrMany<ListenerName>,
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
        /// How it counts: bucket (refills evenly) or rolling (never more in any window of that length). Default bucket.
        optional window: At<Window>,
        /// Who has such a bucket to itself: workload, key or user, each on this route. Default workload.
        optional r#for: At<Whose>,
    }
}
