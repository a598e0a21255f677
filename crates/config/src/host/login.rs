//! Login in a browser: the gate as a client of an OpenID provider.

use std::time::Duration;

use policy::admin::Roles;
use policy::secret::Secret;

use super::ClaimNames;

/// People who log in with a browser.
#[derive(Debug, Clone)]
pub struct LoginSource {
    /// The gate as a client of their provider.
    pub client: LoginClient,
    /// How claims of a session become a caller.
    pub claims: ClaimNames,
}

/// People who log in to the admin endpoint.
#[derive(Debug, Clone)]
pub struct AdminLogin {
    /// The gate as a client of their provider.
    pub client: LoginClient,
    /// The claim that says who it is.
    pub user: String,
    /// The claim that says what somebody may do.
    pub roles_claim: String,
    /// Roles by its values.
    pub roles: Vec<(String, Roles)>,
}

/// A server of plain OAuth, which gives no ID tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthServer {
    /// Where browsers are sent to log in.
    pub authorization_endpoint: String,
    /// Where codes are given for access tokens.
    pub token_endpoint: String,
    /// What answers whose an access token is.
    pub user_endpoint: String,
    /// The path of the member of that answer which becomes `sub`.
    pub subject_claim: String,
}

/// The gate as a client of an OpenID provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginClient {
    /// The provider's `issuer`.
    pub issuer: String,
    /// The gate's name there.
    pub client_id: String,
    /// Its addresses, where it is no OpenID provider.
    pub oauth: Option<OAuthServer>,
    /// Its secret there; without one it is a public client.
    pub client_secret: Option<Secret>,
    /// Both are sent in the form, and not as HTTP's basic credential.
    pub is_posted: bool,
    /// Roots to trust there in place of the system's, PEM.
    pub ca_pem: Option<Vec<u8>>,
    /// What is asked for beside `openid`.
    pub scopes: Vec<String>,
    /// Where browsers come back to: `https`, or `http` of a loopback host.
    pub redirect_url: String,
    /// How long a session is.
    pub session: Duration,
    /// What sessions are sealed with: 32 bytes or more. Without one it is drawn at the start.
    pub session_key: Option<Secret>,
    /// What they were sealed with before.
    pub previous_session_key: Option<Secret>,
    /// Claims that a session keeps; empty keeps all.
    pub keep_claims: Vec<String>,
}

impl LoginClient {
    /// The origin and the path of the address that browsers come back to.
    #[must_use]
    pub fn origin_and_path(&self) -> (&str, &str) {
        let url = &*self.redirect_url;
        let after = url.find("://").map_or(0, |scheme| scheme + 3);
        let path = url.get(after..).and_then(|rest| rest.find('/'));
        url.split_at_checked(path.map_or(url.len(), |path| after + path))
            .unwrap_or((url, ""))
    }
}
