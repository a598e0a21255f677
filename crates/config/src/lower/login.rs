//! `login`: the gate as a client of an OpenID provider, whichever listener people log in to.
//!
//! Not here: whose sessions become which workload (`identity`).

use std::time::Duration;

use super::identity::address;
use super::{said, text, texts};
use crate::decode::{At, Field, Place};
use crate::host::{LoginClient, OAuthServer};
use crate::scalar::{RedirectUrl, Span, Text};
use crate::schema::login as schema;
use crate::target::Target;

const SESSION_DEFAULT: Duration = Duration::from_secs(8 * 60 * 60);
const SESSION_LEAST: Duration = Duration::from_secs(60);
/// A session cannot be taken back before its end.
const SESSION_MOST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl super::Lowering<'_> {
    /// The gate as a client, to which browsers come back at `redirect_url`; sessions keep these claims, or all.
    pub(super) fn login_client(
        &mut self,
        place: &Place,
        written: &schema::LoginClient,
        redirect_url: &Field<At<RedirectUrl>>,
        keep_claims: Vec<String>,
    ) -> Option<LoginClient> {
        let session = written.session.get();
        let is_odd = |span: &Span| !(SESSION_LEAST..=SESSION_MOST).contains(&span.0);
        if let Some(at) = session.filter(|at| is_odd(&at.value)) {
            self.refuse(at, "is no length of a session", "write 1m to 7d");
        }
        if let Some(at) = written.issuer.get()
            && !at.value.0.starts_with("https://")
            && !at.value.0.starts_with("http://")
        {
            let hint =
                "write the issuer as its discovery document says it, such as https://login.example";
            self.refuse(at, "is no address of a provider", hint);
        }
        if written.session_key.is_absent() && !written.previous_session_key.is_absent() {
            let says = "says what sessions were sealed with before, and not with what they are";
            self.fault(place, says, "say `session_key`, too");
        }
        let mut secret = |written, name| self.secret_below(written, place, name);
        let client_secret = secret(&written.client_secret, "client_secret");
        let session_key = secret(&written.session_key, "session_key");
        let previous = secret(&written.previous_session_key, "previous_session_key");
        let ca_pem = self.roots_of(&written.ca);
        let oauth = match written.oauth.get() {
            None => None,
            Some(server) => Some(self.oauth_server(server, &written.issuer)?),
        };
        let mut scopes = texts(&written.scopes);
        scopes.retain(|scope| scope != "openid");
        Some(LoginClient {
            issuer: text(&written.issuer)?,
            client_id: text(&written.client_id)?,
            oauth,
            client_secret: client_secret?,
            is_posted: written.client_auth.value().is_some_and(|is| is.0),
            ca_pem,
            scopes,
            redirect_url: redirect_url.get()?.value.text.clone(),
            session: session.map_or(SESSION_DEFAULT, |at| at.value.0),
            session_key: session_key?,
            previous_session_key: previous?,
            keep_claims,
        })
    }

    /// The addresses of a server of plain OAuth: over TLS where its issuer is named so.
    fn oauth_server(
        &mut self,
        written: &schema::OAuthServer,
        issuer: &Field<At<Text>>,
    ) -> Option<OAuthServer> {
        let is_tls = issuer
            .value()
            .is_some_and(|issuer| issuer.0.starts_with("https://"));
        let mut endpoint = |field: &Field<At<Target>>| {
            let at = field.get()?;
            if is_tls && !at.value.tls {
                let hint = "write its https:// address: a code, and a token for it, are secrets";
                self.refuse(at, "is not https, as the issuer is", hint);
            }
            Some(address(&at.value))
        };
        let authorization_endpoint = endpoint(&written.authorization_endpoint);
        let token_endpoint = endpoint(&written.token_endpoint);
        let user_endpoint = endpoint(&written.user_endpoint);
        Some(OAuthServer {
            authorization_endpoint: authorization_endpoint?,
            token_endpoint: token_endpoint?,
            user_endpoint: user_endpoint?,
            subject_claim: said(&written.subject_claim, "sub"),
        })
    }
}
