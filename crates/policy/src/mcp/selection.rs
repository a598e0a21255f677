//! What is seen of servers: which names are meant, for whom, and with which arguments.
//!
//! Invariant: a condition that cannot be decided allows nothing, and denies what it is written to deny. What no condition can tell yet, because
//! it looks at arguments that only a call has, is shown in lists and asked again on use.
//! Not here: how a condition is compiled (the host, from [`When::Written`]), the facts ([`crate::authority`]).

use std::borrow::Cow;
use std::sync::Arc;

use crate::authority::Condition;

/// What is seen of each kind of thing.
#[derive(Debug, Clone, Default)]
pub struct Shows {
    /// Tools, by name.
    pub tools: Selection,
    /// Prompts, by name.
    pub prompts: Selection,
    /// Resources and their templates, by URI.
    pub resources: Selection,
}

/// Which names are meant: all that are allowed, without those that are denied.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// These; all where there is none.
    pub allow: Vec<Named>,
    /// And none of these.
    pub deny: Vec<Named>,
}

/// Names, and when they are meant.
#[derive(Debug, Clone)]
pub struct Named {
    /// Those that this takes.
    pub names: Glob,
    /// Each time, unless said.
    pub when: Option<When>,
}

/// A condition.
#[derive(Debug, Clone)]
pub enum When {
    /// As it was written, and where: it cannot be decided.
    Written {
        /// The expression.
        text: Box<str>,
        /// Where it stands.
        place: Box<str>,
    },
    /// As it is asked.
    Ready {
        /// The condition.
        condition: Arc<dyn Condition>,
        /// Where it stands.
        place: Box<str>,
    },
}

/// What a condition comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holds {
    /// It holds.
    Yes,
    /// It does not.
    No,
    /// Only the arguments of a call tell.
    Later,
    /// It cannot be decided.
    Failed(Cow<'static, str>),
}

impl From<Glob> for Named {
    fn from(names: Glob) -> Self {
        Self { names, when: None }
    }
}

impl Selection {
    /// Whether it means all there is.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// Whether it means this name; `held` says what a condition comes to.
    #[must_use]
    pub fn has(&self, name: &str, mut held: impl FnMut(&When) -> Holds) -> bool {
        let mut takes = |of: &Named, unless: fn(&Holds) -> bool| {
            let is_meant = of.names.takes(name);
            is_meant && of.when.as_ref().is_none_or(|when| unless(&held(when)))
        };
        let allowed = |held: &Holds| matches!(held, Holds::Yes | Holds::Later);
        let denied = |held: &Holds| matches!(held, Holds::Yes | Holds::Failed(_));
        (self.allow.is_empty() || self.allow.iter().any(|of| takes(of, allowed)))
            && !self.deny.iter().any(|of| takes(of, denied))
    }

    /// All of it that has a condition.
    pub fn conditions_mut(&mut self) -> impl Iterator<Item = &mut When> {
        let all = self.allow.iter_mut().chain(&mut self.deny);
        all.filter_map(|of| of.when.as_mut())
    }
}

impl Shows {
    /// Whether all of it means all there is.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.tools.is_all() && self.prompts.is_all() && self.resources.is_all()
    }

    /// Whether any of it depends on who calls, or how.
    #[must_use]
    pub fn has_conditions(&self) -> bool {
        let parts = [&self.tools, &self.prompts, &self.resources];
        let mut named = parts
            .into_iter()
            .flat_map(|of| of.allow.iter().chain(&of.deny));
        named.any(|of| of.when.is_some())
    }

    /// Its parts.
    pub fn parts_mut(&mut self) -> [&mut Selection; 3] {
        [&mut self.tools, &mut self.prompts, &mut self.resources]
    }
}

/// A name in which each `*` stands for any text. Letters are compared as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(pub Box<str>);

impl Glob {
    /// Whether it means this name. As long as one walk through the name for each `*`.
    #[must_use]
    pub fn takes(&self, name: &str) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else {
            return *self.0 == *name;
        };
        let Some(mut name) = name.strip_prefix(first) else {
            return false;
        };
        let mut parts = rest.split('*').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return name.ends_with(part);
            }
            let Some((_, after)) = name.split_once(part) else {
                return false;
            };
            name = after;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    //! Which names a pattern means, and for whom.

    use super::{Glob, Holds, Named, Selection, When};

    #[test]
    fn a_star_stands_for_any_text_and_all_else_for_itself() {
        for (glob, names, others) in [
            ("read", &["read"][..], &["read2", "Read", "", "aread"][..]),
            ("*", &["", "a", "a__b"], &[]),
            ("get_*", &["get_", "get_x"], &["get", "xget_a", "GET_x"]),
            (
                "*_delete",
                &["_delete", "a_delete"],
                &["delete", "a_delete_x"],
            ),
            (
                "a*b*c",
                &["abc", "axbxc", "abbcc", "abcbc"],
                &["ab", "ac", "acb", "abcx"],
            ),
            ("a**b", &["ab", "axb"], &["a", "b"]),
            ("ab*ba", &["abba", "abxba"], &["aba"]),
        ] {
            let glob = Glob(glob.into());
            for name in names {
                assert!(glob.takes(name), "{glob:?} {name}");
            }
            for name in others {
                assert!(!glob.takes(name), "{glob:?} {name}");
            }
        }
    }

    #[test]
    fn what_is_denied_is_not_allowed() {
        let globs = |of: &[&str]| of.iter().map(|glob| Glob((*glob).into()).into()).collect();
        let selection = Selection {
            allow: globs(&["get_*", "list"]),
            deny: globs(&["*secret*"]),
        };
        let has = |of: &Selection, name: &str| of.has(name, |_| Holds::No);
        assert!(has(&selection, "get_issue") && has(&selection, "list"));
        assert!(!has(&selection, "get_secrets") && !has(&selection, "delete"));
        assert!(has(&Selection::default(), "anything"));
    }

    #[test]
    fn a_condition_that_is_not_decided_allows_nothing_and_denies_what_it_is_for() {
        let when = |names: &str| Named {
            names: Glob(names.into()),
            when: Some(When::Written {
                text: "".into(),
                place: "".into(),
            }),
        };
        let allowing = Selection {
            allow: vec![when("a*"), Glob("b".into()).into()],
            deny: Vec::new(),
        };
        let denying = Selection {
            allow: Vec::new(),
            deny: vec![when("a*")],
        };
        let failed = Holds::Failed("x".into());
        for (held, is_allowed, is_left) in [
            (Holds::Yes, true, false),
            (Holds::No, false, true),
            (Holds::Later, true, true),
            (failed, false, false),
        ] {
            assert_eq!(allowing.has("a1", |_| held.clone()), is_allowed, "{held:?}");
            assert_eq!(denying.has("a1", |_| held.clone()), is_left, "{held:?}");
            // Of other names nothing is asked.
            assert!(allowing.has("b", |_| unreachable!()));
            assert!(denying.has("b", |_| unreachable!()));
        }
    }
}
