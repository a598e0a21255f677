//! A token of an OAuth token endpoint (RFC 6749, 4.1.3, 4.4 and 5; RFC 7523, 2.1; RFC 7636, 4.5; RFC 8693).
//!
//! Invariant: what is taken for a token goes into a header as it is. An endpoint's refusal is told by its status and its
//! code; what it describes is not repeated, since it may repeat what it was sent.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::header::{ACCEPT, HeaderMap, HeaderValue};
use policy::secret::Secret;
use tokio::time::Instant;

use super::AccessToken;
use crate::client::{Call, Client, Reply};
use crate::client_auth::ClientAuth;
use crate::fault::Fault;
use crate::form::Form;
use crate::json;
use crate::secret_source::SecretSource;
use crate::url::Url;

/// The longest answer.
pub(super) const ANSWER_BYTES_MAX: usize = 64 << 10;
/// How long a token lives of which the answer does not say it.
const ASSUMED_LIFE: Duration = Duration::from_secs(300);
/// Of an answer that says in no way how long its token lives.
pub(super) const NO_LIFE: &str = "its expires_in is no number of seconds";
/// The longest code of a refusal.
const CODE_BYTES_MAX: usize = 64;

/// What a token is given for.
#[derive(Debug, Clone)]
pub enum Grant {
    /// Who the gate is (`client_credentials`).
    ClientCredentials,
    /// Another token (`urn:ietf:params:oauth:grant-type:token-exchange`).
    Exchange {
        /// The token that is given for it.
        subject_token: SecretSource,
        /// What it is, as a URN of RFC 8693.
        subject_token_type: String,
        /// What is asked for, where the endpoint has to be told.
        requested_token_type: Option<String>,
    },
    /// An assertion that the host signs (`urn:ietf:params:oauth:grant-type:jwt-bearer`).
    JwtBearer {
        /// The assertion.
        assertion: SecretSource,
    },
    /// A code that a browser brought back from the provider (`authorization_code`).
    AuthorizationCode {
        /// The code.
        code: SecretSource,
        /// What its challenge was made of.
        verifier: SecretSource,
        /// Where the browser came back to.
        redirect_url: String,
    },
}

/// A request to a token endpoint.
#[derive(Debug, Clone)]
pub struct OAuthRequest {
    /// The endpoint.
    pub url: Url,
    /// Who the gate is to it.
    pub auth: ClientAuth,
    /// What the token is given for.
    pub grant: Grant,
    /// What it is to allow, in words that a space divides.
    pub scope: Option<String>,
    /// Whom it is for, each in a field of its own.
    pub audiences: Vec<String>,
    /// Where it is for (RFC 8707), each in a field of its own.
    pub resources: Vec<String>,
    /// Further fields, as some endpoints ask for them.
    pub fields: Vec<(String, String)>,
}

impl OAuthRequest {
    /// One with no scope and no audience.
    #[must_use]
    pub fn new(url: Url, auth: ClientAuth, grant: Grant) -> Self {
        Self {
            url,
            auth,
            grant,
            scope: None,
            audiences: Vec::new(),
            resources: Vec::new(),
            fields: Vec::new(),
        }
    }

    pub(crate) async fn fetch(&self, client: &Client) -> Result<AccessToken, Fault> {
        let asked = Instant::now();
        let body = self.answer(client).await?;
        self.read(&body)?.asked_for(asked)
    }

    /// The ID token that comes with the access token, which is not looked at (OpenID Connect Core, 3.1.3.3).
    pub(crate) async fn id_token(&self, client: &Client) -> Result<Secret, Fault> {
        let body = self.answer(client).await?;
        let members = json::object(&body)?;
        let token = json::text(&members, "id_token", "its id_token is no text")?;
        let token = token.filter(|token| !token.is_empty());
        let token = token.ok_or(Fault::Garbage("it holds no id_token"))?;
        Ok(Secret::new(token.into()))
    }

