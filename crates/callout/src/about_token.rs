//! Questions about tokens that callers bring: one at a time for each token, and kept for a while.
//!
//! Invariant: what can be no token is not asked about. What is kept is keyed by the SHA-256 of the whole token, and holds
//! the token nowhere.
//! Not here: what is asked, and what an answer means (`introspection`, `kubernetes`), the bounds of what is kept (`shared`:
//! who was kept first goes first; an eighth of the room is for tokens that are not good).

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use policy::secret::Secret;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::fault::Fault;
use crate::service::{Answered, Handle};
use crate::shared::{Found, Key, Shared};

/// The longest token that is asked about; a longer one is not good.
pub const TOKEN_BYTES_MAX: usize = 16 << 10;

/// What a token says of itself where it is a JSON Web Token; it proves nothing.
pub(crate) fn claims(token: &[u8]) -> Option<Map<String, Value>> {
    let mut parts = token.split(|b| *b == b'.');
    let payload = parts.nth(1)?;
    let payload = Zeroizing::new(URL_SAFE_NO_PAD.decode(payload).ok()?);
    crate::json::object(&payload).ok()
}

/// Of whom a token says that it is, as a digest; one that says nothing is its own.
pub(crate) fn subject(token: &[u8]) -> Key {
    let claims = claims(token);
    let text = |name| claims.as_ref().and_then(|of| of.get(name)?.as_str());
    let mut digest = Sha256::new();
    match text("sub") {
        Some(subject) => {
            digest.update(text("iss").unwrap_or_default());
            digest.update([0]);
            digest.update(subject);
        }
        None => digest.update(token),
    }
    digest.finalize().into()
}

/// What is asked about a token.
pub(crate) trait TokenQuestion: Send + Sync + 'static {
    type Answer: Clone + Send + Sync + 'static;
    /// What is said of a text that can be no token.
    const REFUSED: Self::Answer;

    /// Whether a text of at most [`TOKEN_BYTES_MAX`] can be a token at all.
    fn can_be_one(&self, text: &[u8]) -> bool;

    /// Asks.
    fn look(
        &self,
        token: &Secret,
    ) -> impl Future<Output = Result<Found<Self::Answer>, Fault>> + Send;
}

/// The way to whoever is asked; clones share what is kept.
pub(crate) struct AboutTokens<Q: TokenQuestion> {
    asker: Arc<Asker<Q>>,
    handle: Handle,
}

struct Asker<Q: TokenQuestion> {
    question: Q,
    shared: Arc<Shared<Q::Answer>>,
}

impl<Q: TokenQuestion> AboutTokens<Q> {
    /// One that keeps its answers there.
    pub(crate) fn new(handle: &Handle, question: Q, shared: Arc<Shared<Q::Answer>>) -> Self {
        Self {
            asker: Arc::new(Asker { question, shared }),
            handle: handle.clone(),
        }
    }

    pub(crate) fn ask(&self, token: &Secret, within: Duration) -> Answered<Q::Answer> {
        let (asker, token) = (Arc::clone(&self.asker), token.clone());
        self.handle
            .ask(within, async move { asker.ask(token).await })
    }
}

impl<Q: TokenQuestion> Asker<Q> {
    async fn ask(self: Arc<Self>, token: Secret) -> Result<Q::Answer, Fault> {
        let text = token.expose();
        if !(1..=TOKEN_BYTES_MAX).contains(&text.len()) || !self.question.can_be_one(text) {
            return Ok(Q::REFUSED);
        }
        let key: Key = Sha256::digest(text).into();
        let asker = Arc::clone(&self);
        let question = || async move { asker.question.look(&token).await };
        self.shared.get(key, question).await
    }
}

impl<Q: TokenQuestion> Clone for AboutTokens<Q> {
    fn clone(&self) -> Self {
        Self {
            asker: Arc::clone(&self.asker),
            handle: self.handle.clone(),
        }
    }
}

impl<Q: TokenQuestion + fmt::Debug> fmt::Debug for AboutTokens<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AboutTokens")
            .field(&self.asker.question)
            .finish()
    }
}
