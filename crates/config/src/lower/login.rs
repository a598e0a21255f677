//! `login`: the gate as a client of an OpenID provider, whichever listener people log in to.
//!
//! Not here: whose sessions become which workload (`identity`).

use std::time::Duration;

use super::{text, texts};
use crate::decode::{At, Field, Place};
use crate::host::LoginClient;
use crate::scalar::{RedirectUrl, Span};
use crate::schema::login as schema;

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
        let mut scopes = texts(&written.scopes);
        scopes.retain(|scope| scope != "openid");
        Some(LoginClient {
            issuer: text(&written.issuer)?,
            client_id: text(&written.client_id)?,
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
}
