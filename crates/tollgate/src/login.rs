//! Logins in browsers, for one listener at one provider.
//!
//! Invariant: a reload ends no session and no login; nothing is kept of whoever logs in.
//! Not here: the flow (`identity::login`), asking the provider (`callout`), which requests are of a login (`policy`,
//! `admin`).

mod page;
mod people;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use callout::{Bounds, Client, ClientAuth, Code, Handle, OpenId, SecretSource, Tls};
use config::LoginClient;
use identity::claims::Mapping;
use identity::jwt::IssuerKeys;
use identity::login::{self, Chance, LoginFault, Registration, ReturnPath, Returned};
use identity::sealed::{NONCE_BYTES, Purpose, Sealer};
use identity::session::{NotASession, Session, SessionVerifier};
use jose::Rules;
use jose::sign::{SecureRandom, SystemRandom};
use policy::caller::Later;
use policy::cookie;
use policy::login::{CookieNames, Login, LoginReply, LoginStatus};
use policy::secret::Secret;

pub(crate) use self::people::people;
use crate::issuers;
use crate::services::{Services, now_s};
use crate::trust::trust;

/// How long a browser waits for the provider's document.
const BEGIN_WITHIN: Duration = Duration::from_secs(8);
/// How long it waits for what its code is given for.
const CODE_WITHIN: Duration = Duration::from_secs(10);
/// How far clocks may differ, seconds.
const LEEWAY_S: u64 = 60;

/// A listener whose users log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listener {
    /// That of calls.
    Data,
    /// That of metrics and of the API of the gate itself.
    Admin,
}

impl Listener {
    /// The name of its cookies, and of what is sealed for it.
    const fn name(self) -> &'static str {
        match self {
            Self::Data => "tollgate",
            Self::Admin => "tollgate-admin",
        }
    }
}

/// Runs logins.
#[derive(Debug, Clone)]
pub(crate) struct Logins(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registration: Registration,
    names: CookieNames,
    openid: OpenId,
    witness: Witness,
    sessions: Arc<Sealer>,
    states: Sealer,
    life_s: u64,
    keep: Vec<String>,
}

/// What says who has logged in.
#[derive(Debug)]
enum Witness {
    /// An ID token, by the provider's keys.
    IdToken(Arc<dyn IssuerKeys>, Box<Rules>),
    /// What the user endpoint of a plain OAuth server says, by this member.
    User(String),
}

impl Logins {
    /// One for a listener. What is known of its provider is kept where nothing of it changed, and so is the key of
    /// sessions that the configuration brings none for.
    ///
    /// # Errors
    /// In words, with the field that is wrong.
    pub(crate) fn of(
        services: &Services,
        listener: Listener,
        written: &LoginClient,
    ) -> Result<Self, String> {
        let openid = services.provider(listener.name(), written, openid)?;
        let witness = Witness::of(services, written)?;
        let (sessions, states) = sealers(listener, written, &services.session_key(drawn_key))?;
        Ok(Self(Arc::new(Inner {
            registration: Registration {
                issuer: written.issuer.clone(),
                client_id: written.client_id.clone(),
                redirect_url: written.redirect_url.clone(),
                scopes: written.scopes.clone(),
                has_id_tokens: written.oauth.is_none(),
            },
            names: names(listener, written),
            openid,
            witness,
            sessions: Arc::new(sessions),
            states,
            life_s: written.session.as_secs(),
            keep: written.keep_claims.clone(),
        })))
    }

    /// Whose session the value of the session's cookie is.
    ///
    /// # Errors
    /// [`NotASession`].
    pub(crate) fn who(&self, session: &[u8]) -> Result<Session, NotASession> {
        let Inner {
            sessions,
            registration,
            life_s,
            ..
        } = &*self.0;
        let now = (now_s(), *life_s);
        Session::open(session, sessions, &registration.issuer, now)
    }

