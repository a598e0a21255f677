//! How long answers about tokens are used.

use super::*;

#[test]
fn an_answer_that_was_kept_already_is_used_no_longer_than_a_new_one() {
    let cache = Duration::from_secs(5);
    let until = |asked_s, exp| {
        let proof = proof_of(Caller::default(), (asked_s, cache), exp);
        proof.map(|proof| proof.until_unix_s)
    };
    let now = now_s();
    assert_eq!(until(now, None), Ok(now + 5));
    // Another worker asked about it three seconds ago.
    assert_eq!(until(now - 3, None), Ok(now + 2));
    assert_eq!(until(now, Some(now + 4)), Ok(now + 4));
    let expired = until(now, Some(now));
    assert!(matches!(expired, Err(Unproven::Invalid(_))), "{expired:?}");
}
