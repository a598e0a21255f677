//! What one worker knows of credentials that were proven: a bounded memory, by the SHA-256 of each.
//!
//! Two generations: what is used moves to the young one; when that is full it becomes the old one, and what was old
//! and unused is forgotten.
//! Invariant: no credential is kept, and nothing proves anything past its end.
//! Not here: proving ([`super::Verifier`]).

use std::collections::HashMap;
use std::sync::Arc;

use super::Proof;
use crate::caller::Caller;

/// Most proofs of one generation.
const ROOM: usize = 8192;

/// Proofs by the SHA-256 of their credentials.
#[derive(Debug, Default)]
pub struct Proofs {
    young: HashMap<[u8; 32], Kept>,
    old: HashMap<[u8; 32], Kept>,
}

#[derive(Debug)]
struct Kept {
    proof: Proof,
    /// Which source proved it, and by what.
    generation: (usize, u64),
}

impl Proofs {
    /// Whose the credential is, where that is known and its end has not come, and by what it was proven: the place of
    /// the source, and its generation then.
    pub(crate) fn get(
        &mut self,
        fingerprint: &[u8; 32],
        unix_s: u64,
    ) -> Option<((usize, u64), &Arc<Caller>)> {
        if !self.young.contains_key(fingerprint) {
            let kept = self.old.remove(fingerprint)?;
            self.put(*fingerprint, kept);
        }
        let kept = self.young.get(fingerprint)?;
        let is_good = unix_s < kept.proof.until_unix_s;
        is_good.then_some((kept.generation, &kept.proof.caller))
    }

    /// Keeps a proof until its end, until another generation, or until it is forgotten.
    pub(crate) fn keep(
        &mut self,
        fingerprint: [u8; 32],
        generation: (usize, u64),
        proof: &Proof,
        unix_s: u64,
    ) {
        if unix_s < proof.until_unix_s {
            let proof = proof.clone();
            self.put(fingerprint, Kept { proof, generation });
        }
    }

    fn put(&mut self, fingerprint: [u8; 32], kept: Kept) {
        if self.young.len() >= ROOM {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(fingerprint, kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(name: &str, until_unix_s: u64) -> Proof {
        Proof {
            caller: Arc::new(Caller {
                workload: name.into(),
                ..Caller::default()
            }),
            until_unix_s,
        }
    }

    fn print(n: usize) -> [u8; 32] {
        let mut print = [0; 32];
        print[24..].copy_from_slice(&n.to_be_bytes());
        print
    }

    #[test]
    fn a_proof_is_good_until_its_end_and_for_its_whole_fingerprint_alone() {
        let mut proofs = Proofs::default();
        proofs.keep(print(1), (0, 7), &proof("a", 100), 50);
        let (by, caller) = proofs.get(&print(1), 99).expect("a proof");
        assert_eq!((by, &*caller.workload), ((0, 7), "a"));
        assert!(proofs.get(&print(1), 100).is_none());
        assert!(proofs.get(&print(2), 99).is_none());
        proofs.keep(print(3), (0, 7), &proof("b", 50), 50);
        assert!(
            proofs.get(&print(3), 49).is_none(),
            "it had ended when it came"
        );
    }

    #[test]
    fn the_memory_is_bounded_and_what_is_used_stays() {
        let mut proofs = Proofs::default();
        proofs.keep(print(0), (0, 7), &proof("used", u64::MAX), 0);
        for n in 1..5 * ROOM {
            proofs.keep(print(n), (0, 7), &proof("other", u64::MAX), 0);
            if n % 1000 == 0 {
                assert!(proofs.get(&print(0), 0).is_some(), "after {n}");
            }
        }
        assert!(proofs.young.len() + proofs.old.len() <= 2 * ROOM);
        assert!(proofs.get(&print(1), 0).is_none());
    }
}