    /// Takes sessions for credentials, mapped so.
    pub(crate) fn verifier(&self, mapping: Mapping) -> SessionVerifier {
        SessionVerifier {
            sealer: Arc::clone(&self.0.sessions),
            issuer: self.0.registration.issuer.clone(),
            life_s: self.0.life_s,
            mapping,
        }
    }
}

impl Witness {
    fn of(services: &Services, written: &LoginClient) -> Result<Self, String> {
        if let Some(server) = &written.oauth {
            return Ok(Self::User(server.subject_claim.clone()));
        }
        let keys = issuers::issuer(services, &written.issuer, &issuers::of_login(written))?;
        let rules = Rules {
            issuer: written.issuer.as_str().into(),
            audiences: vec![written.client_id.as_str().into()],
            types: Vec::new(),
            algorithms: Vec::new(),
            leeway_s: LEEWAY_S,
            requires_expiry: true,
        };
        Ok(Self::IdToken(keys, Box::new(rules)))
    }
}

fn openid(handle: &Handle, written: &LoginClient) -> Result<OpenId, String> {
    let tls = trust_of(written)?;
    let client = Client::new(&tls, Bounds::default());
    let (issuer, auth) = (&written.issuer, client_auth(written));
    let Some(server) = &written.oauth else {
        let openid = OpenId::new(handle, client, issuer, auth);
        return openid.map_err(|fault| format!("issuer: {fault}"));
    };
    let endpoints = [
        &*server.authorization_endpoint,
        &*server.token_endpoint,
        &*server.user_endpoint,
    ];
    let openid = OpenId::written(handle, client, issuer, auth, endpoints);
    openid.map_err(|fault| format!("oauth.{fault}"))
}

fn trust_of(written: &LoginClient) -> Result<Tls, String> {
    trust(written.ca_pem.as_deref()).map_err(|fault| format!("ca: {fault}"))
}

/// What takes sessions where nobody is asked anything: what is written is only looked at.
///
/// # Errors
/// In words, with the field that is wrong.
pub(crate) fn checked(
    listener: Listener,
    written: &LoginClient,
    mapping: Mapping,
) -> Result<SessionVerifier, String> {
    Ok(SessionVerifier {
        sealer: Arc::new(check(listener, written)?),
        issuer: written.issuer.clone(),
        life_s: written.session.as_secs(),
        mapping,
    })
}

/// Looks at what is written, and gives what would open sessions.
///
/// # Errors
/// In words, with the field that is wrong.
pub(crate) fn check(listener: Listener, written: &LoginClient) -> Result<Sealer, String> {
    trust_of(written)?;
    if written.oauth.is_none() {
        issuers::source(&written.issuer, &issuers::of_login(written))?;
    }
    let (sessions, _states) = sealers(listener, written, &drawn_key())?;
    Ok(sessions)
}

/// The cookies of a listener.
pub(crate) fn names(listener: Listener, written: &LoginClient) -> CookieNames {
    let is_secure = written.redirect_url.starts_with("https:");
    CookieNames::new(listener.name(), is_secure)
}

fn sealers(
    listener: Listener,
    written: &LoginClient,
    drawn: &Secret,
) -> Result<(Sealer, Sealer), String> {
    let LoginClient {
        issuer, client_id, ..
    } = written;
    let scope = format!("{}\0{issuer}\0{client_id}", listener.name());
    let secret = written.session_key.as_ref().unwrap_or(drawn);
    let previous = written.previous_session_key.as_ref();
    let sealer = |purpose| {
        let sealer = Sealer::new(purpose, &scope, secret, previous);
        sealer.map_err(|short| format!("session_key: {short}"))
    };
    Ok((sealer(Purpose::Session)?, sealer(Purpose::LoginState)?))
}

fn client_auth(written: &LoginClient) -> ClientAuth {
    let id = written.client_id.clone();
    let secret = written.client_secret.clone().map(SecretSource::fixed);
    match secret {
        Some(secret) if written.is_posted => ClientAuth::Post { id, secret },
        Some(secret) => ClientAuth::Basic { id, secret },
        None => ClientAuth::Nothing { id: Some(id) },
    }
}

