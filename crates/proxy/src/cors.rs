//! What an answer says to a browser: which page may read it, and which requests a page may send.
//!
//! As the Fetch standard has it. No answer allows cookies: the gate takes none and gives none.
//! Invariant: without `cors` in the configuration nothing is added to an answer.
//! Not here: which pages are allowed (`policy::web`).

use std::io;

use policy::web::Origins;
use wire::head::RequestHead;

use crate::downstream::{Downstream, Extent};
use crate::reply::{self, Patience};

/// How long a browser may remember the answer to a preflight, seconds.
const REMEMBERED: &[u8] = b"600";

/// Who may read an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cors<'a> {
    pub(crate) origins: &'a Origins,
    /// The origin of the page that asked, which is allowed.
    pub(crate) page: Option<&'a str>,
}

impl Cors<'_> {
    /// Adds the headers.
    pub(crate) fn write(&self, to: &mut impl Downstream) {
        if *self.origins == Origins::None {
            return;
        }
        self.allow(to);
        if self.page.is_some() {
            to.field(b"access-control-expose-headers", b"*");
        }
    }

    /// A cache must not give one page's answer to another, so that what depends on the origin says so even
    /// where none was sent.
    fn allow(&self, to: &mut impl Downstream) {
        let is_any = *self.origins == Origins::Any;
        if !is_any {
            to.field(b"vary", b"origin");
        }
        if let Some(page) = self.page {
            let page = if is_any { "*" } else { page };
            to.field(b"access-control-allow-origin", page.as_bytes());
        }
    }
}

/// Answers a preflight: the page may send whatever the gate takes.
pub(crate) async fn preflight<D: Downstream>(
    to: &mut D,
    cors: &Cors<'_>,
    head: &RequestHead,
    id: &str,
    patience: Patience<'_>,
) -> io::Result<()> {
    to.begin(204, Extent::Nothing);
    to.date();
    cors.allow(to);
    let methods = b"GET, HEAD, POST, PUT, PATCH, DELETE";
    to.field(b"access-control-allow-methods", methods);
    // Named one by one: a `*` would not stand for `authorization`.
    for names in head.fields.by_name(b"access-control-request-headers") {
        to.field(b"access-control-allow-headers", names);
    }
    let mut asks = head
        .fields
        .by_name(b"access-control-request-private-network");
    if asks.next() == Some(b"true") {
        to.field(b"access-control-allow-private-network", b"true");
    }
    to.field(b"access-control-max-age", REMEMBERED);
    let asked = b"access-control-request-method, access-control-request-headers";
    to.field(b"vary", asked);
    to.field(b"x-request-id", id.as_bytes());
    to.begun();
    reply::whole(to, b"", patience).await.map(drop)
}
