//! What an answer says to a browser: which page may read it, and which requests a page may send.
//!
//! As the Fetch standard has it. No answer allows cookies: the gate takes none and gives none.
//! Invariant: without `cors` in the configuration nothing is added to an answer.
//! Not here: which pages are allowed (`policy::web`).

use policy::web::Origins;

use crate::client::Downstream;

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
    pub(crate) fn allow(&self, to: &mut impl Downstream) {
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
