//! A server of tools that is an HTTP API: what a description of it says, as whoever asks it needs to know.
//!
//! Invariant: what is sent is made of the description and of a call's arguments, each written as its place takes it: no argument
//! reaches another place than its own.
//! Not here: descriptions (`openapi`, the crate), connections and credentials (the host).

use std::fmt::Debug;
use std::sync::Arc;

pub use wire::head::Method;

/// An HTTP API whose operations are tools.
pub trait Described: Debug + Send + Sync {
    /// Its tools as the result of a list; `None` as long as no description of it is known.
    fn list(&self) -> Option<Arc<[u8]>>;

    /// What a call of a tool asks of the API; `arguments` is a JSON object as its client wrote it.
    ///
    /// # Errors
    /// [`NoCall`] where nothing can be asked.
    fn call(&self, tool: &str, arguments: Option<&[u8]>) -> Result<HttpCall, NoCall>;

    /// What the API answered, as the result of a call.
    fn result(&self, answer: &HttpAnswer<'_>) -> Vec<u8>;

    /// A call that could not be made, as the result of one, from which a model learns what to write.
    fn misused(&self, says: &str) -> Vec<u8>;
}

/// What is asked of an HTTP API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpCall {
    /// How.
    pub method: Method,
    /// What follows the base path.
    pub path: String,
    /// With its `?`; empty where there is none.
    pub query: String,
    /// Headers by their names in lower case; none of them is the body's kind or a credential.
    pub headers: Vec<(String, String)>,
    /// What is sent and its kind, where anything is.
    pub body: Option<(String, Vec<u8>)>,
}

/// Why a call asks nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCall {
    /// There is no such tool.
    NoTool,
    /// What is wrong with the arguments.
    Arguments(String),
}

/// What an HTTP API answered.
#[derive(Debug, Clone, Copy)]
pub struct HttpAnswer<'a> {
    /// The status.
    pub status: u16,
    /// What kind of body it says.
    pub kind: Option<&'a str>,
    /// The whole body.
    pub body: &'a [u8],
}
