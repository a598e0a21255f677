//! What is known of servers: whether they answered last, and what they listed, to whichever worker.
//!
//! For whoever looks at the gate; and what bare names of a server that says nothing stand for. Invariant: of each server one list of each
//! kind is kept, and none of servers that no configuration has any more.
//! Not here: lists that calls are decided by, which each worker has (the host).

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Kinds of things: tools, prompts, resources, templates.
pub const KINDS: usize = 4;

/// What is known of servers, by where they are.
#[derive(Debug, Default)]
pub struct Known(Mutex<HashMap<Box<str>, OfServer>>);

/// What is known of one.
#[derive(Debug, Clone, Default)]
pub struct OfServer {
    /// Whether it answered when it was asked last.
    pub last: Option<Answered>,
    /// By kind: what it listed last.
    pub lists: [Option<Listed>; KINDS],
}

/// A server was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// When, in milliseconds since the epoch.
    pub unix_ms: u64,
    /// Why it gave no answer, where it gave none.
    pub fault: Option<Box<str>>,
}

/// A list.
#[derive(Debug, Clone)]
pub struct Listed {
    /// When it came, in milliseconds since the epoch.
    pub unix_ms: u64,
    /// The list, as its host has it.
    pub list: Arc<dyn Any + Send + Sync>,
}

impl Known {
    /// A server answered, or did not.
    pub fn asked(&self, at: &str, unix_ms: u64, fault: Option<Box<str>>) {
        self.of_server(at, |of| of.last = Some(Answered { unix_ms, fault }));
    }

    /// A server listed what it has of a kind.
    pub fn listed(&self, at: &str, kind: usize, listed: Listed) {
        self.of_server(at, |of| {
            of.last = Some(Answered {
                unix_ms: listed.unix_ms,
                fault: None,
            });
            if let Some(of) = of.lists.get_mut(kind) {
                *of = Some(listed);
            }
        });
    }

    /// What is known of a server.
    #[must_use]
    pub fn of(&self, at: &str) -> OfServer {
        let servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        servers.get(at).cloned().unwrap_or_default()
    }

    /// Forgets the servers that no configuration has any more.
    pub(crate) fn keep<'s>(&self, kept: impl Iterator<Item = &'s str>) {
        let kept: Vec<&str> = kept.collect();
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|at, _| kept.contains(&&**at));
    }

    fn of_server(&self, at: &str, change: impl FnOnce(&mut OfServer)) {
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of) = servers.get_mut(at) {
            change(of);
            return;
        }
        change(servers.entry(at.into()).or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_and_the_last_list_are_known_as_long_as_the_server_is() {
        let known = Known::default();
        known.asked("a", 1, Some("it is silent".into()));
        let list = |of: u8, unix_ms| Listed {
            unix_ms,
            list: Arc::new(of),
        };
        known.listed("a", 1, list(7, 2));
        known.listed("a", 1, list(8, 3));
        known.listed("a", KINDS, list(9, 3));
        let of = known.of("a");
        assert_eq!(
            of.last,
            Some(Answered {
                unix_ms: 3,
                fault: None
            })
        );
        let prompts = of.lists[1].as_ref().expect("a list");
        assert_eq!(prompts.list.downcast_ref::<u8>(), Some(&8));
        assert!(of.lists[0].is_none());
        known.asked("a", 4, Some("it is silent".into()));
        assert!(
            known.of("a").lists[1].is_some(),
            "what it listed is still shown"
        );
        known.keep(["b"].into_iter());
        assert!(known.of("a").last.is_none());
    }
}
