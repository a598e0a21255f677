//! What stands beside a ledger is read back, and nothing that was altered is.

use super::*;
use crate::chain::Hash;

#[test]
fn what_was_written_is_read_and_nothing_else() {
    let kept = Kept {
        ledger: [0xab; 16],
        anchor: Head {
            seq: 3,
            hash: Hash([1; 32]),
        },
        head: Head {
            seq: i64::MAX,
            hash: Hash([0xff; 32]),
        },
        commits: i64::MAX,
    };
    let bytes = render(&kept);
    assert_eq!(bytes.len(), LENGTH);
    let text = String::from_utf8(bytes.clone()).expect("text");
    assert_eq!(parse(&text), Some(kept));
    for at in 0..text.trim_end().len() {
        let mut other = bytes.clone();
        other[at] ^= 1;
        let read = String::from_utf8(other).ok().and_then(|text| parse(&text));
        assert_eq!(read, None, "byte {at}");
    }
}