impl Login for Logins {
    fn cookies(&self) -> &CookieNames {
        &self.0.names
    }

    fn begin(&self, query: &[u8]) -> Later<LoginReply> {
        let return_path = ReturnPath::of_query(query);
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let begun = match return_path {
                Ok(path) => inner.begin(&path).await,
                Err(fault) => Err(fault),
            };
            begun.unwrap_or_else(|fault| inner.refused(&fault, false))
        })
    }

    fn finish(&self, query: &[u8], state: Option<&[u8]>, from: IpAddr) -> Later<LoginReply> {
        let (query, state) = (query.to_vec(), state.map(<[u8]>::to_vec));
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let returned = match inner.returned(&query, state.as_deref()).await {
                Ok(returned) => returned,
                // Nothing of the state was used: another window may be about to.
                Err(fault) => return inner.refused(&fault, false),
            };
            let done = inner.session(returned, from).await;
            done.unwrap_or_else(|fault| inner.refused(&fault, true))
        })
    }

    fn end(&self) -> Later<LoginReply> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.end().await })
    }
}

impl Inner {
    async fn begin(&self, return_path: &ReturnPath) -> Result<LoginReply, LoginFault> {
        let provider = self.openid.provider(BEGIN_WITHIN).await;
        let provider = provider.map_err(|fault| LoginFault::Unavailable(fault.to_string()))?;
        let at = (&self.states, now_s());
        let endpoint = &provider.authorization_endpoint;
        let begun = login::begin(&self.registration, endpoint, return_path, &chance(), at);
        let CookieNames {
            state, is_secure, ..
        } = &self.names;
        let kept = cookie::set(state, &begun.state, login::LOGIN_WITHIN_S, *is_secure);
        Ok(LoginReply {
            location: Some(begun.location),
            cookies: vec![kept],
            ..reply(LoginStatus::Found, "login_begun")
        })
    }

    /// What the browser brought back. Whether the provider has to name itself is in its document, which the login's
    /// beginning had fetched.
    async fn returned(&self, query: &[u8], state: Option<&[u8]>) -> Result<Returned, LoginFault> {
        let at = (&self.states, now_s());
        // Who brings no login of ours has nobody asked.
        login::callback(query, state, &self.registration, false, at)?;
        let provider = self.openid.provider(BEGIN_WITHIN).await;
        let provider = provider.map_err(|fault| LoginFault::Unavailable(fault.to_string()))?;
        let at = (&self.states, now_s());
        login::callback(query, state, &self.registration, provider.names_itself, at)
    }

    /// The session of whom the provider says, for the code.
    async fn session(&self, returned: Returned, from: IpAddr) -> Result<LoginReply, LoginFault> {
        let code = Code {
            code: returned.code,
            verifier: returned.verifier,
            redirect_url: self.registration.redirect_url.clone(),
            from,
        };
        let claims = match &self.witness {
            Witness::IdToken(keys, rules) => {
                let token = self.openid.id_token(code, CODE_WITHIN).await;
                let token = token.map_err(|fault| nothing_given(&fault))?;
                let claims = self.claims(&token, &returned.nonce, &**keys, rules);
                claims.await?.all().clone()
            }
            Witness::User(subject) => {
                let user = self.openid.user(code, CODE_WITHIN).await;
                let user = user.map_err(|fault| nothing_given(&fault))?;
                login::user_claims(user, subject, &self.registration.issuer)?
            }
        };
        let session = Session::begin(&claims, &self.keep, now_s(), self.life_s);
        let sealed = session.seal(&self.sessions, chance().seal);
        let sealed = sealed.map_err(|large| LoginFault::TooLarge(large.to_string()))?;
        let CookieNames {
            session: name,
            state,
            is_secure,
        } = &self.names;
        let sealed = Secret::new(sealed.into_bytes());
        Ok(LoginReply {
            location: Some(returned.return_path.as_str().to_owned()),
            cookies: vec![
                cookie::set(name, &sealed, self.life_s, *is_secure),
                cookie::removed(state, *is_secure),
            ],
            user: Some(session.subject().into()),
            ..reply(LoginStatus::Found, "login_done")
        })
    }

