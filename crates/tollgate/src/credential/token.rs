//! A token that is kept ready, as the header line that carries it.
//!
//! Invariant: a token that has ended is never given; the line is made once for each token.

use std::sync::{Arc, RwLock};

use callout::{AccessToken, TokenEndpoint, TokenRequest};
use policy::caller::Later;
use policy::credential::{Credential, Minter};
use policy::secret::Secret;

use super::{ANSWER_WITHIN, Asks};
use crate::services::{MadeState, Maker};

/// A minter of tokens that are asked for so.
pub(super) fn maker(
    asks: Asks<'_>,
    request: TokenRequest,
    is_local: bool,
) -> Result<Option<Arc<dyn Maker>>, String> {
    let client = asks.client(is_local)?;
    let Some(handle) = &asks.handle()? else {
        return Ok(None);
    };
    let endpoint = TokenEndpoint::start(handle, client, request, asks.on_fault());
    Ok(Some(Arc::new(Token {
        account: asks.made.account.clone(),
        line: Arc::new(Line::of(&asks)),
        endpoint,
    })))
}

#[derive(Debug)]
struct Token {
    account: String,
    line: Arc<Line>,
    endpoint: TokenEndpoint,
}

impl Maker for Token {
    fn state(&self) -> Option<MadeState> {
        Some(self.endpoint.state().into())
    }
}

impl Minter for Token {
    fn account(&self) -> &str {
        &self.account
    }

    fn ready(&self, _: Option<&Secret>) -> Option<Arc<Credential>> {
        self.endpoint.current().map(|token| self.line.with(&token))
    }

    fn mint(&self, _: Option<&Secret>) -> Later<Option<Arc<Credential>>> {
        let (asked, line) = (self.endpoint.get(ANSWER_WITHIN), Arc::clone(&self.line));
        Box::pin(async move { asked.await.ok().map(|token| line.with(&token)) })
    }

    fn refused(&self, status: u16, _: Option<&Secret>) {
        if status == 401 {
            self.endpoint.renew();
        }
    }
}

/// The header that carries a token.
#[derive(Debug)]
pub(super) struct Line {
    header: String,
    scheme: String,
    /// The last token, with its line.
    last: RwLock<Option<(Arc<AccessToken>, Arc<Credential>)>>,
}

impl Line {
    pub(super) fn of(asks: &Asks<'_>) -> Self {
        Self {
            header: asks.made.header.clone(),
            scheme: asks.made.scheme.clone(),
            last: RwLock::default(),
        }
    }

    /// The line with a token.
    fn with(&self, token: &Arc<AccessToken>) -> Arc<Credential> {
        // Never waited for: where another worker writes, the line is made anew.
        if let Ok(last) = self.last.try_read()
            && let Some((of, line)) = &*last
            && Arc::ptr_eq(of, token)
        {
            return Arc::clone(line);
        }
        let line = Arc::new(self.made(token));
        if let Ok(mut last) = self.last.try_write() {
            *last = Some((Arc::clone(token), Arc::clone(&line)));
        }
        line
    }

    pub(super) fn made(&self, token: &AccessToken) -> Credential {
        let token = token.value.expose();
        let mut value = Vec::with_capacity(self.scheme.len() + 1 + token.len());
        if !self.scheme.is_empty() {
            value.extend_from_slice(self.scheme.as_bytes());
            value.push(b' ');
        }
        value.extend_from_slice(token);
        Credential::Header {
            name: self.header.clone(),
            value: Secret::new(value),
        }
    }
}
