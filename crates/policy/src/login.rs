//! Login in a browser: which requests are of one, what whoever runs it is asked, and what the browser is told.
//!
//! Invariant: a reply can be shown in a log: cookies are secrets. What a session's cookie proves counts only where the
//! request is of no other site's page.
//! Not here: the flow (`identity::login`), asking the provider (`tollgate`), sessions as credentials (`identity`).

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use wire::head::{Known, Method, RequestHead};

use crate::caller::Later;
use crate::cookie::{self, Repeated};
use crate::credential;
use crate::refusal::Refusal;
use crate::secret::Secret;
use crate::web;

/// Where a login begins.
pub const LOGIN: &str = "/login";
/// Where a session is ended.
pub const LOGOUT: &str = "/logout";
/// Longest path that a browser is sent back to, bytes.
const RETURN_BYTES_MAX: usize = 1024;

/// Runs logins at one provider, for one listener.
pub trait Login: fmt::Debug + Send + Sync {
    /// Its cookies.
    fn cookies(&self) -> &CookieNames;
    /// Begins a login. `query`: of the request, without `?`; its member `return` names the path to come back to.
    fn begin(&self, query: &[u8]) -> Later<LoginReply>;
    /// The browser came back with this query from this address, and kept this state: the value of the cookie of that name.
    fn finish(&self, query: &[u8], state: Option<&[u8]>, from: IpAddr) -> Later<LoginReply>;
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

/// Login in a browser, as the listener of calls offers it.
#[derive(Debug, Clone)]
pub struct LoginSite {
    /// Who runs it.
    pub login: Arc<dyn Login>,
    /// The path to which the provider sends browsers back.
    pub callback: Box<str>,
    /// The gate's own origin, as browsers write it.
    pub origin: Box<str>,
}

/// A step of a login, as a request asks for it.
#[derive(Debug, PartialEq, Eq)]
pub enum LoginStep {
    /// It begins.
    Begin,
    /// The provider sent the browser back, which kept this state and is at this address.
    Finish(Option<Secret>, IpAddr),
    /// The session ends.
    End,
}

impl LoginStep {
    /// Has whoever runs it do it.
    pub fn ask(&self, login: &dyn Login, head: &RequestHead) -> Later<LoginReply> {
        let query = head.query().unwrap_or_default().as_bytes();
        match self {
            Self::Begin => login.begin(query),
            Self::Finish(state, from) => {
                login.finish(query, state.as_ref().map(Secret::expose), *from)
            }
            Self::End => login.end(),
        }
    }
}

impl LoginSite {
    /// The step of a login that a request asks for, where it is of one. `from`: where it comes from.
    ///
    /// # Errors
    /// [`Refusal::Method`], [`Refusal::ConflictingCredentials`] for a cookie that stands twice.
    pub(crate) fn step(
        &self,
        head: &RequestHead,
        from: impl FnOnce() -> IpAddr,
    ) -> Result<Option<LoginStep>, Refusal> {
        let (allow, method) = match head.path() {
            LOGIN => ("GET", Method::Get),
            LOGOUT => ("POST", Method::Post),
            path if path == &*self.callback => ("GET", Method::Get),
            _ => return Ok(None),
        };
        if head.method != method {
            return Err(Refusal::Method { allow });
        }
        Ok(Some(match head.path() {
            LOGIN => LoginStep::Begin,
            LOGOUT => LoginStep::End,
            _ => {
                let state = self.cookie(head, &self.login.cookies().state);
                let state = state.map_err(|Repeated| Refusal::ConflictingCredentials)?;
                LoginStep::Finish(state.map(|state| Secret::new(state.to_vec())), from())
            }
        }))
    }

    /// Refuses a request that brings a session and another credential, or two sessions.
    ///
    /// # Errors
    /// [`Refusal::ConflictingCredentials`].
    pub(crate) fn check(&self, head: &RequestHead) -> Result<(), Refusal> {
        match self.cookie(head, &self.login.cookies().session) {
            Ok(None) => Ok(()),
            Ok(Some(_)) if credential::brought(head) == 0 => Ok(()),
            Ok(Some(_)) | Err(Repeated) => Err(Refusal::ConflictingCredentials),
        }
    }

    /// The session that a request brings. Of several there is no first: [`Self::check`] has refused them.
    pub(crate) fn session<'h>(&self, head: &'h RequestHead) -> Option<&'h [u8]> {
        let session = self.cookie(head, &self.login.cookies().session);
        session.ok().flatten()
    }

    fn cookie<'h>(&self, head: &'h RequestHead, name: &str) -> Result<Option<&'h [u8]>, Repeated> {
        cookie::find(head.fields.of(Known::Cookie), name)
    }

    /// Sends a browser whose request proved nobody to log in, where a person waits for the page and no other
    /// credential was brought.
    pub(crate) fn instead_of(&self, refusal: &Refusal, head: &RequestHead) -> Option<LoginReply> {
        let is_unknown = matches!(
            refusal,
            Refusal::CredentialMissing | Refusal::CredentialInvalid
        );
        if !is_unknown || !web::is_for_a_person(head) || credential::brought(head) > 0 {
            return None;
        }
        let (_, _, code) = refusal.class();
        Some(LoginReply {
            status: LoginStatus::Found,
            code,
            location: Some(back_to(head.target())),
            cookies: Vec::new(),
            page: String::new(),
            reason: None,
            user: None,
        })
    }
}

/// Where a browser logs in that comes back to this target then: the path and the query.
#[must_use]
pub fn back_to(target: &str) -> String {
    if target.len() > RETURN_BYTES_MAX || !target.starts_with('/') {
        return LOGIN.to_owned();
    }
    let mut location = format!("{LOGIN}?return=");
    for byte in target.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            location.push(char::from(byte));
        } else {
            location.push_str(&format!("%{byte:02X}"));
        }
    }
    location
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
    /// 429.
    TooManyRequests,
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
            Self::TooManyRequests => 429,
            Self::Unavailable => 503,
        }
    }
}

#[cfg(test)]
mod tests;
