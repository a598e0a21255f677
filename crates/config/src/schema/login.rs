//! The fields of a login, whichever listener people log in to.
//!
//! Not here: what they become (`lower::login`).

use super::Bearer;
use crate::decode::{At, OneOrMany, record};
use crate::scalar::{Claim, ClientAuth, File, Scope, Span, Text};
use crate::target::Target;

record! {
    /// The gate as a client of an OpenID provider, and its sessions.
    LoginClient {
        /// The provider's issuer, exactly as its discovery document says it.
        required issuer: At<Text>,
        /// The gate's own name there.
        required client_id: At<Text>,
        /// A server of plain OAuth, such as OpenShift's or GitHub's, which gives no ID tokens: its addresses, in place of its discovery document.
        optional oauth: OAuthServer,
        /// Its secret there; without one the gate is a public client.
        optional client_secret: Bearer,
        /// How both are sent: basic or post. Default basic.
        optional client_auth: At<ClientAuth>,
        /// PEM file with the roots to trust there, in place of the system's.
        optional ca: At<File>,
        /// What is asked for beside openid, such as profile and email; with `oauth`, all that is asked for.
        optional scopes: OneOrMany<Scope>,
        /// How long a session is: 1m to 7d. Default 8h.
        optional session: At<Span>,
        /// What sessions are sealed with, 32 bytes or more. Without it sessions end with a restart, and no other gate takes them.
        optional session_key: Bearer,
        /// What they were sealed with before.
        optional previous_session_key: Bearer,
    }
}

record! {
    /// A server of plain OAuth: where browsers are sent, and who an access token of it is of.
    OAuthServer {
        /// Where browsers are sent to log in.
        required authorization_endpoint: At<Target>,
        /// Where codes are given for access tokens.
        required token_endpoint: At<Target>,
        /// What answers whose an access token is, as a JSON object, whose members are the claims. Of OpenShift: https://API-SERVER:6443/apis/user.openshift.io/v1/users/~
        required user_endpoint: At<Target>,
        /// The claim that names somebody for good: metadata.uid of OpenShift, id of GitHub. Default sub.
        optional subject_claim: At<Claim>,
    }
}
