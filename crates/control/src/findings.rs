//! What is wrong with objects, and what is left out of them.
//!
//! Invariant: each names its file, line, object and place; no message holds what looks like a key.

use std::path::Path;
use std::rc::Rc;

use config::{Fault, masked};

/// A place in an object.
#[derive(Debug, Clone)]
pub(crate) struct Spot {
    pub(crate) file: Rc<Path>,
    /// Kind, namespace and name.
    pub(crate) object: Rc<str>,
    /// Below the object: `spec.rules[0].matches`.
    pub(crate) path: String,
    pub(crate) line: usize,
}

impl Spot {
    pub(crate) fn member(&self, name: &str, line: usize) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        let is_plain = name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        let path = match is_plain {
            true => format!("{}{dot}{name}", self.path),
            false => format!("{}[{}]", self.path, config::quoted(name)),
        };
        Self {
            path,
            line,
            ..self.clone()
        }
    }

    pub(crate) fn item(&self, index: usize, line: usize) -> Self {
        Self {
            path: format!("{}[{index}]", self.path),
            line,
            ..self.clone()
        }
    }

    /// Its file and line.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.file.display(), self.line)
    }

    fn fault(&self, says: impl Into<String>, hint: impl Into<String>) -> Fault {
        let space = if self.path.is_empty() || self.object.is_empty() {
            ""
        } else {
            " "
        };
        Fault {
            file: Some(self.file.to_path_buf()),
            path: format!("{}{space}{}", self.object, self.path),
            line: (self.line > 0).then_some(self.line),
            says: masked(&says.into()),
            hint: masked(&hint.into()),
        }
    }
}

/// What is wrong with a reference, as the Gateway API tells it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Broken {
    /// What is named is not there, or is faulty itself.
    Missing,
    /// It is in another namespace, and not granted.
    NotPermitted,
    /// It is of a kind that cannot stand there.
    Kind,
    /// Another object, which is older, says the same.
    Conflict,
    /// A listener lets in routes of a kind that is not served.
    RouteKind,
    /// A listener's protocol is not served.
    Protocol,
    /// Two listeners on one port have different protocols.
    ProtocolConflict,
    /// Two listeners on one port have the same host.
    HostnameConflict,
    /// A Gateway asks for an address of a type that no gate has.
    AddressType,
    /// It asks for an address that this gate does not have.
    AddressNotUsable,
    /// A ListenerSet is not let in by its Gateway.
    NotAllowed,
    /// The roots by which clients of a listener are checked cannot be had.
    ClientRoots,
    /// They are in another namespace, and not granted.
    ClientRootsNotPermitted,
    /// They are of a kind that has none.
    ClientRootsKind,
}

/// Why a route is not attached to one of its parents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attached {
    /// One word of the Gateway API's.
    pub(crate) reason: &'static str,
    pub(crate) says: String,
    pub(crate) hint: String,
}

/// One of a route's parents that is the Gateway of this gate, or a ListenerSet of that.
#[derive(Debug, Clone)]
pub(crate) struct Parent {
    /// Kind, namespace and name of the route.
    pub(crate) route: Rc<str>,
    /// Its place in `parentRefs`.
    pub(crate) index: usize,
    /// The listeners that it is attached to, as our document calls them.
    pub(crate) attached: Result<Vec<String>, Attached>,
}

/// Faults and warnings.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) faults: Vec<Fault>,
    pub(crate) warnings: Vec<Fault>,
    /// Which of the faults are of references.
    pub(crate) broken: Vec<(usize, Broken)>,
    /// What routes in a cluster are attached to.
    pub(crate) parents: Vec<Parent>,
}

impl Findings {
    pub(crate) fn fault(&mut self, at: &Spot, says: impl Into<String>, hint: impl Into<String>) {
        self.faults.push(at.fault(says, hint));
    }

    pub(crate) fn break_off(
        &mut self,
        how: Broken,
        at: &Spot,
        says: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.broken.push((self.faults.len(), how));
        self.fault(at, says, hint);
    }

    pub(crate) fn warn(&mut self, at: &Spot, says: impl Into<String>, hint: impl Into<String>) {
        self.warnings.push(at.fault(says, hint));
    }
}
