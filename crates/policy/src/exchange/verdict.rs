//! What an exchange says is to be done, and what it asks: with the methods of `Exchange`, by which it is told of events, the
//! whole of the seam between policy and its host.
//!
//! Invariant: a verdict says everything that its host needs to apply it; a host that waits says when the wait began
//! to be too long (`Exchange::stalled`), and never how it goes on.
//! Not here: how an event becomes a verdict (`exchange`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use wire::call::Splice;
use wire::filter::Pipe;
use wire::meter::Form;

use crate::attempt::Failure;
use crate::authorizer::{Authorization, Authorizer};
use crate::caller::Later;
use crate::credential::{Credential, Minter};
use crate::id::EndpointId;
use crate::identity::{Proof, Unproven, Verifier};
use crate::login::{Login, LoginReply, LoginStep};
use crate::operation::Operation;
use crate::picker::{Field, Picked, PickedCall, Picker};
use crate::prompt_counter::{AskedPrompt, PromptCounter};
use crate::record::Wait;
use crate::refusal::Refusal;
use crate::secret::Secret;
use crate::usage_ledger::Estimate;

/// An attempt that brought no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Why.
    pub failure: Failure,
    /// Its connection had served others before.
    pub was_kept: bool,
    /// The upstream certainly did nothing with the request.
    pub is_untaken: bool,
}

impl Lost {
    /// Its upstream did nothing with the request: it can be sent again as if it never had been.
    pub const UNTAKEN: Self = Self {
        failure: Failure::Reset,
        was_kept: false,
        is_untaken: true,
    };
}

impl From<Failure> for Lost {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            was_kept: false,
            is_untaken: false,
        }
    }
}

/// Fields by which a browser is told something.
pub type Told = Vec<(Box<[u8]>, Box<[u8]>)>;

/// What is to be done next.
#[derive(Debug)]
#[must_use = "apply it"]
pub enum Verdict {
    /// Read the request's body, or more of it.
    Read {
        /// The longest wait for the next piece.
        within: Duration,
    },
    /// Tell a browser what a page may send: these fields, or what holds for the whole gate.
    Preflight(Option<Box<Told>>),
    /// Answer with the names of models.
    Models {
        /// All that the workload can ask for.
        names: Vec<Arc<str>>,
        /// The one that was asked for.
        one: Option<Arc<str>>,
    },
    /// Answer with what is kept of a response, or that it is removed: a document.
    Kept(Bytes),
    /// Speak WebSocket with the client: each of its calls is an exchange of its own.
    Socket,
    /// Answer with the count of a prompt.
    Counted(Operation, u64),
    /// Tell a browser how its login goes on.
    Login(Box<LoginReply>),
    /// The gate answers itself. Boxed: rare, and every verdict would be as large.
    Refuse(Box<Refusal>),
    /// Ask the world, and tell the exchange what it says.
    Ask(Ask),
    /// Send the request to an endpoint.
    Attempt(Plan),
    /// Forward the response.
    Relay(Relay),
    /// Wait for header fields that are added to the response's head, and then forward it. Boxed: rare, and every verdict would be as large.
    Amend(Box<Amended>),
    /// Forward the head of the response, and then whatever either side sends: it is a WebSocket from now on, silent in both
    /// directions for `idle` at most.
    Tunnel(Relay),
    /// Nobody waits for the response any more; read it to its end, for its usage.
    ReadToEnd {
        /// How it is read.
        form: Form,
        /// The longest that this may take from the moment the client left.
        within: Duration,
    },
    /// End the response so that its client sees that it is not whole.
    Cut,
    /// Drop what is kept for the client; it has left.
    Abandon,
    /// It is a call with a machine of its own: this exchange never was.
    HandOver(Machine),
    /// Nothing is left to do.
    Finish,
}

/// Whose machine goes on with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// That of messages to servers of tools ([`crate::mcp`]).
    Tools,
    /// That of files and batches ([`crate::batches`]).
    Batches,
}

