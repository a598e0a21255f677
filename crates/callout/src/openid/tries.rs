//! How many codes a login, and browsers at an address, may have the provider asked about.
//!
//! Whoever begins a login can make up codes, and each is a question with the gate's own secret: a provider that is asked
//! for too much refuses the gate, and with it everybody.
//! Invariant: what anybody brings takes no room beyond two tables of fixed size.
//! Not here: how many are asked about at once in all (`openid`).

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use policy::identity::{FailureBounds, Failures, Running, Whose};
use policy::secret::Secret;
use tokio::time::Instant;

use crate::fault::Fault;

/// Of one login, in the ten minutes that it lives: a person needs one, and some more where a page is loaded again.
const OF_LOGIN: FailureBounds = FailureBounds {
    window_s: 600,
    most: 5,
    most_asked: usize::MAX,
};
/// Of one address, those that came to nothing; and those that are asked about at one time, half of all.
const OF_ADDRESS: FailureBounds = FailureBounds {
    window_s: 10,
    most: 20,
    most_asked: 32,
};

pub(super) struct Tries {
    began: Instant,
    hashing: RandomState,
    state: Mutex<State>,
}

struct State {
    logins: Failures,
    addresses: Failures,
}

impl Tries {
    pub(super) fn new() -> Self {
        let hashing = RandomState::new();
        let seed = hashing.hash_one(());
        let state = State {
            logins: Failures::new(seed, OF_LOGIN),
            addresses: Failures::new(seed, OF_ADDRESS),
        };
        Self {
            began: Instant::now(),
            hashing,
            state: Mutex::new(state),
        }
    }

    /// A code is about to be asked about, of a login that has this verifier and no other login has.
    pub(super) fn begin(&self, from: IpAddr, verifier: &Secret) -> Result<Running, Fault> {
        let login = Whose(self.hashing.hash_one(verifier.expose()));
        let now_s = self.now_s();
        let State { logins, addresses } = &mut *self.state();
        if addresses.wait(from, now_s).is_some() {
            return Err(Fault::TooMany("codes of its address came to nothing"));
        }
        if logins.wait(login, now_s).is_some() {
            return Err(Fault::TooMany("its login has brought others"));
        }
        // Good or not: a second is one too many.
        logins.note(login, now_s);
        Ok(addresses.ask(from))
    }

    /// A code of this address came to nothing.
    pub(super) fn note_failure(&self, from: IpAddr) {
        let now_s = self.now_s();
        self.state().addresses.note(from, now_s);
    }

    fn now_s(&self) -> u64 {
        self.began.elapsed().as_secs()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
