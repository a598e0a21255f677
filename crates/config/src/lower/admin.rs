//! `admin`: the credentials of the admin endpoint and the people who log in, and what they may do.
//!
//! Invariant: no two credentials have the same secret, so that who brought it is known.
//! Not here: which request needs which role (`admin`).

use std::net::SocketAddr;

use policy::admin::{Access, Bearer, Role, Roles};

use crate::decode::{At, Field, Place};
use crate::host::AdminLogin;
use crate::scalar::RedirectUrl;
use crate::schema::Document;
use crate::schema::admin::{self, AdminBearer};

/// What the log calls who brings `admin.bearer`.
const BEARER: &str = "admin";
/// Most of them: each is compared with what every request brings.
const BEARERS_MAX: usize = 64;

/// Where browsers come back to, unless said.
const CALLBACK: &str = "/login/callback";
/// Paths that the endpoint answers otherwise.
const OTHER_PATHS: [&str; 8] = [
    "/livez",
    "/healthz",
    "/readyz",
    "/health",
    "/metrics",
    "/stats/prometheus",
    "/config",
    "/ledger",
];

/// Whether a credential is asked for.
pub(super) fn asks(document: &Document) -> bool {
    match &document.admin {
        Field::Absent => false,
        // What is wrong in it is a fault already.
        Field::Bad => true,
        Field::Is(admin) => {
            !admin.bearer.is_absent() || !admin.bearers.is_absent() || !admin.login.is_absent()
        }
    }
}

impl super::Lowering<'_> {
    /// Who may use the admin endpoint; `None` when something is wrong, which is then among the findings.
    pub(super) fn admin_access(
        &mut self,
        document: &Document,
        listener: SocketAddr,
    ) -> Option<Access> {
        let mut bearers = Vec::new();
        let mut is_whole = true;
        let admin = document.admin.get();
        if let Some(written) = admin.and_then(|admin| admin.bearer.get()) {
            let found = self.secret_at(written, &Place::new("admin.bearer", 0));
            is_whole &= found.is_some();
            bearers.extend(found.map(|secret| Bearer {
                name: BEARER.into(),
                secret,
                roles: Roles::ALL,
            }));
        }
        for (name, written) in admin.map_or(&[][..], |admin| admin.bearers.items()) {
            let found = written
                .as_ref()
                .and_then(|written| self.admin_bearer(&name.place, &name.value.0, written));
            match found {
                Some(bearer) if bearers.len() < BEARERS_MAX => {
                    self.one_of_a_kind(&name.place, &bearer, &bearers);
                    bearers.push(bearer);
                }
                Some(_) => {
                    let says = format!("is past the {BEARERS_MAX} credentials that there may be");
                    self.fault(&name.place, says, "leave some out");
                }
                None => is_whole = false,
            }
        }
        let anonymous = match asks(document) {
            true => Roles::NONE,
            false => Roles::NONE.and(Role::Read),
        };
        is_whole.then(|| Access {
            hosts: self.hosts(document, listener),
            bearers,
            anonymous,
        })
    }

    fn admin_bearer(&mut self, place: &Place, name: &str, at: &AdminBearer) -> Option<Bearer> {
        let secret = self.secret_at(&at.secret, place)?;
        Some(Bearer {
            name: name.into(),
            secret,
            roles: at.roles.get()?.0.iter().map(|at| at.value.0).collect(),
        })
    }

    /// Who may log in; `None` where nobody may, or something is wrong.
    pub(super) fn admin_login(
        &mut self,
        document: &Document,
        listener: SocketAddr,
    ) -> Option<AdminLogin> {
        let written = document.admin.get()?.login.get()?;
        let place = Place::new("admin.login", 0);
        let local = self.local_redirect(&place, written, listener);
        let redirect_url = local.as_ref().unwrap_or(&written.redirect_url);
        if let Some(at) = redirect_url.get() {
            self.reaches_us(document, listener, at);
        }
        let user = super::said(&written.user_claim, "sub");
        let claim = super::text(&written.roles_claim);
        // A session holds what is read of it, and no more: a cookie is small.
        let keep = std::iter::once(user.clone()).chain(claim.clone());
        let client = self.login_client(&place, &written.client, redirect_url, keep.collect());
        let roles = written.roles.get()?.0.iter().filter_map(|(value, roles)| {
            let roles = roles.as_ref()?.0.iter().map(|at| at.value.0);
            Some((value.value.0.clone(), roles.collect()))
        });
        Some(AdminLogin {
            client: client?,
            user,
            roles_claim: claim?,
            roles: roles.collect(),
        })
    }

    /// Where browsers come back to where nothing is said, and they are on this machine.
    fn local_redirect(
        &mut self,
        place: &Place,
        written: &admin::AdminLogin,
        listener: SocketAddr,
    ) -> Option<Field<At<RedirectUrl>>> {
        if !written.redirect_url.is_absent() {
            return None;
        }
        if !listener.ip().is_loopback() {
            let says = "does not say where browsers come back to, who reach it from other machines";
            let hint = "write redirect_url: https://gate-admin.example/login/callback";
            self.fault(place, says, hint);
            return None;
        }
        let authority = listener.to_string();
        let text = format!("http://{authority}{CALLBACK}");
        Some(Field::Is(At {
            shown: format!("{text:?}"),
            value: RedirectUrl { text, authority },
            place: place.clone(),
        }))
    }

    /// Notes an address that the endpoint does not answer for, or answers otherwise.
    fn reaches_us(&mut self, document: &Document, listener: SocketAddr, at: &At<RedirectUrl>) {
        let RedirectUrl { text, authority } = &at.value;
        let hosts = self.hosts(document, listener);
        if !hosts.allows(Some(authority.as_bytes())) {
            let says = format!("the gate does not answer for the host of {}", at.shown);
            let hint = "add it to listen.hosts";
            self.fault(&at.place, says, hint);
        }
        let path = text
            .split_once(authority.as_str())
            .map_or("", |(_, path)| path);
        if OTHER_PATHS.contains(&path) || path.starts_with("/api/") || path == "/api" {
            let hint = format!("write another, such as {CALLBACK}");
            self.refuse(at, "has a path that is answered otherwise", hint);
        }
    }

    /// Notes a name or a secret that another one has.
    fn one_of_a_kind(&mut self, place: &Place, bearer: &Bearer, others: &[Bearer]) {
        if others.iter().any(|other| other.name == bearer.name) {
            let says = "is the name of who brings `admin.bearer`";
            self.fault(place, says, "take another name");
        }
        let same = |other: &&Bearer| other.secret == bearer.secret;
        if let Some(other) = others.iter().find(same) {
            let says = format!("has the secret of {:?}, too", other.name);
            self.fault(place, says, "give each a secret of its own");
        }
    }
}