    async fn claims(
        &self,
        token: &Secret,
        nonce: &Secret,
        keys: &dyn IssuerKeys,
        rules: &Rules,
    ) -> Result<jose::Claims, LoginFault> {
        let checked = || {
            let keys = keys.current().map_err(LoginFault::Unavailable)?;
            let client_id = &self.registration.client_id;
            let by = (rules, &*keys);
            let claims = login::id_token(token.expose(), nonce, client_id, by, now_s());
            claims.map_err(LoginFault::from)
        };
        match checked() {
            Err(LoginFault::IdToken(fault)) if fault.asks_for_keys() => {}
            // The keys of a gate that has just started may be on their way.
            Err(LoginFault::Unavailable(_)) => {}
            found => return found,
        }
        let _are_newer = keys.refresh().await;
        checked()
    }

    async fn end(&self) -> LoginReply {
        let CookieNames {
            session, is_secure, ..
        } = &self.names;
        let gone = cookie::removed(session, *is_secure);
        // Whoever cannot be asked keeps nobody logged in here.
        let provider = self.openid.provider(BEGIN_WITHIN).await.ok();
        let elsewhere = provider.and_then(|provider| provider.end_session_endpoint.clone());
        let location = elsewhere.map(|url| {
            let between = if url.contains('?') { '&' } else { '?' };
            let id = login::encoded(&self.registration.client_id);
            format!("{url}{between}client_id={id}")
        });
        let status = match location {
            Some(_) => LoginStatus::SeeOther,
            None => LoginStatus::Ok,
        };
        LoginReply {
            location,
            cookies: vec![gone],
            page: page::logged_out(),
            ..reply(status, "logout_done")
        }
    }

    /// Nobody is logged in. A state that was used is removed.
    fn refused(&self, fault: &LoginFault, is_used: bool) -> LoginReply {
        let CookieNames {
            state, is_secure, ..
        } = &self.names;
        let gone = is_used.then(|| cookie::removed(state, *is_secure));
        let status = match fault {
            LoginFault::TooOften(_) => LoginStatus::TooManyRequests,
            fault if fault.is_outage() => LoginStatus::Unavailable,
            _ => LoginStatus::BadRequest,
        };
        LoginReply {
            cookies: gone.into_iter().collect(),
            page: page::refused(fault),
            reason: Some(fault.reason().unwrap_or_else(|| fault.to_string()).into()),
            ..reply(status, fault.code())
        }
    }
}

/// Why a code brought nothing.
fn nothing_given(fault: &callout::Fault) -> LoginFault {
    let why = fault.to_string();
    match fault {
        callout::Fault::Status { status, .. } if (400..500).contains(status) => {
            LoginFault::Code(why)
        }
        callout::Fault::TooMany(_) => LoginFault::TooOften(why),
        _ => LoginFault::Unavailable(why),
    }
}

fn reply(status: LoginStatus, code: &'static str) -> LoginReply {
    LoginReply {
        status,
        code,
        location: None,
        cookies: Vec::new(),
        page: String::new(),
        reason: None,
        user: None,
    }
}

fn chance() -> Chance {
    Chance {
        state: drawn(),
        nonce: drawn(),
        verifier: drawn(),
        seal: drawn::<NONCE_BYTES>(),
    }
}

fn drawn<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.expect("the system gives random bytes");
    bytes
}

fn drawn_key() -> Secret {
    Secret::new(drawn::<32>().to_vec())
}

#[cfg(test)]
mod tests;
