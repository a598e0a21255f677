//! Keys that somebody else made, each with its caller.
//!
//! Nothing is known of their form, so a key is found by its SHA-256, and one that is not among them is left to the next source.
//! Invariant: the keys themselves are not kept.
//! Not here: keys of the gate's own, which have ids and ends (`keys`).

use std::collections::HashMap;
use std::sync::Arc;

use policy::caller::Caller;
use policy::identity::{Proof, Unproven, Verifier};

use crate::fingerprint;

/// Keys by their SHA-256, of which nobody learns anything by what it takes to look one up.
#[derive(Debug)]
pub struct StaticKeys(HashMap<[u8; 32], Arc<Caller>>);

impl StaticKeys {
    /// Of keys and who brings them.
    pub fn new<'k>(keys: impl Iterator<Item = (&'k [u8], Caller)>) -> Self {
        Self(
            keys.map(|(key, caller)| (fingerprint(key), Arc::new(caller)))
                .collect(),
        )
    }
}

impl Verifier for StaticKeys {
    fn takes(&self, _: &[u8]) -> bool {
        true
    }

    fn keeps_proofs(&self) -> bool {
        false
    }

    fn fingerprint(&self, credential: &[u8]) -> [u8; 32] {
        fingerprint(credential)
    }

    fn verify(&self, credential: &[u8], _: u64) -> Result<Proof, Unproven> {
        let caller = self.0.get(&fingerprint(credential));
        let caller =
            caller.ok_or_else(|| Unproven::Elsewhere("it is none of the static keys".into()))?;
        Ok(Proof {
            caller: Arc::clone(caller),
            until_unix_s: u64::MAX,
        })
    }
}

#[cfg(test)]
mod tests {
    use policy::caller::{Caller, Proven};
    use policy::identity::{Unproven, Verifier};

    use super::StaticKeys;

    #[test]
    fn a_key_is_its_callers_and_every_other_text_is_left_to_the_next_source() {
        let caller = |user: &str| Caller {
            by: Proven::Key,
            user: Some(user.into()),
            ..Caller::default()
        };
        let keys = [
            (&b"first-canary"[..], caller("ada")),
            (&b"second-canary"[..], caller("bob")),
        ];
        let keys = StaticKeys::new(keys.into_iter());
        let user = |key: &[u8]| {
            let proof = keys.verify(key, 0).ok()?;
            proof.caller.user.as_deref().map(str::to_owned)
        };
        assert_eq!(user(b"first-canary").as_deref(), Some("ada"));
        assert_eq!(user(b"second-canary").as_deref(), Some("bob"));
        for other in [&b"first-canary "[..], b"first-canar", b"", b"FIRST-CANARY"] {
            let unproven = keys.verify(other, 0).err();
            assert!(
                matches!(unproven, Some(Unproven::Elsewhere(_))),
                "{other:?}"
            );
        }
        assert!(!format!("{keys:?}").contains("canary"));
    }
}