    async fn answer(&self, client: &Client) -> Result<Bytes, Fault> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let call = Call {
            body: self.form(&mut headers)?,
            headers,
            ..Call::new(Method::POST, &self.url, ANSWER_BYTES_MAX)
        };
        let reply = client.send(&call).await?;
        if !reply.status.is_success() {
            return Err(refusal(&reply));
        }
        let body = reply.good(&["application/json"], "it is not application/json");
        body.cloned()
    }

    fn form(&self, headers: &mut HeaderMap) -> Result<Bytes, Fault> {
        let mut form = Form::new();
        self.grant.add_to(&mut form)?;
        let scope = self.scope.iter().map(|scope| ("scope", scope));
        let audiences = self.audiences.iter().map(|to| ("audience", to));
        let resources = self.resources.iter().map(|at| ("resource", at));
        let fields = self.fields.iter().map(|(name, value)| (&**name, value));
        for (name, value) in scope.chain(audiences).chain(resources).chain(fields) {
            form.add(name, value.as_bytes());
        }
        self.auth.apply(&mut form, headers)?;
        Ok(form.finish(headers))
    }

    pub(super) fn read(&self, body: &[u8]) -> Result<AccessToken, Fault> {
        let members = json::object(body)?;
        let kind = json::text(&members, "token_type", "its token_type is no text")?;
        let is_bearer = |kind: &str| kind.eq_ignore_ascii_case("bearer") || kind == "N_A";
        if !kind.is_some_and(is_bearer) {
            return Err(Fault::Garbage("its token_type is not Bearer"));
        }
        let token = json::text(&members, "access_token", "its access_token is no text")?;
        let life = json::seconds(&members, "expires_in", NO_LIFE)?;
        let life = life.map_or(ASSUMED_LIFE, Duration::from_secs);
        made(token, life)
    }
}

/// A token of what an answer holds.
pub(super) fn made(token: Option<&str>, life: Duration) -> Result<AccessToken, Fault> {
    let token = token.ok_or(Fault::Garbage("it holds no access_token"))?;
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Fault::Garbage("its access_token fits no header"));
    }
    if life.is_zero() {
        return Err(Fault::Garbage("its token has ended already"));
    }
    Ok(AccessToken::new(Secret::new(token.into()), life))
}

impl Grant {
    fn add_to(&self, form: &mut Form) -> Result<(), Fault> {
        match self {
            Self::ClientCredentials => form.add("grant_type", b"client_credentials"),
            Self::AuthorizationCode {
                code,
                verifier,
                redirect_url,
            } => {
                form.add("grant_type", b"authorization_code");
                form.add("code", code.give()?.expose());
                form.add("redirect_uri", redirect_url.as_bytes());
                form.add("code_verifier", verifier.give()?.expose());
            }
            Self::JwtBearer { assertion } => {
                form.add("grant_type", b"urn:ietf:params:oauth:grant-type:jwt-bearer");
                form.add("assertion", assertion.give()?.expose());
            }
            Self::Exchange {
                subject_token,
                subject_token_type,
                requested_token_type,
            } => {
                let kind = b"urn:ietf:params:oauth:grant-type:token-exchange";
                form.add("grant_type", kind);
                form.add("subject_token", subject_token.give()?.expose());
                form.add("subject_token_type", subject_token_type.as_bytes());
                if let Some(kind) = requested_token_type {
                    form.add("requested_token_type", kind.as_bytes());
                }
            }
        }
        Ok(())
    }
}

fn refusal(reply: &Reply) -> Fault {
    let members = json::object(&reply.body).unwrap_or_default();
    let is_plain = |code: &&str| {
        let known = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        (1..=CODE_BYTES_MAX).contains(&code.len()) && code.bytes().all(known)
    };
    let code = members.get("error").and_then(|code| code.as_str());
    Fault::Status {
        status: reply.status.as_u16(),
        code: code.filter(is_plain).map(str::to_owned),
    }
}
