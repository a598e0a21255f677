//! What an answer says to a browser: which page may read it, and which requests a page may send.
//!
//! As the Fetch standard has it. Where people log in, pages that are named may send the cookie of the session along.
//! Invariant: without `cors` in the configuration nothing is added to an answer; an answer that is for every page never
//! allows cookies.
//! Not here: which pages are allowed (`policy::web`).

use policy::web::Origins;

use crate::client::Downstream;

/// Who may read an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cors<'a> {
    pub(crate) origins: &'a Origins,
    /// The origin of the page that asked, which is allowed.
    pub(crate) page: Option<&'a str>,
    /// People log in here.
    pub(crate) takes_sessions: bool,
}

/// What a page may read of an answer that it sent a cookie for: a `*` stands for nothing there.
const EXPOSED: &[u8] = b"date, mcp-session-id, openai-model, openai-processing-ms, openai-version, request-id, retry-after, \
    retry-after-ms, x-ratelimit-limit-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-requests, \
    x-ratelimit-remaining-tokens, x-ratelimit-reset-requests, x-ratelimit-reset-tokens, x-request-id, x-should-retry";

impl Cors<'_> {
    /// Adds the headers.
    pub(crate) fn write(&self, to: &mut impl Downstream) {
        if *self.origins == Origins::None {
            return;
        }
        self.allow(to);
        if self.page.is_some() {
            let exposed = if self.allows_sessions() {
                EXPOSED
            } else {
                b"*"
            };
            to.field(b"access-control-expose-headers", exposed);
        }
    }

    /// A cache must not give one page's answer to another, so that what depends on the origin says so even
    /// where none was sent.
    pub(crate) fn allow(&self, to: &mut impl Downstream) {
        let is_any = *self.origins == Origins::Any;
        if !is_any {
            to.field(b"vary", b"origin");
        }
        if let Some(page) = self.page {
            let page = if is_any { "*" } else { page };
            to.field(b"access-control-allow-origin", page.as_bytes());
            if self.allows_sessions() {
                to.field(b"access-control-allow-credentials", b"true");
            }
        }
    }

    fn allows_sessions(&self) -> bool {
        self.takes_sessions && matches!(self.origins, Origins::Only(_))
    }
}
