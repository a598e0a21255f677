//! Errors, named by blame, and their words.
//!
//! Invariant: no text here repeats a credential, a prompt, or an upstream's words.
//! Not here: parts of their words (`words`), which one a request gets for what it asks for (`of_request`), their statuses and codes (`classes`), how
//! the answer is written (`reply`), how the errors of an API differ (`wire::dialect`), faults of a configuration (`config`).

mod batches;
mod classes;
mod of_request;
mod reply;
mod words;

use std::sync::Arc;
use std::time::Duration;

use wire::call::CallFault;
pub use wire::dialect::ErrorFormat;
use wire::http1::HeadFault;

pub use self::batches::BatchRefusal;
pub use self::reply::{LocalReply, escape};
use self::words::{
    base_by, base_of, budget_of, colon, counted, kept_here, refused, seconds, unpriced, way_out,
    window,
};
use crate::budget::Every;
use crate::failure::Failure;
use crate::limit::{Kind, Rate};
use crate::mcp::CallersToken;
use crate::whose::Holder;

/// Why the gate answers itself.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    // The client's doing.
    /// The head breaks HTTP or is ambiguous.
    #[error("{0}")]
    Head(#[from] HeadFault),
    /// The body is not the JSON this call needs.
    #[error("{0}")]
    Call(#[from] CallFault),
    /// Chunked framing of the body is broken.
    #[error("the request body's chunked framing is malformed: {0}")]
    BodyFraming(HeadFault),
    /// More bytes than allowed.
    #[error("the request body is larger than {limit} bytes")]
    BodyTooLarge {
        /// The bound, bytes.
        limit: u64,
    },
    /// The body did not come in time.
    #[error("the request did not arrive in time")]
    Slow,
    /// A body in an encoding that policy cannot read.
    #[error(
        "content-encoding is not supported here; send the body uncompressed, or in one of gzip, deflate, br and zstd"
    )]
    ContentEncoding,
    /// The body cannot be decoded, or comes to far more than was sent.
    #[error(
        "the body is not what its content-encoding says, is cut off, or expands beyond a hundred times its length"
    )]
    CodedBody,
    /// A body of a type that this call does not take.
    #[error("content-type must be application/json")]
    ContentType,
    /// A body of a type that a call which takes a form does not take.
    #[error(
        "content-type must be multipart/form-data with one boundary, and nothing besides, or application/json"
    )]
    FormType,
    /// A form without a model, on a route that names its own.
    #[error("the form must have a field `model`: this route puts its own model there")]
    FormModel,
    /// No such path.
    #[error("no such path; the API lives under /v1/")]
    NoSuchPath,
    /// No such path, but nearly one of the API's.
    #[error(
        "there is no {call}: /v1/{meant} was meant, by {}", base_of(.meant)
    )]
    OtherPath {
        /// Method and path; visible ASCII, of bounded length.
        call: String,
        /// What follows `/v1/` in the path that was meant.
        meant: &'static str,
        /// It is below the API's root.
        is_below_root: bool,
    },
    /// A call that is served over a WebSocket alone, without what asks for one.
    #[error(
        "{call} is served over a WebSocket, and this request asks for none: it takes HTTP/1.1 with `connection: upgrade` and \
         `upgrade: websocket`, which a proxy on the way may have dropped"
    )]
    NoWebSocket {
        /// Method and path.
        call: String,
    },
    /// An operation that is not known and that no route of the workload lists.
    #[error(
        "{call} is not an operation that this gateway reads (is the path right? {}), and no route of this workload lets it \
         through unread; a route does where it lists the call under `unread`",
        base_by(.call)
    )]
    Operation {
        /// Method and path; visible ASCII, of bounded length.
        call: String,
    },
    /// A call of files or batches.
    #[error(transparent)]
    Batches(#[from] BatchRefusal),
    /// A call of plain HTTP that no route of the workload takes.
    #[error("no route of this workload takes {call}")]
    RouteNotFound {
        /// Method and path; visible ASCII, of bounded length.
        call: String,
    },
    /// A call that nobody meters, on a route where tokens or money count.
    #[error(
        "calls of the kind {operation} are not metered by this gateway, and tokens or money \
         count here; a route lets them through where it lists them under `unread` with what each is \
         charged"
    )]
    NoCharge {
        /// The operation, in words.
        operation: &'static str,
    },
    /// A response that would run on where nobody meters it.
    #[error(
        "an answer that is made behind its call (`{member}`) is not served: nobody would count what it uses; send the call \
         without `{member}` and read its stream"
    )]
    Background {
        /// The member that asks for it.
        member: &'static str,
    },
    /// A member names what the upstream keeps, and others use the same account.
    #[error(
        "the member `{member}` names what the upstream keeps for its account, and other workloads \
         use that account too; send what it stands for in the call itself,{} or have a route of this workload use a \
         backend with a `credential` that no other workload's routes use",
        kept_here(.member)
    )]
    SharedAccount {
        /// The member.
        member: &'static str,
    },
    /// An address that the upstream reads with the rights of its account, which others use.
    #[error(
        "the address at {at} is one that the upstream reads with the rights of its account, and other workloads use that account too; send the \
         bytes themselves, or have a route of this workload use a backend with a `credential` that no other workload's routes use"
    )]
    SharedAddress {
        /// Where in the body.
        at: Box<str>,
    },
    /// A page of a kept response's items that cannot be.
    #[error("{says}")]
    ItemsPage {
        /// Why not.
        says: Box<str>,
    },
    /// An event on a WebSocket of the Realtime API that is not served.
    #[error("{says}")]
    RealtimeEvent {
        /// Why not.
        says: Box<str>,
    },
    /// The path does not take this method.
    #[error("method not allowed here; use {allow}")]
    Method {
        /// The `allow` header.
        allow: &'static str,
    },
    /// A host that is not answered for.
    #[error(
        "the host that this request names is not one that the gateway answers for; add it to \
         listen.hosts in the gateway's configuration"
    )]
    HostNotAllowed,
    /// A request for another listener than the one that its connection was made to.
    #[error(
        "this connection was made to another host than the one that this request names; open one to that"
    )]
    Misdirected,
    /// A request of a web page whose origin is not allowed.
    #[error(
        "this request comes from a web page whose origin is not allowed; add it to cors.origins in \
         the gateway's configuration"
    )]
    OriginNotAllowed,
    /// Two identities.
    #[error("header {header} must have exactly one value")]
    IdentityRepeated {
        /// The identity header.
        header: String,
    },
    /// A user whom nobody could read.
    #[error("header {header} must name one user in at most 256 bytes, all of which can be seen")]
    UserUnreadable {
        /// The header that names users.
        header: String,
    },
    /// A header that names another workload than the one that is proven.
    #[error(
        "header {header} names another workload than the credential or certificate of this request \
         proves; leave the header out"
    )]
    IdentityContradicted {
        /// The identity header.
        header: String,
    },
    /// No credential, where callers are known by one.
    #[error(
        "no credential: send a key or token of yours for this gateway as `authorization: Bearer …`"
    )]
    CredentialMissing,
    /// A credential that proves nothing. Whatever is wrong with it, the client is told the same.
    #[error("the credential is not valid here")]
    CredentialInvalid,
    /// Too many bad credentials from one address.
    #[error("too many invalid credentials from this address; try again in {} s", seconds(*wait))]
    CredentialFailures {
        /// Until they are looked at again.
        wait: Duration,
    },
    /// Two credentials.
    #[error("more than one credential: send one API key in one header")]
    ConflictingCredentials,

    // Policy's doing.
    /// Somebody who is known, as no workload of ours.
    #[error("the credential is valid and belongs to no workload of this gateway")]
    WorkloadUnknown,
    /// Whoever was asked said no.
    #[error("this call is not allowed to this caller")]
    NotAuthorized,
    /// A workload that no rule lets use servers of tools.
    #[error("no MCP route of this gateway is for this workload")]
    McpRouteNotFound,
    /// A message that is none of the protocol.
    #[error("{says}")]
    McpMessage {
        /// What is wrong with it.
        says: Box<str>,
        /// Its code in JSON-RPC.
        number: i32,
    },
    /// A message in a version that is not spoken.
    #[error(
        "this version of the protocol is not spoken here; `initialize` says one of 2025-06-18 and 2025-11-25"
    )]
    McpVersion,
    /// A message without a session, in a version that is not spoken.
    #[error("the version {requested} of the protocol is not spoken here")]
    McpVersionUnknown {
        /// The version.
        requested: Box<str>,
    },
    /// A header that says something else than the body of a message without a session.
    #[error("{says}")]
    McpHeader {
        /// Which.
        says: Box<str>,
    },
    /// A request about tasks, of a client that does not say that it knows them.
    #[error(
        "the request asks to hear of tasks, and its client does not say that it knows them: `io.modelcontextprotocol/tasks` in the `extensions` of its capabilities"
    )]
    McpCapability,
    /// What a server wanted to hear again is not what it gave.
    #[error(
        "`requestState` was changed, has expired, or is of another caller or request; send the request again without it"
    )]
    McpState,
    /// What a server answered cannot be told to a client of an older version, or the other way round.
    #[error("{says}")]
    McpNotBridged {
        /// What, and why.
        says: Box<str>,
    },
    /// A question to a client, or its answer, for which there is no room beside those that wait.
    #[error("{says}; answer some of them, or try again later")]
    McpNoRoom {
        /// Which bound, and whose.
        says: Box<str>,
    },
    /// A message without a session.
    #[error("the header mcp-session-id is missing; begin with `initialize`")]
    McpSessionMissing,
    /// A session that is none, for this caller.
    #[error("there is no such session; begin anew with `initialize`")]
    McpSessionNotFound,
    /// A method that is not served.
    #[error("the method {method} is not served here")]
    McpMethod {
        /// The method.
        method: Box<str>,
    },
    /// What is named is not there, or not for this caller.
    #[error("there is no {what} {name}")]
    McpNotFound {
        /// What kind of thing.
        what: &'static str,
        /// Its name, as the client has it.
        name: Box<str>,
    },
    /// A tool whose server says something else of it than what is pinned.
    #[error(
        "the tool {name} is not what it was when it was pinned, and is not served until the gateway's operator has looked at it"
    )]
    McpToolChanged {
        /// Its whole name.
        name: Box<str>,
    },
    /// A server that refused the gate's own credential.
    #[error("the server {server} refused the gateway's credential")]
    McpCredential {
        /// The server.
        server: Box<str>,
    },
    /// A server that refused its caller's token, or wants one.
    #[error(
        "the server {server} {} ({status}){}",
        refused(token),
        if wants.is_empty() { "" } else { "; `data.wants` is what it asks for" }
    )]
    McpTokenRefused {
        /// The server.
        server: Box<str>,
        /// The token.
        token: CallersToken,
        /// The server's status: 401 or 403.
        status: u16,
        /// What it says that it wants, by the names of a challenge. No text here repeats it.
        wants: Box<[(&'static str, Box<str>)]>,
    },
    /// What is named is there twice, under one name.
    #[error(
        "{name} is a name of {one} and of {other}, and stands for neither; the gateway's `mcp.prefix` tells them apart"
    )]
    McpAmbiguous {
        /// The name.
        name: Box<str>,
        /// A server.
        one: Box<str>,
        /// The other one.
        other: Box<str>,
    },
    /// Nobody we know.
    #[error("no registered workload in header {header}")]
    WorkloadNotRegistered {
        /// The identity header.
        header: String,
    },
    /// No route takes the model.
    #[error("model {model:?} is not available to this workload")]
    ModelNotFound {
        /// The model asked for; checked characters.
        model: String,
    },
    /// The caller may ask for other models alone.
    #[error("model {model:?} is not one of those that this key is for")]
    ModelNotOwn {
        /// The model asked for; checked characters.
        model: String,
    },
    /// The call names a model besides its own that it may not ask for.
    #[error(
        "`{member}` names the model {model:?}, which is not available here: models that a call names besides its own are \
         held to the same rules"
    )]
    ModelBesides {
        /// The member of the body that names it.
        member: &'static str,
        /// The model; checked characters.
        model: Box<str>,
    },
    /// The caller is for some models alone, and the call names none.
    #[error("the member `model` is missing; this key is for some models alone")]
    OwnModelRequired,
    /// The workload's routes go by model, and the call names none.
    #[error("the member `model` is missing; this workload's routes go by model")]
    ModelRequired,
    /// The caller is for some models alone, and the call's is not read.
    #[error(
        "this key is for some models alone, and the model of this call is not read; make it with a key that is for all \
         models of its workload"
    )]
    ModelUnread,
    /// A limit is used up for now.
    #[error("limit reached: {} per {} for {}; try again in {} s",
        counted(*amount, kind.as_str()), window(*per), holder.as_str(), seconds(*wait))]
    Limited {
        /// What the limit counts.
        kind: Kind,
        /// Its rate.
        amount: u64,
        /// Its window.
        per: Duration,
        /// Whose it is.
        holder: Holder,
        /// Enough again after this long.
        wait: Duration,
    },
    /// A call that its limit can never admit.
    #[error(
        "this call may use {asked} tokens (prompt estimate and output cap), more than the \
         limit's burst of {burst} for {} ever allows; lower max_tokens or shorten the prompt",
        holder.as_str()
    )]
    LargerThanLimit {
        /// Tokens it would reserve.
        asked: u64,
        /// What the bucket can hold.
        burst: u64,
        /// Whose limit it is.
        holder: Holder,
    },
    /// A budget holds no more such call in this period.
    #[error(
        "{} has not enough left for this call; its next {} begins {renewed}",
        budget_of(budget.as_deref(), *holder),
        every.as_str()
    )]
    BudgetExhausted {
        /// Its name, where it is not the caller's own.
        budget: Option<Arc<str>>,
        /// Whose it is, where it is not shared by all whom it counts.
        holder: Option<Holder>,
        /// How long its period is.
        every: Every,
        /// When the next one begins, RFC 3339.
        renewed: String,
    },
    /// A call that its budget can never admit.
    #[error(
        "this call may come to {asked}, more than the {amount} of each {} that {} ever has; {}",
        every.as_str(),
        budget_of(budget.as_deref(), *holder),
        way_out(*is_fixed)
    )]
    LargerThanBudget {
        /// The budget, where it is not the caller's own.
        budget: Option<Arc<str>>,
        /// Whose it is, where it is not shared by all whom it counts.
        holder: Option<Holder>,
        /// What the call may come to, with its unit.
        asked: String,
        /// What a period has, with its unit.
        amount: String,
        /// How long the period is.
        every: Every,
        /// Its route says what it is charged: it cannot ask for less.
        is_fixed: bool,
    },
    /// A budget or a rolling limit of each key or user has no place for another one.
    #[error(
        "the gateway counts the limits or budgets of too many keys and users already, and lets nobody through \
         uncounted; ask its operator to raise bounds.subjects"
    )]
    SubjectsExhausted,
    /// A budget counts money, and what this call costs cannot be known.
    #[error(
        "{} counts money, and what this call costs is not known: the \
         configuration has no price in the budget's currency for {} at every backend that may answer",
        budget_of(budget.as_deref(), None),
        unpriced(model)
    )]
    Unpriced {
        /// The model; empty when the call names none that the gate reads.
        model: String,
        /// The budget, where it is not the caller's own.
        budget: Option<Arc<str>>,
    },

    // The upstream's doing.
    /// No answer from any endpoint.
    #[error("no upstream {}: {_0}", did(*_0))]
    Upstream(Failure),
    /// Every endpoint that is left asked to be left alone for a time.
    #[error(
        "no upstream answered: {}; it asked to be left alone for another {} s",
        Failure::Status(*status), seconds(*wait)
    )]
    UpstreamBusy {
        /// The status with which it did.
        status: u16,
        /// How much longer.
        wait: Duration,
    },
    /// Who picks the endpoints of a pool refused the call.
    #[error(
        "the endpoint picker of this pool refused the call with {status}{}",
        colon(says)
    )]
    PickerRefused {
        /// 429 or 503.
        status: u16,
        /// When it may be asked again.
        wait: Duration,
        /// What it said, as far as it is kept; empty where it said nothing.
        says: Box<str>,
    },
    /// Who picks the endpoints of a pool named none.
    #[error("the endpoint picker of this pool {says}, and no call goes there without it")]
    Unpicked {
        /// What it did, or did not.
        says: &'static str,
    },
    /// The upstream refused the gate's own credential.
    #[error("the upstream refused the gateway's credential")]
    UpstreamCredential,
    /// A filter of the call's way has no way to say it.
    #[error("no upstream's API can express this call: {what}")]
    Unfit {
        /// What cannot be said.
        what: Box<str>,
    },
    /// The response that the call goes on from is kept no longer, or is another caller's.
    #[error(
        "the response of this `previous_response_id` is not kept here, or no longer; send its items again"
    )]
    ResponseGone,
    /// The same of a response that is asked for by its id.
    #[error("no response of this id is kept here for you, or no longer")]
    ResponseNotFound,
    /// A filter of the answer's way refuses it.
    #[error("the answer was refused by a filter of its route")]
    Filtered {
        /// Why, stable.
        code: &'static str,
    },

    // Ours.
    /// The bound of what was made of answers and is not taken yet.
    #[error(
        "too much of translated answers waits for clients that do not take them; try again shortly"
    )]
    AnswersUntaken,
    /// The gate is at a bound.
    #[error("the gateway is at capacity; try again shortly")]
    Overloaded,
    /// The route runs no call without a row on disk, and the disk takes none.
    #[error(
        "the gateway's usage ledger cannot be written, and this route runs no call without it; \
         try again shortly"
    )]
    LedgerUnavailable,
    /// The route sends its calls elsewhere.
    #[error("what is asked for is at {location}")]
    Redirected {
        /// 301, 302, 303, 307 or 308.
        status: u16,
        /// Where it is.
        location: Box<str>,
    },
    /// Every backend of the route is closed: what is wrong with it is told to who wrote it.
    #[error(
        "this route is closed: its configuration is faulty, and the gateway's log and the status of its objects say how"
    )]
    RouteClosed,
    /// Every backend of the route waits for an address.
    #[error("no endpoint of this route is ready; try again shortly")]
    NoneReady,
    /// Nobody could say whose the credential is.
    #[error("the gateway cannot check this credential at present; try again shortly")]
    IdentityUnavailable,
    /// Nobody could say whether the call is allowed.
    #[error("the gateway cannot check at present whether this call is allowed; try again shortly")]
    AuthorizerUnavailable,
    /// A bug.
    #[error("internal error: {0}")]
    Bug(&'static str),
}

impl Refusal {
    /// A limit holds too little for the call now.
    pub(crate) fn over(kind: Kind, rate: Rate, holder: Holder, wait: Duration) -> Self {
        Self::Limited {
            kind,
            amount: rate.amount,
            per: rate.per,
            holder,
            wait,
        }
    }
}

/// What upstreams did: something came, where it was no answer.
fn did(failure: Failure) -> &'static str {
    match failure {
        Failure::BadResponse => "gave an answer",
        _ => "answered",
    }
}

#[cfg(test)]
mod tests;
