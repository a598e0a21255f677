//! The fields of a login, whichever listener people log in to.
//!
//! Not here: what they become (`lower::login`).

use super::Bearer;
use crate::decode::{At, OneOrMany, record};
use crate::scalar::{ClientAuth, File, Scope, Span, Text};

record! {
    /// The gate as a client of an OpenID provider, and its sessions.
    LoginClient {
        /// The provider's issuer, exactly as its discovery document says it.
        required issuer: At<Text>,
        /// The gate's own name there.
        required client_id: At<Text>,
        /// Its secret there; without one the gate is a public client.
        optional client_secret: Bearer,
        /// How both are sent: basic or post. Default basic.
        optional client_auth: At<ClientAuth>,
        /// PEM file with the roots to trust there, in place of the system's.
        optional ca: At<File>,
        /// What is asked for beside openid, such as profile and email.
        optional scopes: OneOrMany<Scope>,
        /// How long a session is: 1m to 7d. Default 8h.
        optional session: At<Span>,
        /// What sessions are sealed with, 32 bytes or more. Without it sessions end with a restart, and no other gate takes them.
        optional session_key: Bearer,
        /// What they were sealed with before.
        optional previous_session_key: Bearer,
    }
}
