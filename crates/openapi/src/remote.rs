//! A description that is fetched: what is known of it now.
//!
//! Invariant: what cannot be read never takes the place of what could be.
//! Not here: fetching (`tollgate`).

use std::sync::{Arc, PoisonError, RwLock};

use policy::mcp::{Described, HttpAnswer, HttpCall, NoCall};

use crate::answer;
use crate::api::{Api, Left, Methods};
use crate::base::resolved;
use crate::document::{Description, Fault};

/// A description that is fetched.
#[derive(Debug)]
pub struct Remote {
    url: String,
    methods: Methods,
    /// The configuration says where its API is; otherwise it is where the description came from.
    has_base: bool,
    known: RwLock<Option<Arc<Api>>>,
}

impl Remote {
    /// One of which nothing is known yet.
    #[must_use]
    pub fn new(url: String, methods: Methods, has_base: bool) -> Self {
        Self {
            url,
            methods,
            has_base,
            known: RwLock::default(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether the same is read of both.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.url, &self.methods, self.has_base) == (&other.url, &other.methods, other.has_base)
    }

    /// Takes what was fetched: which operations of it are left out, and how many tools there are.
    ///
    /// # Errors
    /// It is no description of an API that can be asked; what was known before stays.
    pub fn take(&self, bytes: &[u8]) -> Result<(usize, Vec<Left>), Fault> {
        let description = Description::read(bytes)?;
        let prefix = match self.has_base {
            true => String::new(),
            false => resolved(&description.server()?, &self.url)?,
        };
        let (api, left) = Api::of(&description, &self.methods, &prefix)?;
        let tools = api.len();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(api));
        Ok((tools, left))
    }

    /// Whether nothing is known yet.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.known().is_none()
    }

    fn known(&self) -> Option<Arc<Api>> {
        self.known
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Described for Remote {
    fn list(&self) -> Option<Arc<[u8]>> {
        self.known()?.list()
    }

    fn call(&self, tool: &str, arguments: Option<&[u8]>) -> Result<HttpCall, NoCall> {
        self.known().ok_or(NoCall::NoTool)?.call(tool, arguments)
    }

    fn result(&self, answer: &HttpAnswer<'_>) -> Vec<u8> {
        answer::result(answer)
    }

    fn misused(&self, says: &str) -> Vec<u8> {
        answer::misused(says)
    }
}
