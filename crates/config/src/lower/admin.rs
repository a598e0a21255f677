//! `admin`: the credentials of the admin endpoint, and what they open.
//!
//! Invariant: no two have the same secret, so that who brought it is known.
//! Not here: which request needs which role (`admin`).

use std::net::SocketAddr;

use policy::admin::{Access, Bearer, Role, Roles};

use crate::decode::{Field, Place};
use crate::schema::Document;
use crate::schema::admin::AdminBearer;

/// What the log calls who brings `admin.bearer`.
const BEARER: &str = "admin";
/// Most of them: each is compared with what every request brings.
const BEARERS_MAX: usize = 64;
/// Where a secret may come from.
const CHOICE: &str = "file, env and inline";

/// Whether a credential is asked for.
pub(super) fn asks(document: &Document) -> bool {
    match &document.admin {
        Field::Absent => false,
        // What is wrong in it is a fault already.
        Field::Bad => true,
        Field::Is(admin) => !admin.bearer.is_absent() || !admin.bearers.is_absent(),
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
            let place = Place {
                path: "admin.bearer".to_owned(),
                line: 0,
            };
            let found = self.secret(&written.file, &written.env, &written.inline, &place, CHOICE);
            is_whole &= found.is_some();
            bearers.extend(found.map(|(secret, _)| Bearer {
                name: BEARER.into(),
                secret,
                roles: Roles::ALL,
            }));
        }
        let written = admin.and_then(|admin| admin.bearers.get());
        for (name, written) in written.map_or(&[][..], |written| &written.0) {
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
                    self.findings.fault(&name.place, says, "leave some out");
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
        let (secret, _) = self.secret(&at.file, &at.env, &at.inline, place, CHOICE)?;
        Some(Bearer {
            name: name.into(),
            secret,
            roles: at.roles.get()?.0.iter().map(|at| at.value.0).collect(),
        })
    }

    /// Notes a name or a secret that another one has.
    fn one_of_a_kind(&mut self, place: &Place, bearer: &Bearer, others: &[Bearer]) {
        if others.iter().any(|other| other.name == bearer.name) {
            let says = "is the name of who brings `admin.bearer`";
            self.findings.fault(place, says, "take another name");
        }
        let same = |other: &&Bearer| other.secret == bearer.secret;
        if let Some(other) = others.iter().find(same) {
            let says = format!("has the secret of {:?}, too", other.name);
            self.findings
                .fault(place, says, "give each a secret of its own");
        }
    }
}
