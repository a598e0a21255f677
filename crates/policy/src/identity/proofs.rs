//! What one worker knows of credentials that were proven: a bounded memory, by the SHA-256 of each.
//!
//! Two generations: what is used moves to the young one; when that is full it becomes the old one, and what was old
//! and unused is forgotten.
//! Invariant: no credential is kept, nothing proves anything past its end, and neither their number nor what their
//! claims weigh grows past a bound.
//! Not here: proving ([`super::Verifier`]).

use std::collections::HashMap;
use std::sync::Arc;

use super::Proof;
use crate::caller::Caller;

/// Most proofs of one generation.
const ROOM: usize = 8192;
/// The most that the claims of one generation may weigh, bytes.
const WEIGHT_MAX: usize = 16 << 20;

/// Proofs by the SHA-256 of their credentials.
#[derive(Debug, Default)]
pub(crate) struct Proofs {
    young: Generation,
    old: Generation,
}

#[derive(Debug, Default)]
struct Generation {
    by_fingerprint: HashMap<[u8; 32], Kept>,
    weight: usize,
}

#[derive(Debug)]
struct Kept {
    proof: Proof,
    /// Which source proved it, and by what; none where another configuration did.
    by: Option<(usize, u64)>,
    /// Of its claims, bytes.
    weight: usize,
}

impl Proofs {
    /// Whose the credential is, where that is known and its end has not come, and by what it was proven: the place of
    /// the source, and its generation then.
    pub(crate) fn get(
        &mut self,
        fingerprint: &[u8; 32],
        unix_s: u64,
    ) -> Option<((usize, u64), &Arc<Caller>)> {
        if !self.young.by_fingerprint.contains_key(fingerprint) {
            let kept = self.old.by_fingerprint.remove(fingerprint)?;
            self.put(*fingerprint, kept);
        }
        let kept = self.young.by_fingerprint.get(fingerprint)?;
        let is_good = unix_s < kept.proof.until_unix_s;
        Some((kept.by.filter(|_| is_good)?, &kept.proof.caller))
    }

    /// Whether the credential was good at some time.
    pub(crate) fn knew(&self, fingerprint: &[u8; 32]) -> bool {
        let of = |generation: &Generation| generation.by_fingerprint.contains_key(fingerprint);
        of(&self.young) || of(&self.old)
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
            let kept = Kept {
                proof: proof.clone(),
                by: Some(generation),
                weight: proof.caller.claims.members().weight(),
            };
            self.put(fingerprint, kept);
        }
    }

    /// For another configuration: that they were good, and no more whose they are.
    pub(crate) fn outdated(mut self) -> Self {
        let nobody = Arc::new(Caller::default());
        for generation in [&mut self.young, &mut self.old] {
            generation.weight = 0;
            for kept in generation.by_fingerprint.values_mut() {
                (kept.by, kept.weight) = (None, 0);
                kept.proof.caller = Arc::clone(&nobody);
            }
        }
        self
    }

    fn put(&mut self, fingerprint: [u8; 32], kept: Kept) {
        let weight = kept.weight;
        let young = &mut self.young;
        if young.by_fingerprint.len() >= ROOM || young.weight.saturating_add(weight) > WEIGHT_MAX {
            self.old = std::mem::take(young);
        }
        let young = &mut self.young;
        young.weight = young.weight.saturating_add(weight);
        if let Some(gone) = young.by_fingerprint.insert(fingerprint, kept) {
            young.weight = young.weight.saturating_sub(gone.weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::{Claim, Members};
    use crate::caller::Claims;

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
        let len = |of: &Generation| of.by_fingerprint.len();
        assert!(len(&proofs.young) + len(&proofs.old) <= 2 * ROOM);
        assert!(proofs.get(&print(1), 0).is_none());
    }
    #[test]
    fn what_claims_weigh_is_bounded_whatever_their_number() {
        let text = "x".repeat(WEIGHT_MAX / 10);
        let heavy = |n: u64| Proof {
            caller: Arc::new(Caller {
                claims: Claims::new(Members::new(vec![(
                    "groups".into(),
                    Claim::List([Claim::Int(n as i64), Claim::Text(text.as_str().into())].into()),
                )])),
                ..Caller::default()
            }),
            until_unix_s: u64::MAX,
        };
        let mut proofs = Proofs::default();
        for n in 0..100 {
            proofs.keep(print(n), (0, 7), &heavy(n as u64), 0);
            // Once more is no heavier.
            proofs.keep(print(n), (0, 7), &heavy(n as u64), 0);
        }
        let weighed = |of: &Generation| -> usize {
            let kept = of.by_fingerprint.values();
            kept.map(|kept| kept.proof.caller.claims.members().weight())
                .sum()
        };
        for generation in [&proofs.young, &proofs.old] {
            assert_eq!(generation.weight, weighed(generation));
            assert!((1..=WEIGHT_MAX).contains(&generation.weight));
        }
    }

    #[test]
    fn another_configuration_knows_that_a_credential_was_good_and_not_whose_it_is() {
        let mut proofs = Proofs::default();
        proofs.keep(print(1), (0, 7), &proof("a", 100), 50);
        let mut proofs = proofs.outdated();
        assert!(proofs.get(&print(1), 60).is_none());
        assert!(proofs.knew(&print(1)) && !proofs.knew(&print(2)));
    }
}
