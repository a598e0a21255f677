//! What there is so much of for all callers, and less for each: processes, and bytes that wait.
//!
//! Invariant: what was taken counts until its `Held` is gone, whoever has forgotten it.
//! Not here: how much there is of what (`sessions`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// A bound of the whole, and one of each caller.
pub(super) struct Share {
    most: usize,
    each: usize,
    taken: RefCell<Taken>,
    freed: Notify,
}

#[derive(Default)]
struct Taken {
    all: usize,
    of: HashMap<Rc<str>, usize>,
}

/// Why there is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// All of it is taken.
    Whole,
    /// The caller has what one may have.
    Caller,
}

impl Share {
    pub(super) fn new(most: usize, each: usize) -> Rc<Self> {
        Rc::new(Self {
            most,
            each,
            taken: RefCell::default(),
            freed: Notify::new(),
        })
    }

    /// Takes so much of it for a caller.
    pub(super) fn take(self: &Rc<Self>, caller: &Rc<str>, amount: usize) -> Result<Held, Full> {
        let mut taken = self.taken.borrow_mut();
        let own = taken.of.get(caller).copied().unwrap_or(0);
        if own.saturating_add(amount) > self.each {
            return Err(Full::Caller);
        }
        if taken.all.saturating_add(amount) > self.most {
            return Err(Full::Whole);
        }
        taken.all += amount;
        taken.of.insert(Rc::clone(caller), own + amount);
        Ok(Held {
            of: Rc::clone(self),
            caller: Rc::clone(caller),
            amount,
        })
    }

    /// How much is taken of that which is full.
    pub(super) fn taken(&self, full: Full, caller: &str) -> usize {
        let taken = self.taken.borrow();
        match full {
            Full::Whole => taken.all,
            Full::Caller => taken.of.get(caller).copied().unwrap_or(0),
        }
    }

    /// Ends when some of it is given back, from now on.
    pub(super) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }
}

/// What a caller has taken.
pub(super) struct Held {
    of: Rc<Share>,
    caller: Rc<str>,
    amount: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut taken = self.of.taken.borrow_mut();
        taken.all = taken.all.saturating_sub(self.amount);
        if let Some(own) = taken.of.get_mut(&self.caller) {
            *own = own.saturating_sub(self.amount);
            if *own == 0 {
                taken.of.remove(&self.caller);
            }
        }
        drop(taken);
        self.of.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_leaves_some_to_others_and_what_is_held_counts_until_it_is_gone() {
        let share = Share::new(10, 6);
        let (a, b): (Rc<str>, Rc<str>) = ("a".into(), "b".into());
        let first = share.take(&a, 4).expect("room");
        let second = share.take(&a, 2).expect("room");
        assert_eq!(share.take(&a, 1).err(), Some(Full::Caller));
        let third = share.take(&b, 4).expect("room");
        assert_eq!(share.take(&b, 1).err(), Some(Full::Whole));
        drop(first);
        assert_eq!(share.taken(Full::Caller, "a"), 2);
        assert_eq!(share.taken(Full::Whole, "a"), 6);
        drop((second, third));
        assert!(share.taken.borrow().of.is_empty());
        assert_eq!(share.take(&a, 7).err(), Some(Full::Caller));
    }
}
