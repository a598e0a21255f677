//! `admin`: who may do what on the admin endpoint.
//!
//! Not here: what it becomes (`lower::admin`).

use super::Bearer;
use super::login::LoginClient;
use crate::decode::{At, MapOf, OneOrMany, record};
use crate::scalar::{AdminRole, Claim, Name, RedirectUrl, Text};

record! {
    /// Who may do what on the admin endpoint.
    Admin {
        /// What a caller brings as `authorization: Bearer …` that may do everything.
        optional bearer: Bearer,
        /// Further credentials, by the name that the log has for who brings them.
        optional bearers: MapOf<Name, AdminBearer>,
        /// People who log in with a browser at an OpenID provider.
        optional login: AdminLogin,
    }
}

record! {
    /// A credential of the admin endpoint, from exactly one of `file`, `env` and `inline`.
    AdminBearer of secret: Bearer {
        /// What it opens, none of which includes another: read, operate, keys.
        required roles: OneOrMany<AdminRole>,
    }
}

record! {
    /// People who log in to the admin endpoint with a browser at an OpenID provider (authorisation code with PKCE).
    AdminLogin {
        /// Where the provider sends browsers back to, as it is registered there. Default /login/callback of the admin address, where that is a loopback one.
        optional redirect_url: At<RedirectUrl>,
        /// The claim that says who it is, as the log has it. Default sub.
        optional user_claim: At<Claim>,
        /// The claim that says what somebody may do: a text, or a list of texts.
        required roles_claim: At<Claim>,
        /// Roles by the values of that claim.
        required roles: MapOf<Text, OneOrMany<AdminRole>>,
    }
    and client: LoginClient
}
