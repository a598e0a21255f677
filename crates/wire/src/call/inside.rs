//! A look inside of a whole body, for what its own members do not say: ids of what the provider keeps, models besides the call's own.
//!
//! Who minds neither does not look.
//! Not here: what is looked for (`stored`, `besides`), who minds (`policy`), the grammar, which the body has passed (`json`).

use bytes::Bytes;

use super::besides::{self, Besides};
use super::head::CallHead;
use super::stored::Stored;
use crate::dialect::Operation;

/// Who may call matters so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Minds {
    /// What the provider keeps for an account that others use.
    pub stored: bool,
    /// Which models a call names.
    pub models: bool,
}

/// What is left to look for inside of a body, for whoever has the time.
#[derive(Clone, Copy, Debug)]
pub struct Inside {
    stored: Option<Stored>,
    models: bool,
}

/// What was found there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundInside {
    /// The first member that names what the provider keeps.
    keeps: Option<&'static str>,
    besides: Vec<Besides>,
}

impl CallHead {
    /// Looks inside of the whole body that this call was read from, and keeps what it finds: in [`keeps`](Self::keeps), where none
    /// stands there of the call's own dialect, and in [`besides`](Self::besides).
    #[cold]
    pub fn look_inside(&mut self, operation: Operation, minds: Minds, body: &[Bytes]) {
        if let Some(inside) = self.inside(operation, minds) {
            self.keep(inside.find(body));
        }
    }

    /// What is left to do of [`look_inside`](Self::look_inside), where there is anything: what it finds is to be kept.
    #[cold]
    pub fn inside(&mut self, operation: Operation, minds: Minds) -> Option<Inside> {
        if minds.stored && !operation.keeps_state() {
            self.keeps = None;
        }
        let is_open = minds.stored && self.keeps.is_none() && !self.is_form;
        let inside = Inside {
            stored: is_open.then(|| Stored::of(operation)).flatten(),
            models: minds.models && self.may_name_more(operation),
        };
        (inside.stored.is_some() || inside.models).then_some(inside)
    }

    /// Keeps what was found.
    pub fn keep(&mut self, found: FoundInside) {
        self.keeps = self.keeps.or(found.keeps);
        self.besides = found.besides;
    }

    /// Whether it has members in which a call of this operation may name models besides its own ([`Minds::models`]).
    #[inline]
    #[must_use]
    pub fn may_name_more(&self, operation: Operation) -> bool {
        self.may_name_more || matches!(operation, Operation::Responses)
    }
}

impl Inside {
    /// Looks for it.
    #[must_use]
    pub fn find(self, body: &[Bytes]) -> FoundInside {
        FoundInside {
            keeps: self.stored.and_then(|stored| stored.named(body)),
            besides: match (self.models, body) {
                (false, _) => Vec::new(),
                (true, [whole]) => besides::named(whole),
                (true, pieces) => besides::named(&pieces.concat()),
            },
        }
    }
}
