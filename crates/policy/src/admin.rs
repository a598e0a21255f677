//! Who may do what on the admin endpoint: roles, and the credentials that have them.
//!
//! Invariant: a role is a right of its own, and none includes another; what changes anything needs a role that nobody
//! has without a credential.
//! Not here: which request needs which role (`admin`), what is written (`config`), keys that callers of models bring
//! (`identity`).

use crate::secret::Secret;
use crate::web::Hosts;

/// A right on the admin endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// To see metrics, levels and the redacted configuration.
    Read,
    /// To have the configuration read anew, and to stop the gate.
    Operate,
    /// To see, make, rotate and revoke keys.
    Keys,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Read, Self::Operate, Self::Keys];

    /// Its name in configuration and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Keys => "keys",
        }
    }

    /// The role of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Operate => 2,
            Self::Keys => 4,
        }
    }
}

/// A set of roles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    /// No right at all.
    pub const NONE: Self = Self(0);
    /// Every right.
    pub const ALL: Self = Self(7);

    /// These, and one more.
    #[must_use]
    pub const fn and(self, role: Role) -> Self {
        Self(self.0 | role.bit())
    }

    /// Whether a role is among them.
    #[must_use]
    pub const fn has(self, role: Role) -> bool {
        self.0 & role.bit() != 0
    }

    /// Those of both.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Their names, in the order of [`Role::ALL`].
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let held = Role::ALL.into_iter().filter(move |role| self.has(*role));
        held.map(Role::as_str)
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        roles.into_iter().fold(Self::NONE, Self::and)
    }
}

/// A credential of the admin endpoint.
#[derive(Debug, Clone)]
pub struct Bearer {
    /// Whose it is, as the log says it.
    pub name: Box<str>,
    /// What is brought as `authorization: Bearer …`.
    pub secret: Secret,
    /// What it opens.
    pub roles: Roles,
}

/// Somebody who is logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// As the log says it.
    pub name: String,
    /// What they may do.
    pub roles: Roles,
}

/// Who may use the admin endpoint.
#[derive(Debug, Clone)]
pub struct Access {
    /// Hosts that a request may name.
    pub hosts: Hosts,
    /// Credentials; no two have the same secret.
    pub bearers: Vec<Bearer>,
    /// What is open to those who bring nothing.
    pub anonymous: Roles,
}

impl Access {
    /// Whose secret this is. Each is compared, whichever fits, and in constant time.
    #[must_use]
    pub fn bearer(&self, given: &[u8]) -> Option<&Bearer> {
        // Without leaving early, so that the time does not tell which was nearly right.
        let mut found = None;
        for bearer in &self.bearers {
            if bearer.secret.is(given) {
                found = Some(bearer);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_role_includes_another() {
        for role in Role::ALL {
            let alone = Roles::NONE.and(role);
            assert_eq!(Role::named(role.as_str()), Some(role));
            assert_eq!(alone.names().collect::<Vec<_>>(), [role.as_str()]);
            for other in Role::ALL {
                assert_eq!(alone.has(other), role == other);
            }
            assert!(Roles::ALL.has(role) && !Roles::NONE.has(role));
        }
        assert_eq!(Role::ALL.into_iter().collect::<Roles>(), Roles::ALL);
        assert_eq!(Role::named("admin"), None);
    }

    #[test]
    fn a_bearer_is_found_by_its_whole_secret() {
        let bearer = |name: &str, secret: &str| Bearer {
            name: name.into(),
            secret: Secret::new(secret.into()),
            roles: Roles::ALL,
        };
        let access = Access {
            hosts: Hosts::Any,
            bearers: vec![bearer("a", "one"), bearer("b", "two")],
            anonymous: Roles::NONE,
        };
        let name = |given: &[u8]| access.bearer(given).map(|found| &*found.name);
        assert_eq!((name(b"one"), name(b"two")), (Some("a"), Some("b")));
        for given in [&b""[..], b"on", b"onee", b"One", b"one two"] {
            assert_eq!(name(given), None);
        }
    }
}
