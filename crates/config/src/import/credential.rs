//! Credentials: each becomes the name of a variable.
//!
//! Invariant: a secret that stands in the other file is compared with others and warned of, and never written.

use std::collections::BTreeSet;

use super::read::{Given, Section};
use crate::decode::{Findings, Place};

/// What a backend's credential is made of, around the name of a variable.
#[derive(Clone)]
pub(super) struct Credential {
    before: String,
    key: Key,
    after: String,
}

#[derive(Clone)]
enum Key {
    Variable(String),
    Clear {
        secret: String,
        suggested: String,
        place: Place,
    },
    /// The rest says it all.
    None,
}

impl Credential {
    /// One key, in the header of its dialect or in another.
    pub(super) fn of_key(key: NamedKey, header: &str) -> Self {
        let after = match header {
            "" => " }".to_owned(),
            header => format!(", header: {header} }}"),
        };
        Self::around("{ env: ", key, &after)
    }

    pub(super) fn around(before: &str, key: NamedKey, after: &str) -> Self {
        Self {
            before: before.to_owned(),
            key: key.0,
            after: after.to_owned(),
        }
    }

    /// One that is made where the gate runs.
    pub(super) fn made(written: String) -> Self {
        Self {
            before: written,
            key: Key::None,
            after: String::new(),
        }
    }

    /// Whether both are made of the same key.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        let is_same_key = match (&self.key, &other.key) {
            (Key::Variable(one), Key::Variable(other)) => one == other,
            (Key::Clear { secret: one, .. }, Key::Clear { secret: other, .. }) => one == other,
            (Key::None, Key::None) => true,
            _ => false,
        };
        is_same_key && self.before == other.before && self.after == other.after
    }

    pub(super) fn variable(&self) -> Option<&str> {
        match &self.key {
            Key::Variable(name) => Some(name),
            Key::Clear { .. } | Key::None => None,
        }
    }
}

/// A key that a deployment gives, or the name of the variable in which its provider's is looked for.
pub(super) struct NamedKey(Key);

impl NamedKey {
    pub(super) fn of_variable(name: &str) -> Self {
        Self(Key::Variable(name.to_owned()))
    }

    /// A key that stands in the file at this place.
    pub(super) fn of_secret(secret: &str, suggested: &str, place: Place) -> Self {
        Self(Key::Clear {
            secret: secret.to_owned(),
            suggested: suggested.to_owned(),
            place,
        })
    }

    /// What stands under a name; `suggested` is the variable to put it in where it is in clear.
    pub(super) fn read(
        params: &Section<'_>,
        name: &str,
        suggested: &str,
        findings: &mut Findings,
    ) -> Option<Self> {
        Some(Self(match params.text(name, findings)? {
            Given::Variable(name) => Key::Variable(name),
            Given::Text(secret) if is_placeholder(&secret) => return None,
            Given::Text(secret) => Key::Clear {
                secret,
                suggested: suggested.to_owned(),
                place: params.place_of(name),
            },
        }))
    }
}

/// What people write where an engine asks for no key, and SDKs for some.
pub(super) fn is_placeholder(key: &str) -> bool {
    const USUAL: [&str; 12] = [
        "none",
        "null",
        "empty",
        "dummy",
        "fake",
        "fake-key",
        "no-key",
        "not-needed",
        "anything",
        "na",
        "sk-no-key-required",
        "sk-fake",
    ];
    key.is_empty() || USUAL.contains(&key.to_ascii_lowercase().as_str())
}

/// The variables of the document.
pub(super) struct Variables {
    taken: BTreeSet<String>,
    of_secrets: Vec<(String, String)>,
}

impl Variables {
    pub(super) fn new(taken: impl Iterator<Item = String>) -> Self {
        Self {
            taken: taken.collect(),
            of_secrets: Vec::new(),
        }
    }

    /// These are somebody else's from here on.
    pub(super) fn take(&mut self, names: impl Iterator<Item = String>) {
        self.taken.extend(names);
    }

    /// A credential as it is written. A secret gets a variable to itself, the same one wherever it stands.
    pub(super) fn written(&mut self, credential: &Credential, findings: &mut Findings) -> String {
        let name = match &credential.key {
            Key::None => String::new(),
            Key::Variable(name) => name.clone(),
            Key::Clear {
                secret,
                suggested,
                place,
            } => {
                let name = self.name_of(secret, suggested);
                let says = "a secret stands in the file, and is not taken over";
                let already = findings.warnings.iter().any(|it| it.path == place.path);
                if !already {
                    findings.warn(place, says, format!("put it into the variable {name}"));
                }
                name
            }
        };
        format!("{}{name}{}", credential.before, credential.after)
    }

    fn name_of(&mut self, secret: &str, suggested: &str) -> String {
        if let Some((_, name)) = self.of_secrets.iter().find(|(known, _)| known == secret) {
            return name.clone();
        }
        let name = free(suggested, "_", |name| self.taken.contains(name));
        self.taken.insert(name.clone());
        self.of_secrets.push((secret.to_owned(), name.clone()));
        name
    }

    /// The variables that secrets of the other file are to be put into.
    pub(super) fn of_secrets(&self) -> Vec<String> {
        let names = self.of_secrets.iter().map(|(_, name)| name.clone());
        names.collect()
    }
}

/// A name, or the name with the first number that makes it a new one.
pub(super) fn free(name: &str, between: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut free = name.to_owned();
    let mut number = 1_u32;
    while is_taken(&free) {
        number += 1;
        free = format!("{name}{between}{number}");
    }
    free
}

/// As the start of a variable's name.
pub(super) fn variable_of(name: &str) -> String {
    let letter = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let name: String = name.chars().map(letter).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        format!("MODEL_{name}")
    } else {
        name
    }
}

/// A variable for the key of an address.
pub(super) fn key_of(url: &str) -> String {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', ':']).next().unwrap_or_default();
    format!("{}_API_KEY", variable_of(host))
}