/// A question, and how long its answer is waited for.
#[derive(Debug)]
pub struct Ask {
    /// The question.
    pub question: Question,
    /// The longest wait.
    pub within: Duration,
}

/// What policy needs of the world. But for the ledger, whoever is asked stands in the snapshot and comes along.
#[derive(Debug)]
pub enum Question {
    /// Enter the exchange in the usage ledger.
    Enter {
        /// What it may come to.
        estimate: Estimate,
        /// The answer is waited for: the entry must be on disk first.
        is_durable: bool,
    },
    /// Whose credential is this?
    Identify(Arc<dyn Verifier>, Secret),
    /// How does this login go on?
    LogIn(Arc<dyn Login>, LoginStep),
    /// May this caller make this call?
    Authorize(Arc<dyn Authorizer>),
    /// Which credential does the next attempt take? With the caller's own token, where it is given for that.
    Mint(Arc<dyn Minter>, Option<Secret>),
    /// What does this prompt come to?
    Count(Arc<dyn PromptCounter>, Box<AskedPrompt>),
    /// Which endpoint of a pool takes this call?
    Pick(Arc<dyn Picker>, Box<PickedCall>),
}

impl Question {
    /// What the exchange waits for, as metrics call it; a login is no call.
    #[must_use]
    pub const fn wait(&self) -> Option<Wait> {
        match self {
            Self::Enter { .. } => Some(Wait::Ledger),
            Self::Identify(..) => Some(Wait::Identity),
            Self::LogIn(..) => None,
            Self::Authorize(_) => Some(Wait::Authorization),
            Self::Mint(..) => Some(Wait::Credential),
            Self::Count(..) => Some(Wait::Count),
            Self::Pick(..) => Some(Wait::Pick),
        }
    }
}

/// What the world said.
#[derive(Debug)]
pub enum Answer {
    /// The exchange is in the ledger, as durably as was asked.
    Entered,
    /// Whose the credential is.
    Identified(Result<Proof, Unproven>),
    /// Whether the call may be made.
    Authorized(Authorization),
    /// What a browser is told of its login.
    LoggedIn(Box<LoginReply>),
    /// The credential of one attempt.
    Minted(Arc<Credential>),
    /// What a prompt comes to, where that is known.
    Counted(Option<u64>),
    /// Which endpoints were picked.
    Picked(Picked),
    /// Nobody could answer.
    Unanswered,
}

/// One attempt: the request that goes to one endpoint, as far as it differs from the client's.
#[derive(Debug)]
pub struct Plan {
    /// Where it goes.
    pub endpoint: EndpointId,
    /// A connection that has served others may be used.
    pub may_reuse: bool,
    /// Edits of the body, in order.
    pub edits: Vec<Splice>,
    /// The credential that was minted for it; else the endpoint's own is used.
    pub minted: Option<Arc<Credential>>,
    /// The span that the upstream is told of.
    pub span: Option<u64>,
}

/// A response whose head is added to before it is forwarded.
pub struct Amended {
    /// What is added, once it is known; it comes in time, if with nothing.
    pub fields: Later<Vec<Field>>,
    /// What is done then.
    pub verdict: Verdict,
}

impl fmt::Debug for Amended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Amended").field(&self.verdict).finish()
    }
}

/// How a response goes back.
#[derive(Debug)]
pub struct Relay {
    /// How it is read for its usage.
    pub form: Form,
    /// It is a stream of events.
    pub is_stream: bool,
    /// The longest silence of the upstream.
    pub idle: Duration,
    /// The longest that its client may take nothing.
    pub stall: Duration,
    /// What it passes on its way.
    pub pipe: Pipe,
    /// The most bytes that may be held back on the way.
    pub hold_back_bytes: usize,
}

impl Relay {
    /// Whether an event is taken out, so that the length is not what the upstream declared.
    #[must_use]
    pub fn withholds(&self) -> bool {
        self.form == Form::Events { withhold: true }
    }
}
