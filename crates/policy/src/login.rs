//! Login in a browser: what whoever runs it is asked, and what the browser is told.
//!
//! Invariant: a reply can be shown in a log: cookies are secrets.
//! Not here: the flow (`identity::login`), asking the provider (`tollgate`), sessions as credentials (`identity`).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::caller::Later;
use crate::secret::Secret;

/// Runs logins at one provider, for one listener.
pub trait Login: fmt::Debug + Send + Sync {
    /// Its cookies.
    fn cookies(&self) -> &CookieNames;
    /// Begins a login. `query`: of the request, without `?`; its member `return` names the path to come back to.
    fn begin(&self, query: &[u8]) -> Later<LoginReply>;
    /// The browser came back with this query, and kept this state: the value of the cookie of that name.
    fn finish(&self, query: &[u8], state: Option<&[u8]>) -> Later<LoginReply>;
    /// Ends the session of the browser.
    fn end(&self) -> Later<LoginReply>;
}

/// Names of the cookies of a listener. Browsers keep those of all ports of a host together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookieNames {
    /// Of the session.
    pub session: String,
    /// Of a login that goes on.
    pub state: String,
    /// They are sent over TLS alone, and no other host of the domain can set them (`__Host-`).
    pub is_secure: bool,
}

impl CookieNames {
    /// Of a listener that browsers reach over TLS, or not.
    #[must_use]
    pub fn new(name: &str, is_secure: bool) -> Self {
        let prefix = if is_secure { "__Host-" } else { "" };
        Self {
            session: format!("{prefix}{name}"),
            state: format!("{prefix}{name}-login"),
            is_secure,
        }
    }
}

/// What a browser is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginReply {
    /// The status.
    pub status: LoginStatus,
    /// A short name that stays, for the log.
    pub code: &'static str,
    /// Where it goes on.
    pub location: Option<String>,
    /// Values of `set-cookie`.
    pub cookies: Vec<Secret>,
    /// A page for a person, HTML.
    pub page: String,
    /// What the log says beyond that.
    pub reason: Option<Cow<'static, str>>,
    /// Who logged in.
    pub user: Option<Arc<str>>,
}

/// The status of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginStatus {
    /// 200.
    Ok,
    /// 302.
    Found,
    /// 303.
    SeeOther,
    /// 400.
    BadRequest,
    /// 503.
    Unavailable,
}

impl LoginStatus {
    /// As HTTP has it.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Ok => 200,
            Self::Found => 302,
            Self::SeeOther => 303,
            Self::BadRequest => 400,
            Self::Unavailable => 503,
        }
    }
}
