//! A short name for a text, the same in every build.
//!
//! Not here: cryptography; whoever wants two texts of one digest can make them.

/// FNV-1a of 64 bits (Fowler, Noll and Vo), with its bits mixed once more.
pub(crate) fn digest(text: &str) -> u64 {
    let fnv = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let x = (fnv ^ (fnv >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^ (x >> 33)
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn digests_stay_as_they_are_and_differ() {
        // Of FNV-1a's cbf29ce484222325 and af63dc4c8601ec8c, which its authors list for these texts.
        assert_eq!(digest(""), 0xecba_3df2_c338_3c52);
        assert_eq!(digest("a"), 0xed81_70de_1919_a24d);
        let all: std::collections::BTreeSet<u64> =
            (0..10_000).map(|i| digest(&i.to_string()) >> 32).collect();
        assert!(all.len() > 9_990, "{}", all.len());
    }
}
